"""A bench for one client machine: its time, its world and a broker that says what it is told.

    bench = ClientBench(topics={"orders": 2})
    bench.start()                                # lookup and metadata are answered by themselves
    join = bench.take(JoinGroupRequest)          # what the client has sent
    bench.answer(join, JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m-1"))
    bench.advance(3_000)                         # time passes; the client is woken when it asks for it

Everything is synchronous and deterministic; nothing is answered unless said so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from groupsim.protocol.consumer_protocol import Assignment, TopicPartition, encode_assignment
from groupsim.protocol.effects import Note
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
    Request,
    Response,
    SyncGroupRequest,
    SyncGroupResponse,
)
from groupsim_clients.machine import (
    ClientEffect,
    ClientFactory,
    ClientLog,
    ClientMachine,
    ClientSpec,
    Disconnect,
    Exited,
    MemberState,
    Order,
    Ownership,
    Send,
)
from groupsim_clients.profiles import java

__all__ = ["BenchWorld", "ClientBench", "Happened"]

R = TypeVar("R", bound=Request)
N = TypeVar("N", bound=Note)


@dataclass(slots=True)
class BenchWorld:
    """The client's environment: logs that grow at a rate, and draws without surprise.

    A draw gives half of its bound, so that jitter is exactly none; set ``draws`` for other values.
    """

    topics: dict[str, int]
    rates: dict[str, int] = field(default_factory=dict)  # records per second for each partition
    racks: dict[str, tuple[str, ...]] = field(default_factory=dict)  # topic -> rack per partition
    draws: dict[str, int] = field(default_factory=dict)

    def draw(self, stream: str, bound: int) -> int:
        """Half of the bound, or what ``draws`` says for the stream."""
        return min(self.draws.get(stream, bound // 2), bound - 1)

    def log_end_offset(self, topic: str, partition: int, now_ms: int) -> int:
        """Records so far."""
        del partition
        return self.rates.get(topic, 0) * now_ms // 1_000

    def next_record_ms(self, topic: str, partition: int, offset: int, now_ms: int) -> int | None:
        """When the record with this offset exists."""
        del partition, now_ms
        rate = self.rates.get(topic, 0)
        return -(-(offset + 1) * 1_000 // rate) if rate else None


@dataclass(frozen=True, slots=True)
class Happened:
    """An effect and when it came."""

    at_ms: int
    effect: ClientEffect


class ClientBench:
    """Drives one client machine.

    Attributes:
        machine: the client.
        now_ms: the time.
        log: everything that it did, in order.
        open: requests that have not been answered.
        auto: request type → what answers it at once; ``None`` as value leaves such requests open.

    """

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        factory: ClientFactory = java,
        topics: Mapping[str, int] | None = None,
        subscribe: Sequence[str] = ("t",),
        pattern: str | None = None,
        work: Mapping[str, Any] | None = None,
        group_id: str = "g",
        rates: Mapping[str, int] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.world = BenchWorld(topics=dict(topics or {"t": 2}), rates=dict(rates or {}))
        self.spec = ClientSpec(
            name="c",
            group_id=group_id,
            subscribe=tuple(subscribe) if pattern is None else (),
            subscribe_pattern=pattern,
            config=dict(config or {}),
            work=dict(work or {}),
            options=dict(options or {}),
        )
        self.machine: ClientMachine = factory(self.spec, self.world)
        self.now_ms = 0
        self.log: list[Happened] = []
        self.open: list[Send] = []
        self.coordinator_node = 0
        self.committed: dict[tuple[str, int], int] = {}
        self.auto: dict[type[Any], Callable[[Any], Response] | None] = {
            MetadataRequest: self.metadata,
            FindCoordinatorRequest: self.found,
            HeartbeatRequest: _heartbeat_ok,
            LeaveGroupRequest: _left,
            OffsetCommitRequest: _committed,
            OffsetFetchRequest: self.offsets,
        }

    # -- driving -------------------------------------------------------------------------------

    def start(self, now_ms: int = 0) -> None:
        """Start the process."""
        self.now_ms = now_ms
        self._collect(self.machine.start(now_ms))

    def advance(self, duration_ms: int) -> None:
        """Let time pass; the client is woken at every time it asks for on the way."""
        self.advance_to(self.now_ms + duration_ms)

    def advance_to(self, time_ms: int) -> None:
        """The same, up to and with a point in time."""
        for _ in range(1_000_000):
            wake_ms = self.machine.next_wake_ms()
            if wake_ms is None or wake_ms > time_ms:
                break
            self.now_ms = max(self.now_ms, wake_ms)
            self._collect(self.machine.wake(self.now_ms))
        else:
            raise AssertionError("the client wants to be woken for ever")
        self.now_ms = time_ms

    def answer(self, send: Send, response: Response) -> None:
        """Deliver the answer to a request."""
        if send in self.open:
            self.open.remove(send)
        self._collect(self.machine.respond(send.correlation_id, response, self.now_ms))

    def disconnect(self, send: Send) -> None:
        """Break the connection on which a request went out."""
        self.break_connection(send.node_id, send.channel)

    def break_connection(self, node_id: int, channel: str) -> None:
        """Break a connection; what is open on it is never answered."""
        self.open = [s for s in self.open if (s.node_id, s.channel) != (node_id, channel)]
        self._collect(self.machine.disconnected(node_id, channel, self.now_ms))

    def order(self, name: str, **arguments: Any) -> None:
        """Give the application an order."""
        self._collect(self.machine.order(Order(name=name, arguments=arguments), self.now_ms))

    def _collect(self, effects: list[ClientEffect]) -> None:
        sends = []
        for effect in effects:
            self.log.append(Happened(self.now_ms, effect))
            if isinstance(effect, Send):
                self.open.append(effect)
                sends.append(effect)
            elif isinstance(effect, Disconnect):
                self.open = [
                    s
                    for s in self.open
                    if (s.node_id, s.channel) != (effect.node_id, effect.channel)
                ]
        for send in sends:
            reply = self.auto.get(type(send.request))
            if reply is not None and send in self.open:
                self.answer(send, reply(send.request))

    # -- looking -------------------------------------------------------------------------------

    def opened(self, kind: type[Any]) -> list[Send]:
        """Open requests of a kind, oldest first."""
        return [send for send in self.open if isinstance(send.request, kind)]

    def take(self, kind: type[Any]) -> Send:
        """The oldest open request of a kind; it stays open until answered."""
        found = self.opened(kind)
        assert found, (
            f"no open {kind.__name__}; open are {[type(s.request).__name__ for s in self.open]}"
        )
        return found[0]

    def sent(self, kind: type[R]) -> list[tuple[int, R]]:
        """All requests of a kind so far, with their times."""
        return [
            (happened.at_ms, happened.effect.request)
            for happened in self.log
            if isinstance(happened.effect, Send) and isinstance(happened.effect.request, kind)
        ]

    def notes(self, kind: type[N]) -> list[N]:
        """All notes of a kind so far."""
        return [h.effect for h in self.log if isinstance(h.effect, kind)]

    def sentences(self) -> list[str]:
        """Everything the client has logged."""
        return [note.sentence for note in self.notes(ClientLog)]

    def states(self) -> list[str]:
        """The states of the member, in order."""
        return [note.state for note in self.notes(MemberState)]

    def changes(self) -> list[tuple[str, tuple[tuple[str, int], ...]]]:
        """(change, partitions) of every change of ownership."""
        return [
            (note.change, tuple((t, p) for t, p in note.partitions))
            for note in self.notes(Ownership)
        ]

    @property
    def consumer(self) -> Any:
        """The consumer inside a machine of the shared kind, to look at or to disturb."""
        machine: Any = self.machine
        return machine.consumer

    @property
    def coordinator(self) -> Any:
        """Its coordinator."""
        return self.consumer.coordinator

    @property
    def exited(self) -> str | None:
        """Why the process has ended, or None."""
        reasons = [h.effect.reason for h in self.log if isinstance(h.effect, Exited)]
        return reasons[0] if reasons else None

    def forget(self) -> None:
        """Start with an empty log, so that a test sees only what follows."""
        self.log.clear()

    # -- a broker's words ----------------------------------------------------------------------

    def metadata(self, request: MetadataRequest) -> MetadataResponse:
        """The topics that exist, on one broker for each rack (node 0 without racks)."""
        racks = sorted({rack for row in self.world.racks.values() for rack in row})
        brokers = [MetadataResponseBroker(node_id=0, host="b-0", port=9092)]
        brokers += [
            MetadataResponseBroker(node_id=n, host=f"b-{n}", port=9092, rack=rack)
            for n, rack in enumerate(racks, 1)
        ]
        names = sorted(self.world.topics) if request.topics is None else request.topics
        return MetadataResponse(
            brokers=tuple(brokers), topics=tuple(self._topic(name, racks) for name in names)
        )

    def _topic(self, name: str, racks: list[str]) -> MetadataResponseTopic:
        count = self.world.topics.get(name)
        if count is None:
            return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name)
        row = self.world.racks.get(name, ())
        return MetadataResponseTopic(
            name=name,
            is_internal=name.startswith("__"),
            partitions=tuple(
                MetadataResponsePartition(
                    partition_index=n,
                    leader_id=racks.index(row[n]) + 1 if n < len(row) else 0,
                    replica_nodes=(racks.index(row[n]) + 1 if n < len(row) else 0,),
                )
                for n in range(count)
            ),
        )

    def found(self, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        """The coordinator is ``coordinator_node``."""
        node = self.coordinator_node
        coordinator = Coordinator(
            key=request.coordinator_keys[0], node_id=node, host=f"b-{node}", port=9092
        )
        return FindCoordinatorResponse(coordinators=(coordinator,))

    def offsets(self, request: OffsetFetchRequest) -> OffsetFetchResponse:
        """What ``committed`` says, −1 for the rest."""
        group = request.groups[0]
        topics = tuple(
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetFetchResponsePartition(
                        partition_index=n, committed_offset=self.committed.get((topic.name, n), -1)
                    )
                    for n in topic.partition_indexes
                ),
            )
            for topic in group.topics or ()
        )
        return OffsetFetchResponse(
            groups=(OffsetFetchResponseGroup(group_id=group.group_id, topics=topics),)
        )

    # -- whole conversations -------------------------------------------------------------------

    def join(
        self,
        *partitions: tuple[str, int],
        generation_id: int = 1,
        member_id: str = "m-1",
        protocol: str = "range",
        leader: str = "somebody",
    ) -> None:
        """Answer the open JoinGroup and the SyncGroup after it: a follower gets ``partitions``."""
        self.answer(
            self.take(JoinGroupRequest),
            self.joined(
                generation_id=generation_id, member_id=member_id, protocol=protocol, leader=leader
            ),
        )
        self.sync(*partitions, protocol=protocol)

    def joined(
        self,
        *,
        generation_id: int = 1,
        member_id: str = "m-1",
        protocol: str = "range",
        leader: str = "somebody",
        members: Sequence[JoinGroupResponseMember] = (),
        skip_assignment: bool = False,
    ) -> JoinGroupResponse:
        """A successful JoinGroup answer."""
        return JoinGroupResponse(
            generation_id=generation_id,
            protocol_type="consumer",
            protocol_name=protocol,
            leader=leader,
            member_id=member_id,
            members=tuple(members),
            skip_assignment=skip_assignment,
        )

    def sync(self, *partitions: tuple[str, int], protocol: str = "range") -> None:
        """Answer the open SyncGroup with these partitions."""
        self.answer(self.take(SyncGroupRequest), self.synced(*partitions, protocol=protocol))

    def synced(self, *partitions: tuple[str, int], protocol: str = "range") -> SyncGroupResponse:
        """A successful SyncGroup answer."""
        assignment = Assignment(partitions=tuple(TopicPartition(*p) for p in partitions))
        return SyncGroupResponse(
            protocol_type="consumer",
            protocol_name=protocol,
            assignment=encode_assignment(assignment),
        )

    def stable(self, *partitions: tuple[str, int], **how: Any) -> None:
        """Start, join as a follower, and become stable with these partitions."""
        self.start()
        self.join(*(partitions or (("t", 0),)), **how)


def _heartbeat_ok(_request: HeartbeatRequest) -> HeartbeatResponse:
    return _HEARTBEAT_OK


_HEARTBEAT_OK = HeartbeatResponse()


def _left(request: LeaveGroupRequest) -> LeaveGroupResponse:
    members = tuple(MemberResponse(member_id=m.member_id) for m in request.members)
    return LeaveGroupResponse(members=members)


def _committed(request: OffsetCommitRequest) -> OffsetCommitResponse:
    return commit_answer(request, ErrorCode.NONE)


def commit_answer(request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    """The same code for every partition of a commit."""
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetCommitResponsePartition(
                        partition_index=p.partition_index, error_code=code
                    )
                    for p in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )
