"""Moving partitions until nothing gets better (A-67 to A-69). Mirrors ``performReassignments``.

Java asks before every single partition whether the whole assignment is balanced, and answers by
looking at all of it. The answer can change only when something moves, so it is kept here until
then; and while one pair of members still shows an imbalance, no other has to be looked for.
"""

from __future__ import annotations

from collections.abc import Mapping

from groupsim.protocol.consumer_protocol import TopicPartition
from groupsim_clients.assignors._board import Board
from groupsim_clients.assignors._movements import Movements
from groupsim_clients.assignors._sticky_racks import StickyRacks
from groupsim_clients.assignors.base import AssignorFailure, AssignorLivelock

__all__ = ["Reassignment"]

_ORDINARY_PASSES = 30  # from then on states are compared; real groups need three or four passes


class Reassignment:
    """The rebalancing of one board. ``run`` may be called several times; movements add up.

    ``previous``: partition → the member that had it in an older generation (A-61).
    """

    def __init__(
        self, board: Board, racks: StickyRacks, previous: Mapping[TopicPartition, int]
    ) -> None:
        """Nothing is looked at before ``run``."""
        self._board = board
        self._racks = racks
        self._previous = previous
        self._movements = Movements()
        self._consistent: bool | None = None
        self._balanced: bool | None = None  # None: not known since the last move
        self._witness: tuple[int, TopicPartition] | None = None

    def run(self, partitions: list[TopicPartition]) -> bool:
        """Go through ``partitions`` again and again until a pass moves nothing (A-67).

        Returns whether anything moved. Members must not be taken out or put back in between.

        Raises ``AssignorFailure``: Java would meet a null pointer (X4). ``AssignorLivelock``: it
        would go on for ever, since a swap of A-69 can undo what its reason was (X5).
        """
        moved_ever = False
        moved = True
        passes = 0
        seen: set[object] = set()
        while moved:
            moved = False
            passes += 1
            if passes > _ORDINARY_PASSES:
                state = self._state()
                if state in seen:
                    raise AssignorLivelock
                seen.add(state)
            for partition in partitions:
                if self._is_balanced():
                    break
                if self._improve(partition):
                    moved = moved_ever = True
        return moved_ever

    def _state(self) -> object:
        """All that decides how the next pass goes."""
        holdings = tuple((number, tuple(held)) for number, held in self._board.in_play())
        return holdings, self._movements.state()

    def _improve(self, partition: TopicPartition) -> bool:
        """Move ``partition``, or one in its place, if that helps. Returns whether it did."""
        load = self._load_of(self._board.holder.get(partition))
        previous = self._previous.get(partition)
        if previous is not None and load > self._load_of(previous) + 1:
            self._move(partition, previous)  # whether it subscribes is not asked (X2)
            return True
        if not self._helps(partition, load):
            return False
        topic, subscribed = partition.topic, self._board.subscribed
        target = next(number for number in self._board.load if topic in subscribed[number])
        self._move(partition, target)
        return True

    def _helps(self, partition: TopicPartition, load: int) -> bool:
        """Whether a potential member has at least two partitions fewer than ``load``."""
        board = self._board
        candidates = board.potential_members[partition.topic]
        if any(board.holdings[number] is None for number in candidates):
            return self._helps_in_javas_order(partition, load)
        topic, subscribed = partition.topic, board.subscribed
        return any(topic in subscribed[number] for number in board.load.below(load - 1))

    def _helps_in_javas_order(self, partition: TopicPartition, load: int) -> bool:
        """As ``_helps`` where meeting a member that is taken out is a failure: members in the
        holder's rack are asked first, then everybody, until one says yes.
        """
        board, racks = self._board, self._racks
        candidates = board.potential_members[partition.topic]
        holder_rack = racks.consumer_racks.get(board.ids[board.holder[partition]])
        in_partition = racks.partition_racks.get(partition, frozenset())
        if holder_rack in in_partition:
            near = [n for n in candidates if racks.consumer_racks.get(board.ids[n]) in in_partition]
            if any(load > self._load_of(number) + 1 for number in near):
                return True
        return any(load > self._load_of(number) + 1 for number in candidates)

    def _load_of(self, number: int | None) -> int:
        """Number of partitions of a member.

        Raises ``AssignorFailure``: nobody, or a member that is taken out; Java's map has null there
        (X4).
        """
        if number is None:
            raise AssignorFailure("NullPointerException", "a partition that nobody holds")
        if self._board.holdings[number] is None:
            raise AssignorFailure(
                "NullPointerException", f"{self._board.ids[number]} is out of the rebalancing"
            )
        return self._board.load.loads[number]

    def _move(self, partition: TopicPartition, target: int) -> None:
        """A-69: what moves may be another partition, from another holder."""
        board = self._board
        actual = self._movements.actual_partition(partition, board.holder[partition], target)
        holder = board.holder[actual]
        self._load_of(holder)
        assert holder != target, f"{actual} does not move"
        self._movements.record(actual, holder, target)
        held, gets = board.held(holder), board.held(target)
        held.remove(actual)
        board.load.change(holder, -1)
        gets.append(actual)
        board.load.change(target, 1)
        board.holder[actual] = target
        self._balanced = None

    def _is_balanced(self) -> bool:
        """A-68."""
        load = self._board.load
        if load.least >= load.greatest - 1:
            return True
        if self._balanced is None:
            if self._consistent is None:
                self._consistent = self._every_partition_has_one_holder()
            if self._consistent:
                self._balanced = not self._witness_holds() and not self._find_witness()
            else:
                self._balanced = self._is_balanced_in_javas_order()
        return self._balanced

    def _every_partition_has_one_holder(self) -> bool:
        """Whether the board is free of double and missing holders. Moves keep it so."""
        board = self._board
        seen: dict[TopicPartition, int] = {}
        held = 0
        for number, partitions in board.in_play():
            held += len(partitions)
            seen.update(dict.fromkeys(partitions, number))
        if held != len(seen):
            return False
        return all(
            board.holder.get(partition) == seen.get(partition, -1)
            for topic in self._topics_in_play()
            for partition in self._partitions_of(topic)
        )

    def _topics_in_play(self) -> dict[str, None]:
        board = self._board
        topics = dict.fromkeys(topic for topic in board.topics if board.shared(topic))
        for number in board.load:
            topics.update(dict.fromkeys(board.potential_topics[number]))
        return topics

    def _partitions_of(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, n) for n in range(len(self._board.topics[topic]))]

    def _witness_holds(self) -> bool:
        """Whether the known pair still shows that the board is not balanced."""
        if self._witness is None:
            return False
        number, partition = self._witness
        loads = self._board.load.loads
        load = loads[number]
        return load != self._board.limits[number] and (
            load + 1 < loads[self._board.holder[partition]]
        )

    def _find_witness(self) -> bool:
        """Look for a member and a partition it could take from somebody with two more than it."""
        board = self._board
        loads, holder = board.load.loads, board.holder
        heaviest: dict[str, TopicPartition] = {}

        def heaviest_of(topic: str) -> TopicPartition:
            found = heaviest.get(topic)
            if found is None:
                found = max(self._partitions_of(topic), key=lambda p: loads[holder[p]])
                heaviest[topic] = found
            return found

        for number in board.load:
            if loads[number] == board.limits[number]:
                continue
            for topic in board.potential_topics[number]:
                partition = heaviest_of(topic)
                if loads[number] + 1 < loads[holder[partition]]:
                    self._witness = number, partition
                    return True
        self._witness = None
        return False

    def _is_balanced_in_javas_order(self) -> bool:
        """The question as Java asks it, for boards on which its way decides the answer (X3)."""
        board = self._board
        loads = board.load.loads
        holder = {p: number for number, partitions in board.in_play() for p in partitions}
        for number in board.load:
            if loads[number] == board.limits[number]:
                continue
            held = frozenset(board.held(number))
            for topic in board.potential_topics[number]:
                for partition in self._partitions_of(topic):
                    if partition in held:
                        continue
                    if loads[number] + 1 < self._load_of(holder.get(partition)):
                        return False
        return True
