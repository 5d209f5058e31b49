"""Classic groups out of the log, into service and out of it (rules C-15 to C-17, C-21, C-22)."""

from __future__ import annotations

from groupsim.coordinator.classic.group import ClassicGroup, join_answer
from groupsim.coordinator.classic.member import ClassicMember
from groupsim.coordinator.classic.rebalance import prepare, reschedule_heartbeat
from groupsim.coordinator.classic.states import GroupState
from groupsim.coordinator.context import Context
from groupsim.coordinator.records import GroupMetadataValue, MemberMetadata
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import JoinGroupRequestProtocol, SyncGroupResponse

__all__ = ["announce_loaded", "replay_group", "unload_groups"]


def replay_group(context: Context, group_id: str, value: GroupMetadataValue | None) -> None:
    """C-16, C-17: the record replaces the whole group; a tombstone removes it."""
    if value is None:
        context.groups.remove(group_id)
        return
    timestamp = value.current_state_timestamp
    group = ClassicGroup(
        context.outbox,
        group_id,
        state=GroupState.STABLE if value.members else GroupState.EMPTY,
        generation_id=value.generation,
        protocol_type=value.protocol_type or None,
        protocol_name=value.protocol,
        leader_id=value.leader,
        state_timestamp_ms=None if timestamp == -1 else timestamp,
    )
    for stored in value.members:
        group.add(_member(stored, value), None)
    context.groups.put(group_id, group)
    group.refresh_subscribed_topics()


def _member(stored: MemberMetadata, value: GroupMetadataValue) -> ClassicMember:
    rebalance_timeout = stored.rebalance_timeout
    return ClassicMember(
        member_id=stored.member_id,
        group_instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        rebalance_timeout_ms=(
            stored.session_timeout if rebalance_timeout == -1 else rebalance_timeout
        ),
        session_timeout_ms=stored.session_timeout,
        protocol_type=value.protocol_type,
        # C-23: what else the member offered is lost
        protocols=(
            JoinGroupRequestProtocol(name=value.protocol or "", metadata=stored.subscription),
        ),
        assignment=stored.assignment,
    )


def announce_loaded(context: Context) -> None:
    """C-21, C-22: sessions start in full; groups that are too large rebalance."""
    limit = context.config.group_max_size
    for group_id, group in context.groups.items():
        size = len(group.members)
        group.log(f"Loaded classic group {group_id} with {size} members.")
        for member in group.members.values():
            reschedule_heartbeat(context, group, member)
        if size > limit:
            prepare(
                context,
                group,
                f"Freshly-loaded group {group_id} (size {size}) is over capacity {limit}. "
                "Rebalancing in order to give a chance for consumers to commit offsets",
            )


def unload_groups(context: Context) -> None:
    """C-15: every group dies; what is parked is told to look elsewhere."""
    for group_id, group in context.groups.items():
        sentence = (
            f"[GroupId={group_id}] Unloading group metadata for generation {group.generation_id}."
        )
        group.log(sentence)
        group.transition_to(GroupState.DEAD, sentence)
        if group.previous_state is GroupState.PREPARING:
            for member in group.members.values():
                answer = group.unpark_join(member)
                if answer is not None:
                    join_answer(
                        answer, error_code=ErrorCode.NOT_COORDINATOR, member_id=member.member_id
                    )
        elif group.previous_state in (GroupState.COMPLETING, GroupState.STABLE):
            gone = SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)
            for member in group.members.values():
                group.complete_sync(member, gone)
