"""What holds whatever clients do: the coordinator under random requests, time, faults and failovers."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from groupsim.coordinator.classic.group import ClassicGroup
from groupsim.coordinator.classic.states import GroupState
from groupsim.coordinator.records import GroupMetadataKey, GroupMetadataValue
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import LeaveGroupRequest, MemberIdentity
from groupsim.testing.coordinator import Bench

GROUPS = ("g", "g", "g", "h")
INSTANCES = (None, None, "i1", "i2")
PROTOCOLS = (("range",), ("range", "sticky"), ("sticky", "range"), ("sticky",))
GENERATION_LIVES = (GroupState.COMPLETING, GroupState.STABLE)


class CoordinatorMachine(RuleBasedStateMachine):
    """Two groups, a handful of members, and everything that can happen to them."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        self.generations: dict[str, int] = {}
        self.objects: dict[str, ClassicGroup] = {}
        # token → (kind, member ids that may have parked it)
        self.parked: dict[int, tuple[str, set[str]]] = {}
        self.excused: set[int] = set()

    @initialize(size=st.sampled_from([2, 3, 2_147_483_647]), delay=st.sampled_from([0, 3000]))
    def begin(self, size: int, delay: int) -> None:
        """Choose a broker."""
        self.bench = Bench({"group.max.size": size, "group.initial.rebalance.delay.ms": delay})

    # -- what happens ------------------------------------------------------------------------

    def _ids(self, group: str) -> list[str]:
        seen = self.bench.coordinator.snapshot().group(group)
        if seen is None:
            return [""]
        known = [*seen.pending_joins, *(member.member_id for member in seen.members)]
        return [*known, *known, *known, "nobody", ""]

    def _watch(self, kind: str, token: int, ids: set[str]) -> None:
        if self.bench.is_parked(token):
            self.parked[token] = (kind, ids)

    @rule(data=st.data(), group=st.sampled_from(GROUPS), version=st.sampled_from([3, 8, 9]))
    def join(self, data: st.DataObject, group: str, version: int) -> None:
        """Somebody joins, old or new, dynamic or static."""
        member_id = data.draw(st.sampled_from(self._ids(group)))
        instance = data.draw(st.sampled_from(INSTANCES))
        protocols = data.draw(st.sampled_from(PROTOCOLS))
        self._supersede("join", member_id)
        token = self.bench.join(
            member_id,
            group=group,
            instance=instance,
            version=version,
            protocols=protocols,
            session_ms=data.draw(st.sampled_from([6000, 10_000])),
            rebalance_ms=data.draw(st.sampled_from([8000, 30_000])),
        )
        self._watch("join", token, {member_id})

    @rule(data=st.data(), group=st.sampled_from(GROUPS))
    def sync(self, data: st.DataObject, group: str) -> None:
        """Somebody syncs."""
        if not self.bench.has_group(group):
            return
        member_id = data.draw(st.sampled_from(self._ids(group)))
        self._supersede("sync", member_id)
        token = self.bench.sync(
            member_id,
            group=group,
            version=4,
            protocol_type=None,
            protocol_name=None,
            assignments=dict.fromkeys(self._ids(group), b"A"),
        )
        self._watch("sync", token, {member_id})

    @rule(group=st.sampled_from(GROUPS), count=st.integers(1, 3), instances=st.booleans())
    def arrive(self, group: str, count: int, instances: bool) -> None:
        """Newcomers arrive together."""
        for number in range(count):
            instance = f"i{number}" if instances else None
            token = self.bench.join(group=group, instance=instance, version=3)
            self._watch("join", token, {""})

    @rule(group=st.sampled_from(GROUPS))
    def settle(self, group: str) -> None:
        """A rebalance takes its course: known members join, time passes, everybody syncs."""
        if not self.bench.has_group(group):
            return
        if self.bench.group(group).state is GroupState.PREPARING:
            for member in list(self.bench.group(group).members.values()):
                if member.awaiting_join is None:
                    self._supersede("join", member.member_id)
                    token = self.bench.join(
                        member.member_id,
                        group=group,
                        protocols=[(entry.name, entry.metadata) for entry in member.protocols],
                        session_ms=member.session_timeout_ms,
                        rebalance_ms=member.rebalance_timeout_ms,
                    )
                    self._watch("join", token, {member.member_id})
        timer = self.bench.timers().get(f"join-{group}")
        if timer is not None:
            self.bench.sleep(timer[1] - self.bench.now_ms)
        if self.bench.has_group(group) and self.bench.group(group).state is GroupState.COMPLETING:
            for member_id in self.bench.group(group).members:
                self._supersede("sync", member_id)
            self.bench.assign(group)

    @rule(data=st.data(), group=st.sampled_from(GROUPS))
    def heartbeat(self, data: st.DataObject, group: str) -> None:
        """Somebody beats."""
        if self.bench.has_group(group):
            member_id = data.draw(st.sampled_from(self._ids(group)))
            self.bench.heartbeat(member_id, group=group)

    @rule(data=st.data(), group=st.sampled_from(GROUPS))
    def leave(self, data: st.DataObject, group: str) -> None:
        """One or two leave; a sync that they had parked is never answered (L-08)."""
        ids = data.draw(st.lists(st.sampled_from(self._ids(group)), min_size=1, max_size=2))
        for member_id in ids:
            self._supersede("sync", member_id)
        self.bench.send(
            LeaveGroupRequest(
                group_id=group,
                members=tuple(MemberIdentity(member_id=member_id) for member_id in ids),
            ),
            5,
        )

    @rule(data=st.data(), group=st.sampled_from(GROUPS), offset=st.integers(0, 99))
    def commit(self, data: st.DataObject, group: str, offset: int) -> None:
        """Somebody commits an offset."""
        known = self.bench.has_group(group)
        generation = self.bench.group(group).generation_id if known else -1
        member_id = data.draw(st.sampled_from(self._ids(group)))
        self.bench.commit(
            {(data.draw(st.sampled_from(["orders", "other"])), 0): offset},
            group=group,
            member_id=member_id,
            generation=data.draw(st.sampled_from([-1, generation])),
        )

    @rule(off_by=st.sampled_from([-1, 0, 1]))
    def to_the_next_deadline(self, off_by: int) -> None:
        """Time passes until a timer is due, or just not, or just over."""
        due = self.bench.coordinator.next_deadline_ms()
        if due is not None:
            self.bench.sleep(max(due + off_by - self.bench.now_ms, 0))

    @rule(duration=st.sampled_from([1, 500, 1000, 2000, 3000, 7000, 31_000, 300_000]))
    def sleep(self, duration: int) -> None:
        """Time passes."""
        self.bench.sleep(duration)

    @precondition(lambda self: self.bench.log)
    @rule(rare=st.sampled_from([True, False, False, False, False]))
    def fail_over(self, rare: bool) -> None:
        """The broker dies; what was parked is never answered."""
        if not rare:
            return
        self._forget()
        self.bench.fail_over()

    @rule(rare=st.sampled_from([True, False, False, False, False]))
    def change_leader(self, rare: bool) -> None:
        """The partition goes away, and comes back: what was parked is answered (C-15)."""
        if not rare:
            return
        self.bench.unload()
        for token in [*self.parked]:
            if token not in self.excused:
                assert not self.bench.is_parked(token), f"{self.parked[token]} was not answered"
        self._forget()
        self.bench.load()

    def _supersede(self, kind: str, member_id: str) -> None:
        for token, (parked_kind, ids) in self.parked.items():
            if parked_kind == kind and (member_id in ids or self._member_of(token) == member_id):
                self.excused.add(token)

    def _member_of(self, token: int) -> str:
        for group in self._live():
            for member in group.members.values():
                for answer in (member.awaiting_join, member.awaiting_sync):
                    if answer is not None and answer.token == token:
                        return member.member_id
        return "-"

    def _forget(self) -> None:
        self.parked.clear()
        self.excused.clear()
        self.generations.clear()
        self.objects.clear()

    def _live(self) -> list[ClassicGroup]:
        groups = self.bench.coordinator._core.shards[0].context.groups
        return groups.values()

    # -- what holds --------------------------------------------------------------------------

    @invariant()
    def generations_never_fall(self) -> None:
        """PR-15, PR-19: as long as the group lives."""
        for group in self._live():
            if self.objects.get(group.group_id) is not group:
                self.objects[group.group_id] = group
                self.generations[group.group_id] = group.generation_id
            assert group.generation_id >= self.generations[group.group_id]
            self.generations[group.group_id] = group.generation_id

    @invariant()
    def the_leader_is_a_member(self) -> None:
        """PR-20: and only an empty group has none."""
        for group in self._live():
            if group.members:
                assert group.leader_id in group.members
            else:
                assert group.leader_id is None

    @invariant()
    def counters_agree_with_the_members(self) -> None:
        """J-15, J-20, PR-08: supporters, parked joins, instance ids."""
        for group in self._live():
            members = group.members.values()
            counted: dict[str, int] = {}
            for member in members:
                for protocol in member.protocols:
                    counted[protocol.name] = counted.get(protocol.name, 0) + 1
            assert {name: n for name, n in group.supporters.items() if n} == counted
            assert group.parked_joins == sum(m.awaiting_join is not None for m in members)
            static = {m.group_instance_id: m.member_id for m in members if m.group_instance_id}
            assert group.static_members == static
            assert not set(group.pending_joins) & set(group.members)

    @invariant()
    def a_state_has_what_it_needs(self) -> None:
        """1.1, PR-15, PR-19: EMPTY has no members, a generation has a protocol all support."""
        for group in self._live():
            if group.state is GroupState.EMPTY:
                assert not group.members
            if group.state in GENERATION_LIVES:
                assert group.members
                assert group.protocol_name is not None
                assert all(m.metadata(group.protocol_name) for m in group.members.values())
            for member in group.members.values():
                if member.awaiting_sync is not None:
                    assert group.state is GroupState.COMPLETING

    @invariant()
    def every_request_is_answered_or_parked(self) -> None:
        """J-37, S-09, L-08: what has no answer is parked with a member, or was given up."""
        for token in [*self.parked]:
            if not self.bench.is_parked(token):
                del self.parked[token]
                self.excused.discard(token)
            elif token not in self.excused:
                assert self._member_of(token) != "-", f"{self.parked[token]} is lost"

    @invariant()
    def timers_are_those_the_state_requires(self) -> None:
        """T-1 to T-6: join timers in PREPARING, sync timers while syncs are pending, a heartbeat
        timer for every pending id and for every member that has nothing parked.
        """
        timers = self.bench.timers()
        for group in self._live():
            name = group.group_id
            join = timers.get(f"join-{name}")
            assert (join is not None) is (group.state is GroupState.PREPARING), group.state
            if join is not None:
                initial = group.previous_state is GroupState.EMPTY
                assert join[0] == ("initial-join" if initial else "join")
            sync = timers.get(f"sync-{name}")
            wanted = group.state in GENERATION_LIVES and bool(group.pending_syncs)
            assert (sync is not None) is wanted
            for member_id in group.pending_joins:
                assert timers[f"heartbeat-{name}-{member_id}"][0] == "pending-member"
            for member in group.members.values():
                timer = timers.get(f"heartbeat-{name}-{member.member_id}")
                if timer is None:
                    assert member.has_satisfied_heartbeat
                else:
                    assert timer[0] in (
                        ("new-member", "session") if member.is_new else ("session",)
                    )

    @invariant()
    def replaying_the_log_rebuilds_the_state(self) -> None:
        """C-16 to C-18, C-23: groups as of their last record, and every committed offset."""
        mine = self.bench.coordinator.snapshot().partitions[0]
        other = Bench()
        other.log = {0: list(self.bench.log.get(0, []))}
        other.now_ms = self.bench.now_ms
        other.fail_over()
        copy = other.coordinator.snapshot().partitions[0]
        assert set(copy.offsets) == set(mine.offsets)
        assert {group.group_id for group in copy.groups} == {
            group.group_id for group in mine.groups
        }
        last: dict[str, GroupMetadataValue] = {}
        for record in other.log[0]:
            if isinstance(record.key, GroupMetadataKey):
                last.pop(record.key.group, None)
                if isinstance(record.value, GroupMetadataValue):
                    last[record.key.group] = record.value
        for group_id, value in last.items():
            seen = other.seen(group_id)
            live = self.bench.seen(group_id)
            assert seen.generation_id == value.generation <= live.generation_id
            assert seen.state == ("Stable" if value.members else "Empty")
            stored = {member.member_id: member.assignment for member in value.members}
            assert {member.member_id: member.assignment for member in seen.members} == stored
            if live.state == "Stable" and live.generation_id == value.generation:
                # what cannot leave a generation without ending it
                assert {member.member_id for member in live.members} == set(stored)
                assert live.leader_id == seen.leader_id
                assert live.protocol_name == seen.protocol_name


def explore(phases: tuple[Phase, ...] = (Phase.generate, Phase.shrink)) -> None:
    """Run the machine; the same stories every time."""
    run_state_machine_as_test(
        CoordinatorMachine,
        settings=settings(
            max_examples=100,
            stateful_step_count=40,
            deadline=None,
            derandomize=True,
            phases=phases,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_coordinator_properties() -> None:
    """PR-15, PR-20, J-37, S-09, L-08, C-15, C-16 to C-18, C-23, T-1 to T-6: the invariants above."""
    explore()


def test_a_planted_fault_is_found() -> None:
    """PR-20: a coordinator that forgets to choose a new leader breaks an invariant."""
    original = ClassicGroup.remove

    def forgetful(group: ClassicGroup, member_id: str) -> None:
        leader = group.leader_id
        original(group, member_id)
        if leader == member_id and group.members:
            group.leader_id = leader

    ClassicGroup.remove = forgetful  # type: ignore[method-assign]
    try:
        with pytest.raises((AssertionError, KeyError)):
            explore((Phase.generate,))
    finally:
        ClassicGroup.remove = original  # type: ignore[method-assign]


def test_answers_and_errors_are_always_kafkas() -> None:
    """C-10: whatever an append fails with, clients see a code of the table."""
    for error in ErrorCode:
        if error is ErrorCode.NONE:
            continue
        bench = Bench()
        bench.fail_with = error
        (code,) = bench.commit()
        assert code is not ErrorCode.NONE
