"""A simulation: topics, brokers, client processes and a network, in one virtual time.

    simulation = Simulation(seed=7, topics={"orders": TopicSpec(partitions=12)})
    simulation.add_member("c-1", ClientSpec(name="c-1", group_id="checkout", ...), java)
    simulation.start("c-1")
    simulation.schedule(60_000_000, lambda: simulation.restart("c-1"))
    run(simulation, until_us=300_000_000)

The verbs (start, crash, cut, ...) take effect at the current virtual time, so they are called before the
run, from scheduled callbacks, or from scripts. Each writes its event to the trace; ``cause`` is the
id of the trace event that it follows from. A verb about a process or broker returns the id of its
event (0 without a trace), or None when it means nothing in the state it finds (stopping what is down).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import trio
from trio.testing import MockClock

from groupsim.coordinator.config import CoordinatorConfig
from groupsim.coordinator.coordinator import GroupCoordinator
from groupsim.coordinator.snapshot import GroupSnapshot
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import ApiKey
from groupsim.runtime.broker import Broker, Coordinator
from groupsim.runtime.cluster import AppendFault, Cluster
from groupsim.runtime.connection import Connection
from groupsim.runtime.drivers import run_virtual
from groupsim.runtime.kernel import Handle, Kernel
from groupsim.runtime.latency import Fixed, Latency
from groupsim.runtime.network import Direction, DropHow, Network, Selector
from groupsim.runtime.process import ClientProcess, CrashHow
from groupsim.runtime.scripts import Environment
from groupsim.runtime.specs import BrokersSpec, NetworkSpec, ProcessClock, TopicSpec
from groupsim.runtime.statistics import BrokerStatistics, ProcessStatistics, SimulationStatistics
from groupsim.runtime.topics import Topics
from groupsim.runtime.world import World
from groupsim.trace.writer import TraceWriter
from groupsim_clients.machine import ClientFactory, ClientSpec, Order

__all__ = ["Script", "Simulation", "UnknownMemberError", "run"]

Script = Callable[[Environment], Awaitable[None]]
CoordinatorFactory = Callable[[Broker], Coordinator]


class UnknownMemberError(LookupError):
    """There is no client process of that name; ``known`` lists those there are."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        self.name = name
        self.known = known
        super().__init__(f"no member {name!r}; there are: {', '.join(known) or 'none'}")


class Simulation:
    """One run in the making, and running.

    ``coordinator`` makes a broker's coordinator; by default it is ``GroupCoordinator``. Put another
    in its place to have one that misbehaves.

    Raises:
        ConfigError: the brokers' configuration is not Kafka's.
        ValueError: the seed is not an unsigned 64-bit integer.

    """

    def __init__(
        self,
        *,
        seed: int,
        topics: Mapping[str, TopicSpec] | None = None,
        brokers: BrokersSpec | None = None,
        network: NetworkSpec | None = None,
        trace: TraceWriter | None = None,
        coordinator: CoordinatorFactory | None = None,
    ) -> None:
        brokers = brokers or BrokersSpec()
        self.config = CoordinatorConfig.from_kafka(brokers.config)
        self.world = World(seed, trace)
        self.topics = Topics(self.world, topics or {})
        self.topics.announce()
        self.network = Network(self.world, network or NetworkSpec())
        self.cluster = Cluster(
            self.world,
            brokers,
            self.topics,
            self.config.offsets_topic_num_partitions,
            coordinator or self._coordinator,
        )
        self.cluster.start()
        self.processes: dict[str, ClientProcess] = {}
        self.on_progress: Callable[[int, int], None] | None = None
        """Called now and then with (now_us, kernel actions so far)."""
        self._connections = 0
        self._scripts: list[tuple[str, Script]] = []
        self._nursery: trio.Nursery | None = None

    @property
    def kernel(self) -> Kernel:
        """The kernel: its time, and actions of one's own."""
        return self.world.kernel

    @property
    def now_us(self) -> int:
        """The virtual time."""
        return self.world.kernel.now_us

    # what there is

    def add_member(
        self,
        name: str,
        spec: ClientSpec,
        factory: ClientFactory,
        *,
        client_id: str | None = None,
        host: str | None = None,
        profile: str = "",
        clock: ProcessClock | None = None,
    ) -> None:
        """Declare a client process; it does not run until it is started.

        Raises:
            ValueError: there is a process of that name.

        """
        if name in self.processes:
            raise ValueError(f"member {name!r} exists")
        self.processes[name] = process = ClientProcess(
            self.world,
            self,
            self.topics,
            name=name,
            spec=spec,
            factory=factory,
            client_id=client_id or name,
            host=host or f"/{name}",
            clock=clock or ProcessClock(),
        )
        self.world.cause = 0
        self._tell_client(process, profile)

    def change_member(
        self,
        name: str,
        spec: ClientSpec,
        factory: ClientFactory,
        *,
        profile: str = "",
        cause: int = 0,
    ) -> None:
        """Change what a member runs, from its next start on (a deploy with a new configuration)."""
        process = self.process(name)
        process.spec = spec
        process.factory = factory
        self.world.cause = cause
        self._tell_client(process, profile)

    def process(self, name: str) -> ClientProcess:
        """Return a client process.

        Raises:
            UnknownMemberError: there is none of that name.

        """
        process = self.processes.get(name)
        if process is None:
            raise UnknownMemberError(name, tuple(self.processes))
        return process

    def create_topic(self, name: str, spec: TopicSpec, *, cause: int = 0) -> None:
        """Make a topic.

        Raises:
            ValueError: there is one of that name.

        """
        self.world.cause = cause
        self.topics.create(name, spec)

    def add_partitions(self, topic: str, total: int, *, cause: int = 0) -> None:
        """Let a topic have ``total`` partitions.

        Raises:
            UnknownTopicError: there is no such topic.
            ValueError: that is not more than it has.

        """
        self.world.cause = cause
        self.topics.add_partitions(topic, total)

    # verbs: client processes

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

    # verbs: the network

    def set_link(
        self,
        *,
        to_broker: Latency | None = None,
        to_client: Latency | None = None,
        clients: tuple[str, ...] = ("*",),
        brokers: tuple[int, ...] = (),
        cause: int = 0,
    ) -> int:
        """Change latencies between the clients (shell patterns) and the brokers (none: all)."""
        event = 0
        for latency, direction in (
            (to_broker, Direction.TO_BROKER),
            (to_client, Direction.TO_CLIENT),
        ):
            if latency is not None:
                self.world.cause = cause
                selector = self._selector(clients, brokers, direction)
                event = self.network.set_latency(selector, latency)
        return event

    def cut(
        self,
        clients: tuple[str, ...] = ("*",),
        brokers: tuple[int, ...] = (),
        direction: str = "both",
        *,
        cause: int = 0,
    ) -> int:
        """Let nothing through between these, in one direction or both, until it is healed."""
        self.world.cause = cause
        return self.network.cut(self._selector(clients, brokers, Direction(direction)))

    def heal(
        self,
        clients: tuple[str, ...] = ("*",),
        brokers: tuple[int, ...] = (),
        direction: str = "both",
        *,
        cause: int = 0,
    ) -> int:
        """Undo cuts; what was held back arrives now."""
        self.world.cause = cause
        return self.network.heal(self._selector(clients, brokers, Direction(direction)))

    def drop_next(
        self,
        clients: tuple[str, ...] = ("*",),
        brokers: tuple[int, ...] = (),
        direction: str = "both",
        *,
        api: ApiKey | None = None,
        count: int = 1,
        how: str = "reset",
        cause: int = 0,
    ) -> int:
        """Lose the next messages that fit: "reset" breaks their connection, "black-hole" swallows
        them and all that follow on it.
        """
        self.world.cause = cause
        selector = self._selector(clients, brokers, Direction(direction))
        return self.network.drop(selector, api, count, DropHow(how))

    def disconnect(self, name: str, broker: int | None = None, *, cause: int = 0) -> int:
        """Break a process's connections to a broker (None: to all)."""
        self.world.cause = cause
        target = f"{name} <-> {'*' if broker is None else f'b-{broker}'}"
        event = self.world.event("fault", fault="disconnect", target=target, detail={})
        self.world.cause = event
        self.process(name).disconnect(broker, "reset by a fault")
        return event

    # verbs: brokers and their log

    def crash_broker(self, node_id: int, *, cause: int = 0) -> int | None:
        """Kill a broker; its partitions fail over when the cluster gives it up."""
        self.world.cause = cause
        return self.cluster.crash(node_id, "killed")

    def stop_broker(self, node_id: int, *, cause: int = 0) -> int | None:
        """Shut a broker down in order: its partitions move first."""
        self.world.cause = cause
        return self.cluster.stop(node_id)

    def start_broker(self, node_id: int, *, cause: int = 0) -> int | None:
        """Start a broker that is down."""
        self.world.cause = cause
        return self.cluster.restart(node_id)

    def move_coordinator(
        self, to: int, *, group: str | None = None, partition: int | None = None, cause: int = 0
    ) -> None:
        """Make a broker the leader of a group's (or a given) partition of ``__consumer_offsets``.

        Raises:
            UnknownBrokerError: there is no such broker.
            ValueError: neither a group nor a partition, or both, or the broker is down.

        """
        if not self.cluster.broker(to).up:
            raise ValueError(f"broker {to} is down")
        if (group is None) == (partition is None):
            raise ValueError("name a group or a partition")
        self.world.cause = cause
        for number in self._partitions(group, partition):
            self.cluster.elect(number, to)

    def fail_appends(
        self,
        error: ErrorCode,
        *,
        count: int | None = None,
        for_us: int | None = None,
        group: str | None = None,
        partition: int | None = None,
        cause: int = 0,
    ) -> int:
        """Let the log refuse appends: so many, for so long (neither: always)."""
        self.world.cause = cause
        partitions = self._partitions(group, partition)
        until_us = None if for_us is None else self.now_us + for_us
        detail = {"error": error.name, "count": count, "until_us": until_us}
        event = self._log_fault("fail-appends", group, partition, detail)
        only = partitions[0] if len(partitions) == 1 else None
        self.cluster.add_fault(AppendFault(error, only, count, until_us))
        return event

    def stall_appends(
        self, *, group: str | None = None, partition: int | None = None, cause: int = 0
    ) -> int:
        """Let replication stand still: appends are neither committed nor refused."""
        self.world.cause = cause
        event = self._log_fault("stall-appends", group, partition, {})
        self.cluster.stall(self._partitions(group, partition))
        return event

    def resume_appends(
        self, *, group: str | None = None, partition: int | None = None, cause: int = 0
    ) -> int:
        """Let replication go on."""
        self.world.cause = cause
        event = self._log_fault("resume-appends", group, partition, {})
        self.cluster.unstall(self._partitions(group, partition))
        return event

    def set_replication_delay(self, delay: Latency | int, *, cause: int = 0) -> int:
        """Change how long an append takes to be committed (an integer: fixed, in µs)."""
        self.world.cause = cause
        latency = Fixed(us=delay) if isinstance(delay, int) else delay
        self.cluster.replication_delay = latency
        return self.world.event(
            "fault", fault="replication-delay", target="*", detail={"delay": str(latency)}
        )

    # looking in

    def members_of(self, group_id: str) -> tuple[str, ...]:
        """Names of the processes declared for a group."""
        return tuple(
            n for n, process in self.processes.items() if process.spec.group_id == group_id
        )

    def leader_of(self, group_id: str) -> str | None:
        """Name of the process that leads the group now, None if none does or is known."""
        group = self._group(group_id)
        leader = None if group is None else group.leader_id
        for name, process in self.processes.items():
            if leader and process.machine is not None and process.member_id == leader:
                return name
        return None

    def group_state(self, group_id: str) -> str | None:
        """The group's state by its coordinator (``Stable``, ...), None if it is not known."""
        group = self._group(group_id)
        return None if group is None else group.state

    def statistics(self) -> SimulationStatistics:
        """Return a snapshot of the whole simulation."""
        trace = self.world.trace
        leaders = self.cluster.leaders
        return SimulationStatistics(
            now_us=self.now_us,
            actions=self.kernel.executed,
            pending=self.kernel.pending(),
            trace_events=0 if trace is None else trace.events,
            processes={name: _process(p) for name, p in self.processes.items()},
            brokers={
                number: BrokerStatistics(
                    node_id=number,
                    up=broker.up,
                    requests=broker.requests,
                    parked=broker.parked,
                    connections=len(broker.connections),
                    partitions=tuple(p for p, leader in enumerate(leaders) if leader == number),
                )
                for number, broker in self.cluster.brokers.items()
            },
        )

    # running

    def schedule(self, at_us: int, action: Callable[[], object]) -> Handle:
        """Call ``action()`` at a virtual time; trio tasks that it wakes run before anything else.

        Raises:
            ValueError: the time is past.

        """

        def run_action() -> None:
            self.world.cause = 0
            self.kernel.wake()  # it may have set a trio event: we cannot know
            action()

        return self.kernel.at(at_us, run_action)

    def add_script(self, script: Script, *, name: str | None = None) -> None:
        """Let ``script(env)`` run as a trio task from the start of the run, or from now on."""
        known = name or str(getattr(script, "__name__", "script"))
        self._scripts.append((known, script))
        if self._nursery is not None:
            self._start_scripts()

    async def run(self, until_us: int) -> None:
        """Run until ``until_us``, inside a trio run whose clock is a MockClock.

        Scripts still running then are cancelled. May be called again with a later time. The trace
        stays open: whoever made it closes it (``run`` below does).

        Raises:
            ClockError: the trio run has another clock.
            Exception: what a script or an action raised.

        """
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                self._start_scripts()
                await run_virtual(self.kernel, until_us, self._progress)
                nursery.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            raise _single(group) from None
        finally:
            self._nursery = None

    def _start_scripts(self) -> None:
        scripts, self._scripts = self._scripts, []
        for name, script in scripts:  # one at a time, so that trio has no order to choose
            self.kernel.after(0, lambda name=name, script=script: self._start_script(name, script))  # type: ignore[misc]

    def _start_script(self, name: str, script: Script) -> None:
        if self._nursery is not None:
            self._nursery.start_soon(script, Environment(self, name), name=name)
            self.kernel.wake()

    def _progress(self) -> None:
        if self.on_progress is not None:
            self.on_progress(self.now_us, self.kernel.executed)

    # for the parts

    def dial(self, client: ClientProcess, node_id: int, channel: tuple[int, str]) -> Connection:
        """See ``Dialer``."""
        server = self.cluster.broker(node_id)
        return Connection(self.network, self.next_connection_name(), client, server, channel)

    def broker_count(self) -> int:
        """How many brokers there are."""
        return len(self.cluster.brokers)

    def first_broker_up(self) -> int:
        """The lowest node id of a live broker; 1 when none is."""
        return next((number for number, b in self.cluster.brokers.items() if b.up), 1)

    def next_connection_name(self) -> str:
        """A name for a new connection."""
        self._connections += 1
        return f"c{self._connections}"

    def _coordinator(self, broker: Broker) -> Coordinator:
        streams = self.world.streams

        def member_uuid() -> str:
            client = "" if broker.asking is None else broker.asking.name
            return streams.stream(f"member-id/{client}").uuid()

        return GroupCoordinator(
            config=self.config,
            member_uuid=member_uuid,
            topics=self.topics,
            log_gate=partial(self.cluster.gate, broker),
        )

    def _group(self, group_id: str) -> GroupSnapshot | None:
        broker = self.cluster.coordinator_of(group_id)
        if broker is None or not isinstance(broker.coordinator, GroupCoordinator):
            return None
        return broker.coordinator.snapshot().group(group_id)

    def _selector(
        self, clients: tuple[str, ...], brokers: tuple[int, ...], direction: Direction
    ) -> Selector:
        for node_id in brokers:
            self.cluster.broker(node_id)
        return Selector(clients=tuple(clients), brokers=tuple(brokers), direction=direction)

    def _partitions(self, group: str | None, partition: int | None) -> tuple[int, ...]:
        if group is not None:
            return (self.cluster.partition_of(group),)
        count = len(self.cluster.logs)
        if partition is None:
            return tuple(range(count))
        if not 0 <= partition < count:
            raise ValueError(
                f"partitions of __consumer_offsets are 0 to {count - 1}; got {partition}"
            )
        return (partition,)

    def _log_fault(
        self, fault: str, group: str | None, partition: int | None, detail: Mapping[str, Any]
    ) -> int:
        target = group if group is not None else "*" if partition is None else str(partition)
        return self.world.event("fault", fault=fault, target=target, detail=dict(detail))

    def _tell_client(self, process: ClientProcess, profile: str) -> None:
        spec = process.spec
        self.world.event(
            "client",
            who=process.name,
            group_id=spec.group_id,
            profile=profile,
            client_id=process.client_id,
            client_host=process.host,
            group_instance_id=spec.config.get("group.instance.id"),
            subscribe=spec.subscribe,
            subscribe_pattern=spec.subscribe_pattern,
        )


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


def _process(process: ClientProcess) -> ProcessStatistics:
    return ProcessStatistics(
        name=process.name,
        group_id=process.spec.group_id,
        state=str(process.state),
        incarnation=process.incarnation,
        ended=process.ended,
        member_id=process.member_id,
        owned=process.owned(),
        connections=process.connection_count,
    )
