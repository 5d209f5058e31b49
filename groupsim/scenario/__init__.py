"""Scenarios: YAML files (or Python values) to simulations, and the verdict on a run."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from groupsim.scenario.catalogue import catalogue, load_scenario
from groupsim.scenario.durations import duration
from groupsim.scenario.faults import Fault, ScenarioError
from groupsim.scenario.loader import parse_scenario
from groupsim.scenario.model import Scenario

if TYPE_CHECKING:
    from groupsim.scenario.assembly import build as build
    from groupsim.scenario.run import RunResult as RunResult
    from groupsim.scenario.run import run_scenario as run_scenario

__all__ = [
    "Fault",
    "RunResult",
    "Scenario",
    "ScenarioError",
    "build",
    "catalogue",
    "duration",
    "load_scenario",
    "parse_scenario",
    "run_scenario",
]

_LATE = {
    "RunResult": "groupsim.scenario.run",
    "build": "groupsim.scenario.assembly",
    "run_scenario": "groupsim.scenario.run",
}


def __getattr__(name: str) -> Any:
    """Import what needs the whole runtime only when it is asked for."""
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATE[name]), name)
