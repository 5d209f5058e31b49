"""Running a trace again from its header, and comparing what happens event by event."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groupsim.trace.diff import Difference, compare
from groupsim.trace.errors import TraceError
from groupsim.trace.reader import TraceReader

__all__ = ["Replay", "Runner", "replay"]

Runner = Callable[[Mapping[str, Any], int, Path, int | None], None]
"""Runs a scenario (plain data, as in a header) with a seed, and writes the trace to the path. The last
argument is the virtual time in µs up to which it is needed; None: to its end.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What a replay found. ``status`` is that of the recording; an unfinished or interrupted one
    is compared as far as it goes. ``recorded_by`` and ``replayed_by`` are groupsim versions.
    """

    status: str
    equal: int
    difference: Difference | None
    recorded_by: str
    replayed_by: str


def replay(path: Path, runner: Runner) -> Replay:
    """Run the trace at ``path`` again with ``runner`` and compare the two.

    Raises:
        OSError: the trace, or a temporary file for the second run, cannot be opened.
        TraceError: the trace is damaged, or holds no scenario to run.

    """
    recorded = TraceReader(path)
    if not recorded.header.scenario:
        raise TraceError(str(path), 0, "the header holds no scenario, so it cannot be run again")
    status = _status(recorded)
    with tempfile.TemporaryDirectory(prefix="groupsim-replay-") as folder:
        again = Path(folder) / "replay"
        until_us = None if status == "finished" else recorded.last_time_us + 1
        runner(recorded.header.scenario, recorded.header.seed, again, until_us)
        replayed = TraceReader(again)
        found = compare(recorded, replayed, prefix=status != "finished")
    return Replay(
        status=status,
        equal=found.equal,
        difference=found.difference,
        recorded_by=recorded.header.groupsim,
        replayed_by=replayed.header.groupsim,
    )


def _status(reader: TraceReader) -> str:
    """Read to the end once: damage is found before anything is run."""
    for _ in reader.raw():
        pass
    return reader.status
