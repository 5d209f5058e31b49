"""What the metrics say of a run, as values. Times are virtual µs; nothing is a float.

Partition time (names ending in ``_partition_us``) is counted in partition-microseconds: three partitions without
an owner for two seconds are six million.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Detection", "GroupSummary", "Rebalance", "Summary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """One rebalance: from the moment the coordinator begins it until every member holds its part.

    Attributes:
        outcome: completed, superseded (the next one began before this one was through), empty (it
            ended with no members), open (the run ended first).
        trigger: what a member did that set it off (joined, left, expired, ...), "" if nothing did.
        who: the client that did it, by its name in the run.
        reason: Kafka's words for it.
        joins_us: waiting for members to join again.
        assigning_us: from then until the leader's assignment is in; None: it never got there.
        syncing_us: from then until the last member holds its part; None as above.
        members: how many members the new generation has.
        moved: partitions that went from one owner to another.
        unowned_partition_us: partition time without an owner during it.

    """

    number: int
    started_us: int
    ended_us: int | None
    generation: int
    outcome: str
    trigger: str
    who: str
    reason: str
    joins_us: int
    assigning_us: int | None
    syncing_us: int | None
    members: int
    moved: int
    unowned_partition_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """How long it took the coordinator to notice that a member had fallen silent.

    ``silence`` is crashed, paused, killed or exited; ``noticed`` what the coordinator did then.
    """

    who: str
    silence: str
    since_us: int
    noticed_us: int
    noticed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """One group over a run.

    Attributes:
        unavailable_partition_us: partition time without an owner, from the start of the group's first
            member until the last one was stopped on purpose (a crash does not end the wish).
        startup_partition_us: the part of it before every partition had an owner for the first time.
        overlap_partition_us: partition time in which two live members both believed that they own it.
        frozen_partition_us: partition time in which everybody who owned it was paused. It had an
            owner, so it is no part of ``unavailable_partition_us``; but nobody read it.
        first_stable_us: when a rebalance was first completed; None: never.
        stable_since_us: since when no rebalance has been going on at the end; None: one is.
        member_changes: how often members joined, left, expired, ... as the coordinator saw it.

    """

    group_id: str
    rebalances: tuple[Rebalance, ...]
    detections: tuple[Detection, ...]
    member_changes: Mapping[str, int]
    generation: int
    members: int
    partitions: int
    unowned_partitions: int
    unavailable_partition_us: int
    startup_partition_us: int
    overlap_partition_us: int
    frozen_partition_us: int
    first_stable_us: int | None
    stable_since_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All groups of a run, sorted by name, up to ``end_us``."""

    end_us: int
    groups: tuple[GroupSummary, ...]

    def group(self, group_id: str) -> GroupSummary:
        """Return one group's summary.

        Raises:
            KeyError: the run has no such group.

        """
        for group in self.groups:
            if group.group_id == group_id:
                return group
        raise KeyError(group_id)
