"""A scenario to a simulation: topics, brokers, network, members, and the timeline armed."""

from __future__ import annotations

from functools import partial
from typing import Any

from groupsim.runtime import BrokersSpec, NetworkSpec, Simulation, TopicSpec
from groupsim.scenario.clients import client_factory
from groupsim.scenario.configs import kafka_values
from groupsim.scenario.model import Scenario
from groupsim.scenario.selection import select
from groupsim.scenario.specs import Identity, Wanted, wanted_of
from groupsim.scenario.timeline import Timeline, latency_of
from groupsim.trace.writer import TraceWriter

__all__ = ["build"]


def build(scenario: Scenario, *, seed: int, trace: TraceWriter | None = None) -> Simulation:
    """Return the simulation of a scenario, ready to run to ``scenario.end_us``.

    Members are started by the file's order where their times are equal, and before the timeline's
    entries of the same time.
    """
    simulation = Simulation(
        seed=seed,
        topics={
            name: TopicSpec(partitions=topic.partitions, rate_per_s=topic.rate)
            for name, topic in scenario.topics.items()
        },
        brokers=_brokers(scenario),
        network=_network(scenario),
        trace=trace,
    )
    members = scenario.members()
    for link in scenario.network.links:
        simulation.set_link(
            to_broker=latency_of(link.latency.to_broker),
            to_client=latency_of(link.latency.to_client),
            clients=("*",) if link.members is None else select(members, link.members),
            brokers=link.brokers or (),
        )
    wanted = _members(scenario, simulation)
    Timeline(scenario, simulation, trace, wanted).arm()
    return simulation


def _members(scenario: Scenario, simulation: Simulation) -> dict[str, tuple[Identity, Wanted]]:
    """Declare the members and schedule their starts."""
    made: dict[str, tuple[Identity, Wanted]] = {}
    for group_id, group in scenario.groups.items():
        for member in group.members:
            start = member.start or group.start
            for number, name in enumerate(member.names(), start=1):
                who = Identity(name=name, number=number, group_id=group_id)
                wanted = wanted_of(group, member, who)
                made[name] = who, wanted
                _declare(simulation, who, wanted)
                at_us = 0 if start is None else start.at
                if at_us is not None:
                    apart_us = 0 if start is None else start.every
                    simulation.schedule(
                        at_us + (number - 1) * apart_us, partial(simulation.start, name)
                    )
    return made


def _declare(simulation: Simulation, who: Identity, wanted: Wanted) -> None:
    spec = wanted.spec(who)
    simulation.add_member(
        who.name,
        spec,
        client_factory(wanted.client),
        client_id=str(spec.config.get("client.id", who.name)),
        host=wanted.host,
        profile=wanted.client,
    )


def _brokers(scenario: Scenario) -> BrokersSpec:
    brokers = scenario.brokers
    more: dict[str, Any] = {
        "replication_delay": latency_of(brokers.replication_delay),
        "load_us": brokers.load_time,
        "failover_us": brokers.failover_time,
    }
    return BrokersSpec(
        count=brokers.count,
        config=kafka_values(brokers.config),
        racks=brokers.racks,
        **{name: value for name, value in more.items() if value is not None},
    )


def _network(scenario: Scenario) -> NetworkSpec:
    network = scenario.network
    more: dict[str, Any] = {
        "to_broker": latency_of(network.latency.to_broker),
        "to_client": latency_of(network.latency.to_client),
        "connect_timeout_us": network.connect_timeout,
    }
    return NetworkSpec(**{name: value for name, value in more.items() if value is not None})
