"""What the coordinator holds, as immutable values: for tests, checks, reports and comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupsim.coordinator.classic.group import ClassicGroup
from groupsim.coordinator.classic.member import ClassicMember, Protocols
from groupsim.coordinator.timeline import LATEST
from groupsim.protocol._base import message

if TYPE_CHECKING:
    from groupsim.coordinator.core import Core
    from groupsim.coordinator.shard import Shard

__all__ = [
    "CoordinatorSnapshot",
    "GroupSnapshot",
    "MemberSnapshot",
    "OffsetSnapshot",
    "PartitionSnapshot",
    "TimerSnapshot",
    "snapshot_of",
]


@message
class MemberSnapshot:
    """One member. ``awaiting_join`` and ``awaiting_sync``: whether a request is parked."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    assignment: bytes
    awaiting_join: bool
    awaiting_sync: bool
    is_new: bool


@message
class GroupSnapshot:
    """One group; members in Kafka's order, sets sorted."""

    group_id: str
    partition: int
    state: str
    previous_state: str
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    leader_id: str | None
    state_timestamp_ms: int | None
    members: tuple[MemberSnapshot, ...]
    static_members: tuple[tuple[str, str], ...]
    pending_joins: tuple[str, ...]
    pending_syncs: tuple[str, ...]
    parked_joins: int
    supporters: tuple[tuple[str, int], ...]
    subscribed_topics: tuple[str, ...] | None
    new_member_added: bool
    is_simple: bool


@message
class TimerSnapshot:
    """An armed timer; write limits (T-8) and lingers have the key ""."""

    kind: str
    key: str
    deadline_ms: int


@message
class OffsetSnapshot:
    """A stored offset; ``producer_id`` −1 when it is not part of an open transaction."""

    group_id: str
    topic: str
    partition: int
    producer_id: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    topic_id: str


@message
class PartitionSnapshot:
    """One partition of the offsets topic on this broker, everything in Kafka's order."""

    partition: int
    state: str
    epoch: int
    last_written: int
    last_committed: int
    pending_appends: tuple[int, ...]
    groups: tuple[GroupSnapshot, ...]
    offsets: tuple[OffsetSnapshot, ...]
    timers: tuple[TimerSnapshot, ...]


@message
class CoordinatorSnapshot:
    """All partitions, by number."""

    partitions: tuple[PartitionSnapshot, ...]

    def group(self, group_id: str) -> GroupSnapshot | None:
        """A group by its id, uncommitted ones included."""
        for partition in self.partitions:
            for group in partition.groups:
                if group.group_id == group_id:
                    return group
        return None

    @property
    def timers(self) -> tuple[TimerSnapshot, ...]:
        """All keyed timers in the order of their deadlines."""
        timers = [timer for partition in self.partitions for timer in partition.timers]
        return tuple(sorted(timers, key=lambda timer: (timer.deadline_ms, timer.key)))


def _member(member: ClassicMember) -> MemberSnapshot:
    return MemberSnapshot(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocol_type=member.protocol_type,
        protocols=member.protocols,
        assignment=member.assignment,
        awaiting_join=member.awaiting_join is not None,
        awaiting_sync=member.awaiting_sync is not None,
        is_new=member.is_new,
    )


def _group(group: ClassicGroup, partition: int) -> GroupSnapshot:
    topics = group.subscribed_topics
    return GroupSnapshot(
        group_id=group.group_id,
        partition=partition,
        state=group.state.label,
        previous_state=group.previous_state.label,
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader_id=group.leader_id,
        state_timestamp_ms=group.state_timestamp_ms,
        members=tuple(_member(member) for member in group.members.values()),
        static_members=tuple(sorted(group.static_members.items())),
        pending_joins=tuple(sorted(group.pending_joins)),
        pending_syncs=tuple(sorted(group.pending_syncs)),
        parked_joins=group.parked_joins,
        supporters=tuple(sorted(group.supporters.items())),
        subscribed_topics=None if topics is None else tuple(sorted(topics)),
        new_member_added=group.new_member_added,
        is_simple=group.is_simple,
    )


def _offsets(shard: Shard) -> tuple[OffsetSnapshot, ...]:
    stores = [(-1, shard.offsets.committed), *shard.offsets.pending.items()]
    return tuple(
        OffsetSnapshot(
            group_id=group_id,
            topic=topic,
            partition=partition,
            producer_id=producer_id,
            offset=offset.offset,
            leader_epoch=offset.leader_epoch,
            metadata=offset.metadata,
            commit_timestamp=offset.commit_timestamp,
            expire_timestamp=offset.expire_timestamp,
            topic_id=offset.topic_id,
        )
        for producer_id, store in stores
        for group_id, by_topic in store.by_group.items()
        for topic, by_partition in by_topic.items()
        for partition, offset in by_partition.items()
    )


def _partition(shard: Shard) -> PartitionSnapshot:
    timers = sorted(
        shard.context.timers.values(), key=lambda timer: (timer.deadline_ms, timer.sequence)
    )
    return PartitionSnapshot(
        partition=shard.partition,
        state=shard.state.value,
        epoch=shard.epoch,
        last_written=shard.pipeline.last_written,
        last_committed=shard.pipeline.last_committed,
        pending_appends=shard.pipeline.pending_appends,
        groups=tuple(
            _group(group, shard.partition) for group in shard.context.groups.values(LATEST)
        ),
        offsets=_offsets(shard),
        timers=tuple(
            TimerSnapshot(kind=timer.kind, key=timer.key, deadline_ms=timer.deadline_ms)
            for timer in timers
        ),
    )


def snapshot_of(core: Core) -> CoordinatorSnapshot:
    """Everything, as it is now, uncommitted state included."""
    return CoordinatorSnapshot(
        partitions=tuple(_partition(core.shards[number]) for number in sorted(core.shards))
    )
