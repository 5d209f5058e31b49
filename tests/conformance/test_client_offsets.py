"""Offsets, where they touch membership (CO)."""

from __future__ import annotations

import pytest

from groupsim.protocol.consumer_protocol import TopicPartition
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from groupsim.testing.client import ClientBench, commit_answer
from groupsim_clients.machine import AppRaised, CommitNote

QUIET = {"enable.auto.commit": False}
CONTINUE = {"on_error": "continue"}


def stable(**how: object) -> ClientBench:
    """A stable member with t-0 and t-1 that commits only when told."""
    bench = ClientBench({**QUIET, **how}, work=CONTINUE)
    bench.stable(("t", 0), ("t", 1))
    bench.auto[OffsetCommitRequest] = None
    return bench


def raised(bench: ClientBench) -> list[str]:
    """The exceptions that the application saw."""
    return [note.exception for note in bench.notes(AppRaised)]


def outcomes(bench: ClientBench) -> list[tuple[str, str]]:
    """(mode, outcome) of all commits."""
    return [(note.mode, note.outcome) for note in bench.notes(CommitNote)]


def refuse(bench: ClientBench, *codes: ErrorCode) -> None:
    """Answer the open commit with a code for each partition."""
    partitions = tuple(
        OffsetCommitResponsePartition(partition_index=n, error_code=code)
        for n, code in enumerate(codes)
    )
    topic = OffsetCommitResponseTopic(name="t", partitions=partitions)
    bench.answer(bench.take(OffsetCommitRequest), OffsetCommitResponse(topics=(topic,)))


def test_commit_while_rebalancing_sends_nothing() -> None:
    """CO-01: RebalanceInProgress while a rebalance is known to run, CommitFailed otherwise; not retried."""
    bench = stable()
    bench.auto[HeartbeatRequest] = lambda _r: HeartbeatResponse(
        error_code=ErrorCode.REBALANCE_IN_PROGRESS
    )
    bench.advance(3_000)
    bench.consumer.subscriptions.assign([TopicPartition("t", 0)])
    bench.consumer.subscriptions.assignment[TopicPartition("t", 0)].position = 5
    bench.order("commit")
    assert raised(bench) == ["RebalanceInProgressException"]
    assert bench.sent(OffsetCommitRequest) == []


def test_commit_of_a_member_that_is_out() -> None:
    """CO-01: the application was busy when it was thrown out; its commit fails without a request."""
    bench = ClientBench(
        QUIET, rates={"t": 10}, work={"processing_ms": 5_000, "commit": "sync", **CONTINUE}
    )
    bench.auto[HeartbeatRequest] = lambda _r: HeartbeatResponse(
        error_code=ErrorCode.UNKNOWN_MEMBER_ID
    )
    bench.stable()
    bench.advance(6_000)
    assert raised(bench) == ["CommitFailedException"]
    assert bench.sent(OffsetCommitRequest) == []


def test_commit_request() -> None:
    """CO-01: positions with generation, member and instance id, version 9."""
    bench = stable(**{"group.instance.id": "i"})
    bench.world.rates["t"] = 10
    bench.advance(2_000)
    bench.order("commit")
    send = bench.take(OffsetCommitRequest)
    assert send.api_version == 9
    request = send.request
    assert (request.generation_id, request.member_id, request.group_instance_id) == (1, "m-1", "i")
    (topic,) = request.topics
    assert [(p.partition_index, p.committed_offset) for p in topic.partitions] == [(0, 20), (1, 20)]


def test_commit_of_a_manual_assignment() -> None:
    """CO-02: generation −1, empty member id, null instance id even if configured."""
    bench = ClientBench({**QUIET, "group.instance.id": "i"}, subscribe=())
    bench.auto[OffsetCommitRequest] = None
    bench.start()
    for _ in bench.consumer.assign([TopicPartition("t", 1)]):
        pass
    bench.order("set_work", poll_timeout_ms=500)
    bench.advance(1_000)
    bench.order("commit")
    request = bench.take(OffsetCommitRequest).request
    assert (request.generation_id, request.member_id) == (-1, "")
    assert request.group_instance_id is None


@pytest.mark.parametrize(
    ("codes", "exception"),
    [
        ((ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.NONE), "GroupAuthorizationException"),
        (
            (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.NONE),
            "TopicAuthorizationException",
        ),
        (
            (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.OFFSET_METADATA_TOO_LARGE),
            "OffsetMetadataTooLarge",
        ),
        (
            (ErrorCode.NONE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
            "InvalidCommitOffsetSizeException",
        ),
        ((ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE), "KafkaException"),
        (
            (ErrorCode.INVALID_COMMIT_OFFSET_SIZE, ErrorCode.GROUP_AUTHORIZATION_FAILED),
            "InvalidCommitOffsetSizeException",
        ),
    ],
)
def test_codes_that_end_a_commit(codes: tuple[ErrorCode, ...], exception: str) -> None:
    """CO-03: scanned in order, the first decisive one counts; topic authorisation is collected."""
    bench = stable()
    bench.order("commit")
    refuse(bench, *codes)
    assert raised(bench) == [exception]
    assert bench.states()[-1] == "STABLE"


@pytest.mark.parametrize(
    ("code", "lookups"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 1),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 1),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, 2),
        (ErrorCode.NOT_COORDINATOR, 2),
        (ErrorCode.REQUEST_TIMED_OUT, 2),
    ],
)
def test_codes_that_are_retried(code: ErrorCode, lookups: int) -> None:
    """CO-03, CO-07: retriable, with or without a rediscovery."""
    bench = stable()
    bench.coordinator_node = 1
    bench.order("commit")
    refuse(bench, code)
    bench.advance(500)
    assert len(bench.sent(FindCoordinatorRequest)) == lookups
    refuse(bench, ErrorCode.NONE, ErrorCode.NONE)
    assert raised(bench) == []
    assert [outcome for _, outcome in outcomes(bench)] == [code.exception, "ok"]


@pytest.mark.parametrize(
    ("code", "member_id"),
    [(ErrorCode.UNKNOWN_MEMBER_ID, ""), (ErrorCode.ILLEGAL_GENERATION, "m-1")],
)
def test_commit_of_no_member_resets(code: ErrorCode, member_id: str) -> None:
    """CO-04: reset and CommitFailed; the next poll joins again, with lost first."""
    bench = stable()
    bench.order("commit")
    refuse(bench, code)
    assert raised(bench) == ["CommitFailedException"]
    bench.advance(1_000)
    join = bench.sent(JoinGroupRequest)[-1][1]
    assert (join.member_id, join.reason) == (
        member_id,
        f"encountered {code.name} from OFFSET_COMMIT response",
    )
    assert [change for change, _ in bench.changes()] == ["assigned", "lost"]


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_late_answer_destroys_a_newer_membership(code: ErrorCode) -> None:
    """CO-04: the answer to a commit of generation 1 throws generation 2 away, although it is stable."""
    bench = stable()
    bench.order("commit", mode="async")
    bench.coordinator.request_rejoin("test")
    bench.order("wakeup")
    bench.advance(1_000)
    bench.join(("t", 0), generation_id=2)
    assert bench.coordinator.generation.generation_id == 2
    refuse(bench, code)
    assert "UNJOINED" in bench.states()
    assert bench.coordinator.generation.generation_id == -1
    assert outcomes(bench)[-1] == ("async", "CommitFailedException")


def test_late_answer_while_preparing_is_harmless() -> None:
    """CO-04: generation changed and PREPARING_REBALANCE: RebalanceInProgress, no reset."""
    bench = stable()
    bench.order("commit", mode="async")
    bench.coordinator.request_rejoin("test")
    bench.order("wakeup")
    bench.advance(1_000)
    bench.coordinator.generation = bench.coordinator.generation._replace(generation_id=2)
    refuse(bench, ErrorCode.UNKNOWN_MEMBER_ID)
    assert outcomes(bench) == [("async", "RebalanceInProgressException")]
    assert bench.coordinator.generation.generation_id == 2


def test_commit_rebalance_in_progress() -> None:
    """CO-05: rejoin, no reset."""
    bench = stable()
    bench.order("commit")
    refuse(bench, ErrorCode.REBALANCE_IN_PROGRESS)
    assert raised(bench) == ["RebalanceInProgressException"]
    bench.advance(1_000)
    join = bench.sent(JoinGroupRequest)[-1][1]
    assert (join.member_id, join.reason) == (
        "m-1",
        "offset commit failed since group is already rebalancing",
    )


def test_sync_commit_fenced() -> None:
    """CO-06: thrown; never a reset."""
    bench = stable(**{"group.instance.id": "i"})
    bench.order("commit")
    refuse(bench, ErrorCode.FENCED_INSTANCE_ID)
    assert raised(bench) == ["FencedInstanceIdException"]
    assert bench.states()[-1] == "STABLE"


def test_async_commit_fenced_poisons_everything_after_it() -> None:
    """CO-06, CP-01: every later poll and commit throws, for ever."""
    bench = stable(**{"group.instance.id": "i"})
    bench.order("commit", mode="async")
    refuse(bench, ErrorCode.FENCED_INSTANCE_ID)
    bench.advance(3_500)
    assert raised(bench) == ["FencedInstanceIdException"] * 4
    bench.order("commit", mode="async")
    assert raised(bench)[-1] == "FencedInstanceIdException"
    assert len(bench.sent(OffsetCommitRequest)) == 1


@pytest.mark.parametrize(
    ("state", "exception"),
    [("PREPARING_REBALANCE", "RebalanceInProgressException"), ("STABLE", "CommitFailedException")],
)
def test_fenced_with_another_generation(state: str, exception: str) -> None:
    """CO-06: changed generation: the state decides what is raised."""
    from groupsim_clients.generation import JoinState

    bench = stable()
    bench.order("commit", mode="async")
    coordinator = bench.coordinator
    coordinator.generation = coordinator.generation._replace(generation_id=2)
    coordinator.state = JoinState(state)
    refuse(bench, ErrorCode.FENCED_INSTANCE_ID)
    assert outcomes(bench) == [("async", exception)]


def test_sync_commit_is_repeated_until_its_timer_ends() -> None:
    """CO-07: exponential backoff, then a TimeoutException."""
    bench = stable(**{"default.api.timeout.ms": 2_000})
    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    bench.auto[OffsetCommitRequest] = lambda request: commit_answer(request, code)
    bench.order("commit")
    bench.advance(2_000)
    assert [at for at, _ in bench.sent(OffsetCommitRequest)] == [0, 100, 300, 700, 1_500]
    assert raised(bench) == ["TimeoutException"]


def test_async_commit_is_never_repeated() -> None:
    """CO-07: a retriable failure reaches the callback wrapped, in a later call."""
    bench = stable()
    seen: list[str] = []
    offsets = {TopicPartition("t", 0): 3}
    bench.consumer.commit_async(
        lambda _offsets, error: seen.append(str(error.exception if error else None)), offsets
    )
    bench.machine.wake(0)
    correlation_id = max(bench.consumer.client.in_flight)
    request = bench.consumer.client.in_flight[correlation_id].request
    answer = commit_answer(request, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench._collect(bench.machine.respond(correlation_id, answer, 0))
    assert seen == ["RetriableCommitFailedException"]
    bench.advance(2_000)
    assert len(bench.sent(OffsetCommitRequest)) == 0


def test_async_commit_waits_behind_a_lookup() -> None:
    """CO-07: with the coordinator unknown it is queued, and sent when the lookup has ended."""
    bench = stable()
    bench.coordinator.coordinator = None
    bench.order("commit", mode="async")
    assert [outcome for _, outcome in outcomes(bench)] == []
    bench.advance(500)
    assert len(bench.sent(OffsetCommitRequest)) == 1


def test_auto_commit_times() -> None:
    """CO-08, CC-08: first an interval after the completed join, then every interval."""
    bench = ClientBench({"auto.commit.interval.ms": 4_000})
    bench.start()
    bench.advance(3_000)
    bench.join(("t", 0))
    bench.advance(9_000)
    assert [at for at, _ in bench.sent(OffsetCommitRequest)] == [7_000, 11_000]
    assert outcomes(bench) == [("auto", "ok")] * 2


def test_auto_commit_comes_forward_after_a_retriable_failure() -> None:
    """CO-08: to retry.backoff.ms."""
    bench = ClientBench({"auto.commit.interval.ms": 4_000})
    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    bench.auto[OffsetCommitRequest] = lambda request: commit_answer(request, code)
    bench.stable()
    bench.advance(4_250)
    assert [at for at, _ in bench.sent(OffsetCommitRequest)] == [4_000, 4_100, 4_200]


def test_commits_do_not_touch_the_own_session_timer() -> None:
    """CO-09: the broker counts them as a sign of life, the client does not."""
    bench = ClientBench({"auto.commit.interval.ms": 1_000})
    bench.auto[HeartbeatRequest] = None
    bench.stable()
    bench.advance(20_000)
    assert outcomes(bench)
    assert bench.coordinator.heartbeat.session_deadline_ms == 45_000


def fetch_answer(group: ErrorCode, *partitions: ErrorCode) -> OffsetFetchResponse:
    """An OffsetFetch answer with these codes."""
    answers = tuple(
        OffsetFetchResponsePartition(partition_index=n, committed_offset=-1, error_code=code)
        for n, code in enumerate(partitions)
    )
    topics = (OffsetFetchResponseTopic(name="t", partitions=answers),) if answers else ()
    return OffsetFetchResponse(
        groups=(OffsetFetchResponseGroup(group_id="g", topics=topics, error_code=group),)
    )


@pytest.mark.parametrize(
    ("answer", "exception"),
    [
        (fetch_answer(ErrorCode.GROUP_AUTHORIZATION_FAILED), "GroupAuthorizationException"),
        (fetch_answer(ErrorCode.UNKNOWN_MEMBER_ID), "KafkaException"),
        (fetch_answer(ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), "KafkaException"),
        (
            fetch_answer(ErrorCode.NONE, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
            "TopicAuthorizationException",
        ),
    ],
)
def test_fetch_failures(answer: OffsetFetchResponse, exception: str) -> None:
    """CO-10: out of poll; membership is never reset."""
    bench = ClientBench(QUIET, work=CONTINUE)
    bench.auto[OffsetFetchRequest] = lambda _request: answer
    bench.stable()
    assert raised(bench) == [exception]
    assert bench.states()[-1] == "STABLE"


@pytest.mark.parametrize(
    ("answer", "lookups"),
    [
        (fetch_answer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), 1),
        (fetch_answer(ErrorCode.NOT_COORDINATOR), 2),
        (fetch_answer(ErrorCode.NONE, ErrorCode.UNSTABLE_OFFSET_COMMIT), 1),
    ],
)
def test_fetch_is_repeated(answer: OffsetFetchResponse, lookups: int) -> None:
    """CO-10: loading, another coordinator, unstable offsets."""
    bench = ClientBench(QUIET)
    bench.auto[OffsetFetchRequest] = lambda _request: answer
    bench.stable()
    bench.coordinator_node = 1
    bench.auto[OffsetFetchRequest] = bench.offsets
    bench.advance(2_000)
    assert len(bench.sent(OffsetFetchRequest)) >= 2
    assert len(bench.sent(FindCoordinatorRequest)) >= lookups
    assert bench.consumer.subscriptions.initializing() == ()


def test_pending_fetch_is_reused_for_the_same_question_only() -> None:
    """CO-10: the next poll waits for the request that is out; another generation asks anew."""
    bench = ClientBench(QUIET, work={"poll_timeout_ms": 100, "poll_interval_ms": 100})
    bench.auto[OffsetFetchRequest] = None
    bench.stable()
    bench.advance(1_000)
    assert len(bench.sent(OffsetFetchRequest)) == 1
    coordinator = bench.coordinator
    coordinator.generation = coordinator.generation._replace(generation_id=2)
    bench.advance(1_000)
    assert len(bench.sent(OffsetFetchRequest)) == 2


def test_committed_offsets_are_where_reading_begins() -> None:
    """CO-10: a committed offset, else auto.offset.reset."""
    bench = ClientBench({**QUIET, "auto.offset.reset": "earliest"})
    bench.committed["t", 0] = 17
    bench.stable(("t", 0), ("t", 1))
    positions = [state.position for state in bench.consumer.subscriptions.assignment.values()]
    assert positions == [17, 0]


def test_no_committed_offset_and_no_reset_policy() -> None:
    """CO-10: NoOffsetForPartitionException out of poll."""
    bench = ClientBench({**QUIET, "auto.offset.reset": "none"}, work=CONTINUE)
    bench.stable()
    assert raised(bench) == ["NoOffsetForPartitionException"]
