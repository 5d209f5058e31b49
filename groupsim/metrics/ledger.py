"""Who owns what in one group, in the clients' own view, and for how long nobody or several do, or
only a process that stands still.

Counters are kept up to date with every change; time is accounted for only when something
changes. A run's length costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

__all__ = ["Ledger"]

Partition = tuple[str, int]


class Ledger:
    """The partitions that a group is to serve, and their owners.

    ``topics`` (name to number of partitions) is shared by all groups of a run and kept by the
    caller, who tells of changes with ``demand_changed``. Callers ``advance`` to the time of an
    event before they tell of it.
    """

    def __init__(self, topics: Mapping[str, int]) -> None:
        self.moved = 0
        self.unowned = 0
        self.startup_partition_us: int | None = None
        self.overlap_partition_us = 0
        self.frozen_partition_us = 0
        self._unowned_us = 0
        self._tail_us = 0  # unowned since the last member was stopped on purpose: see unavailable()
        self._now_us = 0
        self._topics = topics
        self._subscriptions: dict[str, tuple[tuple[str, ...], str | None]] = {}
        self._demanded: dict[str, int] = {}
        self._wanted: dict[str, bool] = {}  # clients that ran, and whether they are meant to run
        self._owners: dict[Partition, list[str]] = {}
        self._last_owner: dict[Partition, str] = {}
        self._owned: dict[str, tuple[Partition, ...]] = {}
        self._overlaps = 0
        self._paused: dict[str, None] = {}

    @property
    def partitions(self) -> int:
        """How many partitions the group is to serve."""
        return sum(self._demanded.values())

    @property
    def unowned_so_far_us(self) -> int:
        """Partition time without an owner until now."""
        return self._unowned_us + self._tail_us

    def unavailable_partition_us(self) -> int:
        """Partition time without an owner, less the time after the last member was meant to run.

        A group whose last member was stopped is not unavailable, it is shut down; if somebody is
        started again later, it was unavailable after all.
        """
        return self._unowned_us

    def advance(self, now_us: int) -> None:
        """Account for the time since the last change."""
        elapsed = now_us - self._now_us
        self._now_us = now_us
        if elapsed <= 0 or not self._wanted:
            return
        if any(self._wanted.values()):
            self._unowned_us += elapsed * self.unowned
        else:
            self._tail_us += elapsed * self.unowned
        self.overlap_partition_us += elapsed * self._overlaps
        if self._paused:
            self.frozen_partition_us += elapsed * self._frozen()

    def subscribe(self, who: str, topics: Sequence[str], pattern: str | None) -> None:
        """``who`` wants these topics from now on (or those that the pattern matches)."""
        self._subscriptions[who] = (tuple(topics), pattern)
        if who in self._wanted:
            self.demand_changed()

    def started(self, who: str) -> None:
        """A member process runs."""
        self._unowned_us += self._tail_us
        self._tail_us = 0
        is_new = who not in self._wanted
        self._wanted[who] = True
        topics, pattern = self._subscriptions.get(who, ((), None))
        if is_new and (pattern is not None or any(t not in self._demanded for t in topics)):
            self.demand_changed()  # not for each of ten thousand equal members

    def gone(self, who: str, *, on_purpose: bool) -> None:
        """A member process is no more, and so owns nothing."""
        self.owns(who, ())
        self.resumed(who)
        if on_purpose:
            self._wanted[who] = False

    def paused(self, who: str) -> None:
        """A member process stands still: it owns what it owned, and does nothing with it."""
        self._paused[who] = None

    def resumed(self, who: str) -> None:
        """It runs again."""
        self._paused.pop(who, None)

    def demand_changed(self) -> None:
        """Topics, subscriptions or the set of members that ever ran are different now."""
        self._demanded = {
            topic: count for topic, count in self._topics.items() if self._is_demanded(topic)
        }
        held = sum(1 for partition in self._owners if self._serves(partition))
        self.unowned = self.partitions - held
        self._check_whole()

    def owns(self, who: str, partitions: Sequence[Partition]) -> None:
        """``who`` believes that it owns exactly these partitions."""
        before = self._owned.get(who, ())
        after = tuple((topic, number) for topic, number in partitions)
        kept = frozenset(before) & frozenset(after)  # only asked for membership
        for partition in before:
            if partition not in kept:
                self._drop(who, partition)
        for partition in after:
            if partition not in kept:
                self._take(who, partition)
        self._owned[who] = after
        self._check_whole()

    def _frozen(self) -> int:
        """How many partitions have owners, all of them paused."""
        held = {partition for who in self._paused for partition in self._owned.get(who, ())}
        return sum(self._paused.keys() >= set(self._owners[partition]) for partition in held)

    def _take(self, who: str, partition: Partition) -> None:
        owners = self._owners.setdefault(partition, [])
        owners.append(who)
        if len(owners) == 1 and self._serves(partition):
            self.unowned -= 1
        if len(owners) == 2:
            self._overlaps += 1
        if self._last_owner.get(partition, who) != who:
            self.moved += 1
        self._last_owner[partition] = who

    def _drop(self, who: str, partition: Partition) -> None:
        owners = self._owners[partition]
        owners.remove(who)
        if len(owners) == 1:
            self._overlaps -= 1
        if not owners:
            del self._owners[partition]
            if self._serves(partition):
                self.unowned += 1

    def _serves(self, partition: Partition) -> bool:
        return partition[1] < self._demanded.get(partition[0], 0)

    def _is_demanded(self, topic: str) -> bool:
        for who in self._wanted:
            topics, pattern = self._subscriptions.get(who, ((), None))
            if topic in topics or (pattern is not None and _matches(pattern, topic)):
                return True
        return False

    def _check_whole(self) -> None:
        if self.startup_partition_us is None and self._demanded and self.unowned == 0:
            self.startup_partition_us = self._unowned_us


def _matches(pattern: str, topic: str) -> bool:
    """Whether a subscription's regular expression is the whole name's, as Java's ``matches``."""
    try:
        return re.fullmatch(pattern, topic) is not None
    except re.error:  # Java knows constructs that Python does not
        return False
