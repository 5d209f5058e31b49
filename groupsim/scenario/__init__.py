"""Scenarios: YAML files (or Python values) to simulations, and the verdict on a run."""

from __future__ import annotations

from groupsim.scenario.durations import duration
from groupsim.scenario.faults import Fault, ScenarioError
from groupsim.scenario.loader import parse_scenario
from groupsim.scenario.model import Scenario

__all__ = ["Fault", "Scenario", "ScenarioError", "duration", "parse_scenario"]
