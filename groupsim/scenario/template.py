"""The commented scenario that ``groupsim init`` writes."""

from __future__ import annotations

from typing import Final

from groupsim.scenario.loader import parse_scenario

__all__ = ["template"]

_TEMPLATE: Final = """\
# A groupsim scenario. Run it:    groupsim run FILE
# Check it without running:       groupsim validate FILE
# Everything that can be said:    docs/scenarios.md, and `groupsim schema` for your editor
#
# Times have a unit: 45s, 1500ms, 2m, 1h30m, 250us. Configuration has Kafka's own names, and
# *.ms options take a number of milliseconds, as in Kafka, or a time with its unit.

groupsim: 1                       # the version of this format
name: @NAME@
title: One line for `groupsim list`
lesson: |
  What is to be seen here, why it is so, and what to try next.

topics:
  orders: {partitions: 12, rate: 100}     # rate: records a second in each partition
  # payments: 6                           # short for {partitions: 6}

brokers:
  count: 1                                # b-1; more of them for coordinator failover
  config: {group.initial.rebalance.delay.ms: 3000}
  # replication_delay: 2ms                # from append to commit of the coordinator's records

network:
  latency: 1ms                            # one way; or {uniform: [1ms, 3ms]},
                                          # or {lognormal: {median: 1ms, p99: 20ms}}
groups:
  checkout:
    # What the group says holds for each member that does not say otherwise.
    client: java                          # groupsim's client kinds: java, java-2.4, ...
    subscribe: orders                     # a topic, a list, or {pattern: "ord.*"}
    config:
      session.timeout.ms: 45s
      partition.assignment.strategy: [range]
    members:
      # count: 4 makes c-1, c-2, c-3 and c-4; they start 500 ms apart.
      - {name: c, count: 4, start: {at: 0s, every: 500ms}}
      # - {name: late, start: never}      # started by the timeline
      # - {name: s, count: 2, static: true}   # group.instance.id: s-1, s-2

timeline:
  # When: `at`, or `every` with `until`. What: one verb. Whom: a name, a family (c means all
  # of c-1 ... c-4), a pattern ("c-*"), a list, or {leader_of: checkout}.
  - {at: 60s, restart: {members: "c-*", one_every: 20s, down: 5s}}
  # - {at: 60s, crash: c-2}
  # - {at: 60s, pause: {members: c-3, for: 50s}}      # a garbage collection
  # - {at: 60s, stop: c-1}
  # - {at: 90s, start: c-1}
  # - {at: 60s, add_partitions: {orders: 24}}
  # - {at: 60s, cut: {members: c-1, for: 10s}}

until: 5m

expect:
  - {group: checkout, stable_by: 30s}
  - {group: checkout, rebalances: {at_most: 9}}
  # - {group: checkout, unavailable: {at_most: 120s}}   # partition-seconds without an owner
  # - {group: checkout, frozen: 0s}                     # nobody is paused while it owns something
  # - {group: checkout, overlap: 0s}                    # nobody reads what another owns
  # - {group: checkout, members: {exactly: 4}}
"""


def template(name: str = "my-scenario") -> str:
    """Return the text of a new scenario called ``name``; it is a valid scenario.

    Raises:
        ScenarioError: that cannot be a scenario's name.

    """
    text = _TEMPLATE.replace("@NAME@", name)
    parse_scenario(text, "template")
    return text
