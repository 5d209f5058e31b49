"""The topics of a simulated cluster: partitions, ids, and how far their logs have grown."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from groupsim.runtime.specs import TopicSpec
from groupsim.runtime.world import World

__all__ = ["Topic", "Topics", "UnknownTopicError"]


class UnknownTopicError(LookupError):
    """There is no topic of that name; ``known`` lists those there are."""

    def __init__(self, topic: str, known: tuple[str, ...]) -> None:
        self.topic = topic
        self.known = known
        super().__init__(f"no topic {topic!r}; there are: {', '.join(known) or 'none'}")


class Topic:
    """One topic. ``born_us`` has the time at which each partition came into being."""

    __slots__ = ("born_us", "name", "rate_per_s", "topic_id")

    def __init__(self, name: str, topic_id: str, spec: TopicSpec, now_us: int) -> None:
        self.name = name
        self.topic_id = topic_id
        self.rate_per_s = spec.rate_per_s
        self.born_us = [now_us] * spec.partitions

    def log_end_offset(self, partition: int, time_us: int) -> int:
        """How many records the partition holds at ``time_us``; 0 before it exists."""
        if not 0 <= partition < len(self.born_us):
            return 0
        return max(0, time_us - self.born_us[partition]) * self.rate_per_s // 1_000_000

    def record_exists_us(self, partition: int, offset: int) -> int | None:
        """When the partition comes to hold the record with this offset; None: never."""
        if not self.rate_per_s or not 0 <= partition < len(self.born_us):
            return None
        return self.born_us[partition] - (-(offset + 1) * 1_000_000 // self.rate_per_s)


class Topics:
    """All topics by name, in the order in which they were made. ``version`` grows with changes."""

    def __init__(self, world: World, specs: Mapping[str, TopicSpec]) -> None:
        self._world = world
        self._topics: dict[str, Topic] = {}
        self.version = 0
        for name, spec in specs.items():
            self.create(name, spec)

    def create(self, name: str, spec: TopicSpec) -> None:
        """Make a topic.

        Raises:
            ValueError: there is one of that name.

        """
        if name in self._topics:
            raise ValueError(f"topic {name!r} exists")
        bits = self._world.streams.stream(f"topic-id/{name}")
        raw = bits.at(0).to_bytes(8, "big") + bits.at(1).to_bytes(8, "big")
        topic_id = base64.urlsafe_b64encode(raw).decode().rstrip("=")  # Kafka's Uuid.toString
        self._topics[name] = Topic(name, topic_id, spec, self._world.kernel.now_us)
        self._changed(name)

    def add_partitions(self, name: str, total: int) -> None:
        """Let the topic have ``total`` partitions.

        Raises:
            UnknownTopicError: there is no such topic.
            ValueError: ``total`` is not more than it has.

        """
        topic = self[name]
        have = len(topic.born_us)
        if total <= have:
            raise ValueError(f"topic {name!r} has {have} partitions; {total} is not more")
        topic.born_us += [self._world.kernel.now_us] * (total - have)
        self._changed(name)

    def __getitem__(self, name: str) -> Topic:
        topic = self._topics.get(name)
        if topic is None:
            raise UnknownTopicError(name, tuple(self._topics))
        return topic

    def get(self, name: str) -> Topic | None:
        """Return the topic, None if there is none."""
        return self._topics.get(name)

    def names(self) -> tuple[str, ...]:
        """Names of all topics."""
        return tuple(self._topics)

    def topic_name(self, topic_id: str) -> str | None:
        """Name of the topic with this id, None if there is none."""
        for topic in self._topics.values():
            if topic.topic_id == topic_id:
                return topic.name
        return None

    def topic_id(self, topic: str) -> str:
        """Id of the topic with this name, "" if there is none."""
        known = self._topics.get(topic)
        return "" if known is None else known.topic_id

    def partition_count(self, topic: str) -> int | None:
        """How many partitions the topic has, None if there is no such topic."""
        known = self._topics.get(topic)
        return None if known is None else len(known.born_us)

    def announce(self) -> None:
        """Write every topic to the trace."""
        for name in self._topics:
            self._tell(name)

    def _changed(self, name: str) -> None:
        self.version += 1
        if self._world.kernel.now_us or self._world.cause:
            self._tell(name)

    def _tell(self, name: str) -> None:
        partitions = len(self._topics[name].born_us)
        self._world.event("topic", topic=name, partitions=partitions)
