"""librdkafka: each difference from Java that can be seen (tables 6.2 and 6.3, section 6.1)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from groupsim.protocol.consumer_protocol import decode_subscription
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from groupsim.testing.client import ClientBench, commit_answer
from groupsim_clients.assignors.base import AssignorFailure
from groupsim_clients.errors import ConfigError
from groupsim_clients.machine import AppRaised, Disconnect, Send
from groupsim_clients.profiles import java, librdkafka
from tests.clients.story import tell

QUIET = {"enable.auto.commit": False}
COOPERATIVE = {**QUIET, "partition.assignment.strategy": ["cooperative-sticky"]}


def bench(config: dict[str, Any] | None = None, **how: Any) -> ClientBench:
    """A member on librdkafka."""
    return ClientBench({**QUIET, **(config or {})}, factory=librdkafka, **how)


def joins(client: ClientBench) -> list[int]:
    """When JoinGroup requests left."""
    return [at for at, _ in client.sent(JoinGroupRequest)]


def refused(code: ErrorCode) -> JoinGroupResponse:
    """A JoinGroup answer with an error."""
    return JoinGroupResponse(error_code=code)


def heartbeats_answered(client: ClientBench, code: ErrorCode) -> None:
    """Answer all heartbeats from now on with a code."""
    client.auto[HeartbeatRequest] = lambda _request: HeartbeatResponse(error_code=code)


def test_versions_and_subscription() -> None:
    """6.2 API versions, 6.3 subscription: JoinGroup 5, SyncGroup 3, Heartbeat 3; v3 metadata whose
    generation is −1 for range, empty user data.
    """
    client = bench()
    client.stable()
    client.advance(3_000)
    versions = {
        type(h.effect.request).__name__: h.effect.api_version
        for h in client.log
        if isinstance(h.effect, Send)
    }
    assert versions["JoinGroupRequest"] == 5
    assert versions["SyncGroupRequest"] == 3
    assert versions["HeartbeatRequest"] == 3
    request = client.sent(JoinGroupRequest)[0][1]
    assert [protocol.name for protocol in request.protocols] == ["range", "roundrobin"]
    assert request.reason is None
    assert client.sent(SyncGroupRequest)[0][1].protocol_name is None
    heartbeats_answered(client, ErrorCode.REBALANCE_IN_PROGRESS)
    client.advance(3_000)
    request = client.sent(JoinGroupRequest)[1][1]
    subscription = decode_subscription(request.protocols[0].metadata)
    assert (subscription.generation_id, subscription.user_data) == (-1, b"")
    assert list(dict.fromkeys(client.states())) == ["wait-join", "wait-sync", "steady"]


def test_defaults() -> None:
    """6.2: its own defaults where they differ (rdkafka_conf.c), Java's for the rest."""
    config = bench().machine._config  # type: ignore[attr-defined]
    assert (config.session_timeout_ms, config.max_poll_interval_ms) == (45_000, 300_000)
    assert config.request_timeout_ms == 60_000
    assert (config.reconnect_backoff_ms, config.reconnect_backoff_max_ms) == (100, 10_000)


def test_the_leaders_assignment_is_version_0() -> None:
    """6.3: what the leader writes for the members has version 0."""
    client = bench()
    client.start()
    own = client.sent(JoinGroupRequest)[0][1].protocols[0].metadata
    member = JoinGroupResponseMember(member_id="m-1", metadata=own)
    joined = client.joined(leader="m-1", members=(member,))
    client.answer(client.take(JoinGroupRequest), joined)
    (assignment,) = client.sent(SyncGroupRequest)[0][1].assignments
    assert assignment.assignment[:2] == b"\0\0"


def test_a_lookup_is_no_contact() -> None:
    """6.1: losing and finding the coordinator leaves the session timer alone."""
    client = bench({"session.timeout.ms": 10_000})
    client.stable()
    client.advance(1_000)
    client.auto[HeartbeatRequest] = None
    client.break_connection(0, "coordinator")
    client.advance(9_100)
    assert len(client.sent(FindCoordinatorRequest)) >= 2
    assert client.changes()[-1] == ("lost", (("t", 0),))


def test_joins_are_paced() -> None:
    """6.1, 6.2 join retry pace: an error costs one second more, so the next join starts two seconds after
    the last one; REBALANCE_IN_PROGRESS is shown and paced too.
    """
    client = bench()
    client.start()
    for _ in range(3):
        client.answer(client.take(JoinGroupRequest), refused(ErrorCode.REBALANCE_IN_PROGRESS))
        client.advance(2_000)
    assert joins(client) == [0, 2_000, 4_000, 6_000]
    assert {note.exception for note in client.notes(AppRaised)} == {"RebalanceInProgressException"}
    assert client.exited is None


def test_member_id_required_is_not_paced() -> None:
    """6.1: MEMBER_ID_REQUIRED clears the interval; the second JoinGroup follows at once."""
    client = bench()
    client.start()
    asked = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m-7")
    client.answer(client.take(JoinGroupRequest), asked)
    assert [request.member_id for _, request in client.sent(JoinGroupRequest)] == ["", "m-7"]
    assert joins(client) == [0, 0]


def test_a_finished_revocation_clears_the_interval() -> None:
    """6.1: eager, the join follows the revoked callback at once; cooperative, REBALANCE_IN_PROGRESS
    is followed by a join a second after the last one at the earliest.
    """
    times = {}
    for name, config in {"eager": {}, "cooperative": COOPERATIVE}.items():
        client = bench({**config, "heartbeat.interval.ms": 300})
        client.start(0)
        client.answer(client.take(JoinGroupRequest), refused(ErrorCode.UNKNOWN_MEMBER_ID))
        client.advance(2_000)
        client.join(("t", 0), protocol="range" if name == "eager" else "cooperative-sticky")
        heartbeats_answered(client, ErrorCode.REBALANCE_IN_PROGRESS)
        client.advance(1_500)
        times[name] = joins(client)
    assert times == {"eager": [0, 2_000, 2_300], "cooperative": [0, 2_000, 3_000]}


def test_unknown_member_id_on_join_loses_nothing() -> None:
    """6.2 UNKNOWN_MEMBER_ID on Join: the id is cleared, a paced retry, no lost callback; but a cooperative
    member then loses everything at MEMBER_ID_REQUIRED.
    """
    client = bench(COOPERATIVE)
    client.stable(protocol="cooperative-sticky")
    heartbeats_answered(client, ErrorCode.REBALANCE_IN_PROGRESS)
    client.advance(3_000)
    client.answer(client.take(JoinGroupRequest), refused(ErrorCode.UNKNOWN_MEMBER_ID))
    client.advance(2_000)
    assert [change for change, _ in client.changes()] == ["assigned"]
    assert client.take(JoinGroupRequest).request.member_id == ""  # type: ignore[union-attr]
    assert client.notes(AppRaised) == []
    asked = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m-2")
    client.answer(client.take(JoinGroupRequest), asked)
    assert client.changes()[-1] == ("lost", (("t", 0),))
    assert client.sent(JoinGroupRequest)[-1][1].member_id == "m-2"


def test_no_heartbeats_before_the_assignment() -> None:
    """6.2 heartbeats between JoinGroup and SyncGroup answers: none; a Java member sends them."""
    counts = {}
    for factory in (java, librdkafka):
        client = ClientBench(QUIET, factory=factory)
        client.start()
        client.answer(client.take(JoinGroupRequest), client.joined())
        client.advance(20_000)
        counts[factory.__name__] = len(client.sent(HeartbeatRequest))
    assert counts == {"java": 6, "librdkafka": 0}


def test_first_heartbeat_and_one_at_a_time() -> None:
    """6.2 first heartbeat: at once when steady for the first time, the interval runs on over later joins;
    several in flight: no.
    """
    client = bench()
    client.auto[HeartbeatRequest] = None
    client.stable()
    client.advance(10_000)
    assert [at for at, _ in client.sent(HeartbeatRequest)] == [0]
    client.answer(client.take(HeartbeatRequest), HeartbeatResponse())
    client.advance(0)
    assert [at for at, _ in client.sent(HeartbeatRequest)] == [0, 10_000]


def test_local_session_timeout_loses_the_membership() -> None:
    """6.2 local session timeout: without an answer for session.timeout.ms the member id is cleared, the
    assignment lost and the group joined again; a Java member only looks its coordinator up.
    """
    client = bench({"session.timeout.ms": 10_000})
    client.auto[HeartbeatRequest] = None
    client.stable()
    client.advance(10_000)
    assert client.changes()[-1] == ("lost", (("t", 0),))
    assert client.sent(JoinGroupRequest)[-1][1].member_id == ""
    assert len(client.sent(FindCoordinatorRequest)) == 1


def test_timeouts_of_requests() -> None:
    """6.2 JoinGroup timeout: max.poll.interval.ms + 3 s; SyncGroup timeout: session + 3 s."""
    client = bench({"max.poll.interval.ms": 20_000, "session.timeout.ms": 10_000})
    client.start()
    client.advance(25_000)
    client.answer(client.take(JoinGroupRequest), client.joined())
    client.advance(15_000)
    closed = [h.at_ms for h in client.log if isinstance(h.effect, Disconnect)]
    assert closed == [23_001, 25_000 + 13_001]


def test_answers_are_handled_while_the_application_works() -> None:
    """6.1: JoinGroup and SyncGroup go on while the application processes for longer than its session; a
    Java member does not see its JoinGroup answer, sends nothing and is expelled.
    """
    changes = {}
    for kind in ("java", "librdkafka"):
        story = tell(
            f"    client: {kind}\n"
            "    config: {partition.assignment.strategy: [cooperative-sticky],\n"
            "             session.timeout.ms: 10s, enable.auto.commit: false}\n"
            "    members:\n"
            "      - {name: a, config: {auto.offset.reset: earliest}, work: {takes: 30s}}\n"
            "      - {name: b, start: 31s, work: {takes: 0s}}",
            until="100s",
            rate=1,
        )
        changes[kind] = story.group.member_changes.get("expired", 0)
    assert changes == {"java": 1, "librdkafka": 0}


def test_static_member_that_unsubscribes_leaves() -> None:
    """6.2 static member: unsubscribe sends LeaveGroup (a v1 request with the member id), close does not."""
    sent = {}
    for order in ("unsubscribe", "close"):
        client = bench({"group.instance.id": "i"})
        client.stable()
        client.order(order)
        client.advance(1_000)
        sent[order] = [request.member_id for _, request in client.sent(LeaveGroupRequest)]
    assert sent == {"unsubscribe": ["m-1"], "close": []}


def test_mixed_assignors_are_refused() -> None:
    """6.2 mixing eager and cooperative assignors: refused; so is an assignor it does not have."""
    with pytest.raises(ConfigError, match="commonly supported rebalance protocol"):
        bench({"partition.assignment.strategy": ["range", "cooperative-sticky"]})
    with pytest.raises(ConfigError, match="there are range, roundrobin, cooperative-sticky"):
        bench({"partition.assignment.strategy": ["sticky"]})


@pytest.mark.parametrize("where", ["join", "sync", "heartbeat"])
def test_fencing_ends_the_instance(where: str) -> None:
    """6.2 FENCED_INSTANCE_ID: fatal; it is raised once, what was held is lost, and no join follows."""
    client = bench({"group.instance.id": "i"}, work={"on_error": "continue"})
    client.start()
    if where == "join":
        client.answer(client.take(JoinGroupRequest), refused(ErrorCode.FENCED_INSTANCE_ID))
    elif where == "sync":
        client.answer(client.take(JoinGroupRequest), client.joined())
        answer = SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID)
        client.answer(client.take(SyncGroupRequest), answer)
    else:
        client.join(("t", 0))
        heartbeats_answered(client, ErrorCode.FENCED_INSTANCE_ID)
    client.advance(60_000)
    assert [note.exception for note in client.notes(AppRaised)] == ["FencedInstanceIdException"]
    assert len(joins(client)) == 1
    assert client.machine.owned() == ()


def test_a_fatal_join_error_is_an_event() -> None:
    """6.2 fatal join errors: shown to the application, and tried again at the usual pace."""
    client = bench()
    client.start()
    client.answer(client.take(JoinGroupRequest), refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    client.advance(2_000)
    assert [n.exception for n in client.notes(AppRaised)] == ["InconsistentGroupProtocolException"]
    assert joins(client) == [0, 2_000]


@pytest.mark.parametrize("code", [14, 15, 16])
def test_coordinator_errors_on_join_and_sync(code: int) -> None:
    """6.2 14/15/16 on Join or Sync: the coordinator is looked up (15, 16), the retry is paced, nothing is
    shown.
    """
    client = bench()
    client.start()
    client.answer(client.take(JoinGroupRequest), refused(ErrorCode(code)))
    client.advance(2_500)
    assert (len(client.sent(FindCoordinatorRequest)) >= 2) is (code != 14)
    assert joins(client) == [0, 2_000]
    assert client.notes(AppRaised) == []
    client.forget()
    client.answer(client.take(JoinGroupRequest), client.joined())
    answer = SyncGroupResponse(error_code=ErrorCode(code))
    client.answer(client.take(SyncGroupRequest), answer)
    client.advance(500)
    assert joins(client) == [3_000]
    assert bool(client.sent(FindCoordinatorRequest)) is (code != 14)
    assert client.notes(AppRaised) == []


def test_illegal_generation_on_join() -> None:
    """rd_kafka_cgrp_handle_JoinGroup: the generation is forgotten, not shown; cooperative: lost."""
    client = bench(COOPERATIVE)
    client.stable(protocol="cooperative-sticky")
    heartbeats_answered(client, ErrorCode.REBALANCE_IN_PROGRESS)
    client.advance(3_000)
    client.answer(client.take(JoinGroupRequest), refused(ErrorCode.ILLEGAL_GENERATION))
    client.advance(2_000)
    assert client.changes()[-1] == ("lost", (("t", 0),))
    assert client.notes(AppRaised) == []
    assert client.sent(JoinGroupRequest)[-1][1].member_id == "m-1"


def test_unexpected_errors_on_sync_are_paced() -> None:
    """6.2: any other error on Sync is followed by a paced join, nothing is thrown."""
    client = bench()
    client.start()
    client.answer(client.take(JoinGroupRequest), client.joined())
    answer = SyncGroupResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    client.answer(client.take(SyncGroupRequest), answer)
    client.advance(1_000)
    assert joins(client) == [0, 1_000]
    assert client.notes(AppRaised) == []


def test_sync_errors() -> None:
    """6.2 REBALANCE_IN_PROGRESS on Sync: a second after the last join; UNKNOWN_MEMBER_ID clears the id
    without a lost callback (eager).
    """
    client = bench()
    client.start()
    client.answer(client.take(JoinGroupRequest), client.joined())
    client.advance(400)
    answer = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    client.answer(client.take(SyncGroupRequest), answer)
    client.advance(600)
    assert joins(client) == [0, 1_000]
    client.answer(client.take(JoinGroupRequest), client.joined(generation_id=2))
    answer = SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    client.answer(client.take(SyncGroupRequest), answer)
    client.advance(1_000)
    assert [request.member_id for _, request in client.sent(JoinGroupRequest)] == ["", "m-1", ""]


def test_sync_errors_of_a_cooperative_member() -> None:
    """6.2 (SyncGroup 22, 25): a cooperative member loses what it kept over the join."""
    for code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
        client = bench(COOPERATIVE)
        client.stable(protocol="cooperative-sticky")
        heartbeats_answered(client, ErrorCode.REBALANCE_IN_PROGRESS)
        client.advance(3_000)
        joined = client.joined(generation_id=2, protocol="cooperative-sticky")
        client.answer(client.take(JoinGroupRequest), joined)
        client.answer(client.take(SyncGroupRequest), SyncGroupResponse(error_code=code))
        client.advance(1_000)
        assert client.changes()[-1] == ("lost", (("t", 0),))


def test_failed_heartbeats_are_not_hurried() -> None:
    """6.2 GROUP_AUTHORIZATION_FAILED on heartbeat: nothing until the next interval."""
    client = bench()
    client.stable()
    heartbeats_answered(client, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    client.advance(9_500)
    assert [at for at, _ in client.sent(HeartbeatRequest)] == [0, 3_000, 6_000, 9_000]


def test_a_failing_assignor() -> None:
    """6.2 assignor failure: joined again at the usual pace, nothing thrown."""
    client = bench()
    client.start()
    own = client.sent(JoinGroupRequest)[0][1].protocols[0].metadata
    client.coordinator.assignors[0].assign = _fails
    member = JoinGroupResponseMember(member_id="m-1", metadata=own)
    joined = client.joined(leader="m-1", members=(member,))
    client.answer(client.take(JoinGroupRequest), joined)
    client.advance(1_000)
    assert joins(client) == [0, 1_000]
    assert client.notes(AppRaised) == []


def _fails(*_arguments: object) -> None:
    raise AssignorFailure("IllegalStateException", "no plan")


def test_commit_errors() -> None:
    """6.2 commit UNKNOWN_MEMBER_ID: lost and joined anew, told by its own name; REBALANCE_IN_PROGRESS: an
    error for the application and nothing else.
    """
    for code, lost in {
        ErrorCode.UNKNOWN_MEMBER_ID: True,
        ErrorCode.ILLEGAL_GENERATION: True,
        ErrorCode.REBALANCE_IN_PROGRESS: False,
    }.items():
        client = bench(work={"commit": "none", "on_error": "continue"})
        client.auto[OffsetCommitRequest] = partial(commit_answer, code=code)
        client.stable()
        client.order("commit", mode="sync")
        client.advance(900)
        assert [note.exception for note in client.notes(AppRaised)] == [code.exception]
        client.advance(1_500)
        assert (client.changes()[-1][0] == "lost") is lost
        assert len(joins(client)) == 1 + lost


def test_illegal_generation_of_a_commit_is_ignored_in_a_rebalance() -> None:
    """6.2 commit ILLEGAL_GENERATION: ignored while rebalancing, a new generation may be on its way."""
    client = bench(COOPERATIVE, work={"commit": "none", "on_error": "continue"})
    client.auto[OffsetCommitRequest] = None
    client.stable(protocol="cooperative-sticky")
    client.order("commit", mode="async")
    heartbeats_answered(client, ErrorCode.REBALANCE_IN_PROGRESS)
    client.advance(3_000)
    commit = client.take(OffsetCommitRequest)
    assert client.opened(JoinGroupRequest)
    assert isinstance(commit.request, OffsetCommitRequest)
    client.answer(commit, commit_answer(commit.request, ErrorCode.ILLEGAL_GENERATION))
    client.advance(1_000)
    assert "lost" not in {change for change, _ in client.changes()}
    assert len(joins(client)) == 2


def test_everybody_watches_its_topics() -> None:
    """6.2 who rejoins on metadata change: a follower rejoins when a topic of its own grows; a Java follower
    does not.
    """
    counts = {}
    for factory in (java, librdkafka):
        client = ClientBench({**QUIET, "metadata.max.age.ms": 10_000}, factory=factory)
        client.stable()
        client.world.topics["t"] = 4
        client.advance(12_000)
        counts[factory.__name__] = len(joins(client))
    assert counts == {"java": 1, "librdkafka": 2}


def test_no_join_without_a_topic() -> None:
    """6.2 joins without any existing topic: waits for it; the subscription has existing topics only."""
    client = bench(subscribe=("a", "b"))
    client.start()
    client.advance(10_000)
    assert joins(client) == []
    client.world.topics["a"] = 1
    client.advance(5_000)
    (request,) = [request for _, request in client.sent(JoinGroupRequest)]
    assert decode_subscription(request.protocols[0].metadata).topics == ("a",)


def test_unreadable_members_are_left_out() -> None:
    """6.2 member with undecodable metadata: the leader's plan has nothing for it; Java throws."""
    exceptions = {}
    for factory in (java, librdkafka):
        client = ClientBench(QUIET, factory=factory, work={"on_error": "continue"})
        client.start()
        own = client.sent(JoinGroupRequest)[0][1].protocols[0].metadata
        members = (
            JoinGroupResponseMember(member_id="m-1", metadata=own),
            JoinGroupResponseMember(member_id="m-2", metadata=b"\0"),
        )
        client.answer(client.take(JoinGroupRequest), client.joined(leader="m-1", members=members))
        exceptions[factory.__name__] = [note.exception for note in client.notes(AppRaised)]
        if factory is librdkafka:
            plan = client.sent(SyncGroupRequest)[0][1].assignments
            assert [each.member_id for each in plan] == ["m-1"]
    assert exceptions == {"java": ["SchemaException"], "librdkafka": []}


def test_poll_interval_is_enforced() -> None:
    """6.2 poll-interval enforcement: LeaveGroup at once; static: none, and the id is cleared."""
    left = {}
    for instance in (None, "i"):
        options = {} if instance is None else {"group.instance.id": instance}
        client = bench(
            {**options, "max.poll.interval.ms": 10_000},
            rates={"t": 10},
            work={"processing_ms": 30_000},
        )
        client.stable()
        client.advance(29_000)
        assert client.coordinator.generation.member_id == ""
        left[instance] = len(client.sent(LeaveGroupRequest))
    assert left == {None: 1, "i": 0}
