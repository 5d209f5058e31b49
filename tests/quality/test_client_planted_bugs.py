"""Tests of the tests: bugs planted in the client are found by the conformance tests."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

import pytest

from groupsim.protocol.errors import ErrorCode
from groupsim_clients.abstract_coordinator import AbstractCoordinator
from groupsim_clients.behaviour import CURRENT
from groupsim_clients.consumer import Consumer
from groupsim_clients.heartbeat import Heartbeat
from groupsim_clients.join_steps import JoinSteps
from groupsim_clients.listener import ListenerInvoker
from groupsim_clients.timing import ExponentialBackoff
from tests.conformance import (
    test_client_callbacks as callbacks,
)
from tests.conformance import (
    test_client_heartbeat as heartbeat,
)
from tests.conformance import (
    test_client_join as join,
)
from tests.conformance import (
    test_client_leave as leave,
)
from tests.conformance import (
    test_client_lookup as lookup,
)
from tests.conformance import (
    test_client_main_line as main_line,
)
from tests.conformance import (
    test_client_offsets as offsets,
)
from tests.conformance import (
    test_client_sync as sync,
)

Plant = Callable[[pytest.MonkeyPatch], None]
Test = Callable[[], None]


def kept_after_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions stay assigned when they are lost."""
    right = JoinSteps._give_up

    def wrong(self: Any, callback: str, partitions: Any, kept: Any) -> Any:
        return right(self, callback, partitions, partitions if callback == "lost" else kept)

    monkeypatch.setattr(JoinSteps, "_give_up", wrong)


def heartbeats_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread is enabled when the member is stable, not by the JoinGroup answer."""
    late = dataclasses.replace(CURRENT, heartbeats_while_syncing=False)
    for name in ("groupsim_clients.profiles.java", "tests.conformance.test_client_sync"):
        monkeypatch.setattr(importlib.import_module(name), "CURRENT", late)


def retry_without_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed join is tried again at once."""
    monkeypatch.setattr(Consumer, "_pace_ms", lambda _self, *, missing: int(missing))


def lookup_without_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exponential backoffs are nothing."""
    monkeypatch.setattr(ExponentialBackoff, "backoff", lambda _self, _attempts: 1)


def revoked_for_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The listener's revoked is called when partitions are lost."""
    for method in ("invoke", "gave_up"):
        right = getattr(ListenerInvoker, method)

        def wrong(self: Any, callback: str, partitions: Any, right: Any = right) -> Any:
            return right(self, "revoked" if callback == "lost" else callback, partitions)

        monkeypatch.setattr(ListenerInvoker, method, wrong)


def member_id_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every reset is a full one."""
    right = AbstractCoordinator._reset_and_rejoin

    def wrong(self: Any, reason: str, *, keep_member_id: bool = False) -> None:
        del keep_member_id
        right(self, reason)

    monkeypatch.setattr(AbstractCoordinator, "_reset_and_rejoin", wrong)


def failure_counts_as_contact(monkeypatch: pytest.MonkeyPatch) -> None:
    """A heartbeat that failed restarts the session timer."""
    right = Heartbeat.failed

    def wrong(self: Heartbeat) -> None:
        right(self)
        self.reset_session_timeout()

    monkeypatch.setattr(Heartbeat, "failed", wrong)


def leaves_though_static(monkeypatch: pytest.MonkeyPatch) -> None:
    """A static member sends LeaveGroup."""
    right = AbstractCoordinator.maybe_leave_group

    def wrong(self: AbstractCoordinator, reason: str) -> None:
        static = self.config
        self.config = dataclasses.replace(static, group_instance_id=None)
        right(self, reason)
        self.config = static

    monkeypatch.setattr(AbstractCoordinator, "maybe_leave_group", wrong)


def commit_failure_resets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit's UNKNOWN_MEMBER_ID is only reported."""
    right = AbstractCoordinator.reset_on_response_error

    def wrong(self: AbstractCoordinator, api: str, code: ErrorCode) -> None:
        if api != "OFFSET_COMMIT":
            right(self, api, code)

    monkeypatch.setattr(AbstractCoordinator, "reset_on_response_error", wrong)


BUGS: dict[Plant, tuple[Test, ...]] = {
    kept_after_loss: (
        join.test_lost_after_a_reset_with_partitions_sorted,
        lambda: callbacks.test_cooperative_loss_of_membership("join"),
    ),
    heartbeats_too_late: (
        join.test_success_enables_heartbeats_before_sync,
        heartbeat.test_heartbeats_between_join_and_sync,
        sync.test_assignor_bug_surfaces_from_poll_while_heartbeats_go_on,
    ),
    retry_without_backoff: (join.test_retriable_failures_cost_the_constant_backoff,),
    lookup_without_backoff: (
        lookup.test_lookup_loop_backs_off_exponentially,
        heartbeat.test_failures_back_off_exponentially,
        offsets.test_sync_commit_is_repeated_until_its_timer_ends,
    ),
    revoked_for_lost: (
        join.test_lost_after_a_reset_with_partitions_sorted,
        leave.test_lost_before_leaving_without_a_generation,
        callbacks.test_lost_comes_from_the_application_thread_only,
    ),
    member_id_forgotten: (
        lambda: heartbeat.test_not_a_member(ErrorCode.ILLEGAL_GENERATION, "m-1"),
        lambda: sync.test_sync_not_a_member(ErrorCode.ILLEGAL_GENERATION, "m-1"),
    ),
    failure_counts_as_contact: (heartbeat.test_failures_back_off_exponentially,),
    leaves_though_static: (leave.test_static_member_beyond_its_poll_interval,),
    commit_failure_resets_nothing: (
        lambda: offsets.test_commit_of_no_member_resets(ErrorCode.UNKNOWN_MEMBER_ID, ""),
    ),
}


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_planted_bug_is_caught(bug: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test passes on the client as it is and fails with the bug."""
    main_line.test_from_start_to_close()
    for test in BUGS[bug]:
        test()
    bug(monkeypatch)
    for test in BUGS[bug]:
        with pytest.raises(AssertionError):
            test()
