"""Which partitions the general algorithm has moved, net (A-69). Mirrors ``PartitionMovements``."""

from __future__ import annotations

from groupsim.protocol.consumer_protocol import TopicPartition
from groupsim_clients.assignors._java_order import JavaOrder, partition_hash

__all__ = ["Movements"]

_Pair = tuple[int, int]  # members as numbers: (from, to)


class Movements:
    """Net movements of one assignment: a→b→c is remembered as a→c, a→b→a is forgotten."""

    def __init__(self) -> None:
        """Nothing has moved yet."""
        self._pair_of: dict[TopicPartition, _Pair] = {}
        self._by_topic: dict[str, dict[_Pair, JavaOrder[TopicPartition]]] = {}

    def actual_partition(
        self, partition: TopicPartition, holder: int, target: int
    ) -> TopicPartition:
        """What to move instead of ``partition`` from ``holder`` to ``target``: a partition of the
        same topic that went the other way, the first in hash-set order; else ``partition``.
        """
        moved = self._by_topic.get(partition.topic)
        if moved is None:
            return partition
        earlier = self._pair_of.get(partition)
        source = holder if earlier is None else earlier[0]
        other_way = moved.get((target, source))
        return partition if other_way is None else other_way.first()

    def record(self, partition: TopicPartition, holder: int, target: int) -> None:
        """``partition`` moves from ``holder`` to ``target``."""
        earlier = self._pair_of.get(partition)
        if earlier is None:
            self._add(partition, (holder, target))
            return
        self._forget(partition, earlier)
        if earlier[0] != target:
            self._add(partition, (earlier[0], target))

    def state(self) -> object:
        """A value that is equal for two objects only if they behave alike from now on."""
        return tuple(
            (topic, tuple((pair, moved.state()) for pair, moved in pairs.items()))
            for topic, pairs in self._by_topic.items()
        )

    def _add(self, partition: TopicPartition, pair: _Pair) -> None:
        self._pair_of[partition] = pair
        pairs = self._by_topic.setdefault(partition.topic, {})
        if pair not in pairs:
            pairs[pair] = JavaOrder(partition_hash)
        pairs[pair].put(partition)

    def _forget(self, partition: TopicPartition, pair: _Pair) -> None:
        del self._pair_of[partition]
        pairs = self._by_topic[partition.topic]
        pairs[pair].discard(partition)
        if not pairs[pair]:
            del pairs[pair]  # a later set starts small again
        if not pairs:
            del self._by_topic[partition.topic]
