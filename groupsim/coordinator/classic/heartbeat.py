"""Heartbeat on a classic group (family H, after the gate)."""

from __future__ import annotations

from groupsim.coordinator.classic.rebalance import touch_heartbeat
from groupsim.coordinator.classic.states import GroupState
from groupsim.coordinator.context import Context
from groupsim.coordinator.failures import GroupError
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import HeartbeatRequest

__all__ = ["heartbeat"]


def heartbeat(context: Context, request: HeartbeatRequest) -> ErrorCode:
    """H-04 to H-08.

    Raises:
        GroupError: the heartbeat is refused; such an answer waits for nothing.

    """
    group = context.groups.get(request.group_id)
    if group is None:
        raise GroupError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Group {request.group_id} not found."
        )  # H-04
    if group.state is GroupState.DEAD:
        raise GroupError(ErrorCode.COORDINATOR_NOT_AVAILABLE)  # H-05
    member = group.validate_member(request.member_id, request.group_instance_id, "heartbeat")
    if request.generation_id != group.generation_id:
        raise GroupError(ErrorCode.ILLEGAL_GENERATION)  # H-06
    if group.state is GroupState.EMPTY:
        return ErrorCode.UNKNOWN_MEMBER_ID
    touch_heartbeat(context, group, member)
    if group.state is GroupState.PREPARING:
        return ErrorCode.REBALANCE_IN_PROGRESS  # H-07
    return ErrorCode.NONE  # H-08
