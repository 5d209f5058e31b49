"""The kernel: it owns time. One heap of actions, ordered by (time, sequence), and nothing else.

Theory of operation. Whatever will happen (a delivery, a timer, a fault) is an *action* in the heap. The
pump takes the earliest, sets the clock to its time and runs it to its end. Actions of the same
time run in the order in which they were asked for. An action asked for "now" while another runs is
run after it, at the same time. Time is an integer in microseconds and never goes back.

The kernel knows nothing of trio. A driver (``groupsim.runtime.drivers``) calls ``pump`` and sees to
trio tasks in between; an action that makes a task runnable says so with ``wake``, and the
pump then stops behind it, so that the task acts before anything else happens.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

__all__ = ["Action", "Handle", "Kernel"]

Action = Callable[[Any], object]
"""What the hot paths push: a function of one argument (so that no closure is needed)."""

_DEAD_KEPT = 64  # below this many cancelled entries, sweeping costs more than it frees


class Handle:
    """An action that can be taken back until it runs."""

    __slots__ = ("_action", "_kernel", "time_us")

    def __init__(self, kernel: Kernel, time_us: int, action: Callable[[], object]) -> None:
        self._kernel = kernel
        self._action: Callable[[], object] | None = action
        self.time_us = time_us

    @property
    def pending(self) -> bool:
        """Whether the action has neither run nor been cancelled."""
        return self._action is not None

    def cancel(self) -> None:
        """Take the action back. Does nothing when it has run or was cancelled before."""
        if self._action is not None:
            self._action = None
            self._kernel._buried()


def _fire(handle: Handle) -> None:
    action = handle._action
    if action is None:
        handle._kernel._exhumed()
    else:
        handle._action = None
        action()


class Kernel:
    """Virtual time and the actions that lie ahead.

    ``now_us`` is the current time; only the pump and the drivers set it. ``woken`` tells that an
    action has made a trio task runnable. ``executed`` counts actions since the start.

    ``heap`` and ``tick`` are for ``Pulse``, which carries most messages: it pushes by itself,
    ``heappush(kernel.heap, (time_us, kernel.tick(), action, argument))``, because a call costs as
    much as the push, and never into the past. All others use ``push``.
    """

    __slots__ = ("_dead", "executed", "heap", "now_us", "tick", "woken")

    def __init__(self, start_us: int = 0) -> None:
        self.now_us = start_us
        self.woken = False
        self.executed = 0
        self.heap: list[tuple[int, int, Action, Any]] = []
        self.tick = count(1).__next__  # the sequence: a C call without an argument is cheapest
        self._dead = 0

    def push(self, time_us: int, action: Action, argument: Any) -> None:
        """Run ``action(argument)`` at ``time_us``: the fast way, which cannot be cancelled.

        Raises:
            ValueError: the time is in the past.

        """
        if time_us < self.now_us:
            raise ValueError(f"time {time_us} µs is in the past; it is {self.now_us} µs")
        heappush(self.heap, (time_us, self.tick(), action, argument))

    def at(self, time_us: int, action: Callable[[], object]) -> Handle:
        """Run ``action()`` at ``time_us``; the handle can cancel it.

        Raises:
            ValueError: the time is in the past.

        """
        handle = Handle(self, time_us, action)
        self.push(time_us, _fire, handle)
        return handle

    def after(self, delay_us: int, action: Callable[[], object]) -> Handle:
        """Run ``action()`` in ``delay_us`` microseconds; 0 means after the current action.

        Raises:
            ValueError: the delay is negative.

        """
        return self.at(self.now_us + delay_us, action)

    def pending(self) -> int:
        """How many actions lie ahead; cancelled ones do not count."""
        return len(self.heap) - self._dead

    def next_us(self) -> int | None:
        """Time of the next action, None when there is none."""
        heap = self.heap
        while heap and heap[0][2] is _fire and not heap[0][3].pending:
            heappop(heap)
            self._dead -= 1
        return heap[0][0] if heap else None

    def wake(self) -> None:
        """Say that a trio task became runnable: the pump stops behind the current action."""
        self.woken = True

    def pump(self, limit_us: int, budget: int = sys.maxsize) -> int:
        """Run the actions due up to and including ``limit_us``; return how many were run.

        Stops early behind an action that woke a task (``woken`` is then set, the caller clears
        it) and after ``budget`` actions. ``now_us`` stays at the last action's time.
        """
        heap = self.heap
        done = 0
        try:
            for done in range(1, budget + 1):
                try:
                    entry = heappop(heap)
                except IndexError:
                    done -= 1  # noqa: PLW2901
                    break
                time_us, _, action, argument = entry
                if time_us > limit_us:  # cheaper once than a look at heap[0] for every action
                    heappush(heap, entry)
                    done -= 1  # noqa: PLW2901
                    break
                self.now_us = time_us
                action(argument)
                if self.woken:
                    break
        finally:
            self.executed += done
        return done

    def step(self) -> bool:
        """Run the next action, whenever it is due; False when there is none."""
        upcoming = self.next_us()
        return upcoming is not None and self.pump(upcoming, 1) == 1

    def run_until(self, limit_us: int) -> None:
        """Pump up to ``limit_us`` without any tasks and leave the clock there.

        Raises:
            ValueError: the time is in the past.

        """
        while self.pump(limit_us):
            self.woken = False
        self.advance_to(limit_us)

    def advance_to(self, time_us: int) -> None:
        """Set the clock ahead to ``time_us``, where no action may be due before it.

        Raises:
            ValueError: the time is in the past, or an action would be jumped over.

        """
        if time_us < self.now_us:
            raise ValueError(f"time {time_us} µs is in the past; it is {self.now_us} µs")
        upcoming = self.next_us()
        if upcoming is not None and upcoming < time_us:
            raise ValueError(f"an action is due at {upcoming} µs, before {time_us} µs")
        self.now_us = time_us

    def _buried(self) -> None:
        """One more entry of the heap is dead; sweep when they are the greater part."""
        self._dead += 1
        if self._dead > _DEAD_KEPT and self._dead * 2 > len(self.heap):
            # in place: the pump holds on to this list
            self.heap[:] = [e for e in self.heap if e[2] is not _fire or e[3].pending]
            heapify(self.heap)
            self._dead = 0

    def _exhumed(self) -> None:
        self._dead -= 1
