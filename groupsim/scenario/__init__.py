"""Scenarios: YAML files (or Python values) to simulations, and the verdict on a run."""

from __future__ import annotations

from groupsim.scenario.catalogue import catalogue, load_scenario
from groupsim.scenario.durations import duration
from groupsim.scenario.faults import Fault, ScenarioError
from groupsim.scenario.loader import parse_scenario
from groupsim.scenario.model import Scenario

__all__ = [
    "Fault",
    "Scenario",
    "ScenarioError",
    "catalogue",
    "duration",
    "load_scenario",
    "parse_scenario",
]
