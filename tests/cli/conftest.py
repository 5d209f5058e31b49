"""Running the command line: in this process where that is enough, in one of its own where not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from groupsim.cli.statuses import run_guarded

SMALL = """\
groupsim: 1
name: small
title: A small one
topics: {orders: {partitions: 4}}
groups:
  g:
    subscribe: orders
    members: [{name: c, count: 2}]
timeline:
  - {at: 20s, stop: c-2}
until: 30s
expect:
  - {group: g, stable_by: 10s}
  - {group: g, rebalances: {at_most: 2}}
"""

SAME_PATH = os.pathsep.join(path for path in sys.path if path)
"""What makes a process of its own import what this one does."""


@dataclass(frozen=True)
class Ran:
    """What came of a command."""

    status: int
    out: str
    err: str


Command = Callable[..., Ran]


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run in an empty folder, with nothing in the environment that changes output."""
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "GROUPSIM_DEBUG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def groupsim(capsys: pytest.CaptureFixture[str]) -> Command:
    """Return a function that runs a command in this process."""

    def run(*arguments: str) -> Ran:
        status = run_guarded(arguments)
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return run


@pytest.fixture
def small() -> str:
    """Return the name of a file with a small scenario, in the folder commands run in."""
    Path("small.yaml").write_text(SMALL)
    return "small.yaml"


@pytest.fixture
def recorded(groupsim: Command, small: str) -> Path:
    """Return a trace of the small scenario."""
    assert groupsim("run", small, "--seed", "7", "--trace", "t").status == 0
    return Path("t")


def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Start a command in a process of its own, in the present folder."""
    return subprocess.Popen(
        [sys.executable, "-m", "groupsim", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": SAME_PATH, **environment},
    )


def finish(process: subprocess.Popen[str]) -> Ran:
    """Wait for a command started with ``start``."""
    out, err = process.communicate(timeout=120)
    return Ran(process.returncode, out, err)
