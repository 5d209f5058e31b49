"""The trace writer: the stream it writes, its hash, its listeners."""

from __future__ import annotations

import hashlib
import io
import signal
from pathlib import Path
from typing import Any

import msgpack
import pytest

from groupsim.protocol.effects import NOTE_KINDS
from groupsim.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from groupsim.trace.errors import UnknownKindError
from groupsim.trace.events import _ORDER, _WORLD, FORMAT, VERSION, Event, registered_kinds
from groupsim.trace.reader import TraceReader
from groupsim.trace.writer import BUFFER_BYTES, TraceWriter
from groupsim_clients.machine import Ownership

SCENARIO = {"name": "small", "groups": {"g": {"members": 2}}}
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m-1")


def _stream(path: Path) -> list[Any]:
    return list(msgpack.Unpacker(io.BytesIO(path.read_bytes()), use_list=True))


def _write(path: Path | None, *, seed: int = 7, events: int = 3) -> TraceWriter:
    writer = TraceWriter(path, scenario=SCENARIO, seed=seed)
    for number in range(events):
        writer.event(number, 0, "script", who="s", sentence=f"sentence {number}")
    writer.close(time_us=10)
    return writer


def test_stream_is_header_events_end(tmp_path: Path) -> None:
    """A trace is a header map, events as arrays, an end record."""
    writer = _write(tmp_path / "t")
    header, *events, end = _stream(tmp_path / "t")
    assert header["format"] == FORMAT
    assert header["scenario"] == SCENARIO
    assert ["deliver", ["of"]] in header["kinds"]
    kind = writer.kinds.number("script")
    assert events[1] == [2, 1, 0, kind, ["s", "sentence 1"]]
    assert end == {
        "end": "finished",
        "why": "",
        "time_us": 10,
        "events": 3,
        "sha256": writer.sha256(),
    }


def test_messages_read_back_with_their_non_default_fields(tmp_path: Path) -> None:
    """A message is a send and a deliver; kept bodies change nothing in what is written."""
    writer = TraceWriter(tmp_path / "t", scenario=SCENARIO)
    link = writer.connection("c-1/coordinator/2", "c-1", "broker-2")
    join = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=45_000,
        member_id="",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b"\0\1"),),
    )
    sent = link.send(1_000, 0, 5, join, 9)
    writer.deliver(2_000, sent, sent)
    for beat in range(2):
        link.send(3_000 + beat, 0, 6 + beat, HEARTBEAT, 4)
        link.send(4_000 + beat, 0, 6 + beat, HeartbeatResponse(), 4)
    writer.close()
    _, first, second, third, fourth, fifth, _, _ = _stream(tmp_path / "t")
    send, deliver = writer.kinds.number("send"), writer.kinds.number("deliver")
    body = {
        "group_id": "g",
        "session_timeout_ms": 45_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"\0\1"}],
    }
    ends = ["c-1/coordinator/2", "c-1", "broker-2"]
    assert first == [1, 1_000, 0, send, [5, *ends, "JoinGroup", 9, "request", body]]
    assert second == [2, 2_000, 1, deliver, [1]]
    beats = {"group_id": "g", "generation_id": 1, "member_id": "m-1"}
    assert third == [3, 3_000, 0, send, [6, *ends, "Heartbeat", 4, "request", beats]]
    back = ["c-1/coordinator/2", "broker-2", "c-1"]
    assert fourth == [4, 4_000, 0, send, [6, *back, "Heartbeat", 4, "response", {}]]
    assert fifth == [5, 3_001, 0, send, [7, *ends, "Heartbeat", 4, "request", beats]]


def test_a_kept_body_is_never_used_for_another_message() -> None:
    """Bodies are kept by identity; a value that is gone must not lend its body to the next one."""

    def digest(*, keep: bool) -> str:
        writer = TraceWriter()
        link = writer.connection("c", "a", "b")
        alive = []
        for number in range(100):  # the allocator hands the same address out again and again
            beat = HeartbeatRequest(group_id="g", generation_id=number, member_id="m")
            link.send(number, 0, number, beat, 4)
            if keep:
                alive.append(beat)
        return writer.sha256()

    assert digest(keep=False) == digest(keep=True)


def test_hash_covers_scenario_seed_and_events_only(tmp_path: Path) -> None:
    """The hash is that of [format, version, scenario, seed] and the events' bytes."""
    writer = _write(tmp_path / "one")
    raw = (tmp_path / "one").read_bytes()
    unpacker = msgpack.Unpacker(io.BytesIO(raw))
    unpacker.skip()
    start = unpacker.tell()
    for _ in range(3):
        unpacker.skip()
    digest = hashlib.sha256(msgpack.packb([FORMAT, VERSION, SCENARIO, 7]))
    digest.update(raw[start : unpacker.tell()])
    assert writer.sha256() == digest.hexdigest()
    assert _write(None).sha256() == _write(tmp_path / "two").sha256() == writer.sha256()
    assert _write(None, seed=8).sha256() != writer.sha256()
    assert _write(None, events=2).sha256() != writer.sha256()


def test_hash_is_the_same_past_the_buffer(tmp_path: Path) -> None:
    """Where the buffer happens to be flushed has no part in the hash or the stream."""
    many = BUFFER_BYTES // 10
    writer = _write(tmp_path / "big", events=many)
    end = _stream(tmp_path / "big")[-1]
    assert end["events"] == many
    assert end["sha256"] == writer.sha256() == _write(None, events=many).sha256()


def test_notes_carry_who_and_their_slots(tmp_path: Path) -> None:
    """A note is written as who, then its fields in slot order."""
    writer = TraceWriter(tmp_path / "t")
    heard: list[Event] = []
    writer.listen("ownership", heard.append)
    note = Ownership(change="assigned", partitions=(("t", 0),), owned=(("t", 0),), generation_id=1)
    writer.note(5, 0, "c-1", note)
    writer.close()
    event = _stream(tmp_path / "t")[1]
    assert event[4] == ["c-1", "assigned", [["t", 0]], [["t", 0]], 1]
    assert heard[0].fields["owned"] == (("t", 0),)
    assert heard[0].fields["who"] == "c-1"


def test_listeners_hear_messages_in_plain_form() -> None:
    """A listener gets what a reader of the file would get, messages included."""
    writer = TraceWriter()
    heard: list[Event] = []
    writer.listen("send", heard.append)
    writer.listen("deliver", heard.append)
    link = writer.connection("c", "a", "b")
    writer.deliver(2, 1, link.send(1, 0, 9, HEARTBEAT, 4))
    assert [event.kind for event in heard] == ["send", "deliver"]
    assert heard[0].fields["body"] == {"group_id": "g", "generation_id": 1, "member_id": "m-1"}
    assert heard[0].fields["from"] == "a"
    assert heard[1].fields == {"of": 1}


def test_unknown_kind_and_fields_are_refused() -> None:
    """Wrong names get a typed error with a near match; values without a plain form a TypeError."""
    writer = TraceWriter()
    with pytest.raises(UnknownKindError, match="did you mean 'process'"):
        writer.listen("proces", print)
    with pytest.raises(TypeError, match="has the fields who, sentence"):
        writer.event(0, 0, "script", who="x")
    with pytest.raises(TypeError, match="cannot hold set"):
        writer.event(0, 0, "script", who="x", sentence={1})
    assert writer.event(0, 0, "script", who="x", sentence="y") == 1


@pytest.mark.parametrize(
    ("error", "end"), [(KeyboardInterrupt(), "interrupted"), (ValueError("no"), "failed")]
)
def test_exceptions_close_the_trace(tmp_path: Path, error: BaseException, end: str) -> None:
    """Ctrl-C closes a trace as interrupted, a fault as failed; both are readable."""

    def run() -> None:
        with TraceWriter(tmp_path / "t") as writer:
            writer.event(0, 0, "script", who="x", sentence="y")
            raise error

    with pytest.raises(type(error)):
        run()
    assert _stream(tmp_path / "t")[-1]["end"] == end


def test_a_file_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    """An impossible path raises OSError; no temporary file is left beside it."""
    (tmp_path / "file").write_text("kept")
    with pytest.raises(NotADirectoryError):
        TraceWriter(tmp_path / "file" / "t")
    with pytest.raises(FileNotFoundError):
        TraceWriter(tmp_path / "none" / "t")
    _write(tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    _write(Path("/dev/null"))
    assert Path("/dev/null").is_char_device()


def test_kinds_keep_their_numbers() -> None:
    """Numbers of kinds are for good: new ones go to the end (the hash of a run depends on it)."""
    kinds = registered_kinds()
    assert [kind.number for kind in kinds.all] == list(range(len(kinds.all)))
    assert (kinds.number("topic"), kinds.number("send"), kinds.number("deliver")) == (0, 6, 7)
    assert kinds.number("ownership") == kinds.number("group_transition") + 8
    assert set(_ORDER[16:]) <= set(NOTE_KINDS)
    assert set(_ORDER) == set(_WORLD) | set(_ORDER[16:])
    ours = ("groupsim.", "groupsim_clients.")
    homeless = [n for n, c in NOTE_KINDS.items() if c.__module__.startswith(ours)]
    assert sorted(homeless) == sorted(_ORDER[16:]), "add new notes to the end of events._ORDER"


class _StruckError(BaseException):
    """Stands for the KeyboardInterrupt of a signal."""


def test_a_signal_at_any_moment_leaves_whole_events(tmp_path: Path) -> None:
    """However Ctrl-C cuts into the writer, the stream has whole events, and count and hash agree."""

    def strike(*_: object) -> None:
        raise _StruckError

    def write_on(writer: TraceWriter, after: float) -> None:
        link = writer.connection("c", "a", "b")
        signal.setitimer(signal.ITIMER_REAL, after)
        while True:
            writer.deliver(2, 0, link.send(1, 0, 9, HEARTBEAT, 4))
            writer.event(0, 0, "script", who="s", sentence="x" * 900)

    before = signal.signal(signal.SIGALRM, strike)
    try:
        for attempt in range(100):
            writer = TraceWriter(tmp_path / "t")
            with pytest.raises(_StruckError):
                write_on(writer, 0.0005 + attempt * 0.000_007)
            writer.close("interrupted")
            reader = TraceReader(tmp_path / "t")
            assert sum(1 for _ in reader.raw()) == writer.events
            assert reader.status == "interrupted"
    finally:
        signal.signal(signal.SIGALRM, before)
