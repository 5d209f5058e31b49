"""The algorithm for equal subscriptions (A-50 to A-56). Mirrors ``ConstrainedAssignmentBuilder``.

Everybody ends with ``lo`` or ``hi`` partitions; exactly ``want`` members with ``hi``. Members keep
what they had as far as that allows, the rest is dealt out in turn.
"""

from __future__ import annotations

from collections import deque

from groupsim.protocol._text import java_sort_key
from groupsim.protocol.consumer_protocol import TopicPartition
from groupsim_clients.assignors._merge import not_kept
from groupsim_clients.assignors._ownership import Ownership
from groupsim_clients.assignors._sticky_racks import StickyRacks
from groupsim_clients.assignors.base import AssignorFailure, PartitionInfo

__all__ = ["ConstrainedBuilder"]


class ConstrainedBuilder:
    """Builds one assignment. ``build`` may be called once.

    ``transferring`` afterwards: partition → new member, where somebody else may still hold it.
    """

    def __init__(
        self,
        topics: dict[str, tuple[PartitionInfo, ...]],
        racks: StickyRacks,
        ownership: Ownership,
    ) -> None:
        if not ownership.owned:
            raise AssignorFailure("ArithmeticException", "a group without members")
        total = sum(len(partitions) for partitions in topics.values())
        self._lo, self._want = divmod(total, len(ownership.owned))
        self._hi = self._lo + 1 if self._want else self._lo
        self._have = 0  # members at hi; counted only while want > 0
        self._topics = topics
        self._racks = racks
        self._owned = ownership.owned
        self._multiply_claimed = ownership.multiply_claimed
        self._maybe_revoked: dict[TopicPartition, str] = {}
        self._under_lo: list[str] = []  # U
        self._exactly_lo: deque[str] = deque()  # E
        self._kept: list[TopicPartition] = []
        self.assignment: dict[str, list[TopicPartition]] = {m: [] for m in ownership.owned}
        self.transferring: dict[TopicPartition, str] = {}

    def build(self) -> dict[str, list[TopicPartition]]:
        """Member id → its partitions.

        Raises ``AssignorFailure``: the plan does not come out even (A-56), as with partitions that
        do not exist (X3).
        """
        for member_id in self._owned:
            self._keep_owned(member_id)
        unassigned = self._unassigned()
        self._under_lo.sort(key=java_sort_key)
        self._exactly_lo = deque(sorted(self._exactly_lo, key=java_sort_key))
        unassigned = self._racks.rarest_first(unassigned)
        if self._racks.consumer_racks:
            unassigned = self._assign_in_racks(unassigned)
        self._deal_out(unassigned)
        self._verify()
        return self.assignment

    def _keep_owned(self, member_id: str) -> None:
        """A-50: what the member keeps of what it had."""
        owned = self._still_owned(member_id)
        if len(owned) < self._lo:
            kept = len(owned)
            self._under_lo.append(member_id)
        elif len(owned) >= self._hi and self._have < self._want:
            kept = self._hi
            self._count_one_at_hi()
        else:
            kept = self._lo
            if self._have < self._want:
                self._exactly_lo.append(member_id)
        self.assignment[member_id] += owned[:kept]
        self._kept += owned[:kept]
        for partition in owned[kept:]:
            self._maybe_revoked[partition] = member_id

    def _still_owned(self, member_id: str) -> list[TopicPartition]:
        owned = self._owned[member_id]
        if self._racks.consumer_racks:
            mismatched = [p for p in owned if self._racks.mismatch(member_id, p)]
            self._maybe_revoked.update(dict.fromkeys(mismatched, member_id))
            owned = [p for p in owned if not self._racks.mismatch(member_id, p)]
        owned = sorted(owned, key=_number_then_topic)
        for partition in [p for p in dict.fromkeys(owned) if p in self._multiply_claimed]:
            owned.remove(partition)  # one occurrence, as List.remove
        return owned

    def _count_one_at_hi(self) -> None:
        self._have += 1
        if self._have == self._want:
            self._exactly_lo.clear()  # nobody there may get another one

    def _unassigned(self) -> list[TopicPartition]:
        everything = [
            TopicPartition(topic, number)
            for topic in sorted(self._topics, key=java_sort_key)
            for number in range(len(self._topics[topic]))
        ]
        self._kept.sort(key=_topic_then_number)
        return not_kept(everything, self._kept)

    def _assign_in_racks(self, unassigned: list[TopicPartition]) -> list[TopicPartition]:
        """A-53: what can be had in a member's own rack. Returns what is left."""
        left: list[TopicPartition] = []
        cursor = 0
        for partition in unassigned:
            index = self._racks.next_member(partition, self._under_lo, cursor)
            if index is not None:
                member_id = self._under_lo[index]
                if len(self.assignment[member_id]) + 1 >= self._lo:
                    self._leave_under_lo(index)
                else:
                    index += 1
                cursor = index % len(self._under_lo) if self._under_lo else 0
            else:
                taker = self._taker_at_lo(partition)
                if taker is None:
                    left.append(partition)
                    continue
                member_id = taker
            self._assign(partition, member_id)
        return left

    def _leave_under_lo(self, index: int) -> None:
        """The member at ``index`` of U is about to reach lo."""
        member_id = self._under_lo.pop(index)
        count = len(self.assignment[member_id]) + 1
        if count < self._hi and self._have < self._want:
            self._exactly_lo.append(member_id)

    def _taker_at_lo(self, partition: TopicPartition) -> str | None:
        """The first member of E in a rack of the partition; it leaves E, as it reaches hi."""
        index = self._racks.next_member(partition, self._exactly_lo, 0)
        if index is None:
            return None
        member_id = self._exactly_lo[index]
        del self._exactly_lo[index]
        self._count_one_at_hi()
        return member_id

    def _deal_out(self, unassigned: list[TopicPartition]) -> None:
        """A-54: the rest in turn; first to U, then to E from its head."""
        under_lo, exactly_lo = self._under_lo, self._exactly_lo
        cursor = 0  # stands for Java's iterator over U
        for partition in unassigned:
            if cursor < len(under_lo):
                member_id = under_lo[cursor]
                cursor += 1
            elif under_lo:
                member_id = under_lo[0]
                cursor = 1
            elif exactly_lo:
                member_id = exactly_lo.popleft()
            else:
                raise AssignorFailure("IllegalStateException", f"nobody left to take {partition}")
            self._assign(partition, member_id)
            count = len(self.assignment[member_id])
            if count == self._lo:
                cursor -= 1
                del under_lo[cursor]
                exactly_lo.append(member_id)
            elif count == self._hi:
                self._have += 1

    def _assign(self, partition: TopicPartition, member_id: str) -> None:
        """A-55: notes partitions that somebody else may still hold."""
        self.assignment[member_id].append(partition)
        revoked_from = self._maybe_revoked.get(partition)
        if (
            revoked_from is not None and revoked_from != member_id
        ) or partition in self._multiply_claimed:
            self.transferring[partition] = member_id

    def _verify(self) -> None:
        """A-56."""
        if self._under_lo and self._have != self._want:
            raise AssignorFailure(
                "IllegalStateException",
                f"{self._have} of {self._want} members have {self._hi} partitions and none are left",
            )
        for member_id in self._under_lo:
            if len(self.assignment[member_id]) != self._lo:
                raise AssignorFailure(
                    "IllegalStateException", f"{member_id} does not reach {self._lo} partitions"
                )


def _number_then_topic(partition: TopicPartition) -> tuple[int, str]:
    return partition.partition, java_sort_key(partition.topic)


def _topic_then_number(partition: TopicPartition) -> tuple[str, int]:
    return java_sort_key(partition.topic), partition.partition
