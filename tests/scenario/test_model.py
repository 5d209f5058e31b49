"""The model: short forms, strictness, durations, and the way back to plain data."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from groupsim.scenario import Scenario, ScenarioError, duration, parse_scenario
from groupsim.scenario.durations import MAX_US, DurationUs, duration_text
from groupsim.scenario.members import Group, Member, Start, Subscription
from groupsim.scenario.selection import UnknownMemberError, select
from groupsim.scenario.verbs import Crash, Entry
from groupsim.scenario.world import Spread, Topic
from tests.scenario.broken import GOOD


def tail(text: str) -> str:
    """The good scenario with other groups, timeline and so on."""
    head = GOOD[: GOOD.index("groups:")]
    return head + text + "until: 5m\n"


GROUP = "groups: {g: {subscribe: orders, members: [{name: c, count: 3}, d]}}\n"


def test_durations() -> None:
    """Every unit, several in one, fractions of it, and 0 without one."""
    for text, us in {
        "45s": 45_000_000,
        "1500ms": 1_500_000,
        "2m": 120_000_000,
        "1h30m": 5_400_000_000,
        "1h 30m": 5_400_000_000,
        "250us": 250,
        "1.5s": 1_500_000,
        "1d": 86_400_000_000,
    }.items():
        assert duration(text) == us
    assert duration(0) == 0


@pytest.mark.parametrize(
    "text", ["", "s", "5", "5 5s", "1e3s", "٣s", "-1s", "0.1us", "400d", 5, 1.5, True]
)
def test_not_durations(text: object) -> None:
    """Numbers need a unit, times are not negative, whole in µs, and below a year."""
    with pytest.raises(ValueError, match=r"time|wanted"):
        duration(text)  # type: ignore[arg-type]


@given(st.integers(min_value=0, max_value=MAX_US))
def test_durations_are_written_exactly(us: int) -> None:
    """What is written is read back as the same time."""
    assert duration(duration_text(us)) == us


def test_short_forms_mean_the_long_ones() -> None:
    """Where something is usually said in one word, one word is enough."""
    short = parse_scenario(
        tail(
            GROUP
            + """\
network: {latency: {uniform: [1ms, 2ms]}}
timeline:
  - {at: 1s, crash: c-1}
  - {at: 2s, stop: [c-1, d]}
  - {at: 3s, stop_broker: 1}
  - {at: 4s, cut: {members: d, for: 1s}}
expect: {stable_by: 1s, rebalances: 3, unavailable: 9s, raised: none, state: Stable}
"""
        )
    )
    long = parse_scenario(
        tail(
            """\
groups: {g: {subscribe: {topics: [orders]}, members: [{name: c, count: 3}, {name: d}]}}
network:
  latency: {to_broker: {uniform: [1ms, 2ms]}, to_client: {uniform: [1ms, 2ms]}}
timeline:
  - {at: 1s, crash: {members: [c-1]}}
  - {at: 2s, stop: {members: [c-1, d]}}
  - {at: 3s, stop_broker: {brokers: [1]}}
  - {at: 4s, cut: {members: [d], for: 1s}}
expect:
  - stable_by: 1s
    rebalances: {exactly: 3}
    unavailable: {at_most: 9s}
    raised: {exactly: 0}
    state: {is: Stable}
"""
        )
    )
    assert short == long


def test_plain_data_and_back() -> None:
    """What stands in a trace's header makes an equal scenario, and plain data only."""
    scenario = parse_scenario(GOOD)
    plain = scenario.to_plain()
    assert Scenario.from_plain(plain) == scenario
    assert plain["groupsim"] == 1
    assert plain["groups"]["checkout"]["members"][0]["start"] == {"every": "500ms"}
    assert "brokers" in plain
    assert "network" not in plain  # nothing was said of it


def test_from_plain_reports_faults_without_lines() -> None:
    """Data that is not from a file has paths, and no line that means nothing."""
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_plain({"groupsim": 1, "name": "x", "topics": {"t": 0}, "until": "1s"})
    assert [fault.line for fault in caught.value.faults] == [0, 0]
    assert str(caught.value.faults[0]).startswith("scenario: groups")


def test_from_python() -> None:
    """Parts are built with their constructors; durations are made by ``duration``."""
    made = Scenario(
        name="good",
        topics={"orders": Topic(partitions=12)},
        groups={
            "checkout": Group(
                members=(
                    Member(
                        name="c",
                        count=4,
                        subscribe=Subscription(topics=("orders",)),
                        start=Start(every=duration("500ms")),
                    ),
                )
            )
        },
        timeline=(Entry(at=duration("60s"), crash=Crash(members=("c-1",))),),
        until=duration("5m"),
    )
    assert Scenario.from_plain(made.to_plain()) == made
    assert list(made.members()) == ["c-1", "c-2", "c-3", "c-4"]


def test_the_model_is_strict_and_immutable() -> None:
    """No text for a number, no number for a time, no change afterwards."""
    with pytest.raises(ValidationError):
        Topic(partitions="12")  # type: ignore[arg-type]
    with pytest.raises(ValidationError):
        Spread(fixed=5)
    with pytest.raises(ValidationError):
        Topic(partitions=1).partitions = 2  # type: ignore[misc]
    assert Spread(fixed=DurationUs(5)).fixed == 5


def test_an_earlier_end_is_remembered_beside_the_end() -> None:
    """A run that is broken off knows where its scenario would have ended; a longer one is longer."""
    scenario = parse_scenario(GOOD)
    cut = scenario.ended_at(duration("10s"))
    assert (cut.until, cut.end_us) == (duration("5m"), duration("10s"))
    assert Scenario.from_plain(cut.to_plain()) == cut
    assert scenario.ended_at(duration("9m")).until == duration("9m")
    assert scenario.ended_at(None) == scenario


def test_names_families_and_patterns() -> None:
    """A name means one, a family all its copies, a pattern what it matches; each is named once."""
    members = parse_scenario(tail(GROUP)).members()
    assert select(members, ("c-2",)) == ("c-2",)
    assert select(members, ("c",)) == ("c-1", "c-2", "c-3")
    assert select(members, ("c-3", "*")) == ("c-3", "c-1", "c-2", "d")
    assert select(members, None) == ("c-1", "c-2", "c-3", "d")
    with pytest.raises(UnknownMemberError, match="'e'"):
        select(members, ("d", "e"))
