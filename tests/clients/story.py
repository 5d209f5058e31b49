"""Short stories for the client kinds: a scenario as text, run, and what its trace says."""

from __future__ import annotations

from collections.abc import Sequence

from groupsim.metrics import GroupSummary
from groupsim.scenario import parse_scenario, run_scenario
from groupsim.trace.events import Event
from groupsim.trace.writer import TraceWriter

__all__ = ["Story", "tell"]

HEAD = """\
groupsim: 1
name: story
topics: {{orders: {{partitions: {partitions}, rate: {rate}}}}}
brokers: {{config: {{group.initial.rebalance.delay.ms: 0}}}}
network: {{latency: 1ms}}
groups:
  g:
    subscribe: orders
"""


class Story:
    """A run's events by kind, and its metrics. Times of events are virtual µs."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self._kinds = kinds
        self.events: list[Event] = []
        self.group: GroupSummary

    def attach(self, writer: TraceWriter) -> None:
        """Follow a trace (``Observer``)."""
        for kind in self._kinds:
            writer.listen(kind, self.events.append)

    def of(self, kind: str, **fields: object) -> list[Event]:
        """Events of a kind whose fields have these values."""
        return [
            event
            for event in self.events
            if event.kind == kind and all(event.fields[k] == v for k, v in fields.items())
        ]

    def seconds(self, kind: str, **fields: object) -> list[float]:
        """When those events were, in seconds."""
        return [event.time_us / 1_000_000 for event in self.of(kind, **fields)]

    def sent(self, who: str, api: str) -> list[Event]:
        """The requests of one client of one API."""
        return [e for e in self.of("send", api=api, direction="request") if e.fields["from"] == who]


def tell(
    group: str,
    *,
    timeline: str = "",
    until: str = "2m",
    partitions: int = 4,
    rate: int = 0,
    kinds: Sequence[str] = ("member_change", "group_transition", "exception"),
) -> Story:
    """Run a group of which ``group`` is the rest of the YAML, indented by four, and collect events."""
    text = HEAD.format(partitions=partitions, rate=rate) + group
    if timeline:
        text += f"\ntimeline:\n{timeline}"
    text += f"\nuntil: {until}\n"
    story = Story(kinds)
    result = run_scenario(parse_scenario(text), seed=0, observers=(story,))
    story.group = result.metrics.group("g")
    return story
