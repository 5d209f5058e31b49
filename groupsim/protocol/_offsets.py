"""Messages about committed offsets: OffsetCommit, TxnOffsetCommit, OffsetFetch, OffsetDelete.

``topic_id`` fields (newest versions) are Kafka's base64 UUID text; ``""`` stands for the zero id.
Times are milliseconds, offsets are record counts.
"""

from __future__ import annotations

from groupsim.protocol._base import message
from groupsim.protocol.errors import ErrorCode

__all__ = [
    "OffsetCommitRequest",
    "OffsetCommitRequestPartition",
    "OffsetCommitRequestTopic",
    "OffsetCommitResponse",
    "OffsetCommitResponsePartition",
    "OffsetCommitResponseTopic",
    "OffsetDeleteRequest",
    "OffsetDeleteRequestTopic",
    "OffsetDeleteResponse",
    "OffsetDeleteResponsePartition",
    "OffsetDeleteResponseTopic",
    "OffsetFetchRequest",
    "OffsetFetchRequestGroup",
    "OffsetFetchRequestTopic",
    "OffsetFetchResponse",
    "OffsetFetchResponseGroup",
    "OffsetFetchResponsePartition",
    "OffsetFetchResponseTopic",
    "TxnOffsetCommitRequest",
    "TxnOffsetCommitResponse",
]


@message
class OffsetCommitRequestPartition:
    """One offset to store."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int = -1
    committed_metadata: str | None = None


@message
class OffsetCommitRequestTopic:
    """Offsets of one topic."""

    name: str = ""
    topic_id: str = ""
    partitions: tuple[OffsetCommitRequestPartition, ...]


@message
class OffsetCommitRequest:
    """Offsets to store for a group (v2 to v10). Kafka calls the generation
    ``generationIdOrMemberEpoch``; for classic groups it is the generation.
    """

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    retention_time_ms: int = -1
    topics: tuple[OffsetCommitRequestTopic, ...]


@message
class OffsetCommitResponsePartition:
    """What became of one offset."""

    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE


@message
class OffsetCommitResponseTopic:
    """Results of one topic."""

    name: str = ""
    topic_id: str = ""
    partitions: tuple[OffsetCommitResponsePartition, ...]


@message
class OffsetCommitResponse:
    """Answer to an OffsetCommit: a code for each partition, none at the top."""

    throttle_time_ms: int = 0
    topics: tuple[OffsetCommitResponseTopic, ...] = ()


@message
class TxnOffsetCommitRequest:
    """Offsets that become visible when a transaction commits (v0 to v6)."""

    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    topics: tuple[OffsetCommitRequestTopic, ...]


@message
class TxnOffsetCommitResponse:
    """Answer to a TxnOffsetCommit: a code for each partition, none at the top."""

    throttle_time_ms: int = 0
    topics: tuple[OffsetCommitResponseTopic, ...] = ()


@message
class OffsetFetchRequestTopic:
    """Partitions of one topic whose offsets are wanted."""

    name: str = ""
    topic_id: str = ""
    partition_indexes: tuple[int, ...]


@message
class OffsetFetchRequestGroup:
    """One group's wanted offsets; ``topics`` None means all (v2 and later)."""

    group_id: str
    member_id: str | None = None
    member_epoch: int = -1
    topics: tuple[OffsetFetchRequestTopic, ...] | None


@message
class OffsetFetchRequest:
    """Wanted offsets (v1 to v10). Below v8 ``groups`` holds exactly one group."""

    groups: tuple[OffsetFetchRequestGroup, ...]
    require_stable: bool = False


@message
class OffsetFetchResponsePartition:
    """A committed offset; −1 when there is none."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: ErrorCode = ErrorCode.NONE


@message
class OffsetFetchResponseTopic:
    """Offsets of one topic."""

    name: str = ""
    topic_id: str = ""
    partitions: tuple[OffsetFetchResponsePartition, ...]


@message
class OffsetFetchResponseGroup:
    """Offsets of one group. Below v8 its ``error_code`` is the response's top-level code
    (v2 to v7) or is found on the partitions (v1): rule O-19.
    """

    group_id: str
    topics: tuple[OffsetFetchResponseTopic, ...] = ()
    error_code: ErrorCode = ErrorCode.NONE


@message
class OffsetFetchResponse:
    """Answer to an OffsetFetch, one entry for each group asked for."""

    throttle_time_ms: int = 0
    groups: tuple[OffsetFetchResponseGroup, ...] = ()


@message
class OffsetDeleteRequestTopic:
    """Partitions of one topic whose offsets are to go."""

    name: str
    partitions: tuple[int, ...]


@message
class OffsetDeleteRequest:
    """Offsets to remove from a group (v0 only)."""

    group_id: str
    topics: tuple[OffsetDeleteRequestTopic, ...]


@message
class OffsetDeleteResponsePartition:
    """What became of one offset."""

    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE


@message
class OffsetDeleteResponseTopic:
    """Results of one topic."""

    name: str
    partitions: tuple[OffsetDeleteResponsePartition, ...]


@message
class OffsetDeleteResponse:
    """Answer to an OffsetDelete."""

    error_code: ErrorCode = ErrorCode.NONE
    throttle_time_ms: int = 0
    topics: tuple[OffsetDeleteResponseTopic, ...] = ()
