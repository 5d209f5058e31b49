"""Reports of a run: in sentences, on a terminal, as JSON. They read events and nothing else."""

from __future__ import annotations

from groupsim.report.model import Expectations, Heading, Outcome, Verdict
from groupsim.report.narrator import Narrator
from groupsim.report.record import RunRecord
from groupsim.report.timeline import Line, Timeline

__all__ = [
    "Expectations",
    "Heading",
    "Line",
    "Narrator",
    "Outcome",
    "RunRecord",
    "Timeline",
    "Verdict",
]
