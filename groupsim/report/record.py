"""Everything a report needs, gathered from the events of one run in one pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from groupsim.metrics import Metrics
from groupsim.metrics.verdicts import overall
from groupsim.report.model import Expectations, Outcome
from groupsim.report.narrator import Narrator
from groupsim.report.timeline import Line, Timeline
from groupsim.trace.events import Event
from groupsim.trace.writer import TraceWriter

__all__ = ["RunRecord"]


class RunRecord:
    """Follows a run while it is written, or is fed with a recorded one.

    ``tell`` takes the lines of the timeline as they come; without it they are kept in ``timeline``.
    """

    kinds: Final = frozenset((*Metrics.kinds, *Narrator.kinds, *Expectations.kinds))

    def __init__(self, tell: Callable[[Line], None] | None = None) -> None:
        self.timeline = Timeline()
        self.metrics = Metrics()
        self.expectations = Expectations()
        self.narrator = Narrator(tell or self.timeline)
        self.writer: TraceWriter | None = None

    def attach(self, writer: TraceWriter) -> None:
        """Follow a trace while it is written."""
        self.writer = writer
        for part in (self.metrics, self.narrator, self.expectations):
            part.attach(writer)

    def feed(self, event: Event) -> None:
        """Take one event."""
        self.metrics.feed(event)
        self.narrator.feed(event)
        self.expectations.feed(event)

    def outcome(
        self,
        *,
        status: str,
        why: str,
        end_us: int,
        events: int,
        trace_sha256: str | None,
        reproduce: str,
    ) -> Outcome:
        """Return what is to be reported after the last event."""
        self.narrator.flush()
        verdicts = tuple(self.expectations.found)
        return Outcome(
            status=status,
            why=why,
            end_us=end_us,
            events=events,
            trace_sha256=trace_sha256,
            verdict=overall((one.verdict for one in verdicts), finished=status == "finished"),
            expectations=verdicts,
            summary=self.metrics.finish(end_us),
            reproduce=reproduce,
        )
