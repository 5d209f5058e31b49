"""The catalogue's expectations can fail: with a wrong coordinator or client, the verdict is not met."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from groupsim.coordinator.classic import join, rebalance, static_members
from groupsim.scenario import load_scenario, run_scenario
from groupsim_clients.heartbeat import Heartbeat
from groupsim_clients.timing import FOREVER

Plant = Callable[[pytest.MonkeyPatch], None]


def dead_members_are_kept(patch: pytest.MonkeyPatch) -> None:
    """PR-21 is missing: a session that expires removes nobody."""
    patch.setattr(rebalance, "expire_heartbeat", lambda *_: rebalance.NOTHING)


def ids_are_not_asked_back(patch: pytest.MonkeyPatch) -> None:
    """J-17 is missing: the first JoinGroup makes a member, as before KIP-394."""
    patch.setattr(join, "_join_dynamic", join._add)


def newcomers_do_not_extend_the_delay(patch: pytest.MonkeyPatch) -> None:
    """Rule 2.1 is missing: the initial delay is one window, whoever comes in it."""
    over = rebalance._initial_delay_over
    patch.setattr(rebalance, "_initial_delay_over", lambda c, g, d, _: over(c, g, d, 0))


def static_members_rebalance(patch: pytest.MonkeyPatch) -> None:
    """J-24 is missing: a static member that comes back starts a rebalance."""

    def rebalances(swap: Any) -> Any:
        context, group = swap._context, swap._group
        return rebalance.prepare_or_complete(context, group, "a static member restarted")

    patch.setattr(static_members._Swap, "persist", rebalances)


def the_poll_timer_never_expires(patch: pytest.MonkeyPatch) -> None:
    """CL-03 is missing: a client that does not poll stays a member."""
    reset = Heartbeat.reset_timeouts

    def reset_but_one(heartbeat: Heartbeat) -> None:
        reset(heartbeat)
        heartbeat.poll_deadline_ms = FOREVER

    patch.setattr(Heartbeat, "reset_timeouts", reset_but_one)
    patch.setattr(Heartbeat, "poll", lambda _: None)


PLANTS: tuple[tuple[Plant, str], ...] = (
    (dead_members_are_kept, "leader-crash"),
    (dead_members_are_kept, "follower-crash"),
    (dead_members_are_kept, "gc-pause"),
    (ids_are_not_asked_back, "member-id-required"),
    (newcomers_do_not_extend_the_delay, "first-join"),
    (static_members_rebalance, "rolling-restart-static"),
    (static_members_rebalance, "static-restart"),
    (the_poll_timer_never_expires, "slow-consumer"),
)


@pytest.mark.parametrize(
    ("plant", "name"), PLANTS, ids=[f"{plant.__name__}-{name}" for plant, name in PLANTS]
)
def test_a_planted_bug_is_caught(plant: Plant, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each bug turns the verdict of the scenario that teaches the rule."""
    plant(monkeypatch)
    result = run_scenario(load_scenario(name))
    assert result.verdict == "not met"
