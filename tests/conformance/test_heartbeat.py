"""Heartbeat (H-01 to H-10)."""

from __future__ import annotations

import pytest

from groupsim.coordinator import Switches
from groupsim.coordinator.classic.states import GroupState
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import APIS, ApiKey, HeartbeatRequest, HeartbeatResponse
from groupsim.testing.coordinator import Bench
from tests.conformance.world import Refusing


def test_gate() -> None:
    """H-01: an old metadata version, then authorization."""
    bench = Bench(authorizer=Refusing(("READ", "GROUP", "g")))
    assert bench.heartbeat("m", generation=1) is ErrorCode.GROUP_AUTHORIZATION_FAILED
    old = Bench(switches=Switches(static_membership_gate=True))
    code = old.heartbeat("m", instance="i", generation=1)
    assert code is ErrorCode.UNSUPPORTED_VERSION


def test_allowed_by_the_authorizer() -> None:
    """H-01, H-08: the long way ends like the short one."""
    bench = Bench(authorizer=Refusing())
    (member,) = bench.stable(1)
    bench.sleep(100)
    assert bench.heartbeat(member) is ErrorCode.NONE
    assert bench.timers()[f"heartbeat-g-{member}"] == ("session", bench.now_ms + 10_000)


def test_component() -> None:
    """H-02, C-03."""
    bench = Bench()
    (member,) = bench.stable(1)
    assert bench.heartbeat("m", group="", generation=1) is ErrorCode.INVALID_GROUP_ID
    bench.coordinator.started = False
    assert bench.heartbeat(member, generation=1) is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_while_loading() -> None:
    """H-03, C-06: NONE without a look at anything; elsewhere NOT_COORDINATOR."""
    bench = Bench(load=False)
    assert bench.heartbeat("m", generation=1) is ErrorCode.NOT_COORDINATOR
    bench.carry_out(bench.coordinator.begin_load(0, 1, 0))
    assert bench.heartbeat("m", generation=1) is ErrorCode.NONE


def test_missing_group() -> None:
    """H-04."""
    assert Bench().heartbeat("m", generation=1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_dead_group() -> None:
    """H-05: before the member is looked at."""
    bench = Bench()
    bench.stable(1)
    bench.group().transition_to(GroupState.DEAD, "forced")
    assert bench.heartbeat("nobody") is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_validation() -> None:
    """H-06, J-35: member, then generation; no timer is touched by an error."""
    bench = Bench()
    a, b = bench.stable_static("a", "b")
    pending = bench.new_id()
    bench.sleep(100)
    timers = bench.timers()
    assert bench.heartbeat("nobody", generation=99) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.heartbeat(pending) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.heartbeat(a, instance="b", generation=99) is ErrorCode.FENCED_INSTANCE_ID
    assert bench.heartbeat(a, instance="c") is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.heartbeat(a, generation=2) is ErrorCode.ILLEGAL_GENERATION
    assert bench.timers() == timers
    assert bench.heartbeat(a) is ErrorCode.NONE  # the instance id may be left out
    bench.group().state = GroupState.EMPTY
    assert bench.heartbeat(b) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("instance", ["a", None])
def test_in_preparing(instance: str | None) -> None:
    """H-07: REBALANCE_IN_PROGRESS and a fresh session, parked or not."""
    bench = Bench()
    ids = bench.stable_static("a", "b")
    bench.join(ids[1], instance="b", protocols=["range", "x"])
    if bench.group().leader_id == ids[1]:
        assert bench.seen().state == "PreparingRebalance"
    bench.sleep(100)
    for member in ids:
        chosen = instance if member == ids[0] else None
        assert bench.heartbeat(member, instance=chosen) is ErrorCode.REBALANCE_IN_PROGRESS
        assert bench.timers()[f"heartbeat-g-{member}"] == ("session", bench.now_ms + 10_000)


def test_in_completing_and_stable() -> None:
    """H-08: NONE and a fresh session; the pending-sync timer is not affected."""
    bench = Bench()
    (member,) = bench.completing(1)
    sync_timer = bench.timers()["sync-g"]
    for _ in range(2):
        bench.sleep(100)
        assert bench.heartbeat(member) is ErrorCode.NONE
        assert bench.timers()[f"heartbeat-g-{member}"] == ("session", bench.now_ms + 10_000)
        assert bench.timers().get("sync-g") in (sync_timer, None)
        bench.assign()


def test_a_session_that_is_not_armed_is_armed() -> None:
    """H-08, T-1: also when its timer fired while a join was parked."""
    bench = Bench()
    leader, follower = bench.completing(2)
    bench.sync(follower)
    bench.keep_alive([leader], 11_000)
    assert f"heartbeat-g-{follower}" not in bench.timers()
    assert bench.heartbeat(follower) is ErrorCode.NONE
    assert bench.timers()[f"heartbeat-g-{follower}"] == ("session", bench.now_ms + 10_000)


def test_the_answer_waits_for_earlier_writes() -> None:
    """H-09, C-12, T-8: released with the commit, refused after five seconds; the session was
    refreshed anyway. An answer that is an exception waits for nothing.
    """
    bench = Bench()
    (member,) = bench.stable(1, session_ms=20_000)
    bench.hold = True
    bench.send_commit(group="other")
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id=member)
    first = bench.send(request, 4)
    assert bench.is_parked(first)
    assert bench.heartbeat("nobody") is ErrorCode.UNKNOWN_MEMBER_ID
    bench.commit_appends()
    assert bench.answer(first, HeartbeatResponse).error_code is ErrorCode.NONE
    bench.send_commit(group="other")
    bench.sleep(100)
    second = bench.send(request, 4)
    assert bench.timers()[f"heartbeat-g-{member}"] == ("session", bench.now_ms + 20_000)
    bench.sleep(5000)
    assert bench.answer(second, HeartbeatResponse).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_versions_of_heartbeat() -> None:
    """H-10."""
    api = APIS[ApiKey.HEARTBEAT]
    assert (api.min_version, api.max_version) == (0, 4)


def test_the_same_request_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """H-08, H-06, T-1: a client may send the same value each time; the shortcut for that ends with
    the first thing that changes.
    """
    monkeypatch.setattr("groupsim.coordinator.coordinator._SETTLED", 2, raising=False)
    bench = Bench()
    members = bench.stable(3, session_ms=10_000)
    requests = [HeartbeatRequest(group_id="g", generation_id=1, member_id=name) for name in members]

    def beat(request: HeartbeatRequest) -> ErrorCode:
        return bench.answer(bench.send(request, 4), HeartbeatResponse).error_code

    for _ in range(4):
        bench.sleep(6000)
        assert [beat(request) for request in requests] == [ErrorCode.NONE] * 3
        assert [beat(request) for request in requests] == [ErrorCode.NONE] * 3
        deadlines = {bench.timers()[f"heartbeat-g-{name}"] for name in members}
        assert deadlines == {("session", bench.now_ms + 10_000)}
    bench.leave(members[1])
    assert [beat(request) for request in requests] == [
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
    ]
    stable = Bench()
    first, second = stable.stable(2, session_ms=10_000)
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id=second)
    assert stable.answer(stable.send(request, 4), HeartbeatResponse).error_code is ErrorCode.NONE
    stable.sleep(9000)
    assert stable.answer(stable.send(request, 4), HeartbeatResponse).error_code is ErrorCode.NONE
    stable.sleep(1000)  # the other one's session passes
    assert first not in stable.group().members
    code = stable.answer(stable.send(request, 4), HeartbeatResponse).error_code
    assert code is ErrorCode.REBALANCE_IN_PROGRESS
    stable.sleep(60_000)
    assert stable.seen().state == "Empty"
    code = stable.answer(stable.send(request, 4), HeartbeatResponse).error_code
    assert code is ErrorCode.UNKNOWN_MEMBER_ID
