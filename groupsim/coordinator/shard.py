"""One partition of ``__consumer_offsets`` on this broker: its life, its writes, its reads.

Kafka's ``CoordinatorContext`` and ``GroupCoordinatorShard``: a partition is loaded from its log,
serves while it is led here, and is unloaded when leadership goes (rules C-04 to C-08, C-13 ff.).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Final

from groupsim.coordinator.access import LogGate
from groupsim.coordinator.classic.replay import announce_loaded, replay_group, unload_groups
from groupsim.coordinator.config import CoordinatorConfig
from groupsim.coordinator.context import Context
from groupsim.coordinator.effects import TimerFired
from groupsim.coordinator.failures import CoordinatorError, GroupError
from groupsim.coordinator.offsets.cleanup import clean_up
from groupsim.coordinator.offsets.store import OffsetStore
from groupsim.coordinator.outbox import Outbox
from groupsim.coordinator.pipeline import NOTHING, Pipeline, Result, WriteEvent
from groupsim.coordinator.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    LogBatch,
    OffsetCommitKey,
    OffsetCommitValue,
    Record,
    TransactionMarker,
)
from groupsim.coordinator.timers import Timer, TimerQueue
from groupsim.protocol.errors import ErrorCode

__all__ = ["Shard", "ShardState"]

EXPIRATION_KEY: Final = "expire-group-metadata"  # GroupCoordinatorShard.GROUP_EXPIRATION_KEY
GAUGE_KEY: Final = "group-size-counter"  # GroupCoordinatorShard.GROUP_SIZE_COUNTER_KEY
GAUGE_INTERVAL_MS: Final = 60_000  # T-9
GAUGE_RETRY_MS: Final = 500  # CoordinatorTimerImpl's default backoff


class ShardState(enum.Enum):
    """C-04."""

    INITIAL = "initial"
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    CLOSED = "closed"


class Shard:
    """A partition as this broker knows it.

    Attributes:
        epoch: the leader epoch it was last loaded for (C-08).
        context: groups and timers; made afresh by every load.

    """

    def __init__(
        self,
        partition: int,
        *,
        config: CoordinatorConfig,
        outbox: Outbox,
        queue: TimerQueue,
        member_uuid: Callable[[], str],
        next_append_id: Callable[[], int],
        request_flush: Callable[[Pipeline], None],
        log_gate: LogGate | None,
        current: Callable[[int], Shard],
    ) -> None:
        self.partition = partition
        self.state = ShardState.INITIAL
        self.epoch = -1
        self._config = config
        self._outbox = outbox
        self._queue = queue
        self._member_uuid = member_uuid
        self._next_append_id = next_append_id
        self._request_flush = request_flush
        self._log_gate = log_gate
        self._current = current
        self._reset()

    def _reset(self) -> None:
        self.context = Context(
            config=self._config,
            outbox=self._outbox,
            queue=self._queue,
            member_uuid=self._member_uuid,
            run_timer=self._run_timer,
        )
        self.pipeline = Pipeline(
            partition=self.partition,
            outbox=self._outbox,
            timers=self._queue,
            registry=self.context.registry,
            linger_ms=self._config.group_coordinator_append_linger_ms,
            write_timeout_ms=self._config.offsets_commit_timeout_ms,
            next_append_id=self._next_append_id,
            replay=self._replay,
            request_flush=self._request_flush,
            log_gate=self._log_gate,
        )
        self.offsets = OffsetStore(self.context)

    # -- operations --------------------------------------------------------------------------

    def check_active(self) -> None:
        """C-05, C-06: whether requests are served.

        Raises:
            GroupError: NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.

        """
        if self.state is ShardState.LOADING:
            raise GroupError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if self.state is not ShardState.ACTIVE:
            raise GroupError(ErrorCode.NOT_COORDINATOR)

    def write(
        self,
        operation: Callable[[], Result],
        respond: Callable[[ErrorCode], None],
        *,
        transactional: bool = False,
    ) -> None:
        """Run a write operation; ``respond`` is called once, when it is over (0.1, C-12).

        An operation that throws is over at once: its answer waits for nothing.
        """
        try:
            self.check_active()
            result = operation()
        except CoordinatorError as failure:
            respond(failure.code)
            return
        if result is NOTHING and self.pipeline.idle:  # the common case, in one step
            respond(ErrorCode.NONE)
            return
        event = WriteEvent(self._queue, respond)
        self.pipeline.submit(event, result, transactional=transactional)

    def complete_transaction(
        self, marker: TransactionMarker, respond: Callable[[ErrorCode], None]
    ) -> None:
        """Write an end-transaction marker (C-18)."""
        try:
            self.check_active()
        except CoordinatorError as failure:
            respond(failure.code)
            return
        event = WriteEvent(self._queue, respond)
        self.pipeline.complete_transaction(event, Record(marker=marker))

    def _run_timer(self, timer: Timer, operation: Callable[[], Result], retry_ms: int) -> None:
        def respond(error: ErrorCode) -> None:
            if error in (
                ErrorCode.NONE,
                ErrorCode.NOT_COORDINATOR,
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            ):
                return
            outcome = "Rescheduling it" if retry_ms else "Ignoring it"
            self._outbox.log(
                "",
                "INFO" if retry_ms else "ERROR",
                f"The write event Timeout(key={timer.key}) for the timer {timer.key} failed due "
                f"to {error.message}. {outcome}. ",
            )
            if retry_ms:
                self.context.schedule(timer.key, timer.kind, retry_ms, operation, retry_ms=retry_ms)

        # A timer that outlived its partition runs in whatever serves the partition now.
        self._current(self.partition).write(operation, respond)

    # -- load and unload ---------------------------------------------------------------------

    def begin_load(self, epoch: int) -> bool:
        """C-08: start loading for a newer epoch. Returns whether the load is to be done."""
        if epoch <= self.epoch:
            return False
        self.epoch = epoch
        if self.state not in (ShardState.INITIAL, ShardState.FAILED):
            return False  # loading or active already: only the epoch is new
        self._reset()
        self.state = ShardState.LOADING
        return True

    def finish_load(self, batches: Sequence[LogBatch], high_watermark: int) -> None:
        """C-16 to C-20: replay the log, what is not committed too, and serve."""
        for batch in batches:
            for offset, record in batch.records:
                self._replay(offset, record)
            self.pipeline.loaded(batch.next_offset, high_watermark)
        # Kafka's loader forgets the end of a log that has lost its last batches (decisions.toml)
        self.pipeline.loaded(max(high_watermark, self.pipeline.last_written), high_watermark)
        self.pipeline.serve()
        self.state = ShardState.ACTIVE
        announce_loaded(self.context)
        self._schedule_cleanup()
        self._schedule_gauge()

    def fail_load(self) -> None:
        """C-19."""
        self.state = ShardState.FAILED
        self._clear()

    def unload(self) -> None:
        """C-13 to C-15: leadership has gone."""
        self.state = ShardState.CLOSED
        self._clear()

    def _clear(self) -> None:
        self.context.cancel_all_timers()
        self.pipeline.fail_all(ErrorCode.NOT_COORDINATOR)
        unload_groups(self.context)

    def _replay(self, offset: int, record: Record) -> None:
        """Take a record into memory."""
        if record.marker is not None:
            self.offsets.replay_marker(record.marker)
        elif isinstance(record.key, GroupMetadataKey):
            assert record.value is None or isinstance(record.value, GroupMetadataValue)
            replay_group(self.context, record.key.group, record.value)
        elif isinstance(record.key, OffsetCommitKey):
            assert record.value is None or isinstance(record.value, OffsetCommitValue)
            self.offsets.replay(offset, record.producer_id, record.key, record.value)

    # -- periodic work -----------------------------------------------------------------------

    def _schedule_cleanup(self) -> None:
        interval_ms = self._config.offsets_retention_check_interval_ms  # T-7
        self.context.schedule(
            EXPIRATION_KEY, "expiration", interval_ms, self._clean_up, retry_ms=interval_ms
        )

    def _clean_up(self) -> Result:
        result = clean_up(self.context, self.offsets)
        if result.records:
            note = TimerFired(timer="expiration", key=EXPIRATION_KEY)
            self._outbox.effects.append(note)
        self._schedule_cleanup()
        return result

    def _schedule_gauge(self) -> None:
        self.context.schedule(
            GAUGE_KEY, "gauge", GAUGE_INTERVAL_MS, self._count_groups, retry_ms=GAUGE_RETRY_MS
        )  # T-9

    def _count_groups(self) -> Result:
        self._schedule_gauge()  # the gauge itself is read from snapshots here
        return NOTHING
