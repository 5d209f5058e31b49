"""A run on a terminal: heading, timeline, rebalances, verdict, and how to run it again."""

from __future__ import annotations

import os
import re
import textwrap
from typing import Final, Literal, TextIO

from rich.console import Console
from rich.text import Text

from groupsim.metrics import GroupSummary
from groupsim.report.model import Heading, Outcome, Verdict
from groupsim.report.table import rebalance_rows
from groupsim.report.timeline import Line
from groupsim.report.words import clock, duration, partition_seconds, printable, without_uuids

__all__ = ["TerminalReport", "console_for"]

WIDEST: Final = 110
"""Lines longer than this are hard to follow, however wide the terminal."""

MOST_DETECTIONS: Final = 10
"""Of more silent members than these, the report says how many (``--json`` has all)."""

_TONES: Final = {
    "process": "cyan",
    "ownership": "green",
    "trouble": "red",
    "broker": "",
    "scenario": "bold magenta",
    "client": "blue",
}
_PARAGRAPHS: Final = re.compile(r"\n\s*\n")
_TOLD_CHANGES: Final = ("joined", "left", "expired", "removed", "replaced")
_MARKS: Final = {
    "met": ("✓", "bold green"),
    "not met": ("✗", "bold red"),
    "undecided": ("?", "bold yellow"),
}


def console_for(file: TextIO) -> Console:
    """Return a console that colours only a terminal, and never when NO_COLOR is set."""
    colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    return _Console(file=file, color_system=colours, highlight=False, markup=False, emoji=False)


class _Console(Console):
    """A console that leaves it to its caller what a closed pipe means."""

    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704 - called while the BrokenPipeError is handled


class TerminalReport:
    """Prints the parts of a report, each when it is known."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._width = max(30, min(console.width, WIDEST))

    def heading(self, heading: Heading) -> None:
        """Print what is run, and what is to be learnt from it."""
        title = Text(printable(heading.scenario) or "(no scenario)", style="bold")
        title.append(f"   seed {heading.seed}   groupsim {printable(heading.groupsim)}", "dim")
        self._print(title)
        for paragraph in _PARAGRAPHS.split(heading.lesson.strip()):
            if paragraph:
                self._print(Text())
                self._wrapped(printable(" ".join(paragraph.split())), indent="  ")

    def section(self, title: str) -> None:
        """Print the title of a part."""
        self._print(Text())
        self._print(Text(title, style="bold underline"))

    def line(self, line: Line | None, *, group: bool = False) -> None:
        """Print one line of the timeline (None: some are left out), with its group if asked for."""
        if line is None:
            self._print(Text("            ...", style="dim"))
            return
        who = f"{line.group}: {line.who}" if group and line.group and line.who else line.who
        spoken = without_uuids(line.text)  # twenty-seven signs that say nothing to a reader
        said = f"{who}  {spoken}" if who else spoken
        indent = " " * 12
        rows = textwrap.wrap(said, max(20, self._width - len(indent)), break_on_hyphens=False) or [
            ""
        ]
        text = Text(f"{clock(line.time_us):>10}  ", style="dim")
        text.append(rows[0], _TONES[line.tone])
        self._print(text)
        for row in rows[1:]:
            self._print(Text(indent + row, style=_TONES[line.tone]))

    def group(self, group: GroupSummary, end_us: int) -> None:
        """Print a group's rebalances and totals."""
        self.section(f"{printable(group.group_id)}: {_count(len(group.rebalances), 'rebalance')}")
        if group.rebalances:
            for row, style in rebalance_rows(group.rebalances, self._width):
                self._print(Text(row, style=style))
        for label, value in _totals(group, end_us):
            self._wrapped(f"{label:<14}{value}", indent="  ", hanging=14)

    def verdict(self, outcome: Outcome) -> None:
        """Print every expectation with what was found, and the verdict of the whole."""
        self.section("expectations")
        for one in outcome.expectations:
            self._expectation(one)
        if not outcome.expectations:
            self._wrapped("the scenario has none", indent="  ")
        mark, style = _MARKS[outcome.verdict]
        self._print(Text())
        self._print(Text(f"{mark} {outcome.verdict}", style=style))
        if outcome.status != "finished":
            got = f"it got as far as {clock(outcome.end_us)}"
            self.remark(f"{outcome.why or 'the run is ' + outcome.status}: {got}")

    def remark(self, text: str) -> None:
        """Print what a reader must know before trusting the rest."""
        self._wrapped(printable(text), style="yellow")

    def footer(self, outcome: Outcome) -> None:
        """Print the hash of the trace, and the one command that gives it again."""
        self._print(Text())
        if outcome.trace_sha256 is not None:
            self._print(Text(f"trace      {outcome.events} events", style="dim"))
            self._print(Text(f"sha256     {outcome.trace_sha256}", style="dim"))
        if outcome.reproduce:
            self._print(Text(f"reproduce  {outcome.reproduce}"))

    def _expectation(self, one: Verdict) -> None:
        mark, style = _MARKS.get(one.verdict, ("?", ""))
        group = f"{one.group}: " if one.group else ""
        found = f" ({one.found})" if one.found else ""
        self._wrapped(
            printable(f"{mark} {group}{one.expectation}{found}"),
            indent="  ",
            hanging=2,
            style=style,
        )

    def _wrapped(self, text: str, *, indent: str = "", hanging: int = 0, style: str = "") -> None:
        rows = textwrap.wrap(
            text,
            self._width,
            initial_indent=indent,
            subsequent_indent=indent + " " * hanging,
            break_on_hyphens=False,
        )
        for row in rows:
            self._print(Text(row, style=style))

    def _print(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True)


def _totals(group: GroupSummary, end_us: int) -> list[tuple[str, str]]:
    if group.first_stable_us is None:
        stable = "never"
    elif group.stable_since_us == group.first_stable_us:
        stable = f"from {clock(group.first_stable_us)} to the end"
    else:
        stable = f"at {clock(group.first_stable_us)} for the first time"
        if group.stable_since_us is None:
            stable += ", not at the end"
        else:
            stable += f", from {clock(group.stable_since_us)} to the end"
    start = partition_seconds(group.startup_partition_us)
    later = partition_seconds(group.unavailable_partition_us - group.startup_partition_us)
    totals = [
        ("stable", stable),
        ("unavailable", f"{start} partition-seconds at the start, {later} after it"),
    ]
    if group.unowned_partitions:
        left = f"{group.unowned_partitions} of {group.partitions} partitions at {clock(end_us)}"
        totals.append(("without owner", f" {left}"))
    if group.frozen_partition_us:
        frozen = partition_seconds(group.frozen_partition_us)
        totals.append(("frozen", f"{frozen} partition-seconds owned only by paused members"))
    if group.overlap_partition_us:
        overlap = partition_seconds(group.overlap_partition_us)
        totals.append(("two owners", f"{overlap} partition-seconds owned by two live members"))
    for found in group.detections[:MOST_DETECTIONS]:
        delay = duration(found.noticed_us - found.since_us)
        text = (
            f"{found.who} {found.silence} at {clock(found.since_us)}, {found.noticed} {delay} later"
        )
        totals.append(("noticed", text))
    if len(group.detections) > MOST_DETECTIONS:
        totals.append(("", f"and {len(group.detections) - MOST_DETECTIONS} more"))
    counts = group.member_changes
    changes = ", ".join(f"{counts[name]} {name}" for name in _TOLD_CHANGES if name in counts)
    if changes:
        totals.append(("members", changes))
    return totals


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
