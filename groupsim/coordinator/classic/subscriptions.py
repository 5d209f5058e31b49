"""Reading topic names out of consumers' subscriptions, as the broker does (rule 2.2).

The broker reads every subscription as version 0, whatever version its header says: topics, then
user data, nothing after. Bytes it cannot read make the topics of the whole group unknown.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["subscribed_topics_of"]


class _UnreadableError(Exception):
    """Java's ``SchemaException``."""


class _Cursor:
    """A position in a member's metadata."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def take(self, size: int) -> bytes:
        start, end = self._position, self._position + size
        if size < 0 or end > len(self._data):
            raise _UnreadableError
        self._position = end
        return self._data[start:end]

    def integer(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big", signed=True)

    def strings(self) -> list[str]:
        count = self.integer(4)
        if count < 0 or count > len(self._data):
            raise _UnreadableError
        return [self.take(self.integer(2)).decode("utf-8", "replace") for _ in range(count)]


def _topics_of(metadata: bytes) -> frozenset[str]:
    cursor = _Cursor(metadata)
    cursor.integer(2)  # the version the member wrote; not looked at
    topics = cursor.strings()
    cursor.take(max(cursor.integer(4), 0))  # user data; any negative length is none
    return frozenset(topics)


def subscribed_topics_of(metadata: Iterable[bytes]) -> frozenset[str] | None:
    """The union of the members' topics; ``None`` when one of them cannot be read."""
    known: dict[bytes, frozenset[str]] = {}  # members of one application send equal bytes
    topics: set[str] = set()
    try:
        for data in metadata:
            if data not in known:
                known[data] = _topics_of(data)
                topics |= known[data]
    except _UnreadableError:
        return None
    return frozenset(topics)
