"""Where committed and pending transactional offsets live: the maps of ``OffsetMetadataManager``.

All maps remember earlier log offsets, so that a fetch may read the committed state (O-18) and a
failed append is taken back (C-11).
"""

from __future__ import annotations

from functools import partial
from typing import Generic, TypeAlias, TypeVar

from groupsim.coordinator.context import Context
from groupsim.coordinator.records import OffsetCommitKey, OffsetCommitValue, TransactionMarker
from groupsim.coordinator.timeline import (
    LATEST,
    SnapshotRegistry,
    TimelineMap,
    int_hash,
    long_hash,
    string_hash,
)
from groupsim.protocol._base import message

__all__ = ["CommittedOffset", "OffsetStore"]


@message
class CommittedOffset:
    """A stored offset; times are milliseconds.

    ``expire_timestamp`` −1: by retention. ``record_offset`` is the place of its record in the
    log. ``topic_id`` "" stands for the zero id.
    """

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp: int
    expire_timestamp: int = -1
    topic_id: str = ""
    record_offset: int = -1

    @classmethod
    def from_record(cls, record_offset: int, value: OffsetCommitValue) -> CommittedOffset:
        """The offset as replayed from its record."""
        return cls(
            offset=value.offset,
            leader_epoch=value.leader_epoch,
            metadata=value.metadata,
            commit_timestamp=value.commit_timestamp,
            expire_timestamp=value.expire_timestamp,
            topic_id=value.topic_id,
            record_offset=record_offset,
        )


V = TypeVar("V")

ByPartition: TypeAlias = TimelineMap[int, CommittedOffset]
ByTopic: TypeAlias = TimelineMap[str, ByPartition]
Producers: TypeAlias = TimelineMap[int, None]


class _ByPartition(Generic[V]):
    """Values by group, topic and partition; maps that become empty are removed, as in Kafka."""

    def __init__(self, registry: SnapshotRegistry) -> None:
        self._registry = registry
        self.by_group: TimelineMap[str, TimelineMap[str, TimelineMap[int, V]]] = TimelineMap(
            registry, string_hash
        )

    def get(self, group_id: str, topic: str, partition: int) -> V | None:
        by_topic = self.by_group.get(group_id)
        by_partition = None if by_topic is None else by_topic.get(topic)
        return None if by_partition is None else by_partition.get(partition)

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        by_topic = self.by_group.get(group_id)
        by_partition = None if by_topic is None else by_topic.get(topic)
        if by_topic is None or by_partition is None:
            return
        by_partition.remove(partition)
        if not by_partition:
            by_topic.remove(topic)
            if not by_topic:
                self.by_group.remove(group_id)

    def put(self, group_id: str, topic: str, partition: int, value: V) -> None:
        self._partitions(group_id, topic).put(partition, value)

    def _partitions(self, group_id: str, topic: str) -> TimelineMap[int, V]:
        by_topic = self.by_group.get(group_id)
        if by_topic is None:
            by_topic = TimelineMap(self._registry, string_hash)
            self.by_group.put(group_id, by_topic)
        by_partition = by_topic.get(topic)
        if by_partition is None:
            by_partition = TimelineMap(self._registry, int_hash)
            by_topic.put(topic, by_partition)
        return by_partition


class _Offsets(_ByPartition[CommittedOffset]):
    """Offsets by group, topic and partition."""


class _OpenTransactions(_ByPartition[Producers]):
    """Which producers have pending offsets, by group, topic and partition."""

    def add(self, group_id: str, topic: str, partition: int, producer_id: int) -> None:
        by_partition = self._partitions(group_id, topic)
        producers = by_partition.get(partition)
        if producers is None:
            producers = TimelineMap(self._registry, long_hash)
            by_partition.put(partition, producers)
        if producer_id not in producers:  # TimelineHashSet adds unless present
            producers.put(producer_id, None)

    def discard(self, group_id: str, topic: str, partition: int, producer_id: int) -> None:
        producers = self.get(group_id, topic, partition)
        assert producers is not None, f"{producer_id} is not open for {topic}-{partition}"
        producers.remove(producer_id)
        if not producers:
            self.remove(group_id, topic, partition)

    def partitions(self, group_id: str) -> list[tuple[str, int]]:
        by_topic = self.by_group.get(group_id)
        if by_topic is None:
            return []
        return [
            (topic, partition)
            for topic, by_partition in by_topic.items()
            for partition in by_partition.keys()  # noqa: SIM118 - a TimelineMap is no dict
        ]


class OffsetStore:
    """The offsets of one partition's groups."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.committed = _Offsets(context.registry)
        self.open = _OpenTransactions(context.registry)
        self.pending: TimelineMap[int, _Offsets] = TimelineMap(context.registry, long_hash)

    def has_committed(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an offset is stored."""
        return self.committed.get(group_id, topic, partition) is not None

    def has_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction holds an offset."""
        return self.open.get(group_id, topic, partition) is not None

    def offsets_of(self, group_id: str, epoch: int = LATEST) -> ByTopic | None:
        """A group's offsets, as of a log offset."""
        return self.committed.by_group.get_at(group_id, epoch)

    # -- replay ------------------------------------------------------------------------------

    def replay(
        self,
        record_offset: int,
        producer_id: int,
        key: OffsetCommitKey,
        value: OffsetCommitValue | None,
    ) -> None:
        """Take in an OffsetCommit record, or its tombstone (C-18)."""
        where = (key.group, key.topic, key.partition)
        if value is None:
            self._forget(*where)
            return
        if key.group not in self._context.groups:
            self._context.new_group(key.group)
        offset = CommittedOffset.from_record(record_offset, value)
        if producer_id == -1:
            self.committed.put(*where, offset)
            return
        pending = self.pending.get(producer_id)
        if pending is None:
            pending = _Offsets(self._context.registry)
            self.pending.put(producer_id, pending)
        pending.put(*where, offset)
        self.open.add(*where, producer_id)

    def _forget(self, group_id: str, topic: str, partition: int) -> None:
        self.committed.remove(group_id, topic, partition)
        producers = self.open.get(group_id, topic, partition)
        for producer_id in [] if producers is None else producers.keys():
            pending = self.pending.get(producer_id)
            assert pending is not None, f"{producer_id} is open without offsets"
            pending.remove(group_id, topic, partition)
        self.open.remove(group_id, topic, partition)

    def replay_marker(self, marker: TransactionMarker) -> None:
        """A transaction ended: its offsets become visible, or vanish (C-18)."""
        pending = self.pending.remove(marker.producer_id)
        if pending is None:
            return
        ended = [
            (partial(self.committed.put, group_id, topic, partition), offset)
            for group_id, topic, partition, offset in _flat(pending)
            if self._ended(group_id, topic, partition, offset, marker)
        ]
        for put, offset in ended:
            put(offset)

    def _ended(
        self,
        group_id: str,
        topic: str,
        partition: int,
        offset: CommittedOffset,
        marker: TransactionMarker,
    ) -> bool:
        self.open.discard(group_id, topic, partition, marker.producer_id)
        if not marker.committed:
            return False
        existing = self.committed.get(group_id, topic, partition)
        return existing is None or offset.record_offset > existing.record_offset


def _flat(offsets: _Offsets) -> list[tuple[str, str, int, CommittedOffset]]:
    return [
        (group_id, topic, partition, offset)
        for group_id, by_topic in offsets.by_group.items()
        for topic, by_partition in by_topic.items()
        for partition, offset in by_partition.items()
    ]
