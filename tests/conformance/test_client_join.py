"""Preparing, sending and concluding a join (CJ-10 to CJ-25, CR)."""

from __future__ import annotations

import pytest

from groupsim.protocol.consumer_protocol import decode_subscription
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from groupsim.testing.client import ClientBench, commit_answer
from groupsim_clients.errors import JavaError
from groupsim_clients.futures import RequestFuture
from groupsim_clients.machine import (
    AppRaised,
    CallbackNote,
    CommitNote,
    Disconnect,
    MemberState,
    Ownership,
)
from groupsim_clients.timing import Timer, WaitKind

QUIET = {"enable.auto.commit": False}
COOPERATIVE = {**QUIET, "partition.assignment.strategy": "cooperative-sticky"}
CONTINUE = {"on_error": "continue"}
REBALANCING = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)


def joins(bench: ClientBench) -> list[tuple[int, JoinGroupRequest]]:
    """All JoinGroups so far."""
    return bench.sent(JoinGroupRequest)


def raised(bench: ClientBench) -> list[str]:
    """The exceptions that the application saw."""
    return [note.exception for note in bench.notes(AppRaised)]


def refuse(bench: ClientBench, code: ErrorCode) -> None:
    """Answer the open JoinGroup with an error."""
    bench.answer(bench.take(JoinGroupRequest), JoinGroupResponse(error_code=code))


def rebalance(bench: ClientBench) -> None:
    """A stable member hears of a rebalance with its next heartbeat."""
    before = bench.auto[HeartbeatRequest]
    bench.auto[HeartbeatRequest] = lambda _request: REBALANCING
    bench.advance(3_000)
    bench.auto[HeartbeatRequest] = before


# -- before the JoinGroup ----------------------------------------------------------------------


def test_join_loop_keeps_everything_pending() -> None:
    """CJ-10, CJ-20, CP-03, CP-07: polls end and begin while one JoinGroup is out; there is no second."""
    bench = ClientBench(work={"poll_timeout_ms": 100, "poll_interval_ms": 50})
    bench.start()
    bench.advance(60_000)
    assert len(joins(bench)) == 1
    bench.join(("t", 0))
    assert bench.states()[-1] == "STABLE"


def test_prepare_runs_once_for_an_attempt() -> None:
    """CJ-11, CR-24: the callback that threw is not called again; the next poll sends the JoinGroup."""
    bench = ClientBench(QUIET, work={**CONTINUE, "raises": {"on_revoked": "RuntimeException"}})
    bench.stable()
    rebalance(bench)
    bench.advance(1_000)
    assert raised(bench) == ["KafkaException"]
    revoked = [
        n for n in bench.notes(CallbackNote) if (n.callback, n.phase) == ("revoked", "started")
    ]
    assert len(revoked) == 1
    assert len(joins(bench)) == 2


def test_failed_join_without_reset_does_not_prepare_again() -> None:
    """CJ-11, CR-02: COORDINATOR_LOAD_IN_PROGRESS leads to a second JoinGroup and no second revoke; the
    coordinator is kept.
    """
    bench = ClientBench(QUIET)
    bench.stable()
    rebalance(bench)
    refuse(bench, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.advance(100)
    assert [change for change, _ in bench.changes()] == ["assigned", "revoked"]
    assert len(joins(bench)) == 3
    assert len(bench.sent(FindCoordinatorRequest)) == 1
    assert bench.states()[-1] == "PREPARING_REBALANCE"


def test_eager_prepare_commits_first_and_returns_no_records() -> None:
    """CJ-12: positions are committed before the revocation, and while that is under way no record is
    returned, so that nothing can be read beyond what was committed.
    """
    bench = ClientBench({"auto.commit.interval.ms": 60_000}, rates={"t": 100})
    bench.auto[OffsetCommitRequest] = None
    bench.stable()
    rebalance(bench)
    commit = bench.take(OffsetCommitRequest)
    assert commit.request.topics[0].partitions[0].committed_offset == 300
    assert joins(bench)[1:] == []
    assert [change for change, _ in bench.changes()] == ["assigned"]
    assert bench.consumer.subscriptions.fetchable() == []
    bench.advance(1_500)
    assert bench.states()[-1] == "STABLE"
    bench.answer(commit, commit_answer(commit.request, ErrorCode.NONE))
    assert [change for change, _ in bench.changes()] == ["assigned", "revoked"]
    assert [note.mode for note in bench.notes(CommitNote)] == ["prepare"]
    assert len(joins(bench)) == 2


def test_cooperative_prepare_commit_leaves_partitions_fetchable() -> None:
    """CJ-12: a cooperative member marks nothing as pending revocation."""
    bench = ClientBench(
        {"auto.commit.interval.ms": 60_000, "partition.assignment.strategy": "cooperative-sticky"}
    )
    bench.auto[OffsetCommitRequest] = None
    bench.stable(protocol="cooperative-sticky")
    rebalance(bench)
    assert bench.opened(OffsetCommitRequest)
    assert len(bench.consumer.subscriptions.fetchable()) == 1


def test_prepare_commit_waits_behind_a_lookup() -> None:
    """CJ-12: with the coordinator unknown the commit is queued behind the lookup; nobody waits for it."""
    bench = ClientBench({"auto.commit.interval.ms": 60_000})
    bench.stable()
    offsets = bench.coordinator.offsets
    bench.auto[FindCoordinatorRequest] = None
    bench.coordinator.coordinator = None
    offsets.start_prepare_commit()
    assert offsets.prepare_commit is None
    assert offsets.waiting_for_coordinator == 1


def test_prepare_retries_retriable_commit_failures() -> None:
    """CJ-13, K-06: a retriable failure is forgotten and committed again after the constant backoff; the
    member goes on heartbeating as STABLE.
    """
    bench = ClientBench({"auto.commit.interval.ms": 60_000})
    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    bench.auto[OffsetCommitRequest] = lambda request: commit_answer(request, code)
    bench.stable()
    rebalance(bench)
    bench.advance(3_000)
    commits = [at for at, _ in bench.sent(OffsetCommitRequest)]
    assert len(commits) > 3
    assert len(joins(bench)) == 1
    assert bench.states()[-1] == "STABLE"
    bench.auto[OffsetCommitRequest] = lambda request: commit_answer(request, ErrorCode.NONE)
    bench.advance(600)
    assert len(joins(bench)) == 2


def test_prepare_gives_up_waiting_after_the_rebalance_timeout() -> None:
    """CJ-13: after max.poll.interval.ms the join goes on without the commit."""
    bench = ClientBench({"auto.commit.interval.ms": 60_000, "max.poll.interval.ms": 10_000})
    bench.auto[OffsetCommitRequest] = None
    bench.stable()
    rebalance(bench)
    bench.advance(9_000)
    assert len(joins(bench)) == 1
    bench.advance(3_000)  # noticed when the network poll comes back: every heartbeat interval
    assert len(joins(bench)) == 2
    assert any("joinPrepare timeout" in s for s in bench.sentences())


def test_prepare_goes_on_after_a_final_commit_failure() -> None:
    """CJ-13: a failure that cannot be retried is logged and the join goes on."""
    bench = ClientBench({"auto.commit.interval.ms": 60_000})
    code = ErrorCode.OFFSET_METADATA_TOO_LARGE
    bench.auto[OffsetCommitRequest] = lambda request: commit_answer(request, code)
    bench.stable()
    rebalance(bench)
    assert len(joins(bench)) == 2
    assert any("Will continue to join group." in s for s in bench.sentences())


def test_nothing_is_lost_before_the_first_join() -> None:
    """CJ-14: no callback at all while nothing is assigned."""
    bench = ClientBench()
    bench.start()
    assert bench.notes(CallbackNote) == []


def test_lost_after_a_reset_with_partitions_sorted() -> None:
    """CJ-14, CC-22: without a generation everything assigned is lost, in order."""
    bench = ClientBench(QUIET, topics={"t": 2, "u": 1}, subscribe=("u", "t"))
    bench.stable(("u", 0), ("t", 1), ("t", 0))
    bench.auto[HeartbeatRequest] = lambda _r: HeartbeatResponse(
        error_code=ErrorCode.UNKNOWN_MEMBER_ID
    )
    bench.advance(3_000)
    assert bench.changes()[-1] == ("lost", (("t", 0), ("t", 1), ("u", 0)))
    assert bench.machine.owned() == ()


def test_eager_revoke_even_if_empty() -> None:
    """CJ-15: from the second join on the revoked callback comes even with nothing assigned."""
    bench = ClientBench(QUIET)
    bench.start()
    bench.join()
    rebalance(bench)
    assert bench.changes() == [("assigned", ()), ("revoked", ())]


def test_cooperative_keeps_everything_subscribed() -> None:
    """CJ-16: no callback, partitions stay and are reported as owned in the JoinGroup."""
    bench = ClientBench(COOPERATIVE)
    bench.stable(("t", 0), ("t", 1), protocol="cooperative-sticky")
    rebalance(bench)
    assert [change for change, _ in bench.changes()] == ["assigned"]
    subscription = decode_subscription(joins(bench)[-1][1].protocols[0].metadata)
    assert subscription.owned_partitions == (("t", 0), ("t", 1))
    assert len(bench.consumer.subscriptions.fetchable()) == 2


def test_prepare_ends_leadership() -> None:
    """CJ-17, CP-10: not leader any more and watching the own topics only."""
    bench = ClientBench(QUIET)
    bench.stable()
    coordinator = bench.coordinator
    coordinator.is_leader = True
    coordinator.subscriptions.group_subscribe({"t", "u"})
    rebalance(bench)
    assert not coordinator.is_leader
    assert coordinator.subscriptions.metadata_topics() == {"t"}


def test_wakeup_in_the_revoked_callback_skips_the_rest() -> None:
    """CJ-17: assignment unchanged; the next poll goes straight to JoinGroup, and an eager member even
    reports its partitions as owned.
    """
    work = {**CONTINUE, "raises": {"on_revoked": "WakeupException"}}
    bench = ClientBench(QUIET, work=work)
    bench.stable()
    rebalance(bench)
    assert raised(bench) == ["WakeupException"]
    assert bench.machine.owned() == (("t", 0),)
    subscription = decode_subscription(joins(bench)[-1][1].protocols[0].metadata)
    assert subscription.owned_partitions == (("t", 0),)


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_trap_of_a_commit_that_resets_the_generation(code: ErrorCode, strategy: str) -> None:
    """CJ-18, CO-04: when the commit fails within the prepare step, the values from before it decide.
    Eager: revoked, not lost. Cooperative: no callback; the JoinGroup claims the partitions with
    generation −1.
    """
    options = {"auto.commit.interval.ms": 60_000, "partition.assignment.strategy": strategy}
    bench = ClientBench(options)
    bench.auto[OffsetCommitRequest] = None
    bench.stable(protocol=strategy)
    coordinator = bench.coordinator
    coordinator.request_rejoin("test")
    steps = coordinator.join_group_if_needed(Timer(coordinator.ctx, 5_000))
    next(steps)  # the commit is out
    correlation_id, pending = list(coordinator.client.in_flight.items())[-1]
    coordinator.client.inbox.append((correlation_id, commit_answer(pending.request, code)))
    next(steps)  # the JoinGroup is out
    join = list(coordinator.client.in_flight.values())[-1].request
    subscription = decode_subscription(join.protocols[0].metadata)
    assert subscription.generation_id == -1
    notes = [e for e in coordinator.ctx.effects if isinstance(e, Ownership)]
    if strategy == "range":
        assert [note.change for note in notes] == ["revoked"]
        assert subscription.owned_partitions == ()
    else:
        assert notes == []
        assert subscription.owned_partitions == (("t", 0),)


def test_no_trap_when_the_commit_is_answered_later() -> None:
    """CJ-18, CJ-13: poll's zero timer ends the prepare step before the answer; the next one looks at the
    generation again and so calls lost.
    """
    bench = ClientBench({"auto.commit.interval.ms": 60_000})
    code = ErrorCode.UNKNOWN_MEMBER_ID
    bench.auto[OffsetCommitRequest] = lambda request: commit_answer(request, code)
    bench.stable()
    rebalance(bench)
    assert [change for change, _ in bench.changes()] == ["assigned", "lost"]


def test_consecutive_attempts_count_as_one_rebalance() -> None:
    """CJ-19, CR-22: the start time stays over failed attempts, each of which counts as failed."""
    bench = ClientBench()
    bench.start(now_ms=500)
    coordinator = bench.coordinator
    for _ in range(3):
        refuse(bench, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        bench.advance(100)
    assert coordinator.rebalance_start_ms == 500
    assert coordinator.failed_rebalances == 3
    bench.join(("t", 0))
    assert coordinator.rebalance_start_ms == -1
    assert coordinator.rebalance_end_ms == 800


def test_coordinator_lost_between_lookup_and_join() -> None:
    """CJ-21: with the coordinator unknown at send time the attempt fails at once and retriably; nothing
    is sent.
    """
    bench = ClientBench()
    bench.start()
    coordinator = bench.coordinator
    coordinator.join_future = None
    coordinator.coordinator = None
    before = len(joins(bench))
    future = coordinator._initiate_join()
    assert (future.error.exception, future.retriable) == ("CoordinatorNotAvailableException", True)
    assert len(joins(bench)) == before


def test_join_request_fields() -> None:
    """CJ-22, CJ-24, W-01: what a JoinGroup says, version 9; protocols in the configured order."""
    config = {
        "session.timeout.ms": 20_000,
        "max.poll.interval.ms": 60_000,
        "group.instance.id": "i-1",
        "client.rack": "a",
        "partition.assignment.strategy": "sticky, range",
    }
    bench = ClientBench(config, topics={"t": 1, "u": 1}, subscribe=("u", "t"))
    bench.start()
    send = bench.take(JoinGroupRequest)
    join = send.request
    assert send.api_version == 9
    assert (join.group_id, join.member_id, join.group_instance_id) == ("g", "", "i-1")
    assert (join.session_timeout_ms, join.rebalance_timeout_ms) == (20_000, 60_000)
    assert (join.protocol_type, join.reason) == ("consumer", "")
    assert [protocol.name for protocol in join.protocols] == ["sticky", "range"]
    subscription = decode_subscription(join.protocols[1].metadata)
    assert (subscription.topics, subscription.rack_id) == (("t", "u"), "a")
    assert (subscription.generation_id, subscription.owned_partitions) == (-1, ())
    coordinator = bench.coordinator
    assert coordinator.joined_subscription == {"t", "u"}


def test_member_id_survives_a_disconnect() -> None:
    """CJ-22, CR-15: a disconnect costs the coordinator, not the member id."""
    bench = ClientBench()
    bench.start()
    answer = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m-7")
    bench.answer(bench.take(JoinGroupRequest), answer)
    bench.disconnect(bench.take(JoinGroupRequest))
    bench.advance(1_000)
    assert [join.member_id for _, join in joins(bench)] == ["", "m-7", "m-7"]
    assert joins(bench)[-1][1].reason == "rebalance failed due to DisconnectException"


@pytest.mark.parametrize(
    ("poll_interval_ms", "request_timeout_ms", "expected_ms"),
    [(10_000, 30_000, 30_000), (60_000, 30_000, 65_000), (2**31 - 1, 30_000, 2**31 - 1)],
)
def test_join_timeout(poll_interval_ms: int, request_timeout_ms: int, expected_ms: int) -> None:
    """CJ-23: max(request timeout, rebalance timeout + 5 s), without the 5 s where that overflows."""
    config = {"max.poll.interval.ms": poll_interval_ms, "request.timeout.ms": request_timeout_ms}
    bench = ClientBench(config)
    bench.start()
    bench.advance(expected_ms - 1)
    assert not [h for h in bench.log if isinstance(h.effect, Disconnect)]
    bench.advance(2)
    assert [h for h in bench.log if isinstance(h.effect, Disconnect)]


@pytest.mark.parametrize(
    ("strategies", "expected"),
    [
        ("range", "EAGER"),
        ("cooperative-sticky", "COOPERATIVE"),
        ("cooperative-sticky, range", "EAGER"),
        (None, "EAGER"),
    ],
)
def test_rebalance_protocol_is_what_all_assignors_support(
    strategies: str | None, expected: str
) -> None:
    """CJ-25: the highest common one; the default list runs EAGER, whatever the group picks."""
    config = {} if strategies is None else {"partition.assignment.strategy": strategies}
    bench = ClientBench(config)
    bench.start()
    assert bench.coordinator.protocol.name == expected


# -- the answer --------------------------------------------------------------------------------


def test_success_enables_heartbeats_before_sync() -> None:
    """CR-01, CH-01: generation stored, heartbeats flow while the SyncGroup is out."""
    bench = ClientBench()
    bench.start()
    bench.answer(bench.take(JoinGroupRequest), bench.joined(generation_id=5))
    note = bench.notes(MemberState)[-1]
    assert (note.state, note.generation_id, note.member_id) == ("COMPLETING_REBALANCE", 5, "m-1")
    bench.advance(6_500)
    assert [(at, h.generation_id) for at, h in bench.sent(HeartbeatRequest)] == [
        (3_000, 5),
        (6_000, 5),
    ]


def test_leader_is_who_has_the_leaders_id() -> None:
    """CR-01: the member id alone decides who leads, not the list of members."""
    bench = ClientBench()
    bench.start()
    bench.answer(bench.take(JoinGroupRequest), bench.joined(leader="m-1"))
    assert bench.coordinator.is_leader


def test_foreign_protocol_type_is_fatal() -> None:
    """CR-01: another protocol type in the answer is INCONSISTENT_GROUP_PROTOCOL, state unchanged."""
    bench = ClientBench(work=CONTINUE)
    bench.start()
    answer = JoinGroupResponse(generation_id=1, protocol_type="connect", member_id="m-1")
    bench.answer(bench.take(JoinGroupRequest), answer)
    assert raised(bench) == ["InconsistentGroupProtocolException"]
    assert bench.states() == ["PREPARING_REBALANCE"]


def test_unknown_member_resets_and_joins_at_once() -> None:
    """CR-03, CR-23: full reset, new JoinGroup at the same time, with the reason of CR-22."""
    bench = ClientBench(QUIET)
    bench.stable()
    rebalance(bench)
    refuse(bench, ErrorCode.UNKNOWN_MEMBER_ID)
    at_ms, join = joins(bench)[-1]
    assert (at_ms, join.member_id) == (3_000, "")
    assert join.reason == "rebalance failed due to UnknownMemberIdException"


def test_unknown_member_of_another_generation_does_not_reset() -> None:
    """CR-03: the generation has changed since sending, so it is kept."""
    bench = ClientBench(QUIET)
    bench.stable()
    rebalance(bench)
    coordinator = bench.coordinator
    coordinator.generation = coordinator.generation._replace(generation_id=9)
    refuse(bench, ErrorCode.UNKNOWN_MEMBER_ID)
    assert joins(bench)[-1][1].member_id == "m-1"
    assert coordinator.generation.generation_id == 9


@pytest.mark.parametrize("code", [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR])
def test_not_the_coordinator(code: ErrorCode) -> None:
    """CR-04: rediscovery, member id kept, no reset."""
    bench = ClientBench()
    bench.start()
    refuse(bench, code)
    bench.coordinator_node = 1
    bench.advance(1_000)
    assert len(bench.sent(FindCoordinatorRequest)) >= 2
    assert bench.take(JoinGroupRequest).node_id == 1
    assert "UNJOINED" not in bench.states()


FATAL = {
    ErrorCode.FENCED_INSTANCE_ID: "FencedInstanceIdException",
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "InconsistentGroupProtocolException",
    ErrorCode.INVALID_SESSION_TIMEOUT: "InvalidSessionTimeoutException",
    ErrorCode.INVALID_GROUP_ID: "InvalidGroupIdException",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "GroupAuthorizationException",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "GroupMaxSizeReachedException",
    ErrorCode.UNSUPPORTED_VERSION: "UnsupportedVersionException",
    ErrorCode.ILLEGAL_GENERATION: "KafkaException",
    ErrorCode.REQUEST_TIMED_OUT: "KafkaException",
    ErrorCode.UNKNOWN_SERVER_ERROR: "KafkaException",
}


@pytest.mark.parametrize("code", FATAL)
def test_fatal_codes(code: ErrorCode) -> None:
    """CR-05 to CR-11, CR-14, CR-24: thrown from poll; the next poll sends JoinGroup with the same
    member id, and nothing was reset.
    """
    bench = ClientBench(work=CONTINUE)
    bench.start()
    answer = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m-7")
    bench.answer(bench.take(JoinGroupRequest), answer)
    refuse(bench, code)
    assert raised(bench) == [FATAL[code]]
    assert bench.states()[-1] == "PREPARING_REBALANCE"
    bench.advance(1_000)
    assert [join.member_id for _, join in joins(bench)] == ["", "m-7", "m-7"]
    if code in {ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.GROUP_MAX_SIZE_REACHED}:
        assert "g" in bench.notes(AppRaised)[0].detail.split()


def test_no_second_revoke_after_a_fatal_answer() -> None:
    """CR-24: needsJoinPrepare stays false."""
    bench = ClientBench(QUIET, work=CONTINUE)
    bench.stable()
    rebalance(bench)
    refuse(bench, ErrorCode.INVALID_SESSION_TIMEOUT)
    bench.advance(1_000)
    assert len(joins(bench)) == 3
    assert [change for change, _ in bench.changes()] == ["assigned", "revoked"]


def test_member_id_required() -> None:
    """CR-12, CR-22, CR-23: the id is taken, nothing else changes, the reason survives, joined again at
    once; and this pending member leaves on close.
    """
    bench = ClientBench()
    bench.start()
    answer = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m-7")
    bench.answer(bench.take(JoinGroupRequest), answer)
    assert bench.states() == ["PREPARING_REBALANCE", "PREPARING_REBALANCE"]
    at_ms, join = joins(bench)[-1]
    assert (at_ms, join.member_id) == (0, "m-7")
    assert join.reason == "need to re-join with the given member-id: m-7"
    bench.order("close")
    assert [leave.members[0].member_id for _, leave in bench.sent(LeaveGroupRequest)] == ["m-7"]


def test_rebalance_in_progress_is_retried_at_once() -> None:
    """CR-13, CR-23: no backoff and no reset."""
    bench = ClientBench()
    bench.start()
    refuse(bench, ErrorCode.REBALANCE_IN_PROGRESS)
    assert [at for at, _ in joins(bench)] == [0, 0]
    assert bench.states() == ["PREPARING_REBALANCE"]
    assert joins(bench)[-1][1].reason == "rebalance failed due to RebalanceInProgressException"


def test_authentication_failure_is_fatal() -> None:
    """CR-17: thrown as it is."""
    bench = ClientBench(work=CONTINUE)
    bench.start()
    bench.machine.authentication_failed(0, "coordinator", "wrong password", 0)
    effects = bench.consumer.client._ctx.effects
    assert [e.exception for e in effects if isinstance(e, AppRaised)] == [
        "SaslAuthenticationException"
    ]


def test_success_after_the_member_left_is_ignored() -> None:
    """CR-18: no SyncGroup follows; the attempt fails retriably."""
    bench = ClientBench(work=CONTINUE)
    bench.start()
    join = bench.take(JoinGroupRequest)
    coordinator = bench.coordinator
    coordinator.maybe_leave_group("test")
    bench.answer(join, bench.joined())
    assert bench.sent(SyncGroupRequest) == []
    assert coordinator.rejoin_reason == "rebalance failed due to UnjoinedGroupException"
    bench.advance(100)
    assert len(joins(bench)) == 2


def test_generation_reset_before_completion() -> None:
    """CR-20: the future has succeeded, but the heartbeat thread reset the generation before the
    application came back: full reset, new join, no assignment.
    """
    bench = ClientBench(QUIET, rates={"t": 1}, work={"processing_ms": 10_000})
    bench.stable(("t", 0))
    bench.auto[HeartbeatRequest] = None
    bench.advance(3_100)
    heartbeat = bench.take(HeartbeatRequest)
    coordinator = bench.coordinator
    assignment = bench.synced(("t", 0)).assignment
    coordinator.join_future = RequestFuture.success(assignment)
    bench.answer(heartbeat, HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    bench.advance(10_000)
    assert any("was modified by heartbeat thread" in s for s in bench.sentences())
    assert [change for change, _ in bench.changes()] == ["assigned", "lost"]
    assert joins(bench)[-1][1].member_id == ""


def test_completion_is_repeated_after_an_exception() -> None:
    """CR-21, CC-11: the assigned callback threw; the next poll completes again with the same bytes and
    no new JoinGroup; by then nothing is "added".
    """
    work = {**CONTINUE, "raises": {"on_assigned": {"exception": "RuntimeException", "nth": 1}}}
    bench = ClientBench(QUIET, work=work)
    bench.start()
    bench.join(("t", 0))
    assert raised(bench) == ["KafkaException"]
    bench.advance(1_000)
    assert bench.changes() == [("assigned", (("t", 0),)), ("assigned", ())]
    assert len(joins(bench)) == 1


def test_retriable_failures_cost_the_constant_backoff() -> None:
    """CR-25, CR-26, CP-03: two loading errors cost exactly 200 ms, without growth; the pace comes from
    the fetch part of poll.
    """
    bench = ClientBench()
    bench.world.draws = {"retry-backoff": 0}
    bench.start()
    for _ in range(2):
        refuse(bench, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        bench.advance(100)
    assert [at for at, _ in joins(bench)] == [0, 100, 200]


def test_internal_callers_sleep_in_the_join_loop() -> None:
    """CR-25: with time on the timer the loop itself sleeps retry.backoff.ms; without, it returns."""
    bench = ClientBench()
    bench.start()
    coordinator = bench.coordinator
    error = JavaError.of(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    wait = next(coordinator._join_failed(error, Timer(coordinator.ctx, 5_000)))
    assert (wait.kind, wait.deadline_ms) == (WaitKind.SLEEP, 100)
    with pytest.raises(StopIteration) as end:
        next(coordinator._join_failed(error, Timer(coordinator.ctx, 0)))
    assert end.value.value is False


def test_rejoin_request_is_absorbed_by_a_running_sync() -> None:
    """CP-11, CJ-19: a rebalance forced between JoinGroup and the end of SyncGroup is forgotten (1.3)."""
    bench = ClientBench()
    bench.start()
    bench.order("enforce_rebalance", reason="please")
    bench.join(("t", 0))
    bench.advance(10_000)
    assert len(joins(bench)) == 1


def test_sync_failure_reasons_and_states() -> None:
    """CR-22, CS-27: a fatal SyncGroup answer leaves COMPLETING_REBALANCE, where heartbeats go on."""
    bench = ClientBench(work={"on_error": "continue", "error_pause_ms": 20_000})
    bench.start()
    bench.answer(bench.take(JoinGroupRequest), bench.joined())
    answer = SyncGroupResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    bench.answer(bench.take(SyncGroupRequest), answer)
    assert raised(bench) == ["KafkaException"]
    bench.advance(7_000)
    assert bench.states()[-1] == "COMPLETING_REBALANCE"
    assert len(bench.sent(HeartbeatRequest)) == 2
