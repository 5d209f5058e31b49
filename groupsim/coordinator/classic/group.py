"""A classic group: its members, its votes, its generation. Kafka's ``ClassicGroup``.

This is the aggregate: every field changes through a method of this class, and each method keeps
the counters that make a rebalance linear in the number of members (supporters of each protocol,
parked joins). What the group *does* is in ``rebalance``, ``join``, ``sync`` and ``leave``.
"""

from __future__ import annotations

from collections.abc import Iterable

from groupsim.coordinator.classic.member import ClassicMember, Protocols
from groupsim.coordinator.classic.states import PREVIOUS, GroupState, is_legal
from groupsim.coordinator.classic.subscriptions import subscribed_topics_of
from groupsim.coordinator.effects import GroupTransition, MemberChange
from groupsim.coordinator.failures import GroupError, IllegalStateError
from groupsim.coordinator.outbox import Answer, Outbox
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.java import JavaHashMap
from groupsim.protocol.messages import (
    JoinGroupResponse,
    JoinGroupResponseMember,
    SyncGroupResponse,
)

__all__ = ["CONSUMER", "ClassicGroup", "join_answer"]

CONSUMER = "consumer"
"""The protocol type whose subscriptions the broker reads (``ConsumerProtocol.PROTOCOL_TYPE``)."""


def join_answer(
    answer: Answer,
    *,
    error_code: ErrorCode = ErrorCode.NONE,
    generation_id: int = -1,
    protocol_type: str | None = None,
    protocol_name: str | None = None,
    leader: str | None = "",
    skip_assignment: bool = False,
    member_id: str = "",
    members: tuple[JoinGroupResponseMember, ...] = (),
) -> None:
    """Answer a JoinGroup; what is left out has the defaults of rule 0.2."""
    if answer.api_version < 7:
        protocol_name = protocol_name or ""  # J-47: not nullable before version 7
    answer.complete(
        JoinGroupResponse(
            error_code=error_code,
            generation_id=generation_id,
            protocol_type=protocol_type,
            protocol_name=protocol_name or (None if answer.api_version >= 7 else ""),
            leader=leader or "",
            skip_assignment=skip_assignment,
            member_id=member_id,
            members=members,
        )
    )


class ClassicGroup:
    """One group (state, members, votes). New groups are EMPTY at generation 0, loaded ones EMPTY
    or STABLE; "previous state" is DEAD at first (rule 1.1).

    Attributes:
        members: by id, iterated in Kafka's order.
        static_members: member id by instance id.
        pending_joins: ids handed out with MEMBER_ID_REQUIRED and not used yet → their client id.
        pending_syncs: ids of this generation that have not synced yet.
        supporters: how many protocol entries of each name the members offer.
        parked_joins: number of members with a parked JoinGroup.
        state_timestamp_ms: when the state was entered; ``None`` when a log did not say.
        subscribed_topics: what its consumers subscribe to; ``None``: unknown (2.2).
        new_member_added: the flag of the initial delay's extension (2.1, PR-06).

    """

    def __init__(
        self,
        outbox: Outbox,
        group_id: str,
        *,
        state: GroupState = GroupState.EMPTY,
        generation_id: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        leader_id: str | None = None,
        state_timestamp_ms: int | None = None,
    ) -> None:
        self._outbox = outbox
        self.group_id = group_id
        self.state = state
        self.previous_state = GroupState.DEAD
        self.state_timestamp_ms = state_timestamp_ms
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.generation_id = generation_id
        self.leader_id = leader_id
        self.members: JavaHashMap[ClassicMember] = JavaHashMap()
        self.static_members: dict[str, str] = {}
        self.pending_joins: dict[str, str] = {}
        self.pending_syncs: JavaHashMap[None] = JavaHashMap()
        self.supporters: dict[str, int] = {}
        self.parked_joins = 0
        self.subscribed_topics: frozenset[str] | None = None
        self.new_member_added = False

    # -- questions ---------------------------------------------------------------------------

    @property
    def is_simple(self) -> bool:
        """O-24: a group that only stores offsets."""
        return (
            self.protocol_type is None and self.state is GroupState.EMPTY and not self.pending_joins
        )

    @property
    def uses_consumer_protocol(self) -> bool:
        """Whether its members are consumers."""
        return self.protocol_type == CONSUMER

    @property
    def can_rebalance(self) -> bool:
        """Whether PREPARING may be entered from here."""
        return self.state in PREVIOUS[GroupState.PREPARING]

    @property
    def all_joined(self) -> bool:
        """PR-08: everybody has joined."""
        return len(self.members) == self.parked_joins and not self.pending_joins

    @property
    def rebalance_timeout_ms(self) -> int:
        """REB(g): the longest rebalance timeout of all members, at least 0."""
        longest = 0
        for member_id in self.members.java_order():
            longest = max(longest, self.members[member_id].rebalance_timeout_ms)
        return longest

    def is_subscribed_to(self, topic: str) -> bool:
        """2.2: whether offsets of this topic are in use."""
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """J-15: whether somebody with these protocols may be a member."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        size = len(self.members)
        return self.protocol_type == protocol_type and any(
            self.supporters.get(protocol.name, 0) == size for protocol in protocols
        )

    def validate_member(
        self, member_id: str, group_instance_id: str | None, operation: str
    ) -> ClassicMember:
        """J-35: the member that speaks.

        Raises:
            GroupError: UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.

        """
        if group_instance_id is not None:
            existing = self.static_members.get(group_instance_id)
            if existing is None:
                raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
            if existing != member_id:
                self.log(
                    f"Request memberId={member_id} for static member with "
                    f"groupInstanceId={group_instance_id} is fenced by existing "
                    f"memberId={existing} during operation {operation}"
                )
                raise GroupError(ErrorCode.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    def select_protocol(self) -> str:
        """PR-16: the protocol with the most votes; ties go by Java's map order."""
        size = len(self.members)
        candidates = {name for name, count in self.supporters.items() if count == size}
        votes: JavaHashMap[int] = JavaHashMap()
        for member_id in self.members.java_order():
            name = self.members[member_id].vote(candidates)
            votes[name] = votes.get(name, 0) + 1
        winner, most = "", 0
        for name, count in votes.items():
            if count > most:
                winner, most = name, count
        return winner

    def joined_members(self) -> tuple[JoinGroupResponseMember, ...]:
        """The members as their leader sees them (PR-17).

        Raises:
            IllegalStateError: there is no generation to be seen (PREPARING, DEAD).

        """
        if self.state in (GroupState.PREPARING, GroupState.DEAD):
            raise IllegalStateError(
                f"Cannot obtain classic member metadata for group {self.group_id} in state "
                f"{self.state.label}"
            )
        return tuple(
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata(self.protocol_name),
            )
            for member in self.members.values()
        )

    # -- changes -----------------------------------------------------------------------------

    def log(self, sentence: str, level: str = "INFO") -> None:
        """Note a sentence of Kafka's log."""
        self._outbox.log(self.group_id, level, sentence)

    def note_member(self, member: ClassicMember, change: str, reason: str = "") -> None:
        """Note what became of a member."""
        self._outbox.effects.append(
            MemberChange(
                group_id=self.group_id,
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                change=change,
                reason=reason,
            )
        )

    def _lead(self, member: ClassicMember, reason: str) -> None:
        self.leader_id = member.member_id
        self.note_member(member, "leader", reason)

    def transition_to(self, target: GroupState, reason: str) -> None:
        """Enter a state (1.2) and stamp the time."""
        if not is_legal(self.state, target):
            allowed = ", ".join(state.label for state in PREVIOUS[target])
            raise IllegalStateError(
                f"Group {self.group_id} should be in one of [{allowed}] states before moving to "
                f"{target.label} state. Instead it is in {self.state.label} state."
            )
        self.previous_state, self.state = self.state, target
        self.state_timestamp_ms = self._outbox.now_ms
        self._outbox.effects.append(
            GroupTransition(
                group_id=self.group_id,
                from_state=self.previous_state.label,
                to_state=target.label,
                generation_id=self.generation_id,
                members=len(self.members),
                reason=reason,
            )
        )

    def add(self, member: ClassicMember, parked: Answer | None) -> None:
        """J-20: take a member in."""
        if not self.members:
            self.protocol_type = member.protocol_type
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        first = self.leader_id is None
        self.members[member.member_id] = member
        if first:
            self._lead(member, "first member")  # PR-20.1
        self._count_protocols(member, 1)
        member.awaiting_join = parked
        if parked is not None:
            self.parked_joins += 1
        self.pending_joins.pop(member.member_id, None)

    def add_pending(self, member_id: str, client_id: str) -> None:
        """J-17: an id has been handed out; whoever uses it becomes a member (J-33)."""
        self.pending_joins[member_id] = client_id
        self._note_pending(member_id, client_id, "pending", "MEMBER_ID_REQUIRED")

    def forget_pending(self, member_id: str, change: str, reason: str) -> None:
        """L-06, PR-22: a pending id is void; it left or expired."""
        self._note_pending(member_id, self.pending_joins.pop(member_id), change, reason)

    def _note_pending(self, member_id: str, client_id: str, change: str, reason: str) -> None:
        self._outbox.effects.append(
            MemberChange(
                group_id=self.group_id,
                member_id=member_id,
                group_instance_id=None,
                client_id=client_id,
                change=change,
                reason=reason,
            )
        )

    def remove(self, member_id: str) -> None:
        """Forget an id: member, pending member or neither (J-12, PR-22, L-08)."""
        member = self.members.discard(member_id)
        if member is not None:
            # Nothing is parked any more: whoever removes a member has answered it before.
            self._count_protocols(member, -1)
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = None
            first = self.members.first()
            if first is not None:
                self._lead(self.members[first], f"leader {member_id} was removed")  # PR-20.2
        self.pending_joins.pop(member_id, None)
        self.pending_syncs.discard(member_id)

    def replace_static(self, instance_id: str, old_id: str, new_id: str) -> ClassicMember:
        """J-23: a static member comes back under another id; what it had parked is fenced."""
        old = self.members.discard(old_id)
        if old is None:
            raise IllegalStateError(f"Cannot replace non-existing member id {old_id}")
        self.complete_join(old, error_code=ErrorCode.FENCED_INSTANCE_ID, member_id=old_id)
        self.complete_sync(old, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
        new = old.successor(new_id)
        self.members[new_id] = new
        self.note_member(new, "replaced", old_id)
        if self.leader_id == old_id:
            self._lead(new, f"static leader {old_id} was replaced")  # PR-20.3
        self.static_members[instance_id] = new_id
        return new

    def update(
        self,
        member: ClassicMember,
        protocols: Protocols,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        parked: Answer | None,
    ) -> None:
        """J-36: new protocols and timeouts, and a newly parked join (``None``: none)."""
        self._count_protocols(member, -1)
        member.protocols = protocols
        self._count_protocols(member, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        self.parked_joins += (parked is not None) - (member.awaiting_join is not None)
        member.awaiting_join = parked  # J-37: one that was parked before never gets an answer

    def _count_protocols(self, member: ClassicMember, step: int) -> None:
        supporters = self.supporters
        for protocol in member.protocols:
            supporters[protocol.name] = supporters.get(protocol.name, 0) + step

    def complete_join(
        self,
        member: ClassicMember,
        *,
        error_code: ErrorCode,
        member_id: str,
    ) -> None:
        """Answer a parked JoinGroup with an error; nothing happens when none is parked."""
        answer = self.unpark_join(member)
        if answer is not None:
            join_answer(answer, error_code=error_code, member_id=member_id)

    def unpark_join(self, member: ClassicMember) -> Answer | None:
        """Take the parked JoinGroup, to answer it."""
        answer = member.awaiting_join
        if answer is not None:
            member.awaiting_join = None
            self.parked_joins -= 1
        return answer

    def complete_sync(self, member: ClassicMember, response: SyncGroupResponse) -> bool:
        """Answer a parked SyncGroup; returns whether one was parked."""
        answer = member.awaiting_sync
        if answer is None:
            return False
        member.awaiting_sync = None
        answer.complete(response)
        return True

    def elect_joined_leader(self) -> bool:
        """PR-12: make sure that the leader has joined. ``False``: nobody can lead."""
        if self.leader_id is None:
            return False
        leader = self.members[self.leader_id]
        if leader.awaiting_join is not None:
            return True
        who = (
            f"Group leader [memberId: {leader.member_id}, groupInstanceId: "
            f"{leader.group_instance_id or 'None'}] failed to join before the rebalance timeout"
        )
        for member_id in self.members.java_order():
            member = self.members[member_id]
            if member.awaiting_join is not None:
                self._lead(member, "the leader failed to join before the rebalance timeout")
                self.log(f"{who}. Member {member} was elected as the new leader.")
                return True
        self.log(
            f"{who} and the group couldn't proceed to the next generation because no member joined."
        )
        return False

    def next_generation(self) -> None:
        """PR-15, PR-19: one generation on, to COMPLETING or EMPTY."""
        self.generation_id += 1
        if self.members:
            self.protocol_name = self.select_protocol()
            self.refresh_subscribed_topics()
            self.transition_to(
                GroupState.COMPLETING,
                f"Stabilized group {self.group_id} generation {self.generation_id} with "
                f"{len(self.members)} members.",
            )
        else:
            self.protocol_name = None
            self.refresh_subscribed_topics()
            self.transition_to(
                GroupState.EMPTY,
                f"Group {self.group_id} with generation {self.generation_id} is now empty.",
            )
        self.pending_syncs.clear()

    def refresh_subscribed_topics(self) -> None:
        """2.2: read the topics out of the members' subscriptions."""
        if not self.uses_consumer_protocol:
            self.subscribed_topics = None
        elif not self.members:
            self.subscribed_topics = frozenset()
        elif self.protocol_name is not None:
            metadata: Iterable[bytes] = (
                member.metadata(self.protocol_name) for member in self.members.values()
            )
            topics = subscribed_topics_of(metadata)
            if topics is None:
                self.log(
                    f"Failed to parse Consumer Protocol {CONSUMER}:{self.protocol_name} of group "
                    f"{self.group_id}. Consumer group coordinator is not aware of the subscribed "
                    "topics.",
                    "WARN",
                )
            self.subscribed_topics = topics
        else:
            self.subscribed_topics = None
