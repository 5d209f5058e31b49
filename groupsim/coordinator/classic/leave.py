"""LeaveGroup on a classic group (family L, after the gate)."""

from __future__ import annotations

from groupsim.coordinator.classic.group import ClassicGroup
from groupsim.coordinator.classic.rebalance import maybe_complete_join, prepare_or_complete
from groupsim.coordinator.classic.states import GroupState
from groupsim.coordinator.context import Context, heartbeat_key
from groupsim.coordinator.failures import GroupError
from groupsim.coordinator.pipeline import NOTHING, Result
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import LeaveGroupResponse, MemberIdentity, MemberResponse

__all__ = ["leave_group"]


def leave_group(
    context: Context, group_id: str, leaving: tuple[MemberIdentity, ...]
) -> tuple[Result, LeaveGroupResponse]:
    """L-03 to L-11.

    Raises:
        GroupError: UNKNOWN_MEMBER_ID when there is no such group (L-03).

    """
    group = context.groups.get(group_id)
    if group is None:
        raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group_id} not found.")
    if group.state is GroupState.DEAD:  # L-04
        return NOTHING, LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    results = [
        MemberResponse(
            member_id=identity.member_id,
            group_instance_id=identity.group_instance_id,
            error_code=_leave(context, group, identity),
        )
        for identity in leaving
    ]
    left = [result.member_id for result in results if result.error_code is ErrorCode.NONE]
    response = LeaveGroupResponse(members=tuple(results))
    if not left:
        return NOTHING, response  # L-10
    return _follow_up(context, group, left), response  # L-09


def _follow_up(context: Context, group: ClassicGroup, left: list[str]) -> Result:
    """L-11."""
    if group.state in (GroupState.COMPLETING, GroupState.STABLE):
        reason = f"explicit `LeaveGroup` request for ({', '.join(left)}) members."
        return prepare_or_complete(context, group, reason)
    return maybe_complete_join(context, group)


def _leave(context: Context, group: ClassicGroup, identity: MemberIdentity) -> ErrorCode:
    member_id, instance_id = identity.member_id, identity.group_instance_id
    reason = "not provided" if identity.reason is None else identity.reason
    if not member_id:  # L-05
        existing = None if instance_id is None else group.static_members.get(instance_id)
        if existing is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        _remove(context, group, existing, reason)
        return ErrorCode.NONE
    if member_id in group.pending_joins:  # L-06
        group.forget_pending(member_id, "left", reason)
        context.cancel(heartbeat_key(group.group_id, member_id))
        group.log(
            f"[Group {group.group_id}] Pending member {member_id} has left group through explicit "
            f"`LeaveGroup` request; client reason: {reason}"
        )
        return ErrorCode.NONE
    try:
        group.validate_member(member_id, instance_id, "leave-group")
    except GroupError as failure:  # L-07
        return failure.code
    _remove(context, group, member_id, reason)
    return ErrorCode.NONE


def _remove(context: Context, group: ClassicGroup, member_id: str, reason: str) -> None:
    """L-08: a parked sync of the member is dropped without an answer."""
    member = group.members[member_id]
    context.cancel(heartbeat_key(group.group_id, member_id))
    group.log(
        f"[Group {group.group_id}] Member {member_id} has left group through explicit `LeaveGroup` "
        f"request; client reason: {reason}"
    )
    group.note_member(member, "left", reason)
    group.complete_join(member, error_code=ErrorCode.UNKNOWN_MEMBER_ID, member_id="")
    group.remove(member_id)
