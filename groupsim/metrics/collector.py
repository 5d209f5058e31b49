"""Metrics of a run, computed from its events alone: live, or from a file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from groupsim.metrics.group import GroupTracker
from groupsim.metrics.values import Summary
from groupsim.trace.events import Event
from groupsim.trace.writer import TraceWriter

__all__ = ["Metrics"]

_OF_GROUPS: Final = ("group_transition", "member_change", "rebalance_phase")
_OF_CLIENTS: Final = ("process", "order", "client_state", "ownership")


class Metrics:
    """Feed it with events in order, then ask for the summary.

    Memory grows with groups, members, partitions and rebalances, not with the length of the run.
    """

    kinds: Final = ("topic", "client", *_OF_GROUPS, *_OF_CLIENTS)
    """The kinds it looks at; others may be fed and are ignored."""

    def __init__(self) -> None:
        self._topics: dict[str, int] = {}
        self._groups: dict[str, GroupTracker] = {}
        self._group_of: dict[str, GroupTracker] = {}

    def attach(self, writer: TraceWriter) -> None:
        """Follow a trace while it is written."""
        for kind in self.kinds:
            writer.listen(kind, self.feed)

    def feed_all(self, events: Iterable[Event]) -> None:
        """Take many events."""
        for event in events:
            self.feed(event)

    def feed(self, event: Event) -> None:
        """Take one event."""
        kind = event.kind
        if kind in _OF_CLIENTS:
            tracker = self._group_of.get(event.fields["who"])
            if tracker is not None:  # a broker, or a client that belongs to no group
                tracker.feed(event)
        elif kind in _OF_GROUPS:
            self._group(event.fields["group_id"]).feed(event)
        elif kind == "client":
            tracker = self._group(event.fields["group_id"])
            self._group_of[event.fields["who"]] = tracker
            tracker.feed(event)
        elif kind == "topic":
            for tracker in self._groups.values():
                tracker.ledger.advance(event.time_us)
            self._topics[event.fields["topic"]] = event.fields["partitions"]
            for tracker in self._groups.values():
                tracker.ledger.demand_changed()

    def tracker(self, group_id: str) -> GroupTracker | None:
        """Return what follows a group, or None as long as no event has named it.

        For readings in the middle of a run: call ``tracker.ledger.advance(now_us)`` first.
        """
        return self._groups.get(group_id)

    def finish(self, end_us: int) -> Summary:
        """Return the summary of all groups up to ``end_us``."""
        groups = (self._groups[name].finish(end_us) for name in sorted(self._groups))
        return Summary(end_us=end_us, groups=tuple(groups))

    def _group(self, group_id: str) -> GroupTracker:
        tracker = self._groups.get(group_id)
        if tracker is None:
            tracker = self._groups[group_id] = GroupTracker(group_id, self._topics)
        return tracker
