"""``groupsim show``: a trace in sentences, or its events as they are."""

from __future__ import annotations

import difflib
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from groupsim.cli.moments import moment_us
from groupsim.cli.statuses import MET, InputError, complain
from groupsim.report import Heading, Line, RunRecord
from groupsim.report.events import event_text
from groupsim.report.terminal import TerminalReport, console_for
from groupsim.trace.errors import TraceError, UnknownKindError
from groupsim.trace.events import Event
from groupsim.trace.reader import TraceReader

__all__ = ["show_trace"]

ALL: Final = "all"
_ENDS: Final = ("who", "from", "to")
"""Fields that name the process an event is about."""

_MEMBER_ID: Final = re.compile(r"([^\s({,:=']+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Kafka makes member ids of a client id, or a group instance id, and a UUID."""


class _Filter:
    """What of a trace is to be shown: times, one group, processes by name or pattern."""

    def __init__(self, *, group: str | None, member: str | None, start: int, end: int) -> None:
        self.group = group
        self.member = member
        self.start = start
        self.end = end
        self.groups: dict[str, None] = {}
        self.names: dict[str, None] = {}
        self._group_of: dict[str, str] = {}

    def see(self, event: Event) -> None:
        """Learn which groups and processes there are."""
        who = event.fields.get("who")
        if isinstance(who, str):
            self.names.setdefault(who)
        group_id = event.fields.get("group_id")
        if isinstance(group_id, str):
            self.groups.setdefault(group_id)
            if event.kind == "client":
                self._group_of[event.fields["who"]] = group_id

    def wants_line(self, line: Line) -> bool:
        if not self.start <= line.time_us <= self.end:
            return False
        if self.group is not None and line.group not in ("", self.group):
            return False
        if self.member is None or fnmatchcase(line.who, self.member):
            return True
        about = _MEMBER_ID.findall(line.text)  # a broker's sentence about a member
        return any(fnmatchcase(name, self.member) for name in about)

    def wants_event(self, event: Event, message: Mapping[str, Any]) -> bool:
        """Whether an event is to be shown; ``message`` are the fields of its message, if any."""
        if not self.start <= event.time_us <= self.end:
            return False
        fields = {**message, **event.fields}
        names = [fields[end] for end in _ENDS if isinstance(fields.get(end), str)]
        if self.member is not None and not any(fnmatchcase(n, self.member) for n in names):
            return False
        if self.group is None:
            return True
        about = [fields.get("group_id"), fields.get("group"), *map(self._group_of.get, names)]
        return self.group in about

    def check(self) -> None:
        """Refuse names that are nowhere in the trace.

        Raises:
            InputError: there is no such group or process.

        """
        if self.group is not None and self.group not in self.groups:
            raise InputError(f"--group: {_unknown(self.group, self.groups)}")
        if self.member is not None and not any(fnmatchcase(n, self.member) for n in self.names):
            raise InputError(f"--member: {_unknown(self.member, self.names)}")


def show_trace(
    path: Path,
    *,
    group: str | None,
    member: str | None,
    start: str | None,
    end: str | None,
    kinds: tuple[str, ...],
) -> int:
    """Print a trace, return the exit status.

    Raises:
        InputError: an option names what is not there.
        TraceError: the file cannot be read as a trace, or is damaged further on.
        UnknownKindError: the trace has no such kind of event.
        OSError: the file cannot be opened.

    """
    reader = TraceReader(path)
    wanted = _Filter(
        group=group,
        member=member,
        start=moment_us("--from", start) or 0,
        end=sys.maxsize if end is None else moment_us("--to", end) or 0,
    )
    known = [name for name, _ in reader.header.kinds]
    for kind in kinds:
        if kind not in known and kind != ALL:
            raise UnknownKindError(kind, known)
    if kinds:
        shown = _show_events(reader, wanted, None if ALL in kinds else frozenset(kinds))
    else:
        whole = member is None and start is None and end is None
        shown = _show_story(reader, wanted, whole=whole)
    wanted.check()
    options = {"--group": group, "--member": member, "--from": start, "--to": end}
    given = [(name, value) for name, value in options.items() if value is not None]
    given += [("--kind", kind) for kind in kinds]
    if given and not shown:
        filters = shlex.join(word for pair in given for word in pair)
        complain(f"groupsim: {path}: nothing to show for {filters}")
    return MET


def _show_events(reader: TraceReader, wanted: _Filter, kinds: frozenset[str] | None) -> int:
    """Print the events that are wanted; return how many there were."""
    shown = 0
    in_flight: dict[int, Mapping[str, Any]] = {}
    for event in reader:
        wanted.see(event)
        message: Mapping[str, Any] = {}
        if event.kind == "send":
            in_flight[event.id] = event.fields
        elif event.kind in ("deliver", "drop"):
            message = in_flight.pop(event.fields["of"], {})
        if (kinds is None or event.kind in kinds) and wanted.wants_event(event, message):
            ends = f" ({message['from']} -> {message['to']} {message['api']})" if message else ""
            sys.stdout.write(f"{event_text(event)}{ends}\n")
            shown += 1
    ending = _ending(reader)
    if ending:
        sys.stdout.write(f"{ending}\n")
    return shown


def _show_story(reader: TraceReader, wanted: _Filter, *, whole: bool) -> int:
    """Print the sentences that are wanted, ``whole`` with what follows from all; return how many."""
    shown = 0
    report = TerminalReport(console_for(sys.stdout))
    report.heading(_heading(reader))
    report.section("what happened")

    def tell(line: Line) -> None:
        nonlocal shown
        if wanted.wants_line(line):
            shown += 1
            report.line(line, group=wanted.group is None and len(wanted.groups) > 1)

    record = RunRecord(tell)
    try:
        _feed(reader, record, wanted.see)
    except TraceError:
        record.narrator.flush()
        raise
    outcome = record.outcome(
        status=reader.status,
        why=_ending(reader),
        end_us=reader.last_time_us if reader.end is None else reader.end.time_us,
        events=reader.events,
        trace_sha256=None if reader.end is None else reader.end.sha256,
        reproduce=f"groupsim replay {reader.path}",
    )
    if whole:
        for group in outcome.summary.groups:
            if wanted.group in (None, group.group_id):
                report.group(group, outcome.end_us)
        report.verdict(outcome)
        report.footer(outcome)
    elif outcome.why:
        report.remark(outcome.why)
    return shown


def _feed(reader: TraceReader, record: RunRecord, see: Callable[[Event], None]) -> None:
    numbers = [name in RunRecord.kinds for name, _ in reader.header.kinds]
    for raw in reader.raw():
        if numbers[raw[3]]:  # most events are heartbeats, and tell nothing
            event = reader.named(raw)
            see(event)
            record.feed(event)


def _heading(reader: TraceReader) -> Heading:
    scenario = reader.header.scenario
    texts = {name: str(scenario.get(name, "")) for name in ("name", "lesson", "title")}
    return Heading(
        scenario=texts["name"],
        seed=reader.header.seed,
        groupsim=reader.header.groupsim,
        lesson=texts["lesson"] or texts["title"],
    )


def _ending(reader: TraceReader) -> str:
    """Say how a trace that is not finished ends; "" for one that is."""
    if reader.end is None:
        cut = (
            "" if reader.cut_at is None else f"; the last event is cut off at byte {reader.cut_at}"
        )
        return f"the trace is unfinished after {reader.events} events{cut}"
    if reader.end.end == "finished":
        return ""
    why = "" if reader.end.why in ("", reader.end.end) else f": {reader.end.why}"
    verb = "failed" if reader.end.end == "failed" else f"was {reader.end.end}"
    return f"the run {verb}{why}"


def _unknown(name: str, known: Mapping[str, None]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    if near:
        return f"nothing in this trace is called {name!r}; did you mean {near[0]!r}?"
    some = ", ".join(list(known)[:10]) or "nothing"
    return f"nothing in this trace is called {name!r}; it has {some}"
