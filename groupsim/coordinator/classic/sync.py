"""SyncGroup on a classic group (family S, after the gate)."""

from __future__ import annotations

from groupsim.coordinator.classic.group import ClassicGroup
from groupsim.coordinator.classic.rebalance import (
    prepare_or_complete,
    reset_assignments,
    set_assignments,
)
from groupsim.coordinator.classic.states import GroupState
from groupsim.coordinator.context import Context, sync_key
from groupsim.coordinator.effects import RebalanceCompleted
from groupsim.coordinator.failures import GroupError, append_error
from groupsim.coordinator.outbox import Answer
from groupsim.coordinator.pipeline import NOTHING, Result
from groupsim.coordinator.records import group_record
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import SyncGroupRequest, SyncGroupResponse

__all__ = ["sync_group"]


def sync_group(context: Context, request: SyncGroupRequest, answer: Answer) -> Result:
    """S-03 to S-13."""
    group = context.groups.get(request.group_id)
    error = _validate(group, request)
    if group is None or error is not ErrorCode.NONE:
        answer.complete(SyncGroupResponse(error_code=error))
        return NOTHING
    member = group.members[request.member_id]
    if group.state is GroupState.STABLE:  # S-13: the session is not refreshed
        _received(context, group, request.member_id)
        group.note_member(member, "synced")
        answer.complete(
            SyncGroupResponse(
                protocol_type=group.protocol_type,
                protocol_name=group.protocol_name,
                assignment=member.assignment,
            )
        )
        return NOTHING
    member.awaiting_sync = answer  # S-07; one parked before is abandoned (S-09)
    _received(context, group, request.member_id)
    group.note_member(member, "synced")
    if group.leader_id != member.member_id:
        return NOTHING
    return _store_assignment(context, group, request)  # S-10


def _validate(group: ClassicGroup | None, request: SyncGroupRequest) -> ErrorCode:
    """S-03 to S-06, in this order."""
    if group is None or group.state is GroupState.EMPTY:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    try:
        group.validate_member(request.member_id, request.group_instance_id, "sync-group")
    except GroupError as failure:
        return failure.code
    if request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    if _differ(request.protocol_type, group.protocol_type) or _differ(
        request.protocol_name, group.protocol_name
    ):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.PREPARING:
        return ErrorCode.REBALANCE_IN_PROGRESS  # S-06
    return ErrorCode.NONE


def _differ(requested: str | None, actual: str | None) -> bool:
    return requested is not None and actual is not None and requested != actual


def _received(context: Context, group: ClassicGroup, member_id: str) -> None:
    """S-08: one sync less to wait for."""
    group.pending_syncs.discard(member_id)
    if not group.pending_syncs:
        context.cancel(sync_key(group.group_id))


def _store_assignment(context: Context, group: ClassicGroup, request: SyncGroupRequest) -> Result:
    group_id, generation_id = group.group_id, group.generation_id
    group.log(
        f"Assignment received from leader {request.member_id} for group {group_id} for generation "
        f"{generation_id}. The group has {len(group.members)} members, "
        f"{len(group.static_members)} of which are static."
    )
    assignments = {entry.member_id: entry.assignment for entry in request.assignments}
    missing = [member_id for member_id in group.members if member_id not in assignments]
    for member_id in missing:
        assignments[member_id] = b""
    if missing:
        group.log(
            f"Setting empty assignments for members [{', '.join(missing)}] of {group_id} for "
            f"generation {generation_id}.",
            "WARN",
        )

    def on_append(error: ErrorCode) -> None:
        if group.state is not GroupState.COMPLETING or generation_id != group.generation_id:
            return  # the group has moved on
        if error is ErrorCode.NONE:
            _assigned(context, group, request.member_id, assignments)
        else:  # S-12
            shown = append_error(error)
            reset_assignments(context, group, shown)
            prepare_or_complete(
                context,
                group,
                f"Error {shown.name} when storing group assignmentduring SyncGroup (member: "
                f"{request.member_id}).",
            )

    return Result((group_record(group, assignments),), on_append, replay=False)


def _assigned(
    context: Context, group: ClassicGroup, leader_id: str, assignments: dict[str, bytes]
) -> None:
    """S-11: the generation is complete."""
    set_assignments(context, group, assignments)
    group.transition_to(
        GroupState.STABLE,
        f"Assignment received from leader {leader_id} for group {group.group_id} for generation "
        f"{group.generation_id}",
    )
    context.outbox.effects.append(
        RebalanceCompleted(
            group_id=group.group_id,
            generation_id=group.generation_id,
            phase="sync",
            leader=leader_id,
            protocol_name=group.protocol_name,
            members=tuple(group.members),
        )
    )
