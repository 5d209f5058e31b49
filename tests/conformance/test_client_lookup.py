"""Finding the coordinator, losing it, and the network client underneath (CJ-01 to CJ-09, CN)."""

from __future__ import annotations

import pytest

from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    SyncGroupRequest,
    SyncGroupResponse,
)
from groupsim.testing.client import ClientBench, commit_answer
from groupsim_clients.errors import JavaError
from groupsim_clients.machine import ANY_NODE, AppRaised, Disconnect


def looking() -> ClientBench:
    """A client whose lookup is not answered."""
    bench = ClientBench(work={"on_error": "continue", "poll_timeout_ms": 60_000})
    bench.auto[FindCoordinatorRequest] = None
    bench.start()
    return bench


def refuse(bench: ClientBench, code: ErrorCode) -> None:
    """Answer the open lookup with an error."""
    coordinator = Coordinator(key="g", error_code=code)
    bench.answer(
        bench.take(FindCoordinatorRequest), FindCoordinatorResponse(coordinators=(coordinator,))
    )


def lookups(bench: ClientBench) -> list[int]:
    """When lookups left."""
    return [at for at, _ in bench.sent(FindCoordinatorRequest)]


def test_lookup_request() -> None:
    """CJ-02, CJ-03: any broker is asked, with the group's name; one lookup is shared."""
    bench = looking()
    send = bench.take(FindCoordinatorRequest)
    assert (send.node_id, send.channel) == (ANY_NODE, "bootstrap")
    assert send.request == FindCoordinatorRequest(key_type=0, coordinator_keys=("g",))
    bench.advance(20_000)
    assert lookups(bench) == [0]


def test_no_broker_is_left_to_ask() -> None:
    """CJ-02: with no broker to be tried nothing is sent until the reconnect backoff is over, and
    the failure is not kept.
    """
    bench = looking()
    bench.disconnect(bench.take(FindCoordinatorRequest))
    bench.advance(49)
    assert lookups(bench) == [0]
    bench.advance(10_000)
    assert len(lookups(bench)) == 2


def test_lookup_answer_with_two_entries() -> None:
    """CJ-03: an answer that has not exactly one entry is an illegal state."""
    bench = looking()
    one = Coordinator(key="g", node_id=0, host="b-0", port=9092)
    bench.answer(
        bench.take(FindCoordinatorRequest), FindCoordinatorResponse(coordinators=(one, one))
    )
    assert [note.exception for note in bench.notes(AppRaised)] == ["IllegalStateException"]


def test_coordinator_gets_a_connection_of_its_own() -> None:
    """CJ-04: the coordinator's connection is not the one for everything else, even on one broker."""
    bench = ClientBench()
    bench.start()
    join = bench.take(JoinGroupRequest)
    assert (join.node_id, join.channel) == (0, "coordinator")
    assert any("(id: 2147483647 rack: null)" in s for s in bench.sentences())


def test_lookup_restarts_the_session_timer_only() -> None:
    """CJ-04, CH-06: after a rediscovery the session has all its time again; the heartbeat timer ran on."""
    bench = ClientBench({"enable.auto.commit": False})
    bench.stable()
    bench.auto[HeartbeatRequest] = None
    bench.advance(44_000)
    bench.disconnect(bench.take(HeartbeatRequest))
    bench.forget()
    bench.advance(44_000)
    assert not [s for s in bench.sentences() if "session timed out" in s]
    assert bench.sent(HeartbeatRequest)[0][0] == 45_000


@pytest.mark.parametrize("code", [ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.INVALID_REQUEST])
def test_fatal_lookup(code: ErrorCode) -> None:
    """CJ-05: authorisation and other non-retriable codes come out of poll."""
    bench = looking()
    refuse(bench, code)
    assert [note.exception for note in bench.notes(AppRaised)] == [code.exception]


def test_lookup_loop_backs_off_exponentially() -> None:
    """CJ-06: retriable failures are repeated within one poll after 100, 200, 400, 800, 1000 ms."""
    bench = looking()
    for _ in range(5):
        refuse(bench, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        bench.advance(5_000 - bench.now_ms % 5_000 if bench.now_ms % 5_000 else 5_000)
    times = lookups(bench)
    starts = [0, 5_000, 10_000, 15_000, 20_000]
    assert [b - a for a, b in zip(starts, times[1:], strict=True)] == [100, 200, 400, 800, 1_000]


def test_lookup_has_one_pass_even_without_time() -> None:
    """CJ-06, CP-02: a poll with a zero timeout still looks up, and joins once that is answered."""
    bench = ClientBench(work={"poll_timeout_ms": 0, "poll_interval_ms": 50})
    bench.auto[FindCoordinatorRequest] = None
    bench.start()
    send = bench.take(FindCoordinatorRequest)
    bench.answer(send, bench.found(send.request))
    bench.advance(100)
    assert len(bench.sent(JoinGroupRequest)) == 1


def test_connection_fails_right_after_lookup() -> None:
    """CJ-01, CJ-06, CN-06: a coordinator whose connection failed and may not be retried yet does not
    count as known; the client backs off and looks up again.
    """
    bench = ClientBench()
    bench.start()
    bench.disconnect(bench.take(JoinGroupRequest))
    assert not bench.opened(JoinGroupRequest)
    bench.advance(100)
    assert lookups(bench) == [0, 0, 100]
    assert any("coordinator unavailable" in s for s in bench.sentences())
    assert len(bench.opened(JoinGroupRequest)) == 1


def test_fatal_lookup_of_the_heartbeat_thread_reaches_the_application() -> None:
    """CJ-07, CH-21: authentication fails while the thread looks up: the thread ends, poll throws its
    failure, and the stored lookup failure is thrown after that.
    """
    bench = ClientBench(
        {"enable.auto.commit": False},
        rates={"t": 1},
        work={"processing_ms": 5_000, "on_error": "continue", "error_pause_ms": 10},
    )
    bench.stable()
    bench.advance(2_000)
    bench.break_connection(0, "coordinator")
    bench.auto[FindCoordinatorRequest] = None
    bench.advance(300)
    assert bench.opened(FindCoordinatorRequest)
    bench.open.clear()
    effects = bench.machine.authentication_failed(
        ANY_NODE, "bootstrap", "who are you", bench.now_ms
    )
    assert effects == []
    bench.advance(6_000)
    raised = [note.exception for note in bench.notes(AppRaised)]
    assert raised[:2] == ["SaslAuthenticationException", "SaslAuthenticationException"]


def test_marking_unknown_fails_everything_on_the_connection() -> None:
    """CJ-08, CN-05: NOT_COORDINATOR closes the connection; a parked SyncGroup fails with it, while
    membership and generation stay.
    """
    bench = ClientBench()
    bench.auto[HeartbeatRequest] = None
    bench.start()
    bench.answer(bench.take(JoinGroupRequest), bench.joined())
    bench.advance(3_000)
    bench.forget()
    answer = HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR)
    bench.answer(bench.take(HeartbeatRequest), answer)
    bench.advance(500)
    assert [h.effect for h in bench.log if isinstance(h.effect, Disconnect)] == [
        Disconnect(node_id=0, channel="coordinator")
    ]
    assert not bench.opened(SyncGroupRequest)
    assert [join.member_id for _, join in bench.sent(JoinGroupRequest)] == ["m-1"]


def test_long_outage_is_logged() -> None:
    """CJ-08: being without a coordinator for longer than the rebalance timeout is a warning."""
    bench = ClientBench(
        {"max.poll.interval.ms": 5_000, "enable.auto.commit": False, "request.timeout.ms": 2_000}
    )
    bench.stable()
    bench.auto[HeartbeatRequest] = bench.auto[FindCoordinatorRequest] = None
    bench.advance(3_000)
    bench.coordinator.mark_coordinator_unknown("first")
    bench.now_ms += 6_000
    bench.consumer.client._ctx.now_ms = bench.now_ms
    bench.coordinator.mark_coordinator_unknown("again")
    log = bench.consumer.client._ctx.effects
    assert "disconnected from the group coordinator for 6000ms" in log[-1].sentence


UNKNOWN = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)


@pytest.mark.parametrize("code", UNKNOWN)
@pytest.mark.parametrize("api", ["join", "sync", "heartbeat", "commit", "fetch"])
def test_codes_that_mark_the_coordinator_unknown(api: str, code: ErrorCode) -> None:
    """CJ-09: COORDINATOR_NOT_AVAILABLE and NOT_COORDINATOR on each coordinator API."""
    bench = ClientBench({"auto.commit.interval.ms": 1_000})
    if api == "join":
        bench.start()
        bench.answer(bench.take(JoinGroupRequest), JoinGroupResponse(error_code=code))
    elif api == "sync":
        bench.start()
        bench.answer(bench.take(JoinGroupRequest), bench.joined())
        bench.answer(bench.take(SyncGroupRequest), SyncGroupResponse(error_code=code))
    elif api == "heartbeat":
        bench.auto[HeartbeatRequest] = lambda _request: HeartbeatResponse(error_code=code)
        bench.stable()
        bench.advance(3_000)
    elif api == "commit":
        bench.auto[OffsetCommitRequest] = lambda request: commit_answer(request, code)
        bench.stable()
        bench.advance(1_000)
    else:
        group = OffsetFetchResponseGroup(group_id="g", error_code=code)
        bench.auto[OffsetFetchRequest] = lambda _request: OffsetFetchResponse(groups=(group,))
        bench.stable()
    assert any(f"error response {code.name}" in s for s in bench.sentences())


def test_request_timeout_is_a_disconnect() -> None:
    """CJ-09, CN-01: a request that is in flight for longer than its timeout closes the connection."""
    bench = ClientBench({"request.timeout.ms": 5_000, "enable.auto.commit": False})
    bench.stable()
    bench.auto[HeartbeatRequest] = None
    bench.advance(3_000)
    bench.forget()
    bench.advance(5_000)
    assert not [h for h in bench.log if isinstance(h.effect, Disconnect)]
    bench.advance(1)
    assert [h.effect.channel for h in bench.log if isinstance(h.effect, Disconnect)] == [
        "coordinator"
    ]
    assert any("Rediscovery will be attempted" in s for s in bench.sentences())


def test_queued_requests_expire_unsent() -> None:
    """CN-01, CR-16: what could not be sent within its timeout fails with a retriable timeout."""
    bench = ClientBench()
    bench.start()
    client = bench.consumer.client
    failures: list[JavaError] = []
    client._mark_failed((7, "coordinator"))
    client._connections[7, "coordinator"].retry_at_ms = 1 << 40
    request = bench.take(JoinGroupRequest).request
    client.send((7, "coordinator"), request, lambda _answer: None, failures.append, 1_000)
    bench.advance(1_000)
    bench.order("wakeup")
    assert failures == []
    bench.advance(1)
    bench.order("wakeup")
    assert [(e.exception, e.retriable) for e in failures] == [("TimeoutException", True)]


def test_answers_wait_for_a_thread_that_polls() -> None:
    """CN-02: while the application is away an answer is handled on the heartbeat thread's next turn,
    100 ms after its last one, and not before.
    """
    bench = ClientBench(
        {"enable.auto.commit": False}, rates={"t": 1}, work={"processing_ms": 20_000}
    )
    bench.auto[HeartbeatRequest] = None
    bench.stable()
    bench.advance(4_030)  # a heartbeat left at 3 000
    bench.forget()
    answer = HeartbeatResponse(error_code=ErrorCode.ILLEGAL_GENERATION)
    bench.answer(bench.take(HeartbeatRequest), answer)
    assert bench.states() == []
    bench.advance(200)
    assert [
        (h.at_ms - 4_000) for h in bench.log if getattr(h.effect, "kind", "") == "client_state"
    ] == [100]


def test_inside_poll_answers_are_handled_at_once() -> None:
    """CN-02, CP-03: the application thread waits in the network client and handles what arrives."""
    bench = ClientBench({"enable.auto.commit": False})
    bench.auto[HeartbeatRequest] = None
    bench.stable()
    bench.advance(3_037)
    answer = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    bench.answer(bench.take(HeartbeatRequest), answer)
    assert [at for at, _ in bench.sent(JoinGroupRequest)] == [0, 3_037]


def test_wakeup_loses_no_answer() -> None:
    """CN-03, CJ-20: a wakeup while a JoinGroup is out leaves it pending; its answer is used and no
    second JoinGroup is sent.
    """
    bench = ClientBench(work={"on_error": "continue"})
    bench.start()
    bench.order("wakeup")
    assert [note.exception for note in bench.notes(AppRaised)] == ["WakeupException"]
    bench.join(("t", 0))
    assert len(bench.sent(JoinGroupRequest)) == 1
    assert bench.states()[-1] == "STABLE"


@pytest.mark.parametrize(
    ("code", "exception"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "TopicAuthorizationException"),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, "InvalidTopicException"),
    ],
)
def test_metadata_errors_are_thrown_by_poll(code: ErrorCode, exception: str) -> None:
    """CN-04: forbidden or invalid topics come out of the poll that meets them."""
    bench = ClientBench(work={"on_error": "continue"})
    bench.auto[MetadataRequest] = None
    bench.start()
    topic = MetadataResponseTopic(name="t", error_code=code)
    broker = MetadataResponseBroker(node_id=0, host="b-0", port=9092)
    answer = MetadataResponse(brokers=(broker,), topics=(topic,))
    bench.answer(bench.take(MetadataRequest), answer)
    assert [note.exception for note in bench.notes(AppRaised)] == [exception]


def test_scheduled_disconnect_fails_queued_requests() -> None:
    """CN-05: a disconnect that was asked for fails what is queued for the connection as well."""
    bench = ClientBench()
    bench.start()
    client = bench.consumer.client
    failures: list[JavaError] = []
    request = bench.take(JoinGroupRequest).request
    client.send((0, "coordinator"), request, lambda _answer: None, failures.append)
    client.disconnect_async((0, "coordinator"))
    bench.order("wakeup")
    assert [e.exception for e in failures] == ["DisconnectException"]
