"""Records of the ``__consumer_offsets`` log, as values.

A key with value None is a tombstone. Names follow Kafka's GroupMetadataKey/Value and
OffsetCommitKey/Value schemas; times are milliseconds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

from groupsim.protocol.messages import message

if TYPE_CHECKING:
    from groupsim.coordinator.classic.group import ClassicGroup

__all__ = [
    "GroupMetadataKey",
    "GroupMetadataValue",
    "LogBatch",
    "MemberMetadata",
    "OffsetCommitKey",
    "OffsetCommitValue",
    "Record",
    "RecordKey",
    "RecordValue",
    "TransactionMarker",
    "as_written",
    "empty_group_record",
    "group_record",
    "group_tombstone",
    "offset_tombstone",
]


@message
class GroupMetadataKey:
    """Names a group."""

    group: str


@message
class MemberMetadata:
    """A member as it is stored: ``subscription`` is its metadata for the selected protocol."""

    member_id: str
    group_instance_id: str | None = None
    client_id: str
    client_host: str
    rebalance_timeout: int
    session_timeout: int
    subscription: bytes
    assignment: bytes


@message
class GroupMetadataValue:
    """A group as it is stored (rules C-09, C-17)."""

    protocol_type: str
    generation: int
    protocol: str | None = None
    leader: str | None = None
    current_state_timestamp: int = -1
    members: tuple[MemberMetadata, ...]


@message
class OffsetCommitKey:
    """Names a committed offset."""

    group: str
    topic: str
    partition: int


@message
class OffsetCommitValue:
    """A committed offset; ``expire_timestamp`` −1 means "by retention" (rule O-08)."""

    offset: int
    leader_epoch: int = -1
    metadata: str
    commit_timestamp: int
    expire_timestamp: int = -1
    topic_id: str = ""


@message
class TransactionMarker:
    """A control record: the transaction of ``producer_id`` ended with commit or abort."""

    producer_id: int
    producer_epoch: int
    committed: bool


RecordKey = GroupMetadataKey | OffsetCommitKey
RecordValue = GroupMetadataValue | OffsetCommitValue


@message
class Record:
    """One log entry. Transactional records carry the producer; markers have only ``marker``."""

    key: RecordKey | None = None
    value: RecordValue | None = None
    producer_id: int = -1
    producer_epoch: int = -1
    marker: TransactionMarker | None = None


@message
class LogBatch:
    """A batch of a partition's log: records with their offsets, which have gaps after compaction,
    and the offset at which the next batch begins.
    """

    records: tuple[tuple[int, Record], ...]
    next_offset: int


def group_record(group: ClassicGroup, assignments: Mapping[str, bytes]) -> Record:
    """A group as it is now, with these assignments (C-09)."""
    members = []
    for member in group.members.values():
        subscription = member.metadata(group.protocol_name)
        members.append(
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=subscription,
                assignment=assignments[member.member_id],
            )
        )
    return Record(
        key=GroupMetadataKey(group=group.group_id),
        value=GroupMetadataValue(
            protocol_type=group.protocol_type or "",
            generation=group.generation_id,
            protocol=group.protocol_name,
            leader=group.leader_id,
            current_state_timestamp=_timestamp(group),
            members=tuple(members),
        ),
    )


def empty_group_record(group: ClassicGroup) -> Record:
    """The first record of a new group (J-21)."""
    return Record(
        key=GroupMetadataKey(group=group.group_id),
        value=GroupMetadataValue(
            protocol_type="",
            generation=0,
            current_state_timestamp=_timestamp(group),
            members=(),
        ),
    )


def _timestamp(group: ClassicGroup) -> int:
    return -1 if group.state_timestamp_ms is None else group.state_timestamp_ms


def group_tombstone(group_id: str) -> Record:
    """A group is gone."""
    return Record(key=GroupMetadataKey(group=group_id))


def offset_tombstone(group_id: str, topic: str, partition: int) -> Record:
    """A committed offset is gone."""
    return Record(key=OffsetCommitKey(group=group_id, topic=topic, partition=partition))


def as_written(record: Record) -> Record:
    """What of a record reaches the log.

    An offset with an expire timestamp is written in value version 1, which has neither leader
    epoch nor topic id; memory keeps them until the next load (O-08).
    """
    value = record.value
    if not isinstance(value, OffsetCommitValue) or value.expire_timestamp == -1:
        return record
    return dataclasses.replace(
        record, value=dataclasses.replace(value, leader_epoch=-1, topic_id="")
    )
