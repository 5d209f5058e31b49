"""What Java does that a faithful port must share: string hashes and ``HashMap`` order.

Kafka keeps group members, votes and assignor state in ``java.util.HashMap``; where the order of
iteration decides something (who leads after a leader left, whose list the leader sees first), the
same order must come out here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Generic, TypeVar

__all__ = ["JavaHashMap", "java_string_hash", "spread"]

V = TypeVar("V")

_INITIAL_CAPACITY = 16  # java.util.HashMap.DEFAULT_INITIAL_CAPACITY


def java_string_hash(text: str) -> int:
    """``String.hashCode()``: a signed 32-bit integer over the UTF-16 code units of ``text``."""
    value = 0
    if text.isascii():
        for unit in text.encode("ascii"):
            value = (value * 31 + unit) & 0xFFFFFFFF
    else:
        data = text.encode("utf-16-be", "surrogatepass")
        for index in range(0, len(data), 2):
            value = (value * 31 + (data[index] << 8 | data[index + 1])) & 0xFFFFFFFF
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value


def spread(hash_code: int) -> int:
    """``HashMap.hash``: the hash code XORed with its upper half, as an unsigned 32-bit integer."""
    unsigned = hash_code & 0xFFFFFFFF
    return unsigned ^ (unsigned >> 16)


@lru_cache(maxsize=65_536)
def _spread_of(key: str) -> int:
    """Where a key belongs; the same member ids are keys of several maps."""
    return spread(java_string_hash(key))


class JavaHashMap(dict[str, V], Generic[V]):
    """A ``dict`` with string keys that iterates in ``java.util.HashMap`` order.

    A table starts with 16 buckets and doubles when its size exceeds three quarters of them; it
    never shrinks. Iteration goes bucket by bucket; inside a bucket in insertion order, which
    doubling keeps (rule A-06). Not modelled: a bucket with nine or more entries becomes a tree in
    a table of 64 or more buckets; with random UUIDs in the keys that does not happen.

    The order is computed when asked for and kept until a key is added, so lookups cost what
    a ``dict`` costs, and removing keys one by one while asking for the first costs no sorting.
    """

    __slots__ = ("_capacity", "_first", "_order", "_spreads", "_stale")

    def __init__(self, *, capacity_for: int | None = None) -> None:
        """Make an empty map; with ``capacity_for`` as the copy of a collection of that size."""
        super().__init__()
        self._capacity = _INITIAL_CAPACITY
        if capacity_for is not None:  # new HashSet<>(collection): size / 0.75 + 1, at least 16
            while self._capacity < capacity_for * 4 // 3 + 1:
                self._capacity *= 2
        self._spreads: dict[str, int] = {}
        self._order: list[str] | None = []
        self._stale = False  # the order may hold keys that are gone
        self._first = 0  # all keys before this place of the order are gone

    @property
    def capacity(self) -> int:
        """Number of buckets of the emulated table."""
        return self._capacity

    def __setitem__(self, key: str, value: V) -> None:
        if key not in self._spreads:
            self._spreads[key] = _spread_of(key)
            self._order = None
            super().__setitem__(key, value)
            if len(self) * 4 > self._capacity * 3:
                self._capacity *= 2
        else:
            super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        del self._spreads[key]
        self._stale = True

    def discard(self, key: str) -> V | None:
        """Remove ``key`` and return its value, or ``None`` when it is absent (``Map.remove``)."""
        if key not in self._spreads:
            return None
        value = self[key]
        del self[key]
        return value

    def clear(self) -> None:
        """Remove all entries; the table keeps its capacity, as in Java."""
        super().clear()
        self._spreads.clear()
        self._order = None

    def java_order(self) -> list[str]:
        """The keys in Java's iteration order. The list is shared: do not change it."""
        spreads = self._spreads
        if self._order is None:
            mask = self._capacity - 1
            # dict order is insertion order and sorted() is stable: that is the order in a bucket
            self._order = sorted(spreads, key=lambda key: spreads[key] & mask)
        elif self._stale:
            self._order = [key for key in self._order if key in spreads]
        else:
            return self._order
        self._stale = False
        self._first = 0
        return self._order

    def __iter__(self) -> Iterator[str]:
        return iter(self.java_order())

    def keys(self) -> list[str]:  # type: ignore[override]
        """The keys in Java's order, as a new list."""
        return list(self.java_order())

    def values(self) -> list[V]:  # type: ignore[override]
        """The values in Java's order, as a new list."""
        return [self[key] for key in self.java_order()]

    def items(self) -> list[tuple[str, V]]:  # type: ignore[override]
        """The entries in Java's order, as a new list."""
        return [(key, self[key]) for key in self.java_order()]

    def first(self) -> str | None:
        """The first key in Java's order (``keySet().iterator().next()``), ``None`` when empty."""
        order, spreads = self._order, self._spreads
        if order is None:
            order = self.java_order()
        while self._first < len(order):
            if order[self._first] in spreads:
                return order[self._first]
            self._first += 1
        return None

    def _unsupported(self, *_args: object, **_kwargs: object) -> None:
        raise TypeError("JavaHashMap: use item assignment, del, discard and clear")

    pop = popitem = setdefault = update = copy = _unsupported  # type: ignore[assignment]
