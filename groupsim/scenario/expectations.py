"""Judging a run by its events: each expectation is met, not met, or could not be known.

Theory of operation. Everything expected comes down to a number or a state at certain moments: at
a time, or over a window as the difference of its two ends. A ``Judge`` follows the events and takes a sample
whenever the run passes such a moment (after all events of that time). A moment that the run did
not reach was not seen; what depends on it is undecided, unless a count has already gone beyond
its bound. Memory does not grow with the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from groupsim.metrics import Metrics
from groupsim.metrics.verdicts import MET, NOT_MET, UNDECIDED, Verdict
from groupsim.scenario.durations import seconds_text
from groupsim.scenario.expect import CommitCount, CommittedAt, Expectation, RaisedCount
from groupsim.scenario.model import Scenario
from groupsim.scenario.selection import select
from groupsim.scenario.verdicts import (
    Check,
    ExpectationResult,
    expectation_text,
    state_verdict,
    value_verdict,
    window_verdict,
)
from groupsim.trace.events import Event
from groupsim.trace.writer import TraceWriter

__all__ = ["Judge"]

_ENDED: Final = ("exited", "killed", "crashed")


@dataclass(slots=True)
class _View:
    """What is known of one group at the moment."""

    state: str = "Dead"
    since_us: int = 0
    generation: int = 0
    members: int = 0
    rebalances: int = 0
    unstable_us: int | None = None
    """When the group last left Stable."""
    held: dict[str, int] = field(default_factory=dict)
    committed: dict[tuple[str, int], int] = field(default_factory=dict)
    raised: dict[tuple[str, str], int] = field(default_factory=dict)
    commits: dict[tuple[str, str], int] = field(default_factory=dict)
    changes: dict[str, int] = field(default_factory=dict)


class Judge:
    """Follows a run for the expectations of its scenario."""

    kinds: Final = (
        "topic",
        "client",
        "process",
        "order",
        "client_state",
        "ownership",
        "group_transition",
        "member_change",
        "rebalance_phase",
        "exception",
        "commit",
    )
    """The kinds of events it looks at."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._members = scenario.members()
        self.metrics = Metrics()  # complete: a run's summary comes from them as well
        self._views = {group_id: _View() for group_id in scenario.groups}
        self._group_of = {name: group_id for name, (group_id, _) in self._members.items()}
        self._checks = [
            self._check(expectation, kind)
            for expectation in scenario.expect
            for kind in expectation.given()
        ]
        moments = [
            (at, order)
            for order, check in enumerate(self._checks)
            for at in (check.start_us, check.end_us)
            if at is not None
        ]
        self._moments = sorted(moments, reverse=True)

    def attach(self, writer: TraceWriter) -> None:
        """Follow a trace while it is written."""
        for kind in self.kinds:
            writer.listen(kind, self.feed)

    def feed(self, event: Event) -> None:
        """Take one event; other kinds than ours are ignored."""
        if self._moments and self._moments[-1][0] < event.time_us:
            self._pass_moments(event.time_us - 1)
        self.metrics.feed(event)
        handler: Any = getattr(self, f"_on_{event.kind}", None)
        if handler is not None:
            handler(event)

    def results(self, end_us: int) -> tuple[ExpectationResult, ...]:
        """Return the verdicts on a run that came to ``end_us``."""
        self._pass_moments(end_us)
        for group_id in self._views:
            self._advance(group_id, end_us)
        return tuple(self._result(check) for check in self._checks)

    # -- watching -------------------------------------------------------------------------------

    def _pass_moments(self, until_us: int) -> None:
        while self._moments and self._moments[-1][0] <= until_us:
            at_us, order = self._moments.pop()
            check = self._checks[order]
            self._advance(check.group, at_us)
            if at_us == check.start_us:
                check.start = check.measure()
            if at_us == check.end_us:
                check.end, check.ended = check.measure(), True

    def _advance(self, group_id: str, at_us: int) -> None:
        tracker = self.metrics.tracker(group_id)
        if tracker is not None:
            tracker.ledger.advance(at_us)

    def _ledger(self, group_id: str, kind: str) -> int:
        tracker = self.metrics.tracker(group_id)
        if tracker is None:
            return 0
        ledger = tracker.ledger
        match kind:
            case "unavailable":
                return ledger.unavailable_partition_us()
            case "frozen":
                return ledger.frozen_partition_us
            case "overlap":
                return ledger.overlap_partition_us
            case _:
                return ledger.moved

    def _on_group_transition(self, event: Event) -> None:
        fields = event.fields
        view = self._views.get(fields["group_id"])
        if view is None:
            return
        if view.state == "Stable":
            view.unstable_us = event.time_us
        view.state, view.since_us = fields["to_state"], event.time_us
        view.generation = max(view.generation, fields["generation_id"])
        view.members = fields["members"]
        if view.state == "PreparingRebalance":
            view.rebalances += 1

    def _on_rebalance_phase(self, event: Event) -> None:
        view = self._views.get(event.fields["group_id"])
        if view is not None and event.fields["phase"] == "join":
            view.generation = max(view.generation, event.fields["generation_id"])
            view.members = len(event.fields["members"])

    def _on_member_change(self, event: Event) -> None:
        view = self._views.get(event.fields["group_id"])
        if view is not None:
            change = event.fields["change"]
            view.changes[change] = view.changes.get(change, 0) + 1

    def _on_ownership(self, event: Event) -> None:
        view = self._view_of(event)
        if view is not None:
            view.held[event.fields["who"]] = len(event.fields["owned"])

    def _on_process(self, event: Event) -> None:
        view = self._view_of(event)
        if view is not None and event.fields["event"] in _ENDED:
            view.held.pop(event.fields["who"], None)

    def _on_exception(self, event: Event) -> None:
        view = self._view_of(event)
        if view is not None:
            key = (event.fields["who"], event.fields["exception"])
            view.raised[key] = view.raised.get(key, 0) + 1

    def _on_commit(self, event: Event) -> None:
        view = self._view_of(event)
        if view is None:
            return
        key = (event.fields["who"], event.fields["outcome"])
        view.commits[key] = view.commits.get(key, 0) + 1
        if event.fields["outcome"] == "ok":
            for topic, partition, offset in event.fields["offsets"]:
                view.committed[topic, partition] = offset

    def _view_of(self, event: Event) -> _View | None:
        group_id = self._group_of.get(event.fields["who"])
        return None if group_id is None else self._views[group_id]

    # -- what is measured -----------------------------------------------------------------------

    def _check(self, expectation: Expectation, kind: str) -> Check:
        group_id = expectation.group or next(iter(self._scenario.groups))
        wanted = getattr(expectation, kind)
        start_us: int | None = getattr(wanted, "after", None)
        before_us: int | None = getattr(wanted, "before", None)
        end_us = getattr(wanted, "at", None) if before_us is None else before_us
        if kind in ("stable_by", "stable_from"):
            end_us = wanted if kind == "stable_by" else None
            start_us = wanted if kind == "stable_from" else None
        return Check(
            group=group_id,
            kind=kind,
            wanted=wanted,
            text=expectation_text(kind, wanted),
            measure=self._measure(group_id, kind, wanted),
            start_us=start_us,
            end_us=self._scenario.until if end_us is None else end_us,
        )

    def _measure(self, group_id: str, kind: str, wanted: Any) -> Callable[[], Any]:
        view = self._views[group_id]
        if kind in ("stable_by", "stable_from", "state"):
            return lambda: (view.state, view.since_us, view.generation)
        if kind in ("rebalances", "generation", "members"):
            return lambda: getattr(view, kind)
        if kind == "owners":
            return lambda: sum(1 for count in view.held.values() if count)
        if kind == "raised":
            return lambda: self._raised(view, wanted)
        if kind == "commits":
            return lambda: self._commits(view, wanted)
        if kind == "changes":
            return lambda: view.changes.get(wanted.change, 0)
        if kind == "committed":
            return lambda: _committed(view, wanted)
        return lambda: self._ledger(group_id, kind)

    def _raised(self, view: _View, wanted: RaisedCount) -> int:
        who = self._named(wanted.members)
        return sum(
            count
            for (member, exception), count in view.raised.items()
            if member in who and wanted.exception in (None, exception)
        )

    def _commits(self, view: _View, wanted: CommitCount) -> int:
        who = self._named(wanted.members)
        return sum(
            count
            for (member, outcome), count in view.commits.items()
            if member in who
            and (outcome == wanted.outcome or (wanted.outcome == "refused" and outcome != "ok"))
        )

    def _named(self, names: tuple[str, ...] | None) -> dict[str, None]:
        return dict.fromkeys(select(self._members, names))

    # -- verdicts -------------------------------------------------------------------------------

    def _result(self, check: Check) -> ExpectationResult:
        if check.kind in ("stable_by", "state"):
            verdict, found = state_verdict(check)
        elif check.kind == "stable_from":
            verdict, found = self._stable_from(check)
        elif hasattr(check.wanted, "after"):
            verdict, found = window_verdict(check)
        else:
            verdict, found = value_verdict(check)
        return ExpectationResult(
            group=check.group, expectation=check.text, verdict=verdict, found=found
        )

    def _stable_from(self, check: Check) -> tuple[Verdict, str]:
        if check.start is None:
            return UNDECIDED, "the run ended before"
        state, since_us, _ = check.start
        if state != "Stable":
            return NOT_MET, f"{state} since {seconds_text(since_us)}"
        left_us = self._views[check.group].unstable_us
        if left_us is not None and left_us > check.wanted:
            return NOT_MET, f"left Stable, last at {seconds_text(left_us)}"
        if not check.ended:
            return UNDECIDED, "so far, but the run ended early"
        return MET, f"Stable since {seconds_text(since_us)}"


def _committed(view: _View, wanted: CommittedAt) -> int | None:
    return view.committed.get((wanted.topic, wanted.partition))
