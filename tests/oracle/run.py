"""Differential runs: scripts through Kafka and through ours, compared operation by operation."""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.compare import Difference, first_difference
from tests.oracle.coverage import Cell
from tests.oracle.decisions import Decision, explained, read_decisions
from tests.oracle.driver import Oracle, OracleError
from tests.oracle.generate import generate
from tests.oracle.kafka import KafkaWorld, LivelockError
from tests.oracle.ours import OurWorld
from tests.oracle.script import Script
from tests.oracle.world import Result

__all__ = ["Finding", "Outcome", "check", "compare_with_kafka", "run_scripts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A script on which the two sides part."""

    script: Script
    difference: Difference
    decision: Decision | None = None
    """The decision of ours that explains it; None: nothing does."""


@dataclass(slots=True)
class Outcome:
    """What a run of many scripts came to."""

    scripts: int = 0
    operations: int = 0
    seconds: float = 0.0
    cells: Counter[Cell] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    @property
    def unexplained(self) -> list[Finding]:
        """Findings that no decision explains."""
        return [finding for finding in self.findings if finding.decision is None]


def check(script: Script, kafka: list[Result]) -> Difference | None:
    """Run ``script`` through ours; the first difference from Kafka's results, None if none."""
    world = OurWorld(script)
    for number, operation in enumerate(script.operations):
        try:
            result = world.run(operation)
        except Exception as exc:  # noqa: BLE001 - whatever it is, Kafka did not do it
            return Difference(operation=number, path="exception", kafka=None, ours=repr(exc))
        difference = first_difference(kafka[number], result, number)
        if difference is not None:
            return difference
    return None


def run_kafka(script: Script, oracle: Oracle) -> list[Result] | None:
    """Kafka's results of a script, None when Kafka would spin for ever in it."""
    world = KafkaWorld(script, oracle)
    try:
        for operation in script.operations:
            world.run(operation)
    except LivelockError:
        return None
    return world.results


def compare_with_kafka(script: Script, oracle: Oracle) -> Difference | None:
    """Run a script on both sides; the first difference."""
    kafka = run_kafka(script, oracle)
    return None if kafka is None else check(script, kafka)


def run_scripts(
    *,
    seed: str,
    scripts: int,
    length: int,
    jobs: int,
    first: int = 0,
    stop_after: int = 1,
    on_progress: Callable[[Outcome], None] | None = None,
) -> Outcome:
    """Run scripts ``first`` … ``first + scripts − 1`` of ``seed``, in ``jobs`` processes.

    Ends early after ``stop_after`` unexplained differences.
    """
    started = time.monotonic()
    total = Outcome()
    chunk = max(1, min(50, scripts // max(1, jobs)))
    chunks = [
        (seed, start, min(chunk, first + scripts - start), length)
        for start in range(first, first + scripts, chunk)
    ]
    for part in _parts(chunks, jobs):
        total.scripts += part.scripts
        total.operations += part.operations
        total.cells.update(part.cells)
        total.findings += part.findings
        total.seconds = time.monotonic() - started
        if on_progress:
            on_progress(total)
        if len(total.unexplained) >= stop_after:
            break
    return total


def _parts(chunks: list[tuple[str, int, int, int]], jobs: int) -> Iterator[Outcome]:
    if jobs <= 1:
        try:
            yield from map(_run_chunk, chunks)
        finally:
            while _oracles:
                _oracles.pop().close()
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(_run_chunk, chunks)


_oracles: list[Oracle] = []


def _oracle() -> Oracle:
    # one driver for each process, kept over its chunks; it ends when the process does
    if not _oracles:
        _oracles.append(Oracle())
    return _oracles[0]


def _run_chunk(chunk: tuple[str, int, int, int]) -> Outcome:
    seed, start, count, length = chunk
    outcome = Outcome()
    decisions = read_decisions()
    for index in range(start, start + count):
        script, kafka = generate(seed, index, length, _oracle())
        difference = check(script, kafka.results)
        outcome.scripts += 1
        outcome.operations += len(script.operations)
        outcome.cells.update(kafka.cells)
        if difference is not None:
            decision = explained(difference, decisions)
            outcome.findings.append(
                Finding(script=script, difference=difference, decision=decision)
            )
    return outcome


def same_difference(script: Script, wanted: Difference, oracle: Oracle) -> bool:
    """Does the script still show a difference of the same kind?"""
    try:
        found = compare_with_kafka(script, oracle)
    except (OracleError, LookupError):  # shrunk to something that is no request any more
        return False
    return found is not None and found.kind == wanted.kind


def describe(results: list[Result]) -> list[dict[str, Any]]:
    """What a reader of a transcript wants to see of results: no snapshots."""
    return [
        {key: value for key, value in result.items() if key != "snapshot"} for result in results
    ]
