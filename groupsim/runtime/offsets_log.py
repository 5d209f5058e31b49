"""The ``__consumer_offsets`` log: what coordinators have written, partition by partition.

An append is there at once and committed when the high watermark reaches it, after the replication
delay. When leadership moves to another broker, what was not committed is lost; when the same broker
comes back, it is not. The log is compacted now and then, as Kafka's is, so that a long run does not
keep every commit: of plain records only the last for each key stays. Records of transactions stay.
"""

from __future__ import annotations

from collections.abc import Sequence

from groupsim.coordinator.records import Record, RecordKey

__all__ = ["PartitionLog"]

_COMPACT_AT = 1024  # records; compaction then halves the log or the bar is raised


class PartitionLog:
    """One partition: its records with their offsets, and how far they are committed."""

    __slots__ = ("_bar", "entries", "high_watermark", "next_offset")

    def __init__(self) -> None:
        self.entries: list[tuple[int, Record]] = []
        self.next_offset = 0
        self.high_watermark = 0
        self._bar = _COMPACT_AT

    def append(self, records: Sequence[Record]) -> int:
        """Append a batch; return its first offset."""
        base = self.next_offset
        self.entries.extend(enumerate(records, base))
        self.next_offset = base + len(records)
        if len(self.entries) > self._bar:
            self.compact()
            self._bar = max(_COMPACT_AT, 2 * len(self.entries))
        return base

    def commit_to(self, offset: int) -> None:
        """The high watermark moves up to ``offset`` (that of the next record to commit)."""
        self.high_watermark = max(self.high_watermark, offset)

    def truncate(self) -> int:
        """Lose what is not committed; return how many records that were."""
        kept = [entry for entry in self.entries if entry[0] < self.high_watermark]
        lost = len(self.entries) - len(kept)
        self.entries = kept
        self.next_offset = self.high_watermark
        return lost

    def records(self) -> tuple[Record, ...]:
        """All records, oldest first."""
        return tuple(record for _, record in self.entries)

    def compact(self) -> None:
        """Drop committed plain records whose key was written again later."""
        newer: set[RecordKey] = set()
        kept: list[tuple[int, Record]] = []
        for offset, record in reversed(self.entries):
            plain = record.key is not None and record.producer_id < 0
            if plain and record.key in newer and offset < self.high_watermark:
                continue
            if plain and record.key is not None and offset < self.high_watermark:
                newer.add(record.key)
            kept.append((offset, record))
        self.entries = kept[::-1]
