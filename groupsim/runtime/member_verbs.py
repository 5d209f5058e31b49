"""The verbs about client processes: start, stop, crash, pause, order, disconnect.

What all verbs have in common is told in ``simulation``.
"""

from __future__ import annotations

from groupsim.runtime.lifecycle import CrashHow
from groupsim.runtime.process import ClientProcess
from groupsim.runtime.world import World
from groupsim_clients.machine import Order

__all__ = ["MemberVerbs", "UnknownMemberError"]


class UnknownMemberError(LookupError):
    """There is no client process of that name; ``known`` lists those there are."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        self.name = name
        self.known = known
        super().__init__(f"no member {name!r}; there are: {', '.join(known) or 'none'}")


class MemberVerbs:
    """The part of ``Simulation`` that acts on its client processes, each by its name.

    Every verb raises UnknownMemberError for a name that no process has.
    """

    world: World
    processes: dict[str, ClientProcess]

    def process(self, name: str) -> ClientProcess:
        """Return a client process.

        Raises:
            UnknownMemberError: there is none of that name.

        """
        process = self.processes.get(name)
        if process is None:
            raise UnknownMemberError(name, tuple(self.processes))
        return process

    def start(self, name: str, *, cause: int = 0) -> int | None:
        """Start a process that is down."""
        self.world.cause = cause
        return self.process(name).start()

    def stop(
        self,
        name: str,
        timeout_ms: int | None = None,
        kill_after_ms: int | None = None,
        *,
        cause: int = 0,
    ) -> int | None:
        """Ask a process to close, within ``timeout_ms`` (None: the client's own default).

        It is killed when it still runs after ``kill_after_ms``, by default a second more than it
        was given.
        """
        self.world.cause = cause
        return self.process(name).stop(timeout_ms, kill_after_ms)

    def crash(self, name: str, how: str = "process", *, cause: int = 0) -> int | None:
        """Kill a process: ``how`` "process" lets the system close its connections, "machine" not."""
        self.world.cause = cause
        return self.process(name).crash(CrashHow(how))

    def restart(
        self,
        name: str,
        down_us: int = 0,
        how: str = "graceful",
        *,
        timeout_ms: int | None = None,
        cause: int = 0,
    ) -> int | None:
        """Stop (``how`` "graceful") or crash a process, and start it ``down_us`` after its end.

        A process that is down is started.
        """
        process = self.process(name)
        self.world.cause = cause
        if how not in {"graceful", "crash"}:
            raise ValueError(f"restart {name}: how is graceful or crash; got {how!r}")
        if process.machine is None:
            return process.start()
        process.come_back(down_us)
        if how == "crash":
            return process.crash(CrashHow.PROCESS)
        return process.stop(timeout_ms, None)

    def pause(self, name: str, for_us: int | None = None, *, cause: int = 0) -> int | None:
        """Freeze a process for some time, or until it is resumed."""
        self.world.cause = cause
        return self.process(name).pause(for_us)

    def resume(self, name: str, *, cause: int = 0) -> int | None:
        """Let a paused process run again."""
        self.world.cause = cause
        return self.process(name).resume()

    def order(self, name: str, order: Order, *, cause: int = 0) -> int | None:
        """Tell a running client something; one that is down hears nothing.

        Raises:
            ValueError: the client does not know the order.

        """
        process = self.process(name)
        if process.machine is None:
            return None
        self.world.cause = cause
        arguments = dict(order.arguments)
        event = self.world.event("order", who=name, name=order.name, arguments=arguments)
        process.order(order, event)
        return event

    def disconnect(self, name: str, broker: int | None = None, *, cause: int = 0) -> int:
        """Break a process's connections to a broker (None: to all)."""
        self.world.cause = cause
        target = f"{name} <-> {'*' if broker is None else f'b-{broker}'}"
        event = self.world.event("fault", fault="disconnect", target=target, detail={})
        self.world.cause = event
        self.process(name).disconnect(broker, "reset by a fault")
        return event
