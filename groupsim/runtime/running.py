"""What drives a simulation: its kernel and its scripts inside a trio run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import trio
from trio.testing import MockClock

from groupsim.runtime.drivers import run_virtual
from groupsim.runtime.scripts import Environment

if TYPE_CHECKING:
    from groupsim.runtime.simulation import Simulation

__all__ = ["Runner", "Script", "run"]

Script = Callable[[Environment], Awaitable[None]]


class Runner:
    """Runs one simulation, as often as it is asked to."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._scripts: list[tuple[str, Script]] = []
        self._nursery: trio.Nursery | None = None

    def add_script(self, script: Script, name: str | None) -> None:
        """See ``Simulation.add_script``."""
        known = name or str(getattr(script, "__name__", "script"))
        self._scripts.append((known, script))
        if self._nursery is not None:
            self._start_scripts()

    async def run(self, until_us: int) -> None:
        """See ``Simulation.run``."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                self._start_scripts()
                await run_virtual(self._simulation.kernel, until_us, self._progress)
                nursery.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            raise _single(group) from None
        finally:
            self._nursery = None

    def _start_scripts(self) -> None:
        kernel = self._simulation.kernel
        scripts, self._scripts = self._scripts, []
        for name, script in scripts:  # one at a time, so that trio has no order to choose
            kernel.after(0, lambda name=name, script=script: self._start_script(name, script))  # type: ignore[misc]

    def _start_script(self, name: str, script: Script) -> None:
        if self._nursery is not None:
            self._nursery.start_soon(script, Environment(self._simulation, name), name=name)
            self._simulation.kernel.wake()

    def _progress(self) -> None:
        simulation = self._simulation
        if simulation.on_progress is not None:
            simulation.on_progress(simulation.now_us, simulation.kernel.executed)


def run(simulation: Simulation, until_us: int, *, finish: Callable[[], None] | None = None) -> None:
    """Run a simulation in a trio run of its own, and close its trace whatever happens.

    ``finish`` is called after a run that came to its end, before the trace is closed. Ctrl-C ends
    the run between two actions.

    Raises:
        KeyboardInterrupt: the run was interrupted; the trace says so.
        Exception: what a script or an action raised; the trace says that it failed.

    """
    trace = simulation.world.trace
    try:
        trio.run(
            simulation.run,
            until_us,
            clock=MockClock(),
            restrict_keyboard_interrupt_to_checkpoints=True,
        )
        if finish is not None:
            finish()
    except BaseException as error:
        if trace is not None:
            end = "failed" if isinstance(error, Exception) else "interrupted"
            why = f"{type(error).__name__}: {error}" if end == "failed" else "interrupted"
            trace.close(end, time_us=simulation.now_us, why=why)
        raise
    if trace is not None:
        trace.close("finished", time_us=simulation.now_us)


def _single(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What to raise for a group: its only exception where there is one."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
