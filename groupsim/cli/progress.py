"""The progress line of a run: on standard error, on a terminal only, the one place that knows
what time it really is.
"""

from __future__ import annotations

import sys
import time
from typing import Final

from groupsim.report.words import clock

__all__ = ["Progress"]

EVERY_S: Final = 0.1
"""Fast enough to look alive, slow enough to cost nothing."""


class Progress:
    """Call it with virtual time and the number of events; close it before anything else is printed."""

    def __init__(self, end_us: int) -> None:
        self._end_us = end_us
        self._shown = False
        self._wanted = sys.stderr.isatty()
        self._started = self._last = time.monotonic()

    def __call__(self, now_us: int, events: int) -> None:
        """Show where the run is, if it is time for it."""
        if not self._wanted:
            return
        now = time.monotonic()
        if now - self._last < EVERY_S:
            return
        self._last = now
        self._shown = True
        rate = round(events / max(now - self._started, EVERY_S))
        line = f"{clock(now_us)} of {clock(self._end_us)}  {events:,} events  {rate:,}/s"
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()

    def close(self) -> None:
        """Take the line away."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False
