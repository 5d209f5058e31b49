"""The state that the general algorithm works on (A-60)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from groupsim.protocol._text import java_sort_key
from groupsim.protocol.consumer_protocol import TopicPartition
from groupsim_clients.assignors._java_order import JavaOrder, string_hash
from groupsim_clients.assignors._load import LoadOrder
from groupsim_clients.assignors._ownership import Ownership
from groupsim_clients.assignors.base import GroupMember, PartitionInfo

__all__ = ["Board"]


class Board:
    """Who may hold what, who holds what, and how loaded everybody is.

    Members are numbered in the order of their ids. ``holdings`` of a member that is taken out of the
    rebalancing (A-65) is None, as its entry is missing from Java's map then. ``holder`` need not
    agree with ``holdings`` when partitions are held twice (X3).
    """

    def __init__(
        self,
        topics: dict[str, tuple[PartitionInfo, ...]],
        members: Sequence[GroupMember],
        ownership: Ownership,
    ) -> None:
        """``members`` are in map order."""
        self.topics = topics
        self.ids = sorted((member.member_id for member in members), key=java_sort_key)
        self.number = {member_id: number for number, member_id in enumerate(self.ids)}
        self.potential_topics: list[list[str]] = [[] for _ in self.ids]
        self.potential_members: dict[str, list[int]] = {topic: [] for topic in topics}
        for member in members:
            number = self.number[member.member_id]
            mine = [topic for topic in member.subscription.topics if topic in topics]
            self.potential_topics[number] = mine
            for topic in mine:
                self.potential_members[topic].append(number)
        self.subscribed = [frozenset(of_member) for of_member in self.potential_topics]
        self.limits = [self._limit(of_member) for of_member in self.potential_topics]
        self.holdings: list[list[TopicPartition] | None] = [[] for _ in self.ids]
        self.holder: dict[TopicPartition, int] = {}
        self.load = LoadOrder(len(self.ids))
        self.order: JavaOrder[str] = JavaOrder(string_hash)  # of Java's currentAssignment
        for member_id in ownership.owned:
            self.order.put(member_id)
        for number, partitions in self._owned(ownership):
            self.holdings[number] = list(partitions)
            self.holder.update(dict.fromkeys(partitions, number))
        self.partitions = self._partitions_in_order()

    def _owned(self, ownership: Ownership) -> Iterator[tuple[int, list[TopicPartition]]]:
        for member_id in self.order:
            yield self.number[member_id], ownership.owned[member_id]

    def _limit(self, topics: list[str]) -> int:
        """How many partitions a member subscribing to ``topics`` can get at most."""
        # Java counts a topic that stands twice in a list twice, except in a list as long as all
        of = self.topics if len(topics) == len(self.topics) else topics
        return sum(len(self.topics[topic]) for topic in of)

    def topic_order(self, topic: str) -> tuple[int, str]:
        """Sort key of topics in order T: fewest potential members first, then by name (A-60)."""
        return len(self.potential_members[topic]), java_sort_key(topic)

    def _partitions_in_order(self) -> list[TopicPartition]:
        return [
            TopicPartition(topic, number)
            for topic in sorted(self.topics, key=self.topic_order)
            for number in range(len(self.topics[topic]))
        ]

    def shared(self, topic: str) -> bool:
        """Whether partitions of the topic can move at all: two potential members or more (A-65)."""
        return len(self.potential_members[topic]) >= 2

    def held(self, number: int) -> list[TopicPartition]:
        """What a member that is not taken out holds."""
        partitions = self.holdings[number]
        assert partitions is not None, f"{self.ids[number]} is taken out"
        return partitions

    def in_play(self) -> Iterator[tuple[int, list[TopicPartition]]]:
        """(Member, what it holds) of those not taken out, in Java's map order."""
        for member_id in self.order:
            number = self.number[member_id]
            yield number, self.held(number)

    def give(self, partition: TopicPartition, number: int) -> None:
        """An unassigned partition goes to the member."""
        self.held(number).append(partition)
        self.holder[partition] = number
        self.load.change(number, 1)

    def take_out(self, number: int) -> list[TopicPartition]:
        """The member takes no further part; returns what it holds."""
        partitions = self.held(number)
        self.load.remove(number)
        self.order.discard(self.ids[number])
        self.holdings[number] = None
        return partitions

    def put_back(self, number: int, partitions: list[TopicPartition]) -> None:
        """Undo ``take_out``, at the very end."""
        self.order.put(self.ids[number])
        self.holdings[number] = partitions
