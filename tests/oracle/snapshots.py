"""Our coordinator's memory in the shape of the driver's snapshots (README.md, "Looking in")."""

from __future__ import annotations

import base64
from typing import Any

from groupsim.coordinator import GroupCoordinator
from groupsim.coordinator.classic.group import ClassicGroup
from groupsim.coordinator.classic.member import ClassicMember
from groupsim.coordinator.failures import IllegalStateError
from groupsim.coordinator.offsets.store import CommittedOffset, OffsetStore
from groupsim.coordinator.pipeline import Pipeline
from groupsim.coordinator.shard import Shard
from groupsim.coordinator.timers import Timer
from tests.oracle.kafka_json import ZERO_ID
from tests.oracle.log import PartitionLog

__all__ = ["snapshot"]

_OPERATIONS = {"write-timeout": "operation", "linger": "linger"}


def snapshot(coordinator: GroupCoordinator, logs: dict[int, PartitionLog]) -> dict[str, Any]:
    """Everything the coordinator holds."""
    shards = coordinator._core.shards
    return {
        "partitions": [_partition(shards[number], logs.get(number)) for number in sorted(shards)],
        "timers": _timers(coordinator),
    }


def _partition(shard: Shard, log: PartitionLog | None) -> dict[str, Any]:
    active = shard.state.name in ("LOADING", "ACTIVE")
    pipeline = shard.pipeline
    batch = pipeline._batch
    plain: dict[str, Any] = {
        "partition": shard.partition,
        "state": shard.state.name,
        "epoch": shard.epoch,
        "last_written": pipeline.last_written if active else -1,
        "last_committed": pipeline.last_committed if active else -1,
        "batched_records": len(batch.records) if batch else 0,
        "log_end": log.end_offset if log else 0,
        "high_watermark": log.high_watermark if log else 0,
    }
    if active:
        groups = shard.context.groups
        plain["groups"] = [
            _group(groups.get(group_id), _is_committed(shard, group_id))
            for group_id in groups.keys()  # noqa: SIM118 - a TimelineMap is no dict
        ]
        plain["offsets"] = [_offset(*one) for one in _flat(shard.offsets.committed.by_group)]
        plain["pending_offsets"] = [
            _offset(*one) | {"producer_id": producer}
            for producer, offsets in shard.offsets.pending.items()
            for one in _flat(offsets.by_group)
        ]
        plain["open_transactions"] = _open_transactions(shard.offsets)
    return plain


def _is_committed(shard: Shard, group_id: str) -> bool | None:
    """None where reading fails, since there is no snapshot of the committed offset."""
    try:
        committed = shard.context.groups.get_at(group_id, shard.pipeline.last_committed)
    except IllegalStateError:
        return None
    return committed is not None


def _group(group: ClassicGroup | None, committed: bool | None) -> dict[str, Any]:
    assert group is not None
    topics = group.subscribed_topics
    return {
        "group_id": group.group_id,
        "type": "classic",
        "state": group.state.label,
        "committed": committed,
        "previous_state": group.previous_state.label,
        "state_timestamp": group.state_timestamp_ms,
        "generation_id": group.generation_id,
        "protocol_type": group.protocol_type,
        "protocol_name": group.protocol_name,
        "leader": group.leader_id,
        "new_member_added": group.new_member_added,
        "num_awaiting_join": group.parked_joins,
        "pending_join_members": sorted(group.pending_joins),
        "pending_sync_members": sorted(group.pending_syncs),
        "subscribed_topics": None if topics is None else sorted(topics),
        "supported_protocols": dict(group.supporters),
        "members": [_member(member) for member in group.members.values()],
    }


def _member(member: ClassicMember) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "session_timeout_ms": member.session_timeout_ms,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
        "protocol_type": member.protocol_type,
        "protocols": [[one.name, _base64(one.metadata)] for one in member.protocols],
        "assignment": _base64(member.assignment),
        "is_new": member.is_new,
        "awaiting_join": member.awaiting_join is not None,
        "awaiting_sync": member.awaiting_sync is not None,
    }


def _flat(by_group: Any) -> list[tuple[str, str, int, CommittedOffset]]:
    return [
        (group_id, topic, partition, offset)
        for group_id, by_topic in by_group.items()
        for topic, by_partition in by_topic.items()
        for partition, offset in by_partition.items()
    ]


def _offset(group_id: str, topic: str, partition: int, offset: CommittedOffset) -> dict[str, Any]:
    return {
        "group_id": group_id,
        "topic": topic,
        "partition": partition,
        "offset": offset.offset,
        "leader_epoch": offset.leader_epoch,
        "metadata": offset.metadata,
        "commit_timestamp": offset.commit_timestamp,
        "expire_timestamp": offset.expire_timestamp,
        "record_offset": offset.record_offset,
        "topic_id": offset.topic_id or ZERO_ID,
    }


def _open_transactions(offsets: OffsetStore) -> list[dict[str, Any]]:
    return [
        {
            "group_id": group_id,
            "topic": topic,
            "partition": partition,
            "producer_ids": sorted(producers.keys()),
        }
        for group_id, by_topic in offsets.open.by_group.items()
        for topic, by_partition in by_topic.items()
        for partition, producers in by_partition.items()
    ]


def _timers(coordinator: GroupCoordinator) -> list[dict[str, Any]]:
    queue = coordinator._core.queue
    owners = {
        id(timer): shard.partition
        for shard in coordinator._core.shards.values()
        for timer in shard.context.timers.values()
    }
    armed: list[Timer] = [
        timer
        for deadline, sequence, timer in queue._heap
        if timer.alive and timer.place == (deadline, sequence)
    ]
    armed.sort(key=lambda timer: (timer.deadline_ms, timer.sequence))
    plain = []
    for timer in armed:
        if isinstance(timer.owner, Pipeline):
            plain.append(
                {
                    "deadline": timer.deadline_ms,
                    "kind": _OPERATIONS[timer.kind],
                    "partition": timer.owner._partition,
                }
            )
        else:
            plain.append(
                {
                    "deadline": timer.deadline_ms,
                    "kind": "group",
                    "name": timer.key,
                    "partition": owners.get(id(timer)),
                }
            )
    return plain


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
