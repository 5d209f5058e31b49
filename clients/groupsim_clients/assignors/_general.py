"""The algorithm for unequal subscriptions (A-60 to A-69). Mirrors ``GeneralAssignmentBuilder``."""

from __future__ import annotations

from collections.abc import Sequence

from groupsim.protocol.consumer_protocol import TopicPartition
from groupsim_clients.assignors._board import Board
from groupsim_clients.assignors._java_order import JavaOrder, put_order, string_hash
from groupsim_clients.assignors._merge import not_kept
from groupsim_clients.assignors._ownership import Ownership
from groupsim_clients.assignors._reassign import Reassignment
from groupsim_clients.assignors._sticky_racks import StickyRacks
from groupsim_clients.assignors.base import GroupMember, PartitionInfo

__all__ = ["GeneralBuilder", "balance_score"]


class GeneralBuilder:
    """Builds one assignment. ``build`` may be called once."""

    def __init__(
        self,
        topics: dict[str, tuple[PartitionInfo, ...]],
        members: Sequence[GroupMember],
        racks: StickyRacks,
        ownership: Ownership,
    ) -> None:
        """``members`` are in map order."""
        self._members = members
        self._racks = racks
        self._ownership = ownership
        self._board = Board(topics, members, ownership)
        self._revocation_required = False

    def build(self) -> dict[str, list[TopicPartition]]:
        """Member id → its partitions, members in Java's map order.

        Raises ``AssignorFailure``: where Java runs into a null pointer (X4).
        """
        board = self._board
        reassignment = Reassignment(board, self._racks, self._previous_owners())
        kept = self._keep_owned()
        kept.sort(key=lambda p: (board.topic_order(p.topic), p.partition))
        unassigned = not_kept(board.partitions, kept)
        for number in range(len(board.ids)):
            board.load.add(number, len(board.held(number)))
        self._balance(unassigned, reassignment)
        return {board.ids[number]: partitions for number, partitions in board.in_play()}

    def _previous_owners(self) -> dict[TopicPartition, int]:
        """A-61: who had a partition in an older generation."""
        owners: dict[TopicPartition, tuple[int, int]] = {}
        for member in self._members:
            claim = self._ownership.claims[member.member_id]
            if claim.generation >= self._ownership.max_generation:
                continue
            number = self._board.number[member.member_id]
            for partition in claim.partitions:  # as claimed: topics may be gone
                known = owners.get(partition)
                if known is None or claim.generation > known[1]:
                    owners[partition] = number, claim.generation
        return {partition: number for partition, (number, _) in owners.items()}

    def _keep_owned(self) -> list[TopicPartition]:
        """A-62: drops what a member may not have any more, returns what is kept."""
        kept: list[TopicPartition] = []
        for number, partitions in self._board.in_play():
            member_id, subscribed = self._board.ids[number], self._board.subscribed[number]
            mine = [
                partition
                for partition in partitions
                if partition.topic in subscribed and not self._racks.mismatch(member_id, partition)
            ]
            if len(mine) < len(partitions):
                self._revocation_required = True
                self._board.holdings[number] = mine
            kept += mine
        return kept

    def _balance(self, unassigned: list[TopicPartition], reassignment: Reassignment) -> None:
        board = self._board
        initializing = board.load.greatest == 0
        self._assign(unassigned)
        taken_out = self._take_out_members()
        movable = [p for p in board.partitions if board.shared(p.topic)]
        new = [p for p in unassigned if board.shared(p.topic)]
        before = _Snapshot(board)
        if not self._revocation_required:
            reassignment.run(new)
        moved = reassignment.run(movable)
        if not initializing and moved and before.score_is_not_above(board):
            before.restore(board)
        for number, partitions in taken_out:
            board.put_back(number, partitions)

    def _assign(self, unassigned: list[TopicPartition]) -> None:
        """A-64: to the least loaded subscriber; first only within racks, if racks matter."""
        left = unassigned
        if self._racks.consumer_racks:
            left = [p for p in unassigned if not self._give_in_rack(p)]
        board = self._board
        for partition in left:
            topic, subscribed = partition.topic, board.subscribed
            for number in board.load:
                if topic in subscribed[number]:
                    board.give(partition, number)
                    break

    def _give_in_rack(self, partition: TopicPartition) -> bool:
        """Members without rack qualify here."""
        board = self._board
        for number in board.load:
            if partition.topic not in board.subscribed[number]:
                continue
            if not self._racks.mismatch(board.ids[number], partition):
                board.give(partition, number)
                return True
        return False

    def _take_out_members(self) -> list[tuple[int, list[TopicPartition]]]:
        """A-65: members for whom nothing can change, in the order in which Java puts them back."""
        board = self._board
        ids = [member.member_id for member in self._members]
        fixed = [
            member_id
            for member_id in put_order(ids, string_hash, initial_capacity=len(ids))
            if self._is_fixed(board.number[member_id])
        ]
        numbers = [board.number[member_id] for member_id in put_order(fixed, string_hash)]
        return [(number, board.take_out(number)) for number in numbers]

    def _is_fixed(self, number: int) -> bool:
        held = self._board.held(number)
        if len(held) < self._board.limits[number]:
            return False
        return not any(self._board.shared(partition.topic) for partition in held)


class _Snapshot:
    """What Java copies before it rebalances, to go back to (A-66)."""

    def __init__(self, board: Board) -> None:
        self._order: JavaOrder[str] = JavaOrder(string_hash)
        self._holdings: dict[str, list[TopicPartition]] = {}
        for number, partitions in board.in_play():
            self._order.put(board.ids[number])
            self._holdings[board.ids[number]] = list(partitions)
        self._holder = dict(board.holder)

    def score_is_not_above(self, board: Board) -> bool:
        """Whether the board is no better balanced than this copy."""
        now = balance_score([len(partitions) for _, partitions in board.in_play()])
        return now >= balance_score([len(held) for held in self._holdings.values()])

    def restore(self, board: Board) -> None:
        """Back to this copy. The load order is left as it is: nobody asks for it again."""
        board.order.clear()
        for member_id in self._order:
            board.order.put(member_id)
            board.holdings[board.number[member_id]] = self._holdings[member_id]
        board.holder = self._holder


def balance_score(sizes: list[int]) -> int:
    """Sum of the absolute differences of all pairs, in Java's 32-bit arithmetic (A-66)."""
    count = len(sizes)
    total = sum((2 * index - count + 1) * size for index, size in enumerate(sorted(sizes)))
    wrapped = total & 0xFFFFFFFF
    return wrapped - 0x1_0000_0000 if wrapped & 0x8000_0000 else wrapped
