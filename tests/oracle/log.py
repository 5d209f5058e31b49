"""The log of one ``__consumer_offsets`` partition, kept as the Java driver keeps its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from groupsim.coordinator.records import LogBatch, Record, RecordKey

__all__ = ["Batch", "PartitionLog"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One appended batch. Offsets stay when compaction removes records."""

    append_id: int
    base_offset: int
    last_offset: int
    records: tuple[tuple[int, Record], ...]
    """(offset, record)"""

    @property
    def next_offset(self) -> int:
        """Where the batch ends."""
        return self.last_offset + 1

    @property
    def control(self) -> bool:
        """Does it end a transaction?"""
        return self.records[0][1].marker is not None

    @property
    def producer_id(self) -> int:
        """The transaction's producer, −1 outside transactions."""
        record = self.records[0][1]
        return record.marker.producer_id if record.marker else record.producer_id

    @property
    def transactional(self) -> bool:
        """Is it part of a transaction, its end included?"""
        return self.producer_id >= 0


class PartitionLog:
    """Batches, the end offset and the high watermark."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.end_offset = 0
        self.high_watermark = 0

    def append(self, append_id: int, records: Iterable[Record]) -> Batch:
        """Store a batch at the end."""
        numbered = tuple(enumerate(records, self.end_offset))
        batch = Batch(
            append_id=append_id,
            base_offset=self.end_offset,
            last_offset=numbered[-1][0],
            records=numbered,
        )
        self.batches.append(batch)
        self.end_offset = batch.next_offset
        return batch

    def log_batches(self) -> list[LogBatch]:
        """The log as a coordinator loads it."""
        return [
            LogBatch(records=batch.records, next_offset=batch.next_offset) for batch in self.batches
        ]

    def truncate(self) -> None:
        """Lose what lies above the high watermark, as a leader that never received it."""
        while self.batches and self.batches[-1].next_offset > self.high_watermark:
            self.batches.pop()
        self.end_offset = self.high_watermark

    def compact(self) -> None:
        """Do what Kafka's log cleaner may do below the high watermark and the first open
        transaction, never to the last batch: keep the newest record of each key, drop tombstones
        and what aborted transactions wrote.
        """
        end = self._cleanable()
        survivors: list[tuple[tuple[int, Record], ...]] = []
        newest: dict[RecordKey | None, int] = {}
        for index in range(end):
            batch = self.batches[index]
            survivors.append(() if self._aborted(index) else batch.records)
            if not batch.control:
                newest.update({record.key: offset for offset, record in survivors[-1]})
        kept = []
        for index in range(end):
            batch = self.batches[index]
            records = survivors[index]
            if not batch.control:
                records = tuple(
                    (offset, record)
                    for offset, record in records
                    if record.value is not None and newest[record.key] == offset
                )
            if records:
                kept.append(replace(batch, records=records))
        self.batches[:end] = kept

    def _cleanable(self) -> int:
        end = 0
        while (
            end < len(self.batches) - 1
            and self.batches[end].next_offset <= self.high_watermark
            and not (
                self.batches[end].transactional
                and not self.batches[end].control
                and self._outcome(end) is None
            )
        ):
            end += 1
        return end

    def _aborted(self, index: int) -> bool:
        batch = self.batches[index]
        return batch.transactional and not batch.control and self._outcome(index) is False

    def _outcome(self, index: int) -> bool | None:
        """Did the transaction of a batch commit? None while it is open."""
        producer = self.batches[index].producer_id
        for later in self.batches[index + 1 :]:
            marker = later.records[0][1].marker
            if marker is not None and marker.producer_id == producer:
                return marker.committed
        return None
