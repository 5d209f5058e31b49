"""Messages that look at groups from outside: FindCoordinator, Metadata, Describe, List, Delete."""

from __future__ import annotations

from groupsim.protocol._base import message
from groupsim.protocol.errors import ErrorCode

__all__ = [
    "Coordinator",
    "DeletableGroupResult",
    "DeleteGroupsRequest",
    "DeleteGroupsResponse",
    "DescribeGroupsRequest",
    "DescribeGroupsResponse",
    "DescribedGroup",
    "DescribedGroupMember",
    "FindCoordinatorRequest",
    "FindCoordinatorResponse",
    "ListGroupsRequest",
    "ListGroupsResponse",
    "ListedGroup",
    "MetadataRequest",
    "MetadataResponse",
    "MetadataResponseBroker",
    "MetadataResponsePartition",
    "MetadataResponseTopic",
]


@message
class FindCoordinatorRequest:
    """Who coordinates these groups? (v0 to v6; below v4 exactly one key). ``key_type`` 0 is a
    group, 1 a transactional id.
    """

    key_type: int = 0
    coordinator_keys: tuple[str, ...]


@message
class Coordinator:
    """The broker that coordinates ``key``; node −1, host "" and port −1 with an error (C-01)."""

    key: str
    node_id: int = -1
    host: str = ""
    port: int = -1
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


@message
class FindCoordinatorResponse:
    """Answer to a FindCoordinator, one entry for each key."""

    throttle_time_ms: int = 0
    coordinators: tuple[Coordinator, ...] = ()


@message
class MetadataRequest:
    """Brokers and topics; ``topics`` None means all topics."""

    topics: tuple[str, ...] | None = None
    allow_auto_topic_creation: bool = False


@message
class MetadataResponseBroker:
    """A live broker."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


@message
class MetadataResponsePartition:
    """A partition, its leader and its replicas (node ids)."""

    error_code: ErrorCode = ErrorCode.NONE
    partition_index: int
    leader_id: int
    leader_epoch: int = 0
    replica_nodes: tuple[int, ...] = ()
    isr_nodes: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()


@message
class MetadataResponseTopic:
    """A topic with its partitions by number; ``topic_id`` as Kafka's base64 UUID text."""

    error_code: ErrorCode = ErrorCode.NONE
    name: str
    topic_id: str = ""
    is_internal: bool = False
    partitions: tuple[MetadataResponsePartition, ...] = ()


@message
class MetadataResponse:
    """Answer to a Metadata request."""

    throttle_time_ms: int = 0
    brokers: tuple[MetadataResponseBroker, ...] = ()
    cluster_id: str | None = None
    controller_id: int = -1
    topics: tuple[MetadataResponseTopic, ...] = ()


@message
class DescribeGroupsRequest:
    """Which groups to describe (v0 to v6)."""

    groups: tuple[str, ...]
    include_authorized_operations: bool = False


@message
class DescribedGroupMember:
    """One member of a described group."""

    member_id: str
    group_instance_id: str | None = None
    client_id: str
    client_host: str
    member_metadata: bytes = b""
    member_assignment: bytes = b""


@message
class DescribedGroup:
    """One described group; ``group_state`` is one of Kafka's state names (rule 1.1)."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    group_id: str
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: tuple[DescribedGroupMember, ...] = ()
    authorized_operations: int = -2147483648


@message
class DescribeGroupsResponse:
    """Answer to a DescribeGroups, in the order of the request."""

    throttle_time_ms: int = 0
    groups: tuple[DescribedGroup, ...] = ()


@message
class ListGroupsRequest:
    """Filters for a listing; empty tuples let everything pass (v4 states, v5 types)."""

    states_filter: tuple[str, ...] = ()
    types_filter: tuple[str, ...] = ()


@message
class ListedGroup:
    """One listed group."""

    group_id: str
    protocol_type: str
    group_state: str = ""
    group_type: str = ""


@message
class ListGroupsResponse:
    """Answer to a ListGroups."""

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    groups: tuple[ListedGroup, ...] = ()


@message
class DeleteGroupsRequest:
    """Groups to delete (v0 to v3)."""

    groups_names: tuple[str, ...]


@message
class DeletableGroupResult:
    """What became of one group."""

    group_id: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


@message
class DeleteGroupsResponse:
    """Answer to a DeleteGroups."""

    throttle_time_ms: int = 0
    results: tuple[DeletableGroupResult, ...] = ()
