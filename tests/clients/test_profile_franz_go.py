"""franz-go: each difference from Java that can be seen (tables 6.2 and 6.3)."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import pytest

from groupsim.protocol.consumer_protocol import decode_subscription
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
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
from groupsim_clients.machine import AppRaised, CallbackNote, Disconnect, Send
from groupsim_clients.profiles import franz_go, java
from tests.clients.story import tell

QUIET = {"enable.auto.commit": False}
STICKY = "cooperative-sticky"


def bench(config: dict[str, Any] | None = None, **how: Any) -> ClientBench:
    """A member on franz-go."""
    return ClientBench({**QUIET, **(config or {})}, factory=franz_go, **how)


def answered(client: ClientBench, code: ErrorCode) -> None:
    """Answer all heartbeats from now on with a code."""
    client.auto[HeartbeatRequest] = lambda _request: HeartbeatResponse(error_code=code)


def callbacks(client: ClientBench) -> list[tuple[str, int]]:
    """(callback, number of partitions) of the callbacks that began."""
    notes = client.notes(CallbackNote)
    return [(note.callback, len(note.partitions)) for note in notes if note.phase == "started"]


def joins(client: ClientBench) -> list[tuple[int, str]]:
    """When JoinGroup requests left, and with which member id."""
    return [(at, request.member_id) for at, request in client.sent(JoinGroupRequest)]


def test_defaults() -> None:
    """6.2: cooperative-sticky alone, a rebalance timeout of 60 s that is a setting of its own, the latest
    versions; 6.3: user data of sticky v1 with generation −1 and an empty array at first.
    """
    client = bench()
    client.start()
    (_, request) = client.sent(JoinGroupRequest)[0]
    assert [protocol.name for protocol in request.protocols] == [STICKY]
    assert (request.rebalance_timeout_ms, request.session_timeout_ms) == (60_000, 45_000)
    assert request.reason is not None
    subscription = decode_subscription(request.protocols[0].metadata)
    assert subscription.generation_id == -1
    assert subscription.user_data == b"\0\0\0\0\xff\xff\xff\xff"
    versions = {h.effect.api_version for h in client.log if isinstance(h.effect, Send)}
    assert 9 in versions
    config = client.consumer.config
    assert (config.request_timeout_ms, config.auto_offset_reset) == (10_000, "earliest")
    assert (config.retry_backoff_ms, config.retry_backoff_max_ms) == (250, 5_000)
    client.join(("t", 0), protocol=STICKY)
    assert list(dict.fromkeys(client.states())) == ["joining", "syncing", "in session"]
    client = bench({"rebalance.timeout.ms": 20_000})
    client.start()
    assert client.sent(JoinGroupRequest)[0][1].rebalance_timeout_ms == 20_000
    with pytest.raises(ConfigError, match="mean the same"):
        bench({"rebalance.timeout.ms": 1_000, "max.poll.interval.ms": 1_000})


def test_no_poll_interval() -> None:
    """6.2 poll-interval enforcement: none; the member stays while its application works for ten minutes."""
    client = bench(rates={"t": 10}, work={"processing_ms": 600_000})
    client.stable(protocol=STICKY)
    client.advance(599_000)
    assert client.sent(LeaveGroupRequest) == []
    assert len(client.sent(HeartbeatRequest)) == 200
    client = bench(work={"on_assigned_ms": 300_000})
    client.stable(protocol=STICKY)
    client.advance(299_000)
    assert client.sent(LeaveGroupRequest) == []


def test_a_busy_application_delays_nothing() -> None:
    """6.2: the membership runs beside the application, callbacks included. A newcomer gets its part in
    seconds although the other one is busy for a minute; with Java it waits for that minute.
    """
    waited = {}
    for kind in ("java", "franz-go"):
        story = tell(
            f"    client: {kind}\n"
            "    config: {partition.assignment.strategy: [range], auto.offset.reset: earliest,\n"
            "             enable.auto.commit: false, max.poll.interval.ms: 2m}\n"
            "    members: [{name: a, work: {takes: 60s}}, {name: b, start: 21s}]",
            until="2m",
            rate=1,
        )
        waited[kind] = story.group.rebalances[1].joins_us // 1_000_000
        assert story.group.member_changes.get("expired", 0) == 0
    assert waited == {"java": 39, "franz-go": 0}


def test_heartbeats_of_a_session() -> None:
    """6.2 first heartbeat: after half a second (cooperative), then by the interval; one at a time; none
    between JoinGroup and SyncGroup answers.
    """
    client = bench()
    client.start()
    client.answer(client.take(JoinGroupRequest), client.joined(protocol=STICKY))
    client.advance(10_000)
    assert client.sent(HeartbeatRequest) == []
    client.sync(("t", 0), protocol=STICKY)
    client.advance(7_000)
    assert [at - 10_000 for at, _ in client.sent(HeartbeatRequest)] == [500, 3_500, 6_500]
    eager = bench({"partition.assignment.strategy": ["range"]})
    eager.auto[HeartbeatRequest] = None
    eager.stable()
    eager.advance(9_000)
    assert [at for at, _ in eager.sent(HeartbeatRequest)] == [3_000]


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ],
)
def test_a_session_fails(code: ErrorCode) -> None:
    """6.2 errors on heartbeat: everything lost, the error shown, a backoff of 250 ms, and a JoinGroup with
    the id as it was; the lost callback, which nothing replaces, comes first.
    """
    client = bench()
    client.stable(protocol=STICKY)
    answered(client, code)
    client.advance(1_000)
    assert client.changes()[-1] == ("lost", (("t", 0),))
    assert [note.exception for note in client.notes(AppRaised)] == [code.exception]
    assert joins(client) == [(0, ""), (750, "m-1")]
    unknown = JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    client.answer(client.take(JoinGroupRequest), unknown)
    assert joins(client)[-1] == (1_000, "")


def test_failed_joins_back_off() -> None:
    """6.2 fatal join errors and REBALANCE_IN_PROGRESS on Join: a failed session each, with a growing backoff."""
    client = bench()
    client.start()
    for code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.INCONSISTENT_GROUP_PROTOCOL):
        client.answer(client.take(JoinGroupRequest), JoinGroupResponse(error_code=code))
        client.advance(500)
    assert [at for at, _ in joins(client)] == [0, 250, 1_000]
    assert len(client.notes(AppRaised)) == 2
    assert client.exited is None


def test_everything_is_lost_at_a_join_that_fails() -> None:
    """6.2 REBALANCE_IN_PROGRESS on Join: a cooperative member loses what it held."""
    client = bench()
    client.stable(protocol=STICKY)
    answered(client, ErrorCode.REBALANCE_IN_PROGRESS)
    client.advance(500)
    refused = JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    client.answer(client.take(JoinGroupRequest), refused)
    assert client.changes()[-1] == ("lost", (("t", 0),))


def test_sync_errors() -> None:
    """6.2 REBALANCE_IN_PROGRESS on Sync: joined again at once; other errors fail the session."""
    client = bench()
    client.start()
    for code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
        client.answer(client.take(JoinGroupRequest), client.joined(protocol=STICKY))
        client.answer(client.take(SyncGroupRequest), SyncGroupResponse(error_code=code))
    client.advance(1_000)
    assert joins(client) == [(0, ""), (0, "m-1"), (250, "m-1")]


def test_a_failing_assignor() -> None:
    """6.2 assignor failure: the session fails."""
    client = bench()
    client.start()
    own = client.sent(JoinGroupRequest)[0][1].protocols[0].metadata
    client.coordinator.assignors[0].assign = _fails
    member = JoinGroupResponseMember(member_id="m-1", metadata=own)
    joined = client.joined(leader="m-1", members=(member,), protocol=STICKY)
    client.answer(client.take(JoinGroupRequest), joined)
    client.advance(500)
    assert joins(client) == [(0, ""), (250, "m-1")]
    assert [note.exception for note in client.notes(AppRaised)] == ["IllegalStateException"]


def _fails(*_arguments: object) -> None:
    raise AssignorFailure("IllegalStateException", "no plan")


@pytest.mark.parametrize("code", [14, 15, 16])
def test_coordinator_errors_lose_nothing(code: int) -> None:
    """6.2 14/15/16: tried again, on a heartbeat, a JoinGroup or a SyncGroup; no session fails."""
    client = bench()
    client.stable(protocol=STICKY)
    answered(client, ErrorCode(code))
    client.advance(3_000)
    answered(client, ErrorCode.REBALANCE_IN_PROGRESS)
    client.advance(3_000)
    client.answer(client.take(JoinGroupRequest), JoinGroupResponse(error_code=ErrorCode(code)))
    client.advance(3_000)
    joined = client.joined(generation_id=2, protocol=STICKY)
    client.answer(client.take(JoinGroupRequest), joined)
    answer = SyncGroupResponse(error_code=ErrorCode(code))
    client.answer(client.take(SyncGroupRequest), answer)
    client.advance(3_000)
    assert client.opened(JoinGroupRequest)
    assert "lost" not in {change for change, _ in client.changes()}
    assert client.notes(AppRaised) == []


def test_a_lookup_is_no_contact() -> None:
    """6.2 local session timeout: losing and finding the coordinator leaves the timer alone."""
    client = bench({"session.timeout.ms": 10_000, "request.timeout.ms": 60_000})
    client.stable(protocol=STICKY)
    client.advance(4_000)
    client.auto[HeartbeatRequest] = None
    client.break_connection(0, "coordinator")
    client.advance(9_700)  # the last answer was that to the heartbeat at 3.5 s
    assert client.changes()[-1] == ("lost", (("t", 0),))


def test_protocol_types_are_not_compared() -> None:
    """handleJoinResp looks at the protocol's name only; Java refuses an answer of another type."""
    syncs = {}
    for factory in (java, franz_go):
        client = ClientBench(QUIET, factory=factory, work={"on_error": "continue"})
        client.start()
        protocol = "range" if factory is java else STICKY
        joined = dataclasses.replace(client.joined(protocol=protocol), protocol_type="connect")
        client.answer(client.take(JoinGroupRequest), joined)
        syncs[factory.__name__] = len(client.sent(SyncGroupRequest))
    assert syncs == {"java": 0, "franz_go": 1}


def test_commit_errors_only_signal() -> None:
    """6.2 commit UNKNOWN_MEMBER_ID: a signal to rejoin, nothing is lost; REBALANCE_IN_PROGRESS: an error."""
    counts = {}
    codes = (
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
    )
    for code in codes:
        client = bench(work={"commit": "none", "on_error": "continue"})
        client.auto[OffsetCommitRequest] = partial(commit_answer, code=code)
        client.stable(protocol=STICKY)
        client.order("commit", mode="sync")
        client.advance(2_000)
        assert [note.exception for note in client.notes(AppRaised)] == [code.exception]
        assert "lost" not in {change for change, _ in client.changes()}
        counts[code.name] = len(joins(client))
        assert client.sent(JoinGroupRequest)[-1][1].member_id == (
            "m-1" if counts[code.name] > 1 else ""
        )
    assert list(counts.values()) == [2, 2, 1]


def test_revoked_at_the_end_of_every_session() -> None:
    """6.2 cooperative revoked callback with nothing to revoke: at the end of every session."""
    seen = {}
    for factory in (java, franz_go):
        config = {**QUIET, "partition.assignment.strategy": [STICKY]}
        client = ClientBench(config, factory=factory)
        client.stable(protocol=STICKY)
        client.forget()
        answered(client, ErrorCode.REBALANCE_IN_PROGRESS)
        client.advance(3_000)
        seen[factory.__name__] = callbacks(client)
    assert seen == {"java": [], "franz_go": [("revoked", 0)]}


def test_lost_is_not_revoked() -> None:
    """6.2 lost separate from revoked: without an on_lost nothing of the application runs; a Java
    application's on_revoked does.
    """
    raised = {}
    for factory in (java, franz_go):
        work = {"raises": {"on_revoked": "Exception"}, "on_error": "continue"}
        client = ClientBench(QUIET, factory=factory, work=work)
        client.stable(protocol="range" if factory is java else STICKY)
        answered(client, ErrorCode.ILLEGAL_GENERATION)
        client.advance(5_000)
        raised[factory.__name__] = "KafkaException" in {
            n.exception for n in client.notes(AppRaised)
        }
    assert raised == {"java": True, "franz_go": False}


def test_silence_ends_the_session() -> None:
    """6.2 local session timeout: a heartbeat without an answer for the session timeout fails the session."""
    client = bench({"session.timeout.ms": 9_000, "request.timeout.ms": 60_000})
    client.auto[HeartbeatRequest] = None
    client.stable(protocol=STICKY)
    client.advance(9_000)
    assert client.changes()[-1] == ("lost", (("t", 0),))
    client.advance(1_000)
    assert joins(client)[-1] == (9_250, "m-1")


def test_timeouts_of_requests() -> None:
    """6.2 JoinGroup and SyncGroup timeouts: the rebalance timeout and ten seconds of overhead."""
    client = bench({"max.poll.interval.ms": 20_000, "request.timeout.ms": 50_000})
    client.start()
    client.advance(35_000)
    client.answer(client.take(JoinGroupRequest), client.joined(protocol=STICKY))
    client.advance(40_000)
    closed = [h.at_ms for h in client.log if isinstance(h.effect, Disconnect)]
    assert closed == [30_001, 65_001]


def test_the_protocol_follows_the_group() -> None:
    """6.2 mixing eager and cooperative assignors: the protocol is that of the assignor chosen each time; a
    downgrade revokes everything, after the join.
    """
    client = bench({"partition.assignment.strategy": [STICKY, "range"]})
    client.stable(protocol=STICKY)
    answered(client, ErrorCode.REBALANCE_IN_PROGRESS)
    client.advance(500)
    assert callbacks(client) == [("assigned", 1), ("revoked", 0)]  # kept over the join
    client.forget()
    client.join(("t", 1), generation_id=2, protocol="range")
    assert callbacks(client) == [("revoked", 1), ("assigned", 1)]
    client.advance(3_000)
    assert callbacks(client)[-1] == ("revoked", 1)  # eager from now on


def test_no_join_without_a_topic() -> None:
    """6.2 joins without any existing topic: waits; anyone rejoins when a new one appears."""
    client = bench({"metadata.max.age.ms": 5_000}, subscribe=("a", "b"))
    client.start()
    client.advance(10_000)
    assert joins(client) == []
    client.world.topics["a"] = 1
    client.advance(6_000)
    client.join(("a", 0), protocol=STICKY)
    client.world.topics["b"] = 1
    client.advance(7_000)
    assert len(joins(client)) == 2


@pytest.mark.parametrize(("changed", "expected"), [(False, 1), (True, 2)])
def test_told_to_skip_it_plans_all_the_same(changed: bool, expected: int) -> None:
    """6.2 skip flag (KIP-814): the plan is made but not sent; when its own part is another than it is given,
    the leader joins again.
    """
    client = bench({"group.instance.id": "i", "partition.assignment.strategy": ["range"]})
    client.start()
    own = client.sent(JoinGroupRequest)[0][1].protocols[0].metadata
    me = JoinGroupResponseMember(member_id="m-1", group_instance_id="i", metadata=own)
    joined = client.joined(leader="m-1", members=(me,), skip_assignment=True)
    client.answer(client.take(JoinGroupRequest), joined)
    assert client.sent(SyncGroupRequest)[0][1].assignments == ()
    client.sync(*([("t", 0)] if changed else [("t", 0), ("t", 1)]))
    client.advance(100)
    assert len(joins(client)) == expected


def test_static_member_leaves_by_silence() -> None:
    """6.2 static member: neither close nor unsubscribe sends LeaveGroup."""
    for order in ("close", "unsubscribe"):
        client = bench({"group.instance.id": "i"})
        client.stable(protocol=STICKY)
        client.order(order)
        client.advance(1_000)
        assert client.sent(LeaveGroupRequest) == []
