"""The trace reader: whole traces, cut ones, damaged ones, foreign ones."""

from __future__ import annotations

from pathlib import Path

import msgpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groupsim.trace.errors import TraceError
from groupsim.trace.reader import TraceReader
from groupsim.trace.writer import TraceWriter

from .trace_samples import SCENARIO, small_trace


def test_what_was_written_is_read(tmp_path: Path) -> None:
    """Header, events by name and end record come back as they were written."""
    writer = small_trace(tmp_path / "t")
    reader = TraceReader(tmp_path / "t")
    events = list(reader)
    assert reader.header.scenario == SCENARIO
    assert reader.header.seed == 7
    assert [event.id for event in events] == list(range(1, 11))
    assert events[2].fields["body"] == {
        "group_id": "g",
        "generation_id": 1,
        "member_id": "c-1-x",
    }
    assert events[6].fields["owned"] == (("orders", 0), ("orders", 2))
    assert events[8].fields["detail"] == {"for_us": 5, "raw": b"\0\xff"}
    assert reader.finished
    assert reader.end is not None
    assert (reader.end.sha256, reader.end.time_us) == (writer.sha256(), 60_000_000)
    assert list(reader) == events, "a second iteration starts again"


def test_a_reader_needs_no_registry(tmp_path: Path) -> None:
    """The header describes the kinds: a trace of another version's kinds can be read."""
    header = {
        "format": "groupsim-trace",
        "version": 1,
        "groupsim": "9.9.9",
        "scenario": {},
        "seed": 0,
        "kinds": [["eclipse", ["of", "by"]]],
    }
    parts = [msgpack.packb(header), msgpack.packb([1, 5, 0, 0, ["sun", "moon"]])]
    (tmp_path / "t").write_bytes(b"".join(parts))
    reader = TraceReader(tmp_path / "t")
    (event,) = reader
    assert (event.kind, event.fields) == ("eclipse", {"of": "sun", "by": "moon"})
    assert reader.status == "unfinished"


def test_cut_at_every_byte(tmp_path: Path) -> None:
    """A prefix of a trace is readable up to its last whole event, whichever byte it ends at."""
    small_trace(tmp_path / "whole")
    raw = (tmp_path / "whole").read_bytes()
    whole = list(TraceReader(tmp_path / "whole"))
    first = len(msgpack.packb(_header(raw)))
    cut = tmp_path / "cut"
    seen = set()
    for length in range(len(raw)):
        cut.write_bytes(raw[:length])
        if length < first:
            with pytest.raises(TraceError, match="cut off" if length else "empty") as caught:
                TraceReader(cut)
            assert (caught.value.file, caught.value.offset) == (str(cut), 0)
            continue
        reader = TraceReader(cut)
        events = list(reader)
        assert events == whole[: len(events)]
        assert reader.status == "unfinished"
        assert not reader.finished
        assert reader.cut_at is None or first <= reader.cut_at < length
        seen.add((len(events), reader.cut_at is None))
    assert seen == {(n, whole) for n in range(11) for whole in (True, False)}


def _header(raw: bytes) -> object:
    unpacker = msgpack.Unpacker()
    unpacker.feed(raw)
    return unpacker.unpack()


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_damage_is_a_typed_error_or_harmless(tmp_path: Path, data: st.DataObject) -> None:
    """Any changed byte is found (in what the hash covers), and never raises anything but TraceError."""
    path = tmp_path / "t"
    small_trace(path)
    raw = bytearray(path.read_bytes())
    first = len(msgpack.packb(_header(bytes(raw))))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(raw)
    found = _read_all(path)
    if isinstance(found, TraceError):
        assert found.file == str(path)
        assert 0 <= found.offset <= len(raw)
    else:
        assert at < first or at >= raw.rindex(b"\xa3end") or not found.finished


def _read_all(path: Path) -> TraceReader | TraceError:
    try:
        reader = TraceReader(path)
        list(reader)
    except TraceError as error:
        return error
    return reader


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "the file is empty"),
        (b"groupsim: 1\nname: x\n", "not a groupsim trace"),
        (b"\x1f\x8b\x08\x00garbage", "not a groupsim trace"),
        (b"\xc1", "cannot be unpacked"),
        (b"\xdf\xff\xff\xff\xff", "exceeds"),
        (msgpack.packb({"format": "groupsim-trace", "version": 2}), "reads format 1"),
        (msgpack.packb({"format": "groupsim-trace", "version": 1}), "header is damaged"),
        (msgpack.packb([1, 2, 3]), "not a groupsim trace"),
    ],
)
def test_foreign_files_are_named_as_such(tmp_path: Path, content: bytes, problem: str) -> None:
    """A file that is no trace gets one message with its name."""
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(TraceError, match=problem) as caught:
        TraceReader(tmp_path / "t")
    assert str(tmp_path / "t") in str(caught.value)


def test_more_after_the_end_is_damage(tmp_path: Path) -> None:
    """Two traces glued together are not taken for one."""
    small_trace(tmp_path / "t")
    raw = (tmp_path / "t").read_bytes()
    (tmp_path / "t").write_bytes(raw + raw)
    with pytest.raises(TraceError, match="more after the end") as caught:
        list(TraceReader(tmp_path / "t"))
    assert caught.value.offset == len(raw)


def test_directories_and_missing_files(tmp_path: Path) -> None:
    """A directory is no trace; a missing file is an OSError that names it."""
    with pytest.raises(TraceError, match="not a regular file"):
        TraceReader(tmp_path)
    with pytest.raises(FileNotFoundError, match="nothing"):
        TraceReader(tmp_path / "nothing")


def test_events_larger_than_a_chunk(tmp_path: Path) -> None:
    """Events that span several chunks of reading are whole, and the hash is right."""
    writer = TraceWriter(tmp_path / "t")
    for size in (10, 200_000, 65_536, 5):
        writer.event(0, 0, "script", who="s", sentence="x" * size)
    writer.close("interrupted", why="Ctrl-C")
    reader = TraceReader(tmp_path / "t")
    assert [len(event.fields["sentence"]) for event in reader] == [10, 200_000, 65_536, 5]
    assert (reader.status, reader.finished) == ("interrupted", False)
