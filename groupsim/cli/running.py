"""``groupsim run``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from groupsim import __version__
from groupsim.cli.moments import moment_us
from groupsim.cli.progress import Progress
from groupsim.cli.statuses import (
    INTERRUPTED,
    MET,
    NOT_MET,
    UNDECIDED,
    complain,
    is_interruption,
    silence,
)
from groupsim.report import Heading, Outcome, RunRecord
from groupsim.scenario import Scenario, load_scenario
from groupsim.scenario.run import run_scenario

__all__ = ["run_and_report"]

_STATUS_OF: Final[Mapping[str, int]] = {"met": MET, "not met": NOT_MET, "undecided": UNDECIDED}


def run_and_report(
    name: str, *, seed: int | None, trace: Path | None, as_json: bool, until: str | None
) -> int:
    """Run a scenario, print its report, return the exit status.

    Raises:
        InputError: an option cannot be used.
        ScenarioError: the scenario has faults.
        OSError: the trace cannot be written.

    """
    scenario = load_scenario(name).ended_at(moment_us("--until", until))
    if seed is None:
        seed = scenario.seed
    command = ["groupsim", "run", name, "--seed", str(seed)]
    command += ["--until", until] if until is not None else []
    record = RunRecord()
    status = "finished"
    try:
        _run(scenario, seed, trace, record)
    except BaseException as error:
        if not is_interruption(error) or record.writer is None:
            error.add_note(f"seed {seed}")
            raise
        status = "interrupted"
    outcome = _outcome(record, scenario, status, shlex.join(command))
    heading = Heading(
        scenario=scenario.name,
        seed=seed,
        groupsim=__version__,
        lesson=scenario.lesson or scenario.title,
    )
    exit_status = INTERRUPTED if status == "interrupted" else _STATUS_OF[outcome.verdict]
    try:
        _print(heading, record, outcome, as_json=as_json)
        sys.stdout.flush()
    except BrokenPipeError:  # the verdict is known all the same
        silence()
    if trace is not None and not as_json:
        complain(f"trace written to {trace}")
    return exit_status


def _run(scenario: Scenario, seed: int, trace: Path | None, record: RunRecord) -> None:
    progress = Progress(scenario.end_us)
    try:
        run_scenario(
            scenario, seed=seed, trace_path=trace, on_progress=progress, observers=(record,)
        )
    finally:
        progress.close()


def _outcome(record: RunRecord, scenario: Scenario, status: str, reproduce: str) -> Outcome:
    writer = record.writer
    assert writer is not None, "run_scenario attaches its observers"
    finished = status == "finished"
    return record.outcome(
        status=status,
        why="" if finished else "the run was interrupted",
        end_us=scenario.end_us if finished else writer.time_us,
        events=writer.events,
        trace_sha256=writer.sha256(),
        reproduce=reproduce,
    )


def _print(heading: Heading, record: RunRecord, outcome: Outcome, *, as_json: bool) -> None:
    if as_json:
        from groupsim.report.jsonout import report_object, to_json

        sys.stdout.write(to_json(report_object(heading, record.timeline, outcome)))
        return
    from groupsim.report.terminal import TerminalReport, console_for

    report = TerminalReport(console_for(sys.stdout))
    report.heading(heading)
    report.section("what happened")
    several = len(outcome.summary.groups) > 1
    for line in record.timeline:
        report.line(line, group=several)
    for group in outcome.summary.groups:
        report.group(group, outcome.end_us)
    report.verdict(outcome)
    report.footer(outcome)
