"""JoinGroup on a classic group (family J, after the gate)."""

from __future__ import annotations

from collections.abc import Callable

from groupsim.coordinator.classic.group import ClassicGroup, join_answer
from groupsim.coordinator.classic.member import ClassicMember
from groupsim.coordinator.classic.rebalance import (
    expire_heartbeat,
    prepare_or_complete,
    reschedule_heartbeat,
)
from groupsim.coordinator.classic.states import GroupState
from groupsim.coordinator.classic.static_members import replace_static_member
from groupsim.coordinator.context import Context, heartbeat_key
from groupsim.coordinator.failures import GroupError, IllegalStateError, append_error
from groupsim.coordinator.outbox import Answer
from groupsim.coordinator.pipeline import NOTHING, Result
from groupsim.coordinator.records import empty_group_record
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import JoinGroupRequest

__all__ = ["NEW_MEMBER_JOIN_TIMEOUT_MS", "Joiner", "join_group"]

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""T-2. ``GroupCoordinatorConfig.CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS``; not configurable."""


class Joiner:
    """One JoinGroup with what came along: who sent it, and where its answer goes."""

    __slots__ = ("answer", "client_host", "client_id", "reason", "request")

    def __init__(
        self, request: JoinGroupRequest, answer: Answer, client_id: str, client_host: str
    ) -> None:
        self.request = request
        self.answer = answer
        self.client_id = client_id
        self.client_host = client_host
        self.reason = request.reason or "not provided"  # J-45

    def refuse(self, error: ErrorCode, member_id: str) -> Result:
        """Answer with an error; nothing else happens."""
        join_answer(self.answer, error_code=error, member_id=member_id)
        return NOTHING


def join_group(context: Context, joiner: Joiner) -> Result:
    """J-09 to J-22: find or create the group, check its size, hand on."""
    request = joiner.request
    group = context.groups.get(request.group_id)
    is_new = group is None
    if group is None:
        if request.member_id:
            return joiner.refuse(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)  # J-09
        group = context.new_group(request.group_id)  # J-10
    if not _accepts(context, group, request.member_id):  # J-12
        member = group.members.get(request.member_id)
        if member is not None:
            group.note_member(member, "removed", "the group has reached its maximum size")
        group.remove(request.member_id)
        result = joiner.refuse(ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    elif request.member_id:
        result = _join_known(context, group, joiner)
    else:
        result = _join_unknown(context, group, joiner)
    if is_new and result is NOTHING:  # J-21
        return Result(
            (empty_group_record(group),), _first_record_written(group, joiner), replay=False
        )
    return result


def _first_record_written(group: ClassicGroup, joiner: Joiner) -> Callable[[ErrorCode], None]:
    def on_append(error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:  # J-22
            group.log(
                f"Failed to write empty metadata for group {group.group_id}: {error.message}",
                "WARN",
            )
            joiner.refuse(append_error(error), "")

    return on_append


def _accepts(context: Context, group: ClassicGroup, member_id: str) -> bool:
    """J-11, J-13: is there room? Only the member id counts, never the instance id."""
    limit = context.config.group_max_size
    member = group.members.get(member_id)
    if group.state is GroupState.PREPARING:
        parked = member is not None and member.awaiting_join is not None
        return parked or group.parked_joins < limit
    if group.state in (GroupState.COMPLETING, GroupState.STABLE):
        return member is not None or len(group.members) < limit
    return True


# -- no member id yet ------------------------------------------------------------------------


def _join_unknown(context: Context, group: ClassicGroup, joiner: Joiner) -> Result:
    request = joiner.request
    if group.state is GroupState.DEAD:
        return joiner.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE, "")  # J-14
    if not group.supports(request.protocol_type, request.protocols):
        return joiner.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")  # J-15
    instance_id = request.group_instance_id
    # J-16
    prefix = joiner.client_id if instance_id is None else instance_id
    member_id = f"{prefix}-{context.member_uuid()}"
    if instance_id is None:
        return _join_dynamic(context, group, joiner, member_id)
    where = f"group {group.group_id} in {group.state.label} state"
    existing = group.static_members.get(instance_id)
    if existing is not None:
        group.log(
            f"Static member with groupInstanceId={instance_id} and unknown member id joins "
            f"{where}. Replacing previously mapped member {existing} with this groupInstanceId."
        )
        return replace_static_member(
            context,
            group,
            request,
            joiner.answer,
            instance_id=instance_id,
            old_id=existing,
            new_id=member_id,
            reason=joiner.reason,
        )
    group.log(
        f"Static member with groupInstanceId={instance_id} and unknown member id joins {where}. "
        f"Created a new member id {member_id} for this member and added to the group."
    )
    return _add(context, group, joiner, member_id)  # J-19


def _join_dynamic(context: Context, group: ClassicGroup, joiner: Joiner, member_id: str) -> Result:
    if joiner.answer.api_version < 4:  # J-18
        group.log(
            f"Dynamic member with unknown member id joins group {group.group_id} in state "
            f"{group.state.label}. Created a new member id {member_id} and added the member to "
            "the group."
        )
        return _add(context, group, joiner, member_id)
    # J-17
    group.log(
        f"Dynamic member with unknown member id joins group {group.group_id} in "
        f"{group.state.label} state. Created a new member id {member_id} and requesting the "
        "member to rejoin with this id."
    )
    group.add_pending(member_id, joiner.client_id)
    group_id = group.group_id
    context.schedule(
        heartbeat_key(group_id, member_id),
        "pending-member",
        joiner.request.session_timeout_ms,
        lambda: expire_heartbeat(context, group_id, member_id),
    )  # T-3
    return joiner.refuse(ErrorCode.MEMBER_ID_REQUIRED, member_id)


def _add(context: Context, group: ClassicGroup, joiner: Joiner, member_id: str) -> Result:
    """J-20: the member is in; its join is parked."""
    request = joiner.request
    member = ClassicMember(
        member_id=member_id,
        group_instance_id=request.group_instance_id,
        client_id=joiner.client_id,
        client_host=joiner.client_host,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        session_timeout_ms=request.session_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=request.protocols,
    )
    member.is_new = True
    if group.state is GroupState.PREPARING and group.previous_state is GroupState.EMPTY:
        group.new_member_added = True  # 2.1
    group.add(member, joiner.answer)
    instance_id = "null" if request.group_instance_id is None else request.group_instance_id
    reason = (
        f"Adding new member {member_id} with group instance id {instance_id}; client reason: "
        f"{joiner.reason}"
    )
    group.note_member(member, "joined", reason)
    reschedule_heartbeat(context, group, member, "new-member", NEW_MEMBER_JOIN_TIMEOUT_MS)  # T-2
    return prepare_or_complete(context, group, reason)


# -- with a member id ------------------------------------------------------------------------


def _join_known(context: Context, group: ClassicGroup, joiner: Joiner) -> Result:
    request = joiner.request
    member_id = request.member_id
    if group.state is GroupState.DEAD:
        return joiner.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id)  # J-31
    if not group.supports(request.protocol_type, request.protocols):
        return joiner.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)  # J-32
    if member_id in group.pending_joins:
        if request.group_instance_id is not None:  # J-34
            raise IllegalStateError(
                f"Received unexpected JoinGroup with groupInstanceId={request.group_instance_id} "
                f"for pending member with memberId={member_id}"
            )
        group.log(
            f"Pending dynamic member with id {member_id} joins group {group.group_id} in "
            f"{group.state.label} state. Adding to the group now."
        )
        return _add(context, group, joiner, member_id)  # J-33
    try:
        member = group.validate_member(member_id, request.group_instance_id, "join-group")
    except GroupError as failure:
        return joiner.refuse(failure.code, member_id)  # J-35
    return _rejoin(context, group, joiner, member)


def _rejoin(context: Context, group: ClassicGroup, joiner: Joiner, member: ClassicMember) -> Result:
    """J-36 to J-43: what a member's join means depends on the state."""
    state = group.state
    member_id = member.member_id
    leads = group.leader_id == member_id
    changed = member.protocols != joiner.request.protocols  # J-44
    client_reason = f"{state.label}; client reason: {joiner.reason}"
    if state is GroupState.PREPARING:
        reason = f"Member {member_id} is joining group during {client_reason}"
        return _update(context, group, joiner, member, reason)  # J-36, J-37
    if state is GroupState.STABLE and leads:
        reason = f"Leader {member_id} re-joining group during {client_reason}"
        return _update(context, group, joiner, member, reason)  # J-40
    if state in (GroupState.COMPLETING, GroupState.STABLE):
        if changed:
            reason = f"Updating metadata for member {member_id} during {client_reason}"
            return _update(context, group, joiner, member, reason)  # J-39, J-41
        join_answer(  # J-38, J-42
            joiner.answer,
            generation_id=group.generation_id,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            leader=group.leader_id,
            member_id=member_id,
            members=group.joined_members() if leads else (),
        )
        return NOTHING
    group.log(  # J-43
        f"Attempt to add rejoining member {member_id} of group {group.group_id} in unexpected "
        f"group state {state.label}",
        "WARN",
    )
    return joiner.refuse(ErrorCode.UNKNOWN_MEMBER_ID, member_id)


def _update(
    context: Context, group: ClassicGroup, joiner: Joiner, member: ClassicMember, reason: str
) -> Result:
    request = joiner.request
    group.update(
        member,
        request.protocols,
        request.rebalance_timeout_ms,
        request.session_timeout_ms,
        joiner.answer,
    )
    group.note_member(member, "rejoined", reason)
    return prepare_or_complete(context, group, reason)
