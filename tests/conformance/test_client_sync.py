"""After the JoinGroup: leader, follower, SyncGroup (CS)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pytest

from groupsim.protocol.consumer_protocol import (
    Subscription,
    TopicPartition,
    decode_assignment,
    encode_subscription,
)
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponseMember,
    MetadataRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from groupsim.testing.client import ClientBench
from groupsim_clients.assignors import Assignor, ClusterView, GroupMember, RebalanceProtocol
from groupsim_clients.behaviour import CURRENT
from groupsim_clients.machine import AppRaised, ClientEnvironment, ClientMachine, ClientSpec
from groupsim_clients.profiles._factory import build

CONTINUE = {"on_error": "continue"}
QUIET = {"enable.auto.commit": False}
RANGE = {**QUIET, "partition.assignment.strategy": "range"}


class Scripted(Assignor):
    """A cooperative assignor of somebody else's that gives what it is told, or breaks."""

    name: ClassVar[str] = "scripted"
    supported_protocols: ClassVar[tuple[RebalanceProtocol, ...]] = (
        RebalanceProtocol.EAGER,
        RebalanceProtocol.COOPERATIVE,
    )
    plan: ClassVar[dict[str, tuple[TopicPartition, ...]]] = {}
    seen: ClassVar[list[tuple[ClusterView, Sequence[GroupMember]]]] = []

    def assign(
        self, cluster: ClusterView, members: Sequence[GroupMember]
    ) -> dict[str, tuple[TopicPartition, ...]]:
        """Return the plan; an empty one is a bug of the assignor."""
        self.seen.append((dict(cluster), members))
        if not self.plan:
            raise ZeroDivisionError("a bug")
        return self.plan


def scripted(spec: ClientSpec, env: ClientEnvironment) -> ClientMachine:
    """A current Java consumer with the scripted assignor."""
    return build(spec, env, CURRENT, lambda _name: Scripted())


def member(
    member_id: str,
    *topics: str,
    owned: Sequence[tuple[str, int]] = (),
    instance: str | None = None,
    generation_id: int = -1,
) -> JoinGroupResponseMember:
    """A member as the leader is told of it."""
    subscription = Subscription(
        topics=topics,
        owned_partitions=tuple(TopicPartition(*p) for p in owned),
        generation_id=generation_id,
    )
    return JoinGroupResponseMember(
        member_id=member_id, group_instance_id=instance, metadata=encode_subscription(subscription)
    )


def lead(bench: ClientBench, *members: JoinGroupResponseMember, protocol: str = "range") -> None:
    """Start, and be told to lead these members."""
    bench.start()
    answer = bench.joined(leader="m-1", protocol=protocol, members=members)
    bench.answer(bench.take(JoinGroupRequest), answer)


def plan_of(bench: ClientBench) -> dict[str, tuple[TopicPartition, ...]]:
    """The assignment in the open SyncGroup."""
    request = bench.take(SyncGroupRequest).request
    return {a.member_id: decode_assignment(a.assignment).partitions for a in request.assignments}


def raised(bench: ClientBench) -> list[str]:
    """The exceptions that the application saw."""
    return [note.exception for note in bench.notes(AppRaised)]


def test_leader_assigns_and_syncs() -> None:
    """CS-01, CS-06, CS-08, CS-11: the whole plan goes out with generation, protocol type and name."""
    bench = ClientBench({**RANGE, "group.instance.id": "i-1"})
    lead(bench, member("m-1", "t"), member("m-2", "t"))
    request = bench.take(SyncGroupRequest).request
    assert (request.group_id, request.member_id, request.generation_id) == ("g", "m-1", 1)
    assert (request.protocol_type, request.protocol_name) == ("consumer", "range")
    assert request.group_instance_id == "i-1"
    assert plan_of(bench) == {"m-1": (("t", 0),), "m-2": (("t", 1),)}
    coordinator = bench.coordinator
    assert coordinator.is_leader
    assert coordinator.assignment_snapshot is coordinator.metadata_snapshot


def test_follower_syncs_with_nothing() -> None:
    """CS-02: an empty assignment list."""
    bench = ClientBench()
    bench.start()
    bench.answer(bench.take(JoinGroupRequest), bench.joined())
    assert bench.take(SyncGroupRequest).request.assignments == ()


def test_unknown_assignor_is_an_illegal_state() -> None:
    """CS-03: the group's protocol is none of the leader's; seen from poll."""
    bench = ClientBench(RANGE, work=CONTINUE)
    lead(bench, member("m-1", "t"), protocol="own-assignor")
    assert raised(bench) == ["IllegalStateException"]


def test_leader_sees_every_subscription() -> None:
    """CS-04, CS-12: topics of all members, instance ids from the response, owned partitions and the
    generation from the subscriptions.
    """
    Scripted.plan, Scripted.seen[:] = {"m-1": ()}, []
    bench = ClientBench(QUIET, factory=scripted, topics={"t": 1, "u": 3})
    lead(
        bench,
        member("m-1", "t"),
        member("m-2", "u", owned=[("u", 2)], instance="i-2", generation_id=4),
        protocol="scripted",
    )
    cluster, members = Scripted.seen[0]
    assert {topic: len(partitions) for topic, partitions in cluster.items()} == {"t": 1, "u": 3}
    assert members[1].group_instance_id == "i-2"
    assert members[1].subscription.owned_partitions == (("u", 2),)
    assert members[1].subscription.generation_id == 4


def test_undecodable_subscription_fails_the_join() -> None:
    """CS-04, CS-01: a broken subscription of another member becomes an exception of the leader."""
    bench = ClientBench(RANGE, work=CONTINUE)
    lead(bench, member("m-1", "t"), JoinGroupResponseMember(member_id="m-2", metadata=b"\0"))
    assert raised(bench) == ["SchemaException"]


def test_leader_waits_for_metadata_without_limit() -> None:
    """CS-05, CJ-06: new topics are asked for, and until they are known neither SyncGroup nor heartbeats
    leave: the heartbeat thread cannot get the lock.
    """
    bench = ClientBench(RANGE, topics={"t": 1, "u": 1})
    bench.start()
    bench.auto[MetadataRequest] = None
    answer = bench.joined(leader="m-1", members=[member("m-1", "t"), member("m-2", "u")])
    bench.answer(bench.take(JoinGroupRequest), answer)
    bench.advance(10_000)
    assert bench.sent(SyncGroupRequest) == []
    assert bench.sent(HeartbeatRequest) == []
    send = bench.take(MetadataRequest)
    assert send.request.topics == ("t", "u")
    bench.answer(send, bench.metadata(send.request))
    assert plan_of(bench) == {"m-1": (("t", 0),), "m-2": (("u", 0),)}
    assert [at for at, _ in bench.sent(HeartbeatRequest)] == [10_000]


def test_skip_assignment() -> None:
    """CS-07: no plan, no assignor, but metadata is watched as by any leader."""
    bench = ClientBench(RANGE)
    bench.start()
    answer = bench.joined(leader="m-1", members=[member("m-1", "t")], skip_assignment=True)
    bench.answer(bench.take(JoinGroupRequest), answer)
    assert bench.take(SyncGroupRequest).request.assignments == ()
    assert any("Skipped assignment for returning static leader" in s for s in bench.sentences())
    bench.sync(("t", 0))
    bench.world.topics["t"] = 5
    bench.advance(300_000)
    assert len(bench.sent(JoinGroupRequest)) == 2


def test_assignor_bug_surfaces_from_poll_while_heartbeats_go_on() -> None:
    """CS-01, CR-24: any exception of the assignor fails the join; the state stays
    COMPLETING_REBALANCE.
    """
    Scripted.plan = {}
    bench = ClientBench(
        QUIET, factory=scripted, work={"on_error": "continue", "error_pause_ms": 10_000}
    )
    lead(bench, member("m-1", "t"), protocol="scripted")
    assert raised(bench) == ["ZeroDivisionError"]
    bench.advance(6_500)
    assert len(bench.sent(HeartbeatRequest)) == 2
    assert bench.states()[-1] == "COMPLETING_REBALANCE"


def test_cooperative_plans_of_foreign_assignors_are_validated() -> None:
    """CS-09: a partition taken from one member and given to another in one plan is an illegal state."""
    Scripted.plan = {"m-1": (TopicPartition("t", 0),), "m-2": (TopicPartition("t", 1),)}
    bench = ClientBench(QUIET, factory=scripted, work=CONTINUE)
    lead(
        bench,
        member("m-1", "t", owned=[("t", 0), ("t", 1)]),
        member("m-2", "t"),
        protocol="scripted",
    )
    assert raised(bench) == ["IllegalStateException"]


def test_built_in_cooperative_sticky_is_trusted() -> None:
    """CS-09: two members claim t-0 in different generations; the plan takes it from one and leaves it
    to the other, and nobody complains.
    """
    bench = ClientBench({**QUIET, "partition.assignment.strategy": "cooperative-sticky"})
    lead(
        bench,
        member("m-1", "t", owned=[("t", 0)], generation_id=3),
        member("m-2", "t", owned=[("t", 0), ("t", 1)], generation_id=2),
        protocol="cooperative-sticky",
    )
    assert plan_of(bench) == {"m-1": (("t", 0),), "m-2": (("t", 1),)}


def test_foreign_assignors_may_assign_other_topics() -> None:
    """CS-10: unassigned topics are a warning; topics outside the subscriptions are fetched and watched."""
    Scripted.plan = {"m-1": (TopicPartition("u", 0),)}
    bench = ClientBench(QUIET, factory=scripted, topics={"t": 1, "u": 1})
    lead(bench, member("m-1", "t"), protocol="scripted")
    assert any("not assigned to any members: [t]" in s for s in bench.sentences())
    assert bench.sent(MetadataRequest)[-1][1].topics == ("t", "u")
    assert "u" in bench.coordinator.assignment_snapshot.partitions


def test_built_in_assignors_are_not_checked_for_topics() -> None:
    """CS-10: a subscribed topic without metadata is no warning with range."""
    bench = ClientBench(RANGE)
    lead(bench, member("m-1", "t", "missing"))
    assert not [s for s in bench.sentences() if "not assigned to any members" in s]
    assert plan_of(bench)["m-1"] == (("t", 0), ("t", 1))


# -- the answer --------------------------------------------------------------------------------


def syncing(**config: object) -> ClientBench:
    """A follower whose SyncGroup is out."""
    bench = ClientBench({**QUIET, **config}, work=CONTINUE)
    bench.start()
    bench.answer(bench.take(JoinGroupRequest), bench.joined())
    return bench


def refuse(bench: ClientBench, code: ErrorCode) -> None:
    """Answer the open SyncGroup with an error."""
    bench.answer(bench.take(SyncGroupRequest), SyncGroupResponse(error_code=code))


def test_sync_success() -> None:
    """CS-20: STABLE, reason emptied, no rejoin wanted."""
    bench = syncing()
    bench.sync(("t", 0))
    assert bench.states()[-1] == "STABLE"
    assert (bench.coordinator.rejoin_needed, bench.coordinator.rejoin_reason) == (False, "")


@pytest.mark.parametrize(("kind", "name"), [("connect", "range"), ("consumer", "sticky")])
def test_foreign_protocol_in_sync_is_fatal(kind: str, name: str) -> None:
    """CS-20: another protocol type or name is INCONSISTENT_GROUP_PROTOCOL."""
    bench = syncing()
    answer = SyncGroupResponse(protocol_type=kind, protocol_name=name, assignment=b"\0\1")
    bench.answer(bench.take(SyncGroupRequest), answer)
    assert raised(bench) == ["InconsistentGroupProtocolException"]
    assert bench.states()[-1] == "COMPLETING_REBALANCE"


def test_generation_wiped_while_syncing() -> None:
    """CS-20, CR-23: a reset by a heartbeat counts as ILLEGAL_GENERATION: joined again at once, and the
    protocol name is not even compared.
    """
    bench = syncing()
    bench.auto[HeartbeatRequest] = lambda _r: HeartbeatResponse(
        error_code=ErrorCode.UNKNOWN_MEMBER_ID
    )
    bench.advance(3_000)
    assert bench.states()[-1] == "UNJOINED"
    answer = SyncGroupResponse(protocol_type="consumer", protocol_name="other", assignment=b"\0\1")
    bench.answer(bench.take(SyncGroupRequest), answer)
    assert raised(bench) == []
    assert bench.sent(JoinGroupRequest)[-1][0] == 3_000
    reason = bench.sent(JoinGroupRequest)[-1][1].reason
    assert reason == "rebalance failed due to IllegalGenerationException"


def test_sync_authorization() -> None:
    """CS-21: fatal, names the group."""
    bench = syncing()
    refuse(bench, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    assert raised(bench) == ["GroupAuthorizationException"]


def test_sync_rebalance_in_progress() -> None:
    """CS-22: at once, generation and member id kept."""
    bench = syncing()
    refuse(bench, ErrorCode.REBALANCE_IN_PROGRESS)
    at_ms, join = bench.sent(JoinGroupRequest)[-1]
    assert (at_ms, join.member_id) == (0, "m-1")
    assert bench.coordinator.generation.generation_id == 1


def test_sync_fenced() -> None:
    """CS-23: always fatal, no reset."""
    bench = syncing()
    bench.coordinator.generation = bench.coordinator.generation._replace(generation_id=7)
    refuse(bench, ErrorCode.FENCED_INSTANCE_ID)
    assert raised(bench) == ["FencedInstanceIdException"]
    assert bench.coordinator.generation.member_id == "m-1"


@pytest.mark.parametrize(
    ("code", "member_id"),
    [(ErrorCode.UNKNOWN_MEMBER_ID, ""), (ErrorCode.ILLEGAL_GENERATION, "m-1")],
)
def test_sync_not_a_member(code: ErrorCode, member_id: str) -> None:
    """CS-24, CS-25: at once; the member id is kept for ILLEGAL_GENERATION only."""
    bench = syncing()
    refuse(bench, code)
    at_ms, join = bench.sent(JoinGroupRequest)[-1]
    assert (at_ms, join.member_id) == (0, member_id)
    assert bench.states()[-2:] == ["UNJOINED", "PREPARING_REBALANCE"]
    assert bench.coordinator.generation.generation_id == -1


def test_sync_not_a_member_of_another_generation() -> None:
    """CS-24: no reset when the generation has changed since sending."""
    bench = syncing()
    bench.coordinator.generation = bench.coordinator.generation._replace(generation_id=7)
    refuse(bench, ErrorCode.UNKNOWN_MEMBER_ID)
    assert bench.sent(JoinGroupRequest)[-1][1].member_id == "m-1"


@pytest.mark.parametrize("code", [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR])
def test_sync_not_the_coordinator(code: ErrorCode) -> None:
    """CS-26: rediscovery and backoff, nothing reset."""
    bench = syncing()
    bench.coordinator_node = 3
    refuse(bench, code)
    bench.advance(1_000)
    assert bench.take(JoinGroupRequest).node_id == 3
    assert "UNJOINED" not in bench.states()


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_sync_anything_else_is_fatal(code: ErrorCode) -> None:
    """CS-27: a plain Kafka exception, COORDINATOR_LOAD_IN_PROGRESS included."""
    bench = syncing()
    refuse(bench, code)
    assert raised(bench) == ["KafkaException"]
    assert "Unexpected error from SyncGroup" in bench.notes(AppRaised)[0].detail


def test_sync_disconnect_starts_again_from_join() -> None:
    """CS-28, CR-25: backoff, then JoinGroup with the member id."""
    bench = syncing()
    bench.coordinator_node = 1
    bench.disconnect(bench.take(SyncGroupRequest))
    assert bench.sent(JoinGroupRequest)[1:] == []
    bench.advance(1_000)
    assert bench.sent(JoinGroupRequest)[1][1].member_id == "m-1"
