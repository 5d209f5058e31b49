"""OffsetCommit and TxnOffsetCommit in the coordinator (O-03 to O-08, O-12, O-13)."""

from __future__ import annotations

from groupsim.coordinator.classic.group import ClassicGroup
from groupsim.coordinator.classic.rebalance import touch_heartbeat
from groupsim.coordinator.classic.states import GroupState
from groupsim.coordinator.context import Context
from groupsim.coordinator.failures import GroupError
from groupsim.coordinator.pipeline import Result
from groupsim.coordinator.records import OffsetCommitKey, OffsetCommitValue, Record
from groupsim.protocol._base import message
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    TxnOffsetCommitRequest,
)

__all__ = ["commit_offsets", "commit_transactional_offsets"]

Topics = tuple[OffsetCommitResponseTopic, ...]


@message
class _Terms:
    """What all offsets of one commit share; a producer only within a transaction."""

    expire_timestamp: int = -1
    producer_id: int = -1
    producer_epoch: int = -1


def commit_offsets(
    context: Context, request: OffsetCommitRequest, api_version: int
) -> tuple[Result, Topics]:
    """O-03 to O-08.

    Raises:
        GroupError: the sender may not commit.

    """
    group = context.groups.get(request.group_id)
    if group is None:
        if request.generation_id >= 0:  # O-03, O-09
            raise _unknown_group(request.group_id, api_version >= 9)
        context.outbox.log(
            request.group_id,
            "INFO",
            f"[GroupId {request.group_id}] Creating a simple consumer group via manual offset "
            "commit.",
        )
        group = context.new_group(request.group_id)
    _validate(group, request, transactional=False)
    if group.state in (GroupState.STABLE, GroupState.PREPARING):  # O-06
        touch_heartbeat(context, group, group.members[request.member_id])
    expire_timestamp = -1
    if request.retention_time_ms != -1:  # O-08
        expire_timestamp = context.outbox.now_ms + request.retention_time_ms
    return _store(
        context, request.group_id, request.topics, _Terms(expire_timestamp=expire_timestamp)
    )


def commit_transactional_offsets(
    context: Context, request: TxnOffsetCommitRequest, api_version: int
) -> tuple[Result, Topics]:
    """O-12, O-13.

    Raises:
        GroupError: the sender may not commit.

    """
    group = context.groups.get(request.group_id)
    if group is None:
        if request.generation_id >= 0:  # O-12; from version 6 on as OffsetCommit
            raise _unknown_group(request.group_id, api_version >= 6)
        group = context.new_group(request.group_id)
    _validate(group, request, transactional=True)
    terms = _Terms(producer_id=request.producer_id, producer_epoch=request.producer_epoch)
    return _store(context, request.group_id, request.topics, terms)


def _unknown_group(group_id: str, names_it: bool) -> GroupError:
    if names_it:
        return GroupError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    return GroupError(ErrorCode.ILLEGAL_GENERATION)


def _validate(
    group: ClassicGroup,
    request: OffsetCommitRequest | TxnOffsetCommitRequest,
    *,
    transactional: bool,
) -> None:
    """O-04, O-13: who may commit."""
    if group.state is GroupState.DEAD:
        raise GroupError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if request.generation_id < 0 and group.state is GroupState.EMPTY:
        return
    if request.generation_id >= 0 or request.member_id or request.group_instance_id is not None:
        # Kafka has the two names the wrong way round here.
        operation = "offset-commit" if transactional else "txn-offset-commit"
        group.validate_member(request.member_id, request.group_instance_id, operation)
        if request.generation_id != group.generation_id:
            raise GroupError(ErrorCode.ILLEGAL_GENERATION)
    elif not transactional:
        raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)  # not EMPTY, or we had returned
    if not transactional and group.state is GroupState.COMPLETING:
        raise GroupError(ErrorCode.REBALANCE_IN_PROGRESS)


def _store(
    context: Context,
    group_id: str,
    topics: tuple[OffsetCommitRequestTopic, ...],
    terms: _Terms,
) -> tuple[Result, Topics]:
    """O-07: one record for each partition whose metadata is not too large."""
    limit = context.config.offset_metadata_max_bytes
    records: list[Record] = []
    answers = []
    for topic in topics:
        partitions = []
        for partition in topic.partitions:
            error = ErrorCode.NONE
            if _utf16_length(partition.committed_metadata or "") > limit:
                error = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                where = OffsetCommitKey(
                    group=group_id, topic=topic.name, partition=partition.partition_index
                )
                records.append(_record(context, where, partition, terms, topic.topic_id))
            partitions.append(
                OffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=error
                )
            )
        answers.append(
            OffsetCommitResponseTopic(
                name=topic.name, topic_id=topic.topic_id, partitions=tuple(partitions)
            )
        )
    return Result(tuple(records)), tuple(answers)


def _utf16_length(text: str) -> int:
    """``String.length()``."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _record(
    context: Context,
    where: OffsetCommitKey,
    partition: OffsetCommitRequestPartition,
    terms: _Terms,
    topic_id: str,
) -> Record:
    return Record(
        key=where,
        value=OffsetCommitValue(
            offset=partition.committed_offset,
            leader_epoch=partition.committed_leader_epoch,
            metadata=partition.committed_metadata or "",
            commit_timestamp=context.outbox.now_ms,
            expire_timestamp=terms.expire_timestamp,
            topic_id=topic_id,
        ),
        producer_id=terms.producer_id,
        producer_epoch=terms.producer_epoch,
    )
