"""The same kernel under real time: it waits for trio's own clock instead of moving it.

Used where the outside world takes part (the wire server). An action runs as soon as its time has
come, in the same order as under virtual time, but perhaps late; nothing here is deterministic.
"""

from __future__ import annotations

from typing import Any

import trio

from groupsim.runtime.drivers import BUDGET
from groupsim.runtime.kernel import Action, Kernel

__all__ = ["RealTimeKernel", "run_realtime"]

_NEVER = 1 << 62


class RealTimeKernel(Kernel):
    """A kernel that trio tasks may add actions to while its driver sleeps.

    Make it inside a trio run: its time starts to run at once. A task that brings something from
    outside calls ``catch_up`` first, so that ``now_us`` is the time of what it brings.
    """

    __slots__ = ("_origin", "_origin_us", "_poked", "_sleeps_until_us")

    def __init__(self, start_us: int = 0) -> None:
        super().__init__(start_us)
        self._origin = trio.current_time()
        self._origin_us = start_us
        self._poked = trio.Event()
        self._sleeps_until_us = -1

    def clock_us(self) -> int:
        """What ``now_us`` ought to be by trio's clock."""
        return self._origin_us + int((trio.current_time() - self._origin) * 1_000_000)

    def push(self, time_us: int, action: Action, argument: Any) -> None:
        """See ``Kernel.push``; wakes the driver when it would sleep too long."""
        super().push(time_us, action, argument)
        if time_us < self._sleeps_until_us:
            self._poked.set()

    def catch_up(self) -> None:
        """Run what is due by now and set the clock."""
        now_us = max(self.clock_us(), self.now_us)
        while self.pump(now_us):
            self.woken = False  # the tasks run when the caller next lets go
        self.advance_to(now_us)

    async def sleep_until_due(self, until_us: int) -> None:
        """Sleep until the next action is due or ``until_us``, whichever is first."""
        upcoming = self.next_us()
        wake_us = until_us if upcoming is None else min(upcoming, until_us)
        self._poked = trio.Event()
        self._sleeps_until_us = wake_us
        with trio.move_on_at(self._origin + (wake_us - self._origin_us) / 1_000_000):
            await self._poked.wait()
        self._sleeps_until_us = -1


@trio.lowlevel.enable_ki_protection
async def run_realtime(kernel: RealTimeKernel, until_us: int | None = None) -> None:
    """Run the kernel by trio's clock until ``until_us`` (None: until cancelled)."""
    end_us = _NEVER if until_us is None else until_us
    while True:
        now_us = min(max(kernel.clock_us(), kernel.now_us), end_us)
        executed = kernel.pump(now_us, BUDGET)
        if kernel.woken or executed == BUDGET:
            kernel.woken = False
            await trio.lowlevel.checkpoint()
            continue
        kernel.advance_to(now_us)
        if now_us >= end_us:
            return
        await kernel.sleep_until_due(end_us)
