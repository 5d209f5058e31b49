"""Maps that remember what they held at earlier log offsets: Kafka's timeline data structures.

A coordinator applies records to its memory before they are committed. Read operations must see
the committed state only, and a failed append must take its records back (rules 0.1, C-11). Kafka
keeps both in ``org.apache.kafka.timeline``: every write opens a snapshot named by the log offset,
and what is overwritten afterwards moves into that snapshot. This is a port of those classes
(``SnapshotRegistry``, ``SnapshottableHashTable``, ``BaseHashTable``, ``TimelineHashMap``) that
keeps their iteration order, since that order decides the order of listings and of tombstones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeVar

from groupsim.coordinator.failures import IllegalStateError
from groupsim.protocol.java import java_string_hash

__all__ = ["LATEST", "SnapshotRegistry", "TimelineMap", "int_hash", "long_hash", "string_hash"]

K = TypeVar("K")
V = TypeVar("V")

LATEST: Final = 0x7FFF_FFFF_FFFF_FFFF
"""``SnapshottableHashTable.LATEST_EPOCH``: look at the current, uncommitted state."""

_MIN_CAPACITY = 2  # BaseHashTable.MIN_CAPACITY
_FIBONACCI = -7046029254386353131  # BaseHashTable.findSlot
_MASK64 = 0xFFFF_FFFF_FFFF_FFFF

string_hash = java_string_hash


def int_hash(value: int) -> int:
    """``Integer.hashCode``."""
    return value


def long_hash(value: int) -> int:
    """``Long.hashCode`` as a signed 32-bit integer."""
    folded = (value ^ ((value & _MASK64) >> 32)) & 0xFFFF_FFFF
    return folded - 0x1_0000_0000 if folded & 0x8000_0000 else folded


class _Entry(Generic[K, V]):
    """One key with the value it has had since ``start_epoch``."""

    __slots__ = ("hash", "key", "start_epoch", "value")

    def __init__(self, key: K, value: V, hash_code: int, start_epoch: int) -> None:
        self.key = key
        self.value = value
        self.hash = hash_code
        self.start_epoch = start_epoch


class _Table(Generic[K, V]):
    """``BaseHashTable``: buckets in the order Kafka iterates them, entries in chains."""

    __slots__ = ("entries", "slots")

    def __init__(self) -> None:
        self.slots: list[list[_Entry[K, V]]] = [[] for _ in range(_MIN_CAPACITY)]
        self.entries: dict[K, _Entry[K, V]] = {}

    @staticmethod
    def find_slot(hash_code: int, capacity: int) -> int:
        return ((hash_code * _FIBONACCI) & _MASK64) >> (65 - capacity.bit_length())

    def put(self, entry: _Entry[K, V]) -> _Entry[K, V] | None:
        if (len(self.entries) + 1) * 3 > len(self.slots) * 4:  # (size + 1) * 0.75 > capacity
            self._grow()
        chain = self.slots[self.find_slot(entry.hash, len(self.slots))]
        previous = self.entries.get(entry.key)
        self.entries[entry.key] = entry
        if previous is None:
            chain.append(entry)
        else:
            chain[chain.index(previous)] = entry
        return previous

    def remove(self, key: K) -> _Entry[K, V] | None:
        previous = self.entries.pop(key, None)
        if previous is not None:
            self.slots[self.find_slot(previous.hash, len(self.slots))].remove(previous)
        return previous

    def _grow(self) -> None:
        capacity = len(self.slots) * 2
        grown: list[list[_Entry[K, V]]] = [[] for _ in range(capacity)]
        for chain in self.slots:
            for entry in chain:
                grown[self.find_slot(entry.hash, capacity)].append(entry)
        self.slots = grown


class _Snapshot:
    """What maps held at one log offset and hold no longer."""

    __slots__ = ("deltas", "epoch")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        # A map with an entry here has changed since; None: it changed without losing anything.
        self.deltas: dict[TimelineMap[Any, Any], _Table[Any, Any] | None] = {}


class SnapshotRegistry:
    """All snapshots of one partition, oldest first."""

    def __init__(self) -> None:
        self._snapshots: list[_Snapshot] = []

    @property
    def latest_epoch(self) -> int:
        """Epoch of the newest snapshot."""
        return self._snapshots[-1].epoch

    def newest(self) -> _Snapshot:
        """The newest snapshot."""
        return self._snapshots[-1]

    def from_epoch(self, epoch: int) -> list[_Snapshot]:
        """The snapshot of ``epoch`` and all later ones."""
        return [snapshot for snapshot in self._snapshots if snapshot.epoch >= epoch]

    def at(self, epoch: int) -> list[_Snapshot]:
        """The same, for reading.

        Raises:
            IllegalStateError: there is no snapshot of ``epoch``, as after the load of a log of
                which everything below the high watermark has been compacted away.

        """
        snapshots = self.from_epoch(epoch)
        if not snapshots or snapshots[0].epoch != epoch:
            raise IllegalStateError(f"No in-memory snapshot for epoch {epoch}.")
        return snapshots

    def create(self, epoch: int) -> None:
        """Remember the state of all maps as that of log offset ``epoch``, later than any other."""
        self._snapshots.append(_Snapshot(epoch))

    def delete_up_to(self, epoch: int) -> None:
        """Forget every snapshot older than ``epoch``; nobody can ask for them again."""
        # Kafka deletes oldest first, and merges a snapshot into its predecessor: there is none.
        self._snapshots = self.from_epoch(epoch)

    def revert_to(self, epoch: int) -> None:
        """Put all maps back to what they held at ``epoch`` and forget later snapshots (C-11)."""
        later = self.from_epoch(epoch)
        target = later.pop(0)
        for snapshot in later:
            self._snapshots.remove(snapshot)
            for owner, delta in snapshot.deltas.items():
                if owner not in target.deltas:
                    target.deltas[owner] = delta
                elif delta is not None:
                    target.deltas[owner] = _merged(epoch, target.deltas[owner], delta)
        for owner, delta in target.deltas.items():
            owner.revert(epoch, delta)


def _merged(
    epoch: int, into: _Table[Any, Any] | None, delta: _Table[Any, Any]
) -> _Table[Any, Any] | None:
    """``HashTier.mergeFrom``: keep what was there at ``epoch``."""
    for chain in delta.slots:
        for entry in chain:
            if entry.start_epoch <= epoch:
                into = _Table() if into is None else into
                into.put(entry)
    return into


class TimelineMap(Generic[K, V]):
    """``TimelineHashMap``: a map that can be read as of a committed log offset.

    ``latest`` gives direct, fast access to the current entries by key.
    """

    __slots__ = ("_hash", "_registry", "_table")

    def __init__(self, registry: SnapshotRegistry, hash_code: Callable[[K], int]) -> None:
        self._registry = registry
        self._hash = hash_code
        self._table: _Table[K, V] = _Table()

    def __len__(self) -> int:
        return len(self._table.entries)

    def __contains__(self, key: K) -> bool:
        return key in self._table.entries

    def get(self, key: K) -> V | None:
        """The current value."""
        entry = self._table.entries.get(key)
        return None if entry is None else entry.value

    def get_at(self, key: K, epoch: int) -> V | None:
        """The value as of log offset ``epoch`` (LATEST: now)."""
        entry = self._table.entries.get(key)
        if entry is not None and entry.start_epoch <= epoch:
            return entry.value
        if epoch == LATEST:
            return None
        for snapshot in self._registry.at(epoch):
            delta = snapshot.deltas.get(self)
            found = None if delta is None else delta.entries.get(key)
            if found is not None:
                value: V = found.value
                return value if found.start_epoch <= epoch else None
        return None

    def put(self, key: K, value: V) -> V | None:
        """Set a value and return the one before."""
        registry = self._registry
        previous = self._table.put(_Entry(key, value, self._hash(key), registry.latest_epoch + 1))
        self._remember(previous)
        return None if previous is None else previous.value

    def remove(self, key: K) -> V | None:
        """Remove a key and return its value."""
        previous = self._table.remove(key)
        if previous is None:
            return None
        self._remember(previous)
        return previous.value

    def _remember(self, previous: _Entry[K, V] | None) -> None:
        newest = self._registry.newest()
        if previous is None:
            newest.deltas.setdefault(self, None)
        elif previous.start_epoch <= newest.epoch:
            delta = newest.deltas.get(self)
            if delta is None:
                delta = newest.deltas[self] = _Table()
            delta.put(previous)

    def revert(self, epoch: int, delta: _Table[K, V] | None) -> None:
        """``executeRevert``: drop what came after ``epoch``, put back what went."""
        for entry in list(self._current()):
            if entry.start_epoch > epoch:
                self._table.remove(entry.key)
        if delta is not None:
            for chain in delta.slots:
                for entry in chain:
                    self._table.put(entry)

    def _current(self) -> Iterator[_Entry[K, V]]:
        for chain in self._table.slots:
            yield from reversed(chain)  # CurrentIterator takes from the end

    def _historical(self, epoch: int) -> Iterator[_Entry[K, V]]:
        capacity = len(self._table.slots)
        tables = [
            delta
            for snapshot in self._registry.at(epoch)
            if (delta := snapshot.deltas.get(self)) is not None
        ]
        for slot, chain in enumerate(self._table.slots):
            ready = [entry for entry in chain if entry.start_epoch <= epoch]
            for delta in tables:
                shift = capacity.bit_length() - len(delta.slots).bit_length()
                ready += [
                    entry
                    for entry in delta.slots[slot >> (shift & 31)]
                    if entry.start_epoch <= epoch and _Table.find_slot(entry.hash, capacity) == slot
                ]
            yield from reversed(ready)

    def items(self, epoch: int = LATEST) -> list[tuple[K, V]]:
        """All entries in Kafka's iteration order, now or as of log offset ``epoch``."""
        entries = self._current() if epoch == LATEST else self._historical(epoch)
        return [(entry.key, entry.value) for entry in entries]

    def keys(self, epoch: int = LATEST) -> list[K]:
        """All keys, as ``items``."""
        return [key for key, _ in self.items(epoch)]

    def values(self, epoch: int = LATEST) -> list[V]:
        """All values, as ``items``."""
        return [value for _, value in self.items(epoch)]
