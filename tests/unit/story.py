"""A group's story written event by event, for the tests of metrics and reports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from groupsim.coordinator.effects import GroupTransition, MemberChange, RebalanceCompleted
from groupsim.metrics import GroupSummary, Metrics, Summary
from groupsim.trace.writer import TraceWriter
from groupsim_clients.machine import MemberState, Ownership

S = 1_000_000
Partitions = tuple[tuple[str, int], ...]


def orders(*numbers: int) -> Partitions:
    """Return partitions of the topic orders."""
    return tuple(("orders", number) for number in numbers)


class Story:
    """Writes events of the group "g" with clients c-1, c-2, ... by hand; times in µs."""

    def __init__(
        self,
        *,
        partitions: int = 4,
        clients: Sequence[str] = ("c-1", "c-2"),
        path: Path | None = None,
    ) -> None:
        self.writer = TraceWriter(path, scenario={"name": "story"}, seed=7)
        self.metrics = Metrics()
        self.metrics.attach(self.writer)
        self.state = "Empty"
        self.writer.event(0, 0, "topic", topic="orders", partitions=partitions)
        self.writer.event(0, 0, "topic", topic="unrelated", partitions=50)
        for who in clients:
            self.client(who)

    def client(self, who: str, subscribe: Sequence[str] = ("orders",)) -> None:
        """Declare a client of the group g."""
        fields = {"profile": "java", "client_id": f"id-{who}", "client_host": "h"}
        self.writer.event(
            0,
            0,
            "client",
            who=who,
            group_id="g",
            **fields,
            group_instance_id=None,
            subscribe=subscribe,
            subscribe_pattern=None,
        )

    def process(self, at: int, who: str, event: str) -> None:
        """Something happens to a client's process."""
        self.writer.event(at, 0, "process", who=who, role="client", event=event, detail="")

    def change(self, at: int, who: str, change: str) -> None:
        """The broker's view of a member changes."""
        note = MemberChange(
            group_id="g",
            member_id=f"m-{who}",
            group_instance_id=None,
            client_id=f"id-{who}",
            change=change,
            reason="",
        )
        self.writer.note(at, 0, "b-1", note)

    def to(self, at: int, state: str, generation: int, members: int, reason: str = "") -> None:
        """The group changes its state."""
        note = GroupTransition(
            group_id="g",
            from_state=self.state,
            to_state=state,
            generation_id=generation,
            members=members,
            reason=reason,
        )
        self.state = state
        self.writer.note(at, 0, "b-1", note)

    def joined(self, at: int, generation: int, *who: str) -> None:
        """The join phase ends with these members."""
        note = RebalanceCompleted(
            group_id="g",
            generation_id=generation,
            phase="join",
            leader=f"m-{who[0]}",
            protocol_name="range",
            members=tuple(f"m-{name}" for name in who),
        )
        self.writer.note(at, 0, "b-1", note)
        self.to(at, "CompletingRebalance", generation, len(who))

    def knows(self, at: int, who: str, generation: int) -> None:
        """A client has been told its member id."""
        note = MemberState(
            state="COMPLETING_REBALANCE",
            generation_id=generation,
            member_id=f"m-{who}",
            reason="",
        )
        self.writer.note(at, 0, who, note)

    def owns(self, at: int, who: str, generation: int, owned: Partitions) -> None:
        """A client takes what it was assigned."""
        change = Ownership(
            change="assigned", partitions=owned, owned=owned, generation_id=generation
        )
        self.writer.note(at, 0, who, change)

    def revokes(self, at: int, who: str, owned: Partitions) -> None:
        """A client gives up all it has."""
        change = Ownership(change="revoked", partitions=owned, owned=(), generation_id=1)
        self.writer.note(at, 0, who, change)

    def finish(self, at: int) -> Summary:
        """Return the metrics so far."""
        return self.metrics.finish(at)

    def group(self, at: int) -> GroupSummary:
        """Return the group's summary at a time."""
        return self.finish(at).group("g")


def first_join(story: Story) -> None:
    """Both start at 1 s, join until 4 s, assigned at 4.1 s, c-1 holds at 4.2 s, c-2 at 4.3 s."""
    for who in ("c-1", "c-2"):
        story.process(1 * S, who, "started")
    story.change(1 * S, "c-1", "joined")
    story.to(1 * S, "PreparingRebalance", 0, 1, "Adding new member m-c-1")
    story.change(2 * S, "c-2", "joined")
    story.joined(4 * S, 1, "c-1", "c-2")
    story.knows(4 * S, "c-1", 1)
    story.knows(4 * S, "c-2", 1)
    story.to(4_100_000, "Stable", 1, 2)
    story.owns(4_200_000, "c-1", 1, orders(0, 1))
    story.owns(4_300_000, "c-2", 1, orders(2, 3))
