"""Iteration order of ``java.util.HashMap`` and ``HashSet`` for whatever keys assignors use (A-06).

``groupsim.protocol.java.JavaHashMap`` maps strings. Assignors also need sets of topic-partitions,
tables that were made with an initial capacity, entries made through ``computeIfAbsent`` (they go to
the *front* of their bucket), and the early doubling of small tables with a crowded bucket.

Not modelled: a bucket with nine keys in a table of 64 or more buckets becomes a tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Generic, TypeVar

from groupsim.protocol.consumer_protocol import TopicPartition
from groupsim.protocol.java import java_string_hash, spread

__all__ = ["JavaOrder", "compute_if_absent_order", "partition_hash", "put_order", "string_hash"]

K = TypeVar("K")

_INITIAL_CAPACITY = 16  # HashMap.DEFAULT_INITIAL_CAPACITY
_TREEIFY_THRESHOLD = 8  # HashMap.TREEIFY_THRESHOLD
_MIN_TREEIFY_CAPACITY = 64  # HashMap.MIN_TREEIFY_CAPACITY


@lru_cache(maxsize=16_384)  # a leader sees the same member ids and topics in every rebalance
def string_hash(text: str) -> int:
    """Spread hash of a string."""
    return spread(java_string_hash(text))


def partition_hash(partition: TopicPartition) -> int:
    """Spread hash of a ``org.apache.kafka.common.TopicPartition``."""
    return spread(31 * (31 + partition.partition) + java_string_hash(partition.topic))


class JavaOrder(Generic[K]):
    """The keys of a HashMap or HashSet in Java's order, filled through ``put``.

    ``initial_capacity`` is what Java's constructor was given, None for the default of 16. The table
    doubles when its size exceeds three quarters of its capacity and never shrinks.
    """

    __slots__ = ("_capacity", "_hash", "_order", "_spreads")

    def __init__(self, key_hash: Callable[[K], int], initial_capacity: int | None = None) -> None:
        self._hash = key_hash
        self._capacity = (
            _INITIAL_CAPACITY if initial_capacity is None else _table_size_for(initial_capacity)
        )
        self._spreads: dict[K, int] = {}
        self._order: list[K] | None = None

    def __iter__(self) -> Iterator[K]:
        if self._order is None:
            mask = self._capacity - 1
            spreads = self._spreads
            # the dict has insertion order and sorted() is stable: that is the order in a bucket
            self._order = sorted(spreads, key=lambda key: spreads[key] & mask)
        return iter(self._order)

    def __len__(self) -> int:
        return len(self._spreads)

    def first(self) -> K:
        """``iterator().next()`` of a table that is not empty."""
        mask = self._capacity - 1
        return min(self._spreads, key=lambda key: self._spreads[key] & mask)

    def put(self, key: K) -> None:
        """``HashMap.put`` and ``HashSet.add``; a key that is present stays where it is."""
        if key in self._spreads:
            return
        hashed = self._hash(key)
        if self._capacity < _MIN_TREEIFY_CAPACITY:
            mask = self._capacity - 1
            bucket = hashed & mask
            crowd = sum(1 for other in self._spreads.values() if other & mask == bucket)
            if crowd >= _TREEIFY_THRESHOLD:
                self._capacity *= 2  # HashMap.treeifyBin prefers a bigger table
        self._spreads[key] = hashed
        self._order = None
        if len(self._spreads) * 4 > self._capacity * 3:
            self._capacity *= 2

    def discard(self, key: K) -> None:
        """``remove``; nothing happens when ``key`` is absent."""
        if self._spreads.pop(key, None) is not None:
            self._order = None

    def state(self) -> object:
        """A value that is equal for two tables only if they behave alike from now on."""
        return self._capacity, tuple(self._spreads)

    def clear(self) -> None:
        """Remove everything; the table keeps its capacity."""
        self._spreads.clear()
        self._order = None


def put_order(
    keys: Iterable[K], key_hash: Callable[[K], int], initial_capacity: int | None = None
) -> list[K]:
    """``keys`` in the order of a HashMap into which they were put one by one."""
    table: JavaOrder[K] = JavaOrder(key_hash, initial_capacity)
    for key in keys:
        table.put(key)
    return list(table)


def compute_if_absent_order(keys: Iterable[K], key_hash: Callable[[K], int]) -> list[K]:
    """``keys`` in the order of a HashMap filled by ``computeIfAbsent`` alone; repeats count.

    There the growth check comes before the look-up, on every call, and a new entry becomes the
    first of its bucket (A-06, exception i).
    """
    capacity = _INITIAL_CAPACITY
    spreads: dict[K, int] = {}
    for key in keys:
        if len(spreads) * 4 > capacity * 3:
            capacity *= 2
        if key in spreads:
            continue
        hashed = key_hash(key)
        if capacity < _MIN_TREEIFY_CAPACITY:
            mask = capacity - 1
            crowd = sum(1 for other in spreads.values() if other & mask == hashed & mask)
            if crowd >= _TREEIFY_THRESHOLD - 1:  # this path counts one entry less than put does
                capacity *= 2
        spreads[key] = hashed
    mask = capacity - 1
    newest_first = list(spreads)[::-1]
    return sorted(newest_first, key=lambda key: spreads[key] & mask)


def _table_size_for(capacity: int) -> int:
    """The power of two that ``new HashMap<>(capacity)`` uses."""
    return 1 if capacity <= 1 else 1 << (capacity - 1).bit_length()
