"""The kinds of events a trace can hold, their numbers and their fields.

A kind is either declared here (what the world around the machines does: messages, processes,
network, log) or is a note of one of the machines. A note's fields are its own slots, after ``who``:
the process or broker that it comes from.

Numbers: kinds keep their number for good, so that the hash of a run does not change when kinds
are added. The order is therefore written down, new kinds go to the end, and notes registered
by others follow ours sorted by name.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from groupsim.protocol.effects import NOTE_KINDS, Note
from groupsim.trace.errors import UnknownKindError

__all__ = ["FORMAT", "VERSION", "Event", "Kind", "Kinds", "registered_kinds"]

FORMAT: Final = "groupsim-trace"
VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event: ``id`` counts from 1, ``time_us`` is virtual time, ``cause`` an earlier id or 0."""

    id: int
    time_us: int
    cause: int
    kind: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of event. ``doc`` is for docs/trace.md; ``note`` is the class of a note's kind."""

    number: int
    name: str
    fields: tuple[str, ...]
    doc: str
    note: type[Note] | None = None


_WORLD: Final[Mapping[str, tuple[str, str]]] = {
    "topic": (
        "topic partitions",
        "A topic exists with so many partitions from now on (at the start, and when some are added).",
    ),
    "client": (
        "who group_id profile client_id client_host group_instance_id subscribe subscribe_pattern",
        "A client process belongs to the run, or is another one from its next start on (a deploy). It "
        "is not running. `subscribe` is a list of topics.",
    ),
    "timeline": (
        "index action targets detail",
        "An entry of the scenario's timeline takes effect; what it does names this event as cause.",
    ),
    "process": (
        "who role event detail",
        "A process changed. `role` is client or broker; `event` is one of started, stopping (asked "
        "to close), exited (ended by its own will), killed (its time to close ran out), crashed, "
        "paused, resumed. Exited, killed and crashed end all that the process owned.",
    ),
    "order": (
        "who name arguments",
        "The scenario tells a running client to do something (subscribe, close, ...).",
    ),
    "connection": (
        "who connection peer event reason",
        "`who`'s connection to `peer` was opened, refused, closed or lost.",
    ),
    "send": (
        "correlation_id connection from to api api_version direction body",
        "A message leaves. `direction` is request or response; `body` maps field names to values, "
        "fields that have their default are left out.",
    ),
    "deliver": (
        "of",
        "The message of the `send` event `of` is handled by the other side.",
    ),
    "drop": (
        "of reason",
        "The message of the `send` event `of` never arrives.",
    ),
    "network": (
        "event selector detail",
        "The network changed: link (new latency or loss), cut, healed.",
    ),
    "fault": (
        "fault target detail",
        "Any other fault that the scenario injects.",
    ),
    "leadership": (
        "partition broker epoch event",
        "A partition of __consumer_offsets, and so the coordinators of its groups, moved: `event` is "
        "elected, loading, loaded, unloaded; `broker` the one it concerns.",
    ),
    "append": (
        "who append_id partition base_offset records",
        "A coordinator appends a batch of records to __consumer_offsets.",
    ),
    "append_done": (
        "who append_id error_code",
        "A batch is committed (error code 0) or has failed.",
    ),
    "script": (
        "who sentence",
        "Something that a script wrote down.",
    ),
    "expectation": (
        "group expectation verdict found",
        "At the end: what the scenario expected, whether it was met (met, not met, undecided) and "
        "what was found.",
    ),
}

_ORDER: Final = (
    *("topic", "client", "timeline", "process", "order", "connection", "send", "deliver", "drop"),
    *("network", "fault", "leadership", "append", "append_done", "script", "expectation"),
    *("group_transition", "member_change", "rebalance_phase", "timer_armed", "timer_fired"),
    *("timer_cancelled", "broker_log", "client_state", "ownership", "callback", "commit"),
    *("application", "exception", "client_log"),
)
"""Our kinds, those of the world and the notes of the two machines, in the order of invention."""

_HOMES: Final = ("groupsim.coordinator.effects", "groupsim_clients.machine")
"""Modules that register the notes named above when they are imported."""


class Kinds:
    """A table of kinds, by number, by name and by note class."""

    def __init__(self, kinds: tuple[Kind, ...]) -> None:
        self.all = kinds
        self._by_name = {kind.name: kind for kind in kinds}
        self._by_note = {kind.note: kind for kind in kinds if kind.note is not None}

    def number(self, name: str) -> int:
        """Return the number of the kind called ``name``.

        Raises:
            UnknownKindError: there is no such kind.

        """
        kind = self._by_name.get(name)
        if kind is None:
            raise UnknownKindError(name, tuple(self._by_name))
        return kind.number

    def of_note(self, note: type[Note]) -> Kind:
        """Return the kind of a note's class.

        Raises:
            UnknownKindError: the note was registered after this table was made.

        """
        kind = self._by_note.get(note)
        if kind is None:
            raise UnknownKindError(note.kind or note.__qualname__, tuple(self._by_name))
        return kind

    def plain(self) -> list[list[Any]]:
        """Return the table as it stands in a trace's header: ``[[name, [field, ...]], ...]``."""
        return [[kind.name, list(kind.fields)] for kind in self.all]


def registered_kinds() -> Kinds:
    """Return all kinds known now; notes of modules imported later are not among them."""
    for home in _HOMES:
        importlib.import_module(home)
    others = sorted(name for name in NOTE_KINDS if name not in _ORDER)
    names = [*_ORDER, *others]
    return Kinds(tuple(_kind(number, name) for number, name in enumerate(names)))


def _kind(number: int, name: str) -> Kind:
    if name in _WORLD:
        fields, doc = _WORLD[name]
        return Kind(number=number, name=name, fields=tuple(fields.split()), doc=doc)
    note: Any = NOTE_KINDS[name]
    slots = tuple(field.name for field in dataclasses.fields(note))
    doc = " ".join((note.__doc__ or "").split())
    return Kind(number=number, name=name, fields=("who", *slots), doc=doc, note=note)
