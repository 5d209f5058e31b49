"""SyncGroup (S-01 to S-15)."""

from __future__ import annotations

import pytest

from groupsim.coordinator import Switches
from groupsim.coordinator.classic.states import GroupState
from groupsim.coordinator.effects import Append, RebalanceCompleted
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import APIS, ApiKey, SyncGroupResponse
from groupsim.testing.coordinator import Bench
from tests.conformance.world import Refusing


def test_gate() -> None:
    """S-01, S-15: missing type or name from version 5 on, then authorization."""
    bench = Bench(authorizer=Refusing(("READ", "GROUP", "g")))
    for options in ({"protocol_type": None}, {"protocol_name": None}):
        token = bench.sync("m", generation=1, **options)
        assert bench.synced(token).error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        token = bench.sync("m", generation=1, version=4, **options)
        assert bench.synced(token).error_code is ErrorCode.GROUP_AUTHORIZATION_FAILED
    token = bench.sync("m", generation=1)
    assert bench.synced(token).error_code is ErrorCode.GROUP_AUTHORIZATION_FAILED
    old = Bench(switches=Switches(static_membership_gate=True))
    token = old.sync("m", generation=1, instance="i", protocol_type=None)
    assert old.synced(token).error_code is ErrorCode.UNSUPPORTED_VERSION


def test_component() -> None:
    """S-02, C-03, C-05: stopped, empty group id, partition not here."""
    bench = Bench(load=False)
    assert bench.synced(bench.sync("m", generation=1)).error_code is ErrorCode.NOT_COORDINATOR
    token = bench.sync("m", group="", generation=1)
    assert bench.synced(token).error_code is ErrorCode.INVALID_GROUP_ID
    bench.carry_out(bench.coordinator.stop(0))
    token = bench.sync("m", generation=1)
    assert bench.synced(token).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_missing_and_empty_groups() -> None:
    """S-03, S-04: UNKNOWN_MEMBER_ID, whatever else is wrong."""
    bench = Bench()
    missing = SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    assert bench.synced(bench.sync("m", generation=1)) == missing
    bench.new_id()
    assert bench.synced(bench.sync("m", generation=99)) == missing


def test_validation_in_order() -> None:
    """S-05: DEAD, then the member, the generation, the protocol; nulls pass."""
    bench = Bench()
    leader, follower = bench.stable_static("a", "b")
    wrong = {"generation": 99, "protocol_type": "connect", "protocol_name": "x"}
    cases = [
        ({"member_id": "nobody", **wrong}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": leader, "instance": "b", **wrong}, ErrorCode.FENCED_INSTANCE_ID),
        ({"member_id": leader, **wrong}, ErrorCode.ILLEGAL_GENERATION),
        (
            {"member_id": leader, "protocol_type": "connect"},
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ),
        ({"member_id": leader, "protocol_name": "x"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (
            {"member_id": leader, "protocol_type": None, "protocol_name": None, "version": 4},
            ErrorCode.NONE,
        ),
    ]
    for options, code in cases:
        answer = bench.synced(bench.sync(**options))
        assert answer.error_code is code
        if code is not ErrorCode.NONE:
            assert answer == SyncGroupResponse(error_code=code)
        else:
            assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
    pending = bench.new_id()
    assert bench.synced(bench.sync(pending)).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    bench.group().transition_to(GroupState.DEAD, "forced")
    answer = bench.synced(bench.sync("nobody"))
    assert answer.error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert follower


def test_sync_in_preparing() -> None:
    """S-06: REBALANCE_IN_PROGRESS; no timer is touched."""
    bench = Bench()
    leader, follower = bench.stable(2)
    bench.join(follower, protocols=["range", "x"])
    bench.sleep(100)
    timers = bench.timers()
    assert bench.synced(bench.sync(leader)).error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.timers() == timers


def test_follower_waits_for_the_leader() -> None:
    """S-07, S-10, S-11, S-08, T-6: parked until the leader's record is committed."""
    bench = Bench()
    leader, follower = bench.completing(2)
    parked = bench.sync(follower, assignments={follower: b"of no account"})
    assert bench.is_parked(parked)
    assert bench.seen().pending_syncs == (leader,)
    assert "sync-g" in bench.timers()
    assert bench.appends[-1].records[0].value is not None
    count = len(bench.appends)
    bench.sleep(10)
    bench.hold = True
    own = bench.sync(leader, assignments={leader: b"L", follower: b"F", "stranger": b"S"})
    assert "sync-g" not in bench.timers()  # nobody is waited for any more
    assert len(bench.appends) == count + 1
    assert bench.is_parked(own)
    bench.commit_appends()
    for token, data in ((own, b"L"), (parked, b"F")):
        answer = bench.synced(token)
        assert answer == SyncGroupResponse(
            protocol_type="consumer", protocol_name="range", assignment=data
        )
    assert bench.seen().state == "Stable"
    assert {bench.timers()[f"heartbeat-g-{name}"] for name in (leader, follower)} == {
        ("session", bench.now_ms + 10_000)
    }
    phases = [note.phase for note in bench.notes if isinstance(note, RebalanceCompleted)]
    assert phases == ["join", "sync"]


def test_the_assignment_record() -> None:
    """S-10, C-09: full membership; the timestamp is that of entering COMPLETING."""
    bench = Bench()
    leader, follower = bench.completing(2, session_ms=11_000, rebalance_ms=50_000)
    entered = bench.now_ms
    bench.sleep(1234)
    bench.sync(leader, assignments={leader: b"L"})
    record = bench.group_records()[-1]
    assert record is not None
    assert (record.generation, record.protocol_type, record.protocol) == (1, "consumer", "range")
    assert (record.leader, record.current_state_timestamp) == (leader, entered)
    stored = {entry.member_id: entry for entry in record.members}
    assert stored[leader].assignment == b"L"
    assert stored[follower].assignment == b""  # not mentioned
    assert {entry.session_timeout for entry in record.members} == {11_000}
    assert {entry.rebalance_timeout for entry in record.members} == {50_000}
    assert stored[follower].subscription == bench.seen().members[0].protocols[0].metadata
    assert any("Setting empty assignments for members" in line for line in bench.sentences())
    assert any("Sending empty assignment" in line for line in bench.sentences())


def test_followers_may_come_after_the_leader() -> None:
    """S-08, S-11, S-13: they keep their sessions and stay pending until they sync in STABLE."""
    bench = Bench()
    leader, follower = bench.completing(2)
    bench.sync(leader, assignments={follower: b"F"})
    assert (bench.seen().state, bench.seen().pending_syncs) == ("Stable", (follower,))
    assert "sync-g" in bench.timers()
    bench.sleep(1000)
    timers = bench.timers()
    assert bench.synced(bench.sync(follower)).assignment == b"F"
    assert "sync-g" not in bench.timers()
    key = f"heartbeat-g-{follower}"
    assert bench.timers()[key] == timers[key]  # no session refresh


def test_a_second_sync_replaces_the_first() -> None:
    """S-09: the older one is never answered; from the leader there is a second record."""
    bench = Bench()
    leader, follower = bench.completing(2)
    old, new = bench.sync(follower), bench.sync(follower)
    bench.hold = True
    first = bench.sync(leader, assignments={follower: b"1"})
    second = bench.sync(leader, assignments={follower: b"2"})
    assert len(bench.waiting) == 2
    bench.commit_appends()
    assert bench.is_parked(old)
    assert bench.is_parked(first)
    assert bench.synced(new).assignment == b"1"
    assert bench.synced(second).error_code is ErrorCode.NONE


def test_the_group_has_moved_on_when_the_record_commits() -> None:
    """S-11, PR-02: the record is in the log, its assignment is ignored."""
    bench = Bench()
    leader, follower = bench.completing(2)
    bench.hold = True
    token = bench.sync(leader, assignments={leader: b"L"})
    bench.join(follower, protocols=["range", "x"])
    assert bench.synced(token).error_code is ErrorCode.REBALANCE_IN_PROGRESS
    bench.join(leader)
    bench.commit_appends()
    assert (bench.seen().state, bench.seen().generation_id) == ("CompletingRebalance", 2)
    assert not any(member.assignment for member in bench.seen().members)


@pytest.mark.parametrize("unanswered", [True, False])
def test_the_record_fails(unanswered: bool) -> None:
    """S-12, C-10, T-4: every parked sync gets the mapped error, a rebalance begins, generation kept;
    with the same guard as S-11.
    """
    bench = Bench()
    leader, follower = bench.completing(2)
    parked = bench.sync(follower)
    bench.hold = True
    token = bench.sync(leader, assignments={leader: b"L"})
    if not unanswered:
        bench.join(follower, protocols=["range", "x"])
    bench.commit_appends(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    code = ErrorCode.NOT_COORDINATOR if unanswered else ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.synced(token).error_code is code
    assert bench.synced(parked).error_code is code
    seen = bench.seen()
    assert (seen.state, seen.generation_id) == ("PreparingRebalance", 1)
    assert bench.timers()["join-g"] == ("join", bench.now_ms + 60_000)
    assert bench.heartbeat(leader) is ErrorCode.REBALANCE_IN_PROGRESS


def test_sync_in_stable() -> None:
    """S-13: the stored assignment for everybody, the leader too; what it sends is ignored."""
    bench = Bench()
    leader, follower = bench.stable(2)
    written = len(bench.appends)
    for name in (leader, follower):
        answer = bench.synced(bench.sync(name, assignments={follower: b"other"}))
        assert answer.assignment == name.encode()
    assert len(bench.appends) == written


def test_all_ways_a_parked_sync_can_end() -> None:
    """S-14: here those that no other test shows: unload, and leaving (no answer, L-08)."""
    bench = Bench()
    leader, first, second = bench.completing(3)
    leaving, staying = bench.sync(first), bench.sync(second)
    bench.leave(first)
    assert bench.is_parked(leaving)
    assert bench.synced(staying).error_code is ErrorCode.REBALANCE_IN_PROGRESS
    bench = Bench()
    leader, follower = bench.completing(2)
    token = bench.sync(follower)
    bench.unload()
    assert bench.synced(token) == SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)
    assert leader


def test_versions_of_sync_group() -> None:
    """S-15."""
    api = APIS[ApiKey.SYNC_GROUP]
    assert (api.min_version, api.max_version) == (0, 5)


def test_sync_waits_only_for_the_leader() -> None:
    """S-10: members still missing their sync do not delay persistence."""
    bench = Bench()
    leader, *_ = bench.completing(4)
    count = len(bench.appends)
    bench.sync(leader)
    assert len(bench.appends) == count + 1
    assert isinstance(bench.appends[-1], Append)
    assert len(bench.seen().pending_syncs) == 3
