"""What is said between clients and brokers: requests and responses as immutable values.

Names are Kafka's own in snake case; ``APIS`` tells for every request kind its number, its value
types and the versions of Apache Kafka 4.4. The values are the same for all versions of an API;
which fields a version really carries on the wire is the business of ``groupsim.wire``, what the
broker does differently by version is the coordinator's (it is told the version with the request).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from groupsim.protocol import _groups, _membership, _offsets
from groupsim.protocol._base import ApiKey, message
from groupsim.protocol._groups import *  # noqa: F403
from groupsim.protocol._membership import *  # noqa: F403
from groupsim.protocol._offsets import *  # noqa: F403

__all__ = [  # noqa: PLE0604 - the parts' lists are lists of strings
    "APIS",
    "API_OF_REQUEST",
    "Api",
    "ApiKey",
    "Request",
    "Response",
    "message",
    *_groups.__all__,
    *_membership.__all__,
    *_offsets.__all__,
]

Request = (
    _membership.JoinGroupRequest
    | _membership.SyncGroupRequest
    | _membership.HeartbeatRequest
    | _membership.LeaveGroupRequest
    | _offsets.OffsetCommitRequest
    | _offsets.TxnOffsetCommitRequest
    | _offsets.OffsetFetchRequest
    | _offsets.OffsetDeleteRequest
    | _groups.FindCoordinatorRequest
    | _groups.MetadataRequest
    | _groups.DescribeGroupsRequest
    | _groups.ListGroupsRequest
    | _groups.DeleteGroupsRequest
)

Response = (
    _membership.JoinGroupResponse
    | _membership.SyncGroupResponse
    | _membership.HeartbeatResponse
    | _membership.LeaveGroupResponse
    | _offsets.OffsetCommitResponse
    | _offsets.TxnOffsetCommitResponse
    | _offsets.OffsetFetchResponse
    | _offsets.OffsetDeleteResponse
    | _groups.FindCoordinatorResponse
    | _groups.MetadataResponse
    | _groups.DescribeGroupsResponse
    | _groups.ListGroupsResponse
    | _groups.DeleteGroupsResponse
)


@message
class Api:
    """One request kind: number, Kafka's name, value types, supported versions (inclusive)."""

    key: ApiKey
    name: str
    request: type[Any]
    response: type[Any]
    min_version: int
    max_version: int


def _api(key: ApiKey, module: Any, name: str, min_version: int, max_version: int) -> Api:
    return Api(
        key=key,
        name=name,
        request=getattr(module, f"{name}Request"),
        response=getattr(module, f"{name}Response"),
        min_version=min_version,
        max_version=max_version,
    )


APIS: Final[Mapping[ApiKey, Api]] = {
    api.key: api
    for api in (
        _api(ApiKey.METADATA, _groups, "Metadata", 0, 13),
        _api(ApiKey.OFFSET_COMMIT, _offsets, "OffsetCommit", 2, 10),
        _api(ApiKey.OFFSET_FETCH, _offsets, "OffsetFetch", 1, 10),
        _api(ApiKey.FIND_COORDINATOR, _groups, "FindCoordinator", 0, 6),
        _api(ApiKey.JOIN_GROUP, _membership, "JoinGroup", 0, 9),
        _api(ApiKey.HEARTBEAT, _membership, "Heartbeat", 0, 4),
        _api(ApiKey.LEAVE_GROUP, _membership, "LeaveGroup", 0, 5),
        _api(ApiKey.SYNC_GROUP, _membership, "SyncGroup", 0, 5),
        _api(ApiKey.DESCRIBE_GROUPS, _groups, "DescribeGroups", 0, 6),
        _api(ApiKey.LIST_GROUPS, _groups, "ListGroups", 0, 5),
        _api(ApiKey.TXN_OFFSET_COMMIT, _offsets, "TxnOffsetCommit", 0, 6),
        _api(ApiKey.DELETE_GROUPS, _groups, "DeleteGroups", 0, 3),
        _api(ApiKey.OFFSET_DELETE, _offsets, "OffsetDelete", 0, 0),
    )
}

API_OF_REQUEST: Final[Mapping[type[Any], Api]] = {api.request: api for api in APIS.values()}
