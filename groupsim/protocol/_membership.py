"""Messages of a group's life: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Field names are those of Kafka's message schemas in snake case; all times are milliseconds.
Fields that newer versions added carry the schema's default, so that a message of an old version
is the same value with those fields left alone.
"""

from __future__ import annotations

from groupsim.protocol._base import message
from groupsim.protocol.errors import ErrorCode

__all__ = [
    "HeartbeatRequest",
    "HeartbeatResponse",
    "JoinGroupRequest",
    "JoinGroupRequestProtocol",
    "JoinGroupResponse",
    "JoinGroupResponseMember",
    "LeaveGroupRequest",
    "LeaveGroupResponse",
    "MemberIdentity",
    "MemberResponse",
    "SyncGroupRequest",
    "SyncGroupRequestAssignment",
    "SyncGroupResponse",
]


@message
class JoinGroupRequestProtocol:
    """One protocol a member offers; ``metadata`` is opaque to the broker."""

    name: str
    metadata: bytes


@message
class JoinGroupRequest:
    """A wish to be in the group (v0 to v9; rule J-47 lists what each version added)."""

    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int = -1
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str
    protocols: tuple[JoinGroupRequestProtocol, ...]
    reason: str | None = None


@message
class JoinGroupResponseMember:
    """A member as its leader sees it; ``metadata`` belongs to the selected protocol."""

    member_id: str
    group_instance_id: str | None = None
    metadata: bytes


@message
class JoinGroupResponse:
    """Answer to a JoinGroup; ``members`` is filled for the leader only."""

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: tuple[JoinGroupResponseMember, ...] = ()


@message
class SyncGroupRequestAssignment:
    """The assignment the leader made for one member; ``assignment`` is opaque to the broker."""

    member_id: str
    assignment: bytes


@message
class SyncGroupRequest:
    """A member asks for its assignment; the leader brings everybody's (v0 to v5)."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[SyncGroupRequestAssignment, ...] = ()


@message
class SyncGroupResponse:
    """Answer to a SyncGroup; ``assignment`` may be empty (zero bytes)."""

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@message
class HeartbeatRequest:
    """A sign of life (v0 to v4)."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None


@message
class HeartbeatResponse:
    """Answer to a Heartbeat: an error code alone."""

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE


@message
class MemberIdentity:
    """One member that is to leave."""

    member_id: str
    group_instance_id: str | None = None
    reason: str | None = None


@message
class LeaveGroupRequest:
    """Members that leave (v0 to v5). Versions 0 to 2 carry one member id: ``member_id``.

    ``members`` is what v3 and later send; the coordinator turns the older form into a list of one
    (rule L-01).
    """

    group_id: str
    member_id: str = ""
    members: tuple[MemberIdentity, ...] = ()


@message
class MemberResponse:
    """What became of one leaving member."""

    member_id: str
    group_instance_id: str | None = None
    error_code: ErrorCode = ErrorCode.NONE


@message
class LeaveGroupResponse:
    """Answer to a LeaveGroup; ``members`` stays empty below v3 (rule L-13)."""

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    members: tuple[MemberResponse, ...] = ()
