"""Each kind of expectation: met, not met, and undecided when the run ended too early."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from groupsim.metrics.verdicts import overall
from groupsim.scenario import Scenario, parse_scenario
from groupsim.scenario.expectations import Judge
from groupsim.trace.events import Event

HEAD = """\
groupsim: 1
name: judged
topics: {t: 4}
groups: {g: {subscribe: t, members: [{name: c, count: 2}]}}
until: 100s
expect:
"""
S = 1_000_000


def judged(expectation: str) -> Scenario:
    """A scenario of two members with one expectation."""
    return parse_scenario(f"{HEAD}  - {expectation}\n")


def event(second: float, kind: str, **fields: Any) -> Event:
    """An event at a second of virtual time."""
    return Event(id=1, time_us=int(second * S), cause=0, kind=kind, fields=fields)


def client(name: str) -> Event:
    """A member is declared."""
    return event(
        0,
        "client",
        who=name,
        group_id="g",
        profile="java",
        client_id=name,
        client_host=f"/{name}",
        group_instance_id=None,
        subscribe=("t",),
        subscribe_pattern=None,
    )


def process(second: float, name: str, what: str) -> Event:
    """A member's process changes."""
    return event(second, "process", who=name, role="client", event=what, detail="")


def moves(second: float, old: str, new: str, generation: int, members: int = 2) -> Event:
    """The group changes its state."""
    return event(
        second,
        "group_transition",
        who="b-1",
        group_id="g",
        from_state=old,
        to_state=new,
        generation_id=generation,
        members=members,
        reason="",
    )


def owns(second: float, name: str, *partitions: int) -> Event:
    """A member believes that it owns exactly these partitions."""
    owned = tuple(("t", number) for number in partitions)
    return event(
        second,
        "ownership",
        who=name,
        change="assigned",
        partitions=owned,
        owned=owned,
        generation_id=1,
    )


def commit(second: float, name: str, outcome: str, offset: int) -> Event:
    """A commit of partition 0 comes to its end."""
    offsets = (("t", 0, offset),)
    return event(
        second, "commit", who=name, mode="auto", outcome=outcome, offsets=offsets, generation_id=1
    )


def left(second: float, member_id: str) -> Event:
    """The coordinator sees a member leave."""
    return event(
        second,
        "member_change",
        who="b-1",
        group_id="g",
        member_id=member_id,
        group_instance_id=None,
        client_id="x",
        change="left",
        reason="",
    )


def raised(second: float, name: str, exception: str) -> Event:
    """An exception comes out of a call."""
    return event(second, "exception", who=name, call="poll", exception=exception, detail="")


STORY = (
    event(0, "topic", topic="t", partitions=4),
    client("c-1"),
    client("c-2"),
    process(0, "c-1", "started"),
    process(0, "c-2", "started"),
    moves(1, "Empty", "PreparingRebalance", 0, 1),
    moves(4, "PreparingRebalance", "CompletingRebalance", 1),
    moves(5, "CompletingRebalance", "Stable", 1),
    owns(5, "c-1", 0, 1),
    owns(5, "c-2", 2, 3),
    left(15, "x"),
    commit(20, "c-1", "ok", 7),
    commit(30, "c-1", "ILLEGAL_GENERATION", 9),
    raised(30, "c-1", "CommitFailedException"),
    moves(40, "Stable", "PreparingRebalance", 1),
    owns(42, "c-1"),
    moves(50, "PreparingRebalance", "CompletingRebalance", 2, 1),
    moves(50, "CompletingRebalance", "Stable", 2, 1),
    owns(50, "c-2", 0, 1, 2, 3),
    owns(60, "c-1", 0),
    process(61, "c-2", "paused"),
    process(66, "c-2", "resumed"),
    process(70, "c-1", "crashed"),
)
"""Unowned: 4 × 5 s, then partitions 0 and 1 for 8 s: 36. Overlap: partition 0 for 10 s. Frozen: the
other three for 5 s."""

CASES: Mapping[str, tuple[str, str, str]] = {
    # what is expected: verdict on the whole run, on one broken off at 45 s, on one at 3 s
    "members: {exactly: 0, at: 0s}": ("met", "met", "met"),
    "rebalances: {exactly: 0, before: 0s}": ("met", "met", "met"),
    "stable_by: 5s": ("met", "met", "undecided"),
    "stable_by: 4s": ("not met", "not met", "undecided"),
    "stable_by: 45s": ("not met", "not met", "undecided"),
    "stable_by: 50s": ("met", "undecided", "undecided"),
    "stable_from: 50s": ("met", "undecided", "undecided"),
    "stable_from: 5s": ("not met", "not met", "undecided"),
    "stable_from: 45s": ("not met", "not met", "undecided"),
    "state: Stable": ("met", "undecided", "undecided"),
    "state: {is: PreparingRebalance, at: 45s}": ("met", "met", "undecided"),
    "state: {is: Stable, at: 45s}": ("not met", "not met", "undecided"),
    "rebalances: {at_most: 2}": ("met", "undecided", "undecided"),
    "rebalances: {at_most: 1}": ("not met", "not met", "undecided"),
    "rebalances: {at_least: 2}": ("met", "met", "undecided"),
    "rebalances: 2": ("met", "undecided", "undecided"),
    "rebalances: 3": ("not met", "undecided", "undecided"),
    "rebalances: {exactly: 1, after: 5s}": ("met", "undecided", "undecided"),
    "rebalances: {exactly: 0, after: 5s, before: 39s}": ("met", "met", "undecided"),
    "rebalances: {exactly: 0, after: 5s, before: 40s}": ("not met", "not met", "undecided"),
    "rebalances: {exactly: 0, after: 40s}": ("met", "undecided", "undecided"),
    "rebalances: {at_least: 1, at_most: 1, before: 39s}": ("met", "met", "undecided"),
    "generation: 2": ("met", "undecided", "undecided"),
    "generation: {at_least: 1, at: 10s}": ("met", "met", "undecided"),
    "generation: {exactly: 2, at: 10s}": ("not met", "not met", "undecided"),
    "members: {exactly: 2, at: 10s}": ("met", "met", "undecided"),
    "members: 2": ("not met", "undecided", "undecided"),
    "owners: {exactly: 2, at: 10s}": ("met", "met", "undecided"),
    "owners: {exactly: 1, at: 45s}": ("met", "met", "undecided"),
    "owners: 2": ("not met", "undecided", "undecided"),
    "unavailable: {at_most: 36s}": ("met", "undecided", "undecided"),
    "unavailable: {at_most: 35999ms}": ("not met", "undecided", "undecided"),
    "unavailable: {at_most: 25s}": ("not met", "not met", "undecided"),
    "unavailable: {at_least: 20s}": ("met", "met", "undecided"),
    "unavailable: {at_most: 16s, after: 5s}": ("met", "undecided", "undecided"),
    "unavailable: {at_most: 6s, after: 5s, before: 45s}": ("met", "met", "undecided"),
    "frozen: 15s": ("met", "undecided", "undecided"),
    "frozen: {at_most: 14999ms}": ("not met", "undecided", "undecided"),
    "frozen: {at_most: 0s, before: 45s}": ("met", "met", "undecided"),
    "overlap: 10s": ("met", "undecided", "undecided"),
    "overlap: 9s": ("not met", "undecided", "undecided"),
    "moved: 2": ("not met", "undecided", "undecided"),
    "moved: 3": ("met", "undecided", "undecided"),
    "raised: none": ("not met", "not met", "undecided"),
    "raised: CommitFailedException": ("met", "met", "undecided"),
    "raised: FencedInstanceIdException": ("not met", "undecided", "undecided"),
    "raised: {exactly: 0, members: c-2}": ("met", "undecided", "undecided"),
    "commits: 1": ("met", "undecided", "undecided"),
    "commits: {outcome: refused, at_most: 0}": ("not met", "not met", "undecided"),
    "commits: {outcome: ILLEGAL_GENERATION, at_least: 1}": ("met", "met", "undecided"),
    "changes: {change: left, exactly: 1}": ("met", "undecided", "undecided"),
    "changes: {change: left, exactly: 0}": ("not met", "not met", "undecided"),
    "changes: {change: expired, at_least: 1}": ("not met", "undecided", "undecided"),
    "committed: {topic: t, partition: 0, exactly: 7}": ("met", "undecided", "undecided"),
    "committed: {topic: t, partition: 0, at_least: 8}": ("not met", "undecided", "undecided"),
    "committed: {topic: t, partition: 1, at_least: 0}": ("not met", "undecided", "undecided"),
}


def verdict(expectation: str, end_s: int) -> tuple[str, str]:
    """The verdict on the story up to ``end_s``, and what was found."""
    judge = Judge(judged(expectation))
    for happened in STORY:
        if happened.time_us <= end_s * S:
            judge.feed(happened)
    (result,) = judge.results(end_s * S)
    return result.verdict, result.found


@pytest.mark.parametrize("expectation", CASES)
def test_verdicts(expectation: str) -> None:
    """Met or not when it is known; undecided when the run did not get so far."""
    whole, broken_off, early = CASES[expectation]
    assert verdict(expectation, 100)[0] == whole
    assert verdict(expectation, 45)[0] == broken_off
    assert verdict(expectation, 3)[0] == early


def test_every_kind_is_tested_with_every_verdict() -> None:
    """No kind of expectation is left out of the table above, and each comes out in all ways."""
    kinds = set(judged("stable_by: 1s").expect[0].kinds())
    seen = {(text.split(":")[0], verdicts[0]) for text, verdicts in CASES.items()}
    assert seen == {(kind, came_out) for kind in kinds for came_out in ("met", "not met")}


def test_what_was_found_is_said() -> None:
    """The finding carries the number or the state, with its time."""
    assert verdict("rebalances: 9", 100)[1] == "2"
    assert verdict("unavailable: 1s", 100)[1] == "36s over all partitions"
    assert verdict("stable_by: 45s", 100)[1] == "PreparingRebalance since 40s, generation 1"
    assert verdict("rebalances: 9", 45)[1] == "2 when the run ended"


def test_the_words_of_an_expectation() -> None:
    """Reports repeat the expectation in the words of the file."""
    texts = []
    for wanted in ("stable_by: 5s", "rebalances: {at_most: 9, after: 1s}", "state: Stable"):
        (result,) = Judge(judged(wanted)).results(0)
        texts.append(result.expectation)
    assert texts == ["stable by 5s", "rebalances after 1s, at most 9", "state is Stable"]


def test_the_worst_decides() -> None:
    """One that is not met outweighs all, one undecided outweighs those that are met."""
    scenario = parse_scenario(
        f"{HEAD}  - {{stable_by: 5s, rebalances: {{at_most: 9}}}}\n  - {{stable_by: 4s}}\n"
    )
    judge = Judge(scenario)
    for happened in STORY[:14]:
        judge.feed(happened)
    results = judge.results(40 * S)
    assert [result.verdict for result in results] == ["met", "undecided", "not met"]
    verdicts = [result.verdict for result in results]
    assert overall(verdicts) == "not met"
    assert overall(verdicts[:2]) == "undecided"
    assert overall(verdicts[:1]) == "met"
    assert overall(()) == "met"
