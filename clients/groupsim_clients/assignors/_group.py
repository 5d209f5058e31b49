"""The leader's input, put into the order in which Java walks it (A-01, A-03, A-06)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from groupsim.protocol._text import java_sort_key
from groupsim.protocol.consumer_protocol import TopicPartition
from groupsim_clients.assignors._java_order import put_order, string_hash
from groupsim_clients.assignors.base import ClusterView, GroupMember, PartitionInfo

__all__ = [
    "in_map_order",
    "in_member_order",
    "participating_topics",
    "partition_racks",
    "rack_aware",
]

Racks = frozenset[str]


def in_map_order(members: Sequence[GroupMember]) -> list[GroupMember]:
    """``members`` in the iteration order of the leader's ``HashMap`` (A-06).

    Java fills that map in response order; should an id occur twice, the later entry counts.
    """
    by_id = {member.member_id: member for member in members}
    return [by_id[member_id] for member_id in put_order(by_id, string_hash)]


def in_member_order(members: Iterable[GroupMember]) -> list[GroupMember]:
    """Members with an instance id first, by instance id; then the others by member id (A-03)."""
    return sorted(members, key=_member_key)


def _member_key(member: GroupMember) -> tuple[bool, str]:
    instance_id = member.group_instance_id
    if instance_id is not None:
        return False, java_sort_key(instance_id)
    return True, java_sort_key(member.member_id)


def participating_topics(
    cluster: ClusterView, members: Sequence[GroupMember]
) -> dict[str, tuple[PartitionInfo, ...]]:
    """Topics that somebody subscribes to and that have partitions, in Java's map order (A-01).

    ``members`` must be in map order. Java collects the names in a set and puts those with
    metadata into a map, which may be smaller than the set was: hence two tables.
    """
    subscribed: dict[str, None] = {}
    for member in members:
        subscribed.update(dict.fromkeys(member.subscription.topics))
    known = [topic for topic in put_order(subscribed, string_hash) if cluster.get(topic)]
    return {topic: cluster[topic] for topic in put_order(known, string_hash)}


def partition_racks(topics: dict[str, tuple[PartitionInfo, ...]]) -> dict[TopicPartition, Racks]:
    """Partition → racks of its replicas, of the given topics (A-04)."""
    known: dict[tuple[str | None, ...], Racks] = {}
    racks: dict[TopicPartition, Racks] = {}
    for topic, partitions in topics.items():
        for number, info in enumerate(partitions):
            found = known.get(info.racks)
            if found is None:
                found = frozenset(rack for rack in info.racks if rack is not None)
                known[info.racks] = found
            racks[TopicPartition(topic, number)] = found
    return racks


def rack_aware(consumer_racks: frozenset[str], racks: dict[TopicPartition, Racks]) -> bool:
    """Whether an assignor minds racks: some consumer's rack holds replicas, and not every
    partition has replicas on all racks (A-05).
    """
    everywhere = frozenset[str]().union(*racks.values())
    if consumer_racks.isdisjoint(everywhere):
        return False
    return any(of_partition != everywhere for of_partition in racks.values())
