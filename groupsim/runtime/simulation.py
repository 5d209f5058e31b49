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
They are in ``member_verbs``, ``network_verbs`` and ``broker_verbs``; what drives a run is in
``running``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from groupsim.coordinator.config import CoordinatorConfig
from groupsim.coordinator.coordinator import GroupCoordinator
from groupsim.coordinator.snapshot import GroupSnapshot
from groupsim.runtime.broker import Broker, Coordinator
from groupsim.runtime.broker_verbs import BrokerVerbs
from groupsim.runtime.cluster import Cluster
from groupsim.runtime.connection import Connection
from groupsim.runtime.kernel import Handle, Kernel
from groupsim.runtime.member_verbs import MemberVerbs, UnknownMemberError
from groupsim.runtime.network import Network
from groupsim.runtime.network_verbs import NetworkVerbs
from groupsim.runtime.process import ClientProcess
from groupsim.runtime.running import Runner, Script, run
from groupsim.runtime.specs import BrokersSpec, NetworkSpec, ProcessClock, TopicSpec
from groupsim.runtime.statistics import BrokerStatistics, ProcessStatistics, SimulationStatistics
from groupsim.runtime.topics import Topics
from groupsim.runtime.world import World
from groupsim.trace.writer import TraceWriter
from groupsim_clients.machine import ClientFactory, ClientSpec

__all__ = ["Script", "Simulation", "UnknownMemberError", "run"]

CoordinatorFactory = Callable[[Broker], Coordinator]


class Simulation(MemberVerbs, NetworkVerbs, BrokerVerbs):
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
        self._runner = Runner(self)

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
        """Change what a member runs, from its next start on (a deploy with a new configuration).

        The ``client`` event comes before that start, or at once while none is running: until then
        the member is what it was.
        """
        process = self.process(name)

        def change() -> None:
            process.spec = spec
            process.factory = factory
            starts, self.world.cause = self.world.cause, cause
            self._tell_client(process, profile)
            self.world.cause = starts

        process.change(change)

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
        self._runner.add_script(script, name)

    async def run(self, until_us: int) -> None:
        """Run until ``until_us``, inside a trio run whose clock is a MockClock.

        Scripts still running then are cancelled. May be called again with a later time. The trace
        stays open: whoever made it closes it (the function ``run`` does).

        Raises:
            ClockError: the trio run has another clock.
            Exception: what a script or an action raised.

        """
        await self._runner.run(until_us)

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
