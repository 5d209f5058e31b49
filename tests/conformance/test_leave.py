"""LeaveGroup (L-01 to L-13)."""

from __future__ import annotations

import pytest

from groupsim.coordinator.classic.states import GroupState
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    APIS,
    ApiKey,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from groupsim.testing.coordinator import Bench
from tests.conformance.world import Refusing, static

NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID
FENCED = ErrorCode.FENCED_INSTANCE_ID


def test_gate() -> None:
    """L-01: authorization is a top-level error."""
    bench = Bench(authorizer=Refusing(("READ", "GROUP", "g")))
    answer = bench.leave("m")
    assert answer == LeaveGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)


def test_component() -> None:
    """L-02, C-03, C-05, C-07: top level."""
    bench = Bench(load=False)
    assert bench.leave("m").error_code is ErrorCode.NOT_COORDINATOR
    assert bench.leave("m", group="").error_code is ErrorCode.INVALID_GROUP_ID
    bench.carry_out(bench.coordinator.stop(0))
    assert bench.leave("m").error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_missing_group() -> None:
    """L-03: each member is unknown, ids echoed, nothing at the top."""
    answer = Bench().leave("m", static("i"))
    assert answer.error_code is NONE
    assert [(entry.member_id, entry.group_instance_id) for entry in answer.members] == [
        ("m", None),
        ("", "i"),
    ]
    assert {entry.error_code for entry in answer.members} == {UNKNOWN}


def test_dead_group() -> None:
    """L-04: top level, no results."""
    bench = Bench()
    (member,) = bench.stable(1)
    bench.group().transition_to(GroupState.DEAD, "forced")
    expected = LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert bench.leave(member) == expected


def test_by_instance_id_alone() -> None:
    """L-05: the member id in the answer stays "", an unknown instance is an unknown member."""
    bench = Bench()
    bench.stable_static("a", "b", "c")
    answer = bench.leave(static("a"), static("nobody"), static(None))
    assert [entry.error_code for entry in answer.members] == [NONE, UNKNOWN, UNKNOWN]
    assert (answer.members[0].member_id, answer.members[0].group_instance_id) == ("", "a")
    assert set(bench.group().static_members) == {"b", "c"}


def test_pending_member_leaves() -> None:
    """L-06, T-3: forgotten with its timer, in EMPTY too; the instance id is ignored."""
    bench = Bench()
    pending = bench.new_id()
    answer = bench.leave(static("whatever", pending))
    assert answer.members[0].error_code is NONE
    assert answer.members[0].group_instance_id == "whatever"
    assert bench.seen().pending_joins == ()
    assert bench.timers() == {}
    assert bench.seen().state == "Empty"


def test_validation_is_by_element() -> None:
    """L-07, J-35: the rest of the batch goes on; the second of a pair is unknown."""
    bench = Bench()
    a, b, c = bench.stable_static("a", "b", "c")
    pending = bench.new_id()
    codes = bench.leave_codes(
        static("b", a), "nobody", static("x", a), a, a, static("b", b), pending
    )
    assert codes == [FENCED, UNKNOWN, UNKNOWN, NONE, UNKNOWN, NONE, NONE]
    assert list(bench.group().members) == [c]


def test_removal() -> None:
    """L-08, J-19: the timer goes, a parked join is answered, a parked sync is not; the instance id
    is free for a new member.
    """
    bench = Bench()
    leader, follower = bench.stable(2)
    token = bench.join(follower, protocols=["range", "x"])
    bench.leave(follower)
    answer = bench.joined(token)
    assert (answer.error_code, answer.member_id) == (UNKNOWN, "")
    assert f"heartbeat-g-{follower}" not in bench.timers()
    assert bench.seen().leader_id == leader
    bench = Bench()
    bench.stable_static("a")
    bench.leave(static("a"))
    assert bench.is_parked(bench.join(instance="a"))
    assert bench.seen().state == "PreparingRebalance"


def test_reasons_are_logged() -> None:
    """L-08, L-13: "not provided" only when there is none."""
    bench = Bench()
    first, second, third = bench.stable(3)
    bench.leave(
        MemberIdentity(member_id=first, reason="tired"),
        MemberIdentity(member_id=second),
        MemberIdentity(member_id=third, reason=""),
    )
    left = [line for line in bench.sentences() if "has left group" in line]
    assert [line.rsplit("client reason: ")[1] for line in left] == ["tired", "not provided", ""]


def test_one_follow_up_for_the_batch() -> None:
    """L-09, PR-15: two leave, the generation goes up once."""
    bench = Bench()
    leader, first, second = bench.stable(3)
    bench.leave(first, second)
    assert bench.joined(bench.join(leader)).generation_id == 2
    preparing = [line for line in bench.sentences() if line.startswith("Preparing to rebalance")]
    assert f"explicit `LeaveGroup` request for ({first}, {second}) members." in preparing[-1]


def test_nobody_left_successfully() -> None:
    """L-10: nothing happens to the group."""
    bench = Bench()
    (member,) = bench.stable(1)
    before = bench.seen()
    assert bench.leave_codes("nobody", static("nobody")) == [UNKNOWN, UNKNOWN]
    assert bench.seen() == before
    assert bench.leave_codes() == []
    assert member


@pytest.mark.parametrize("synced", [True, False])
def test_follow_up_in_stable_and_completing(synced: bool) -> None:
    """L-11, PR-19: the last one empties the group at once, generation up, with a record."""
    bench = Bench()
    (member,) = bench.stable(1) if synced else bench.completing(1)
    bench.leave(member)
    assert (bench.seen().state, bench.seen().generation_id) == ("Empty", 2)
    record = bench.group_records()[-1]
    assert record is not None
    assert (record.generation, record.members) == (2, ())


def test_a_pending_leaver_rebalances_a_stable_group() -> None:
    """L-11, PR-22: its expiry would not."""
    bench = Bench()
    (member,) = bench.stable(1)
    pending = bench.new_id()
    bench.leave(pending)
    assert bench.seen().state == "PreparingRebalance"
    assert bench.heartbeat(member) is ErrorCode.REBALANCE_IN_PROGRESS


def test_follow_up_in_preparing() -> None:
    """L-11, PR-08: completes early, but not an initial rebalance, which waits for T-5."""
    bench = Bench()
    leader, follower = bench.stable(2)
    pending = bench.new_id()
    tokens = [bench.join(follower, protocols=["range", "x"]), bench.join(leader)]
    bench.leave(pending)
    assert [bench.joined(token).generation_id for token in tokens] == [2, 2]
    bench = Bench()
    bench.join(version=3)
    bench.leave(next(iter(bench.group().members)))
    assert bench.seen().state == "PreparingRebalance"
    bench.sleep(3000)
    assert (bench.seen().state, bench.seen().generation_id) == ("Empty", 1)


def test_answer_and_persistence() -> None:
    """L-12, C-10, C-12: it waits for the EMPTY record, and fails with it at the top, although the
    member is gone; without a record it waits for earlier writes.
    """
    bench = Bench()
    (member,) = bench.stable(1)
    bench.hold = True
    request = LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id=member),))
    token = bench.send(request, 5)
    assert bench.is_parked(token)
    later = bench.send(request, 5)
    assert bench.is_parked(later)
    bench.commit_appends(ErrorCode.NOT_ENOUGH_REPLICAS)
    expected = LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert bench.answer(token, LeaveGroupResponse) == expected
    assert bench.answer(later, LeaveGroupResponse) == expected
    assert bench.seen().members == ()


def test_versions_of_leave_group() -> None:
    """L-13, L-01: below 3 one member id, and its error at the top."""
    api = APIS[ApiKey.LEAVE_GROUP]
    assert (api.min_version, api.max_version) == (0, 5)
    bench = Bench()
    (member,) = bench.stable(1)
    assert bench.leave("nobody", version=2) == LeaveGroupResponse(error_code=UNKNOWN)
    assert bench.leave(member, version=0) == LeaveGroupResponse()
    assert Bench().leave("m", version=1) == LeaveGroupResponse(error_code=UNKNOWN)
    assert bench.leave("nobody", version=3).members[0].error_code is UNKNOWN
