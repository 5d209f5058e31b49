"""Broken scenarios: what is in the file, the line of the fault, and what the message must say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

GOOD = """\
groupsim: 1
name: good
topics:
  orders: {partitions: 12}
brokers:
  count: 1
  config: {group.initial.rebalance.delay.ms: 3000}
groups:
  checkout:
    members:
      - {name: c, count: 4, client: java, subscribe: [orders], start: {at: 0s, every: 500ms}}
timeline:
  - {at: 60s, restart: {members: "c-*", one_every: 20s, down: 5s}}
until: 5m
expect:
  - {group: checkout, stable_by: 30s}
"""


@dataclass(frozen=True)
class Broken:
    """``line`` 0: the fault has no line, because there is no file to speak of."""

    name: str
    raw: bytes
    line: int
    says: tuple[str, ...]
    alone: bool = True
    """It is the only fault of its file."""


def _edited(name: str, old: str, new: str, *says: str, at: int = 0, alone: bool = True) -> Broken:
    """The good scenario with one change; the fault is in its line (after ``<<``), or in line ``at``."""
    assert GOOD.count(old) == 1, old
    line = at or GOOD[: GOOD.index(old)].count("\n") + new.partition("<<")[0].count("\n") + 1
    return Broken(name, GOOD.replace(old, new.replace("<<", "")).encode(), line, says, alone)


def _raw(name: str, raw: bytes | str, line: int, *says: str) -> Broken:
    alone = raw[:3] not in ("gro", b"gro")
    return Broken(name, raw if isinstance(raw, bytes) else raw.encode(), line, says, alone)


def broken() -> Iterator[Broken]:
    """All kinds of broken files, smallest first within each sort."""
    yield from _not_yaml()
    yield from _wrong_form()
    yield from _wrong_verbs()
    yield from _wrong_meaning()
    yield from _wrong_config()


def _not_yaml() -> Iterator[Broken]:
    yield _raw("empty", b"", 1, "empty", "groupsim init")
    yield _raw("only a comment", "# nothing\n", 1, "empty")
    yield _raw("binary", b"\x89PNG\r\n\x1a\n" + bytes(range(256)), 1, "not UTF-8", "0x89")
    yield _raw("control characters", b"groupsim: 1\nname: a\x00b\n", 2, "not a text file", "U+0000")
    yield _raw("latin-1", "groupsim: 1\nname: café\n".encode("latin-1"), 2, "not UTF-8", "0xe9")
    yield _raw("tabs", "groupsim: 1\ntopics:\n\torders: 3\n", 3, "a tab", "spaces")
    yield _raw("10 MB of nesting", b"a: " + b"[" * 10_000_000, 1, "too large", "256 KiB")
    yield _raw("nesting", b"a: " + b"[" * 100_000, 1, "nested too deeply", "24 levels")
    yield _raw("nested blocks", "- " * 10_000, 1, "nested too deeply")
    laughs = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
        f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n"
        for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    yield _raw("billion laughs", laughs, 5, "too many values", "aliases")
    yield _raw("alias into itself", "groupsim: &a [*a]\n", 1, "alias *a names nothing")
    yield _raw(
        "a Python tag", "groupsim: !!python/object/apply:os.getcwd []\n", 1, "tag", "plain YAML"
    )
    yield _raw("two documents", "groupsim: 1\n---\ngroupsim: 1\n", 2, "second document")
    yield _raw("unclosed text", 'groupsim: 1\nname: "x\n', 3, "not YAML", "quoted")
    yield _raw("bad indentation", "groupsim: 1\n  name: x\n", 2, "not YAML")
    yield _raw("a list", "- groupsim: 1\n", 1, "not a scenario", "a list")
    yield _edited(
        "a key twice", "name: good", "name: good\nname: better<<", "name", "twice", "line 2"
    )
    yield _edited(
        "a number as key", "  orders: {part", "  7: {partitions: 1}<<\n  orders: {part", "text"
    )


def _wrong_form() -> Iterator[Broken]:
    yield _edited("no version", "groupsim: 1\n", "", "groupsim: is missing", "groupsim: 1", at=1)
    yield _edited("another version", "groupsim: 1", "groupsim: 2", "found 2", "allowed: 1")
    yield _edited("no end", "until: 5m\n", "", "until: is missing", at=1)
    yield _edited("unknown key", "brokers:", "brokres: 1<<\nbrokers:", "brokres", "mean brokers?")
    yield _edited("unknown verb", "restart: {", "restrat: {", "restrat", "mean restart?")
    yield _edited(
        "two verbs", "at: 60s, ", "at: 60s, crash: c-1, ", "only one", "crash and restart"
    )
    yield _edited(
        "no verb", ', restart: {members: "c-*", one_every: 20s, down: 5s}', "", "must be given"
    )
    yield _edited("no time", "at: 60s, ", "", "when does it happen")
    yield _edited(
        "wrong type", "count: 4", "count: four", "members[0].count", "whole number", "'four'"
    )
    yield _edited("a fraction", "count: 4", "count: 2.5", "whole number", "2.5")
    yield _edited(
        "a list for a name", "client: java", "client: [java]", "client", "not text", "a list"
    )
    yield _edited("no unit", "at: 60s", "at: 60", "not a time", "found 60", "45s")
    yield _edited("unknown unit", "at: 60s", "at: 60sec", "not a time", "'60sec'")
    yield _edited("negative time", "at: 60s", "at: -60s", "negative", "'-60s'")
    yield _edited("end at zero", "until: 5m", "until: 0s", "until", "too small")
    yield _edited("no partitions", "partitions: 12", "partitions: 0", "too small", "1 or more")
    yield _edited(
        "a topic's name", "  orders: {", '  "my orders": {', "not a name for a topic", alone=False
    )
    yield _edited("a scenario's name", "name: good", "name: Good One", "not a name for a scenario")
    yield _edited("nothing expected", ", stable_by: 30s", "", "nothing is expected", "rebalances")
    yield _edited("no bound", "stable_by: 30s", "rebalances: {after: 1s}", "at_most")
    yield _edited("bounds crossed", "stable_by: 30s", "members: {at_least: 3, at_most: 2}", "above")
    yield _edited("a state's name", "stable_by: 30s", "state: Stabel", "'Stabel'", "mean Stable?")
    yield _edited(
        "a partition that is never there",
        "stable_by: 30s",
        "committed: {topic: orders, partition: 12, at_least: 1}",
        "expect[0].committed.partition: no such partition",
        "0 to 11",
    )
    members = GOOD[GOOD.index("    members:") : GOOD.index("timeline:")]
    yield _edited(
        "no members", members, "    members: []\n", "checkout.members: is empty", at=10, alone=False
    )
    yield _edited("no topics", "  orders: {partitions: 12}\n", "", "topics: not a mapping", at=3)


def _wrong_verbs() -> Iterator[Broken]:
    def verb(name: str, text: str, *says: str, alone: bool = True) -> Broken:
        entry = 'restart: {members: "c-*", one_every: 20s, down: 5s}'
        return _edited(name, entry, text, "timeline[0]", *says, alone=alone)

    yield verb(
        "no direction", "drop_next: {members: c-1}", "direction: is missing", "to_broker, to_client"
    )
    yield verb("a broker for a number", "crash_broker: b-1", "a broker's number", "'b-1'")
    yield verb("no broker to move to", "move_coordinator: {group: checkout}", "to: is missing", "1")
    yield verb("no work", "set_work: c-1", "work: is missing", "poll_every, takes")
    yield verb("a verb with nothing", "stop: ", "nothing is said after stop", "a name", "leader_of")
    yield verb("a number for a name", "crash: 3", "crash: not text", "a pattern")
    yield verb("a latency alone", "network: 5ms", "a mapping with members, brokers, latency")
    yield verb("no latency", "network: {members: c-1}", "latency: is missing", "to_broker")
    yield verb(
        "a latency's key", "network: {latency: {to_brokr: 5ms}}", "mean to_broker?", "uniform"
    )
    yield verb(
        "a latency both ways and each",
        "network: {latency: {uniform: [1ms, 2ms], to_broker: 1ms}}",
        "uniform and to_broker",
        "lognormal; or to_broker",
    )
    yield verb("topics without totals", "add_partitions: [orders]", "such as {orders: 24}")
    yield verb("no topics to grow", "add_partitions: {}", "is empty", "at least one")
    yield verb("no topics to read", "subscribe: c-1", "subscribe: one of", "topics, pattern")
    yield verb("until alone", "until: 90s, crash: c-1", "until goes with every", "allowed: every")
    yield verb("over before it begins", "every: 9s, until: 50s, crash: c-1", "50s", "1m or later")
    yield verb(
        "no such partition of the log",
        "stall_appends: {partition: 50}",
        "partition: no such partition of __consumer_offsets",
        "0 to 49",
    )
    yield verb(
        "a log-normal time",
        "replication_delay: {lognormal: {median: 3s, p99: 1s}}",
        "found median 3s, p99 1s",
        "not below it",
    )


def _wrong_meaning() -> Iterator[Broken]:
    yield _edited("unknown topic", "[orders]", "[ordres]", "no topic 'ordres'", "mean orders?")
    yield _edited("unknown member", '"c-*"', "c-5", "no member 'c-5'", "c-4?")
    yield _edited("a pattern for nobody", '"c-*"', '"d-*"', "no member 'd-*'", "c-1")
    yield _edited("unknown group", "group: checkout", "group: chekout", "mean checkout?")
    yield _edited("unknown leader's group", 'members: "c-*"', "leader_of: x", "no group 'x'")
    member = "      - {name: c, count: 4"
    twin = "{name: c-2, subscribe: orders}"
    yield _edited(
        "duplicate names", member, f"      - {twin}\n{member}<<", "c-2", "taken in line 11"
    )
    yield _edited(
        "a broker's name",
        "{name: c, count: 4",
        "{name: b, count: 4",
        "are the brokers",
        alone=False,
    )
    yield _edited("no subscription", "subscribe: [orders], ", "", "subscribe", "is missing")
    yield _edited(
        "unknown client", "client: java", "client: jaba", "no client kind 'jaba'", "java?"
    )
    yield _edited("unknown broker", "restart: {", "stop_broker: 2 } #", "no such broker", "found 2")
    yield _edited("a shrinking topic", "restart: {", "add_partitions: {orders: 6}} #", "only grow")
    yield _edited("after the end", "at: 60s", "at: 10m", "after the end", "10m", "until 5m")
    yield _edited("expected after the end", "30s}", "6m}", "after the end")
    yield _edited("a broken pattern", "[orders]", "{pattern: 'ord('}", "not a pattern")
    yield _edited("far too often", "at: 60s", "every: 1us", "too often", "1000000")
    yield _edited(
        "an unknown error", "restart: {", "fail_appends: {error: NOT_LEADER}} #", "NOT_LEADER"
    )


def _wrong_config() -> Iterator[Broken]:
    start = "start: {at: 0s, every: 500ms}"
    yield _edited(
        "unknown client option",
        start,
        f"{start},\n         config: {{sesion.timeout.ms: 1}}<<",
        "sesion.timeout.ms",
        "session.timeout.ms?",
    )
    yield _edited(
        "a client option's type",
        start,
        f"{start},\n         config: {{max.poll.records: many}}<<",
        "config[max.poll.records]",
        "'many'",
    )
    yield _edited(
        "options that go not together",
        start,
        f"{start},\n         config: {{session.timeout.ms: 2s}}<<",
        "heartbeat.interval.ms",
        "session.timeout.ms",
    )
    yield _edited(
        "unknown broker option",
        "group.initial.rebalance.delay.ms",
        "group.initial.rebalance.delay",
        "group.initial.rebalance.delay.ms?",
    )
    yield _edited("a broker option's value", "delay.ms: 3000", "delay.ms: soon", "'soon'")
