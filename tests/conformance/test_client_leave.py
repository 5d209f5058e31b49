"""Leaving, closing, unsubscribing (CL)."""

from __future__ import annotations

import pytest

from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
    MetadataRequest,
    OffsetCommitRequest,
)
from groupsim.testing.client import ClientBench, commit_answer
from groupsim_clients.machine import AppRaised, CallbackNote, CommitNote

QUIET = {"enable.auto.commit": False}
CONTINUE = {"on_error": "continue"}


def leaves(bench: ClientBench) -> list[LeaveGroupRequest]:
    """All LeaveGroups so far."""
    return [request for _, request in bench.sent(LeaveGroupRequest)]


def raised(bench: ClientBench) -> list[tuple[str, str]]:
    """(call, exception) that the application saw."""
    return [(note.call, note.exception) for note in bench.notes(AppRaised)]


def test_leave_request() -> None:
    """CL-01, CL-06: one entry with member id and reason and no instance id; sent once, never retried."""
    bench = ClientBench(QUIET)
    bench.auto[LeaveGroupRequest] = None
    bench.stable()
    bench.order("close", timeout_ms=5_000)
    send = bench.take(LeaveGroupRequest)
    assert send.api_version == 5
    (identity,) = send.request.members
    assert (identity.member_id, identity.group_instance_id) == ("m-1", None)
    assert identity.reason == "the consumer is being closed"
    answer = LeaveGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    bench.answer(send, answer)
    assert len(leaves(bench)) == 1
    assert bench.exited == "closed"
    assert any("failed with error" in s for s in bench.sentences())


@pytest.mark.parametrize("why", ["static", "no coordinator", "unjoined", "no member id"])
def test_when_no_leave_is_sent(why: str) -> None:
    """CL-01, CL-03: each of the four conditions keeps the request back; the local reset happens."""
    bench = ClientBench({**QUIET, **({"group.instance.id": "i"} if why == "static" else {})})
    if why == "no member id":
        bench.start()
    else:
        bench.stable()
    if why == "no coordinator":
        bench.auto[FindCoordinatorRequest] = None
        bench.break_connection(0, "coordinator")
    if why == "unjoined":
        bench.coordinator.maybe_leave_group("first")
        bench.coordinator.client.in_flight.clear()
    bench.forget()
    bench.order("close", timeout_ms=100)
    bench.advance(200)
    assert leaves(bench) == []
    assert bench.coordinator.generation == (-1, "", None)
    assert bench.exited == "closed"


def test_pending_member_leaves() -> None:
    """CL-02: an id from MEMBER_ID_REQUIRED is enough, because the state is PREPARING_REBALANCE."""
    bench = ClientBench()
    bench.start()
    from groupsim.protocol.messages import JoinGroupResponse

    answer = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m-9")
    bench.answer(bench.take(JoinGroupRequest), answer)
    bench.order("close")
    assert leaves(bench)[0].members[0].member_id == "m-9"


def test_static_member_beyond_its_poll_interval() -> None:
    """CL-03, CJ-14: no request, membership dropped locally, heartbeats stop; the next poll calls lost and
    joins with an empty member id and the instance id.
    """
    bench = ClientBench(
        {**QUIET, "group.instance.id": "i", "max.poll.interval.ms": 10_000},
        rates={"t": 1_000},
        work={"processing_ms": 30_000},
    )
    bench.stable()
    bench.advance(29_000)
    assert leaves(bench) == []
    assert bench.states()[-1] == "UNJOINED"
    assert bench.sent(HeartbeatRequest)[-1][0] <= 10_000
    bench.advance(2_000)
    assert bench.changes()[-1] == ("lost", (("t", 0),))
    join = bench.sent(JoinGroupRequest)[-1][1]
    assert (join.member_id, join.group_instance_id) == ("", "i")
    assert join.reason == "consumer pro-actively leaving the group"


@pytest.mark.parametrize(
    "answer",
    [
        LeaveGroupResponse(members=(MemberResponse(member_id="a"), MemberResponse(member_id="b"))),
        LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE),
        LeaveGroupResponse(
            members=(MemberResponse(member_id="m-1", error_code=ErrorCode.UNKNOWN_MEMBER_ID),)
        ),
    ],
)
def test_leave_answers_change_nothing(answer: LeaveGroupResponse) -> None:
    """CL-04, CJ-09: two entries or an error are not the application's business, and the coordinator
    stays known.
    """
    bench = ClientBench(QUIET)
    bench.auto[LeaveGroupRequest] = None
    bench.stable()
    bench.order("unsubscribe")
    bench.answer(bench.take(LeaveGroupRequest), answer)
    assert raised(bench) == []
    assert bench.coordinator.coordinator == 0


def test_revoked_before_leaving() -> None:
    """CL-05: with a good generation: revoked with everything, sorted, then nothing is assigned."""
    bench = ClientBench(QUIET)
    bench.stable(("t", 1), ("t", 0))
    bench.order("close")
    assert bench.changes()[-1] == ("revoked", (("t", 0), ("t", 1)))
    assert bench.machine.owned() == ()


def test_lost_before_leaving_without_a_generation() -> None:
    """CL-05: after a reset it is lost; the application was busy when the reset came."""
    bench = ClientBench(QUIET, rates={"t": 1_000}, work={"processing_ms": 10_000})
    bench.auto[HeartbeatRequest] = lambda _r: HeartbeatResponse(
        error_code=ErrorCode.UNKNOWN_MEMBER_ID
    )
    bench.stable()
    bench.advance(5_000)
    bench.order("close")
    bench.advance(6_000)
    assert bench.changes()[-1] == ("lost", (("t", 0),))
    assert leaves(bench) == []


def test_lost_before_leaving_during_a_rebalance() -> None:
    """CL-05: lost even with a valid generation while a rebalance is in progress (cooperative members still
    hold partitions then).
    """
    bench = ClientBench({**QUIET, "partition.assignment.strategy": "cooperative-sticky"})
    bench.stable(protocol="cooperative-sticky")
    bench.auto[HeartbeatRequest] = lambda _r: HeartbeatResponse(
        error_code=ErrorCode.REBALANCE_IN_PROGRESS
    )
    bench.advance(3_000)
    bench.order("close")
    assert bench.changes()[-1] == ("lost", (("t", 0),))
    assert len(leaves(bench)) == 1


def test_close_order() -> None:
    """CL-06: commit, then callback, then LeaveGroup, then waiting for the answers; then the end."""
    bench = ClientBench({"auto.commit.interval.ms": 60_000})
    bench.auto[OffsetCommitRequest] = bench.auto[LeaveGroupRequest] = None
    bench.stable()
    bench.forget()
    bench.order("close")
    commit = bench.take(OffsetCommitRequest)
    assert bench.changes() == []
    bench.answer(commit, commit_answer(commit.request, ErrorCode.NONE))
    assert [note.mode for note in bench.notes(CommitNote)] == ["close"]
    assert [change for change, _ in bench.changes()] == ["revoked"]
    assert bench.exited is None
    send = bench.take(LeaveGroupRequest)
    bench.answer(send, LeaveGroupResponse(members=(MemberResponse(member_id="m-1"),)))
    assert bench.exited == "closed"


def test_close_stops_heartbeats_first() -> None:
    """CL-06: no heartbeat goes out while close waits for the LeaveGroup."""
    bench = ClientBench(QUIET)
    bench.auto[LeaveGroupRequest] = None
    bench.stable()
    bench.order("close")
    bench.advance(10_000)
    assert bench.sent(HeartbeatRequest) == []


@pytest.mark.parametrize(("timeout_ms", "ends_at_ms"), [(2_000, 2_000), (100_000, 30_000)])
def test_close_has_one_timer(timeout_ms: int, ends_at_ms: int) -> None:
    """CL-06: min(given timeout, request.timeout.ms) for everything together."""
    bench = ClientBench({"auto.commit.interval.ms": 60_000})
    bench.auto[OffsetCommitRequest] = bench.auto[LeaveGroupRequest] = None
    bench.stable()
    bench.order("close", timeout_ms=timeout_ms)
    bench.advance(ends_at_ms - 1)
    assert bench.exited is None
    bench.advance(1)
    assert bench.exited == "closed"
    assert len(leaves(bench)) == 1


def test_failed_commit_does_not_stop_close() -> None:
    """CL-06: failures of the last commit are only logged."""
    bench = ClientBench({"auto.commit.interval.ms": 60_000})
    bench.auto[OffsetCommitRequest] = lambda r: commit_answer(
        r, ErrorCode.OFFSET_METADATA_TOO_LARGE
    )
    bench.stable()
    bench.order("close")
    assert any("Synchronous auto-commit of offsets failed" in s for s in bench.sentences())
    assert raised(bench) == []
    assert len(leaves(bench)) == 1


def test_callback_that_throws_in_close_keeps_leave_back() -> None:
    """CL-07: the broker keeps the member until its session times out."""
    bench = ClientBench(QUIET, work={"raises": {"on_revoked": "RuntimeException"}})
    bench.stable()
    bench.order("close")
    assert leaves(bench) == []
    assert raised(bench) == [("close", "KafkaException")]
    assert bench.exited == "closed"


def test_callback_that_throws_in_unsubscribe_keeps_everything() -> None:
    """CL-07: no LeaveGroup, and the subscription stays."""
    bench = ClientBench(QUIET, work={**CONTINUE, "raises": {"on_revoked": "RuntimeException"}})
    bench.stable()
    bench.order("unsubscribe")
    assert leaves(bench) == []
    assert raised(bench) == [("unsubscribe", "KafkaException")]
    assert bench.consumer.subscriptions.subscription == {"t"}


def test_static_member_closes_without_a_request() -> None:
    """CL-08: commit, callback and reset as ever, no LeaveGroup."""
    bench = ClientBench({"group.instance.id": "i", "auto.commit.interval.ms": 60_000})
    bench.stable()
    bench.order("close")
    assert [note.mode for note in bench.notes(CommitNote)] == ["close"]
    assert [change for change, _ in bench.changes()] == ["assigned", "revoked"]
    assert leaves(bench) == []
    assert bench.states()[-1] == "UNJOINED"


def test_internal_leave_group_on_close() -> None:
    """CL-08: with internal.leave.group.on.close=false neither callback nor request nor reset."""
    bench = ClientBench({**QUIET, "internal.leave.group.on.close": False})
    bench.stable()
    bench.order("close")
    assert bench.exited == "closed"
    assert leaves(bench) == []
    assert [change for change, _ in bench.changes()] == ["assigned"]
    assert bench.states()[-1] == "STABLE"


def test_unsubscribe() -> None:
    """CL-09: callback, LeaveGroup, subscription gone; no commit."""
    bench = ClientBench({"auto.commit.interval.ms": 60_000})
    bench.stable()
    bench.order("unsubscribe")
    assert [change for change, _ in bench.changes()] == ["assigned", "revoked"]
    assert leaves(bench)[0].members[0].reason == "the consumer unsubscribed from all topics"
    assert bench.sent(OffsetCommitRequest) == []
    assert bench.consumer.subscriptions.kind == "none"
    bench.advance(20_000)
    assert bench.sent(HeartbeatRequest) == []
    assert len(bench.sent(JoinGroupRequest)) == 1


def test_subscribing_to_nothing_is_unsubscribing() -> None:
    """CL-09: an empty list of topics."""
    bench = ClientBench(QUIET)
    bench.stable()
    bench.order("subscribe", topics=())
    assert len(leaves(bench)) == 1
    assert bench.consumer.subscriptions.kind == "none"


def test_another_subscription_does_nothing_to_the_group_at_once() -> None:
    """CL-10, CP-06: no LeaveGroup; metadata for new topics; the next poll joins."""
    bench = ClientBench(QUIET, topics={"t": 1, "u": 1})
    bench.stable()
    bench.forget()
    bench.order("subscribe", topics=("u",))
    assert leaves(bench) == []
    assert bench.sent(MetadataRequest)[-1][1].topics == ("u",)
    assert bench.sent(JoinGroupRequest)[-1][1].reason == "subscription has changed"


def test_callbacks_in_close_take_time() -> None:
    """CL-06: LeaveGroup waits for a slow callback, which may use up the whole timer."""
    bench = ClientBench(QUIET, work={"on_revoked_ms": 4_000})
    bench.stable()
    bench.order("close", timeout_ms=1_000)
    bench.advance(3_999)
    assert leaves(bench) == []
    bench.advance(1)
    assert [note.phase for note in bench.notes(CallbackNote)][-2:] == ["started", "finished"]
    assert len(leaves(bench)) == 1
