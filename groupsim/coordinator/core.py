"""The broker's event loop without threads: partitions, timers and the order of what happens.

Kafka's ``CoordinatorRuntime``. Each partition handles one event at a time. An event that appends
records makes its batch, which is handed to the log at the end of the call (adaptive linger), so
that what the same call still has to do gets into the same batch.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable

from groupsim.coordinator.access import LogGate
from groupsim.coordinator.config import CoordinatorConfig
from groupsim.coordinator.effects import Effect, TimerFired
from groupsim.coordinator.failures import CoordinatorError
from groupsim.coordinator.java_order import ConcurrentOrder
from groupsim.coordinator.outbox import Outbox
from groupsim.coordinator.pipeline import Pipeline
from groupsim.coordinator.shard import Shard
from groupsim.coordinator.timers import QUIET_KINDS, Timer, TimerQueue
from groupsim.protocol.java import java_string_hash

__all__ = ["Core", "partition_for"]

_KNOWN_GROUPS = 100_000  # partitions of so many group ids are remembered


def partition_for(group_id: str, num_partitions: int) -> int:
    """The partition of ``__consumer_offsets`` that holds a group (0.1).

    ``Utils.abs(groupId.hashCode()) % numPartitions``; Kafka's abs of the least integer is 0.
    """
    code = java_string_hash(group_id)
    return 0 if code == -(2**31) else abs(code) % num_partitions


class Core:
    """Partitions of one broker and everything they share."""

    def __init__(
        self,
        config: CoordinatorConfig,
        member_uuid: Callable[[], str],
        log_gate: LogGate | None = None,
    ) -> None:
        self.config = config
        self._log_gate = log_gate
        self.outbox = Outbox()
        self.queue = TimerQueue()
        self.shards: dict[int, Shard] = {}
        self._order = ConcurrentOrder()
        self._member_uuid = member_uuid
        self.known_partitions: dict[str, int] = {}
        self._events: deque[Callable[[], None]] = deque()
        self._to_flush: list[Pipeline] = []
        self._append_ids = 0
        # Stands for every partition that is not here: requests get NOT_COORDINATOR (C-05).
        self.absent = self._new_shard(-1)

    # -- partitions --------------------------------------------------------------------------

    def partition_of(self, group_id: str) -> int:
        """The partition of a group."""
        partition = self.known_partitions.get(group_id)
        if partition is None:
            partition = partition_for(group_id, self.config.offsets_topic_num_partitions)
            if len(self.known_partitions) >= _KNOWN_GROUPS:
                self.known_partitions.clear()
            self.known_partitions[group_id] = partition
        return partition

    def shard_of(self, group_id: str) -> Shard:
        """The partition that serves a group; an inactive one when it is not here."""
        return self.shards.get(self.partition_of(group_id), self.absent)

    def in_order(self) -> list[Shard]:
        """Partitions in the order in which Kafka visits them all (D-06, O-23)."""
        return [self.shards[partition] for partition in self._order.sorted(self.shards)]

    def add_shard(self, partition: int) -> Shard:
        """The partition, made if it is not known."""
        shard = self.shards.get(partition)
        if shard is None:
            shard = self.shards[partition] = self._new_shard(partition)
            self._order.grown_to(len(self.shards))
        return shard

    def _new_shard(self, partition: int) -> Shard:
        return Shard(
            partition,
            config=self.config,
            outbox=self.outbox,
            queue=self.queue,
            member_uuid=self._member_uuid,
            next_append_id=self._next_append_id,
            request_flush=self._to_flush.append,
            log_gate=self._log_gate,
            current=self._current,
        )

    def _current(self, partition: int) -> Shard:
        return self.shards.get(partition, self.absent)

    def _next_append_id(self) -> int:
        self._append_ids += 1
        return self._append_ids

    # -- events ------------------------------------------------------------------------------

    def enqueue(self, event: Callable[[], None]) -> None:
        """Put an event behind all that wait."""
        self._events.append(event)

    def finish(self) -> list[Effect]:
        """Run what is queued, hand over the batches, and return the call's effects."""
        events = self._events
        while events:
            events.popleft()()
        if self._to_flush:
            self._flush()
        return self.outbox.effects

    def _flush(self) -> None:
        for pipeline in self._to_flush:
            with contextlib.suppress(CoordinatorError):  # who waited has been told
                pipeline.flush()
        self._to_flush.clear()

    def fire_due(self, now_ms: int) -> None:
        """Fire timers due at ``now_ms``, until one has made an append.

        All timers of one instant run before their batch is handed over. What the world says of
        an append comes before the next timer, as in Kafka, where a write fails inside its event.
        """
        queue = self.queue
        while not self.outbox.appended and (first := queue.first_due(now_ms)) is not None:
            instant, armed = first.deadline_ms, queue.sequence
            timer: Timer | None = first
            while timer is not None and timer.sequence <= armed and not self.outbox.appended:
                queue.take(timer)
                self.outbox.changes += 1
                if timer.kind not in QUIET_KINDS:
                    self.outbox.effects.append(TimerFired(timer=timer.kind, key=timer.key))
                timer.action()
                timer = queue.first_due(instant)
            self.finish()
