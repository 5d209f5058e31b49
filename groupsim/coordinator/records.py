"""Records of the ``__consumer_offsets`` log, as values.

A key with value None is a tombstone. Names follow Kafka's GroupMetadataKey/Value and
OffsetCommitKey/Value schemas; times are milliseconds.
"""

from __future__ import annotations

from groupsim.protocol.messages import message

__all__ = [
    "GroupMetadataKey",
    "GroupMetadataValue",
    "MemberMetadata",
    "OffsetCommitKey",
    "OffsetCommitValue",
    "Record",
    "RecordKey",
    "RecordValue",
    "TransactionMarker",
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
