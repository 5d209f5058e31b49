"""Our values as Kafka's JSON: responses at a version, and records as its log's schemas name them.

The shape is that of the ``*JsonConverter`` classes that Kafka generates from its message schemas:
camel case names, bytes as base64 text, errors as numbers, only the fields a version has.
"""

from __future__ import annotations

import base64
import enum
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from groupsim.coordinator.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitValue,
    Record,
)
from groupsim.protocol.messages import OffsetFetchResponse, Response, TxnOffsetCommitResponse

__all__ = ["record_json", "response_json"]

ZERO_ID = "AAAAAAAAAAAAAAAAAAAAAA"

_VERSIONS: Mapping[str, tuple[int, int]] = {
    "JoinGroupResponse.throttleTimeMs": (2, 99),
    "JoinGroupResponse.protocolType": (7, 99),
    "JoinGroupResponse.skipAssignment": (9, 99),
    "JoinGroupResponseMember.groupInstanceId": (5, 99),
    "SyncGroupResponse.throttleTimeMs": (1, 99),
    "SyncGroupResponse.protocolType": (5, 99),
    "SyncGroupResponse.protocolName": (5, 99),
    "HeartbeatResponse.throttleTimeMs": (1, 99),
    "LeaveGroupResponse.throttleTimeMs": (1, 99),
    "LeaveGroupResponse.members": (3, 99),
    "OffsetCommitResponse.throttleTimeMs": (3, 99),
    "OffsetCommitResponseTopic.name": (0, 9),
    "OffsetCommitResponseTopic.topicId": (10, 99),
    "OffsetFetchResponse.throttleTimeMs": (3, 99),
    "OffsetFetchResponseTopic.name": (0, 9),
    "OffsetFetchResponseTopic.topicId": (10, 99),
    "OffsetFetchResponsePartition.committedLeaderEpoch": (5, 99),
    "OffsetDeleteResponse.throttleTimeMs": (0, 99),
    "DescribeGroupsResponse.throttleTimeMs": (1, 99),
    "DescribedGroup.errorMessage": (6, 99),
    "DescribedGroup.authorizedOperations": (3, 99),
    "DescribedGroupMember.groupInstanceId": (4, 99),
    "ListGroupsResponse.throttleTimeMs": (1, 99),
    "ListedGroup.groupState": (4, 99),
    "ListedGroup.groupType": (5, 99),
    "DeletableGroupResult.errorMessage": (3, 99),
}
"""Fields that not every version has: first and last version."""


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


_PLANS: dict[tuple[type[Any], int], list[tuple[str, str]]] = {}


def _plan(cls: type[Any], version: int) -> list[tuple[str, str]]:
    plan = []
    for field in fields(cls):
        name = _camel(field.name)
        first, last = _VERSIONS.get(f"{cls.__name__}.{name}", (0, 99))
        if first <= version <= last:
            plan.append((field.name, name))
    return plan


def _value(value: Any, version: int) -> Any:
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, enum.IntEnum):
        return value.value
    if isinstance(value, int):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, tuple):
        return [_value(item, version) for item in value]
    cls = type(value)
    plan = _PLANS.get((cls, version))
    if plan is None:
        plan = _PLANS[cls, version] = _plan(cls, version)
    return {name: _value(getattr(value, field), version) for field, name in plan}


def response_json(response: Response, version: int) -> dict[str, Any]:
    """A response as Kafka's JSON at ``version``."""
    if isinstance(response, TxnOffsetCommitResponse):  # shares its topics with OffsetCommit
        version = {6: 10}.get(version, 9)
    plain: dict[str, Any] = _value(response, version)
    if isinstance(response, OffsetFetchResponse) and version < 8:
        group = plain.pop("groups")[0]
        plain["topics"] = group["topics"]
        if version >= 2:
            plain["errorCode"] = group["errorCode"]
    return plain


def record_json(record: Record) -> dict[str, Any]:
    """A record as the driver shows it: type, key, version, value; or the marker."""
    if record.marker is not None:
        kind = "COMMIT" if record.marker.committed else "ABORT"
        return {"type": "EndTransactionMarker", "marker": kind}
    assert record.key is not None
    key: dict[str, Any] = _value(record.key, 0)
    kind = "GroupMetadata" if isinstance(record.key, GroupMetadataKey) else "OffsetCommit"
    plain: dict[str, Any] = {"type": kind, "key": key, "value": None}
    if isinstance(record.value, GroupMetadataValue):
        plain |= {"version": 3, "value": _value(record.value, 3)}
    elif isinstance(record.value, OffsetCommitValue):
        version = 4 if record.value.expire_timestamp == -1 else 1
        plain |= {"version": version, "value": _offset_json(record.value)}
    return plain


def _offset_json(value: OffsetCommitValue) -> dict[str, Any]:
    """Version 1 when there is an expire time, else 4 (``offsetCommitValueVersion``)."""
    plain: dict[str, Any] = _value(value, 0)
    if value.expire_timestamp == -1:
        del plain["expireTimestamp"]
        if not value.topic_id:
            del plain["topicId"]
    else:
        del plain["leaderEpoch"], plain["topicId"]
    return plain
