"""kafka-python: each difference from Java that can be seen (tables 6.2 and 6.3)."""

from __future__ import annotations

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
    MetadataRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from groupsim.testing.client import ClientBench, commit_answer
from groupsim_clients.errors import ConfigError
from groupsim_clients.generation import Generation
from groupsim_clients.machine import AppRaised, CallbackNote, Send
from groupsim_clients.profiles import java, kafka_python

QUIET = {"enable.auto.commit": False}
COOPERATIVE = {**QUIET, "partition.assignment.strategy": ["cooperative-sticky"]}


def bench(config: dict[str, Any] | None = None, **how: Any) -> ClientBench:
    """A member of kafka-python."""
    return ClientBench({**QUIET, **(config or {})}, factory=kafka_python, **how)


def answered(client: ClientBench, code: ErrorCode) -> None:
    """Answer all heartbeats from now on with a code."""
    client.auto[HeartbeatRequest] = lambda _request: HeartbeatResponse(error_code=code)


def callbacks(client: ClientBench) -> list[tuple[str, int]]:
    """(callback, number of partitions) of the callbacks that began."""
    notes = client.notes(CallbackNote)
    return [(note.callback, len(note.partitions)) for note in notes if note.phase == "started"]


def test_versions_and_subscription() -> None:
    """6.2 API versions, 6.3 subscription: JoinGroup 7, SyncGroup 5; v0 metadata, so a leader sees no
    owned partitions and no generation; cooperative-sticky writes v1 and empty user data.
    """
    client = bench()
    client.stable()
    versions = {
        type(h.effect.request).__name__: h.effect.api_version
        for h in client.log
        if isinstance(h.effect, Send)
    }
    assert (versions["JoinGroupRequest"], versions["SyncGroupRequest"]) == (7, 5)
    (first, second) = client.sent(JoinGroupRequest)[0][1].protocols
    assert (first.name, second.name) == ("range", "roundrobin")
    assert first.metadata[:2] == b"\0\0"
    client = bench(COOPERATIVE)
    client.stable(protocol="cooperative-sticky")
    answered(client, ErrorCode.REBALANCE_IN_PROGRESS)
    client.advance(3_000)
    subscription = decode_subscription(client.sent(JoinGroupRequest)[1][1].protocols[0].metadata)
    assert subscription.owned_partitions == (("t", 0),)
    assert (subscription.generation_id, subscription.user_data) == (-1, b"")


def test_defaults_and_the_leaders_assignment() -> None:
    """6.2: a reconnect backoff of up to 30 s; 6.3: the leader writes assignments of version 0."""
    client = bench()
    client.start()
    assert client.consumer.config.reconnect_backoff_max_ms == 30_000
    own = client.sent(JoinGroupRequest)[0][1].protocols[0].metadata
    member = JoinGroupResponseMember(member_id="m-1", metadata=own)
    joined = client.joined(leader="m-1", members=(member,))
    client.answer(client.take(JoinGroupRequest), joined)
    (assignment,) = client.sent(SyncGroupRequest)[0][1].assignments
    assert assignment.assignment[:2] == b"\0\0"


def test_unknown_member_id_resets_whatever_was_sent() -> None:
    """6.2 UNKNOWN_MEMBER_ID on Join: always reset; Java keeps what has changed since the request left."""
    ids = {}
    for factory in (java, kafka_python):
        client = ClientBench(QUIET, factory=factory)
        client.start()
        coordinator = client.coordinator
        coordinator.set_state(coordinator.state, "changed", Generation(5, "m-9", None))
        unknown = JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        client.answer(client.take(JoinGroupRequest), unknown)
        ids[factory.__name__] = client.sent(JoinGroupRequest)[-1][1].member_id
    assert ids == {"java": "m-9", "kafka_python": ""}


def test_three_states() -> None:
    """6.2 member states: unjoined, rebalancing, stable; MEMBER_ID_REQUIRED resets the state."""
    client = bench()
    client.start()
    asked = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m-1")
    client.answer(client.take(JoinGroupRequest), asked)
    client.join(("t", 0))
    assert list(dict.fromkeys(client.states())) == ["REBALANCING", "UNJOINED", "STABLE"]
    assert [request.member_id for _, request in client.sent(JoinGroupRequest)] == ["", "m-1"]


def test_revoked_before_the_first_join() -> None:
    """6.2 revoked callback before first join: with an empty set (EAGER), once although MEMBER_ID_REQUIRED
    resets; a Java member has none.
    """
    first = {}
    for factory in (java, kafka_python):
        client = ClientBench(QUIET, factory=factory)
        client.start()
        asked = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m-1")
        client.answer(client.take(JoinGroupRequest), asked)
        first[factory.__name__] = callbacks(client)
    assert first == {"java": [], "kafka_python": [("revoked", 0)]}


def test_no_heartbeats_before_the_assignment() -> None:
    """6.2 heartbeats between JoinGroup and SyncGroup answers: none; the first one interval after SyncGroup."""
    client = bench()
    client.start()
    client.answer(client.take(JoinGroupRequest), client.joined())
    client.advance(20_000)
    client.sync(("t", 0))
    client.advance(3_000)
    assert [at for at, _ in client.sent(HeartbeatRequest)] == [23_000]


def test_an_answer_while_the_application_works() -> None:
    """The task that joins goes on by itself: a cooperative member at work sends its SyncGroup at once,
    but is stable only with the next poll.
    """
    client = bench(COOPERATIVE, rates={"t": 10}, work={"processing_ms": 10_000})
    client.stable(("t", 0), protocol="cooperative-sticky")
    answered(client, ErrorCode.REBALANCE_IN_PROGRESS)
    client.advance(15_000)  # the poll at 10 s sent JoinGroup and went back to work
    joined = client.joined(generation_id=2, protocol="cooperative-sticky")
    client.answer(client.take(JoinGroupRequest), joined)
    assert client.opened(SyncGroupRequest)
    client.sync(("t", 0), protocol="cooperative-sticky")
    assert client.states()[-1] == "REBALANCING"
    client.advance(6_000)
    assert client.states()[-1] == "STABLE"


def test_callbacks_block_heartbeats() -> None:
    """6.2 heartbeats while callbacks run: a plain callback blocks the loop; Java's thread goes on."""
    counts = {}
    for factory in (java, kafka_python):
        client = ClientBench(QUIET, factory=factory, work={"on_assigned_ms": 10_000})
        client.stable(("t", 0))
        client.advance(9_999)
        counts[factory.__name__] = len(client.sent(HeartbeatRequest))
    assert counts == {"java": 3, "kafka_python": 0}


def test_one_heartbeat_at_a_time() -> None:
    """6.2 several heartbeats in flight: no."""
    client = bench()
    client.auto[HeartbeatRequest] = None
    client.stable()
    client.advance(20_000)
    assert len(client.sent(HeartbeatRequest)) == 1


def test_fencing_stops_heartbeats_silently() -> None:
    """6.2 FENCED_INSTANCE_ID on heartbeat: no more heartbeats, and nobody is told."""
    client = bench({"group.instance.id": "i"})
    client.stable()
    answered(client, ErrorCode.FENCED_INSTANCE_ID)
    client.advance(60_000)
    assert len(client.sent(HeartbeatRequest)) == 1
    assert client.notes(AppRaised) == []
    assert client.machine.owned() == (("t", 0),)


def test_unknown_member_id_on_join_always_resets() -> None:
    """6.2 UNKNOWN_MEMBER_ID on Join: reset, joined anew at once, without a second callback."""
    client = bench()
    client.stable()
    answered(client, ErrorCode.REBALANCE_IN_PROGRESS)
    client.advance(3_000)
    unknown = JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    client.answer(client.take(JoinGroupRequest), unknown)
    assert [request.member_id for _, request in client.sent(JoinGroupRequest)] == ["", "m-1", ""]
    assert callbacks(client) == [("revoked", 0), ("assigned", 1), ("revoked", 1)]


def test_commit_during_a_rebalance() -> None:
    """6.2 commit REBALANCE_IN_PROGRESS: CommitFailed, and the group is joined again."""
    client = bench(work={"commit": "none", "on_error": "continue"})
    code = ErrorCode.REBALANCE_IN_PROGRESS
    client.auto[OffsetCommitRequest] = partial(commit_answer, code=code)
    client.stable()
    client.order("commit", mode="sync")
    client.advance(2_000)
    assert [note.exception for note in client.notes(AppRaised)] == ["CommitFailedException"]
    assert len(client.sent(JoinGroupRequest)) == 2


def test_cooperative_changes_first() -> None:
    """6.2 order of local change and revoked callback: change, then callback; no assigned callback when
    nothing is new; Java calls back, then changes, and calls assigned with nothing.
    """
    seen = {}
    for factory in (java, kafka_python):
        client = ClientBench(COOPERATIVE, factory=factory, work={"on_revoked_ms": 1_000})
        client.stable(("t", 0), ("t", 1), protocol="cooperative-sticky")
        answered(client, ErrorCode.REBALANCE_IN_PROGRESS)
        client.advance(3_000)
        client.forget()
        client.join(("t", 0), generation_id=2, protocol="cooperative-sticky")
        during = client.machine.owned()
        client.advance(1_000)
        seen[factory.__name__] = (len(during), callbacks(client))
    assert seen == {
        "java": (2, [("revoked", 1), ("assigned", 0)]),
        "kafka_python": (1, [("revoked", 1)]),
    }


def test_the_leader_uses_what_it_has() -> None:
    """6.2 leader metadata refresh before assigning: none, it only asks for more; so a topic that the leader
    does not know is left out of the plan.
    """
    syncs = {}
    for factory in (java, kafka_python):
        client = ClientBench(QUIET, factory=factory, topics={"t": 2, "u": 2})
        client.start()
        client.auto[MetadataRequest] = None
        other = ClientBench(QUIET, factory=factory, topics={"t": 2, "u": 2}, subscribe=("t", "u"))
        other.start()
        members = tuple(
            JoinGroupResponseMember(
                member_id=member_id,
                metadata=member.sent(JoinGroupRequest)[0][1].protocols[0].metadata,
            )
            for member_id, member in {"m-1": client, "m-2": other}.items()
        )
        client.answer(client.take(JoinGroupRequest), client.joined(leader="m-1", members=members))
        client.advance(2_000)
        syncs[factory.__name__] = len(client.sent(SyncGroupRequest))
    assert syncs == {"java": 0, "kafka_python": 1}


def test_constant_backoff() -> None:
    """6.2 join retry pace: a constant 100 ms; heartbeats that fail come again at the same pace."""
    client = bench()
    client.stable()
    answered(client, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    client.advance(3_450)
    assert [at for at, _ in client.sent(HeartbeatRequest)] == [3_000, 3_100, 3_200, 3_300, 3_400]


def test_cooperative_sticky_cannot_be_mixed() -> None:
    """6.2 mixing eager and cooperative assignors: its cooperative-sticky is COOPERATIVE only."""
    with pytest.raises(ConfigError, match="commonly supported rebalance protocol"):
        bench({"partition.assignment.strategy": ["range", "cooperative-sticky"]})
