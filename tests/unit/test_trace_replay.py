"""Comparing traces, and replaying one with an injected runner."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from groupsim.trace.diff import compare
from groupsim.trace.errors import TraceError
from groupsim.trace.reader import TraceReader
from groupsim.trace.replay import replay
from groupsim.trace.writer import TraceWriter

from .trace_samples import fill, small_trace


def _again(scenario: Mapping[str, Any], seed: int, path: Path, until_us: int | None) -> None:
    with TraceWriter(path, scenario=scenario, seed=seed) as writer:
        fill(writer)


def _otherwise(scenario: Mapping[str, Any], seed: int, path: Path, until_us: int | None) -> None:
    with TraceWriter(path, scenario=scenario, seed=seed) as writer:
        fill(writer, sentence="another")


def test_an_equal_replay(tmp_path: Path) -> None:
    """The second run gets scenario and seed from the header; all events are equal."""
    small_trace(tmp_path / "t")
    found = replay(tmp_path / "t", _again)
    assert (found.equal, found.difference, found.status) == (10, None, "finished")


def test_the_first_difference_has_context(tmp_path: Path) -> None:
    """A difference names the fields that differ and the events before it."""
    small_trace(tmp_path / "t")
    found = replay(tmp_path / "t", _otherwise)
    difference = found.difference
    assert difference is not None
    assert found.equal == 7
    assert difference.fields == ("sentence",)
    assert difference.first is not None
    assert difference.second is not None
    assert difference.first.fields["sentence"] == "the first"
    assert difference.second.fields["sentence"] == "another"
    assert [event.id for event in difference.context] == [3, 4, 5, 6, 7]


def test_unfinished_recordings_are_compared_as_far_as_they_go(tmp_path: Path) -> None:
    """What a killed run left behind is a prefix of the second run."""
    asked: list[int | None] = []

    def again(scenario: Mapping[str, Any], seed: int, path: Path, until_us: int | None) -> None:
        asked.append(until_us)
        _again(scenario, seed, path, until_us)

    small_trace(tmp_path / "whole")
    raw = (tmp_path / "whole").read_bytes()
    at = raw.index(b"disk")
    (tmp_path / "cut").write_bytes(raw[:at])
    found = replay(tmp_path / "cut", again)
    assert (found.equal, found.difference, found.status) == (8, None, "unfinished")
    assert asked[-1] == 3_001, "the second run is needed up to the last event only"
    interrupted = small_trace(tmp_path / "stopped", end=None)
    interrupted.close("interrupted")
    assert replay(tmp_path / "stopped", _again).difference is None


def test_missing_and_additional_events_are_differences(tmp_path: Path) -> None:
    """A finished trace must end where the other one ends."""
    small_trace(tmp_path / "short")
    with small_trace(tmp_path / "long", end=None) as writer:
        writer.event(70_000_000, 0, "script", who="s", sentence="more")
    short, long = TraceReader(tmp_path / "short"), TraceReader(tmp_path / "long")
    for one, two in ((short, long), (long, short)):
        difference = compare(one, two).difference
        assert difference is not None
        assert (difference.first is None) == (one is short)
        assert (difference.second is None) == (two is short)
    assert compare(short, long, prefix=True).difference is None
    assert compare(long, short, prefix=True).difference is not None


def test_kinds_are_compared_by_name(tmp_path: Path) -> None:
    """Traces of versions with other numbers for the same kinds can be compared."""
    small_trace(tmp_path / "one")
    header = TraceReader(tmp_path / "one").header
    other = TraceWriter(tmp_path / "two", scenario=header.scenario, seed=header.seed)
    shifted = [other.kinds.all[-1], *other.kinds.all[:-1]]
    _rewrite(tmp_path / "one", tmp_path / "two", [kind.name for kind in shifted])
    assert compare(TraceReader(tmp_path / "one"), TraceReader(tmp_path / "two")).equal == 10


def _rewrite(source: Path, target: Path, order: list[str]) -> None:
    import msgpack

    reader = TraceReader(source)
    fields = dict(reader.header.kinds)
    header = {
        "format": "groupsim-trace",
        "version": 1,
        "groupsim": "0",
        "scenario": reader.header.scenario,
        "seed": 7,
        "kinds": [[name, fields[name]] for name in order],
    }
    parts = [msgpack.packb(header)]
    for number, time_us, cause, kind, values in reader.raw():
        name = reader.header.kinds[kind][0]
        parts.append(msgpack.packb([number, time_us, cause, order.index(name), values]))
    target.write_bytes(b"".join(parts))


def test_damage_and_missing_scenarios_are_found_before_anything_runs(tmp_path: Path) -> None:
    """Nothing is run for a trace that cannot be compared."""

    def never(scenario: Mapping[str, Any], seed: int, path: Path, until_us: int | None) -> None:
        raise AssertionError("ran")

    TraceWriter(tmp_path / "bare").close()
    with pytest.raises(TraceError, match="no scenario"):
        replay(tmp_path / "bare", never)
    small_trace(tmp_path / "t")
    raw = bytearray((tmp_path / "t").read_bytes())
    raw[raw.index(b"disk")] ^= 1
    (tmp_path / "t").write_bytes(raw)
    with pytest.raises(TraceError, match="hash does not match"):
        replay(tmp_path / "t", never)
