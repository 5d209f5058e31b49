"""What trio tasks wait on: the kernel's time, and events that kernel actions or tasks set.

A task that waits here is woken by an action of the kernel, so its place in the order of things is that
action's (time, sequence). Several tasks that wait for one event are woken one after the other,
in the order in which they came, each by an action of its own.
"""

from __future__ import annotations

from collections import deque

import trio

from groupsim.runtime.kernel import Handle, Kernel

__all__ = ["KernelEvent", "sleep_until_us", "sleep_us"]


class _Sleeper:
    """One task's wait."""

    __slots__ = ("handle", "kernel", "task")

    def __init__(self, kernel: Kernel, task: trio.lowlevel.Task) -> None:
        self.kernel = kernel
        self.task = task
        self.handle: Handle | None = None

    def wake(self) -> None:
        self.kernel.wake()
        trio.lowlevel.reschedule(self.task)

    def abort(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        if self.handle is not None:
            self.handle.cancel()
        return trio.lowlevel.Abort.SUCCEEDED


async def sleep_until_us(kernel: Kernel, time_us: int) -> None:
    """Wait until the kernel's clock reads ``time_us``; a time gone by means "after this action"."""
    sleeper = _Sleeper(kernel, trio.lowlevel.current_task())
    sleeper.handle = kernel.at(max(time_us, kernel.now_us), sleeper.wake)
    await trio.lowlevel.wait_task_rescheduled(sleeper.abort)


async def sleep_us(kernel: Kernel, duration_us: int) -> None:
    """Wait for ``duration_us`` of kernel time.

    Raises:
        ValueError: the duration is negative.

    """
    if duration_us < 0:
        raise ValueError(f"a duration must not be negative; got {duration_us} µs")
    await sleep_until_us(kernel, kernel.now_us + duration_us)


class KernelEvent:
    """As ``trio.Event``, but its waiters are woken one at a time, in order, by the kernel."""

    __slots__ = ("_kernel", "_set", "_waiting")

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._set = False
        self._waiting: deque[_Sleeper] = deque()

    def is_set(self) -> bool:
        """Whether the event has happened."""
        return self._set

    def set(self) -> None:
        """Let the event happen; a second time does nothing."""
        self._set = True
        while self._waiting:
            sleeper = self._waiting.popleft()
            sleeper.handle = self._kernel.after(0, sleeper.wake)

    async def wait(self) -> None:
        """Return when the event has happened."""
        if self._set:
            await trio.lowlevel.checkpoint()
            return
        sleeper = _Sleeper(self._kernel, trio.lowlevel.current_task())
        self._waiting.append(sleeper)

        def abort(raise_cancel: object) -> trio.lowlevel.Abort:
            if sleeper.handle is None:
                self._waiting.remove(sleeper)
            return sleeper.abort(raise_cancel)

        await trio.lowlevel.wait_task_rescheduled(abort)
