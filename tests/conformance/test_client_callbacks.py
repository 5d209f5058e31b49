"""Completing a join, and the order of callbacks, eager and cooperative (CC)."""

from __future__ import annotations

import pytest

from groupsim.protocol.consumer_protocol import TopicPartition, decode_subscription
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from groupsim.testing.client import ClientBench
from groupsim_clients.assignors.base import AssignorFailure
from groupsim_clients.machine import AppRaised, CallbackNote, Ownership

QUIET = {"enable.auto.commit": False}
COOPERATIVE = {**QUIET, "partition.assignment.strategy": "cooperative-sticky"}
CONTINUE = {"on_error": "continue"}
P0, P1 = ("t", 0), ("t", 1)


def cooperative(*partitions: tuple[str, int], **options: object) -> ClientBench:
    """A stable cooperative member with these partitions; heartbeats say that the group rebalances."""
    bench = ClientBench(COOPERATIVE, **{"work": CONTINUE, **options})  # type: ignore[arg-type]
    bench.stable(*partitions, protocol="cooperative-sticky")
    return bench


def rebalance(bench: ClientBench) -> None:
    """The member hears of a rebalance and joins."""
    bench.auto[HeartbeatRequest] = lambda _r: HeartbeatResponse(
        error_code=ErrorCode.REBALANCE_IN_PROGRESS
    )
    bench.advance(3_000)
    bench.auto[HeartbeatRequest] = lambda _request: HeartbeatResponse()


def rejoin(bench: ClientBench, *partitions: tuple[str, int], generation_id: int = 2) -> None:
    """Answer the open JoinGroup and its SyncGroup."""
    bench.join(*partitions, generation_id=generation_id, protocol="cooperative-sticky")


def raised(bench: ClientBench) -> list[str]:
    """The exceptions that the application saw."""
    return [note.exception for note in bench.notes(AppRaised)]


def owned_sent(bench: ClientBench) -> list[tuple[TopicPartition, ...]]:
    """Owned partitions in every JoinGroup so far."""
    return [
        decode_subscription(join.protocols[0].metadata).owned_partitions
        for _, join in bench.sent(JoinGroupRequest)
    ]


def test_callbacks_see_the_new_group_metadata() -> None:
    """CC-01: published before any callback; the follower forgets its assignment snapshot."""
    bench = ClientBench(QUIET, work={"on_assigned_ms": 1_000})
    bench.start()
    bench.coordinator.assignment_snapshot = bench.coordinator.metadata_snapshot
    bench.join(P0, generation_id=6)
    assert bench.coordinator.group_metadata.generation_id == 6
    assert bench.notes(CallbackNote)[-1].phase == "started"
    assert bench.coordinator.assignment_snapshot is None


def test_group_picked_an_unknown_assignor() -> None:
    """CC-01: an illegal state."""
    bench = ClientBench({**QUIET, "partition.assignment.strategy": "range"}, work=CONTINUE)
    bench.start()
    bench.join(P0, protocol="sticky")
    assert raised(bench) == ["IllegalStateException"]


@pytest.mark.parametrize("assignment", [b"", b"\0"])
def test_too_few_bytes(assignment: bytes) -> None:
    """CC-02, W-04: a leader that leaves a member out makes that member fail here."""
    bench = ClientBench(QUIET, work=CONTINUE)
    bench.start()
    bench.answer(bench.take(JoinGroupRequest), bench.joined())
    bench.answer(bench.take(SyncGroupRequest), SyncGroupResponse(assignment=assignment))
    assert raised(bench) == ["IllegalStateException"]
    assert "insufficient bytes" in bench.notes(AppRaised)[0].detail


def test_assignment_outside_the_subscription() -> None:
    """CC-03: no callback, assignor not told, assignment unchanged; a rejoin at once."""
    told: list[object] = []
    bench = ClientBench(QUIET)
    bench.start()
    bench.coordinator.assignors[0].on_assignment = lambda *args: told.append(args)
    bench.join(("u", 0))
    assert "assigned" not in {note.callback for note in bench.notes(CallbackNote)}
    assert told == []
    assert bench.machine.owned() == ()
    join = bench.sent(JoinGroupRequest)[-1][1]
    assert join.reason == "received assignment does not match the current subscription"


def test_assignment_outside_the_pattern() -> None:
    """CC-03: with a pattern it is the pattern that counts, not the topics it had matched."""
    bench = ClientBench(QUIET, pattern="o.*", topics={"o1": 1})
    bench.start()
    bench.advance(500)
    bench.join(("x", 0))
    assert bench.changes() == [("revoked", ())]
    assert len(bench.sent(JoinGroupRequest)) == 2


def test_added_is_sorted_and_only_what_is_new() -> None:
    """CC-04: topic, then partition."""
    bench = cooperative(P1)
    rebalance(bench)
    rejoin(bench, P1, P0)
    assert bench.changes() == [("assigned", (P1,)), ("assigned", (P0,))]


def test_revoked_while_the_old_assignment_is_in_place() -> None:
    """CC-05, CC-09: during the callback everything is still owned; what stays keeps its position."""
    bench = cooperative(P0, P1, work={"on_revoked_ms": 1_000})
    bench.consumer.subscriptions.assignment[TopicPartition(*P0)].position = 42
    bench.consumer.pause([TopicPartition(*P0)])
    rebalance(bench)
    rejoin(bench, P0)
    assert bench.machine.owned() == (P0, P1)
    bench.advance(1_000)
    assert bench.machine.owned() == (P0,)
    state = bench.consumer.subscriptions.assignment[TopicPartition(*P0)]
    assert (state.position, state.paused) == (42, True)


def test_pattern_topics_of_the_leader_are_accepted() -> None:
    """CC-06: added to the subscription and to the joined one, so that no rejoin follows from it."""
    bench = ClientBench(QUIET, pattern="o.*", topics={"o1": 1})
    bench.start()
    bench.advance(500)
    bench.answer(bench.take(JoinGroupRequest), bench.joined())
    bench.advance(50)
    bench.world.topics["o2"] = 1  # the leader knows it already
    bench.sync(("o1", 0), ("o2", 0))
    assert bench.changes() == [("assigned", (("o1", 0), ("o2", 0)))]
    assert bench.coordinator.joined_subscription == {"o1", "o2"}
    bench.advance(10_000)
    assert len(bench.sent(JoinGroupRequest)) == 1


def test_assignor_is_told() -> None:
    """CC-07: its own hook gets the assignment and the generation."""
    told: list[tuple[object, int]] = []
    bench = ClientBench(QUIET)
    bench.start()
    bench.coordinator.assignors[0].on_assignment = lambda assignment, generation: told.append(
        (assignment.partitions, generation)
    )
    bench.join(P0, generation_id=4)
    assert told == [((P0,), 4)]


def test_auto_commit_timer_restarts() -> None:
    """CC-08: counted from the completed join."""
    bench = ClientBench({"auto.commit.interval.ms": 5_000})
    bench.start()
    bench.advance(4_900)
    bench.join(P0)
    bench.advance(4_999)
    assert bench.sent(OffsetCommitRequest) == []


def test_assigned_is_always_called() -> None:
    """CC-10: even with nothing new; eager members get everything as new."""
    bench = cooperative(P0)
    rebalance(bench)
    rejoin(bench, P0)
    assert bench.changes() == [("assigned", (P0,)), ("assigned", ())]
    eager = ClientBench(QUIET)
    eager.stable(P0)
    rebalance(eager)
    eager.join(P0, generation_id=2)
    assert eager.changes() == [("assigned", (P0,)), ("revoked", (P0,)), ("assigned", (P0,))]


def test_first_exception_is_thrown_after_all_have_run() -> None:
    """CC-11: revoked's exception, although assignor and assigned failed, too; all three ran."""
    raises = {
        "on_revoked": "FirstException",
        "on_assigned": {"exception": "ThirdException", "nth": 2},
    }
    bench = cooperative(P0, P1, work={**CONTINUE, "raises": raises})

    def broken(*_args: object) -> None:
        raise AssignorFailure("SecondException", "hook")

    bench.coordinator.assignors[0].on_assignment = broken
    rebalance(bench)
    rejoin(bench, P0)
    assert raised(bench)[0] == "KafkaException"
    assert "FirstException" in bench.notes(AppRaised)[0].detail
    phases = [(note.callback, note.phase) for note in bench.notes(CallbackNote)]
    assert ("assigned", "raised") in phases
    assert ("revoked", "raised") in phases


def test_kafka_exceptions_are_thrown_as_they_are() -> None:
    """CC-11: others are wrapped."""
    for given, seen in (
        ("CommitFailedException", "CommitFailedException"),
        ("Oops", "KafkaException"),
    ):
        raises = {"on_assigned": {"exception": given, "nth": 1}}
        bench = ClientBench(QUIET, work={**CONTINUE, "raises": raises})
        bench.start()
        bench.join(P0)
        assert raised(bench) == [seen]


def test_wakeup_aborts_the_completion_on_the_spot() -> None:
    """CC-11, CR-21: revoked was woken: no assigned callback, assignment unchanged; repeated later."""
    bench = cooperative(
        P0,
        P1,
        work={**CONTINUE, "raises": {"on_revoked": {"exception": "WakeupException", "nth": 1}}},
    )
    rebalance(bench)
    rejoin(bench, P0)
    assert raised(bench) == ["WakeupException"]
    callbacks = [(n.callback, n.phase) for n in bench.notes(CallbackNote)]
    assert callbacks[2:] == [
        ("revoked", "started"),
        ("revoked", "raised"),
        ("revoked", "started"),
        ("revoked", "finished"),
        ("assigned", "started"),
        ("assigned", "finished"),
    ]
    assert len(bench.sent(SyncGroupRequest)) == 2


def test_two_rounds_for_the_loser() -> None:
    """CC-20, CC-21, CC-05: revoked, assigned nothing, and the second JoinGroup at the same time, without
    the partition.
    """
    bench = cooperative(P0, P1)
    rebalance(bench)
    bench.forget()
    rejoin(bench, P0)
    assert bench.changes() == [("revoked", (P1,)), ("assigned", ())]
    at_ms, join = bench.sent(JoinGroupRequest)[0]
    assert (at_ms, join.reason) == (3_000, "need to revoke partitions and re-join")
    assert owned_sent(bench) == [(P0,)]
    rejoin(bench, P0, generation_id=3)
    assert bench.changes()[2:] == [("assigned", ())]
    assert bench.states()[-1] == "STABLE"


def test_two_rounds_for_the_winner() -> None:
    """CC-20: nothing new in the first round, the partition in the second."""
    bench = ClientBench(COOPERATIVE)
    bench.start()
    rejoin(bench, generation_id=2)
    rebalance(bench)
    rejoin(bench, P1, generation_id=3)
    assert bench.changes() == [("assigned", ()), ("assigned", (P1,))]


def test_second_round_has_its_own_prepare_step() -> None:
    """CC-21, CJ-12: with auto-commit a commit comes before the second JoinGroup."""
    bench = ClientBench(
        {"partition.assignment.strategy": "cooperative-sticky", "auto.commit.interval.ms": 60_000}
    )
    bench.stable(P0, P1, protocol="cooperative-sticky")
    rebalance(bench)
    bench.forget()
    rejoin(bench, P0)
    kinds = [type(h.effect.request) for h in bench.log if hasattr(h.effect, "request")]
    assert kinds == [SyncGroupRequest, OffsetCommitRequest, JoinGroupRequest]


def test_lost_comes_from_the_application_thread_only() -> None:
    """CC-22: the reset happens in the heartbeat thread, the callback when the application polls."""
    bench = ClientBench(QUIET, rates={"t": 1_000}, work={"processing_ms": 9_000})
    bench.auto[HeartbeatRequest] = lambda _r: HeartbeatResponse(
        error_code=ErrorCode.UNKNOWN_MEMBER_ID
    )
    bench.stable()
    bench.advance(8_900)
    assert bench.states()[-1] == "UNJOINED"
    assert [change for change, _ in bench.changes()] == ["assigned"]
    bench.advance(200)
    assert [change for change, _ in bench.changes()] == ["assigned", "lost"]


@pytest.mark.parametrize(("on_lost_ms", "at_ms"), [(None, 3_000 + 700), (50, 3_000 + 50)])
def test_lost_delegates_to_revoked(on_lost_ms: int | None, at_ms: int) -> None:
    """CC-23: without an on_lost of its own the application's on_revoked runs, with its 700 ms."""
    work: dict[str, object] = {"on_revoked_ms": 700}
    if on_lost_ms is not None:
        work["on_lost_ms"] = on_lost_ms
    bench = ClientBench(QUIET, work=work)
    bench.auto[HeartbeatRequest] = lambda _r: HeartbeatResponse(
        error_code=ErrorCode.UNKNOWN_MEMBER_ID
    )
    bench.stable()
    bench.advance(5_000)
    assert bench.sent(JoinGroupRequest)[-1][0] == at_ms


def test_order_of_callbacks_eager() -> None:
    """CC-24: revoked{all} before the JoinGroup, assigned{all} after the SyncGroup."""
    bench = ClientBench(QUIET)
    bench.stable(P0, P1)
    bench.forget()
    rebalance(bench)
    bench.join(P1, generation_id=2)
    order = [
        h.effect.change if isinstance(h.effect, Ownership) else type(h.effect.request).__name__
        for h in bench.log
        if isinstance(h.effect, Ownership) or hasattr(h.effect, "request")
    ]
    assert order[1:5] == ["revoked", "JoinGroupRequest", "SyncGroupRequest", "assigned"]


def test_order_of_callbacks_cooperative() -> None:
    """CC-24: unsubscribed topics before the JoinGroup; the difference after the SyncGroup."""
    bench = ClientBench(COOPERATIVE, topics={"t": 2, "u": 1}, subscribe=("t", "u"))
    bench.stable(P0, P1, ("u", 0), protocol="cooperative-sticky")
    bench.forget()
    bench.order("subscribe", topics=("t",))
    assert bench.changes() == [("revoked", (("u", 0),))]
    assert owned_sent(bench) == [(P0, P1)]
    rejoin(bench, P0)
    assert bench.changes()[1:] == [("revoked", (P1,)), ("assigned", ())]


def test_cooperative_subscription_change() -> None:
    """CC-25: t1 → t2: revoked before the JoinGroup, nothing owned in it, no second round."""
    bench = ClientBench(COOPERATIVE, topics={"t": 2, "u": 1})
    bench.stable(P0, P1, protocol="cooperative-sticky")
    bench.order("subscribe", topics=("u",))
    assert bench.changes()[1:] == [("revoked", (P0, P1))]
    assert owned_sent(bench)[-1] == ()
    rejoin(bench, ("u", 0))
    bench.advance(1_000)
    assert len(bench.sent(JoinGroupRequest)) == 2


@pytest.mark.parametrize("where", ["join", "sync"])
def test_cooperative_loss_of_membership(where: str) -> None:
    """CC-26, CS-25: lost{all}, then a JoinGroup that owns nothing with generation −1; the member id is
    gone after UNKNOWN_MEMBER_ID on JoinGroup and kept after ILLEGAL_GENERATION on SyncGroup.
    """
    bench = cooperative(P0, P1)
    rebalance(bench)
    if where == "join":
        answer = JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        bench.answer(bench.take(JoinGroupRequest), answer)
    else:
        joined = bench.joined(generation_id=2, protocol="cooperative-sticky")
        bench.answer(bench.take(JoinGroupRequest), joined)
        refused = SyncGroupResponse(error_code=ErrorCode.ILLEGAL_GENERATION)
        bench.answer(bench.take(SyncGroupRequest), refused)
    assert bench.changes()[1:] == [("lost", (P0, P1))]
    join = bench.sent(JoinGroupRequest)[-1][1]
    subscription = decode_subscription(join.protocols[0].metadata)
    assert (subscription.owned_partitions, subscription.generation_id) == ((), -1)
    assert join.member_id == ("" if where == "join" else "m-1")


def test_eager_loss_of_membership_has_nothing_to_lose() -> None:
    """CC-26: everything was revoked before the JoinGroup."""
    bench = ClientBench(QUIET)
    bench.stable(P0)
    rebalance(bench)
    answer = JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    bench.answer(bench.take(JoinGroupRequest), answer)
    assert [change for change, _ in bench.changes()] == ["assigned", "revoked"]


def test_heartbeats_go_on_while_a_callback_runs() -> None:
    """CC-22, CH-12: a revoked callback of 20 s costs no session; a poll interval shorter than it does."""
    bench = ClientBench(QUIET, work={"on_revoked_ms": 20_000})
    bench.stable()
    rebalance(bench)
    bench.advance(19_000)
    assert len(bench.sent(HeartbeatRequest)) == 7
    short = ClientBench({**QUIET, "max.poll.interval.ms": 10_000}, work={"on_revoked_ms": 20_000})
    short.stable()
    rebalance(short)
    short.advance(19_000)
    assert len(short.sent(LeaveGroupRequest)) == 1
