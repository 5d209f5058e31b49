"""The heartbeat timers and the heartbeat thread's turns (rule book 1.4, CH rules).

Java's thread wakes every ``retry.backoff.ms`` and mostly finds nothing to do. Those turns are not
taken here: ``next_turn_ms`` names the first turn on that grid at which something happens, and the
grid is kept, so that everything happens when it would have happened with all turns taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import HeartbeatRequest, HeartbeatResponse
from groupsim_clients.config import ConsumerConfig
from groupsim_clients.errors import JavaError
from groupsim_clients.generation import Generation
from groupsim_clients.timing import FOREVER, Context, ExponentialBackoff

if TYPE_CHECKING:
    from groupsim_clients.abstract_coordinator import AbstractCoordinator

__all__ = ["Heartbeat", "HeartbeatHandler", "HeartbeatThread"]


class Heartbeat:
    """Three deadlines: next heartbeat, session, poll interval (CH-01). Expired means now ≥ deadline."""

    __slots__ = (
        "_backoff",
        "_ctx",
        "application_polls",
        "attempts",
        "heartbeat_deadline_ms",
        "interval_ms",
        "max_poll_interval_ms",
        "poll_deadline_ms",
        "session_deadline_ms",
        "session_timeout_ms",
    )

    def __init__(self, ctx: Context, config: ConsumerConfig) -> None:
        self._ctx = ctx
        self.interval_ms = config.heartbeat_interval_ms
        self.session_timeout_ms = config.session_timeout_ms
        self.max_poll_interval_ms = config.max_poll_interval_ms
        self._backoff = ExponentialBackoff(
            ctx, config.retry_backoff_ms, config.retry_backoff_max_ms, "heartbeat-backoff"
        )
        self.application_polls = False  # sits in the fetch part of poll: see Wait.fetching
        self.attempts = 0
        self.heartbeat_deadline_ms = 0
        self.session_deadline_ms = 0
        self.poll_deadline_ms = 0
        self.reset_timeouts()

    def reset_timeouts(self) -> None:
        """All three from now: the thread was enabled."""
        now_ms = self._ctx.now_ms
        self.heartbeat_deadline_ms = now_ms + self.interval_ms
        self.session_deadline_ms = now_ms + self.session_timeout_ms
        self.poll_deadline_ms = now_ms + self.max_poll_interval_ms

    def reset_session_timeout(self) -> None:
        """A coordinator was found (CJ-04)."""
        self.session_deadline_ms = self._ctx.now_ms + self.session_timeout_ms

    def poll(self) -> None:
        """The application polled (CH-05)."""
        self.poll_deadline_ms = self._ctx.now_ms + self.max_poll_interval_ms

    def sent(self) -> None:
        """A heartbeat left; the next one is due an interval later (CH-02)."""
        self.heartbeat_deadline_ms = self._ctx.now_ms + self.interval_ms

    def received(self) -> None:
        """An answer that counts as success (CH-02)."""
        self.attempts = 0
        self.session_deadline_ms = self._ctx.now_ms + self.session_timeout_ms

    def failed(self) -> None:
        """Try again after a growing backoff; the session timer runs on (CH-03)."""
        self.heartbeat_deadline_ms = self._ctx.now_ms + self._backoff.backoff(self.attempts)
        self.attempts += 1


class HeartbeatThread:
    """The thread: enabled or asleep, its failure, and the grid of its turns.

    ``turn_at_ms`` is the next point of the grid; ``work_since_ms``: since when there is something to do
    for the turn there, −1 while there is nothing.
    """

    def __init__(self, coordinator: AbstractCoordinator, step_ms: int) -> None:
        self._coordinator = coordinator
        self.step_ms = max(1, step_ms)
        self.enabled = False
        self._was_enabled = False
        self.closed = False
        self.notified = False
        self.failure: JavaError | None = None
        self.turn_at_ms = 0
        self.work_since_ms = -1

    def enable(self) -> None:
        """JoinGroup succeeded: start all timers and look at once (1.4)."""
        self.enabled = True
        self.notified = True
        coordinator = self._coordinator
        heartbeat, behaviour = coordinator.heartbeat, coordinator.behaviour
        last_due_ms = heartbeat.heartbeat_deadline_ms
        heartbeat.reset_timeouts()
        if behaviour.heartbeat_timer_runs_on:
            due_ms = last_due_ms if self._was_enabled else 0
            heartbeat.heartbeat_deadline_ms = max(coordinator.ctx.now_ms, due_ms)
        self._was_enabled = True
        if behaviour.early_heartbeat_ms and coordinator.cooperative:
            heartbeat.heartbeat_deadline_ms = coordinator.ctx.now_ms + behaviour.early_heartbeat_ms

    def fail(self, error: JavaError) -> None:
        """Keep the failure for the next ``poll()`` of the application (CH-16, CH-21)."""
        self.failure = error

    @property
    def running(self) -> bool:
        """Whether it would do anything on its turns."""
        return (
            self.enabled
            and not self.closed
            and self.failure is None
            and self._coordinator.heartbeats_wanted
        )

    def next_turn_ms(self, *, polling: bool, fetching: bool) -> int:
        """When the next turn comes at which something happens.

        ``polling``: the application thread is inside the network client; it wakes for due
        heartbeats by itself and handles what arrives, so those do not wait for the grid.
        ``fetching``: it sits in ``poll()``, so the poll timer does not run.
        """
        coordinator = self._coordinator
        if not self.running or coordinator.ctx.lock_depth:
            return FOREVER
        if not polling and coordinator.behaviour.heartbeats_only_in_poll:
            return FOREVER
        if self.notified:
            return coordinator.ctx.now_ms
        heartbeat = coordinator.heartbeat
        client = coordinator.client
        if coordinator.looks_unknown() or (not polling and client.pending_work()):
            if self.work_since_ms < 0:
                self.work_since_ms = coordinator.ctx.now_ms
            return self._on_grid(self.work_since_ms + 1)  # a turn of the same ms has been taken
        self.work_since_ms = -1
        due_ms = heartbeat.session_deadline_ms
        if not fetching and coordinator.behaviour.enforces_poll_interval:
            due_ms = min(due_ms, heartbeat.poll_deadline_ms)
        heartbeat_ms = FOREVER if self._must_wait else heartbeat.heartbeat_deadline_ms
        if not polling:
            due_ms = min(due_ms, heartbeat_ms, client.next_deadline_ms())
        turn_ms = self._on_grid(due_ms)
        if polling:
            turn_ms = min(turn_ms, heartbeat_ms)
        return turn_ms

    @property
    def _must_wait(self) -> bool:
        """Whether an unanswered heartbeat holds the next one back."""
        coordinator = self._coordinator
        if not coordinator.behaviour.one_heartbeat_at_a_time:
            return False
        return coordinator.client.has_pending_request(HeartbeatRequest)

    def unlocked(self, since_ms: int) -> None:
        """The application held the coordinator's lock since then and has let go of it: a turn that
        fell due meanwhile is taken now.
        """
        if self._on_grid(since_ms + 1) <= self._coordinator.ctx.now_ms:
            self.notified = True

    def _on_grid(self, due_ms: int) -> int:
        late_ms = due_ms - self.turn_at_ms
        if late_ms <= 0:
            return self.turn_at_ms
        return self.turn_at_ms + -(-late_ms // self.step_ms) * self.step_ms

    def turn(self) -> None:
        """Take one turn: the steps of 1.4 until the thread waits again."""
        coordinator = self._coordinator
        heartbeat = coordinator.heartbeat
        self.notified = False
        try:
            while self.running:
                coordinator.client.poll_now()  # step 4
                now_ms = coordinator.ctx.now_ms
                if coordinator.coordinator_unknown():  # step 5
                    coordinator.toggle_lookup()
                    break
                if now_ms >= heartbeat.session_deadline_ms:  # step 6, CH-06
                    coordinator.handle_session_timeout()
                elif self._poll_overdue(now_ms):  # step 7, CH-07
                    coordinator.handle_poll_timeout_expiry()
                elif now_ms < heartbeat.heartbeat_deadline_ms or self._must_wait:  # step 8
                    break
                else:  # step 9
                    heartbeat.sent()
                    coordinator.send_heartbeat_request()
        except JavaError as error:  # CH-21
            coordinator.ctx.log(
                "error", f"Heartbeat thread failed due to unexpected error: {error}"
            )
            self.fail(error)
            self.closed = True
        self.turn_taken(coordinator.ctx.now_ms)

    def _poll_overdue(self, now_ms: int) -> bool:
        coordinator = self._coordinator
        heartbeat = coordinator.heartbeat
        return (
            now_ms >= heartbeat.poll_deadline_ms
            and not heartbeat.application_polls
            and coordinator.behaviour.enforces_poll_interval
        )

    def turn_taken(self, now_ms: int) -> None:
        """The grid of turns goes on from here."""
        self.work_since_ms = -1
        self.turn_at_ms = now_ms + self.step_ms


class HeartbeatHandler:
    """Handles answers to the heartbeats of one generation (CH-10 to CH-20)."""

    __slots__ = ("_coordinator", "generation", "handlers", "request")

    def __init__(self, coordinator: AbstractCoordinator, generation: Generation) -> None:
        self._coordinator = coordinator
        self.generation = generation
        self.request = HeartbeatRequest(
            group_id=coordinator.group_id,
            generation_id=generation.generation_id,
            member_id=generation.member_id,
            group_instance_id=coordinator.config.group_instance_id,
        )
        self.handlers = (self.on_response, self.on_failure)

    def on_response(self, response: HeartbeatResponse) -> None:
        """Handle one answer."""
        code = response.error_code
        if code == ErrorCode.NONE or (
            self.generation == self._coordinator.generation
            and (self._coordinator.reacts("heartbeat", code))
        ):  # CH-10
            self._coordinator.heartbeat.received()
        elif code in {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}:  # CH-11
            self._coordinator.mark_coordinator_unknown(f"error response {code.name}")
            self._failed()
        elif code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._rebalance_in_progress()
        elif code in {
            ErrorCode.ILLEGAL_GENERATION,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.FENCED_INSTANCE_ID,
        }:
            self._not_a_member(code)
        else:  # CH-18, CH-19
            self._failed()

    def on_failure(self, error: JavaError) -> None:
        """The heartbeat was never answered (CH-20)."""
        if error.exception == "DisconnectException":
            self._coordinator.coordinator_lost(error)
        self._failed()

    def _rebalance_in_progress(self) -> None:
        coordinator = self._coordinator
        if coordinator.is_stable:  # CH-12
            coordinator.request_rejoin("group is already rebalancing")
        behaviour = coordinator.behaviour
        coordinator.forgets_member_id = behaviour.forgets_member_id
        if behaviour.heartbeats_stop_on_rebalance and coordinator.heartbeat_thread is not None:
            coordinator.heartbeat_thread.enabled = False
        if behaviour.rebalance_answer_is_contact:
            coordinator.heartbeat.received()  # CH-13

    def _not_a_member(self, code: ErrorCode) -> None:
        coordinator = self._coordinator
        sent, instance = self.generation, coordinator.config.group_instance_id
        if coordinator.generation != sent:  # CH-17
            coordinator.ctx.log(
                "info",
                f"Attempt to heartbeat with stale {sent} and group instance id {instance} failed "
                f"due to {code.name}, ignoring the error",
            )
            coordinator.heartbeat.received()
            return
        coordinator.ctx.log(
            "info",
            f"Attempt to heartbeat with {sent} and group instance id {instance} failed due to "
            f"{code.name}, resetting generation",
        )
        coordinator.reset_on_response_error("HEARTBEAT", code)  # CH-14, CH-15
        if code == ErrorCode.FENCED_INSTANCE_ID and (
            not coordinator.behaviour.rejoins_after_fencing
        ):  # CH-16
            coordinator.ctx.log(
                "error", f"Caught fenced group.instance.id {instance} error in heartbeat thread"
            )
            if coordinator.heartbeat_thread is not None:
                coordinator.heartbeat_thread.fail(JavaError.of(code))
        else:
            self._failed()

    def _failed(self) -> None:
        coordinator = self._coordinator
        if not coordinator.behaviour.retries_heartbeats:
            return
        coordinator.heartbeat.failed()
        if coordinator.heartbeat_thread is not None:
            coordinator.heartbeat_thread.notified = True
