"""Five bugs planted in the coordinator, one place each: Kafka's recorded answers find every one.

Each must be found within 2,000 scripts; the golden transcripts are fewer than that and suffice.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from groupsim.coordinator.classic.group import ClassicGroup
from groupsim.coordinator.classic.member import ClassicMember
from groupsim.coordinator.failures import GroupError
from groupsim.coordinator.timers import Timer, TimerQueue
from groupsim.protocol.errors import ErrorCode
from tests.oracle.compare import Difference
from tests.oracle.golden import FOLDER, read_golden
from tests.oracle.run import check

MOST_SCRIPTS = 2000


def _forget_to_rearm(patch: pytest.MonkeyPatch) -> None:
    """A heartbeat does not move the member's session timer (H-07, H-08)."""

    def move(_queue: TimerQueue, _timer: Timer, _deadline_ms: int) -> None:
        pass

    patch.setattr(TimerQueue, "move", move)


def _leader_not_reelected(patch: pytest.MonkeyPatch) -> None:
    """A leader that did not rejoin stays leader (PR-12)."""

    def elect_joined_leader(group: ClassicGroup) -> bool:
        return group.leader_id is not None and group.parked_joins > 0

    patch.setattr(ClassicGroup, "elect_joined_leader", elect_joined_leader)


def _pending_not_counted(patch: pytest.MonkeyPatch) -> None:
    """A join phase completes although an id that was handed out has not joined yet (PR-08)."""

    def all_joined(group: ClassicGroup) -> bool:
        return len(group.members) == group.parked_joins

    patch.setattr(ClassicGroup, "all_joined", property(all_joined))


def _fencing_skipped(patch: pytest.MonkeyPatch) -> None:
    """An instance id that belongs to another member id is not looked at (J-35)."""

    def validate_member(
        group: ClassicGroup, member_id: str, _group_instance_id: str | None, _operation: str
    ) -> ClassicMember:
        member = group.members.get(member_id)
        if member is None:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    patch.setattr(ClassicGroup, "validate_member", validate_member)


def _generation_not_bumped(patch: pytest.MonkeyPatch) -> None:
    """A group that empties keeps its generation (PR-19)."""
    original = ClassicGroup.next_generation

    def next_generation(group: ClassicGroup) -> None:
        if not group.members:
            group.generation_id -= 1
        original(group)

    patch.setattr(ClassicGroup, "next_generation", next_generation)


def _first_found() -> tuple[int, Difference] | None:
    number = 0
    for path in sorted(FOLDER.glob("*.gz")):
        for script, results in read_golden(path):
            number += 1
            difference = check(script, results)
            if difference is not None:
                return number, difference
            if number == MOST_SCRIPTS:
                return None
    return None


@pytest.mark.parametrize(
    "plant",
    [
        _forget_to_rearm,
        _leader_not_reelected,
        _pending_not_counted,
        _fencing_skipped,
        _generation_not_bumped,
    ],
    ids=lambda plant: plant.__name__.strip("_"),
)
def test_a_planted_bug_is_found(
    plant: Callable[[pytest.MonkeyPatch], None],
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    """The differential run would have told: the bug shows within 2,000 scripts."""
    plant(monkeypatch)
    found = _first_found()
    assert found is not None, f"not found in {MOST_SCRIPTS} scripts: {plant.__doc__}"
    scripts, difference = found
    record_property("scripts", scripts)
    print(f"{plant.__doc__} Found by script {scripts}: {difference}")
