"""The cluster: brokers, who leads which partition of ``__consumer_offsets``, and its log.

A group's coordinator is the leader of the partition that Kafka's hash gives for the group. Leadership
starts dealt out over the brokers in turn and moves when it is moved, or when a crashed broker has
been given up. Every move raises the leader epoch, unloads the old leader and loads the new one from the log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from groupsim.coordinator.core import partition_for
from groupsim.coordinator.effects import Append
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
    Request,
    Response,
)
from groupsim.runtime.broker import Broker
from groupsim.runtime.latency import Fixed, Latency
from groupsim.runtime.offsets_log import PartitionLog
from groupsim.runtime.specs import BrokersSpec
from groupsim.runtime.topics import Topics
from groupsim.runtime.world import World

__all__ = ["AppendFault", "Cluster", "UnknownBrokerError"]

PORT = 9092
CLUSTER_ID = "groupsim"
_GROUP_KEY = 0


class UnknownBrokerError(LookupError):
    """There is no broker with that node id; ``known`` lists those there are."""

    def __init__(self, node_id: object, known: tuple[int, ...]) -> None:
        self.node_id = node_id
        self.known = known
        listed = ", ".join(str(number) for number in known)
        super().__init__(f"no broker {node_id!r}; node ids are: {listed}")


class AppendFault:
    """Refuse appends to some partitions, so many of them (None: without end), up to a time."""

    __slots__ = ("count", "error", "partition", "until_us")

    def __init__(
        self, error: ErrorCode, partition: int | None, count: int | None, until_us: int | None
    ) -> None:
        self.error = error
        self.partition = partition
        self.count = count
        self.until_us = until_us

    def spent(self, now_us: int) -> bool:
        """Whether it will not refuse anything any more."""
        return self.count == 0 or (self.until_us is not None and now_us >= self.until_us)


class Cluster:
    """All brokers of a simulation. ``make_coordinator`` makes a broker's new, empty coordinator."""

    def __init__(
        self,
        world: World,
        spec: BrokersSpec,
        topics: Topics,
        partitions: int,
        make_coordinator: Callable[[Broker], Any],
    ) -> None:
        self.world = world
        self.spec = spec
        self.topics = topics
        self.brokers = {n: Broker(world, n, self) for n in range(1, spec.count + 1)}
        self.logs = [PartitionLog() for _ in range(partitions)]
        self.leaders = [1 + number % spec.count for number in range(partitions)]
        self.epochs = [0] * partitions
        self.fenced: dict[int, None] = {}
        self.replication_delay: Latency = spec.replication_delay
        self._make_coordinator = make_coordinator
        self._faults: list[AppendFault] = []
        self._stalled: dict[int, list[tuple[int, int, int, int]]] = {}
        self._last_us = [0] * partitions
        self._appends = [0] * partitions
        self._append_kind = -1 if world.trace is None else world.trace.kinds.number("append")
        self._metadata: dict[tuple[tuple[str, ...] | None, tuple[int, ...]], MetadataResponse] = {}
        self._metadata_version = -1
        self._on_committed = self._committed

    # brokers and leadership

    def start(self) -> None:
        """All brokers start, each with its share of the partitions. Called once, at time 0."""
        for broker in self.brokers.values():
            self._process(broker, "started", "")
            broker.start(self._make_coordinator(broker))
        for partition, node_id in enumerate(self.leaders):
            self._tell(partition, node_id, "elected")
            self._load(partition, node_id, self.epochs[partition])

    def broker(self, node_id: int) -> Broker:
        """Return a broker.

        Raises:
            UnknownBrokerError: there is none with that node id.

        """
        broker = self.brokers.get(node_id)
        if broker is None:
            raise UnknownBrokerError(node_id, tuple(self.brokers))
        return broker

    def partition_of(self, group_id: str) -> int:
        """The partition of ``__consumer_offsets`` that holds a group."""
        return partition_for(group_id, len(self.logs))

    def coordinator_of(self, group_id: str) -> Broker | None:
        """The live broker that coordinates a group, None if there is none."""
        broker = self.brokers[self.leaders[self.partition_of(group_id)]]
        return broker if broker.up else None

    def crash(self, node_id: int, reason: str) -> int | None:
        """A broker dies; its partitions have no leader until it is given up, or back."""
        broker = self.broker(node_id)
        if not broker.up:
            return None
        self.world.cause = event = self._process(broker, "crashed", reason)
        broker.stop(f"{broker.name} crashed")
        if len(self.brokers) > 1:
            incarnation = broker.incarnation
            self.world.kernel.after(
                self.spec.failover_us, lambda: self._give_up(broker, incarnation, event)
            )
        return event

    def stop(self, node_id: int) -> int | None:
        """A broker shuts down in order: it hands its partitions over first."""
        broker = self.broker(node_id)
        if not broker.up:
            return None
        self.world.cause = event = self._process(broker, "stopping", "controlled shutdown")
        self.fenced[node_id] = None
        self._hand_over(node_id)
        self.world.cause = self._process(broker, "exited", "controlled shutdown")
        broker.stop(f"{broker.name} shut down")
        return event

    def restart(self, node_id: int) -> int | None:
        """A broker that is down starts; it loads the partitions that nobody else leads."""
        broker = self.broker(node_id)
        if broker.up:
            return None
        event = self._process(broker, "started", "")
        broker.start(self._make_coordinator(broker))
        self.fenced.pop(node_id, None)
        for partition, leader in enumerate(self.leaders):
            if leader == node_id or leader in self.fenced:
                self.world.cause = event
                self.elect(partition, node_id)
        return event

    def elect(self, partition: int, node_id: int) -> None:
        """Make a broker the leader of a partition."""
        old = self.brokers[self.leaders[partition]]
        log = self.logs[partition]
        self.epochs[partition] = epoch = self.epochs[partition] + 1
        self.leaders[partition] = node_id
        self.world.cause = self._tell(partition, node_id, "elected")
        self._stalled.pop(partition, None)
        if old.node_id == node_id:
            log.commit_to(log.next_offset)  # the same broker's log: nothing is lost
        else:
            if old.up:
                old.call(lambda coordinator, now_ms: coordinator.unload(partition, epoch, now_ms))
                self._tell(partition, old.node_id, "unloaded")
            log.truncate()
        self._load(partition, node_id, epoch)

    def _give_up(self, broker: Broker, incarnation: int, cause: int) -> None:
        if broker.up or broker.incarnation != incarnation:
            return
        self.world.cause = cause
        self.fenced[broker.node_id] = None
        self._hand_over(broker.node_id)

    def _hand_over(self, node_id: int) -> None:
        cause = self.world.cause
        heirs = [b.node_id for b in self.brokers.values() if b.up and b.node_id != node_id]
        if heirs:
            for partition, leader in enumerate(self.leaders):
                if leader == node_id:
                    self.world.cause = cause
                    self.elect(partition, heirs[partition % len(heirs)])
        self.world.cause = cause

    def _load(self, partition: int, node_id: int, epoch: int) -> None:
        broker = self.brokers[node_id]
        if not broker.up:
            return
        if self.spec.load_us == 0 or epoch == 0:
            self._loaded(partition, broker, epoch, self.world.cause)
            return
        self._tell(partition, node_id, "loading")
        broker.call(lambda coordinator, now_ms: coordinator.begin_load(partition, epoch, now_ms))
        cause = self.world.cause
        self.world.kernel.after(
            self.spec.load_us, lambda: self._loaded(partition, broker, epoch, cause)
        )

    def _loaded(self, partition: int, broker: Broker, epoch: int, cause: int) -> None:
        if self.epochs[partition] != epoch or not broker.up:
            return
        self.world.cause = cause
        if epoch:
            self.world.cause = self._tell(partition, broker.node_id, "loaded")
        records = self.logs[partition].records()
        broker.call(lambda coordinator, now_ms: coordinator.load(partition, records, epoch, now_ms))

    def _tell(self, partition: int, node_id: int, event: str) -> int:
        return self.world.event(
            "leadership",
            partition=partition,
            broker=f"b-{node_id}",
            epoch=self.epochs[partition],
            event=event,
        )

    def _process(self, broker: Broker, event: str, detail: str) -> int:
        return self.world.event(
            "process", who=broker.name, role="broker", event=event, detail=detail
        )

    # the log

    def gate(self, broker: Broker, append: Append) -> ErrorCode:
        """Whether the log takes a batch, asked from inside the coordinator's event.

        In Kafka a refused append fails there and then, before anything that follows it; a
        coordinator that asks here hands over no ``Append`` for what is refused.
        """
        error = self._refusal(broker, append.partition)
        if error:
            self._tell_append(broker, append)
            broker.tell_append_done(append.append_id, error)
        return error

    def append(self, broker: Broker, append: Append) -> ErrorCode:
        """Append a batch; NONE, or the error with which the log refuses it."""
        partition = append.partition
        log = self.logs[partition]
        error = self._refusal(broker, partition)
        event = self._tell_append(broker, append)
        if error:
            return error
        log.append(append.records)
        entry = (partition, append.append_id, log.next_offset, event)
        if partition in self._stalled:
            self._stalled[partition].append(entry)
        else:
            self._replicate(entry)
        return ErrorCode.NONE

    def _replicate(self, entry: tuple[int, int, int, int]) -> None:
        partition = entry[0]
        delay = self.replication_delay
        if isinstance(delay, Fixed):
            delay_us = delay.us
        else:
            number = self._appends[partition]
            self._appends[partition] = number + 1
            stream = self.world.streams.stream(f"replication/{partition}")
            delay_us = delay.draw(stream.at(number))
        kernel = self.world.kernel
        time_us = max(kernel.now_us + delay_us, self._last_us[partition])
        self._last_us[partition] = time_us
        kernel.push(time_us, self._on_committed, (*entry, self.epochs[partition]))

    def _committed(self, entry: tuple[int, int, int, int, int]) -> None:
        partition, append_id, end_offset, event, epoch = entry
        if self.epochs[partition] != epoch:
            return  # leadership moved meanwhile: the record is lost, or committed by the load
        broker = self.brokers[self.leaders[partition]]
        if broker.up:
            self.logs[partition].commit_to(end_offset)
            self.world.cause = event
            broker.append_done(append_id, ErrorCode.NONE)

    def add_fault(self, fault: AppendFault) -> None:
        """Refuse appends from now on, as the fault says."""
        self._faults.append(fault)

    def stall(self, partitions: tuple[int, ...]) -> None:
        """Replication of these partitions stands still: appends are neither committed nor failed."""
        for partition in partitions:
            self._stalled.setdefault(partition, [])

    def unstall(self, partitions: tuple[int, ...]) -> None:
        """Replication goes on with what has been appended meanwhile."""
        for partition in partitions:
            for entry in self._stalled.pop(partition, ()):
                self._replicate(entry)

    def _tell_append(self, broker: Broker, append: Append) -> int:
        world = self.world
        if world.trace is None:
            return 0
        base = self.logs[append.partition].next_offset
        fields = (broker.name, append.append_id, append.partition, base, append.records)
        return world.trace.emit(world.kernel.now_us, world.cause, self._append_kind, fields)

    def _refusal(self, broker: Broker, partition: int) -> ErrorCode:
        if self.leaders[partition] != broker.node_id:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self._faults:
            now_us = self.world.kernel.now_us
            self._faults = [fault for fault in self._faults if not fault.spent(now_us)]
        for fault in self._faults:
            if fault.partition in (None, partition):
                if fault.count is not None:
                    fault.count -= 1
                return fault.error
        return ErrorCode.NONE

    # what clients ask

    def answer(self, request: Request, api_version: int) -> Response:
        """Answer a FindCoordinator (C-01, C-02) or a Metadata request."""
        del api_version  # which fields a version carries is the wire's business
        if isinstance(request, FindCoordinatorRequest):
            found = tuple(self._find(key, request.key_type) for key in request.coordinator_keys)
            return FindCoordinatorResponse(coordinators=found)
        assert isinstance(request, MetadataRequest), request
        version = self.topics.version
        if version != self._metadata_version:
            self._metadata.clear()
            self._metadata_version = version
        key = (request.topics, tuple(self.fenced))
        answer = self._metadata.get(key)
        if answer is None:
            answer = self._metadata[key] = self._describe(request.topics)
        return answer

    def _find(self, key: str, key_type: int) -> Coordinator:
        if key_type != _GROUP_KEY:
            return Coordinator(key=key, error_code=ErrorCode.INVALID_REQUEST)
        node_id = self.leaders[self.partition_of(key)]
        if node_id in self.fenced:
            return Coordinator(key=key, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return Coordinator(key=key, node_id=node_id, host=self.brokers[node_id].host, port=PORT)

    def _describe(self, topics: tuple[str, ...] | None) -> MetadataResponse:
        live = [b for b in self.brokers.values() if b.node_id not in self.fenced]
        racks = self.spec.racks
        names = self.topics.names() if topics is None else topics
        return MetadataResponse(
            brokers=tuple(
                MetadataResponseBroker(
                    node_id=b.node_id,
                    host=b.host,
                    port=PORT,
                    rack=racks[(b.node_id - 1) % len(racks)] if racks else None,
                )
                for b in live
            ),
            cluster_id=CLUSTER_ID,
            controller_id=live[0].node_id if live else -1,
            topics=tuple(self._describe_topic(name) for name in names),
        )

    def _describe_topic(self, name: str) -> MetadataResponseTopic:
        topic = self.topics.get(name)
        if topic is None:
            return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name)
        count = len(self.brokers)
        copies = min(3, count)
        partitions = []
        for index in range(len(topic.born_us)):
            replicas = tuple(1 + (index + copy) % count for copy in range(copies))
            partitions.append(
                MetadataResponsePartition(
                    partition_index=index,
                    leader_id=replicas[0],
                    replica_nodes=replicas,
                    isr_nodes=replicas,
                )
            )
        return MetadataResponseTopic(
            name=name, topic_id=topic.topic_id, partitions=tuple(partitions)
        )
