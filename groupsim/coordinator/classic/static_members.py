"""A static member comes back without its member id (rules J-23 to J-30).

Kafka's ``updateStaticMemberThenRebalanceOrCompleteJoin``: the instance keeps its place under a new
member id. In STABLE this costs no rebalance as long as the vote would come out the same.
"""

from __future__ import annotations

from groupsim.coordinator.classic.group import ClassicGroup, join_answer
from groupsim.coordinator.classic.member import ClassicMember
from groupsim.coordinator.classic.rebalance import (
    maybe_complete_join,
    prepare,
    prepare_or_complete,
    reschedule_heartbeat,
)
from groupsim.coordinator.classic.states import GroupState
from groupsim.coordinator.context import Context
from groupsim.coordinator.failures import IllegalStateError, append_error
from groupsim.coordinator.outbox import Answer
from groupsim.coordinator.pipeline import Result
from groupsim.coordinator.records import group_record
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import JoinGroupRequest

__all__ = ["replace_static_member"]


def replace_static_member(
    context: Context,
    group: ClassicGroup,
    request: JoinGroupRequest,
    answer: Answer,
    *,
    instance_id: str,
    old_id: str,
    new_id: str,
    reason: str,
) -> Result:
    """J-23, then what the state asks for."""
    old_leader = group.leader_id
    member = group.replace_static(instance_id, old_id, new_id)
    reschedule_heartbeat(context, group, member)  # with the old session timeout (T-1)
    swap = _Swap(context, group, member, answer, old_id=old_id, old_leader=old_leader)
    group.update(
        member,
        request.protocols,
        request.rebalance_timeout_ms,
        request.session_timeout_ms,
        answer,
    )
    if group.state is GroupState.STABLE:
        if (group.protocol_name or "") == group.select_protocol():
            return swap.persist()
        return prepare_or_complete(  # J-27
            context,
            group,
            f"Group's selectedProtocol will change because static member {new_id} with instance "
            f"id {instance_id} joined with change of protocol; client reason: {reason}",
        )
    if group.state is GroupState.COMPLETING:  # J-28
        return prepare(
            context,
            group,
            f"Updating metadata for static member {new_id} with instance id {instance_id}; client "
            f"reason: {reason}",
        )
    if group.state is not GroupState.PREPARING:  # J-30
        raise IllegalStateError(
            f"Group {group.group_id} was not supposed to be in the state {group.state.label} when "
            f"the unknown static member {instance_id} rejoins."
        )
    return maybe_complete_join(context, group)  # J-29


class _Swap:
    """J-24 to J-26: the swap is written to the log, and undone if that fails."""

    def __init__(
        self,
        context: Context,
        group: ClassicGroup,
        member: ClassicMember,
        answer: Answer,
        *,
        old_id: str,
        old_leader: str | None,
    ) -> None:
        self._context = context
        self._group = group
        self._member = member
        self._answer = answer
        self._instance_id = member.group_instance_id or ""
        self._old_id = old_id
        self._old_leader = old_leader
        self._old = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)

    def persist(self) -> Result:
        group = self._group
        group.log(
            "Static member which joins during Stable stage and doesn't affect the selected "
            "protocol will not trigger a rebalance."
        )
        assignments = {member.member_id: member.assignment for member in group.members.values()}
        return Result((group_record(group, assignments),), self._on_append, replay=False)

    def _on_append(self, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            self._answer_member()
        else:
            self._revert(error)

    def _answer_member(self) -> None:
        """J-24; below version 9 the leader is the one before the swap (J-25)."""
        group, member = self._group, self._member
        skips = self._answer.api_version >= 9
        leads = skips and group.leader_id == member.member_id
        # Throws while a rebalance has begun: then the leader's join stays parked for it.
        members = group.joined_members() if leads else ()
        answer = group.unpark_join(member)
        if answer is None:  # a rebalance has answered it meanwhile
            return
        join_answer(
            answer,
            generation_id=group.generation_id,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            leader=group.leader_id if skips else self._old_leader,
            skip_assignment=leads,
            member_id=member.member_id,
            members=members,
        )

    def _revert(self, error: ErrorCode) -> None:
        """J-26, J-46."""
        group, member = self._group, self._member
        group.log(
            f"Failed to persist metadata for group {group.group_id} static member "
            f"{member.member_id} with group instance id {self._instance_id} due to "
            f"{error.message}. Reverting to old member id {self._old_id}.",
            "WARN",
        )
        group.update(member, *self._old, None)
        old = group.replace_static(self._instance_id, member.member_id, self._old_id)
        reschedule_heartbeat(self._context, group, old)
        join_answer(
            self._answer,
            error_code=append_error(error),
            generation_id=group.generation_id,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            leader=self._old_leader,
        )
