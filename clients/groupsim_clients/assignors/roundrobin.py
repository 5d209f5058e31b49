"""``RoundRobinAssignor``: one circle of members, one row of partitions (A-20)."""

from __future__ import annotations

from collections.abc import Sequence

from groupsim.protocol._text import java_sort_key
from groupsim.protocol.consumer_protocol import TopicPartition
from groupsim_clients.assignors._group import (
    in_map_order,
    in_member_order,
    participating_topics,
)
from groupsim_clients.assignors.base import Assignor, AssignorFailure, ClusterView, GroupMember

__all__ = ["RoundRobinAssignor"]


class RoundRobinAssignor(Assignor):
    """Deals all partitions out in turn, skipping members that do not subscribe to the topic."""

    name = "roundrobin"

    def assign(
        self, cluster: ClusterView, members: Sequence[GroupMember]
    ) -> dict[str, tuple[TopicPartition, ...]]:
        """See ``Assignor.assign``. Raises ``AssignorFailure`` only for a group without members."""
        if not members:
            raise AssignorFailure("IllegalArgumentException", "a circle of no members")
        by_map = in_map_order(members)
        circle = in_member_order(by_map)
        subscribed = [frozenset(member.subscription.topics) for member in circle]
        dealt: list[list[TopicPartition]] = [[] for _ in circle]
        position = 0
        topics = participating_topics(cluster, by_map)
        for topic in sorted(topics, key=java_sort_key):
            for number in range(len(topics[topic])):
                while topic not in subscribed[position]:
                    position = (position + 1) % len(circle)
                dealt[position].append(TopicPartition(topic, number))
                position = (position + 1) % len(circle)
        return {
            member.member_id: tuple(partitions)
            for member, partitions in zip(circle, dealt, strict=True)
        }
