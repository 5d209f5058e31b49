"""OffsetFetch in the coordinator (O-17, O-18)."""

from __future__ import annotations

from groupsim.coordinator.classic.states import GroupState
from groupsim.coordinator.context import Context
from groupsim.coordinator.offsets.store import CommittedOffset, OffsetStore
from groupsim.coordinator.timeline import LATEST
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

__all__ = ["fetch_offsets", "missing_offset"]


def missing_offset(
    partition: int, error: ErrorCode = ErrorCode.NONE
) -> OffsetFetchResponsePartition:
    """The answer for a partition of which nothing is (or may be) told."""
    return OffsetFetchResponsePartition(
        partition_index=partition, committed_offset=-1, error_code=error
    )


def fetch_offsets(
    context: Context, store: OffsetStore, request: OffsetFetchRequestGroup, epoch: int
) -> OffsetFetchResponseGroup:
    """Offsets as of log offset ``epoch``; LATEST means require-stable (O-18)."""
    group = context.groups.get_at(request.group_id, epoch)
    if group is None or group.state is GroupState.DEAD:  # O-17
        nothing = tuple(
            OffsetFetchResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(missing_offset(index) for index in topic.partition_indexes),
            )
            for topic in request.topics or ()
        )
        return OffsetFetchResponseGroup(group_id=request.group_id, topics=nothing)
    view = _View(store, request.group_id, epoch)
    topics = view.everything() if request.topics is None else view.asked_for(request)
    return OffsetFetchResponseGroup(group_id=request.group_id, topics=topics)


class _View:
    """One group's offsets as of one log offset."""

    def __init__(self, store: OffsetStore, group_id: str, epoch: int) -> None:
        self._epoch = epoch
        self._offsets = store.offsets_of(group_id, epoch)
        self._open = store.open.by_group.get(group_id) if epoch == LATEST else None

    def everything(self) -> tuple[OffsetFetchResponseTopic, ...]:
        """A fetch of all: topics with a committed offset only."""
        if self._offsets is None:
            return ()
        return tuple(
            OffsetFetchResponseTopic(
                name=topic,
                partitions=tuple(
                    self._found(topic, partition, offset)
                    for partition, offset in by_partition.items(self._epoch)
                ),
            )
            for topic, by_partition in self._offsets.items(self._epoch)
        )

    def asked_for(self, request: OffsetFetchRequestGroup) -> tuple[OffsetFetchResponseTopic, ...]:
        """A fetch of named partitions."""
        answers = []
        for topic in request.topics or ():
            by_partition = (
                None if self._offsets is None else self._offsets.get_at(topic.name, self._epoch)
            )
            partitions = []
            for index in topic.partition_indexes:
                offset = None if by_partition is None else by_partition.get_at(index, self._epoch)
                if offset is not None and _other_topic(offset.topic_id, topic.topic_id):
                    offset = None
                partitions.append(self._found(topic.name, index, offset))
            answers.append(
                OffsetFetchResponseTopic(
                    name=topic.name, topic_id=topic.topic_id, partitions=tuple(partitions)
                )
            )
        return tuple(answers)

    def _found(
        self, topic: str, partition: int, offset: CommittedOffset | None
    ) -> OffsetFetchResponsePartition:
        open_partitions = None if self._open is None else self._open.get(topic)
        if open_partitions is not None and partition in open_partitions:
            return missing_offset(partition, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        if offset is None:
            return missing_offset(partition)
        return OffsetFetchResponsePartition(
            partition_index=partition,
            committed_offset=offset.offset,
            committed_leader_epoch=offset.leader_epoch,
            metadata=offset.metadata,
        )


def _other_topic(stored: str, asked: str) -> bool:
    """Whether the offset belongs to a topic of the same name that has been deleted since."""
    return bool(stored) and bool(asked) and stored != asked
