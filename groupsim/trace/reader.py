"""Reading a trace back, in constant memory, whatever state the file is in.

A run that was killed leaves a prefix: the reader yields its whole events, then reports that there is no
end record and where the last event is cut off. Everything else that is wrong (a foreign file, damage
in the middle, a hash that does not match) raises ``TraceError`` with the byte at which it was found.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgpack

from groupsim.trace.errors import TraceError
from groupsim.trace.events import FORMAT, VERSION, Event

__all__ = ["EndRecord", "Header", "RawEvent", "TraceReader"]

RawEvent = tuple[int, int, int, int, tuple[Any, ...]]
"""An event as it stands in the stream: id, time in µs, cause, number of the kind, fields."""

CHUNK_BYTES: Final = 1 << 16
MAX_OBJECT_BYTES: Final = 1 << 28
"""Nothing in a trace is larger (256 MiB); damage that claims to be is called damage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a trace says of itself: enough to run it again, and to read every event."""

    version: int
    groupsim: str
    scenario: Mapping[str, Any]
    seed: int
    kinds: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndRecord:
    """How the trace ended: ``end`` is finished, interrupted or failed; ``time_us`` the last time."""

    end: str
    why: str
    time_us: int
    events: int
    sha256: str


class TraceReader:
    """A trace in a file. Iterate over it for events; each iteration starts at the first one.

    After an iteration came to its end, ``end`` is the end record, or None for a trace that is unfinished;
    then ``cut_at`` is the byte at which a last, incomplete event begins, or None.

    Raises:
        OSError: the file cannot be opened.
        TraceError: it is not a trace, or (while iterating) it is damaged.

    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.end: EndRecord | None = None
        self.cut_at: int | None = None
        self.events = 0
        self.last_time_us = 0
        if path.exists() and not path.is_file():
            raise TraceError(str(path), 0, "not a regular file")
        self.header = self._read_header(self._first())

    @property
    def finished(self) -> bool:
        """Whether the run came to its end (known after an iteration)."""
        return self.end is not None and self.end.end == "finished"

    @property
    def status(self) -> str:
        """finished, interrupted, failed or unfinished (known after an iteration)."""
        return "unfinished" if self.end is None else self.end.end

    def __iter__(self) -> Iterator[Event]:
        """Yield every event with its fields by name."""
        return map(self.named, self.raw())

    def named(self, raw: RawEvent) -> Event:
        """Return an event of ``raw()`` with its fields by name."""
        number, time_us, cause, kind, fields = raw
        name, names = self.header.kinds[kind]
        return Event(
            id=number,
            time_us=time_us,
            cause=cause,
            kind=name,
            fields=dict(zip(names, fields, strict=True)),
        )

    def raw(self) -> Iterator[RawEvent]:
        """Yield every event as it stands in the stream (tuples for arrays)."""
        self.end, self.cut_at, self.events, self.last_time_us = None, None, 0, 0
        lengths = [len(names) for _, names in self.header.kinds]
        with self.path.open("rb") as file:
            stream = _Stream(str(self.path), file)
            objects = iter(stream)
            next(objects)
            stream.settle()
            stream.digest = hashlib.sha256(
                msgpack.packb([FORMAT, self.header.version, self.header.scenario, self.header.seed])
            )
            for found in objects:
                if self.end is not None:
                    raise self._damage(stream.start, "there is more after the end record")
                if isinstance(found, dict):
                    self.end = self._read_end(found, stream)
                    continue
                problem = _problem(found, self.events, lengths)
                if problem:
                    raise self._damage(stream.start, problem)
                self.events = found[0]
                self.last_time_us = found[1]
                yield found
            if stream.rest:
                self.cut_at = stream.position

    def _first(self) -> Any:
        """Return the first object of the file.

        Raises:
            TraceError: there is no whole one.

        """
        with self.path.open("rb") as file:
            stream = _Stream(str(self.path), file)
            for found in stream:
                return found
        what = "the header is cut off" if stream.rest else "the file is empty"
        raise self._damage(0, f"{what}: this is not a trace that can be read")

    def _read_header(self, found: Any) -> Header:
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise self._damage(0, "this is not a groupsim trace")
        version = found.get("version")
        if version != VERSION:
            raise self._damage(0, f"trace format {version!r}; this groupsim reads format {VERSION}")
        try:
            return Header(
                version=version,
                groupsim=_typed(found, "groupsim", str),
                scenario=_lists(_typed(found, "scenario", dict)),
                seed=_typed(found, "seed", int),
                kinds=tuple((str(name), tuple(names)) for name, names in found["kinds"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise self._damage(0, f"the header is damaged ({error})") from None

    def _read_end(self, found: Mapping[str, Any], stream: _Stream) -> EndRecord:
        start = stream.start
        stream.settle(start)
        try:
            end = EndRecord(
                end=_typed(found, "end", str),
                why=_typed(found, "why", str),
                time_us=_typed(found, "time_us", int),
                events=_typed(found, "events", int),
                sha256=_typed(found, "sha256", str),
            )
        except (KeyError, TypeError) as error:
            raise self._damage(start, f"the end record is damaged ({error})") from None
        if end.events != self.events:
            raise self._damage(start, f"{self.events} events, but the end says {end.events}")
        if end.sha256 != stream.digest.hexdigest():
            raise self._damage(start, "the hash does not match: the file was changed")
        return end

    def _damage(self, offset: int, problem: str) -> TraceError:
        return TraceError(str(self.path), offset, problem)


class _Stream:
    """The msgpack objects of a file, with their places.

    While it is iterated over, ``start`` and ``position`` are the first byte of the object at hand and
    the first one after it. ``digest`` is fed with whole objects, at the latest at the next chunk.
    """

    def __init__(self, name: str, file: BinaryIO) -> None:
        self.digest = hashlib.sha256()
        self.start = 0
        self.position = 0
        self._name = name
        self._file = file
        self._held = bytearray()  # what is read and not yet in the digest
        self._held_from = 0
        self._unpacker = msgpack.Unpacker(
            use_list=False, max_buffer_size=MAX_OBJECT_BYTES, strict_map_key=False
        )

    @property
    def rest(self) -> int:
        """How many bytes were read after the last whole object."""
        return self._held_from + len(self._held) - self.position

    def settle(self, until: int | None = None) -> None:
        """Feed the digest with the bytes before ``until`` (default: up to and with this object)."""
        count = (self.position if until is None else until) - self._held_from
        self.digest.update(self._held[:count])
        del self._held[:count]
        self._held_from += count

    def __iter__(self) -> Iterator[Any]:
        while chunk := self._file.read(CHUNK_BYTES):
            self._held += chunk
            try:
                self._unpacker.feed(chunk)
                yield from self._whole_objects()
            except msgpack.OutOfData:
                self.settle()
            except msgpack.BufferFull:
                raise self._damaged("an event of impossible length") from None

    def _whole_objects(self) -> Iterator[Any]:
        while True:
            try:
                found = self._unpacker.unpack()
            except (msgpack.OutOfData, msgpack.BufferFull):
                raise
            except Exception as error:  # noqa: BLE001 - msgpack raises many kinds for damage
                raise self._damaged(f"cannot be unpacked ({error})") from None
            self.start, self.position = self.position, self._unpacker.tell()
            yield found

    def _damaged(self, problem: str) -> TraceError:
        return TraceError(self._name, self.position, problem)


def _lists(value: Any) -> Any:
    """Turn the reader's tuples into the lists that a scenario file has."""
    if isinstance(value, dict):
        return {key: _lists(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_lists(item) for item in value]
    return value


def _typed(found: Mapping[str, Any], key: str, kind: type[Any]) -> Any:
    if not isinstance(found[key], kind):
        raise TypeError(f"{key} is {found[key]!r}")
    return found[key]


def _problem(found: Any, events: int, lengths: list[int]) -> str | None:
    """Say what is wrong with an event's shape, if anything is."""
    if not isinstance(found, tuple) or len(found) != 5:
        return "this is not an event"
    number, time_us, cause, kind, fields = found
    if number != events + 1:
        return f"event {events + 1} should follow, found {number!r}"
    if not isinstance(time_us, int) or not isinstance(cause, int) or not 0 <= cause < number:
        return f"event {number} has no valid time and cause"
    if not isinstance(kind, int) or not 0 <= kind < len(lengths):
        return f"event {number} is of an unknown kind: {kind!r}"
    if not isinstance(fields, tuple) or len(fields) != lengths[kind]:
        return f"event {number} has the wrong number of fields"
    return None
