"""Writing one partition's log, and who waits for it: the append path of ``CoordinatorRuntime``.

A write operation hands over records, and what to do when they are committed or lost. Records
gather in a batch; a batch is flushed at the end of the event (adaptive linger, 4.4's default),
inside it (linger 0) or by a timer (linger above 0). Operations complete in log order when the
high watermark passes them, and one without records waits for everything before it (C-12).
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from groupsim.coordinator.access import LogGate
from groupsim.coordinator.effects import Append
from groupsim.coordinator.failures import CoordinatorError
from groupsim.coordinator.outbox import Outbox
from groupsim.coordinator.records import Record, as_written
from groupsim.coordinator.timeline import SnapshotRegistry
from groupsim.coordinator.timers import Timer, TimerQueue
from groupsim.protocol.errors import ErrorCode

__all__ = ["NOTHING", "Pipeline", "Result", "WriteEvent"]


class Result:
    """What a write operation wants: ``CoordinatorResult``.

    Attributes:
        records: to be appended as they are.
        on_append: called with NONE when they are committed, or with the error.
        replay: whether memory takes the records in before they are appended.

    """

    __slots__ = ("on_append", "records", "replay")

    def __init__(
        self,
        records: tuple[Record, ...] = (),
        on_append: Callable[[ErrorCode], None] | None = None,
        *,
        replay: bool = True,
    ) -> None:
        self.records = records
        self.on_append = on_append
        self.replay = replay


NOTHING: Final = Result()
"""No records, nothing to do; recognised by identity (J-21)."""


class WriteEvent:
    """One write operation on its way: ``CoordinatorWriteEvent``."""

    __slots__ = ("_on_append", "_respond", "done", "timeout", "timers")

    def __init__(self, timers: TimerQueue, respond: Callable[[ErrorCode], None]) -> None:
        self._respond = respond
        self._on_append: Callable[[ErrorCode], None] | None = None
        self.done = False
        self.timers = timers
        self.timeout: Timer | None = None

    def accept(self, result: Result) -> None:
        """The operation has produced its result."""
        self._on_append = result.on_append

    def complete(self, error: ErrorCode) -> None:
        """End the operation, once: first its callback, then its answer."""
        if self.done:
            return
        self.done = True
        if self._on_append is not None:
            # CompletableFuture swallows what a callback throws (J-46).
            with contextlib.suppress(CoordinatorError):
                self._on_append(error)
        self._respond(error)
        if self.timeout is not None:
            self.timers.cancel(self.timeout)
            self.timeout = None

    def expire(self) -> None:
        """The write limit passed (T-8)."""
        self.timeout = None
        self.complete(ErrorCode.REQUEST_TIMED_OUT)


class _Batch:
    """Records that have not been handed to the log yet."""

    __slots__ = ("base_offset", "begun_ms", "events", "linger", "next_offset", "records")

    def __init__(self, base_offset: int, begun_ms: int) -> None:
        self.base_offset = base_offset
        self.begun_ms = begun_ms
        self.next_offset = base_offset
        self.records: list[Record] = []
        self.events: list[WriteEvent] = []
        self.linger: Timer | None = None


class _InFlight:
    """A batch that the log has, uncommitted."""

    __slots__ = ("append_id", "base_offset", "end_offset", "events")

    def __init__(
        self, append_id: int, base_offset: int, end_offset: int, events: list[WriteEvent]
    ) -> None:
        self.append_id = append_id
        self.base_offset = base_offset
        self.end_offset = end_offset
        self.events = events


class Pipeline:
    """The write path of one partition."""

    def __init__(
        self,
        *,
        partition: int,
        outbox: Outbox,
        timers: TimerQueue,
        registry: SnapshotRegistry,
        linger_ms: int,
        write_timeout_ms: int,
        next_append_id: Callable[[], int],
        replay: Callable[[int, Record], None],
        request_flush: Callable[[Pipeline], None],
        log_gate: LogGate | None,
    ) -> None:
        self._partition = partition
        self._outbox = outbox
        self._timers = timers
        self._registry = registry
        self._linger_ms = linger_ms
        self._write_timeout_ms = write_timeout_ms
        self._next_append_id = next_append_id
        self._replay = replay
        self._request_flush = request_flush
        self._log_gate = log_gate
        self._batch: _Batch | None = None
        self.in_flight: deque[_InFlight] = deque()
        self.last_written = 0
        self.last_committed = 0
        registry.create(0)

    @property
    def idle(self) -> bool:
        """Whether nothing is written or waiting, so that an operation completes at once."""
        return self._batch is None and self.last_committed == self.last_written

    @property
    def pending_appends(self) -> tuple[int, ...]:
        """Ids of appends the world has not answered yet, in log order."""
        return tuple(entry.append_id for entry in self.in_flight)

    def holds(self, append_id: int) -> bool:
        """Whether this append is one of ``pending_appends``."""
        return any(entry.append_id == append_id for entry in self.in_flight)

    def loaded(self, offset: int, high_watermark: int) -> None:
        """The log up to ``offset``, the end of a batch, has been replayed; what lies above
        ``high_watermark`` is not committed.
        """
        if offset < high_watermark or offset == self.last_written:
            return
        self.last_written = offset
        self._registry.create(offset)
        if high_watermark > self.last_committed:
            self.last_committed = high_watermark
            self._registry.delete_up_to(high_watermark)

    def serve(self) -> None:
        """The whole log has been replayed: what comes waits for what is not committed yet."""
        if self.last_committed < self.last_written:
            self.in_flight.append(_InFlight(-1, self.last_committed, self.last_written, []))

    def submit(self, event: WriteEvent, result: Result, *, transactional: bool = False) -> None:
        """Append the records of an operation and arrange its completion."""
        event.accept(result)
        if not result.records:
            self._wait_for_pending_writes(event)
        else:
            try:
                self._append(event, result, transactional=transactional)
            except CoordinatorError as refused:
                event.complete(refused.code)
        if not event.done:
            self._arm_write_timeout(event)

    def complete_transaction(self, event: WriteEvent, marker: Record) -> None:
        """Write an end-transaction marker; it is a batch of its own."""
        try:
            self.flush()
            self._batch = batch = _Batch(self.last_written, self._outbox.now_ms)
            self._replay(batch.next_offset, marker)
            batch.records.append(marker)
            batch.next_offset += 1
            batch.events.append(event)
            self.flush()
        except CoordinatorError as refused:
            event.complete(refused.code)
        else:
            self._arm_write_timeout(event)

    def _arm_write_timeout(self, event: WriteEvent) -> None:
        timer = Timer("", "write-timeout", event.expire)  # T-8
        timer.owner = self
        event.timeout = timer
        self._timers.add(timer, self._outbox.now_ms + self._write_timeout_ms)

    def _wait_for_pending_writes(self, event: WriteEvent) -> None:
        if self._batch is not None:
            self._batch.events.append(event)
        elif self.in_flight:
            self.in_flight[-1].events.append(event)
        else:
            event.complete(ErrorCode.NONE)

    def _append(self, event: WriteEvent, result: Result, *, transactional: bool) -> None:
        if transactional:
            self.flush()  # a transactional batch holds one operation
        batch = self._batch
        if batch is None:
            batch = self._batch = _Batch(self.last_written, self._outbox.now_ms)
            if self._linger_ms > 0:
                batch.linger = Timer("", "linger", partial(self._linger_over, batch))
                batch.linger.owner = self
                self._timers.add(batch.linger, self._outbox.now_ms + self._linger_ms)
            elif self._linger_ms < 0 and not transactional:
                self._request_flush(self)  # at the end of the event
        for record in result.records:
            if result.replay:
                self._replay(batch.next_offset, record)
            batch.records.append(as_written(record))
            batch.next_offset += 1
        batch.events.append(event)
        waited_ms = self._outbox.now_ms - batch.begun_ms
        if transactional or 0 <= self._linger_ms <= waited_ms:  # maybeFlushCurrentBatch
            self.flush()

    def _linger_over(self, batch: _Batch) -> None:
        batch.linger = None
        with contextlib.suppress(CoordinatorError):  # who waited has been told
            self.flush()

    def flush(self) -> None:
        """Hand the current batch to the log.

        Raises:
            CoordinatorError: the log refuses it; who waited for the batch has been told.

        """
        batch = self._take_batch()
        if batch is None:
            return
        append_id = self._next_append_id()
        append = Append(
            append_id=append_id, partition=self._partition, records=tuple(batch.records)
        )
        error = ErrorCode.NONE if self._log_gate is None else self._log_gate(append)
        if error is not ErrorCode.NONE:
            self._revert(batch.base_offset)
            for event in batch.events:
                event.complete(error)
            raise CoordinatorError(error)
        self.last_written = batch.next_offset
        self._registry.create(batch.next_offset)
        self.in_flight.append(
            _InFlight(append_id, batch.base_offset, batch.next_offset, batch.events)
        )
        self._outbox.appended = True
        self._outbox.effects.append(append)

    def _take_batch(self) -> _Batch | None:
        batch, self._batch = self._batch, None
        if batch is not None and batch.linger is not None:
            self._timers.cancel(batch.linger)
        return batch

    def committed(self, append_id: int) -> None:
        """The high watermark has passed this append, one of ``pending_appends``."""
        ends = {entry.append_id: entry.end_offset for entry in self.in_flight}
        self.committed_up_to(ends[append_id])

    def committed_up_to(self, offset: int) -> None:
        """The high watermark has moved to ``offset``."""
        if offset <= self.last_committed:
            return
        done: list[_InFlight] = []
        while self.in_flight and self.in_flight[0].end_offset <= offset:
            done.append(self.in_flight.popleft())
        self.last_committed = offset
        self._registry.delete_up_to(offset)
        for entry in done:
            for event in entry.events:
                event.complete(ErrorCode.NONE)

    def failed(self, append_id: int, error: ErrorCode) -> None:
        """The log refused this append, one of ``pending_appends``: it and what was built on it is
        taken back (C-11).
        """
        lost: list[_InFlight] = []
        while self.in_flight and self.in_flight[-1].append_id >= append_id:
            lost.insert(0, self.in_flight.pop())
        batch = self._take_batch()
        if batch is not None:
            lost.append(_InFlight(0, batch.base_offset, batch.next_offset, batch.events))
        self._revert(lost[0].base_offset)
        for entry in lost:
            for event in entry.events:
                event.complete(error)

    def _revert(self, offset: int) -> None:
        self.last_written = offset
        self._registry.revert_to(offset)

    def fail_all(self, error: ErrorCode) -> None:
        """The partition is unloaded: first what the log has, then what it has not (C-13)."""
        in_flight, self.in_flight = self.in_flight, deque()
        for entry in in_flight:
            for event in entry.events:
                event.complete(error)
        batch = self._take_batch()
        if batch is not None:
            self._revert(batch.base_offset)
            for event in batch.events:
                event.complete(error)
