"""What the consumer is subscribed to, what it is assigned, and how far it has read
(``SubscriptionState``, with the parts of ``Fetcher`` that move positions).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from groupsim.protocol.consumer_protocol import TopicPartition
from groupsim_clients.errors import JavaError

__all__ = ["PartitionState", "SubscriptionState", "partitions_text", "topics_text"]

_EXCLUSIVE = "Subscription to topics, partitions and pattern are mutually exclusive"


class PartitionState:
    """One assigned partition: ``position`` is the next offset to read, None while unknown."""

    __slots__ = ("paused", "pending_revocation", "position")

    def __init__(self) -> None:
        self.position: int | None = None
        self.paused = False
        self.pending_revocation = False

    @property
    def fetchable(self) -> bool:
        """Whether records of it may be returned."""
        return self.position is not None and not self.paused and not self.pending_revocation


class SubscriptionState:
    """The subscription (topics, pattern or manual), the group's topics, and the assignment.

    ``assignment`` keeps the order in which partitions were assigned. Sets of topics are frozen
    sets; where an order is needed callers sort.
    """

    def __init__(self) -> None:
        self.kind = "none"  # none, topics, pattern, manual
        self.pattern: re.Pattern[str] | None = None
        self._topics: frozenset[str] = frozenset()
        self._group_topics: frozenset[str] = frozenset()
        self.assignment: dict[TopicPartition, PartitionState] = {}

    @property
    def has_auto_assigned(self) -> bool:
        """Whether the group manages the assignment."""
        return self.kind in {"topics", "pattern"}

    @property
    def has_pattern(self) -> bool:
        """Whether the subscription is a pattern."""
        return self.kind == "pattern"

    @property
    def subscription(self) -> frozenset[str]:
        """The topics subscribed to; empty for manual assignment."""
        return self._topics if self.has_auto_assigned else frozenset()

    def pretty(self) -> str:
        """The subscription as Java words it in reasons."""
        if self.has_pattern and self.pattern is not None:
            return f"Subscribe({self.pattern.pattern})"
        if self.kind == "topics":
            return f"Subscribe({','.join(sorted(self._topics))})"
        return "None" if self.kind == "none" else f"Assign({partitions_text(self.assignment)})"

    def subscribe(self, topics: Iterable[str]) -> bool:
        """Subscribe to topics; returns whether that is a change.

        Raises:
            JavaError: another kind of subscription is in use.

        """
        self._set_kind("topics")
        return self._change(topics)

    def subscribe_pattern(self, pattern: re.Pattern[str]) -> None:
        """Subscribe to all topics whose whole name matches."""
        self._set_kind("pattern")
        self.pattern = pattern

    def subscribe_from_pattern(self, topics: Iterable[str]) -> bool:
        """The topics that the pattern matches now; returns whether that is a change."""
        return self._change(topics)

    def assign_manually(self, partitions: Iterable[TopicPartition]) -> bool:
        """Assign without a group; returns whether the topics changed."""
        self._set_kind("manual")
        self.assign(partitions)
        return self._change({partition.topic for partition in self.assignment})

    def unsubscribe(self) -> None:
        """Drop subscription, assignment and pattern (CL-09)."""
        self._topics = self._group_topics = frozenset()
        self.assignment = {}
        self.pattern = None
        self.kind = "none"

    def group_subscribe(self, topics: Iterable[str]) -> bool:
        """The leader watches these topics; returns whether metadata is missing for some (CS-05)."""
        self._group_topics = frozenset(topics)
        return not self._group_topics <= self._topics

    def reset_group_subscription(self) -> None:
        """Watch the own topics only (CJ-17)."""
        self._group_topics = frozenset()

    def metadata_topics(self) -> frozenset[str]:
        """The topics to ask metadata for (CP-10)."""
        return self._topics | self._group_topics

    def needs_metadata(self, topic: str) -> bool:
        """Whether the topic is one of those."""
        return topic in self._topics or topic in self._group_topics

    def matches_pattern(self, topic: str) -> bool:
        """Whether the pattern, if there is one, matches the whole name."""
        return self.pattern is not None and self.pattern.fullmatch(topic) is not None

    def matches_subscription(self, partitions: Iterable[TopicPartition]) -> bool:
        """Whether every partition belongs to the subscription (CC-03)."""
        if self.pattern is not None:
            return all(self.matches_pattern(partition.topic) for partition in partitions)
        return all(partition.topic in self._topics for partition in partitions)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Replace the assignment; what stays keeps position and pause (CC-09)."""
        old = self.assignment
        self.assignment = {
            partition: old.get(partition) or PartitionState() for partition in partitions
        }

    def assigned(self) -> tuple[TopicPartition, ...]:
        """The assignment, sorted by topic, then number."""
        return tuple(sorted(self.assignment))

    def mark_pending_revocation(self) -> None:
        """Return no more records of anything that is assigned (CJ-12)."""
        for state in self.assignment.values():
            state.pending_revocation = True

    def initializing(self) -> tuple[TopicPartition, ...]:
        """Assigned partitions without a position, sorted."""
        missing = [p for p, state in self.assignment.items() if state.position is None]
        return tuple(sorted(missing)) if missing else ()

    def fetchable(self) -> list[tuple[TopicPartition, PartitionState]]:
        """Partitions whose records may be returned, in order of assignment."""
        topics = self._topics if self.kind == "topics" else None
        return [
            (partition, state)
            for partition, state in self.assignment.items()
            if state.fetchable and (topics is None or partition.topic in topics)
        ]

    def all_consumed(self) -> dict[TopicPartition, int]:
        """The position of every partition that has one, in topic-partition order."""
        return {
            partition: state.position
            for partition, state in sorted(self.assignment.items(), key=lambda item: item[0])
            if state.position is not None
        }

    def _set_kind(self, kind: str) -> None:
        if self.kind not in {"none", kind}:
            raise JavaError.illegal_state(_EXCLUSIVE)
        self.kind = kind

    def _change(self, topics: Iterable[str]) -> bool:
        wanted = frozenset(topics)
        if wanted == self._topics:
            return False
        self._topics = wanted
        return True


def partitions_text(partitions: Iterable[tuple[str, int]]) -> str:
    """Partitions as Java prints a list of them: ``[t-0, t-1]``."""
    return "[" + ", ".join(f"{topic}-{number}" for topic, number in partitions) + "]"


def topics_text(topics: Iterable[str]) -> str:
    """Topics as Java prints a set of them, sorted."""
    return "[" + ", ".join(sorted(topics)) + "]"
