"""What the world lends to a client machine (``machine.ClientEnvironment``)."""

from __future__ import annotations

from groupsim.runtime.randomness import Streams
from groupsim.runtime.specs import ProcessClock
from groupsim.runtime.topics import Topics

__all__ = ["LentEnvironment"]


class LentEnvironment:
    """What one incarnation is lent: random streams of its own, and the length of the logs.

    ``name`` is that of the incarnation, among all of the run. Times are on the process's ``clock``.
    """

    __slots__ = ("_clock", "_name", "_streams", "_topics")

    def __init__(self, name: str, streams: Streams, topics: Topics, clock: ProcessClock) -> None:
        self._name = name
        self._streams = streams
        self._topics = topics
        self._clock = clock

    def draw(self, stream: str, bound: int) -> int:
        """See ``ClientEnvironment``."""
        return self._streams.stream(f"client/{self._name}/{stream}").below(bound)

    def log_end_offset(self, topic: str, partition: int, now_ms: int) -> int:
        """See ``ClientEnvironment``."""
        known = self._topics.get(topic)
        time_us = self._clock.reaches_us(now_ms)
        return 0 if known is None else known.log_end_offset(partition, time_us)

    def next_record_ms(self, topic: str, partition: int, offset: int, now_ms: int) -> int | None:
        """See ``ClientEnvironment``: the first reading of the clock at which the record is there."""
        known = self._topics.get(topic)
        exists_us = None if known is None else known.record_exists_us(partition, offset)
        if exists_us is None:
            return None
        local_ms = self._clock.read_ms(exists_us)
        if self._clock.reaches_us(local_ms) < exists_us:
            local_ms += 1  # read_ms rounds down: the record comes within that millisecond
        return max(local_ms, now_ms)
