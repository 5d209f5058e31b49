"""Assignors of other clients under the same names (table 6.3)."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from groupsim.protocol.consumer_protocol import Subscription, TopicPartition
from groupsim_clients.assignors import make_assignor, without_racks
from groupsim_clients.assignors.base import AssignorFailure, ClusterView, GroupMember, PartitionInfo
from groupsim_clients.assignors.variants import FRANZ_GO, KAFKA_PYTHON, LIBRDKAFKA, maker

CLIENTS = {"librdkafka": LIBRDKAFKA, "kafka-python": KAFKA_PYTHON, "franz-go": FRANZ_GO}


def member(
    member_id: str,
    *topics: str,
    instance: str | None = None,
    rack: str | None = None,
    owned: Iterable[tuple[str, int]] = (),
    generation: int = -1,
) -> GroupMember:
    """A member that subscribes to the topics."""
    subscription = Subscription(
        topics=topics or ("t",),
        user_data=None,
        owned_partitions=tuple(TopicPartition(*partition) for partition in owned),
        generation_id=generation,
        rack_id=rack,
    )
    return GroupMember(member_id=member_id, group_instance_id=instance, subscription=subscription)


def plan(
    client: str, assignor: str, cluster: ClusterView, *members: GroupMember
) -> dict[str, list[str]]:
    """Member id → its partitions, written ``t-0``."""
    make = make_assignor if client == "java" else maker(CLIENTS[client])
    found = make(assignor).assign(cluster, members)
    return {who: [f"{p.topic}-{p.partition}" for p in some] for who, some in found.items()}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_as_java_where_nothing_differs(client: str, assignor: str) -> None:
    """Dynamic members with equal subscriptions and no racks: the same plan as Java's."""
    cluster = without_racks({"t": 7, "u": 3})
    members = [member(who, "t", "u") for who in ("c", "a", "b")]
    ours = plan(client, assignor, cluster, *members)
    assert ours == plan("java", assignor, cluster, *members)


def test_order_of_static_and_dynamic_members() -> None:
    """6.3 member order: Java and franz-go put static members first; librdkafka compares a static with a
    dynamic member by member id.
    """
    members = [member("b-1", instance="z"), member("a-1")]
    first = {
        client: plan(client, "range", without_racks({"t": 1}), *members)
        for client in ("java", "franz-go", "librdkafka")
    }
    assert first["java"] == first["franz-go"] == {"b-1": ["t-0"], "a-1": []}
    assert first["librdkafka"] == {"b-1": [], "a-1": ["t-0"]}


def test_kafka_python_drops_members_between_runs() -> None:
    """6.3 member order: with i1, –, i0 in the answer the first one gets nothing (run)."""
    members = [member("m1", instance="i1"), member("m2"), member("m0", instance="i0")]
    for assignor in ("range", "roundrobin"):
        found = plan("kafka-python", assignor, without_racks({"t": 4}), *members)
        assert found["m1"] == []
        assert sorted(found["m0"] + found["m2"]) == ["t-0", "t-1", "t-2", "t-3"]


def test_kafka_python_roundrobin_needs_equal_subscriptions() -> None:
    """6.3 roundrobin, unequal subscriptions: KeyError (run); librdkafka and franz-go deal as Java."""
    members = [member("a", "t"), member("b", "t", "u")]
    cluster = without_racks({"t": 2, "u": 2})
    with pytest.raises(AssignorFailure) as failed:
        plan("kafka-python", "roundrobin", cluster, *members)
    assert failed.value.java_exception == "KeyError"
    expected = plan("java", "roundrobin", cluster, *members)
    assert plan("librdkafka", "roundrobin", cluster, *members) == expected
    assert plan("franz-go", "roundrobin", cluster, *members) == expected


def racked(**topics: list[str]) -> ClusterView:
    """Topics whose partitions have replicas in the racks written in letters, leader first."""
    return {
        topic: tuple(PartitionInfo(racks=tuple(letters)) for letters in racks)
        for topic, racks in topics.items()
    }


def test_racks_of_co_partitioned_topics() -> None:
    """6.3 range rack, co-partitioned: to Java a member without a rack matches everything, to librdkafka
    nothing; franz-go looks at each topic and the leader's rack alone, kafka-python at no rack.
    """
    cluster = racked(t=["a", "b", "a", "b"], u=["a", "b", "a", "b"])
    members = [member("m1", "t", "u"), member("m2", "t", "u", rack="b")]
    found = {c: plan(c, "range", cluster, *members) for c in ("java", *CLIENTS)}
    assert found["java"]["m1"] == ["t-0", "t-1", "u-0", "u-1"]
    assert found["librdkafka"]["m1"] == ["t-0", "t-2", "u-0", "u-2"]
    assert found["franz-go"]["m1"] == ["t-0", "t-2", "u-0", "u-2"]
    assert found["kafka-python"]["m1"] == ["t-0", "t-1", "u-0", "u-1"]


def test_franz_go_minds_the_leader_only() -> None:
    """6.3: a follower's rack counts for Java and librdkafka, not for franz-go."""
    cluster = racked(t=["ba", "ca"])
    members = [member("m1", rack="c"), member("m2", rack="b")]
    assert plan("franz-go", "range", cluster, *members) == {"m1": ["t-1"], "m2": ["t-0"]}
    cluster = racked(t=["ab", "ac"])
    assert plan("librdkafka", "range", cluster, *members) == {"m1": ["t-1"], "m2": ["t-0"]}
    assert plan("franz-go", "range", cluster, *members) == {"m1": ["t-0"], "m2": ["t-1"]}


@pytest.mark.parametrize("client", CLIENTS)
def test_nothing_moves_before_it_was_given_up(client: str) -> None:
    """6.3 cooperative adjustment: in the first round the newcomer gets only what nobody owns."""
    owner = member("a", owned=[("t", 0), ("t", 1), ("t", 2)], generation=3)
    found = plan(client, "cooperative-sticky", without_racks({"t": 5}), owner, member("b"))
    assert set(found["a"]) <= {"t-0", "t-1", "t-2"}
    assert set(found["b"]) <= {"t-3", "t-4"}
    assert {"t-3", "t-4"} <= {partition for some in found.values() for partition in some}


def test_librdkafka_gives_back_what_the_plan_does_not_know() -> None:
    """6.3 cooperative adjustment: a partition whose topic the leader does not see goes back to its owner;
    Java and kafka-python leave it out.
    """
    owner = member("a", "t", "gone", owned=[("t", 0), ("gone", 0)], generation=3)
    cluster = without_racks({"t": 1})
    found = {c: plan(c, "cooperative-sticky", cluster, owner)["a"] for c in ("java", *CLIENTS)}
    assert sorted(found.pop("librdkafka")) == ["gone-0", "t-0"]
    assert set(map(tuple, found.values())) == {("t-0",)}


def test_names() -> None:
    """librdkafka has no sticky; the message lists what there is."""
    with pytest.raises(ValueError, match="there are range, roundrobin, cooperative-sticky"):
        maker(LIBRDKAFKA)("sticky")
    assert maker(FRANZ_GO)("sticky").name == "sticky"
