"""Heartbeats: timers, turns of the thread, and what answers do (CH)."""

from __future__ import annotations

import pytest

from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from groupsim.testing.client import ClientBench
from groupsim_clients.errors import ConfigError
from groupsim_clients.machine import AppRaised, PollNote

QUIET = {"enable.auto.commit": False}
CONTINUE = {"on_error": "continue"}


def answering(code: ErrorCode, **options: object) -> ClientBench:
    """A stable member whose heartbeats are all answered with ``code``."""
    bench = ClientBench({**QUIET, **options}, work=CONTINUE)
    bench.auto[HeartbeatRequest] = lambda _request: HeartbeatResponse(error_code=code)
    bench.stable()
    return bench


def beats(bench: ClientBench) -> list[int]:
    """When heartbeats left."""
    return [at for at, _ in bench.sent(HeartbeatRequest)]


def raised(bench: ClientBench) -> list[str]:
    """The exceptions that the application saw."""
    return [note.exception for note in bench.notes(AppRaised)]


def test_interval_must_be_below_session_timeout() -> None:
    """CH-01, K-01: construction fails otherwise."""
    with pytest.raises(ConfigError, match=r"heartbeat\.interval\.ms"):
        ClientBench({"heartbeat.interval.ms": 10_000, "session.timeout.ms": 10_000})


def test_timers_expire_at_their_deadline() -> None:
    """CH-01, CH-02: now ≥ deadline; a heartbeat leaves exactly an interval after the last one was sent,
    however late its answer comes.
    """
    bench = ClientBench({**QUIET, "heartbeat.interval.ms": 1_500})
    bench.auto[HeartbeatRequest] = None
    bench.stable()
    bench.advance(1_499)
    assert beats(bench) == []
    bench.advance(1)
    bench.advance(700)
    bench.answer(bench.take(HeartbeatRequest), HeartbeatResponse())
    bench.advance(800)
    assert beats(bench) == [1_500, 3_000]


def test_success_restarts_the_session() -> None:
    """CH-02, CH-10: a member whose heartbeats are answered never sees its session expire."""
    bench = answering(ErrorCode.NONE)
    bench.advance(300_000)
    assert len(beats(bench)) == 100
    assert len(bench.sent(FindCoordinatorRequest)) == 1
    assert bench.coordinator.heartbeat.session_deadline_ms == 345_000


def test_failures_back_off_exponentially() -> None:
    """CH-03, CH-19: 100, 200, 400, 800, 1000 ms after each failure, then 1000; the session timer runs on;
    a success sets the counter back.
    """
    bench = answering(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.advance(6_600)
    assert beats(bench) == [3_000, 3_100, 3_300, 3_700, 4_500, 5_500, 6_500]
    assert bench.coordinator.heartbeat.session_deadline_ms == 45_000
    bench.auto[HeartbeatRequest] = lambda _request: HeartbeatResponse()
    bench.advance(900)
    assert bench.coordinator.heartbeat.attempts == 0


def test_heartbeats_may_overlap() -> None:
    """CH-04: an unanswered heartbeat does not hold the next one back."""
    bench = ClientBench(QUIET)
    bench.auto[HeartbeatRequest] = None
    bench.stable()
    bench.advance(9_000)
    assert len(bench.opened(HeartbeatRequest)) == 3


def test_each_poll_restarts_the_poll_timer() -> None:
    """CH-05, CP-01: processing up to just below the limit, again and again, is fine; even while the
    coordinator is unknown.
    """
    bench = ClientBench(
        {**QUIET, "max.poll.interval.ms": 10_000}, rates={"t": 10}, work={"processing_ms": 9_900}
    )
    bench.stable()
    bench.advance(60_000)
    assert bench.sent(LeaveGroupRequest) == []
    assert len(bench.sent(JoinGroupRequest)) == 1


def test_turns_come_every_retry_backoff_while_the_application_is_away() -> None:
    """CH-05: without polls the thread looks every retry.backoff.ms, from its last turn on: with 700 ms
    the heartbeat that is due at 3000 leaves at 3500, five turns after the first one at 0.
    """
    bench = ClientBench(
        {**QUIET, "retry.backoff.ms": 700}, rates={"t": 1_000}, work={"processing_ms": 100_000}
    )
    bench.stable()
    bench.advance(7_500)
    assert beats(bench) == [3_500, 7_000]


def test_inside_poll_heartbeats_leave_when_due() -> None:
    """CH-05: a polling application wakes for the due heartbeat and notifies the thread."""
    bench = ClientBench({**QUIET, "retry.backoff.ms": 700})
    bench.stable()
    bench.advance(7_000)
    assert beats(bench) == [3_000, 6_000]


def test_session_expiry_costs_the_coordinator_not_the_membership() -> None:
    """CH-06: disconnect and rediscovery; generation and state stay, the next heartbeat tells the truth."""
    bench = ClientBench({**QUIET, "session.timeout.ms": 10_000, "request.timeout.ms": 60_000})
    bench.auto[HeartbeatRequest] = None
    bench.stable()
    bench.advance(9_999)
    assert len(bench.sent(FindCoordinatorRequest)) == 1
    bench.coordinator_node = 1
    bench.advance(2_000)
    assert any("session timed out without receiving" in s for s in bench.sentences())
    assert len(bench.sent(FindCoordinatorRequest)) == 2
    assert bench.states()[-1] == "STABLE"
    assert bench.machine.owned() == (("t", 0),)
    assert bench.take(HeartbeatRequest).node_id == 1


def test_nothing_is_enforced_while_a_join_is_out() -> None:
    """CH-06, CH-07 (1.4): 65 s in a JoinGroup with a poll limit of 60 s and a session of 10 s: no
    heartbeat, no lookup, no leaving.
    """
    bench = ClientBench(
        {**QUIET, "session.timeout.ms": 10_000, "max.poll.interval.ms": 60_000},
        work={"poll_timeout_ms": 500},
    )
    bench.stable()
    bench.auto[HeartbeatRequest] = lambda _r: HeartbeatResponse(
        error_code=ErrorCode.REBALANCE_IN_PROGRESS
    )
    bench.advance(3_000)
    bench.forget()
    bench.advance(64_900)
    assert bench.sent(HeartbeatRequest) == []
    assert bench.sent(LeaveGroupRequest) == []
    assert bench.sent(FindCoordinatorRequest) == []


def test_poll_interval_expiry_leaves_without_a_callback() -> None:
    """CH-07, CL-03, CC-22: the thread leaves; lost is called by the application's next poll."""
    bench = ClientBench(
        {**QUIET, "max.poll.interval.ms": 10_000},
        rates={"t": 1_000},
        work={"processing_ms": 25_000},
    )
    bench.stable()
    bench.advance(20_000)
    (at_ms, leave), *rest = bench.sent(LeaveGroupRequest)
    assert rest == []
    assert at_ms == 10_001 + 99  # the poll returned at 1; the turns are at whole hundreds
    assert leave.members[0].reason == "consumer poll timeout has expired."
    assert bench.notes(PollNote)[-1].event == "poll_interval_exceeded"
    assert [change for change, _ in bench.changes()] == ["assigned"]
    assert beats(bench)[-1] < 10_100
    bench.advance(10_000)
    assert [change for change, _ in bench.changes()] == ["assigned", "lost"]
    assert bench.sent(JoinGroupRequest)[-1][1].member_id == ""


def test_an_unknown_coordinator_hides_the_poll_timeout() -> None:
    """CH-07 (1.4): step 5 of a turn comes before step 7."""
    bench = ClientBench(
        {**QUIET, "max.poll.interval.ms": 10_000},
        rates={"t": 1_000},
        work={"processing_ms": 60_000},
    )
    bench.stable()
    bench.advance(5_000)
    bench.auto[FindCoordinatorRequest] = None
    bench.break_connection(0, "coordinator")
    bench.advance(30_000)
    assert bench.sent(LeaveGroupRequest) == []
    assert bench.states()[-1] == "STABLE"
    lookups = [at for at, _ in bench.sent(FindCoordinatorRequest)][1:]
    assert lookups[1] - lookups[0] == 200  # every other turn looks up


def test_fields_and_reuse() -> None:
    """CH-08: group, generation, member, instance id; the same value as long as they stay."""
    bench = ClientBench({**QUIET, "group.instance.id": "i"})
    bench.stable()
    bench.advance(6_000)
    first, second = (request for _, request in bench.sent(HeartbeatRequest))
    assert first == HeartbeatRequest(
        group_id="g", generation_id=1, member_id="m-1", group_instance_id="i"
    )
    assert first is second


@pytest.mark.parametrize("code", [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR])
def test_not_the_coordinator(code: ErrorCode) -> None:
    """CH-11: coordinator unknown, heartbeat counted as failed, membership kept."""
    bench = answering(code)
    bench.coordinator_node = 2
    bench.advance(3_000)
    bench.auto[HeartbeatRequest] = None
    bench.advance(1_000)
    assert bench.take(HeartbeatRequest).node_id == 2
    assert bench.states()[-1] == "STABLE"
    assert bench.coordinator.heartbeat.attempts == 1


def test_rebalance_in_progress_while_stable() -> None:
    """CH-12: counts as success; the member joins at once, with its id and generation untouched."""
    bench = answering(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.advance(3_000)
    at_ms, join = bench.sent(JoinGroupRequest)[-1]
    assert (at_ms, join.member_id, join.reason) == (3_000, "m-1", "group is already rebalancing")
    assert bench.coordinator.heartbeat.session_deadline_ms == 48_000
    assert bench.coordinator.generation.generation_id == 1


def test_heartbeats_go_on_until_the_join_starts() -> None:
    """CH-12: the application is busy; the thread keeps the member alive meanwhile."""
    bench = ClientBench(QUIET, rates={"t": 1_000}, work={"processing_ms": 20_000})
    bench.auto[HeartbeatRequest] = lambda _r: HeartbeatResponse(
        error_code=ErrorCode.REBALANCE_IN_PROGRESS
    )
    bench.stable()
    bench.advance(19_000)
    assert len(beats(bench)) == 6
    assert len(bench.sent(JoinGroupRequest)) == 1
    bench.advance(2_000)
    assert len(bench.sent(JoinGroupRequest)) == 2


def test_rebalance_in_progress_while_syncing_is_ignored() -> None:
    """CH-13: success, and no rejoin wanted."""
    bench = ClientBench(QUIET)
    bench.auto[HeartbeatRequest] = lambda _r: HeartbeatResponse(
        error_code=ErrorCode.REBALANCE_IN_PROGRESS
    )
    bench.start()
    bench.answer(bench.take(JoinGroupRequest), bench.joined())
    bench.advance(4_000)
    assert bench.coordinator.heartbeat.session_deadline_ms == 48_000
    bench.sync(("t", 0))
    assert not bench.coordinator.rejoin_needed


@pytest.mark.parametrize(
    ("code", "member_id"),
    [(ErrorCode.ILLEGAL_GENERATION, "m-1"), (ErrorCode.UNKNOWN_MEMBER_ID, "")],
)
def test_not_a_member(code: ErrorCode, member_id: str) -> None:
    """CH-14, CH-15: reset (the id is kept for ILLEGAL_GENERATION), no more heartbeats, lost, rejoin."""
    bench = answering(code)
    bench.advance(20_000)
    assert beats(bench) == [3_000]
    assert [change for change, _ in bench.changes()] == ["assigned", "lost"]
    join = bench.sent(JoinGroupRequest)[-1][1]
    assert (join.member_id, join.reason) == (
        member_id,
        f"encountered {code.name} from HEARTBEAT response",
    )


def test_fenced_is_thrown_once_and_can_be_survived() -> None:
    """CH-16: thrown by the next poll; the one after it joins with an empty member id and the same
    instance id, with a new thread.
    """
    bench = answering(ErrorCode.FENCED_INSTANCE_ID, **{"group.instance.id": "i"})
    bench.advance(3_000)
    assert raised(bench) == ["FencedInstanceIdException"]
    assert beats(bench) == [3_000]
    bench.auto[HeartbeatRequest] = lambda _request: HeartbeatResponse()
    bench.advance(1_000)
    join = bench.sent(JoinGroupRequest)[-1][1]
    assert (join.member_id, join.group_instance_id) == ("", "i")
    bench.join(("t", 0), generation_id=2, member_id="m-2")
    bench.advance(3_000)
    assert beats(bench)[-1] == bench.now_ms


@pytest.mark.parametrize(
    "code",
    [ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID],
)
def test_errors_for_an_old_generation_are_ignored(code: ErrorCode) -> None:
    """CH-17: success."""
    bench = ClientBench(QUIET, work=CONTINUE)
    bench.auto[HeartbeatRequest] = None
    bench.stable()
    bench.advance(3_000)
    coordinator = bench.coordinator
    coordinator.generation = coordinator.generation._replace(generation_id=2)
    bench.answer(bench.take(HeartbeatRequest), HeartbeatResponse(error_code=code))
    assert bench.states()[-1] == "STABLE"
    assert raised(bench) == []
    assert coordinator.heartbeat.session_deadline_ms == 48_000


@pytest.mark.parametrize(
    "code", [ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_SERVER_ERROR]
)
def test_authorization_is_never_shown(code: ErrorCode) -> None:
    """CH-18, CH-19: an ordinary failure, retried until the session expires; the user hears nothing."""
    bench = answering(code)
    bench.advance(40_000)
    assert raised(bench) == []
    assert len(beats(bench)) > 30
    assert bench.states()[-1] == "STABLE"


def test_disconnect() -> None:
    """CH-20: coordinator unknown, failed heartbeat, membership kept."""
    bench = ClientBench(QUIET)
    bench.auto[HeartbeatRequest] = None
    bench.stable()
    bench.advance(3_000)
    bench.coordinator_node = 4
    bench.disconnect(bench.take(HeartbeatRequest))
    assert bench.coordinator.heartbeat.attempts == 1
    bench.advance(500)
    assert bench.take(HeartbeatRequest).node_id == 4
    assert bench.states()[-1] == "STABLE"


def test_exception_in_the_thread_ends_it() -> None:
    """CH-21, CH-05: stored, thrown by the next poll; a later join makes a new thread."""
    bench = ClientBench(
        QUIET, rates={"t": 1_000}, work={"processing_ms": 5_000, "on_error": "continue"}
    )
    bench.stable()
    bench.advance(1_000)
    thread = bench.coordinator.heartbeat_thread
    bench.machine.authentication_failed(0, "coordinator", "no", bench.now_ms)  # type: ignore[attr-defined]
    bench.advance(200)
    assert thread.closed
    assert thread.failure.exception == "SaslAuthenticationException"
    bench.advance(5_000)
    assert raised(bench)[0] == "SaslAuthenticationException"
    assert bench.coordinator.heartbeat_thread is not thread


def test_failure_is_thrown_by_the_wait_computation_too() -> None:
    """CH-05: a thread that failed after the poll began is noticed there while the member is joined."""
    from groupsim_clients.errors import JavaError

    bench = ClientBench(QUIET)
    bench.stable()
    bench.coordinator.heartbeat_thread.fail(JavaError.unexpected("x"))
    with pytest.raises(JavaError):
        bench.coordinator.check_heartbeat_thread()


def test_heartbeats_between_join_and_sync() -> None:
    """CH-01 (1.4): the thread is enabled by the JoinGroup answer; all timers start there."""
    bench = ClientBench(QUIET)
    bench.start()
    bench.advance(50_000)
    bench.answer(bench.take(JoinGroupRequest), bench.joined())
    bench.advance(7_000)
    assert beats(bench) == [53_000, 56_000]
    assert bench.opened(SyncGroupRequest)
    assert bench.coordinator.heartbeat.poll_deadline_ms >= 350_000
