"""Rebalances: prepare, complete, lead, vote (PR-01 to PR-20, T-4, T-5)."""

from __future__ import annotations

import itertools

import pytest

from groupsim.coordinator.classic.states import PREVIOUS, GroupState, is_legal
from groupsim.coordinator.effects import MemberChange
from groupsim.coordinator.failures import IllegalStateError
from groupsim.protocol.errors import ErrorCode
from groupsim.testing.coordinator import Bench

EMPTY, PREPARING, COMPLETING = GroupState.EMPTY, GroupState.PREPARING, GroupState.COMPLETING
STABLE, DEAD = GroupState.STABLE, GroupState.DEAD


def test_legal_moves() -> None:
    """PR-01, C-15: exactly the moves of 1.2; any other is an internal error with both states."""
    legal = {
        (EMPTY, PREPARING),
        (STABLE, PREPARING),
        (COMPLETING, PREPARING),
        (PREPARING, COMPLETING),
        (PREPARING, EMPTY),
        (COMPLETING, STABLE),
        *((state, DEAD) for state in GroupState),
    }
    moves = set(itertools.product(GroupState, GroupState))
    assert {move for move in moves if is_legal(*move)} == legal
    assert sum(len(states) for states in PREVIOUS.values()) == len(legal)
    bench = Bench()
    bench.new_id()
    with pytest.raises(IllegalStateError, match="Instead it is in Empty state"):
        bench.group().transition_to(STABLE, "forced")
    assert bench.seen().state == "Empty"


def test_a_join_in_preparing_completes_or_waits() -> None:
    """PR-01, PR-08: in PREPARING a change only tries to complete the join phase."""
    bench = Bench()
    leader, follower = bench.stable(2)
    bench.join(follower, protocols=["range", "x"])
    assert bench.seen().state == "PreparingRebalance"
    bench.join(follower, protocols=["range", "y"])
    assert bench.seen().state == "PreparingRebalance"
    bench.join(leader)
    assert bench.seen().state == "CompletingRebalance"


def test_rebalance_from_completing_wipes_assignments() -> None:
    """PR-02, T-6: parked syncs end, their sessions start afresh, the pending-sync timer is gone."""
    bench = Bench()
    leader, first, second = bench.stable(3)
    for member_id in (leader, first, second):
        bench.join(member_id)
    assert bench.seen().state == "CompletingRebalance"
    sync = bench.sync(first)
    assert "sync-g" in bench.timers()
    assert all(member.assignment for member in bench.seen().members)
    bench.sleep(1000)
    bench.join(version=3)
    assert bench.synced(sync).error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert (bench.synced(sync).assignment, bench.synced(sync).protocol_name) == (b"", None)
    assert not any(member.assignment for member in bench.seen().members)
    assert bench.timers()[f"heartbeat-g-{first}"] == ("session", bench.now_ms + 10_000)
    assert bench.timers()[f"heartbeat-g-{second}"][1] < bench.now_ms + 10_000
    assert "sync-g" not in bench.timers()
    assert bench.seen().pending_syncs == ()


def test_rebalance_from_stable_keeps_assignments() -> None:
    """PR-03, PR-07, T-4: they stay visible; the generation is that of before; the join timer runs
    for the longest rebalance timeout of all members, the newcomer included.
    """
    bench = Bench()
    leader, follower = bench.stable(2, rebalance_ms=20_000)
    bench.sleep(100)
    bench.join(version=3, rebalance_ms=30_000)
    seen = bench.seen()
    assert (seen.state, seen.generation_id) == ("PreparingRebalance", 1)
    assert {member.member_id for member in seen.members if member.assignment} == {leader, follower}
    assert bench.timers()["join-g"] == ("join", bench.now_ms + 30_000)
    bench.sleep(50)
    bench.join(version=3, rebalance_ms=900_000)  # later joiners do not lengthen it
    assert bench.timers()["join-g"] == ("join", bench.now_ms - 50 + 30_000)


def test_initial_rebalance_waits_for_the_delay() -> None:
    """PR-04, T-5: the delay in full, even when the rebalance timeout is smaller, and also when it
    is 0 the answer comes from the timer.
    """
    bench = Bench()
    token = bench.join(version=3, rebalance_ms=500)
    assert bench.timers()["join-g"] == ("initial-join", 3000)
    bench.sleep(2999)
    assert bench.is_parked(token)
    bench.sleep(1)
    assert bench.joined(token).error_code is ErrorCode.NONE
    now = Bench({"group.initial.rebalance.delay.ms": 0})
    token = now.join(version=3)
    assert now.is_parked(token)
    now.sleep(0)
    assert now.joined(token).generation_id == 1


@pytest.mark.parametrize(
    ("rebalance_ms", "fires"),
    [
        (500, [3000]),
        (5000, [3000, 5000]),
        (6000, [3000, 6000]),
        (10_000, [3000, 6000, 9000, 10_000]),
    ],
)
def test_initial_delay_is_extended(rebalance_ms: int, fires: list[int]) -> None:
    """PR-05, T-5: the table of 2.1, somebody joining in every window; the budget is the first
    member's.
    """
    bench = Bench()
    first = bench.join(version=3, rebalance_ms=rebalance_ms)
    for due in fires:
        assert bench.timers()["join-g"] == ("initial-join", due)
        bench.join(version=3, rebalance_ms=100_000)
        bench.sleep(due - bench.now_ms)
    assert bench.joined(first).generation_id == 1


def test_no_extension_without_a_newcomer() -> None:
    """PR-05, J-20: a rejoin or a static replacement is no addition."""
    bench = Bench()
    token = bench.join(instance="a")
    bench.join(instance="a")
    assert not bench.seen().new_member_added
    bench.sleep(3000)
    assert bench.seen().state == "CompletingRebalance"
    assert bench.joined(token).error_code is ErrorCode.FENCED_INSTANCE_ID


def test_the_extension_flag_leaks() -> None:
    """PR-06: left set by an exhausted budget, it extends the next initial rebalance once."""
    bench = Bench()
    bench.join(version=3, rebalance_ms=3000)
    bench.join(version=3, rebalance_ms=3000)
    bench.sleep(3000)
    assert bench.seen().new_member_added
    bench.leave(*bench.group().members)
    assert bench.seen().state == "Empty"
    begun = bench.now_ms
    token = bench.join(version=3, rebalance_ms=60_000)
    bench.sleep(3000)
    assert bench.is_parked(token)
    assert bench.timers()["join-g"] == ("initial-join", begun + 6000)
    bench.sleep(3000)
    assert bench.joined(token).error_code is ErrorCode.NONE


def test_a_sole_member_completes_at_once() -> None:
    """PR-07: and so does a group that has lost its last member."""
    bench = Bench()
    (member,) = bench.stable(1)
    assert bench.joined(bench.join(member)).generation_id == 2
    bench.leave(member)
    assert (bench.seen().state, bench.seen().generation_id) == ("Empty", 3)


def test_nobody_left_but_a_pending_id() -> None:
    """PR-07, PR-19: the join timer is armed with 0 and fires at once."""
    bench = Bench()
    (member,) = bench.stable(1)
    pending = bench.new_id()
    bench.leave(member)
    assert bench.timers()["join-g"] == ("join", bench.now_ms)
    bench.sleep(0)
    seen = bench.seen()
    assert (seen.state, seen.generation_id, seen.pending_joins) == ("Empty", 2, (pending,))


def test_early_completion_needs_the_pending_ids_too() -> None:
    """PR-08: a pending id blocks it until it joins or leaves."""
    bench = Bench()
    leader, follower = bench.stable(2)
    pending = bench.new_id()
    tokens = [bench.join(follower, protocols=["range", "x"]), bench.join(leader)]
    assert bench.seen().state == "PreparingRebalance"
    late = bench.join(pending)
    assert [bench.joined(token).generation_id for token in (*tokens, late)] == [2, 2, 2]


def test_no_early_completion_of_an_initial_rebalance() -> None:
    """PR-08: although everybody has joined."""
    bench = Bench()
    token = bench.join(version=3)
    member_id = next(iter(bench.group().members))
    bench.join(member_id)
    assert bench.group().all_joined
    assert bench.is_parked(token)
    assert bench.seen().state == "PreparingRebalance"


def test_expiries_end_the_initial_delay_early() -> None:
    """PR-09, PR-22, PR-23: a member's, and a pending member's."""
    bench = Bench({"group.initial.rebalance.delay.ms": 600_000})
    token = bench.join(version=3)
    bench.sleep(300_000)
    assert bench.joined(token).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert (bench.seen().state, bench.seen().generation_id) == ("Empty", 1)
    bench = Bench({"group.initial.rebalance.delay.ms": 600_000})
    token = bench.join(version=3)
    bench.new_id(session_ms=9000)
    bench.sleep(9000)
    assert bench.joined(token).generation_id == 1


def test_absent_dynamic_members_are_dropped() -> None:
    """PR-10, T-4: without an answer; a pending id stays pending."""
    bench = Bench()
    leader, follower = bench.stable(2, rebalance_ms=8000)
    pending = bench.new_id(session_ms=60_000)
    token = bench.join(follower, rebalance_ms=8000, protocols=["range", "x"])
    bench.heartbeat(leader)
    bench.sleep(8000)
    answer = bench.joined(token)
    assert (answer.generation_id, answer.leader) == (2, follower)
    assert [entry.member_id for entry in answer.members] == [follower]
    assert f"heartbeat-g-{leader}" not in bench.timers()
    assert bench.heartbeat(leader, generation=1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.seen().pending_joins == (pending,)
    assert any("removed dynamic members who haven't joined" in line for line in bench.sentences())


def test_a_dead_group_completes_nothing() -> None:
    """PR-11."""
    bench = Bench()
    token = bench.join(version=3)
    bench.group().transition_to(DEAD, "forced")
    bench.sleep(3000)
    assert (bench.seen().state, bench.seen().generation_id) == ("Dead", 0)
    assert bench.is_parked(token)


def test_absent_static_leader_is_replaced() -> None:
    """PR-12, PR-14, PR-20: by one who has joined; the absent stays a member of the generation."""
    bench = Bench()
    ids = bench.stable_static("a", "b", rebalance_ms=8000, session_ms=30_000)
    leader = bench.group().leader_id or ""
    follower = next(name for name in ids if name != leader)
    instance = bench.group().members[follower].group_instance_id
    token = bench.join(
        follower, instance=instance, protocols=["range", "x"], rebalance_ms=8000, session_ms=30_000
    )
    bench.sleep(8000)
    answer = bench.joined(token)
    assert (answer.generation_id, answer.leader) == (2, follower)
    assert {entry.member_id for entry in answer.members} == set(ids)
    assert leader in bench.seen().pending_syncs
    assert bench.timers()[f"heartbeat-g-{leader}"] == ("session", bench.now_ms + 30_000)
    assert bench.heartbeat(leader, generation=1) is ErrorCode.ILLEGAL_GENERATION
    assert bench.commit(member_id=leader, generation=1) == [ErrorCode.ILLEGAL_GENERATION]
    assert bench.synced(bench.sync(leader, generation=1)).error_code is ErrorCode.ILLEGAL_GENERATION
    assert any("was elected as the new leader" in line for line in bench.sentences())
    bench.keep_alive([follower], 8000)  # T-6 drops who has not synced
    assert leader not in bench.group().members


def test_leader_that_joins_late_still_leads() -> None:
    """PR-12, PR-20: the order of rejoining does not matter."""
    bench = Bench()
    leader, follower = bench.stable(2)
    bench.join(follower, protocols=["range", "x"])
    bench.sleep(5000)
    assert bench.joined(bench.join(leader)).leader == leader


def test_nobody_rejoins() -> None:
    """PR-13, T-4: only static members are left: the join timer starts over until one comes."""
    bench = Bench()
    leader, follower = bench.stable_static("a", "b", rebalance_ms=10_000, session_ms=1_000_000)
    visitor = bench.join(version=3, rebalance_ms=10_000, session_ms=10_000)
    bench.leave(next(name for name in bench.group().members if name not in (leader, follower)))
    assert bench.joined(visitor).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    for _ in range(3):
        due = bench.timers()["join-g"][1]
        bench.sleep(due - bench.now_ms)
        assert (bench.seen().state, bench.seen().generation_id) == ("PreparingRebalance", 1)
        assert bench.timers()["join-g"] == ("join", bench.now_ms + 10_000)
    tokens = [bench.join(name) for name in (leader, follower)]
    assert [bench.joined(token).generation_id for token in tokens] == [2, 2]


def test_nobody_rejoins_without_a_rebalance_timeout() -> None:
    """PR-13: Kafka's timer of 0 would fire for ever; here a millisecond passes between turns."""
    bench = Bench()
    (member,) = bench.stable_static("a", session_ms=10_000)
    bench.group().members[member].rebalance_timeout_ms = 0
    bench.join(version=3, rebalance_ms=0)
    visitor = next(name for name in bench.group().members if bench.group().members[name].is_new)
    bench.leave(visitor)
    bench.sleep(20_000)  # comes to an end: the session of the last member
    assert bench.seen().state == "Empty"


def test_generations_count_by_one() -> None:
    """PR-15, PR-26: one for each join phase; the first is 1; nothing is written for it."""
    bench = Bench()
    (member,) = bench.completing(1)
    assert bench.seen().generation_id == 1
    written = len(bench.appends)
    for generation in (2, 3, 4):
        token = bench.join(member, protocols=["range", f"x{generation}"])
        assert bench.joined(token).generation_id == generation
    assert len(bench.appends) == written


def test_vote() -> None:
    """PR-16: each votes for its first candidate; most votes win."""
    bench = Bench()
    bench.join(version=3, protocols=["range", "roundrobin", "mine"])
    bench.join(version=3, protocols=["roundrobin", "range"])
    bench.join(version=3, protocols=["roundrobin", "range"])
    bench.sleep(6000)
    assert bench.seen().protocol_name == "roundrobin"


@pytest.mark.parametrize(
    ("names", "winner"),
    [
        (("range", "sticky"), "sticky"),
        (("range", "roundrobin"), "range"),
        (("roundrobin", "cooperative-sticky"), "roundrobin"),
        (("compatible", "sessioned"), "compatible"),
    ],
)
def test_ties_go_by_javas_map_order(names: tuple[str, str], winner: str) -> None:
    """PR-16: whatever the order of the votes."""
    for first, second in (names, names[::-1]):
        bench = Bench()
        bench.join(version=3, protocols=[first, second])
        bench.join(version=3, protocols=[second, first])
        bench.sleep(6000)
        assert bench.seen().protocol_name == winner


def test_join_answers() -> None:
    """PR-17: own id, generation, type, name, leader; the list for the leader alone."""
    bench = Bench()
    tokens = [bench.join(version=3), bench.join(instance="i")]
    bench.sleep(6000)
    for answer in map(bench.joined, tokens):
        leads = answer.member_id == answer.leader
        assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, 1)
        assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
        assert not answer.skip_assignment
        assert len(answer.members) == (2 if leads else 0)
        if leads:
            assert {entry.group_instance_id for entry in answer.members} == {None, "i"}
            metadata = {member.protocols[0].metadata for member in bench.seen().members}
            assert {entry.metadata for entry in answer.members} == metadata


def test_bookkeeping_at_completion() -> None:
    """PR-18, T-1, T-2, T-6: sessions armed, nobody is new, all syncs pending."""
    bench = Bench()
    members = bench.completing(3, session_ms=12_000, rebalance_ms=40_000)
    seen = bench.seen()
    assert not any(member.is_new for member in seen.members)
    assert seen.pending_syncs == tuple(sorted(members))
    timers = bench.timers()
    assert {timers[f"heartbeat-g-{name}"] for name in members} == {
        ("session", bench.now_ms + 12_000)
    }
    assert timers["sync-g"] == ("pending-sync", bench.now_ms + 40_000)


def test_empty_generation() -> None:
    """PR-19, C-09: generation up, protocol gone, type kept, a record; failure is only logged."""
    bench = Bench()
    (member,) = bench.stable(1)
    bench.sleep(10)
    bench.leave(member)
    seen = bench.seen()
    assert (seen.state, seen.generation_id, seen.leader_id) == ("Empty", 2, None)
    assert (seen.protocol_type, seen.protocol_name, seen.subscribed_topics) == (
        "consumer",
        None,
        (),
    )
    record = bench.group_records()[-1]
    assert record is not None
    assert (record.generation, record.protocol_type, record.members) == (2, "consumer", ())
    assert record.current_state_timestamp == bench.now_ms
    failing = Bench()
    (member,) = failing.stable(1)
    failing.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    failing.sleep(10_000)
    assert (failing.seen().state, failing.seen().generation_id) == ("Empty", 2)
    assert any("Failed to write empty metadata" in line for line in failing.sentences())
    failing.fail_with = None
    failing.fail_over()
    assert failing.seen().generation_id == 1


def test_who_leads() -> None:
    """PR-20: first member added; the first in map order when a leader is removed."""
    bench = Bench()
    early, late = bench.new_id(), bench.new_id()
    bench.join(late)
    bench.join(early)
    assert bench.seen().leader_id == late  # whose adding join came first
    bench.sleep(6000)
    bench.leave(late)
    assert bench.seen().leader_id == early
    bench.leave(early)
    assert bench.seen().leader_id is None
    bench = Bench()
    leader, *others = bench.stable(5)
    order = [name for name in bench.group().members if name != leader]
    bench.leave(leader)
    assert bench.seen().leader_id == order[0]
    changes = [note for note in bench.notes if isinstance(note, MemberChange)]
    assert [note.member_id for note in changes if note.change == "leader"] == [leader, order[0]]
    assert set(order) == set(others)


def test_nobody_can_lead_when_only_pending_ids_are_left() -> None:
    """PR-12, PR-19: a group without leader and members goes to EMPTY."""
    bench = Bench()
    bench.join(version=3)
    bench.new_id(session_ms=60_000)
    bench.leave(next(iter(bench.group().members)))
    assert bench.seen().state == "PreparingRebalance"  # L-11: not in an initial rebalance
    bench.sleep(3000)
    assert (bench.seen().state, bench.seen().generation_id) == ("Empty", 1)
