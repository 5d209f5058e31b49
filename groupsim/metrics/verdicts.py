"""The three verdicts, and how those of single expectations make that of a run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

__all__ = ["MET", "NOT_MET", "UNDECIDED", "Verdict", "overall"]

Verdict = Literal["met", "not met", "undecided"]
MET: Final = "met"
NOT_MET: Final = "not met"
UNDECIDED: Final = "undecided"


def overall(verdicts: Iterable[str], *, finished: bool = True) -> Verdict:
    """Return the verdict of a whole run.

    One broken expectation is enough for "not met"; after that one that is undecided counts, and a
    run that did not come to its end is undecided.
    """
    seen = set(verdicts)
    if NOT_MET in seen:
        return NOT_MET
    return UNDECIDED if UNDECIDED in seen or not finished else MET
