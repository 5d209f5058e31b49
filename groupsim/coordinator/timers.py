"""Keyed timers on one queue: they fire in order of (deadline, arming).

Kafka arms a fresh timer for every heartbeat. Here a timer that moves to a later deadline leaves
its place in the queue as it is; when that place comes up, the timer is put where it belongs.
The order of firing is exactly that of a fresh schedule, and a heartbeat costs two assignments.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

__all__ = ["QUIET_KINDS", "Timer", "TimerQueue"]

QUIET_KINDS = ("gauge", "expiration")
"""Kinds without notes: every partition has them all the time, and they tell nothing (T-7, T-9)."""

_COMPACT_ABOVE = 1024  # below this many dead places a rebuild is not worth its cost


class Timer:
    """One armed timer.

    Attributes:
        key: Kafka's key; arming the same key again replaces the timer.
        kind: which of the rule book's timers it is (see ``effects.TimerArmed``).
        deadline_ms: when it fires.
        sequence: number of its last arming, over all timers of the broker.
        owner: the member whose session it is, or the partition's pipeline that waits.

    """

    __slots__ = ("action", "alive", "deadline_ms", "key", "kind", "owner", "place", "sequence")

    def __init__(self, key: str, kind: str, action: Callable[[], None]) -> None:
        self.key = key
        self.kind = kind
        self.action = action
        self.owner: object = None
        self.alive = True
        self.deadline_ms = 0
        self.sequence = 0
        self.place = (0, 0)


class TimerQueue:
    """All timers of one broker."""

    __slots__ = ("_dead", "_heap", "sequence")

    def __init__(self) -> None:
        self.sequence = 0
        self._heap: list[tuple[int, int, Timer]] = []
        self._dead = 0

    def add(self, timer: Timer, deadline_ms: int) -> None:
        """Arm a new timer."""
        self.sequence += 1
        timer.deadline_ms = deadline_ms
        timer.sequence = self.sequence
        self._push(timer)

    def move(self, timer: Timer, deadline_ms: int) -> None:
        """Arm a living timer again, as if it were new."""
        self.sequence += 1
        timer.deadline_ms = deadline_ms
        timer.sequence = self.sequence
        if deadline_ms < timer.place[0]:  # to an earlier time: its place would come up too late
            self._dead += 1
            self._push(timer)

    def cancel(self, timer: Timer) -> None:
        """Disarm a timer, if it is armed."""
        if not timer.alive:
            return
        timer.alive = False
        self._dead += 1
        if self._dead > _COMPACT_ABOVE and self._dead * 2 > len(self._heap):
            self._heap = [
                entry for entry in self._heap if entry[2].alive and entry[2].place == entry[:2]
            ]
            heapq.heapify(self._heap)
            self._dead = 0

    def clear(self) -> None:
        """Disarm all timers."""
        for _, _, timer in self._heap:
            timer.alive = False
        self._heap.clear()
        self._dead = 0

    def next_deadline_ms(self) -> int | None:
        """A lower bound of the next deadline; ``None`` when no timer is armed."""
        heap = self._heap
        while heap:
            deadline_ms, sequence, timer = heap[0]
            if timer.alive and timer.place == (deadline_ms, sequence):
                return deadline_ms
            heapq.heappop(heap)
            self._dead -= 1
        return None

    def first_due(self, now_ms: int) -> Timer | None:
        """The timer that is the next to fire, if its deadline is not after ``now_ms``."""
        heap = self._heap
        while (deadline_ms := self.next_deadline_ms()) is not None and deadline_ms <= now_ms:
            timer = heap[0][2]
            if timer.sequence == timer.place[1]:
                return timer
            timer.place = (timer.deadline_ms, timer.sequence)
            heapq.heapreplace(heap, (timer.deadline_ms, timer.sequence, timer))
        return None

    def take(self, timer: Timer) -> None:
        """Remove what ``first_due`` returned: it fires now."""
        heapq.heappop(self._heap)
        timer.alive = False

    def _push(self, timer: Timer) -> None:
        timer.place = (timer.deadline_ms, timer.sequence)
        heapq.heappush(self._heap, (timer.deadline_ms, timer.sequence, timer))
