"""The Java consumer as an async object for trio scripts of a simulation.

    async def script(env: Environment) -> None:
        async with Consumer(env, group_id="checkout") as consumer:
            await consumer.subscribe(["orders"], listener=MyListener())
            while True:
                for batch in await consumer.poll(timeout=1.0):
                    await env.sleep(0.010)          # the work
                await consumer.commit()

It is a process of the simulation like any other: it has the script's name (or one of its own), its
messages and notes are in the trace, it can be paused and crashed, cut off and slowed down. Leaving the
``async with`` closes it; being cancelled there kills it, without a LeaveGroup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from groupsim.protocol.consumer_protocol import TopicPartition
from groupsim_clients.consumer import Batch
from groupsim_clients.errors import JavaError, WakeupError
from groupsim_clients.external import Call, ExternalProcess, external
from groupsim_clients.machine import ClientEnvironment, ClientMachine, ClientSpec, Order

__all__ = ["Consumer", "ProcessEnded", "RebalanceListener"]

T = TypeVar("T")
Partitions = tuple[TopicPartition, ...]


class Event(Protocol):
    """What ``Environment.event()`` makes."""

    def set(self) -> None:
        """Let it happen."""
        ...

    async def wait(self) -> None:
        """Return when it has happened."""
        ...


class Environment(Protocol):
    """The part of a script's environment that is used: see ``groupsim.runtime.scripts``."""

    simulation: Any
    name: str

    def event(self) -> Event:
        """A new event."""
        ...


class ProcessEnded(Exception):  # noqa: N818 - what happened to the process, not a mistake
    """The consumer's process is gone: it was crashed or killed, or it is closed."""


class RebalanceListener:
    """Override what you need. The methods run in the task that called ``poll`` (or ``close``), may take time,
    and may use the consumer, as in Java.
    """

    async def on_partitions_assigned(self, partitions: Partitions) -> None:
        """These are new; called after every rebalance, also with nothing (CC-10)."""

    async def on_partitions_revoked(self, partitions: Partitions) -> None:
        """These have to be given up; they are still owned while this runs (CC-05)."""

    async def on_partitions_lost(self, partitions: Partitions) -> None:
        """These belong to somebody else already. By default ``on_partitions_revoked`` (CC-23)."""
        await self.on_partitions_revoked(partitions)


class Consumer:
    """A consumer of its own process. Times are seconds; not to be used by two tasks at a time.

    Args:
        env: the script's environment.
        group_id: its group; None for none.
        config: options by Kafka's names.
        name: of the process, for the trace and for verbs; the script's name by default.

    Raises:
        ConfigError: options that Java would refuse, on entering.

    """

    def __init__(
        self,
        env: Environment,
        *,
        group_id: str | None,
        config: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> None:
        self._env = env
        self._name = name or env.name
        self._spec = ClientSpec(
            name=self._name,
            group_id=group_id or "",
            subscribe=(),
            config=dict(config or {}),
            work={},
            options={},
        )
        self._listener = RebalanceListener()
        self._event = env.event()
        self._machine: ExternalProcess | None = None
        self._process: Any = None

    # -- its life --------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        simulation = self._env.simulation
        if self._name in simulation.processes:
            simulation.change_member(self._name, self._spec, self._make, profile="java")
        else:
            simulation.add_member(self._name, self._spec, self._make, profile="java")
        self._process = simulation.process(self._name)
        self._process.on_end = self._ended
        simulation.start(self._name)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._machine is None:
            return
        if value is not None and not isinstance(
            value, Exception
        ):  # cancelled: there is no time left
            self._env.simulation.crash(self._name)
            return
        await self.close()

    async def close(self, timeout: float = 30.0) -> None:  # noqa: ASYNC109 - Kafka's argument
        """Commit (if automatic), call the listener, leave the group; the process ends (CL-06).

        Raises:
            JavaError: what went wrong, wrapped; it is closed all the same.

        """
        if self._machine is not None:
            await self._call(self._machine.close(_ms(timeout)))

    # -- calls -----------------------------------------------------------------------------------

    async def subscribe(
        self, topics: Iterable[str], listener: RebalanceListener | None = None
    ) -> None:
        """Subscribe to these topics; none is ``unsubscribe``."""
        self._listener = listener or RebalanceListener()
        await self._call(self._alive().subscribe(tuple(topics)))

    async def subscribe_pattern(
        self, pattern: str, listener: RebalanceListener | None = None
    ) -> None:
        """Subscribe to all topics whose whole name matches the regular expression."""
        self._listener = listener or RebalanceListener()
        await self._call(self._alive().subscribe_pattern(pattern))

    async def unsubscribe(self) -> None:
        """Give everything up and leave the group (CL-09)."""
        await self._call(self._alive().unsubscribe())

    async def poll(self, timeout: float = 1.0) -> tuple[Batch, ...]:  # noqa: ASYNC109
        """Records, as soon as there are some, or nothing after ``timeout`` seconds (CP-03).

        Raises:
            JavaError: as Java's ``poll`` throws.
            ProcessEnded: the process was crashed or killed.

        """
        return await self._call(self._alive().poll(_ms(timeout)))

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> None:
        """``commitSync``: the positions, or ``offsets`` (CO-07).

        Raises:
            JavaError: the commit failed (CO-03 to CO-06).

        """
        limit_ms = None if timeout is None else _ms(timeout)
        await self._call(self._alive().commit_sync(offsets, limit_ms))

    async def commit_async(
        self,
        offsets: Mapping[TopicPartition, int] | None = None,
        callback: Callable[[Mapping[TopicPartition, int], JavaError | None], None] | None = None,
    ) -> None:
        """``commitAsync``: sent and not waited for; the callback runs in a later call."""
        await self._call(self._alive().commit_async(offsets, callback))

    def enforce_rebalance(self, reason: str | None = None) -> None:
        """Have the next poll join again (CP-11)."""
        self._alive().consumer.enforce_rebalance(reason)

    def wakeup(self) -> None:
        """Make the call that waits, or the next one, raise ``WakeupError``."""
        self._order("wakeup")

    def assignment(self) -> Partitions:
        """What is assigned now, sorted; nothing after the end."""
        machine = self._machine
        return () if machine is None else machine.consumer.subscriptions.assigned()

    def position(self, partition: TopicPartition) -> int | None:
        """The next offset to read of an assigned partition; None while it is not known yet.

        Raises:
            KeyError: it is not assigned.

        """
        return self._alive().consumer.subscriptions.assignment[partition].position

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read on from ``offset``.

        Raises:
            KeyError: it is not assigned.

        """
        self._alive().consumer.subscriptions.assignment[partition].position = offset

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no records of these until resumed or taken away."""
        self._alive().consumer.pause(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """The opposite of ``pause``."""
        self._alive().consumer.resume(partitions)

    # -- inside ----------------------------------------------------------------------------------

    def _make(self, spec: ClientSpec, env: ClientEnvironment) -> ClientMachine:
        self._machine = machine = external(spec, env)
        machine.notify = self._notify
        return machine

    def _alive(self) -> ExternalProcess:
        if self._machine is None:
            raise ProcessEnded(f"{self._name} is not running")
        return self._machine

    def _notify(self) -> None:
        self._event.set()

    def _ended(self) -> None:
        self._machine = None
        self._event.set()

    def _order(self, name: str, **arguments: Any) -> None:
        self._process.order(Order(name=name, arguments=arguments), 0)

    async def _call(self, call: Call[T]) -> T:
        machine = self._alive()
        self._order("call", call=call)
        try:
            while not call.done:
                if self._machine is not machine:
                    raise ProcessEnded(f"{self._name} has ended during {call.name}")
                if machine.callback is not None:
                    await self._run_callback(machine)
                    continue
                await self._event.wait()
                self._event = self._env.event()
        finally:
            if not call.done and self._machine is machine:  # cancelled: let the call end without us
                self._order("wakeup")
        return call.value

    async def _run_callback(self, machine: ExternalProcess) -> None:
        callback, partitions = machine.take_callback()
        run = {
            "assigned": self._listener.on_partitions_assigned,
            "revoked": self._listener.on_partitions_revoked,
            "lost": self._listener.on_partitions_lost,
        }[callback]
        raised: JavaError | None = None
        try:
            await run(partitions)
        except JavaError as error:
            raised = error
        except Exception as error:  # noqa: BLE001 - Java hands any exception of a listener on
            raised = JavaError(type(error).__name__, str(error), kafka=False)
            raised.__cause__ = error
        except BaseException:  # cancelled: the callback ends as if it had been woken
            if self._machine is machine:
                self._order("callback_done", error=WakeupError())
            raise
        if self._machine is machine:
            self._order("callback_done", error=raised)


def _ms(seconds: float) -> int:
    if seconds < 0:
        raise ValueError(f"a timeout must not be negative; got {seconds}")
    return round(seconds * 1_000)
