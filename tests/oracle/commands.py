"""Operations in the driver's command language (README.md) and as our request values.

Both are made from the same resolved operation: ``command`` writes Kafka's JSON field names,
``request`` builds a value of ``groupsim.protocol``.
"""

from __future__ import annotations

import base64
from typing import Any

from groupsim.protocol.messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    ListGroupsRequest,
    MemberIdentity,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    Request,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    TxnOffsetCommitRequest,
)
from tests.oracle.script import Operation
from tests.oracle.topics import Topics

__all__ = ["REQUESTS", "client_host", "client_id", "command", "request"]

REQUESTS = frozenset(
    ("join", "sync", "heartbeat", "leave", "commit", "txn_commit", "fetch", "offset_delete",
     "delete", "describe", "list")
)  # fmt: skip
"""Kinds of operation that are requests of a client."""


def client_id(operation: Operation) -> str:
    """The client id in the request's header."""
    return str(operation.get("client_id", operation.get("client", "admin")))


def client_host(operation: Operation) -> str:
    """Where the client sits: an address of its own for each client."""
    name = str(operation.get("client", "c0"))
    return f"10.0.0.{int(name[1:]) + 1}" if name[1:].isdigit() else "10.0.1.1"


def command(operation: Operation, token: int, topics: Topics) -> dict[str, Any]:
    """The driver's command for a resolved operation."""
    kind = operation["op"]
    if kind in REQUESTS:
        return {
            "op": kind,
            "token": token,
            "version": operation["version"],
            "client_id": client_id(operation),
            "client_host": client_host(operation),
            "request": _BODIES[kind](operation, topics),
        }
    made = dict(operation)
    if kind == "end_txn":
        return {
            "op": kind,
            "token": token,
            "partition": operation["partition"],
            "producer_id": operation["producer"],
            "producer_epoch": operation["epoch"],
            "result": "COMMIT" if operation["committed"] else "ABORT",
        }
    return made


def _b64(text: str) -> str:
    return base64.b64encode(bytes.fromhex(text)).decode()


def _join_body(op: Operation, topics: Topics) -> dict[str, Any]:
    return {
        "groupId": op["group"],
        "sessionTimeoutMs": op["session"],
        "rebalanceTimeoutMs": op.get("rebalance", -1),
        "memberId": op["member"],
        "groupInstanceId": op.get("instance"),
        "protocolType": op["type"],
        "protocols": [{"name": name, "metadata": _b64(data)} for name, data in op["protocols"]],
        "reason": op.get("reason"),
    }


def _sync_body(op: Operation, topics: Topics) -> dict[str, Any]:
    return {
        "groupId": op["group"],
        "generationId": op["generation"],
        "memberId": op["member"],
        "groupInstanceId": op.get("instance"),
        "protocolType": op.get("type"),
        "protocolName": op.get("name"),
        "assignments": [
            {"memberId": member, "assignment": _b64(data)} for member, data in op["assignments"]
        ],
    }


def _heartbeat_body(op: Operation, topics: Topics) -> dict[str, Any]:
    return {
        "groupId": op["group"],
        "generationId": op["generation"],
        "memberId": op["member"],
        "groupInstanceId": op.get("instance"),
    }


def _leave_body(op: Operation, topics: Topics) -> dict[str, Any]:
    if op["version"] < 3:
        return {"groupId": op["group"], "memberId": op["members"][0][0] if op["members"] else ""}
    return {
        "groupId": op["group"],
        "members": [
            {"memberId": member, "groupInstanceId": instance, "reason": reason}
            for member, instance, reason in op["members"]
        ],
    }


def _topic(name: str, topics: Topics, by_id: bool) -> dict[str, Any]:
    return {"topicId": topics.last_id(name)} if by_id else {"name": name}


def _commit_topics(op: Operation, topics: Topics, by_id: bool) -> list[dict[str, Any]]:
    return [
        _topic(name, topics, by_id)
        | {
            "partitions": [
                {
                    "partitionIndex": number,
                    "committedOffset": offset,
                    "committedLeaderEpoch": epoch,
                    "committedMetadata": text,
                }
                for number, offset, epoch, text in partitions
            ]
        }
        for name, partitions in op["topics"]
    ]


def _commit_body(op: Operation, topics: Topics) -> dict[str, Any]:
    return {
        "groupId": op["group"],
        "generationIdOrMemberEpoch": op["generation"],
        "memberId": op["member"],
        "groupInstanceId": op.get("instance"),
        "retentionTimeMs": op["retention"],
        "topics": _commit_topics(op, topics, op["version"] >= 10),
    }


def _txn_commit_body(op: Operation, topics: Topics) -> dict[str, Any]:
    return {
        "transactionalId": op["transaction"],
        "groupId": op["group"],
        "producerId": op["producer"],
        "producerEpoch": op["epoch"],
        "generationIdOrMemberEpoch": op["generation"],
        "memberId": op["member"],
        "groupInstanceId": op.get("instance"),
        "topics": _commit_topics(op, topics, op["version"] >= 6),
    }


def _fetch_body(op: Operation, topics: Topics) -> dict[str, Any]:
    groups = []
    for group, member, epoch, wanted in op["groups"]:
        named = wanted and [
            _topic(name, topics, op["version"] >= 10) | {"partitionIndexes": partitions}
            for name, partitions in wanted
        ]
        groups.append({"groupId": group, "memberId": member, "memberEpoch": epoch, "topics": named})
    if op["version"] >= 8:
        return {"groups": groups, "requireStable": op["stable"]}
    only = groups[0]
    return {"groupId": only["groupId"], "topics": only["topics"], "requireStable": op["stable"]}


def _offset_delete_body(op: Operation, topics: Topics) -> dict[str, Any]:
    return {
        "groupId": op["group"],
        "topics": [
            {"name": name, "partitions": [{"partitionIndex": number} for number in partitions]}
            for name, partitions in op["topics"]
        ],
    }


def _delete_body(op: Operation, topics: Topics) -> dict[str, Any]:
    return {"groupsNames": op["groups"]}


def _describe_body(op: Operation, topics: Topics) -> dict[str, Any]:
    return {"groups": op["groups"]}


def _list_body(op: Operation, topics: Topics) -> dict[str, Any]:
    return {"statesFilter": op["states"], "typesFilter": op["types"]}


_BODIES = {
    "join": _join_body,
    "sync": _sync_body,
    "heartbeat": _heartbeat_body,
    "leave": _leave_body,
    "commit": _commit_body,
    "txn_commit": _txn_commit_body,
    "fetch": _fetch_body,
    "offset_delete": _offset_delete_body,
    "delete": _delete_body,
    "describe": _describe_body,
    "list": _list_body,
}


def request(op: Operation, topics: Topics) -> Request:
    """Our request value for a resolved operation."""
    return _VALUES[op["op"]](op, topics)


def _join(op: Operation, topics: Topics) -> Request:
    return JoinGroupRequest(
        group_id=op["group"],
        session_timeout_ms=op["session"],
        rebalance_timeout_ms=op.get("rebalance", -1),
        member_id=op["member"],
        group_instance_id=op.get("instance"),
        protocol_type=op["type"],
        protocols=tuple(
            JoinGroupRequestProtocol(name=name, metadata=bytes.fromhex(data))
            for name, data in op["protocols"]
        ),
        reason=op.get("reason"),
    )


def _sync(op: Operation, topics: Topics) -> Request:
    return SyncGroupRequest(
        group_id=op["group"],
        generation_id=op["generation"],
        member_id=op["member"],
        group_instance_id=op.get("instance"),
        protocol_type=op.get("type"),
        protocol_name=op.get("name"),
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=member, assignment=bytes.fromhex(data))
            for member, data in op["assignments"]
        ),
    )


def _heartbeat(op: Operation, topics: Topics) -> Request:
    return HeartbeatRequest(
        group_id=op["group"],
        generation_id=op["generation"],
        member_id=op["member"],
        group_instance_id=op.get("instance"),
    )


def _leave(op: Operation, topics: Topics) -> Request:
    if op["version"] < 3:
        member = op["members"][0][0] if op["members"] else ""
        return LeaveGroupRequest(group_id=op["group"], member_id=member)
    return LeaveGroupRequest(
        group_id=op["group"],
        members=tuple(
            MemberIdentity(member_id=member, group_instance_id=instance, reason=reason)
            for member, instance, reason in op["members"]
        ),
    )


def _offset_topics(
    op: Operation, topics: Topics, by_id: bool
) -> tuple[OffsetCommitRequestTopic, ...]:
    return tuple(
        OffsetCommitRequestTopic(
            name="" if by_id else name,
            topic_id=topics.last_id(name) if by_id else "",
            partitions=tuple(
                OffsetCommitRequestPartition(
                    partition_index=number,
                    committed_offset=offset,
                    committed_leader_epoch=epoch,
                    committed_metadata=text,
                )
                for number, offset, epoch, text in partitions
            ),
        )
        for name, partitions in op["topics"]
    )


def _commit(op: Operation, topics: Topics) -> Request:
    return OffsetCommitRequest(
        group_id=op["group"],
        generation_id=op["generation"],
        member_id=op["member"],
        group_instance_id=op.get("instance"),
        retention_time_ms=op["retention"],
        topics=_offset_topics(op, topics, op["version"] >= 10),
    )


def _txn_commit(op: Operation, topics: Topics) -> Request:
    return TxnOffsetCommitRequest(
        transactional_id=op["transaction"],
        group_id=op["group"],
        producer_id=op["producer"],
        producer_epoch=op["epoch"],
        generation_id=op["generation"],
        member_id=op["member"],
        group_instance_id=op.get("instance"),
        topics=_offset_topics(op, topics, op["version"] >= 6),
    )


def _fetch(op: Operation, topics: Topics) -> Request:
    by_id = op["version"] >= 10
    groups = tuple(
        OffsetFetchRequestGroup(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            topics=None
            if wanted is None
            else tuple(
                OffsetFetchRequestTopic(
                    name="" if by_id else name,
                    topic_id=topics.last_id(name) if by_id else "",
                    partition_indexes=tuple(partitions),
                )
                for name, partitions in wanted
            ),
        )
        for group, member, epoch, wanted in op["groups"]
    )
    return OffsetFetchRequest(groups=groups, require_stable=op["stable"])


def _offset_delete(op: Operation, topics: Topics) -> Request:
    return OffsetDeleteRequest(
        group_id=op["group"],
        topics=tuple(
            OffsetDeleteRequestTopic(name=name, partitions=tuple(partitions))
            for name, partitions in op["topics"]
        ),
    )


def _delete(op: Operation, topics: Topics) -> Request:
    return DeleteGroupsRequest(groups_names=tuple(op["groups"]))


def _describe(op: Operation, topics: Topics) -> Request:
    return DescribeGroupsRequest(groups=tuple(op["groups"]))


def _list(op: Operation, topics: Topics) -> Request:
    return ListGroupsRequest(states_filter=tuple(op["states"]), types_filter=tuple(op["types"]))


_VALUES = {
    "join": _join,
    "sync": _sync,
    "heartbeat": _heartbeat,
    "leave": _leave,
    "commit": _commit,
    "txn_commit": _txn_commit,
    "fetch": _fetch,
    "offset_delete": _offset_delete,
    "delete": _delete,
    "describe": _describe,
    "list": _list,
}
