"""Racks as the sticky assignors see them: decided once for the whole group (A-05)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from groupsim.protocol.consumer_protocol import TopicPartition
from groupsim_clients.assignors._group import partition_racks, rack_aware
from groupsim_clients.assignors.base import GroupMember, PartitionInfo

__all__ = ["StickyRacks"]

_NOWHERE: frozenset[str] = frozenset()


class StickyRacks:
    """Which member sits where, which partition has replicas where. Mirrors ``RackInfo``.

    ``consumer_racks`` is empty when the assignment does not mind racks, whatever members say.
    """

    def __init__(
        self, members: Sequence[GroupMember], topics: dict[str, tuple[PartitionInfo, ...]]
    ) -> None:
        """Note the racks of ``members`` and of all partitions of ``topics``."""
        consumers = {
            member.member_id: member.subscription.rack_id
            for member in members
            if member.subscription.rack_id
        }
        self._members_in = Counter(consumers.values())
        racks = partition_racks(topics) if consumers else {}
        aware = bool(consumers) and rack_aware(frozenset(consumers.values()), racks)
        self.consumer_racks: dict[str, str] = consumers if aware else {}
        self.partition_racks = racks if aware else {}

    def mismatch(self, member_id: str, partition: TopicPartition) -> bool:
        """The member has a rack and the partition no replica in it."""
        rack = self.consumer_racks.get(member_id)
        return rack is not None and rack not in self.partition_racks.get(partition, _NOWHERE)

    def rarest_first(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Stable sort by the number of members in the racks of a partition (A-51)."""
        if not self.partition_racks:
            return partitions  # every partition has the same number
        members_in = self._members_in
        return sorted(
            partitions, key=lambda p: sum(members_in[rack] for rack in self.partition_racks[p])
        )

    def next_member(
        self, partition: TopicPartition, member_ids: Sequence[str], start: int
    ) -> int | None:
        """Index of the first member, searching in a circle from ``start``, in a rack of the
        partition. Members without rack never match (A-53).
        """
        racks = self.partition_racks.get(partition)
        if not racks:
            return None
        count = len(member_ids)
        for step in range(count):
            index = (start + step) % count
            if self.consumer_racks.get(member_ids[index]) in racks:
                return index
        return None
