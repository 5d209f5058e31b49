"""Reports: words, sentences, the terminal, JSON."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from groupsim.coordinator.effects import CoordinatorLog
from groupsim.metrics import Rebalance
from groupsim.metrics.verdicts import overall
from groupsim.report import Expectations, Heading, Line, Narrator, Outcome, Timeline
from groupsim.report.jsonout import report_object, to_json
from groupsim.report.table import rebalance_rows
from groupsim.report.terminal import TerminalReport, console_for
from groupsim.report.words import (
    clock,
    duration,
    partition_seconds,
    partitions,
    printable,
    some,
    without_uuids,
)

from .story import S, Story, first_join, orders

HEADING = Heading(
    scenario="one-crash",
    seed=7,
    groupsim="9.9",
    lesson="A crash is noticed late.\nMuch too late.\n\nTry it.",
)
SENTENCE = "Preparing to rebalance group g in state PreparingRebalance (reason: it is time)."


def _told() -> tuple[Timeline, Outcome]:
    story = Story(clients=())
    timeline, expectations = Timeline(), Expectations()
    narrator = Narrator(timeline)
    narrator.attach(story.writer)
    expectations.attach(story.writer)
    for who in ("c-1", "c-2"):
        story.client(who)
    first_join(story)
    story.process(20 * S, "c-2", "crashed")
    story.change(65 * S, "c-2", "expired")
    log = CoordinatorLog(group_id="g", level="INFO", sentence=SENTENCE)
    story.writer.note(65 * S, 0, "b-1", log)
    story.to(65 * S, "PreparingRebalance", 1, 1)
    story.revokes(66 * S, "c-1", orders(0, 1))
    story.joined(66 * S, 2, "c-1")
    story.to(66 * S, "Stable", 2, 1)
    story.owns(66_500_000, "c-1", 2, orders(0, 1, 2, 3))
    for verdict, what, found in (
        ("met", "stable by 30s", "at 4.3s"),
        ("not met", "unavailable at most 10", "94.0"),
    ):
        fields = {"group": "g", "expectation": what, "verdict": verdict, "found": found}
        story.writer.event(100 * S, 0, "expectation", **fields)
    narrator.flush()
    found_all = tuple(expectations.found)
    return timeline, Outcome(
        status="finished",
        why="",
        end_us=100 * S,
        events=story.writer.events,
        trace_sha256="ab" * 32,
        verdict=overall(one.verdict for one in found_all),
        expectations=found_all,
        summary=story.finish(100 * S),
        reproduce="groupsim run one-crash --seed 7",
    )


def _printed(width: int) -> str:
    timeline, outcome = _told()
    file = io.StringIO()
    report = TerminalReport(Console(file=file, width=width, highlight=False))
    report.heading(HEADING)
    report.section("what happened")
    for line in timeline:
        report.line(line)
    for group in outcome.summary.groups:
        report.group(group, outcome.end_us)
    report.verdict(outcome)
    report.footer(outcome)
    return file.getvalue()


GOLDEN = """\
one-crash   seed 7   groupsim 9.9

  A crash is noticed late. Much too late.

  Try it.

what happened
 00:01.000  c-1  starts
 00:01.000  c-2  starts
 00:04.200  c-1  takes orders 0-1
 00:04.300  c-2  takes orders 2-3
 00:20.000  c-2  crashes
 01:05.000  b-1  Preparing to rebalance group g in state PreparingRebalance
            (reason: it is time).
 01:06.000  c-1  gives up orders 0-1
 01:06.500  c-1  takes orders 0-3

g: 2 rebalances
        at  gen  took  joins  assign   sync  mem  moved  unowned  why
 00:01.000    1  3.3s     3s   100ms  200ms    2      0     13.0  c-1 joined
 01:05.000    2  1.5s     1s       0  500ms    1      2      4.0  c-2 expired
  stable        at 00:04.300 for the first time, from 01:06.500 to the end
  unavailable   13.0 partition-seconds at the start, 94.0 after it
  noticed       c-2 crashed at 00:20.000, expired 45s later
  members       2 joined, 1 expired

expectations
  ✓ g: stable by 30s (at 4.3s)
  ✗ g: unavailable at most 10 (94.0)

✗ not met

trace      {events} events
sha256     {sha}
reproduce  groupsim run one-crash --seed 7
"""


def test_the_whole_report_at_eighty_columns() -> None:
    """The report of a small story, as it is printed."""
    _, outcome = _told()
    assert _printed(80) == GOLDEN.format(events=outcome.events, sha="ab" * 32)


@pytest.mark.parametrize("width", [40, 60, 76, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """At any width, only hash and command (to be copied) may stick out; nothing has spaces at its end."""
    for line in _printed(width).splitlines():
        assert len(line) <= width or line.startswith(("sha256", "reproduce"))
        assert line == line.rstrip()


def test_no_codes_but_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files get no escape codes; terminals do, unless NO_COLOR is set."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def codes(file: io.StringIO) -> bool:
        TerminalReport(console_for(file)).heading(HEADING)
        return "\x1b" in file.getvalue()

    monkeypatch.setenv("TERM", "xterm")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    assert not codes(io.StringIO())
    assert codes(Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not codes(Terminal())


def test_json_is_stable_and_says_the_same() -> None:
    """Sorted keys, integers, the same bytes twice; all of the report is in it."""
    first, second = (to_json(report_object(HEADING, *_told())) for _ in range(2))
    assert first == second
    report = json.loads(first)
    assert list(report) == sorted(report)
    assert report["verdict"] == "not met"
    group = report["groups"]["g"]
    assert group["unavailable_partition_us"] == 107 * S
    assert [row["who"] for row in group["rebalances"]] == ["c-1", "c-2"]
    assert report["timeline"][-1]["text"] == "takes orders 0-3"
    assert report["reproduce"] == "groupsim run one-crash --seed 7"
    assert not _floats(report)


def _floats(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [found for item in value.values() for found in _floats(item)]
    if isinstance(value, list):
        return [found for item in value for found in _floats(item)]
    return [value] if isinstance(value, float) else []


def test_many_members_doing_the_same_are_one_line() -> None:
    """Many in a row are told together, fewer one by one, and none is lost."""
    for members, expected in (
        (3, ["takes t 0", "takes t 1", "takes t 2"]),
        (10, ["10 members take 10 partitions (c-0, c-1, c-2 and 7 more)"]),
    ):
        names = [f"c-{number}" for number in range(members)]
        story = Story(clients=())
        lines: list[Line] = []
        narrator = Narrator(lines.append)
        narrator.attach(story.writer)
        for number, who in enumerate(names):
            story.client(who)
            story.owns(number, who, 1, (("t", number),))
        narrator.flush()
        assert [line.text for line in lines] == expected
        assert lines[0].group == "g"


def test_partitions_that_move_together_are_one_line() -> None:
    """A failover moves many partitions at one moment; each broker's part is told once."""
    story = Story(clients=())
    lines: list[Line] = []
    narrator = Narrator(lines.append)
    narrator.attach(story.writer)
    fields = {"epoch": 1, "event": "elected"}
    for at_us, numbers in ((0, (7,)), (9 * S, (0, 1, 2, 4, 5)), (10 * S, (3,))):
        for number in numbers:
            broker = "b-2" if number < 4 else "b-3"
            story.writer.event(at_us, 0, "leadership", partition=number, broker=broker, **fields)
    story.process(11 * S, "c-1", "crashed")
    narrator.flush()
    assert [(line.time_us // S, line.who, line.text) for line in lines] == [
        (9, "b-2", "is elected coordinator of __consumer_offsets 0-2"),
        (9, "b-3", "is elected coordinator of __consumer_offsets 4-5"),
        (10, "b-2", "is elected coordinator of __consumer_offsets 3"),
        (11, "c-1", "crashes"),
    ]


def test_a_long_timeline_keeps_its_ends() -> None:
    """Memory is bounded; what is left out is counted."""
    timeline = Timeline(most=10)
    for number in range(1_000):
        timeline(Line(time_us=number, group="", who="", text="", tone="client"))
    kept = [line and line.time_us for line in timeline]
    assert kept[:6] == [0, 1, 2, 3, 4, None]
    assert kept[-1] == 999
    assert len(timeline.lines()) + timeline.omitted == 1_000
    assert len(kept) <= 20


def test_a_long_table_keeps_its_ends() -> None:
    """Of a thousand rebalances, forty are shown, and a line says how many are not."""
    values: dict[str, Any] = {"who": "", "trigger": "", "reason": "why", "outcome": "completed"}
    for name in ("started_us", "ended_us", "generation", "joins_us", "assigning_us", "syncing_us"):
        values[name] = 0
    values |= {"members": 0, "moved": 0, "unowned_partition_us": 0}
    rows = [Rebalance(number=number, **values) for number in range(1_000)]
    lines = [text for text, _ in rebalance_rows(rows, 80)]
    assert len(lines) == 42
    assert lines[31].endswith("960 more rebalances")
    assert len(list(rebalance_rows(rows[:40], 80))) == 41


def test_verdict_of_a_run() -> None:
    """One broken expectation decides; an unfinished run cannot be met."""
    assert overall([]) == overall(["met"]) == "met"
    assert overall(["met", "undecided"]) == "undecided"
    assert overall(["undecided", "not met"]) == "not met"
    assert overall(["met"], finished=False) == "undecided"
    assert overall(["not met"], finished=False) == "not met"


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "0"),
        (350, "350µs"),
        (999, "999µs"),
        (12_400, "12ms"),
        (999_600, "1s"),
        (6_000_000, "6s"),
        (4_250_000, "4.25s"),
        (59_999_499, "59.999s"),
        (59_999_500, "1m00s"),
        (65_000_000, "1m05s"),
        (3_599_600_000, "1h00m"),
        (7_380_000_000, "2h03m"),
        (None, "–"),
    ],
)
def test_durations(us: int | None, text: str) -> None:
    """Lengths of time are exact to the ms up to a minute and round without carrying over badly."""
    assert duration(us) == text


def test_other_words() -> None:
    """Clock times, partition time, ranges, lists; nothing can take a terminal over."""
    assert clock(65_250_999) == "01:05.250"
    assert clock(3_600_000_000) == "1:00:00.000"
    assert partition_seconds(12_950_000) == "13.0"
    assert partitions([("b", 1), ("a", 3), ("a", 0), ("a", 1)]) == "a 0-1,3 b 1"
    assert partitions([]) == "nothing"
    uuid = "cf36d705-588b-4173-95b7-378ec8714476"
    assert without_uuids(f"(c-1-{uuid}, {uuid}x)") == f"(c-1-cf36d705…, {uuid}x)"
    assert some("abcde") == "a, b, c and 2 more"
    assert printable("a\x1b[31m\nb é") == "a\\x1b[31m\\nb é"


def test_an_order_by_the_timeline_is_told_once() -> None:
    """The entry's words are the file's; only an order that no entry explains has a line of its own."""
    story = Story(clients=())
    lines: list[Line] = []
    narrator = Narrator(lines.append)
    narrator.attach(story.writer)
    story.client("c-1")
    entry = story.writer.event(
        S, 0, "timeline", index=0, action="set_work", targets=["c-1"], detail={"work": "slow"}
    )
    order = {"name": "set_work", "arguments": {"processing_ms": 9}}
    story.writer.event(S, entry, "order", who="c-1", **order)
    story.writer.event(S, entry, "order", who="c-2", **order)
    story.writer.event(2 * S, 0, "order", who="c-1", **order)
    narrator.flush()
    assert [(line.who, line.text) for line in lines] == [
        ("", "scenario: set_work c-1 (work=slow)"),
        ("c-2", "is told: set work (processing_ms=9)"),
        ("c-1", "is told: set work (processing_ms=9)"),
    ]
