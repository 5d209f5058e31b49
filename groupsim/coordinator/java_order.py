"""The order in which Kafka visits partitions: that of Java's maps keyed by ``TopicPartition``."""

from __future__ import annotations

from collections.abc import Iterable

from groupsim.protocol.java import java_string_hash, spread

__all__ = ["ConcurrentOrder", "hash_map_order"]

_TOPIC_HASH = java_string_hash("__consumer_offsets")
_CAPACITY = 16


def _spread_hash(partition: int) -> int:
    """``TopicPartition.hashCode``, spread over a map's buckets."""
    return spread(31 * (31 + partition) + _TOPIC_HASH)


def _sorted(partitions: Iterable[int], capacity: int) -> list[int]:
    return sorted(partitions, key=lambda partition: _spread_hash(partition) & (capacity - 1))


def hash_map_order(partitions: list[int]) -> list[int]:
    """Distinct partitions as a fresh ``HashMap`` iterates them that got them in this order by
    ``computeIfAbsent``, which puts a new entry in front of its bucket (``put`` puts it behind).
    """
    capacity = _CAPACITY
    while len(partitions) * 4 > capacity * 3:
        capacity *= 2
    return _sorted(reversed(partitions), capacity)


class ConcurrentOrder:
    """The order of the runtime's ``ConcurrentHashMap``, which grows and never shrinks."""

    __slots__ = ("_capacity",)

    def __init__(self) -> None:
        self._capacity = _CAPACITY

    def grown_to(self, size: int) -> None:
        """The map has had this many entries; it grows when three quarters are reached."""
        while size * 4 >= self._capacity * 3:
            self._capacity *= 2

    def sorted(self, partitions: Iterable[int]) -> list[int]:
        """Partitions in the map's order."""
        return _sorted(partitions, self._capacity)
