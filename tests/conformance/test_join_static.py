"""A static member that comes back without its id (J-23 to J-30, J-46)."""

from __future__ import annotations

import pytest

from groupsim.coordinator.classic.states import GroupState
from groupsim.protocol.errors import ErrorCode
from groupsim.testing.coordinator import Bench, subscription


def test_replacement_inherits_and_fences() -> None:
    """J-23, J-29: old join fenced; new id with old client id, host and place, leader carried over;
    the session timer is armed with the old timeout, that of the old id stays.
    """
    bench = Bench()
    first = bench.join(instance="i", client_id="app-1", client_host="/10.0.0.1", session_ms=10_000)
    old = bench.group().static_members["i"]
    bench.sleep(100)
    second = bench.join(
        instance="i",
        client_id="app-2",
        client_host="/10.0.0.2",
        session_ms=20_000,
        rebalance_ms=30_000,
        protocols=["range", "sticky"],
    )
    fenced = bench.joined(first)
    assert (fenced.error_code, fenced.member_id) == (ErrorCode.FENCED_INSTANCE_ID, old)
    assert (fenced.generation_id, fenced.leader, fenced.protocol_name) == (-1, "", None)
    seen = bench.seen()
    (member,) = seen.members
    assert (member.client_id, member.client_host) == ("app-1", "/10.0.0.1")
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (20_000, 30_000)
    assert [protocol.name for protocol in member.protocols] == ["range", "sticky"]
    assert not member.is_new
    assert (seen.leader_id, dict(seen.static_members)) == (
        member.member_id,
        {"i": member.member_id},
    )
    assert seen.parked_joins == 1
    assert bench.timers()[f"heartbeat-g-{member.member_id}"] == ("session", 10_100)
    assert bench.timers()[f"heartbeat-g-{old}"] == ("new-member", 300_000)
    bench.sleep(3000)
    assert bench.joined(second).error_code is ErrorCode.NONE


def test_replacement_fences_a_parked_sync() -> None:
    """J-23, J-28, S-14: the sync of the old id ends in FENCED_INSTANCE_ID, others in
    REBALANCE_IN_PROGRESS.
    """
    bench = Bench()
    leader, follower, other = bench.completing_static("a", "b", "c")
    assert bench.group().leader_id == leader
    fenced, parked = bench.sync(follower, instance="b"), bench.sync(other, instance="c")
    bench.join(instance="b")
    assert bench.synced(fenced).error_code is ErrorCode.FENCED_INSTANCE_ID
    assert bench.synced(fenced).assignment == b""
    assert bench.synced(parked).error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.seen().state == "PreparingRebalance"


@pytest.mark.parametrize("leads", [True, False])
def test_restart_in_stable_from_version_9_on(leads: bool) -> None:
    """J-24, J-47, C-09, S-13: no rebalance, a record, the answer after its commit; a leader gets
    the members and skipAssignment, and syncing gives the old assignment.
    """
    bench = Bench()
    ids = dict(zip("ab", bench.stable_static("a", "b"), strict=True))
    leader = bench.group().leader_id
    instance = next(name for name, member in ids.items() if (member == leader) is leads)
    old, others = ids[instance], [ids[name] for name in ids if name != instance]
    bench.hold = True
    token = bench.join(instance=instance, protocols=["range", "sticky"], session_ms=7000)
    assert bench.is_parked(token)
    bench.commit_appends()
    new = bench.group().static_members[instance]
    answer = bench.joined(token)
    assert answer.error_code is ErrorCode.NONE
    assert (answer.member_id, answer.generation_id) == (new, 1)
    assert answer.leader == (new if leads else others[0])
    assert answer.skip_assignment is leads
    named = {entry.member_id for entry in answer.members}
    assert named == ({new, *others} if leads else set())
    seen = bench.seen()
    assert (seen.state, seen.generation_id) == ("Stable", 1)
    record = bench.group_records()[-1]
    assert record is not None
    assert {entry.member_id for entry in record.members} == {new, *others}
    synced = bench.synced(bench.sync(new, instance=instance))
    assert synced.assignment == old.encode()
    member = next(entry for entry in seen.members if entry.member_id == new)
    assert member.session_timeout_ms == 7000


def test_restart_of_the_leader_below_version_9() -> None:
    """J-25, J-47: told the dead id as leader, no members, so that it computes nothing."""
    bench = Bench()
    old, _ = bench.stable_static("a", "b")
    if bench.group().leader_id != old:
        old = bench.group().leader_id or ""
    instance = bench.group().members[old].group_instance_id
    answer = bench.joined(bench.join(instance=instance, version=8))
    assert (answer.leader, answer.members, answer.skip_assignment) == (old, (), False)
    assert bench.group().leader_id == answer.member_id != old


def test_restarting_five_times() -> None:
    """J-24, J-16: five records, five ids, one generation."""
    bench = Bench()
    bench.stable_static("a")
    records = len(bench.group_records())
    ids = [bench.joined(bench.join(instance="a")).member_id for _ in range(5)]
    assert len(set(ids)) == 5
    assert len(bench.group_records()) == records + 5
    assert bench.seen().generation_id == 1


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_restart_whose_record_fails(error: ErrorCode, seen: ErrorCode) -> None:
    """J-26, C-10: protocols, timeouts and the old id are back, T-1 is armed for it again."""
    bench = Bench()
    (old,) = bench.stable_static("a", session_ms=10_000, protocols=["range", "roundrobin"])
    bench.fail_with = error
    bench.sleep(500)
    token = bench.join(instance="a", session_ms=20_000, protocols=["range"])
    answer = bench.joined(token)
    assert (answer.error_code, answer.member_id, answer.leader) == (seen, "", old)
    assert (answer.generation_id, answer.protocol_type) == (1, "consumer")
    assert (answer.members, answer.skip_assignment) == ((), False)
    (member,) = bench.seen().members
    assert (member.member_id, member.session_timeout_ms) == (old, 10_000)
    assert len(member.protocols) == 2
    assert bench.timers()[f"heartbeat-g-{old}"] == ("session", bench.now_ms + 10_000)
    assert bench.seen().parked_joins == 0
    assert bench.heartbeat(old, instance="a") is ErrorCode.NONE


def test_restart_that_changes_the_vote() -> None:
    """J-27: a rebalance; metadata alone would not matter."""
    bench = Bench()
    bench.stable_static("a", protocols=["range", "roundrobin"])
    records = len(bench.group_records())
    same = bench.join(instance="a", protocols=[("range", subscription("other")), "roundrobin"])
    assert bench.joined(same).generation_id == 1
    changed = bench.join(instance="a", protocols=["roundrobin"])
    answer = bench.joined(changed)
    assert (answer.generation_id, answer.protocol_name) == (2, "roundrobin")
    assert len(bench.group_records()) == records + 1  # only that of the first restart


def test_restart_in_completing() -> None:
    """J-28: always a rebalance; a sole member is answered at once."""
    bench = Bench()
    bench.completing_static("a")
    answer = bench.joined(bench.join(instance="a"))
    assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, 2)


def test_restart_in_preparing_completes_early() -> None:
    """J-29, PR-08: when everybody else is parked already, though not in an initial rebalance."""
    bench = Bench()
    bench.stable_static("a", "b")
    leader = bench.group().leader_id or ""
    bench.join(leader, instance=bench.group().members[leader].group_instance_id)
    assert bench.seen().state == "PreparingRebalance"
    absent = next(name for name in bench.group().members if name != leader)
    instance = bench.group().members[absent].group_instance_id
    answer = bench.joined(bench.join(instance=instance))
    assert answer.generation_id == 2


@pytest.mark.parametrize("state", [GroupState.EMPTY, GroupState.DEAD])
def test_restart_in_a_state_that_cannot_be(state: GroupState) -> None:
    """J-30, J-48: UNKNOWN_SERVER_ERROR without a member id."""
    bench = Bench()
    bench.stable_static("a")
    bench.group().state = state
    if state is GroupState.DEAD:  # a DEAD group is refused before (J-14)
        assert (
            bench.joined(bench.join(instance="a")).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        )
        return
    answer = bench.joined(bench.join(instance="a"))
    assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_SERVER_ERROR, "")


def test_replacing_an_id_that_is_gone_is_an_internal_error() -> None:
    """J-46, J-26: when both appends fail, the first revert finds its id gone and is swallowed."""
    bench = Bench()
    (old,) = bench.stable_static("a")
    bench.hold = True
    first = bench.join(instance="a")
    second = bench.join(instance="a")
    assert bench.joined(first).error_code is ErrorCode.FENCED_INSTANCE_ID
    bench.commit_appends(ErrorCode.KAFKA_STORAGE_ERROR)
    assert bench.joined(second).error_code is ErrorCode.NOT_COORDINATOR
    assert old not in bench.group().members


def test_two_joins_of_one_instance_in_stable() -> None:
    """J-46: the first is fenced at once; its own commit finds nobody to answer."""
    bench = Bench()
    bench.stable_static("a")
    bench.hold = True
    first, second = bench.join(instance="a"), bench.join(instance="a")
    assert bench.joined(first).error_code is ErrorCode.FENCED_INSTANCE_ID
    bench.commit_appends()
    assert bench.joined(second).error_code is ErrorCode.NONE
    stale = bench.joined(first).member_id
    assert stale not in bench.group().members


def test_calls_of_the_replaced_id_are_fenced() -> None:
    """J-46, J-35: with the instance id FENCED_INSTANCE_ID, without it UNKNOWN_MEMBER_ID."""
    bench = Bench()
    (old,) = bench.stable_static("a")
    bench.join(instance="a")
    assert bench.joined(bench.join(old, instance="a")).error_code is ErrorCode.FENCED_INSTANCE_ID
    assert bench.synced(bench.sync(old, instance="a")).error_code is ErrorCode.FENCED_INSTANCE_ID
    assert bench.heartbeat(old, instance="a") is ErrorCode.FENCED_INSTANCE_ID
    codes = bench.commit(member_id=old, instance="a", generation=1)
    assert codes == [ErrorCode.FENCED_INSTANCE_ID]
    assert bench.joined(bench.join(old)).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.heartbeat(old) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_overtakes_the_append() -> None:
    """J-24, J-25, PR-17: parked for the append, the member counts as joined; a follower's commit
    still answers it, with the old generation, and it has to join again.
    """
    bench = Bench()
    bench.stable_static("a", "b")
    leader = bench.group().leader_id or ""
    follower = next(name for name in bench.group().members if name != leader)
    instance = bench.group().members[follower].group_instance_id
    bench.hold = True
    token = bench.join(instance=instance)
    bench.join(leader, instance=bench.group().members[leader].group_instance_id)
    assert bench.joined(token).generation_id == 2  # everybody had joined
    bench.commit_appends()
    assert bench.seen().state == "CompletingRebalance"


def test_a_rebalance_that_waits_keeps_the_leader_parked() -> None:
    """J-24: members cannot be listed while PREPARING, so the leader's join stays parked."""
    bench = Bench()
    bench.stable_static("a", "b", "c")
    leader = bench.group().leader_id or ""
    bench.hold = True
    token = bench.join(instance=bench.group().members[leader].group_instance_id)
    follower = next(name for name in bench.group().members if name != bench.group().leader_id)
    bench.join(
        follower,
        instance=bench.group().members[follower].group_instance_id,
        protocols=["range", "sticky"],
    )
    assert bench.seen().state == "PreparingRebalance"
    bench.commit_appends()
    assert bench.is_parked(token)
    bench.sleep(60_000)
    assert bench.joined(token).generation_id == 2


def test_a_follower_is_answered_in_the_middle_of_a_rebalance() -> None:
    """J-24: its commit answers it with the old generation and un-parks it."""
    bench = Bench()
    bench.stable_static("a", "b", "c")
    leader = bench.group().leader_id or ""
    first, second = (name for name in bench.group().members if name != leader)
    bench.hold = True
    token = bench.join(instance=bench.group().members[first].group_instance_id)
    bench.join(
        second,
        instance=bench.group().members[second].group_instance_id,
        protocols=["range", "sticky"],
    )
    assert bench.group().parked_joins == 2
    bench.commit_appends()
    assert bench.joined(token).generation_id == 1
    assert bench.group().parked_joins == 1


def test_replacing_somebody_who_is_no_member() -> None:
    """J-23: an internal error, nothing is swapped."""
    from groupsim.coordinator.failures import IllegalStateError

    bench = Bench()
    bench.stable_static("a")
    with pytest.raises(IllegalStateError, match="non-existing"):
        bench.group().replace_static("a", "nobody", "new")
