"""Verdicts: from what was seen at the moments that matter to met, not met or undecided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from groupsim.metrics.verdicts import MET, NOT_MET, UNDECIDED, Verdict
from groupsim.scenario.durations import duration_text, seconds_text

__all__ = [
    "Check",
    "ExpectationResult",
    "expectation_text",
    "state_verdict",
    "value_verdict",
    "window_verdict",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectationResult:
    """How one expectation of one group came out; ``expectation`` and ``found`` are for people."""

    group: str
    expectation: str
    verdict: Verdict
    found: str


@dataclass(slots=True)
class Check:
    """One expectation being watched: the moments it needs, and what they showed."""

    group: str
    kind: str
    wanted: Any
    text: str
    measure: Callable[[], Any]
    start_us: int | None
    end_us: int
    start: Any = None
    end: Any = None
    ended: bool = False


def state_verdict(check: Check) -> tuple[Verdict, str]:
    """Judge a state at one moment; also say what was found."""
    if not check.ended:
        return UNDECIDED, "the run ended before"
    state, since_us, generation = check.end
    wanted = "Stable" if check.kind == "stable_by" else check.wanted.is_
    found = f"{state} since {seconds_text(since_us)}, generation {generation}"
    return (MET if state == wanted else NOT_MET), found


def value_verdict(check: Check) -> tuple[Verdict, str]:
    """Judge a number at one moment; also say what was found."""
    if not check.ended:
        return UNDECIDED, "the run ended before"
    if check.end is None:
        return NOT_MET, "nothing"
    low, high = _bounds(check.wanted)
    return _within(check.end, low, high), str(check.end)


def window_verdict(check: Check) -> tuple[Verdict, str]:
    """Judge what came together in a window; also say what was found."""
    began = check.start_us is None or check.start is not None
    now = check.end if check.ended else check.measure()
    amount = now - (check.start or 0) if began else 0
    low, high = _bounds(check.wanted)
    found = _shown(check.kind, amount)
    if check.ended or (high is not None and amount > high):
        return _within(amount, low, high), found
    if high is None and low is not None and amount >= low:
        return MET, found
    return UNDECIDED, f"{found} when the run ended"


def _within(amount: int, low: int | None, high: int | None) -> Verdict:
    too_low = low is not None and amount < low
    return NOT_MET if too_low or (high is not None and amount > high) else MET


def _bounds(wanted: Any) -> tuple[int | None, int | None]:
    exactly = getattr(wanted, "exactly", None)
    return (wanted.at_least, wanted.at_most) if exactly is None else (exactly, exactly)


_TIMES: Final = ("unavailable", "frozen", "overlap")


def _shown(kind: str, amount: int) -> str:
    # the unit is that of the bound: partition-seconds are written as seconds
    return f"{seconds_text(amount)} over all partitions" if kind in _TIMES else str(amount)


def expectation_text(kind: str, wanted: Any) -> str:
    """Return an expectation in words, as it is written in the file."""
    words = kind.replace("_", " ")
    if isinstance(wanted, int):
        return f"{words} {duration_text(wanted)}"
    plain = wanted.model_dump(mode="json", by_alias=True, exclude_none=True)
    parts = []
    for name, value in plain.items():
        shown = ", ".join(value) if isinstance(value, list) else str(value)
        parts.append(f"{name.replace('_', ' ')} {shown}")
    return f"{words} {', '.join(parts)}"
