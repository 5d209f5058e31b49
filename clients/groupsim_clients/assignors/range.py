"""``RangeAssignor``: per topic, a block of neighbouring partitions for each member (A-10 to A-14)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from groupsim.protocol._text import java_sort_key
from groupsim.protocol.consumer_protocol import TopicPartition
from groupsim_clients.assignors._group import (
    in_map_order,
    in_member_order,
    participating_topics,
    partition_racks,
    rack_aware,
)
from groupsim_clients.assignors.base import Assignor, ClusterView, GroupMember, PartitionInfo

__all__ = ["RangeAssignor"]

_Plan = dict[str, list[TopicPartition]]


class RangeAssignor(Assignor):
    """Blocks per topic; with racks, first what can stay in a member's rack; topics with the same
    members and the same number of partitions are kept together (co-partitioning).
    """

    name = "range"

    def assign(
        self, cluster: ClusterView, members: Sequence[GroupMember]
    ) -> dict[str, tuple[TopicPartition, ...]]:
        """See ``Assignor.assign``. Never fails."""
        by_map = in_map_order(members)
        consumers: dict[str, list[GroupMember]] = {}
        for member in by_map:
            for topic in member.subscription.topics:
                consumers.setdefault(topic, []).append(member)
        topics = [
            _Topic(topic, partitions, consumers[topic])
            for topic, partitions in participating_topics(cluster, by_map).items()
        ]
        plan: _Plan = {member.member_id: [] for member in by_map}
        needs_racks = any(state.needs_racks for state in topics)
        if needs_racks:
            _assign_with_racks(topics, plan)
        for state in topics:  # without racks, the order of the topics is the map's
            _assign_ranges(state, lambda _member, _number: True, plan)
        if needs_racks:
            for partitions in plan.values():
                partitions.sort(key=_topic_then_partition)
        return {member_id: tuple(partitions) for member_id, partitions in plan.items()}


class _Topic:
    """One topic while it is being handed out. Mirrors ``TopicAssignmentState``."""

    def __init__(
        self, topic: str, partitions: tuple[PartitionInfo, ...], consumers: Sequence[GroupMember]
    ) -> None:
        self.topic = topic
        self.rack_of = {
            member.member_id: member.subscription.rack_id or None
            for member in in_member_order(consumers)
        }
        self.unassigned = dict.fromkeys(range(len(partitions)))
        self._taken = dict.fromkeys(self.rack_of, 0)
        self._quota, self._extras = divmod(len(partitions), len(self.rack_of))
        consumer_racks = frozenset(rack for rack in self.rack_of.values() if rack is not None)
        racks = partition_racks({topic: partitions}) if consumer_racks else {}
        self.needs_racks = rack_aware(consumer_racks, racks)
        self._racks = list(racks.values())

    @property
    def counted_partitions(self) -> int:
        """Number of partitions as co-partitioning counts them: 0 when no consumer has a rack."""
        return len(self._racks)

    def may_take(self, member_id: str) -> int:
        """How many partitions the member may still take (A-10)."""
        extra = 1 if self._extras > 0 else 0
        return max(0, self._quota + extra - self._taken[member_id])

    def in_rack(self, member_id: str, number: int) -> bool:
        """Whether the partition has a replica in the member's rack; any does if it has none."""
        rack = self.rack_of[member_id]
        return rack is None or rack in self._racks[number]

    def take(self, member_id: str, numbers: list[int], plan: _Plan) -> None:
        """Give the partitions to the member."""
        plan[member_id] += [TopicPartition(self.topic, number) for number in numbers]
        self._taken[member_id] += len(numbers)
        if self._taken[member_id] > self._quota:
            self._extras -= 1
        for number in numbers:
            del self.unassigned[number]


def _assign_ranges(topic: _Topic, may_assign: Callable[[str, int], bool], plan: _Plan) -> None:
    """A-11: each member in order takes the lowest partitions it may."""
    for member_id in topic.rack_of:
        if not topic.unassigned:
            return
        limit = topic.may_take(member_id)
        candidates = (number for number in topic.unassigned if may_assign(member_id, number))
        chosen = list(islice(candidates, limit))
        if chosen:
            topic.take(member_id, chosen, plan)


def _assign_with_racks(topics: list[_Topic], plan: _Plan) -> None:
    """A-12: the rack pass, over groups of topics with equal consumers and partition counts."""
    groups: dict[tuple[frozenset[str], int], list[_Topic]] = {}
    for topic in topics:
        key = (frozenset(topic.rack_of), topic.counted_partitions)
        groups.setdefault(key, []).append(topic)
    for (_, partitions), group in groups.items():
        if len(group) > 1:
            _assign_together(group, partitions, plan)
        elif group[0].needs_racks:
            _assign_ranges(group[0], group[0].in_rack, plan)


def _assign_together(group: list[_Topic], partitions: int, plan: _Plan) -> None:
    """Partition p of all topics to the first member that matches all of them (A-12, A-13)."""
    remaining = list(group[0].rack_of)
    for number in range(partitions):
        for member_id in remaining:
            if all(t.in_rack(member_id, number) and t.may_take(member_id) for t in group):
                break
        else:
            continue
        for topic in group:
            topic.take(member_id, [number], plan)
        if not any(topic.may_take(member_id) for topic in group):
            remaining.remove(member_id)  # saves the search; it could not be found any more


def _topic_then_partition(partition: TopicPartition) -> tuple[str, int]:
    return java_sort_key(partition.topic), partition.partition
