"""Drivers: they pump a kernel inside a trio run, under virtual or under real time.

Virtual time. The clock of the trio run is a ``trio.testing.MockClock`` that this module alone moves, in
step with the kernel. At every instant, in this order:

1. trio's own deadlines (``trio.sleep``, ``move_on_after``) that have come, the earliest first;
2. the kernel's actions, by sequence; behind one that woke a task the world is left to come to rest.

Deadlines go first because trio would fire them anyway as soon as a kernel action of the same
instant lets the scheduler run; this way the order is the same whether or not it does.

Exactness. trio counts seconds in floats. A deadline is taken to be the microsecond nearest to it, and
whenever kernel actions wake a task the clock is set from the kernel's integer, never by adding up
steps. What is left is the rounding of trio's own sums in a chain of plain sleeps: below 10⁻⁸ µs
each in the first minutes of a run, 0.002 µs after a virtual year. Two deadlines that fall into the
same microsecond fire in the order of their floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from groupsim.runtime.kernel import Kernel

__all__ = ["ClockError", "run_virtual"]

BUDGET = 4096
"""Actions between two checkpoints: some 20 ms, so that Ctrl-C is obeyed at once."""

_NEVER = 1 << 62


class ClockError(RuntimeError):
    """The trio run does not have the clock that the driver needs."""


class _VirtualClock:
    """The MockClock of this trio run, read and set in the kernel's microseconds."""

    def __init__(self, kernel: Kernel) -> None:
        clock = trio.lowlevel.current_clock()
        if not isinstance(clock, MockClock):
            raise ClockError(
                "virtual time needs trio.run(..., clock=trio.testing.MockClock()); "
                f"this run has {type(clock).__name__}"
            )
        if clock.rate != 0 or clock.autojump_threshold != math.inf:
            raise ClockError("the MockClock must stand still: rate 0 and no autojump_threshold")
        self._clock = clock
        self._origin = clock.current_time()
        self._origin_us = kernel.now_us

    def set(self, time_us: int) -> None:
        """Set the clock to ``time_us``; it may already be a hair (a float's last bit) past it."""
        self._jump_to(self._origin + (time_us - self._origin_us) / 1_000_000)

    def next_deadline_us(self) -> int | None:
        """The microsecond of trio's next deadline that is still to come, None if there is none."""
        left = trio.lowlevel.current_statistics().seconds_to_next_deadline
        if left == math.inf:
            return None
        deadline = self._clock.current_time() + left
        # never before the clock: a deadline in the past fires as soon as the scheduler runs
        return round((deadline - self._origin) * 1_000_000) + self._origin_us

    def jump_to_deadline(self) -> None:
        """Move to trio's next deadline exactly, so that it fires, and not one beyond it."""
        while (left := trio.lowlevel.current_statistics().seconds_to_next_deadline) > 0:
            now = self._clock.current_time()
            self._jump_to(max(now + left, math.nextafter(now, math.inf)))

    def _jump_to(self, seconds: float) -> None:
        now = self._clock.current_time()
        while now < seconds:  # base + (target - base) may fall short of the target by one bit
            self._clock.jump(max(seconds - now, math.ulp(now)))
            now = self._clock.current_time()


@trio.lowlevel.enable_ki_protection
async def run_virtual(
    kernel: Kernel, until_us: int, on_progress: Callable[[], None] | None = None
) -> None:
    """Run the kernel under virtual time until ``until_us``, that instant included.

    The other tasks of this trio run live in the same time. Returns with the clocks of kernel and
    trio at ``until_us``. Cancellation and Ctrl-C get through between actions, never inside one.
    ``on_progress`` is called now and then, every few thousand actions.

    Raises:
        ClockError: the trio run's clock is not a MockClock that stands still.

    """
    clock = _VirtualClock(kernel)
    told = kernel.executed
    await wait_all_tasks_blocked()
    while True:
        deadline_us = clock.next_deadline_us()
        if deadline_us is None:
            deadline_us = _NEVER
        executed = kernel.pump(min(until_us, deadline_us - 1), BUDGET)
        if on_progress is not None and kernel.executed >= told + BUDGET:
            told = kernel.executed
            on_progress()
        if kernel.woken:
            kernel.woken = False
            clock.set(kernel.now_us)
        elif executed == BUDGET:
            await trio.lowlevel.checkpoint()
            continue
        elif deadline_us <= until_us:
            kernel.advance_to(max(deadline_us, kernel.now_us))
            clock.jump_to_deadline()
        else:
            kernel.advance_to(until_us)
            clock.set(until_us)
            return
        await wait_all_tasks_blocked()
