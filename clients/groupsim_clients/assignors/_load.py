"""Members in the order of their load, as the general algorithm asks for them (A-60, order L)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

__all__ = ["LoadOrder"]


class LoadOrder:
    """Members, numbered in the order of their ids, sorted by (number of partitions, id).

    Stands for Java's ``TreeSet``. An entry is ``load × members + member``, so that order is plain
    integer order: inserting into a list of some thousand integers costs less than a tree in Python.
    """

    __slots__ = ("_entries", "_members", "loads")

    def __init__(self, members: int) -> None:
        """No member is in the order yet; ``loads`` of all ``members`` are 0."""
        self._members = members
        self._entries: list[int] = []
        self.loads = [0] * members

    def __iter__(self) -> Iterator[int]:
        """Members, least loaded first."""
        members = self._members
        return (entry % members for entry in self._entries)

    def below(self, load: int) -> Iterator[int]:
        """Members with fewer than ``load`` partitions, least loaded first."""
        members = self._members
        end = load * members
        for entry in self._entries:
            if entry >= end:
                return
            yield entry % members

    @property
    def least(self) -> int:
        """The smallest load. Raises ``IndexError`` when empty."""
        return self._entries[0] // self._members

    @property
    def greatest(self) -> int:
        """The greatest load. Raises ``IndexError`` when empty."""
        return self._entries[-1] // self._members

    def add(self, member: int, load: int) -> None:
        """Put the member in with ``load`` partitions."""
        self.loads[member] = load
        insort(self._entries, load * self._members + member)

    def remove(self, member: int) -> None:
        """Take the member out."""
        entry = self.loads[member] * self._members + member
        del self._entries[bisect_left(self._entries, entry)]

    def change(self, member: int, difference: int) -> None:
        """The member's load changes."""
        self.remove(member)
        self.add(member, self.loads[member] + difference)
