"""Durations as people write them: ``45s``, ``1500ms``, ``2m``, ``1h30m``, ``250us``, ``1.5s``."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

__all__ = [
    "DURATION_EXAMPLES",
    "DURATION_PATTERN",
    "MAX_US",
    "DurationUs",
    "duration",
    "duration_text",
    "seconds_text",
]

_UNITS_US: Final = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
DURATION_PATTERN: Final = r"^(\d+(\.\d+)?(us|ms|s|m|h|d) ?)+$"
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|m|h|d)", re.ASCII)
_WHOLE: Final = re.compile(DURATION_PATTERN, re.ASCII)
MAX_US: Final = 366 * _UNITS_US["d"]
"""A year of virtual time: longer ones are typing errors, and keep times far from 64 bits."""

DURATION_EXAMPLES: Final = "a time with its unit, such as 45s, 1500ms, 2m, 1h30m or 250us"


class DurationUs(int):
    """A duration in whole microseconds. Plain integers are not taken for durations."""

    __slots__ = ()


def duration(text: str | int) -> DurationUs:
    """Return the duration that ``text`` says; the number 0 needs no unit.

    Raises:
        ValueError: it is not a duration; the message is a sentence that ends a fault.

    """
    if isinstance(text, DurationUs) or (type(text) is int and text == 0):
        return DurationUs(text)
    if isinstance(text, int | float) and text < 0:
        raise ValueError("a time cannot be negative")
    if (
        isinstance(text, str)
        and text.lstrip().startswith("-")
        and any(char.isdigit() for char in text)
    ):
        raise ValueError("a time cannot be negative")
    if not isinstance(text, str) or len(text) > 40 or not _WHOLE.match(text):
        raise ValueError(f"wanted {DURATION_EXAMPLES}")
    total = sum(
        (Fraction(number) * _UNITS_US[unit] for number, unit in _PART.findall(text)),
        Fraction(0),
    )
    if total.denominator != 1:
        raise ValueError("a time is a whole number of microseconds")
    if total > MAX_US:
        raise ValueError("a time is at most 366d")
    return DurationUs(int(total))


def duration_text(us: int) -> str:
    """Return the shortest exact way to write ``us`` microseconds in one unit, as in ``90s``."""
    if us == 0:
        return "0s"
    for unit in ("h", "m", "s", "ms"):
        if us % _UNITS_US[unit] == 0:
            return f"{us // _UNITS_US[unit]}{unit}"
    return f"{us}us"


def seconds_text(us: int) -> str:
    """Return a measured time in seconds, exactly: ``6.011s``, ``20s``, ``0.0005s``."""
    whole, rest = divmod(us, 1_000_000)
    return f"{whole}.{rest:06}".rstrip("0").rstrip(".") + "s"
