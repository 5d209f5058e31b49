"""What a report of a run consists of, wherever it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from groupsim.metrics import Summary
from groupsim.trace.events import Event
from groupsim.trace.writer import TraceWriter

__all__ = ["Expectations", "Heading", "Outcome", "Verdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One expectation and what became of it: ``verdict`` is met, not met or undecided."""

    group: str
    expectation: str
    verdict: str
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """What is known of a run before it starts."""

    scenario: str
    seed: int
    groupsim: str
    lesson: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What is known after it: ``status`` is finished, interrupted, failed or unfinished."""

    status: str
    why: str
    end_us: int
    events: int
    trace_sha256: str | None
    verdict: str
    expectations: tuple[Verdict, ...]
    summary: Summary
    reproduce: str


class Expectations:
    """Collects the expectations' verdicts, which a trace holds as events near its end."""

    kinds: Final = ("expectation",)

    def __init__(self) -> None:
        self.found: list[Verdict] = []

    def attach(self, writer: TraceWriter) -> None:
        """Follow a trace while it is written."""
        writer.listen("expectation", self.feed)

    def feed(self, event: Event) -> None:
        """Take one event."""
        if event.kind == "expectation":
            texts: dict[str, Any] = {name: str(text) for name, text in event.fields.items()}
            self.found.append(Verdict(**texts))
