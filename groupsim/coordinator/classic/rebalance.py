"""Rebalances of a classic group: prepare, complete, expire (family PR, timers T-1 to T-6).

Every function mirrors one of Kafka's ``GroupMetadataManager``; the order of the steps in each of
them is the order of completions, timers and log sentences that a broker shows.
"""

from __future__ import annotations

from groupsim.coordinator.classic.group import ClassicGroup, join_answer
from groupsim.coordinator.classic.member import ClassicMember
from groupsim.coordinator.classic.states import GroupState
from groupsim.coordinator.context import Context, heartbeat_key, join_key, sync_key
from groupsim.coordinator.effects import RebalanceCompleted
from groupsim.coordinator.failures import append_error
from groupsim.coordinator.pipeline import NOTHING, Result
from groupsim.coordinator.records import group_record
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.java import JavaHashMap
from groupsim.protocol.messages import SyncGroupResponse

__all__ = [
    "expire_heartbeat",
    "maybe_complete_join",
    "prepare",
    "prepare_or_complete",
    "reschedule_heartbeat",
    "reset_assignments",
    "set_assignments",
    "touch_heartbeat",
]

_ACTIVE = (GroupState.COMPLETING, GroupState.STABLE)


# -- sessions: T-1, T-2 ----------------------------------------------------------------------


def reschedule_heartbeat(
    context: Context,
    group: ClassicGroup,
    member: ClassicMember,
    kind: str = "session",
    timeout_ms: int | None = None,
) -> None:
    """Arm a member's heartbeat timer afresh: with its session timeout unless told otherwise."""
    group_id, member_id = group.group_id, member.member_id
    member.session = context.schedule(
        heartbeat_key(group_id, member_id),
        kind,
        member.session_timeout_ms if timeout_ms is None else timeout_ms,
        lambda: expire_heartbeat(context, group_id, member_id),
        member,
    )


def touch_heartbeat(context: Context, group: ClassicGroup, member: ClassicMember) -> None:
    """The same for an accepted Heartbeat or commit, at almost no cost (H-07, H-08, O-06)."""
    timer = member.session
    if timer is not None and timer.alive and timer.owner is member and timer.kind == "session":
        context.queue.move(timer, context.outbox.now_ms + member.session_timeout_ms)
    else:
        reschedule_heartbeat(context, group, member)


def expire_heartbeat(context: Context, group_id: str, member_id: str) -> Result:
    """PR-21, PR-22, PR-23: a heartbeat timer fired."""
    group = context.groups.get(group_id)
    if group is None:
        return NOTHING
    if group.state is GroupState.DEAD:
        group.log(
            f"Received notification of heartbeat expiration for member {member_id} after group "
            f"{group_id} had already been unloaded or deleted."
        )
        return NOTHING
    if member_id in group.pending_joins:
        group.log(
            f"Pending member {member_id} in group {group_id} has been removed after session "
            "timeout expiration."
        )
        return _remove_pending(context, group, member_id)
    member = group.members.get(member_id)
    if member is None or member.has_satisfied_heartbeat:
        return NOTHING
    group.log(f"Member {member_id} in group {group_id} has failed, removing it from the group.")
    return _remove_member(
        context, group, member, f"removing member {member_id} on heartbeat expiration."
    )


def _remove_pending(context: Context, group: ClassicGroup, member_id: str) -> Result:
    group.forget_pending(member_id, "expired", "removed after session timeout expiration")
    if group.state is GroupState.PREPARING and group.all_joined:
        return complete_join(context, group)  # PR-09: also in an initial rebalance
    return NOTHING


def _remove_member(
    context: Context, group: ClassicGroup, member: ClassicMember, reason: str
) -> Result:
    group.note_member(member, "expired", reason)
    group.complete_join(member, error_code=ErrorCode.UNKNOWN_MEMBER_ID, member_id="")
    group.remove(member.member_id)
    if group.state in _ACTIVE:
        return prepare_or_complete(context, group, reason)
    if group.state is GroupState.PREPARING and group.all_joined:
        return complete_join(context, group)  # PR-09
    return NOTHING


# -- entering PREPARING ----------------------------------------------------------------------


def prepare_or_complete(context: Context, group: ClassicGroup, reason: str) -> Result:
    """PR-01: called after every change of members or metadata."""
    if group.can_rebalance:
        return prepare(context, group, reason)
    return maybe_complete_join(context, group)


def prepare(context: Context, group: ClassicGroup, reason: str) -> Result:
    """PR-02 to PR-04: enter PREPARING."""
    if group.state is GroupState.COMPLETING:
        reset_assignments(context, group, ErrorCode.REBALANCE_IN_PROGRESS)  # PR-02
    group.pending_syncs.clear()
    context.cancel(sync_key(group.group_id))
    initial = group.state is GroupState.EMPTY
    if initial:  # PR-04, T-5
        delay_ms = context.config.group_initial_rebalance_delay_ms
        remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        _schedule_initial(context, group.group_id, delay_ms, remaining_ms)
    group.transition_to(GroupState.PREPARING, reason)
    group.log(
        f"Preparing to rebalance group {group.group_id} in state {group.state.label} with old "
        f"generation {group.generation_id} (reason: {reason})."
    )
    return NOTHING if initial else _complete_or_schedule(context, group)


def _complete_or_schedule(context: Context, group: ClassicGroup) -> Result:
    """PR-07."""
    if group.all_joined:
        return complete_join(context, group)
    _schedule_join(context, group, group.rebalance_timeout_ms)
    return NOTHING


def _schedule_join(context: Context, group: ClassicGroup, delay_ms: int) -> None:
    group_id = group.group_id
    context.schedule(
        join_key(group_id), "join", delay_ms, lambda: _join_expired(context, group_id)
    )  # T-4


def _join_expired(context: Context, group_id: str) -> Result:
    group = context.groups.get(group_id)
    return NOTHING if group is None else complete_join(context, group)


def _schedule_initial(context: Context, group_id: str, delay_ms: int, remaining_ms: int) -> None:
    context.schedule(
        join_key(group_id),
        "initial-join",
        delay_ms,
        lambda: _initial_delay_over(context, group_id, delay_ms, remaining_ms),
    )


def _initial_delay_over(
    context: Context, group_id: str, delay_ms: int, remaining_ms: int
) -> Result:
    """PR-05 and rule 2.1: extend the initial delay, or complete."""
    group = context.groups.get(group_id)
    if group is None:
        return NOTHING
    if not group.new_member_added or remaining_ms == 0:
        return complete_join(context, group)  # PR-06: the flag stays as it is
    group.new_member_added = False
    _schedule_initial(
        context,
        group_id,
        min(context.config.group_initial_rebalance_delay_ms, remaining_ms),
        max(remaining_ms - delay_ms, 0),  # the delay that has just passed, not the next one
    )
    return NOTHING


# -- completing the join phase ---------------------------------------------------------------


def maybe_complete_join(context: Context, group: ClassicGroup) -> Result:
    """PR-08: complete early if everybody is here, though never in an initial rebalance."""
    if (
        group.state is not GroupState.PREPARING
        or group.previous_state is GroupState.EMPTY
        or not group.all_joined
    ):
        return NOTHING
    return complete_join(context, group)


def complete_join(context: Context, group: ClassicGroup) -> Result:
    """PR-10 to PR-19: the join phase is over."""
    group_id = group.group_id
    context.cancel(join_key(group_id))
    _drop_absent(context, group)
    if group.state is GroupState.DEAD:  # PR-11
        group.log(f"Group {group_id} is dead, skipping rebalance stage.")
        return NOTHING
    if not group.elect_joined_leader() and group.members:  # PR-13
        group.log(
            f"Group {group_id} could not complete rebalance because no members rejoined.", "ERROR"
        )
        # With a rebalance timeout of 0 Kafka arms a timer that fires at once, again and again,
        # for as long as nobody joins. Time must move here: one millisecond is the least.
        _schedule_join(context, group, max(group.rebalance_timeout_ms, 1))
        return NOTHING
    group.next_generation()
    if group.state is GroupState.EMPTY:
        return _emptied(group)
    group.log(
        f"Stabilized group {group_id} generation {group.generation_id} with "
        f"{len(group.members)} members."
    )
    _answer_joins(context, group)
    _schedule_pending_sync(context, group)
    return NOTHING


def _drop_absent(context: Context, group: ClassicGroup) -> None:
    """PR-10: dynamic members that did not join are out; static ones may stay away (PR-14)."""
    if len(group.members) == group.parked_joins:
        return
    absent: JavaHashMap[ClassicMember] = JavaHashMap()
    for member_id in group.members.java_order():
        member = group.members[member_id]
        if member.awaiting_join is None and member.group_instance_id is None:
            absent[member_id] = member
    if not absent:
        return
    for member in absent.values():
        group.note_member(member, "removed", "did not rejoin before the rebalance timeout")
        group.remove(member.member_id)
        context.cancel(heartbeat_key(group.group_id, member.member_id))
    group.log(
        f"Group {group.group_id} removed dynamic members who haven't joined: "
        f"[{', '.join(absent.keys())}]"
    )


def _emptied(group: ClassicGroup) -> Result:
    """PR-19: nobody is left; the new generation goes to the log."""
    group.log(f"Group {group.group_id} with generation {group.generation_id} is now empty.")

    def on_append(error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:
            group.log(
                f"Failed to write empty metadata for group {group.group_id}: "
                f"{append_error(error).message}",
                "WARN",
            )

    return Result((group_record(group, {}),), on_append, replay=False)


def _answer_joins(context: Context, group: ClassicGroup) -> None:
    """PR-17 and PR-18, member by member."""
    members = group.members.values()
    generation_id, leader_id = group.generation_id, group.leader_id
    protocol_type, protocol_name = group.protocol_type, group.protocol_name
    for member in members:
        member_id = member.member_id
        # first, since it throws when a member cannot follow the vote (twice the same name, J-15):
        # Kafka then leaves the group as it is at that point
        joined = group.joined_members() if member_id == leader_id else ()
        answer = group.unpark_join(member)
        if answer is not None:
            join_answer(
                answer,
                generation_id=generation_id,
                protocol_type=protocol_type,
                protocol_name=protocol_name,
                leader=leader_id,
                member_id=member_id,
                members=joined,
            )
        reschedule_heartbeat(context, group, member)
        member.is_new = False
        group.pending_syncs[member.member_id] = None
    context.outbox.effects.append(
        RebalanceCompleted(
            group_id=group.group_id,
            generation_id=generation_id,
            phase="join",
            leader=leader_id or "",
            protocol_name=protocol_name,
            members=tuple(member.member_id for member in members),
        )
    )


# -- pending syncs: T-6 ----------------------------------------------------------------------


def _schedule_pending_sync(context: Context, group: ClassicGroup) -> None:
    group_id = group.group_id
    context.schedule(
        sync_key(group_id),
        "pending-sync",
        group.rebalance_timeout_ms,
        lambda: _expire_pending_sync(context, group_id),
    )


def _expire_pending_sync(context: Context, group_id: str) -> Result:
    """PR-24: whoever has not synced is out.

    Kafka compares the group's generation with itself here; what keeps stale timers from doing
    harm is that they are cancelled.
    """
    group = context.groups.get(group_id)
    if group is None:
        return NOTHING
    if group.state not in _ACTIVE:
        group.log(
            f"Received unexpected notification of sync expiration after group {group_id} already "
            f"transitioned to {group.state.label} state.",
            "ERROR",
        )
        return NOTHING
    if not group.pending_syncs:
        return NOTHING
    waiting = JavaHashMap[None](capacity_for=len(group.pending_syncs))  # new HashSet<>(set)
    for member_id in group.pending_syncs:
        waiting[member_id] = None
    for member_id in waiting:
        member = group.members.get(member_id)
        if member is not None:  # PR-25: the id may be one that was replaced
            group.note_member(member, "removed", "did not sync before the rebalance timeout")
        group.remove(member_id)
        context.cancel(heartbeat_key(group_id, member_id))
    return prepare(
        context,
        group,
        f"Removing [{', '.join(waiting)}] on pending sync request expiration",
    )


# -- assignments -----------------------------------------------------------------------------


def reset_assignments(context: Context, group: ClassicGroup, error: ErrorCode) -> None:
    """PR-02, S-12: wipe all assignments and end the parked syncs with an error."""
    for member in group.members.values():
        member.assignment = b""
    _propagate(context, group, error)


def set_assignments(context: Context, group: ClassicGroup, assignments: dict[str, bytes]) -> None:
    """S-11: store the assignments and answer the parked syncs."""
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, b"")
    _propagate(context, group, ErrorCode.NONE)


def _propagate(context: Context, group: ClassicGroup, error: ErrorCode) -> None:
    succeeded = error is ErrorCode.NONE
    for member in group.members.values():
        if succeeded and not member.assignment:
            group.log(
                f"Sending empty assignment to member {member.member_id} of {group.group_id} for "
                f"generation {group.generation_id} with no errors",
                "WARN",
            )
        response = SyncGroupResponse(
            error_code=error,
            protocol_type=group.protocol_type if succeeded else None,
            protocol_name=group.protocol_name if succeeded else None,
            assignment=member.assignment,
        )
        if group.complete_sync(member, response):
            reschedule_heartbeat(context, group, member)
