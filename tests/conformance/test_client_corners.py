"""Corners of the client: metadata that fails, commits that wait, brokers that are gone."""

from __future__ import annotations

import pytest

from groupsim.protocol.consumer_protocol import Subscription, TopicPartition, encode_subscription
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from groupsim.testing.client import ClientBench, commit_answer
from groupsim_clients.errors import JavaError
from groupsim_clients.machine import ANY_NODE, AppRaised, CommitNote
from groupsim_clients.timing import Timer

QUIET = {"enable.auto.commit": False}
CONTINUE = {"on_error": "continue"}


def test_a_starting_broker_knows_no_brokers() -> None:
    """CN-04: an answer without brokers is a failed update, asked for again after the backoff."""
    bench = ClientBench(QUIET)
    bench.auto[MetadataRequest] = lambda _request: MetadataResponse()
    bench.stable()
    bench.advance(1_400)
    times = [at for at, _ in bench.sent(MetadataRequest)]
    assert times == [0, 100, 300, 700]


def test_topics_that_do_not_exist_are_asked_for_again() -> None:
    """CP-09: UNKNOWN_TOPIC_OR_PARTITION means stale metadata; answers that bring nothing new back off."""
    bench = ClientBench(QUIET, subscribe=("t", "missing"))
    bench.stable()
    bench.advance(2_500)
    times = [at for at, _ in bench.sent(MetadataRequest)]
    assert 4 <= len(times) <= 8
    bench.world.topics["missing"] = 1
    bench.advance(2_000)
    bench.forget()
    bench.advance(10_000)
    assert bench.sent(MetadataRequest) == []


def test_metadata_lost_on_the_way() -> None:
    """CN-01, CJ-09: a connection that breaks under the Metadata request is a failed update; the other
    connection does not care.
    """
    bench = ClientBench({**QUIET, "metadata.max.age.ms": 10_000})
    bench.stable()
    bench.auto[MetadataRequest] = None
    bench.advance(10_000)
    bench.break_connection(ANY_NODE, "bootstrap")
    bench.auto[MetadataRequest] = bench.metadata
    bench.advance(2_000)
    assert len(bench.sent(MetadataRequest)) == 3
    assert bench.states()[-1] == "STABLE"


def test_metadata_request_times_out() -> None:
    """CN-01: after request.timeout.ms the connection is closed and the request repeated."""
    bench = ClientBench({**QUIET, "metadata.max.age.ms": 10_000, "request.timeout.ms": 2_000})
    bench.stable()
    bench.auto[MetadataRequest] = None
    bench.advance(15_000)
    assert [at for at, _ in bench.sent(MetadataRequest)][1:3] == [10_000, 12_101]


def test_another_broker_is_tried_at_once() -> None:
    """CJ-02, CN-06: with several brokers known, one lost bootstrap connection needs no backoff."""
    bench = ClientBench(QUIET)
    bench.world.racks["t"] = ("a", "b")  # three brokers in the metadata
    bench.stable()
    bench.break_connection(ANY_NODE, "bootstrap")
    assert bench.consumer.client.least_loaded_node() == ANY_NODE
    for _ in range(2):
        bench.break_connection(ANY_NODE, "bootstrap")
    assert bench.consumer.client.least_loaded_node() is None
    bench.advance(1_000)
    assert bench.consumer.client.least_loaded_node() == ANY_NODE


def test_empty_sync_commit_waits_for_the_asynchronous_ones() -> None:
    """CO-07: their callbacks have run when it returns."""
    bench = ClientBench(QUIET)
    bench.auto[OffsetCommitRequest] = None
    bench.stable()
    seen: list[object] = []
    bench.consumer.commit_async(lambda _o, error: seen.append(error), {TopicPartition("t", 0): 1})
    steps = bench.coordinator.offsets.commit_sync({}, Timer(bench.coordinator.ctx, 5_000))
    next(steps)
    correlation_id, pending = list(bench.consumer.client.in_flight.items())[-1]
    answer = commit_answer(pending.request, ErrorCode.NONE)
    bench.consumer.client.inbox.append((correlation_id, answer))
    with pytest.raises(StopIteration) as end:
        next(steps)
    assert end.value.value is True
    assert seen == [None]


def test_close_waits_for_commits_behind_a_lookup() -> None:
    """CL-06: a commit that waits for the coordinator is sent before the LeaveGroup."""
    bench = ClientBench({"auto.commit.interval.ms": 60_000})
    bench.stable()
    bench.auto[FindCoordinatorRequest] = None
    bench.coordinator.coordinator = None
    bench.order("commit", mode="async")
    bench.order("close", timeout_ms=10_000)
    assert bench.exited is None
    bench.advance(500)
    for send in bench.opened(FindCoordinatorRequest):
        bench.answer(send, bench.found(send.request))
    bench.advance(2_000)
    assert bench.exited == "closed"
    assert {note.mode for note in bench.notes(CommitNote)} >= {"async", "close"}
    assert len(bench.sent(LeaveGroupRequest)) == 1


def test_async_commit_whose_lookup_fails() -> None:
    """CO-07: the failure of the lookup reaches the callback, wrapped."""
    bench = ClientBench(QUIET, work=CONTINUE)
    bench.stable()
    bench.auto[FindCoordinatorRequest] = None
    bench.coordinator.coordinator = None
    bench.order("commit", mode="async")
    send = bench.take(FindCoordinatorRequest)
    bench.disconnect(send)
    bench.advance(300)
    assert ("async", "DisconnectException") in [
        (note.mode, note.outcome) for note in bench.notes(CommitNote)
    ]


def test_sync_with_the_coordinator_gone() -> None:
    """CS-28, CJ-21: the coordinator is lost while the leader waits for metadata; its SyncGroup fails at
    once and everything starts again from JoinGroup.
    """
    bench = ClientBench(QUIET, topics={"t": 1, "u": 1})
    bench.start()
    bench.auto[MetadataRequest] = None
    members = [
        JoinGroupResponseMember(
            member_id=name, metadata=encode_subscription(Subscription(topics=(topic,)))
        )
        for name, topic in (("m-1", "t"), ("m-2", "u"))
    ]
    bench.answer(bench.take(JoinGroupRequest), bench.joined(leader="m-1", members=members))
    bench.break_connection(0, "coordinator")
    bench.auto[MetadataRequest] = bench.metadata
    send = bench.take(MetadataRequest)
    bench.coordinator_node = 1
    bench.answer(send, bench.metadata(send.request))
    bench.advance(1_000)
    assert bench.sent(SyncGroupRequest) == []
    assert bench.take(JoinGroupRequest).node_id == 1


def test_undecodable_assignment() -> None:
    """CC-02, W-02: enough bytes, but nonsense."""
    bench = ClientBench(QUIET, work=CONTINUE)
    bench.start()
    bench.answer(bench.take(JoinGroupRequest), bench.joined())
    bench.answer(bench.take(SyncGroupRequest), SyncGroupResponse(assignment=b"\0\1\7"))
    assert [note.exception for note in bench.notes(AppRaised)] == ["SchemaException"]


def test_pause_flag_ends_with_the_assignment() -> None:
    """CC-09, CJ-15: what is revoked comes back unpaused, and Java says so."""
    bench = ClientBench(QUIET)
    bench.stable()
    bench.order("pause_work")
    bench.order("enforce_rebalance")
    bench.join(("t", 0), generation_id=2)
    assert any("The pause flag in partitions [t-0] will be removed" in s for s in bench.sentences())
    assert not bench.consumer.subscriptions.assignment[TopicPartition("t", 0)].paused


@pytest.mark.parametrize(
    ("call", "exception"),
    [
        (lambda c: c.subscribe([" "]), "IllegalArgumentException"),
        (lambda c: c.subscribe_pattern(""), "IllegalArgumentException"),
        (lambda c: c.subscribe_pattern("("), "PatternSyntaxException"),
        (lambda c: c.assign([TopicPartition("t", 0)]), "IllegalStateException"),
    ],
)
def test_wrong_calls(call: object, exception: str) -> None:
    """CL-09, CL-10: arguments that Java refuses, and another kind of subscription."""
    bench = ClientBench(QUIET)
    bench.stable()
    with pytest.raises(JavaError) as caught:
        for _ in call(bench.consumer) or ():  # type: ignore[operator]
            pass
    assert caught.value.exception == exception


def test_assigning_nothing_is_unsubscribing() -> None:
    """CL-09: an empty list of partitions."""
    bench = ClientBench(QUIET)
    bench.stable()
    for _ in bench.consumer.assign([]):
        pass
    assert bench.consumer.subscriptions.kind == "none"
    assert bench.coordinator.generation == (-1, "", None)


def test_a_long_pause_of_the_process() -> None:
    """CH-06: 100 s frozen: on waking the session has expired locally; the coordinator is looked up again
    and the next heartbeat asks whether we are still a member.
    """
    bench = ClientBench(QUIET)
    bench.stable()
    bench.advance(5_000)
    bench.now_ms = 105_000
    bench.forget()
    bench._collect(bench.machine.wake(bench.now_ms))
    bench.advance(200)
    assert any("session timed out" in s for s in bench.sentences())
    assert len(bench.sent(HeartbeatRequest)) == 1
    assert bench.states() == []
    assert bench.sent(LeaveGroupRequest) == []


def test_leader_answer_handled_by_a_flush() -> None:
    """CN-02, CS-05: the answer is found by the flush of an asynchronous commit, in the middle of which the
    leader has to wait for metadata; it goes on with the application's next poll.
    """
    bench = ClientBench(
        QUIET, topics={"t": 1, "u": 1}, work={"poll_timeout_ms": 100, "poll_interval_ms": 10_000}
    )
    bench.start()
    bench.advance(5_000)  # between two polls
    members = [
        JoinGroupResponseMember(
            member_id=name, metadata=encode_subscription(Subscription(topics=(topic,)))
        )
        for name, topic in (("m-1", "t"), ("m-2", "u"))
    ]
    bench.answer(bench.take(JoinGroupRequest), bench.joined(leader="m-1", members=members))
    assert bench.states() == ["PREPARING_REBALANCE"]
    bench.order("commit", mode="async")
    assert bench.states()[-1] == "COMPLETING_REBALANCE"
    bench.advance(10_000)
    assert len(bench.take(SyncGroupRequest).request.assignments) == 2
