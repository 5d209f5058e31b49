"""Running a scenario: from the model to a verdict, with the trace written on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from groupsim.metrics import Summary
from groupsim.metrics.verdicts import Verdict, overall
from groupsim.runtime import Script, run
from groupsim.scenario.assembly import build
from groupsim.scenario.expectations import Judge
from groupsim.scenario.faults import Fault, ScenarioError
from groupsim.scenario.model import Scenario
from groupsim.scenario.verdicts import ExpectationResult
from groupsim.trace.writer import TraceWriter

__all__ = ["Observer", "RunResult", "run_scenario"]


class Observer(Protocol):
    """Something that follows a run's events while they happen."""

    def attach(self, writer: TraceWriter) -> None:
        """Listen to a trace that is about to be written."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What came of a run. ``end_us`` is the virtual time reached, ``events`` are those of the trace."""

    scenario: Scenario
    seed: int
    verdict: Verdict
    expectations: tuple[ExpectationResult, ...]
    metrics: Summary
    trace_sha256: str
    events: int
    end_us: int


def run_scenario(
    scenario: Scenario,
    *,
    seed: int | None = None,
    trace_path: Path | None = None,
    until: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    observers: Sequence[Observer] = (),
    scripts: Sequence[Script] = (),
) -> RunResult:
    """Run a scenario to its end and judge it.

    Args:
        scenario: what to run.
        seed: the seed; the scenario's own (0, if it does not say) where none is given.
        trace_path: where the trace goes; None: nowhere, but it is hashed all the same.
        until: another end in µs; an earlier one leaves undecided what cannot be known by then.
        on_progress: called now and then with the virtual time in µs and the events so far.
        observers: get the chance to listen to the trace before the run begins.
        scripts: ``async def script(env)`` functions that take part as trio tasks.

    Raises:
        ScenarioError: the scenario needs scripts (by name) that are not given.
        OSError: the trace cannot be written.
        KeyboardInterrupt: the run was interrupted; the trace is closed and says so.

    """
    scenario = _with_scripts(scenario, scripts).ended_at(until)
    seed = scenario.seed if seed is None else seed
    judge = Judge(scenario)
    with TraceWriter(trace_path, scenario=scenario.to_plain(), seed=seed) as writer:
        followers: tuple[Observer, ...] = (judge, *observers)
        for observer in followers:
            observer.attach(writer)
        simulation = build(scenario, seed=seed, trace=writer)
        if on_progress is not None:
            simulation.on_progress = lambda now_us, _: on_progress(now_us, writer.events)
        for script in scripts:
            simulation.add_script(script)
        results: list[ExpectationResult] = []

        def finish() -> None:
            results.extend(judge.results(simulation.now_us))
            for result in results:
                writer.event(
                    simulation.now_us,
                    0,
                    "expectation",
                    group=result.group,
                    expectation=result.expectation,
                    verdict=result.verdict,
                    found=result.found,
                )

        run(simulation, scenario.end_us, finish=finish)
    return RunResult(
        scenario=scenario,
        seed=seed,
        verdict=overall(result.verdict for result in results),
        expectations=tuple(results),
        metrics=judge.metrics.finish(simulation.now_us),
        trace_sha256=writer.sha256(),
        events=writer.events,
        end_us=simulation.now_us,
    )


def _with_scripts(scenario: Scenario, scripts: Sequence[Script]) -> Scenario:
    """Return the scenario with the names of the scripts that take part.

    A recorded run names its scripts, so that a replay without them is refused and not different.
    """
    names = tuple(f"{script.__module__}:{script.__qualname__}" for script in scripts)
    if scenario.scripts and scenario.scripts != names:
        problem = f"this run had scripts: {', '.join(scenario.scripts)}"
        allowed = "run_scenario(..., scripts=[...]) with these functions, from Python"
        fault = Fault(
            source=scenario.name, line=0, column=0, path=(), problem=problem, allowed=allowed
        )
        raise ScenarioError((fault,))
    return scenario.model_copy(update={"scripts": names})
