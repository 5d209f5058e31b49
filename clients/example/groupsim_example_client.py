"""A client coordinator in one page: enough to join a group, hold an assignment and leave.

It is deliberately small: eager, range assignor, no offsets, no retries beyond "start again". Read
``groupsim_clients.machine`` for the contract it fulfils; copy this file to begin your own.
"""

from __future__ import annotations

from groupsim.protocol.consumer_protocol import (
    Assignment,
    Subscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MetadataRequest,
    MetadataResponse,
    Request,
    Response,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from groupsim_clients.assignors import make_assignor
from groupsim_clients.assignors.base import GroupMember, PartitionInfo
from groupsim_clients.machine import (
    ANY_NODE,
    ClientEffect,
    ClientEnvironment,
    ClientSpec,
    Exited,
    MemberState,
    Order,
    Ownership,
    Send,
)

RETRY_MS = 500


class Minimal:
    """One member process: a chain of requests, each sent when the one before is answered."""

    def __init__(self, spec: ClientSpec) -> None:
        self.spec = spec
        self.session_ms = int(spec.config.get("session.timeout.ms", 45_000))
        self.heartbeat_ms = int(spec.config.get("heartbeat.interval.ms", 3_000))
        self.rebalance_ms = int(spec.config.get("max.poll.interval.ms", 300_000))
        self.node = ANY_NODE
        self.member_id = ""
        self.generation = -1
        self.stable = False
        self.closing = False
        self.assigned: tuple[TopicPartition, ...] = ()
        self.cluster: dict[str, tuple[PartitionInfo, ...]] = {}
        self.correlation = 0
        self.wake_ms: int | None = None

    def start(self, now_ms: int) -> list[ClientEffect]:
        return [self._find()]

    def next_wake_ms(self) -> int | None:
        return self.wake_ms

    def owned(self) -> tuple[tuple[str, int], ...]:
        return tuple(sorted(self.assigned))

    def wake(self, now_ms: int) -> list[ClientEffect]:
        self.wake_ms = None
        if not self.stable:
            return [self._find()]
        self.wake_ms = now_ms + self.heartbeat_ms
        beat = HeartbeatRequest(
            group_id=self.spec.group_id, generation_id=self.generation, member_id=self.member_id
        )
        return [self._send(beat, 4)]

    def order(self, order: Order, now_ms: int) -> list[ClientEffect]:
        if order.name != "close":
            raise ValueError(f"the minimal client does not know the order {order.name!r}")
        self.closing = True
        if not self.member_id:
            return [Exited(reason="closed before joining")]
        leaving = MemberIdentity(member_id=self.member_id, reason="the consumer is being closed")
        return [
            *self._own((), "revoked"),
            self._send(LeaveGroupRequest(group_id=self.spec.group_id, members=(leaving,)), 5),
        ]

    def disconnected(self, node_id: int, channel: str, now_ms: int) -> list[ClientEffect]:
        if self.closing:
            return [Exited(reason="disconnected while leaving")]
        return self._again(now_ms, "disconnected")

    def respond(self, correlation_id: int, response: Response, now_ms: int) -> list[ClientEffect]:
        if correlation_id != self.correlation:
            return []  # the answer to something this client has given up on
        match response:
            case LeaveGroupResponse():
                return [Exited(reason="closed")]
            case _ if self.closing:
                return []
            case FindCoordinatorResponse():
                found = response.coordinators[0]
                if found.error_code:
                    return self._again(now_ms, found.error_code.name)
                self.node = found.node_id
                return [self._send(MetadataRequest(topics=self.spec.subscribe), 12)]
            case MetadataResponse():
                self.cluster = {
                    topic.name: (PartitionInfo(racks=()),) * len(topic.partitions)
                    for topic in response.topics
                }
                return [*self._own((), "revoked"), self._join()]
            case JoinGroupResponse():
                return self._joined(response, now_ms)
            case SyncGroupResponse():
                return self._synced(response, now_ms)
            case HeartbeatResponse(error_code=ErrorCode.NONE):
                return []
            case HeartbeatResponse():
                return self._again(now_ms, response.error_code.name)
            case _:
                return []

    def _joined(self, response: JoinGroupResponse, now_ms: int) -> list[ClientEffect]:
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            return [self._join()]
        if response.error_code:
            return self._again(now_ms, response.error_code.name)
        self.member_id, self.generation = response.member_id, response.generation_id
        members = [
            GroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                subscription=decode_subscription(member.metadata),
            )
            for member in response.members
        ]
        plan = make_assignor("range").assign(self.cluster, members)  # empty for a follower
        sync = SyncGroupRequest(
            group_id=self.spec.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name=response.protocol_name,
            assignments=tuple(
                SyncGroupRequestAssignment(
                    member_id=member,
                    assignment=encode_assignment(Assignment(partitions=parts, user_data=None)),
                )
                for member, parts in plan.items()
            ),
        )
        return [self._state("JOINED", ""), self._send(sync, 5)]

    def _synced(self, response: SyncGroupResponse, now_ms: int) -> list[ClientEffect]:
        if response.error_code:
            return self._again(now_ms, response.error_code.name)
        self.stable = True
        self.wake_ms = now_ms + self.heartbeat_ms
        partitions = decode_assignment(response.assignment).partitions
        return [self._state("STABLE", ""), *self._own(partitions, "assigned")]

    def _again(self, now_ms: int, why: str) -> list[ClientEffect]:
        """Start again from the lookup; a lost membership starts as a new member."""
        self.stable = False
        lost = why in ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_INSTANCE_ID")
        if lost:
            self.member_id, self.generation = "", -1
        self.wake_ms = now_ms + (0 if why == "REBALANCE_IN_PROGRESS" else RETRY_MS)
        return [self._state("UNJOINED", why), *self._own((), "lost" if lost else "revoked")]

    def _own(self, partitions: tuple[TopicPartition, ...], change: str) -> list[ClientEffect]:
        """Take over a new assignment; ``change`` names what became of the difference."""
        if not partitions and not self.assigned and change != "assigned":
            return []
        changed = partitions if change == "assigned" else self.assigned
        self.assigned = partitions
        note = Ownership(
            change=change,
            partitions=tuple(sorted(changed)),
            owned=self.owned(),
            generation_id=self.generation,
        )
        return [note]

    def _state(self, state: str, why: str) -> MemberState:
        return MemberState(
            state=state, generation_id=self.generation, member_id=self.member_id, reason=why
        )

    def _find(self) -> Send:
        self.node = ANY_NODE
        return self._send(FindCoordinatorRequest(coordinator_keys=(self.spec.group_id,)), 4)

    def _join(self) -> Send:
        subscription = Subscription(
            topics=self.spec.subscribe,
            user_data=None,
            owned_partitions=(),
            generation_id=-1,
            rack_id=None,
        )
        offer = JoinGroupRequestProtocol(name="range", metadata=encode_subscription(subscription))
        request = JoinGroupRequest(
            group_id=self.spec.group_id,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=self.rebalance_ms,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=(offer,),
        )
        return self._send(request, 9)

    def _send(self, request: Request, api_version: int) -> Send:
        self.correlation += 1
        return Send(
            correlation_id=self.correlation,
            node_id=self.node,
            channel="bootstrap" if self.node == ANY_NODE else "coordinator",
            api_version=api_version,
            request=request,
        )


def minimal(spec: ClientSpec, environment: ClientEnvironment) -> Minimal:
    """The factory that the entry point names."""
    return Minimal(spec)
