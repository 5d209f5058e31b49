"""Complaints that come again and again, told once each with a count.

While a broker is away, every client complains several times a second, and nothing else happens: a
wall of lines that says one thing. Complaints are held back until something else is told; those with the
same words, of whomever, then become one line, at the time of the first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from groupsim.report.timeline import Line
from groupsim.report.words import clock, some

__all__ = ["Repeats"]

_COUNT_FROM: Final = 3
"""Fewer of the same stay lines of their own: then who complained when is what one wants to see."""
_MOST_HELD: Final = 200
"""So many different complaints are held back; more of them are no repetition."""


class _Complaint:
    """One complaint: its first few lines, and how often it came."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.whose: dict[str, None] = {}
        self.count = 0
        self.last_us = 0

    def add(self, line: Line) -> None:
        self.count += 1
        self.last_us = line.time_us
        self.whose[line.who] = None
        if self.count < _COUNT_FROM:
            self.lines.append(line)

    def told(self) -> list[Line]:
        if self.count < _COUNT_FROM:
            return self.lines
        first = self.lines[0]
        often = f"{self.count} times until {clock(self.last_us)}"
        if len(self.whose) == 1:
            return [replace(first, text=f"{first.text} ({often})")]
        text = f"{len(self.whose)} members: {first.text} ({often}: {some(sorted(self.whose))})"
        return [replace(first, who="", text=text)]


class Repeats:
    """Holds complaints back for ``tell``. They must come in the order of time."""

    def __init__(self, tell: Callable[[Line], None]) -> None:
        self._tell = tell
        self._held: dict[tuple[str, str], _Complaint] = {}

    def add(self, line: Line) -> None:
        """Take a complaint."""
        key = (line.group, line.text)
        if key not in self._held and len(self._held) >= _MOST_HELD:
            self.flush()
        self._held.setdefault(key, _Complaint()).add(line)

    def flush(self) -> None:
        """Tell what is held back: something else has happened, or the run has ended."""
        held, self._held = self._held, {}
        told = [line for complaint in held.values() for line in complaint.told()]
        for line in sorted(told, key=lambda line: line.time_us):
            self._tell(line)
