"""The coordinator's part of poll, and who rejoins when (CP)."""

from __future__ import annotations

import pytest

from groupsim.protocol.consumer_protocol import (
    Subscription,
    decode_subscription,
    encode_subscription,
)
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    MetadataRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from groupsim.testing.client import ClientBench
from groupsim_clients.machine import AppRaised, PollNote

QUIET = {"enable.auto.commit": False}
CONTINUE = {"on_error": "continue"}


def joins(bench: ClientBench) -> list[tuple[int, JoinGroupRequest]]:
    """All JoinGroups so far."""
    return bench.sent(JoinGroupRequest)


def leader(bench: ClientBench, *topics: str, **config: object) -> None:
    """Start, lead a group of oneself and of a member with these topics, become stable."""
    bench.start()
    members = [
        JoinGroupResponseMember(
            member_id=member_id, metadata=encode_subscription(Subscription(topics=names))
        )
        for member_id, names in (("m-1", ("t",)), ("m-2", topics or ("t",)))
    ]
    answer = bench.joined(leader="m-1", members=members)
    bench.answer(bench.take(JoinGroupRequest), answer)
    bench.sync(("t", 0))


def test_periodic_commit_comes_last_and_only_if_poll_did_not_return_early() -> None:
    """CP-01, CO-08: while a join is out the periodic commit is skipped."""
    bench = ClientBench({"auto.commit.interval.ms": 5_000})
    bench.stable()
    bench.advance(5_000)
    assert len(bench.sent(OffsetCommitRequest)) == 1
    bench.auto[HeartbeatRequest] = lambda _r: HeartbeatResponse(
        error_code=ErrorCode.REBALANCE_IN_PROGRESS
    )
    bench.advance(1_000)  # the heartbeat at 6 000; the prepare step commits once more
    assert bench.opened(JoinGroupRequest)
    bench.advance(30_000)
    assert len(bench.sent(OffsetCommitRequest)) == 2


def test_poll_timer_restarts_while_the_coordinator_is_unknown() -> None:
    """CP-01, CH-05: polling is what counts, not success."""
    bench = ClientBench({**QUIET, "max.poll.interval.ms": 20_000})
    bench.stable()
    bench.auto[FindCoordinatorRequest] = None
    bench.break_connection(0, "coordinator")
    bench.advance(60_000)
    assert bench.coordinator.heartbeat.poll_deadline_ms > 60_000
    assert bench.states()[-1] == "STABLE"


def test_lookup_takes_the_whole_timeout() -> None:
    """CP-02: poll(10 s) waits for the lookup for its ten seconds and then returns nothing."""
    bench = ClientBench(QUIET, work={"poll_timeout_ms": 10_000, "poll_interval_ms": 1_000_000})
    bench.auto[FindCoordinatorRequest] = None
    bench.start()
    bench.advance(9_999)
    send = bench.take(FindCoordinatorRequest)
    bench.answer(send, bench.found(send.request))
    assert len(joins(bench)) == 1

    late = ClientBench(QUIET, work={"poll_timeout_ms": 10_000, "poll_interval_ms": 1_000_000})
    late.auto[FindCoordinatorRequest] = None
    late.start()
    late.advance(10_000)
    send = late.take(FindCoordinatorRequest)
    late.answer(send, late.found(send.request))
    assert joins(late) == []


def test_join_progresses_in_steps_of_polls() -> None:
    """CP-03, CJ-10: each poll goes a step further; none waits for the join."""
    bench = ClientBench(QUIET, work={"poll_timeout_ms": 100, "poll_interval_ms": 400})
    bench.start()
    bench.advance(150)  # between two polls
    bench.answer(bench.take(JoinGroupRequest), bench.joined())
    assert bench.sent(SyncGroupRequest) == []
    bench.advance(400)
    assert len(bench.sent(SyncGroupRequest)) == 1
    bench.advance(50)
    bench.sync(("t", 0))
    bench.advance(1_000)
    assert bench.states()[-1] == "STABLE"


def test_cooperative_members_go_on_reading_during_a_rebalance() -> None:
    """CP-03, CJ-16: records come out of poll while a JoinGroup is out."""
    bench = ClientBench(
        {**QUIET, "partition.assignment.strategy": "cooperative-sticky"},
        rates={"t": 1},
        work={"processing_ms": 1_500},
    )
    bench.auto[HeartbeatRequest] = lambda _r: HeartbeatResponse(
        error_code=ErrorCode.REBALANCE_IN_PROGRESS
    )
    bench.stable(protocol="cooperative-sticky")
    bench.advance(5_000)
    assert bench.opened(JoinGroupRequest)
    before = len(bench.notes(PollNote))
    bench.advance(5_000)
    assert len(bench.notes(PollNote)) > before


def test_no_group_subscription_no_rejoin() -> None:
    """CP-04, CO-02: a manual assignment never joins."""
    from groupsim.protocol.consumer_protocol import TopicPartition

    bench = ClientBench(QUIET, subscribe=())
    bench.start()
    for _ in bench.consumer.assign([TopicPartition("t", 1)]):
        pass
    bench.order("set_work", poll_timeout_ms=500)
    bench.advance(10_000)
    assert joins(bench) == []
    assert bench.coordinator.rejoin_needed_or_pending() is False
    assert bench.machine.owned() == (("t", 1),)


def test_leader_rejoins_when_partitions_are_added() -> None:
    """CP-05: noticed with the next metadata, at most metadata.max.age.ms later."""
    bench = ClientBench({**QUIET, "metadata.max.age.ms": 30_000})
    leader(bench)
    bench.advance(10_000)
    bench.world.topics["t"] = 4
    bench.advance(19_999)
    assert len(joins(bench)) == 1
    bench.advance(1)
    at_ms, join = joins(bench)[-1]
    assert (at_ms, join.reason) == (30_000, "cached metadata has changed")


def test_followers_do_not_watch_partition_counts() -> None:
    """CP-05: only the leader."""
    bench = ClientBench({**QUIET, "metadata.max.age.ms": 30_000})
    bench.stable()
    bench.world.topics["t"] = 4
    bench.advance(100_000)
    assert len(joins(bench)) == 1


@pytest.mark.parametrize(("rack", "rejoins"), [("a", 2), (None, 1)])
def test_racks_count_only_for_a_client_with_a_rack(rack: str | None, rejoins: int) -> None:
    """CP-05: the racks of the replicas changed."""
    config = {**QUIET, "metadata.max.age.ms": 30_000}
    bench = ClientBench(config if rack is None else {**config, "client.rack": rack})
    bench.world.racks["t"] = ("a", "b")
    leader(bench)
    bench.world.racks["t"] = ("b", "b")
    bench.advance(31_000)
    assert len(joins(bench)) == rejoins


def test_subscription_change_rejoins() -> None:
    """CP-06: any member, compared with what the last JoinGroup said."""
    bench = ClientBench(QUIET, topics={"t": 1, "u": 1})
    bench.stable()
    bench.order("subscribe", topics=("t", "u"))
    subscription = decode_subscription(joins(bench)[-1][1].protocols[0].metadata)
    assert subscription.topics == ("t", "u")
    assert joins(bench)[-1][1].reason == "subscription has changed"


def test_reasons_are_not_overwritten_by_comparison() -> None:
    """CP-05, CP-06 (1.6): the reasons of metadata and subscription are written only if no rejoin was
    wanted already.
    """
    bench = ClientBench(QUIET, topics={"t": 1, "u": 1}, work={"poll_interval_ms": 60_000})
    bench.stable()
    bench.coordinator.request_rejoin("mine")
    bench.order("subscribe", topics=("u",))
    assert joins(bench)[-1][1].reason == "mine"


def test_rejoin_wanted_or_pending() -> None:
    """CP-07: nothing changed, but a rejoin is wanted, or a future is pending."""
    bench = ClientBench(QUIET)
    bench.stable()
    assert not bench.coordinator.rejoin_needed_or_pending()
    bench.coordinator.rejoin_needed = True
    assert bench.coordinator.rejoin_needed_or_pending()
    bench.order("enforce_rebalance")
    bench.coordinator.rejoin_needed = False
    assert bench.coordinator.rejoin_needed_or_pending()


def test_pattern_waits_for_metadata_before_joining() -> None:
    """CP-08: metadata is refreshed and the pattern evaluated before the JoinGroup."""
    bench = ClientBench(QUIET, pattern="orders-.*", topics={"orders-eu": 1, "orders-us": 1, "x": 1})
    bench.auto[MetadataRequest] = None
    bench.start()
    bench.advance(3_000)
    assert joins(bench) == []
    while bench.opened(MetadataRequest):
        send = bench.take(MetadataRequest)
        assert send.request.topics is None
        bench.answer(send, bench.metadata(send.request))
        bench.advance(200)
    subscription = decode_subscription(joins(bench)[0][1].protocols[0].metadata)
    assert subscription.topics == ("orders-eu", "orders-us")


def test_new_matching_topic_rejoins() -> None:
    """CP-08, CP-06: found with the next metadata by whoever refreshes first."""
    bench = ClientBench({**QUIET, "metadata.max.age.ms": 30_000}, pattern="o.*", topics={"o1": 1})
    bench.start()
    bench.advance(1_000)
    bench.join(("o1", 0))
    bench.world.topics["o2"] = 1
    bench.world.topics["__o3"] = 1
    bench.advance(31_500)
    subscription = decode_subscription(joins(bench)[-1][1].protocols[0].metadata)
    assert subscription.topics == ("o1", "o2")


def test_joins_with_nothing_to_read() -> None:
    """CP-09: a pattern that matches nothing, or a topic that does not exist."""
    for bench in (
        ClientBench(QUIET, pattern="nothing.*", topics={"t": 1}),
        ClientBench(QUIET, topics={}, subscribe=("missing",)),
    ):
        bench.start()
        bench.advance(1_000)
        assert len(joins(bench)) == 1


def test_leader_watches_the_topics_of_the_group() -> None:
    """CP-10: until the next prepare step also topics it does not read itself."""
    bench = ClientBench({**QUIET, "metadata.max.age.ms": 10_000}, topics={"t": 1, "u": 1})
    leader(bench, "u")
    assert bench.consumer.subscriptions.metadata_topics() == {"t", "u"}
    bench.world.topics["u"] = 2
    bench.advance(11_000)
    assert joins(bench)[-1][1].reason == "cached metadata has changed"
    assert bench.consumer.subscriptions.metadata_topics() == {"t"}


@pytest.mark.parametrize(
    ("given", "sent"),
    [(None, "rebalance enforced by user"), ("deploy", "deploy"), ("x" * 300, "x" * 255)],
)
def test_forced_rebalance(given: str | None, sent: str) -> None:
    """CP-11, CJ-22: the default text, the user's, cut to 255 characters."""
    bench = ClientBench(QUIET)
    bench.stable()
    bench.order("enforce_rebalance", reason=given)
    assert joins(bench)[-1][1].reason == sent


def test_wait_bound_of_a_poll() -> None:
    """CP-12: an idle joined member sleeps until its next heartbeat or auto-commit; a member that is not
    joined has no heartbeat to wake for; nothing pending means retry.backoff.ms.
    """
    bench = ClientBench({"auto.commit.interval.ms": 2_000})
    bench.start()
    bench.answer(
        bench.take(JoinGroupRequest), JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)
    )
    bench.coordinator_node = 1
    bench.advance(1_000)
    assert len(joins(bench)) == 2
    bench.join(("t", 0))
    assert bench.machine.next_wake_ms() == bench.now_ms + 2_000
    bench.advance(2_000)
    assert bench.machine.next_wake_ms() == bench.now_ms + 1_000


def test_positions_missing_are_asked_for_again() -> None:
    """CP-12, CO-10: an OffsetFetch that fails retriably is repeated with exponential backoff."""
    from groupsim.protocol.messages import (
        OffsetFetchRequest,
        OffsetFetchResponse,
        OffsetFetchResponseGroup,
    )

    bench = ClientBench(QUIET, work={"poll_timeout_ms": 60_000})
    group = OffsetFetchResponseGroup(
        group_id="g", error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    )
    bench.auto[OffsetFetchRequest] = lambda _request: OffsetFetchResponse(groups=(group,))
    bench.stable()
    bench.advance(1_600)
    assert [at for at, _ in bench.sent(OffsetFetchRequest)] == [0, 100, 300, 700, 1_500]


def test_polling_without_a_subscription_is_illegal() -> None:
    """CP-04: the application would get an IllegalStateException; ours rests until it is told."""
    bench = ClientBench(QUIET, subscribe=(), work=CONTINUE)
    bench.start()
    from groupsim_clients.errors import JavaError

    with pytest.raises(JavaError, match="not subscribed to any topics"):
        next(bench.consumer.poll(100))
    assert bench.notes(AppRaised) == []
