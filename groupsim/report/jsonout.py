"""A run as one JSON object: sorted keys, integers in µs, the same bytes for the same run.

docs/json.md describes it.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Final

from groupsim.report.model import Heading, Outcome
from groupsim.report.timeline import Timeline

__all__ = ["JSON_VERSION", "report_object", "to_json"]

JSON_VERSION: Final = 1
"""Raised when a field goes away or changes its meaning; new fields do not raise it."""


def report_object(heading: Heading, timeline: Timeline, outcome: Outcome) -> dict[str, Any]:
    """Return the report as plain data."""
    return {
        "json_version": JSON_VERSION,
        "groupsim": heading.groupsim,
        "scenario": heading.scenario,
        "seed": heading.seed,
        "lesson": heading.lesson,
        "status": outcome.status,
        "end_us": outcome.end_us,
        "events": outcome.events,
        "trace_sha256": outcome.trace_sha256,
        "verdict": outcome.verdict,
        "expectations": [dataclasses.asdict(one) for one in outcome.expectations],
        "groups": {group.group_id: dataclasses.asdict(group) for group in outcome.summary.groups},
        "timeline": [dataclasses.asdict(line) for line in timeline.lines()],
        "timeline_omitted": timeline.omitted,
        "reproduce": outcome.reproduce,
    }


def to_json(report: Any) -> str:
    """Return ``report`` as indented JSON with sorted keys and a closing newline."""
    return json.dumps(report, sort_keys=True, indent=2, ensure_ascii=False) + "\n"
