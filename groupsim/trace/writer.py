"""Writing a trace: a stream in constant memory, cheap enough to be always on.

Theory of operation. An event is appended to a buffer; full buffers are hashed and written
whole. What a killed run leaves is therefore a prefix of the stream that may end inside an event; the
reader copes with that. Messages have a path of their own: nearly all that a steady group does is
four events for each heartbeat, whose connection and body never change. The part of a message that is the same
every time is packed once and kept by the identity of the (immutable) message value.

Ctrl-C may strike anywhere. CPython runs signal handlers only after a call, at a function's start and
on a jump back, never between plain statements; so the statements that append an event, and those that
swap the full buffer, are free of calls, and an event is in the stream whole or not at all.

The hash is defined in docs/trace.md: it covers scenario, seed, format version and every event,
and nothing of the file's place, the time of day or the build.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Callable, Mapping
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgpack

from groupsim import __version__
from groupsim.protocol.effects import Note
from groupsim.protocol.messages import APIS, Api, Request, Response
from groupsim.trace.events import FORMAT, VERSION, Event, Kind, registered_kinds
from groupsim.trace.files import create_trace, with_path, write_all
from groupsim.trace.plain import plain, plain_default

__all__ = ["ConnectionTrace", "Listener", "TraceWriter"]

Listener = Callable[[Event], None]

Kept = tuple[Any, int, bytes]
"""A message, its API version, and its packed form: all of its ``send`` behind the correlation id."""

BUFFER_BYTES: Final = 1 << 16
"""Written and hashed at once: large enough that neither call shows, small enough to lose."""

KEPT_BODIES: Final = 8
KEPT_BODY_BYTES: Final = 512
"""A connection keeps the packed form of its last few small messages: heartbeats and their like."""

_REQUEST_APIS: Final[Mapping[type[Any], Api]] = {api.request: api for api in APIS.values()}
_RESPONSE_APIS: Final[Mapping[type[Any], Api]] = {api.response: api for api in APIS.values()}

# Fixed-width integers, because one struct.pack costs half of what a msgpack call does. All four
# are valid msgpack; an array of five begins 95, uint32 is ce, uint64 is cf.
_MESSAGE_FORMAT: Final = "HIBQBIHBI"
_MESSAGE: Final = struct.Struct(">" + _MESSAGE_FORMAT).pack
_ID: Final = 0x95CE
_U64: Final = 0xCF
_U32: Final = 0xCE


class TraceWriter:
    """One trace being written, to ``path`` or (None) to nowhere but the hash and the listeners.

    As a context manager it closes itself: as interrupted on Ctrl-C and cancellation, as failed on other
    exceptions. ``scenario`` must be plain data (maps, lists, strings, numbers).

    Raises:
        OSError: the file cannot be written. It appears with its header complete.

    """

    def __init__(
        self, path: Path | None = None, *, scenario: Mapping[str, Any] | None = None, seed: int = 0
    ) -> None:
        self.kinds = registered_kinds()
        self._packer = msgpack.Packer(default=plain_default)
        self._pack = self._packer.pack
        self._buffer = bytearray()
        self._events = 0
        self._time_us = 0
        self._written = 0
        self._closed: str | None = None
        self._listeners: dict[int, list[Listener]] = {}
        self._notes: dict[type[Note], tuple[int, Callable[[Any], Any], bool]] = {}
        self._send_kind = self.kinds.number("send")
        self._deliver_kind = self.kinds.number("deliver")
        self._send_head = self._send_kind << 8 | 0x98  # the kind, then an array of eight
        self._deliver_head = self._deliver_kind << 8 | 0x91
        self._room = BUFFER_BYTES
        self._bodies: dict[int, tuple[Any, bytes]] = {}  # the reference keeps the id its own
        plain_scenario = plain(scenario or {})
        self._hash = hashlib.sha256(self._pack([FORMAT, VERSION, plain_scenario, seed]))
        header = {
            "format": FORMAT,
            "version": VERSION,
            "groupsim": __version__,
            "scenario": plain_scenario,
            "seed": seed,
            "kinds": self.kinds.plain(),
        }
        self._where = path or Path()
        self._file = None if path is None else create_trace(path, self._pack(header))

    @property
    def events(self) -> int:
        """How many events there are so far, which is also the id of the newest."""
        return self._events

    @property
    def time_us(self) -> int:
        """Virtual time of the newest event."""
        return self._time_us

    def emit(self, time_us: int, cause: int, kind: int, fields: tuple[Any, ...]) -> int:
        """Append an event and return its id. ``fields`` are in the order of the kind's table."""
        number = self._events + 1
        packed = self._pack((number, time_us, cause, kind, fields))
        buffer = self._buffer
        buffer += packed
        self._events = number
        self._time_us = time_us
        if len(buffer) >= BUFFER_BYTES:
            self._flush()
        if kind in self._listeners:
            self._tell(number, time_us, cause, kind, fields)
        return number

    def event(self, time_us: int, cause: int, kind: str, **fields: Any) -> int:
        """Append an event by names: slower, checked, for what happens now and then.

        Raises:
            TypeError: the fields are not those of the kind.

        """
        known = self.kinds.all[self.kinds.number(kind)]
        if set(fields) != set(known.fields):
            wanted, got = ", ".join(known.fields), ", ".join(fields)
            raise TypeError(f"event {kind} has the fields {wanted}; got {got}")
        return self.emit(time_us, cause, known.number, tuple(fields[n] for n in known.fields))

    def note(self, time_us: int, cause: int, who: str, note: Note) -> int:
        """Append a machine's note as it is; ``who`` is the process or broker it comes from."""
        made = self._notes.get(type(note))
        if made is None:
            made = self._notes[type(note)] = _note_fields(self.kinds.of_note(type(note)))
        kind, fields, single = made
        rest = fields(note)
        return self.emit(time_us, cause, kind, (who, rest) if single else (who, *rest))

    def connection(self, connection: str, client: str, broker: str) -> ConnectionTrace:
        """Return what writes the messages of one connection; keep it as long as the connection."""
        return ConnectionTrace(self, connection, client, broker)

    def listen(self, kind: str, callback: Listener) -> None:
        """Call ``callback`` with every event of ``kind`` as soon as it is appended."""
        number = self.kinds.number(kind)
        self._listeners.setdefault(number, []).append(callback)
        if number in (self._send_kind, self._deliver_kind):
            self._room = 0  # every message takes the slow way, past the listeners

    def sha256(self) -> str:
        """Return the hash of all events so far, in hexadecimal."""
        self._flush()
        return self._hash.hexdigest()

    def close(self, end: str = "finished", *, time_us: int | None = None, why: str = "") -> None:
        """Write the end record: ``end`` is finished, interrupted or failed. Once is enough."""
        if self._closed is not None:
            return
        record = {
            "end": end,
            "why": why,
            "time_us": self._time_us if time_us is None else time_us,
            "events": self._events,
            "sha256": self.sha256(),
        }
        self._closed = end
        if self._file is not None:
            write_all(self._file, self._pack(record), self._where)
            os.close(self._file)
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        elif _is_interruption(error):
            self.close("interrupted", why="interrupted")
        else:
            self.close("failed", why=f"{type(error).__name__}: {error}")

    def deliver(self, time_us: int, cause: int, of: int) -> int:
        """Append the ``deliver`` of the message whose ``send`` has the id ``of``."""
        number = self._events + 1
        packed = _MESSAGE(_ID, number, _U64, time_us, _U32, cause, self._deliver_head, _U32, of)
        buffer = self._buffer
        buffer += packed
        self._events = number
        self._time_us = time_us
        if len(buffer) >= self._room:
            self.message_delivered(number, time_us, cause, of)
        return number

    def message_delivered(self, number: int, time_us: int, cause: int, of: int) -> None:
        """Tell those who listen of a ``deliver`` that has been written, and write what is full."""
        self._after_message(number, time_us, cause, self._deliver_kind, (of,))

    def packed_body(self, message: Any) -> bytes:
        """Return the packed form of a message; large ones that come again (Metadata) are kept."""
        kept = self._bodies.get(id(message))
        if kept is not None:
            return kept[1]
        packed: bytes = self._pack(message)
        if len(packed) > KEPT_BODY_BYTES:
            if len(self._bodies) >= KEPT_BODIES:
                self._bodies.clear()
            self._bodies[id(message)] = (message, packed)
        return packed

    def _after_message(
        self, number: int, time_us: int, cause: int, kind: int, fields: tuple[Any, ...]
    ) -> None:
        if len(self._buffer) >= BUFFER_BYTES:
            self._flush()
        if kind in self._listeners:
            self._tell(number, time_us, cause, kind, fields)

    def _flush(self) -> None:
        if not self._buffer:
            return
        fresh = bytearray()
        full, self._buffer = self._buffer, fresh
        try:
            self._hash.update(full)
        finally:  # not a function of ours: Ctrl-C could strike at its start
            if self._file is not None:
                done = 0
                try:
                    done = os.write(self._file, full)
                except OSError as error:
                    raise with_path(error, self._where) from None
                if done < len(full):
                    write_all(self._file, full[done:], self._where)

    def _tell(
        self, number: int, time_us: int, cause: int, kind: int, fields: tuple[Any, ...]
    ) -> None:
        known = self.kinds.all[kind]
        named = dict(zip(known.fields, plain(fields), strict=True))
        event = Event(id=number, time_us=time_us, cause=cause, kind=known.name, fields=named)
        for listener in self._listeners[kind]:
            listener(event)


class ConnectionTrace:
    """Writes the messages of one connection between a client process and a broker."""

    __slots__ = ("_broker", "_client", "_heads", "_kept", "_name", "_writer")

    def __init__(self, writer: TraceWriter, connection: str, client: str, broker: str) -> None:
        self._writer = writer
        self._name = connection
        self._client = client
        self._broker = broker
        self._kept: dict[int, Kept] = {}
        self._heads: dict[tuple[type[Any], int], bytes] = {}

    def send(
        self,
        time_us: int,
        cause: int,
        correlation_id: int,
        message: Request | Response,
        api_version: int,
    ) -> int:
        """Append the ``send`` of a request by the client or a response by the broker; return its id."""
        kept = self._kept.get(id(message))
        if kept is None or kept[1] != api_version:
            kept = self._keep(message, api_version)
        writer = self._writer
        number = writer._events + 1
        head = _MESSAGE(
            _ID, number, _U64, time_us, _U32, cause, writer._send_head, _U32, correlation_id
        )
        buffer = writer._buffer
        buffer += head
        buffer += kept[2]
        writer._events = number
        writer._time_us = time_us
        if len(buffer) >= writer._room:
            self.message_sent(number, time_us, cause, correlation_id, kept)
        return number

    def heartbeats(self, request: Request, response: Response, api_version: int) -> HeartbeatTrace:
        """Return what writes the events of a heartbeat that is sent over and over."""
        return HeartbeatTrace(
            self._writer,
            self,
            self._keep(request, api_version),
            self._keep(response, api_version),
        )

    def message_sent(
        self,
        number: int,
        time_us: int,
        cause: int,
        correlation_id: int,
        kept: Kept,
    ) -> None:
        """Tell those who listen of a ``send`` that has been written, and write what is full."""
        fields = (correlation_id, *self._fields(kept[0], kept[1]))
        self._writer._after_message(number, time_us, cause, self._writer._send_kind, fields)

    def _keep(self, message: Any, api_version: int) -> Kept:
        writer = self._writer
        kind = (type(message), api_version)
        head = self._heads.get(kind)
        if head is None:
            fields = self._fields(message, api_version)[:-1]
            head = self._heads[kind] = b"".join(writer._pack(field) for field in fields)
        tail = head + writer.packed_body(message)
        entry = (message, api_version, tail)  # the reference keeps id(message) from being reused
        if len(tail) <= KEPT_BODY_BYTES:
            if len(self._kept) >= KEPT_BODIES:
                self._kept.clear()
            self._kept[id(message)] = entry
        return entry

    def _fields(self, message: Any, api_version: int) -> tuple[Any, ...]:
        api = _REQUEST_APIS.get(type(message))
        if api is not None:
            ends, direction = (self._client, self._broker), "request"
        else:
            api = _RESPONSE_APIS[type(message)]
            ends, direction = (self._broker, self._client), "response"
        return (self._name, *ends, api.name, api_version, direction, message)


class HeartbeatTrace:
    """Writes a round trip whose request and response are always the same, but for its last event.

    What it writes is what ``ConnectionTrace`` and ``TraceWriter.deliver`` would, and it is most of a
    long trace: so each call packs all it has in one go.
    """

    __slots__ = ("_connection", "_pack_request", "_pack_served", "_request", "_response", "_writer")

    def __init__(
        self, writer: TraceWriter, connection: ConnectionTrace, request: Kept, response: Kept
    ) -> None:
        self._writer = writer
        self._connection = connection
        self._request = request
        self._response = response
        send = _MESSAGE_FORMAT + "{}s"
        self._pack_request = struct.Struct(">" + send.format(len(request[2]))).pack
        served = ">" + _MESSAGE_FORMAT + send.format(len(response[2]))
        self._pack_served = struct.Struct(served).pack

    def sent(self, time_us: int, cause: int, correlation_id: int) -> int:
        """Append the ``send`` of the request; return its id."""
        writer = self._writer
        number = writer._events + 1
        buffer = writer._buffer
        buffer += self._pack_request(
            _ID,
            number,
            _U64,
            time_us,
            _U32,
            cause,
            writer._send_head,
            _U32,
            correlation_id,
            self._request[2],
        )
        writer._events = number
        writer._time_us = time_us
        if len(buffer) >= writer._room:
            self._connection.message_sent(number, time_us, cause, correlation_id, self._request)
        return number

    def served(self, time_us: int, sent: int, correlation_id: int) -> int:
        """Append the ``deliver`` of the request, whose ``send`` has the id ``sent``, and the
        ``send`` of the response that it causes; return the id of the latter.
        """
        writer = self._writer
        delivered = writer._events + 1
        number = delivered + 1
        buffer = writer._buffer
        buffer += self._pack_served(
            _ID,
            delivered,
            _U64,
            time_us,
            _U32,
            sent,
            writer._deliver_head,
            _U32,
            sent,
            _ID,
            number,
            _U64,
            time_us,
            _U32,
            delivered,
            writer._send_head,
            _U32,
            correlation_id,
            self._response[2],
        )
        writer._events = number
        writer._time_us = time_us
        if len(buffer) >= writer._room:
            writer.message_delivered(delivered, time_us, sent, sent)
            self._connection.message_sent(
                number, time_us, delivered, correlation_id, self._response
            )
        return number


def _note_fields(kind: Kind) -> tuple[int, Callable[[Any], Any], bool]:
    slots = kind.fields[1:]
    return kind.number, attrgetter(*slots) if slots else (lambda _: ()), len(slots) == 1


def _is_interruption(error: BaseException) -> bool:
    """Whether ``error``, or all that a group of errors holds, is Ctrl-C or a cancellation."""
    if isinstance(error, BaseExceptionGroup):
        return all(_is_interruption(inner) for inner in error.exceptions)
    return not isinstance(error, Exception)
