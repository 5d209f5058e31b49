"""One group's rebalances, told from its events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from groupsim.metrics.ledger import Ledger
from groupsim.metrics.values import Detection, GroupSummary, Rebalance
from groupsim.trace.events import Event

__all__ = ["GroupTracker"]

TRIGGERS: Final = frozenset({"joined", "rejoined", "replaced", "left", "expired", "removed"})
"""Changes of a member that set a rebalance off (the others follow from one)."""

NOTICED: Final = frozenset({"left", "expired", "removed", "replaced"})
"""Changes that show that the coordinator has done with a silent member."""


class _Row:
    """A rebalance under way."""

    def __init__(self, number: int, event: Event, ledger: Ledger) -> None:
        self.number = number
        self.started_us = event.time_us
        self.generation = int(event.fields["generation_id"])
        self.reason = str(event.fields["reason"])
        self.trigger = ""
        self.who = ""
        self.joined_us: int | None = None
        self.assigned_us: int | None = None
        self.members = 0
        self.waiting: dict[str, None] = {}  # members that do not hold their part yet
        self.moved_before = ledger.moved
        self.unowned_before_us = ledger.unowned_so_far_us

    def close(self, outcome: str, now_us: int, ledger: Ledger) -> Rebalance:
        joined = now_us if self.joined_us is None else self.joined_us
        assigned = now_us if self.assigned_us is None else self.assigned_us
        return Rebalance(
            number=self.number,
            started_us=self.started_us,
            ended_us=None if outcome == "open" else now_us,
            generation=self.generation,
            outcome=outcome,
            trigger=self.trigger,
            who=self.who,
            reason=self.reason,
            joins_us=joined - self.started_us,
            assigning_us=None if self.joined_us is None else assigned - joined,
            syncing_us=None if self.assigned_us is None else now_us - assigned,
            members=self.members,
            moved=ledger.moved - self.moved_before,
            unowned_partition_us=ledger.unowned_so_far_us - self.unowned_before_us,
        )


class GroupTracker:
    """Follows one group. Events must come in the order of the trace."""

    def __init__(self, group_id: str, topics: Mapping[str, int]) -> None:
        self.group_id = group_id
        self.ledger = Ledger(topics)
        self._row: _Row | None = None
        self._rows: list[Rebalance] = []
        self._detections: list[Detection] = []
        self._changes: dict[str, int] = {}
        self._last_change: Event | None = None
        self._client_of: dict[str, str] = {}  # member id to client, as the clients say
        self._by_client_id: dict[str, dict[str, None]] = {}
        self._member_of: dict[str, str] = {}  # client to its newest member id
        self._silent: dict[str, tuple[str, str, int]] = {}  # member id to who, how, since
        self._stopping: set[str] = set()  # only asked for membership
        self._generation = 0
        self._members = 0
        self._first_stable_us: int | None = None
        self._stable_since_us: int | None = None

    def feed(self, event: Event) -> None:
        """Take an event of this group's broker side or of one of its clients."""
        self.ledger.advance(event.time_us)
        handler: Any = getattr(self, f"_on_{event.kind}")
        handler(event)

    def finish(self, end_us: int) -> GroupSummary:
        """Return the summary up to ``end_us``. The tracker is not used afterwards."""
        ledger = self.ledger
        ledger.advance(end_us)
        rows = list(self._rows)
        if self._row is not None:
            rows.append(self._row.close("open", end_us, ledger))
        unavailable = ledger.unavailable_partition_us()
        startup = ledger.startup_partition_us
        return GroupSummary(
            group_id=self.group_id,
            rebalances=tuple(rows),
            detections=tuple(self._detections),
            member_changes=dict(sorted(self._changes.items())),
            generation=self._generation,
            members=self._members,
            partitions=ledger.partitions,
            unowned_partitions=ledger.unowned,
            unavailable_partition_us=unavailable,
            startup_partition_us=unavailable if startup is None else startup,
            overlap_partition_us=ledger.overlap_partition_us,
            frozen_partition_us=ledger.frozen_partition_us,
            first_stable_us=self._first_stable_us,
            stable_since_us=self._stable_since_us,
        )

    def _on_client(self, event: Event) -> None:
        fields = event.fields
        self._by_client_id.setdefault(fields["client_id"], {})[fields["who"]] = None
        self.ledger.subscribe(fields["who"], fields["subscribe"], fields["subscribe_pattern"])

    def _on_order(self, event: Event) -> None:
        fields = event.fields
        arguments = fields["arguments"]
        if fields["name"] == "subscribe":
            pattern = arguments.get("pattern")
            self.ledger.subscribe(fields["who"], arguments.get("topics") or (), pattern)
        elif fields["name"] == "unsubscribe":
            self.ledger.subscribe(fields["who"], (), None)

    def _on_process(self, event: Event) -> None:
        fields = event.fields
        who, what = fields["who"], fields["event"]
        if what == "started":
            self._stopping.discard(who)
            self.ledger.started(who)
        elif what == "stopping":
            self._stopping.add(who)
        elif what == "paused":
            self._fell_silent(who, what, event.time_us)
            self.ledger.paused(who)
        elif what == "resumed":
            self.ledger.resumed(who)
            self._silent.pop(self._member_of.get(who, ""), None)
        elif what in ("exited", "killed", "crashed"):
            self._fell_silent(who, what, event.time_us)
            self.ledger.gone(who, on_purpose=who in self._stopping and what != "crashed")
            self._holds(self._member_of.pop(who, ""), event.time_us)

    def _fell_silent(self, who: str, how: str, now_us: int) -> None:
        member_id = self._member_of.get(who)
        if member_id:
            self._silent.setdefault(member_id, (who, how, now_us))

    def _on_client_state(self, event: Event) -> None:
        fields = event.fields
        member_id = fields["member_id"]
        if member_id:
            self._client_of[member_id] = fields["who"]
            self._member_of[fields["who"]] = member_id
        else:
            self._member_of.pop(fields["who"], None)

    def _on_ownership(self, event: Event) -> None:
        fields = event.fields
        who = fields["who"]
        self.ledger.owns(who, fields["owned"])
        row = self._row
        if row and fields["change"] == "assigned" and fields["generation_id"] == row.generation:
            self._holds(self._member_of.get(who, ""), event.time_us)

    def _on_group_transition(self, event: Event) -> None:
        fields = event.fields
        to_state = fields["to_state"]
        self._members = fields["members"]
        self._generation = max(self._generation, fields["generation_id"])
        if to_state == "PreparingRebalance":
            self._begin(event)
        elif to_state in ("Empty", "Dead"):
            if self._row is not None:
                self._row.generation = fields["generation_id"]
                self._end("empty", event.time_us)
        elif to_state == "Stable" and self._row is not None:
            self._row.assigned_us = event.time_us

    def _on_rebalance_phase(self, event: Event) -> None:
        fields = event.fields
        row = self._row
        if row is None or fields["phase"] != "join":
            return
        row.joined_us = event.time_us
        row.generation = fields["generation_id"]
        row.waiting = dict.fromkeys(fields["members"])
        row.members = self._members = len(row.waiting)

    def _on_member_change(self, event: Event) -> None:
        fields = event.fields
        change, member_id = fields["change"], fields["member_id"]
        self._changes[change] = self._changes.get(change, 0) + 1
        if change in TRIGGERS:
            self._last_change = event
            self._blame(event)
        if change in NOTICED and member_id in self._silent:
            who, how, since_us = self._silent.pop(member_id)
            if change != "left":  # that one said goodbye
                self._detections.append(
                    Detection(
                        who=who,
                        silence=how,
                        since_us=since_us,
                        noticed_us=event.time_us,
                        noticed=change,
                    )
                )
        if change == "synced" and member_id not in self._client_of:
            self._holds(member_id, event.time_us)  # a client that tells nothing of itself

    def _begin(self, event: Event) -> None:
        if self._row is not None:
            self._end("superseded", event.time_us)
        self._stable_since_us = None
        self._row = _Row(len(self._rows) + 1, event, self.ledger)
        if self._last_change is not None:
            self._blame(self._last_change)

    def _blame(self, change: Event) -> None:
        """Name the member that set the rebalance off: it changed at the moment it began."""
        row = self._row
        if row is None or row.trigger or change.time_us != row.started_us:
            return
        row.trigger = change.fields["change"]
        row.who = self._name(change.fields["member_id"], change.fields["client_id"])

    def _name(self, member_id: str, client_id: str) -> str:
        known = self._client_of.get(member_id)
        if known is not None:
            return known
        clients = self._by_client_id.get(client_id, {})
        return next(iter(clients)) if len(clients) == 1 else client_id

    def _holds(self, member_id: str, now_us: int) -> None:
        """The member holds its part, or is no more; when none is left to wait for, all is done."""
        row = self._row
        if row is None or member_id not in row.waiting:
            return
        del row.waiting[member_id]
        if not row.waiting and row.assigned_us is not None:
            self._end("completed", now_us)

    def _end(self, outcome: str, now_us: int) -> None:
        assert self._row is not None
        self._rows.append(self._row.close(outcome, now_us, self.ledger))
        self._row = None
        if outcome == "completed":
            self._stable_since_us = now_us
            if self._first_stable_us is None:
                self._first_stable_us = now_us
