"""The cluster's topics, with ids as the driver makes them; our coordinator's TopicCatalogue."""

from __future__ import annotations

from tests.oracle.driver import topic_id

__all__ = ["START", "Topics"]

START = {"t0": 2, "t1": 2, "t2": 1}
"""Topics of every script: name → partitions."""


class Topics:
    """Topics by name. The id of a name's n-th topic is the MD5 digest of ``topic/name/n``."""

    def __init__(self) -> None:
        self._made: dict[str, int] = {}
        self._partitions: dict[str, int] = {}
        for name, partitions in START.items():
            self.set(name, partitions)

    def set(self, name: str, partitions: int) -> bool:
        """Create a topic or add partitions; answers whether that was possible."""
        if partitions < max(1, self._partitions.get(name, 0)):
            return False
        if name not in self._partitions:
            self._made[name] = self._made.get(name, 0) + 1
        self._partitions[name] = partitions
        return True

    def remove(self, name: str) -> str:
        """Delete a topic; answers its id."""
        del self._partitions[name]
        return self.last_id(name)

    def __contains__(self, name: str) -> bool:
        return name in self._partitions

    def names(self) -> list[str]:
        """All topics."""
        return list(self._partitions)

    def partition_count(self, topic: str) -> int | None:
        """Number of partitions, None for an unknown topic."""
        return self._partitions.get(topic)

    def topic_id(self, topic: str) -> str:
        """The topic's id, "" for an unknown topic."""
        return self.last_id(topic) if topic in self._partitions else ""

    def topic_name(self, topic_id: str) -> str | None:
        """The topic of an id, None when no topic has it."""
        return next((name for name in self._partitions if self.last_id(name) == topic_id), None)

    def last_id(self, name: str) -> str:
        """The id of the newest topic of that name, deleted or not."""
        return topic_id(name, self._made.get(name, 1) - 1)
