"""The catalogue: every scenario holds what its lesson says, and is the same in every process."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from groupsim.scenario import catalogue, load_scenario, run_scenario
from groupsim.scenario.catalogue import catalogue_names

NAMES = catalogue_names()
WANTED = {
    "first-join",
    "member-id-required",
    "leader-crash",
    "follower-crash",
    "rolling-restart",
    "rolling-restart-static",
    "slow-consumer",
    "gc-pause",
    "eager-deploy",
    "cooperative-deploy",
    "static-restart",
    "double-bounce",
    "mixed-clients",
    "coordinator-failover",
    "static-fencing",
    "poison-message",
}

RUN_ALL = """
import json, sys
from groupsim.scenario import load_scenario, run_scenario
seed = int(sys.argv[1])
results = {name: run_scenario(load_scenario(name), seed=seed) for name in sys.argv[2:]}
hashes = {name: (result.trace_sha256, result.events) for name, result in results.items()}
print(json.dumps(hashes))
"""


def hashes(seed: int, hash_seed: str) -> dict[str, tuple[str, int]]:
    """Trace hashes of the whole catalogue, run in a process of its own."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", RUN_ALL, str(seed), *NAMES]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[object]] = json.loads(done.stdout)
    return {name: (str(sha), int(str(events))) for name, (sha, events) in found.items()}


def test_the_catalogue_is_complete() -> None:
    """What the plan names is there, each with a title of its own."""
    assert set(NAMES) >= WANTED
    titles = [title for _, title in catalogue()]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("name", NAMES)
def test_the_lesson_holds(name: str, seed: int) -> None:
    """Every expectation is met, and not for one seed only."""
    scenario = load_scenario(name)
    result = run_scenario(scenario, seed=seed)
    failed = [each for each in result.expectations if each.verdict != "met"]
    assert failed == []
    assert result.verdict == "met"
    assert result.end_us == scenario.until


def test_runs_are_the_same_in_every_process() -> None:
    """Two processes with different string hashing: the same traces, byte for byte."""
    first, second = hashes(7, "1"), hashes(7, "2")
    assert first == second
    assert len({sha for sha, _ in first.values()}) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_another_seed_is_another_run(name: str) -> None:
    """The seed reaches every scenario."""
    one, other = (run_scenario(load_scenario(name), seed=seed) for seed in (7, 8))
    assert one.trace_sha256 != other.trace_sha256


@pytest.mark.parametrize("name", NAMES)
def test_lessons_can_be_read(name: str) -> None:
    """A lesson has several paragraphs, fits a screen, and says what to try next."""
    lesson = load_scenario(name).lesson
    assert lesson.count("\n\n") >= 2
    assert "Try next" in lesson
    assert max(len(line) for line in lesson.splitlines()) <= 94
    assert len(lesson) <= 2_500


@pytest.mark.parametrize("seed", [5, 8])
def test_cooperative_deploys_stand_still_for_less(seed: int) -> None:
    """What the lesson of cooperative-deploy says: also with a slow leader (seed 8) it beats eager."""
    still = {}
    for name in ("cooperative-deploy", "eager-deploy"):
        group = run_scenario(load_scenario(name), seed=seed).metrics.group("checkout")
        still[name] = group.unavailable_partition_us - group.startup_partition_us
    assert 4 * still["cooperative-deploy"] < 3 * still["eager-deploy"]
