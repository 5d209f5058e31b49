"""Offsets that go: deleted on request, with their group, with their topic, or by age (O-20 ff.)."""

from __future__ import annotations

from groupsim.coordinator.classic.group import ClassicGroup
from groupsim.coordinator.classic.states import GroupState
from groupsim.coordinator.context import Context
from groupsim.coordinator.failures import GroupError
from groupsim.coordinator.offsets.store import CommittedOffset, OffsetStore
from groupsim.coordinator.pipeline import Result
from groupsim.coordinator.records import Record, group_tombstone, offset_tombstone
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    DeletableGroupResult,
    OffsetDeleteRequest,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

__all__ = ["clean_up", "delete_groups", "delete_offsets", "delete_topics"]

_LIVE = (GroupState.PREPARING, GroupState.COMPLETING, GroupState.STABLE)


def _group_or_failure(context: Context, group_id: str) -> ClassicGroup:
    group = context.groups.get(group_id)
    if group is None:
        raise GroupError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if group.state is GroupState.DEAD:
        raise GroupError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is in dead state.")
    return group


# -- OffsetDelete ----------------------------------------------------------------------------


def delete_offsets(
    context: Context, store: OffsetStore, request: OffsetDeleteRequest
) -> tuple[Result, tuple[OffsetDeleteResponseTopic, ...]]:
    """O-21.

    Raises:
        GroupError: GROUP_ID_NOT_FOUND or NON_EMPTY_GROUP.

    """
    group = _group_or_failure(context, request.group_id)
    if group.state in _LIVE and not group.uses_consumer_protocol:
        raise GroupError(ErrorCode.NON_EMPTY_GROUP)
    records: list[Record] = []
    topics = []
    for topic in request.topics:
        subscribed = group.is_subscribed_to(topic.name)
        if not subscribed:
            records += [
                offset_tombstone(request.group_id, topic.name, partition)
                for partition in topic.partitions
                if store.has_committed(request.group_id, topic.name, partition)
                or store.has_pending(request.group_id, topic.name, partition)
            ]
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
        topics.append(
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetDeleteResponsePartition(partition_index=partition, error_code=error)
                    for partition in topic.partitions
                ),
            )
        )
    return Result(tuple(records)), tuple(topics)


# -- DeleteGroups ----------------------------------------------------------------------------


def delete_groups(
    context: Context, store: OffsetStore, group_ids: list[str]
) -> tuple[Result, tuple[DeletableGroupResult, ...]]:
    """D-07."""
    records: list[Record] = []
    results = []
    deleted: list[str] = []
    offsets = 0
    for group_id in group_ids:
        error = ErrorCode.NONE
        try:
            _check_deletable(context, group_id)
            tombstones = _all_offsets(store, group_id)
            records += [*tombstones, group_tombstone(group_id)]
            offsets += len(tombstones)
            deleted.append(group_id)
        except GroupError as failure:
            error = failure.code
        results.append(DeletableGroupResult(group_id=group_id, error_code=error))
    context.outbox.log(
        "",
        "INFO",
        f"The following groups were deleted: {', '.join(deleted)}. A total of {offsets} offsets "
        "were removed.",
    )
    return Result(tuple(records)), tuple(results)


def _check_deletable(context: Context, group_id: str) -> None:
    if _group_or_failure(context, group_id).state in _LIVE:
        raise GroupError(ErrorCode.NON_EMPTY_GROUP)


def _all_offsets(store: OffsetStore, group_id: str) -> list[Record]:
    by_topic = store.offsets_of(group_id)
    records = [
        offset_tombstone(group_id, topic, partition)
        for topic, by_partition in ([] if by_topic is None else by_topic.items())
        for partition in by_partition.keys()  # noqa: SIM118 - a TimelineMap is no dict
    ]
    return records + [
        offset_tombstone(group_id, topic, partition)
        for topic, partition in store.open.partitions(group_id)
        if not store.has_committed(group_id, topic, partition)
    ]


# -- topics deleted --------------------------------------------------------------------------


def delete_topics(
    context: Context, store: OffsetStore, topics: tuple[tuple[str, str], ...]
) -> Result:
    """O-23: offsets of deleted topics, given as (name, id), go at once, pending ones too."""
    by_name = context.config.switches.offsets_deleted_by_partition_name
    records: list[Record] = []
    for offsets in (store.committed, *store.pending.values()):
        for group_id, by_topic in offsets.by_group.items():
            for name, topic_id in topics:
                by_partition = by_topic.get(name)
                records += [
                    offset_tombstone(group_id, name, partition)
                    for partition, offset in ([] if by_partition is None else by_partition.items())
                    if by_name or offset.topic_id in ("", topic_id)
                ]
    return Result(tuple(records))


# -- expiry ----------------------------------------------------------------------------------


def clean_up(context: Context, store: OffsetStore) -> Result:
    """O-22: tombstones for expired offsets, and for EMPTY groups that have none left."""
    records: list[Record] = []
    for group_id, group in context.groups.items():
        all_gone = _expire(context, store, group, records)
        if all_gone and group.state is GroupState.EMPTY:
            records.append(group_tombstone(group_id))
    if records:
        context.outbox.log(
            "",
            "INFO",
            f"Generated {len(records)} tombstone records while cleaning up group metadata in 0 "
            "milliseconds.",
        )
    return Result(tuple(records))


def _expire(
    context: Context, store: OffsetStore, group: ClassicGroup, records: list[Record]
) -> bool:
    """2.2. Returns whether the group has no offset left."""
    group_id = group.group_id
    by_topic = store.offsets_of(group_id)
    untouched = group_id not in store.open.by_group
    if by_topic is None:
        return untouched
    if not _may_expire(group):
        return False
    all_expired = True
    for topic, by_partition in by_topic.items():
        if group.is_subscribed_to(topic):
            all_expired = False
            continue
        for partition, offset in by_partition.items():
            if _is_expired(context, group, offset) and not store.has_pending(
                group_id, topic, partition
            ):
                records.append(offset_tombstone(group_id, topic, partition))
            else:
                all_expired = False
    return all_expired and untouched


def _may_expire(group: ClassicGroup) -> bool:
    """The table of 2.2: whether a condition applies to the group at all."""
    return (
        group.protocol_type is None
        or group.state is GroupState.EMPTY
        or (
            group.uses_consumer_protocol
            and group.subscribed_topics is not None
            and group.state is GroupState.STABLE
        )
    )


def _is_expired(context: Context, group: ClassicGroup, offset: CommittedOffset) -> bool:
    now_ms = context.outbox.now_ms
    if offset.expire_timestamp != -1:
        return now_ms >= offset.expire_timestamp
    base = offset.commit_timestamp
    if (
        group.protocol_type is not None
        and group.state is GroupState.EMPTY
        and group.state_timestamp_ms is not None
    ):
        base = group.state_timestamp_ms
    return now_ms - base >= context.config.offsets_retention_ms
