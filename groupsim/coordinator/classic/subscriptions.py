"""Reading topic names out of consumers' subscriptions, as the broker does (rule 2.2).

The broker reads every subscription as version 0, whatever version its header says: topics, then
user data, nothing after. Bytes that end too early make the topics unknown (Kafka logs a warning);
bytes that are wrong in any other way throw, as Kafka's generated reader does.
"""

from __future__ import annotations

from collections.abc import Iterable

from groupsim.coordinator.failures import IllegalStateError

__all__ = ["subscribed_topics_of"]


class _UnderflowError(Exception):
    """Java's ``BufferUnderflowException``, which Kafka turns into a ``SchemaException``."""


class _Cursor:
    """A position in a member's metadata."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def remaining(self) -> int:
        return len(self._data) - self._position

    def integer(self, size: int) -> int:
        if self.remaining < size:
            raise _UnderflowError
        start, self._position = self._position, self._position + size
        return int.from_bytes(self._data[start : self._position], "big", signed=True)

    def text(self, size: int) -> str:
        start, self._position = self._position, self._position + size
        return self._data[start : self._position].decode("utf-8", "replace")


def _topics_of(metadata: bytes) -> frozenset[str]:
    cursor = _Cursor(metadata)
    cursor.integer(2)  # the version the member wrote; not looked at
    count = cursor.integer(4)
    if count < 0:
        raise IllegalStateError("non-nullable field topics was serialized as null")
    if count > cursor.remaining:
        raise IllegalStateError(
            f"Tried to allocate a collection of size {count}, but there are only "
            f"{cursor.remaining} bytes remaining."
        )
    topics = []
    for _ in range(count):
        size = cursor.integer(2)
        if size < 0:
            raise IllegalStateError("non-nullable field topics element was serialized as null")
        if size > cursor.remaining:
            raise IllegalStateError(
                f"Error reading byte array of {size} byte(s): only {cursor.remaining} byte(s) "
                "available"
            )
        topics.append(cursor.text(size))
    if cursor.integer(4) > cursor.remaining:
        raise IllegalStateError(
            "newLimit > capacity"
        )  # ByteBuffer.limit, when user data is cut off
    return frozenset(topics)


def subscribed_topics_of(metadata: Iterable[bytes]) -> frozenset[str] | None:
    """The union of the members' topics; ``None`` when one of them cannot be read.

    Raises:
        IllegalStateError: the bytes are such that Kafka's reader throws something else.

    """
    known: dict[bytes, frozenset[str]] = {}  # members of one application send equal bytes
    topics: set[str] = set()
    try:
        for data in metadata:
            if data not in known:
                known[data] = _topics_of(data)
                topics |= known[data]
    except _UnderflowError:
        return None
    return frozenset(topics)
