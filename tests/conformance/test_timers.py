"""Sessions and the other timers (PR-21 to PR-25, T-1 to T-9)."""

from __future__ import annotations

import pytest

from groupsim.coordinator.classic.states import GroupState
from groupsim.coordinator.effects import TimerArmed, TimerCancelled, TimerFired
from groupsim.coordinator.timers import Timer, TimerQueue
from groupsim.protocol.errors import ErrorCode
from groupsim.testing.coordinator import Bench


def test_session_expiry() -> None:
    """PR-21, T-1, H-08: one millisecond decides; a static member goes too and frees its id."""
    bench = Bench()
    (member,) = bench.stable_static("a", session_ms=10_000)
    bench.sleep(9999)
    assert bench.heartbeat(member) is ErrorCode.NONE
    bench.sleep(9999)
    assert member in bench.group().members
    bench.sleep(1)
    assert (bench.seen().state, bench.seen().generation_id) == ("Empty", 2)
    assert bench.seen().static_members == ()
    assert bench.heartbeat(member, generation=1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_session_expiry_rebalances_the_others() -> None:
    """PR-21, PR-03: from STABLE and COMPLETING to PREPARING."""
    bench = Bench()
    leader, follower = bench.stable(2)
    bench.sleep(5000)
    bench.heartbeat(follower)
    bench.sleep(5000)
    assert bench.seen().state == "PreparingRebalance"
    assert bench.seen().leader_id == follower
    assert bench.heartbeat(follower) is ErrorCode.REBALANCE_IN_PROGRESS
    assert leader not in bench.group().members


def test_session_expiry_in_preparing() -> None:
    """PR-21, PR-09: completes when everybody left has joined, otherwise waits on."""
    bench = Bench()
    leader, follower, other = bench.stable(3, session_ms=10_000)
    token = bench.join(follower, protocols=["range", "x"])
    bench.sleep(5000)
    bench.heartbeat(other)
    bench.sleep(5000)  # the leader's session passes, the other one is still awaited
    assert leader not in bench.group().members
    assert bench.is_parked(token)
    bench.sleep(5000)
    assert bench.joined(token).generation_id == 2


def test_expiry_is_ignored_while_something_is_parked() -> None:
    """PR-21, T-1: a parked join or sync protects, and the timer is not armed again until it is
    answered.
    """
    bench = Bench()
    leader, follower = bench.stable(2, session_ms=10_000)
    bench.join(follower, protocols=["range", "x"])
    bench.keep_alive([leader], 12_000)
    assert follower in bench.group().members
    assert f"heartbeat-g-{follower}" not in bench.timers()
    bench.join(leader)
    assert bench.timers()[f"heartbeat-g-{follower}"] == ("session", bench.now_ms + 10_000)
    sync = bench.sync(follower)
    bench.keep_alive([leader], 12_000)
    assert bench.is_parked(sync)
    assert f"heartbeat-g-{follower}" not in bench.timers()
    bench.sync(leader)
    assert bench.timers()[f"heartbeat-g-{follower}"] == ("session", bench.now_ms + 10_000)


def test_a_heartbeat_of_a_parked_member_arms_its_session() -> None:
    """T-1, H-07: as usual, also after the timer had fired in vain."""
    bench = Bench()
    leader, follower = bench.stable(2, session_ms=10_000)
    bench.join(follower, protocols=["range", "x"])
    bench.keep_alive([leader], 11_000)
    assert bench.heartbeat(follower) is ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.timers()[f"heartbeat-g-{follower}"] == ("session", bench.now_ms + 10_000)


def test_expiry_finds_nobody() -> None:
    """PR-21: group missing, group DEAD, member gone: nothing happens."""
    bench = Bench()
    (member,) = bench.stable_static("a")
    bench.sleep(100)
    bench.join(instance="a")  # the old id's timer stays
    bench.sleep(9900)
    assert bench.seen().state == "Stable"
    assert member not in bench.group().members
    bench.group().transition_to(GroupState.DEAD, "forced")
    bench.sleep(10_000)
    assert len(bench.group().members) == 1
    assert any("had already been unloaded or deleted" in line for line in bench.sentences())


def test_expiry_of_a_group_forced_empty() -> None:
    """PR-21: the member goes, the state stays."""
    bench = Bench()
    bench.stable(1)
    bench.group().state = GroupState.EMPTY
    bench.sleep(10_000)
    assert (bench.seen().state, bench.seen().members) == ("Empty", ())


def test_pending_member_expires() -> None:
    """PR-22, T-3: forgotten; a stable group is not rebalanced; its later join is unknown."""
    bench = Bench()
    (member,) = bench.stable(1)
    pending = bench.new_id(session_ms=6000)
    bench.sleep(5000)
    bench.heartbeat(member)
    bench.sleep(1000)
    assert (bench.seen().state, bench.seen().pending_joins) == ("Stable", ())
    assert bench.joined(bench.join(pending)).error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_pending_member_expires_in_preparing() -> None:
    """PR-22, PR-09: then the join phase may complete, or still waits for others."""
    bench = Bench()
    leader, follower = bench.stable(2)
    bench.new_id(session_ms=6000)
    bench.new_id(session_ms=8000)
    tokens = [bench.join(follower, protocols=["range", "x"]), bench.join(leader)]
    bench.sleep(6000)
    assert bench.is_parked(tokens[0])
    bench.sleep(2000)
    assert [bench.joined(token).generation_id for token in tokens] == [2, 2]


def test_new_member_has_five_minutes() -> None:
    """PR-23, T-2: its parked join does not protect it."""
    bench = Bench()
    (leader,) = bench.stable(1, session_ms=1_800_000, rebalance_ms=1_800_000)
    token = bench.join(version=3, session_ms=6000)
    bench.sleep(299_999)
    assert bench.is_parked(token)
    bench.sleep(1)
    answer = bench.joined(token)
    assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")
    assert list(bench.group().members) == [leader]


def test_five_minutes_end_with_the_join_phase() -> None:
    """PR-23, PR-18, T-2: afterwards the session timeout counts."""
    bench = Bench()
    (member,) = bench.stable(1, session_ms=305_000)
    bench.sleep(300_000)
    assert member in bench.group().members
    bench.sleep(5000)
    assert bench.seen().state == "Empty"


def test_a_new_member_that_guesses_the_generation() -> None:
    """H-07, T-2: its heartbeat replaces the five minutes by its session timeout."""
    bench = Bench()
    (leader,) = bench.stable(1, session_ms=1_800_000, rebalance_ms=1_800_000)
    token = bench.join(version=3, session_ms=6000)
    member = next(name for name in bench.group().members if name != leader)
    assert bench.heartbeat(member) is ErrorCode.REBALANCE_IN_PROGRESS
    bench.sleep(6000)
    assert bench.joined(token).error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_pending_sync_expiry() -> None:
    """PR-24, T-6, H-08: heartbeats do not save a member that does not sync."""
    bench = Bench()
    members = bench.completing(3, rebalance_ms=8000)
    bench.keep_alive(members, 8000)
    assert (bench.seen().state, bench.seen().generation_id) == ("Empty", 2)
    assert bench.heartbeat(members[0], generation=1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_pending_sync_expiry_of_followers() -> None:
    """PR-24, PR-03: STABLE already; the leader stays."""
    bench = Bench()
    leader, *followers = bench.completing(3, rebalance_ms=8000)
    bench.sync(leader)
    assert bench.seen().state == "Stable"
    bench.keep_alive([leader, *followers], 7999)
    bench.sleep(1)
    assert list(bench.group().members) == [leader]
    assert bench.heartbeat(leader) is ErrorCode.REBALANCE_IN_PROGRESS
    assert not any(f"heartbeat-g-{name}" in bench.timers() for name in followers)


def test_pending_sync_expiry_of_the_leader() -> None:
    """PR-24, PR-02, PR-20: the parked syncs end in REBALANCE_IN_PROGRESS."""
    bench = Bench()
    leader, *followers = bench.completing(3, rebalance_ms=8000)
    syncs = [bench.sync(name) for name in followers]
    bench.sleep(8000)
    assert [bench.synced(token).error_code for token in syncs] == [
        ErrorCode.REBALANCE_IN_PROGRESS
    ] * 2
    assert leader not in bench.group().members
    assert bench.seen().leader_id in followers


@pytest.mark.parametrize("state", [GroupState.EMPTY, GroupState.PREPARING, GroupState.DEAD])
def test_pending_sync_timer_in_another_state(state: GroupState) -> None:
    """PR-24: nothing happens."""
    bench = Bench()
    (member,) = bench.completing(1, rebalance_ms=8000)
    bench.group().state = state
    bench.sleep(8000)
    assert list(bench.group().members) == [member]


def test_pending_sync_timer_with_nobody_to_drop() -> None:
    """PR-24: nothing happens either; and nothing if the group is gone."""
    bench = Bench()
    (member,) = bench.completing(1, rebalance_ms=8000)
    bench.group().pending_syncs.clear()
    bench.sleep(8000)
    assert bench.seen().state == "CompletingRebalance"
    bench = Bench()
    bench.completing(1, rebalance_ms=8000)
    bench.coordinator._core.shards[0].context.groups.remove("g")
    bench.sleep(8000)
    assert not bench.has_group()
    assert member


def test_stale_pending_sync_id() -> None:
    """PR-25, J-23: a restart before the first sync in STABLE leaves the old id in the set, and a
    needless rebalance comes with T-6.
    """
    bench = Bench()
    bench.completing_static("a", "b", rebalance_ms=8000)
    leader = bench.group().leader_id or ""
    follower = next(name for name in bench.group().members if name != leader)
    instance = bench.group().members[follower].group_instance_id
    bench.sync(leader)
    new = bench.joined(bench.join(instance=instance, rebalance_ms=8000)).member_id
    bench.sync(new)
    assert bench.seen().pending_syncs == (follower,)
    bench.keep_alive([leader, new], 8000)
    assert bench.seen().state == "PreparingRebalance"
    assert set(bench.group().members) == {leader, new}


def test_timer_notes() -> None:
    """T-2, T-4, T-5: armed, replaced by one of another kind, fired."""
    bench = Bench()
    member_id = bench.new_id()
    bench.join(member_id)
    bench.sleep(3000)
    key = f"heartbeat-g-{member_id}"
    mine = [
        (type(note).__name__, note.timer)
        for note in bench.notes
        if isinstance(note, TimerArmed | TimerCancelled | TimerFired) and note.key == key
    ]
    assert mine == [
        ("TimerArmed", "pending-member"),
        ("TimerCancelled", "pending-member"),
        ("TimerArmed", "new-member"),
        ("TimerCancelled", "new-member"),
        ("TimerArmed", "session"),
    ]
    assert TimerFired(timer="initial-join", key="join-g") in bench.notes


def test_expiration_and_gauge_timers() -> None:
    """T-7, T-9: armed at load, and after each run again."""
    bench = Bench({"offsets.retention.check.interval.ms": 25_000})
    timers = {timer.kind: timer.deadline_ms for timer in bench.coordinator.snapshot().timers}
    assert timers == {"expiration": 25_000, "gauge": 60_000}
    bench.sleep(60_000)
    timers = {timer.kind: timer.deadline_ms for timer in bench.coordinator.snapshot().timers}
    assert timers == {"expiration": 75_000, "gauge": 120_000}
    quiet = {getattr(note, "timer", "") for note in bench.notes}
    assert not quiet & {"gauge", "expiration"}
    bench.new_id(session_ms=60_000)
    bench.sleep(25_000)
    assert TimerFired(timer="expiration", key="expire-group-metadata") in bench.notes


def test_write_limit() -> None:
    """T-8, C-10: an append that is never acknowledged ends its operations after five seconds."""
    bench = Bench()
    bench.commit()
    bench.hold = True
    token = bench.send_commit()
    bench.sleep(4999)
    assert token not in bench.replies
    bench.sleep(1)
    assert bench.commit_codes(token) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert TimerFired(timer="write-timeout", key="") in bench.notes


def test_timers_that_retry() -> None:
    """T-7, T-9, T-8: behind a held append their operations fail; the gauge comes back after 500 ms,
    the clean-up after its interval.
    """
    bench = Bench({"offsets.retention.check.interval.ms": 58_000})
    bench.hold = True
    bench.sleep(57_000)
    bench.new_id()
    bench.sleep(8000)
    timers = {timer.kind: timer.deadline_ms for timer in bench.coordinator.snapshot().timers}
    assert timers["expiration"] == 63_000 + 58_000
    assert timers["gauge"] == 65_000 + 500
    assert any("Rescheduling it" in line for line in bench.sentences())


def test_firing_order() -> None:
    """T-1: by deadline, then by arming; moving a timer counts as arming it afresh."""
    queue = TimerQueue()
    fired: list[str] = []
    timers = {name: Timer(name, "session", lambda name=name: fired.append(name)) for name in "abcd"}
    for name in "abc":
        queue.add(timers[name], 10)
    queue.add(timers["d"], 5)
    queue.move(timers["a"], 20)
    queue.move(timers["a"], 10)  # same deadline as b and c, armed last
    queue.move(timers["d"], 10)
    queue.cancel(timers["c"])
    assert queue.next_deadline_ms() == 5  # early: d kept its place
    assert queue.first_due(9) is None
    while (due := queue.first_due(10)) is not None:
        queue.take(due)
        due.action()
    assert fired == ["b", "a", "d"]
    assert queue.next_deadline_ms() is None


def test_moving_to_an_earlier_deadline() -> None:
    """T-2, T-1: five minutes give way to a short session."""
    queue = TimerQueue()
    timer = Timer("k", "session", lambda: None)
    queue.add(timer, 300_000)
    queue.move(timer, 10)
    assert queue.first_due(10) is timer
    queue.take(timer)
    assert queue.next_deadline_ms() is None


def test_cancelled_timers_do_not_pile_up() -> None:
    """T-8: every commit arms and cancels one."""
    queue = TimerQueue()
    keep = Timer("keep", "session", lambda: None)
    queue.add(keep, 1_000_000)
    for number in range(5000):
        timer = Timer("", "write-timeout", lambda: None)
        queue.add(timer, 500_000 + number)
        queue.cancel(timer)
    assert len(queue._heap) < 2100
    assert queue.first_due(1_000_000) is keep
