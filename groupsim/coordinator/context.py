"""What the rules of one partition's groups work with: groups, timers, clock, configuration."""

from __future__ import annotations

from collections.abc import Callable

from groupsim.coordinator.classic.group import ClassicGroup
from groupsim.coordinator.classic.member import ClassicMember
from groupsim.coordinator.config import CoordinatorConfig
from groupsim.coordinator.effects import TimerArmed, TimerCancelled
from groupsim.coordinator.outbox import Outbox
from groupsim.coordinator.pipeline import Result
from groupsim.coordinator.timeline import SnapshotRegistry, TimelineMap, string_hash
from groupsim.coordinator.timers import QUIET_KINDS, Timer, TimerQueue

__all__ = ["Context", "heartbeat_key", "join_key", "sync_key"]


def heartbeat_key(group_id: str, member_id: str) -> str:
    """Key of T-1, T-2 and T-3: at most one of them is armed for a member."""
    return f"heartbeat-{group_id}-{member_id}"


def join_key(group_id: str) -> str:
    """Key of T-4 and T-5."""
    return f"join-{group_id}"


def sync_key(group_id: str) -> str:
    """Key of T-6."""
    return f"sync-{group_id}"


class Context:
    """One partition's groups and timers.

    Attributes:
        run_timer: runs what a timer of this partition wants, as a write operation.

    """

    def __init__(
        self,
        *,
        config: CoordinatorConfig,
        outbox: Outbox,
        queue: TimerQueue,
        member_uuid: Callable[[], str],
        run_timer: Callable[[Timer, Callable[[], Result], int], None],
    ) -> None:
        self.config = config
        self.outbox = outbox
        self.queue = queue
        self.member_uuid = member_uuid
        self.registry = SnapshotRegistry()
        self.groups: TimelineMap[str, ClassicGroup] = TimelineMap(self.registry, string_hash)
        self.timers: dict[str, Timer] = {}
        self._run_timer = run_timer

    def new_group(self, group_id: str) -> ClassicGroup:
        """J-10: a new EMPTY group at generation 0, visible at once to write operations."""
        group = ClassicGroup(self.outbox, group_id, state_timestamp_ms=self.outbox.now_ms)
        self.groups.put(group_id, group)
        return group

    # -- timers ------------------------------------------------------------------------------

    def schedule(
        self,
        key: str,
        kind: str,
        delay_ms: int,
        operation: Callable[[], Result],
        owner: ClassicMember | None = None,
        *,
        retry_ms: int = 0,
    ) -> Timer:
        """Arm the timer ``key``, replacing one of that key (chapter 2).

        With ``retry_ms`` above 0 it is armed again after that long when its operation fails.
        """
        effects = self.outbox.effects
        deadline_ms = self.outbox.now_ms + delay_ms
        old = self.timers.get(key)
        if old is not None:
            if old.kind != kind:
                effects.append(TimerCancelled(timer=old.kind, key=key))
            self.queue.cancel(old)
        timer = Timer(key, kind, lambda: self._fire(timer, operation, retry_ms))
        timer.owner = owner
        self.timers[key] = timer
        self.queue.add(timer, deadline_ms)
        if kind not in QUIET_KINDS:
            effects.append(TimerArmed(timer=kind, key=key, deadline_ms=deadline_ms))
        return timer

    def _fire(self, timer: Timer, operation: Callable[[], Result], retry_ms: int) -> None:
        del self.timers[timer.key]
        self._run_timer(timer, operation, retry_ms)

    def cancel(self, key: str) -> None:
        """Disarm the timer ``key``, if it is armed."""
        timer = self.timers.pop(key, None)
        if timer is not None:
            self.queue.cancel(timer)
            if timer.kind not in QUIET_KINDS:
                self.outbox.effects.append(TimerCancelled(timer=timer.kind, key=key))

    def cancel_all_timers(self) -> None:
        """C-13: the partition goes away."""
        for key in list(self.timers):
            self.cancel(key)
