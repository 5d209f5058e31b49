"""The lines of a story, and as many of them as one can read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Line", "Timeline"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a timeline. ``group`` is "" for what concerns no group, or all of them.

    ``tone`` is one of process, ownership, trouble, broker, scenario, client.
    """

    time_us: int
    group: str
    who: str
    text: str
    tone: str


class Timeline:
    """Keeps the first and the last lines of a story: enough to read, however long the run was."""

    def __init__(self, most: int = 400) -> None:
        self._first: list[Line] = []
        self._last: list[Line] = []
        self._half = most // 2
        self.omitted = 0

    def __call__(self, line: Line) -> None:
        """Take the next line."""
        if len(self._first) < self._half:
            self._first.append(line)
            return
        self._last.append(line)
        if len(self._last) > 2 * self._half:  # cut rarely, and by half
            self.omitted += self._half
            del self._last[: self._half]

    def __iter__(self) -> Iterator[Line | None]:
        """Yield the lines, and None where some are left out."""
        yield from self._first
        if self.omitted:
            yield None
        yield from self._last

    def lines(self) -> list[Line]:
        """Return the lines alone."""
        return [line for line in self if line is not None]
