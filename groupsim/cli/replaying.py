"""``groupsim replay``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from groupsim.cli.progress import Progress
from groupsim.cli.statuses import DIFFERENT, MET, InputError
from groupsim.report.events import event_text
from groupsim.scenario import Scenario, ScenarioError
from groupsim.scenario.run import run_scenario
from groupsim.trace.diff import Difference
from groupsim.trace.events import Event
from groupsim.trace.replay import Replay, replay

__all__ = ["replay_and_report"]


def replay_and_report(path: Path) -> int:
    """Run the trace at ``path`` again, print what was found, return the exit status.

    Raises:
        InputError: this groupsim cannot run the recorded scenario.
        TraceError: the trace cannot be read.
        OSError: a file cannot be opened.

    """
    found = replay(path, _runner)
    sys.stdout.write(_text(path, found))
    return MET if found.difference is None else DIFFERENT


def _runner(plain: Mapping[str, Any], seed: int, path: Path, until_us: int | None) -> None:
    try:
        scenario = Scenario.from_plain(plain).ended_at(until_us)
    except ScenarioError as error:
        raise InputError(f"this groupsim cannot run the recorded scenario:\n{error}") from None
    progress = Progress(scenario.end_us)
    try:
        run_scenario(scenario, seed=seed, trace_path=path, on_progress=progress)
    except BaseException as error:
        error.add_note(f"seed {seed}")
        raise
    finally:
        progress.close()


def _text(path: Path, found: Replay) -> str:
    versions = ""
    if found.recorded_by != found.replayed_by:
        versions = f"recorded by groupsim {found.recorded_by}, replayed by {found.replayed_by}\n"
    partial = ""
    if found.status != "finished":
        partial = f"the recording is {found.status}: it was compared as far as it goes\n"
    if found.difference is None:
        return f"{versions}{partial}{path}: all {found.equal} events are equal\n"
    return versions + partial + _difference(path, found.equal, found.difference)


def _difference(path: Path, equal: int, difference: Difference) -> str:
    lines = [f"{path}: different after {equal} equal events", ""]
    lines += [f"            {event_text(event)}" for event in difference.context]
    lines += [
        f"  recorded  {_or_nothing(difference.first)}",
        f"  replayed  {_or_nothing(difference.second)}",
        "",
    ]
    if difference.fields:
        lines.append(f"different: {', '.join(difference.fields)}")
    return "\n".join(lines).rstrip() + "\n"


def _or_nothing(event: Event | None) -> str:
    return "(no more events)" if event is None else event_text(event)
