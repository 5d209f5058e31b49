"""Group membership: the join loop, heartbeats, leaving (``AbstractCoordinator``).

Methods that Java blocks in are generators of ``Wait`` (see ``timing``). Where Java holds the
coordinator's monitor while it waits, ``Context.lock_depth`` is raised, because the heartbeat thread
stands still then.

This is the top of four layers. Below it lie ``coordinator_lookup`` (finding the coordinator),
``membership`` (state, generation, resets, rejoin reasons) and ``reacting`` (what other clients than
Java's do about errors). What happens to answers is in ``join_handlers``, ``heartbeat`` and
``leave_handler``; what a consumer does before and after a join is in ``join_steps``.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Generator, Sequence
from typing import Any

from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    ApiKey,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponseMember,
    Request,
)
from groupsim_clients.behaviour import Behaviour, SessionTimeout, SyncTimeout
from groupsim_clients.config import ConsumerConfig
from groupsim_clients.errors import JavaError
from groupsim_clients.futures import RequestFuture
from groupsim_clients.generation import NO_GENERATION, Generation, JoinState
from groupsim_clients.heartbeat import HeartbeatHandler, HeartbeatThread
from groupsim_clients.join_handlers import JoinHandlers
from groupsim_clients.leave_handler import LeaveHandler
from groupsim_clients.machine import PollNote
from groupsim_clients.membership import MAX_REASON_LENGTH
from groupsim_clients.network_client import NetworkClient
from groupsim_clients.reacting import Reacting
from groupsim_clients.reactions import Pace, Reaction
from groupsim_clients.timing import Context, Steps, Timer, Wait

__all__ = ["PROTOCOL_TYPE", "AbstractCoordinator"]

PROTOCOL_TYPE = "consumer"
_INT_MAX = 2**31 - 1
_JOIN_GROUP = ApiKey.JOIN_GROUP
_AT_ONCE = frozenset(  # CR-23: join again without delay
    {
        "UnknownMemberIdException",
        "IllegalGenerationException",
        "RebalanceInProgressException",
        "MemberIdRequiredException",
    }
)

Handle = Callable[[Any, RequestFuture[Any], Generation], Generator[Wait, None, None] | None]


class AbstractCoordinator(Reacting):
    """One member's dealings with its group coordinator."""

    def __init__(
        self,
        ctx: Context,
        config: ConsumerConfig,
        behaviour: Behaviour,
        client: NetworkClient,
    ) -> None:
        super().__init__(ctx, config, behaviour, client)
        self.forgets_member_id = False
        """The next JoinGroup starts as a new member (a misbehaviour)."""
        self.join_future: RequestFuture[bytes] | None = None
        self.rebalance_start_ms = -1
        self.rebalance_end_ms = -1
        self.failed_rebalances = 0
        self._heartbeats = HeartbeatHandler(self, NO_GENERATION)
        self._handlers = JoinHandlers(self)
        self._leaving = LeaveHandler(self)

    # -- what a consumer adds --------------------------------------------------------------------

    @abc.abstractmethod
    def protocols(self) -> tuple[JoinGroupRequestProtocol, ...]:
        """The protocols to offer, in order of preference (CJ-24)."""

    @abc.abstractmethod
    def on_join_prepare(self, timer: Timer, generation_id: int, member_id: str) -> Steps[bool]:
        """What comes before a join; False means "not finished" (CJ-12)."""

    @abc.abstractmethod
    def on_leader_elected(
        self, protocol: str, members: Sequence[JoinGroupResponseMember], *, skip_assignment: bool
    ) -> Steps[dict[str, bytes]]:
        """Make the assignment of the group (CS-03)."""

    @abc.abstractmethod
    def on_join_complete(self, generation: Generation, assignment: bytes) -> Steps[None]:
        """Take the assignment (CC-01)."""

    @abc.abstractmethod
    def on_leave_prepare(self) -> Steps[None]:
        """Give everything up before leaving (CL-05)."""

    def rejoin_needed_or_pending(self) -> bool:
        """Whether the join loop has something to do (CP-07)."""
        return self.rejoin_needed or self.join_future is not None

    @abc.abstractmethod
    def protocol_chosen(self, name: str) -> None:
        """The group has chosen this protocol."""

    # -- the join loop -------------------------------------------------------------------------

    def ensure_active_group(self, timer: Timer) -> Steps[bool]:
        """Coordinator known, heartbeat thread there, joined; False when time ran out."""
        if not (yield from self.ensure_coordinator_ready(timer)):
            return False
        if self.heartbeat_thread is None:
            self.heartbeat_thread = HeartbeatThread(self, self.config.retry_backoff_ms)
        return (yield from self.join_group_if_needed(timer))

    def join_group_if_needed(self, timer: Timer) -> Steps[bool]:
        """Join until nothing is wanted any more (CJ-10). False leaves everything pending.

        Raises:
            JavaError: a fatal answer, or what a callback threw (CR-24, CJ-17, CC-11).

        """
        while self.rejoin_needed_or_pending():
            if not (yield from self.ensure_coordinator_ready(timer)):
                return False
            if self.needs_join_prepare:
                self.needs_join_prepare = False  # CJ-11: dropped before the callback can throw
                generation = self.generation
                if not (
                    yield from self.on_join_prepare(
                        timer, generation.generation_id, generation.member_id
                    )
                ):
                    self.needs_join_prepare = True
                    return False
            if self.ctx.now_ms < self.join_not_before_ms and self.join_future is None:
                yield from timer.sleep(self.join_not_before_ms - self.ctx.now_ms)
                if self.ctx.now_ms < self.join_not_before_ms:
                    return False
            future = self._initiate_join()
            yield from self.client.poll_until(future, timer)
            if not future.done:
                return False
            if future.error is None:
                yield from self._join_succeeded(future.value)
            elif not (yield from self._join_failed(future.error, timer)):
                return False
        return True

    def _join_succeeded(self, assignment: bytes) -> Steps[None]:
        if self.behaviour.stable_when_polled and self.state is JoinState.COMPLETING_REBALANCE:
            self._handlers.now_stable()
        generation, state = self.generation, self.state
        if not generation.was_reset and state is JoinState.STABLE:  # CR-20
            self._failed_sessions = 0
            yield from self.on_join_complete(generation, assignment)
            self.join_future = None  # CR-21: only now, so that a callback that threw is repeated
            self.needs_join_prepare = True
            return
        self._reset_and_rejoin(
            "rebalance failed since the generation/state was modified by heartbeat thread to "
            f"{generation}/{self.shown_state(state)} before the rebalance callback triggered"
        )
        self.join_future = None

    def _join_failed(self, error: JavaError, timer: Timer) -> Steps[bool]:
        self.join_future = None
        reacted, self._join_reacted = self._join_reacted, False
        if reacted:
            return self.dead is None
        if error.exception != "MemberIdRequiredException":  # CR-22
            self.request_rejoin(
                f"rebalance failed due to {error.exception}",
                f"rebalance failed due to '{error.detail or 'null'}' ({error.exception})",
            )
        if error.exception in _AT_ONCE:  # CR-23
            return True
        if not error.retriable:  # CR-24
            raise error
        if timer.expired:
            return False
        yield from timer.sleep(self.config.retry_backoff_ms)  # CR-25: constant
        return True

    def _initiate_join(self) -> RequestFuture[bytes]:
        if self.join_future is not None:  # CJ-19, CJ-20
            return self.join_future
        if not self.behaviour.heartbeats_while_syncing and self.heartbeat_thread is not None:
            self.heartbeat_thread.enabled = False
        self.set_state(JoinState.PREPARING_REBALANCE, self.rejoin_reason or "joining the group")
        if self.rebalance_start_ms == -1:
            self.rebalance_start_ms = self.ctx.now_ms
        future: RequestFuture[bytes] = RequestFuture()
        self.join_future = future
        future.listen(self._handlers.join_ended)
        if self.coordinator_unknown():  # CJ-21
            future.fail(JavaError.of(ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return future
        if self.forgets_member_id:
            self.forgets_member_id = False
            self.set_state(self.state, "the member id was forgotten", NO_GENERATION)
        if self.behaviour.join_interval_ms:
            self.join_not_before_ms = self.ctx.now_ms + self.behaviour.join_interval_ms
        self.ctx.log("info", "(Re-)joining group")
        self.send(self._join_request(), self._handlers.join_group, future, self._join_timeout_ms())
        return future

    def _join_request(self) -> JoinGroupRequest:
        version = dict(self.behaviour.api_versions)[_JOIN_GROUP]
        return JoinGroupRequest(  # CJ-22
            group_id=self.group_id,
            session_timeout_ms=self.config.session_timeout_ms,
            rebalance_timeout_ms=self.config.max_poll_interval_ms,
            member_id=self.generation.member_id,
            group_instance_id=self.config.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=self.protocols(),
            reason=self.rejoin_reason[:MAX_REASON_LENGTH] if version >= 8 else None,
        )

    def _join_timeout_ms(self) -> int:
        if self.behaviour.impatient_join:
            return self.config.request_timeout_ms
        lapse_ms = self.config.max_poll_interval_ms + self.behaviour.join_timeout_extra_ms
        if lapse_ms > _INT_MAX:  # CJ-23: Java's sum overflows and the plain value wins
            lapse_ms = self.config.max_poll_interval_ms
        if self.behaviour.join_timeout_at_least_request_timeout:
            return max(self.config.request_timeout_ms, lapse_ms)
        return lapse_ms

    def sync_timeout_ms(self) -> int:
        """How long a SyncGroup may take."""
        if self.behaviour.sync_timeout is SyncTimeout.SESSION:
            return self.config.session_timeout_ms + 3_000  # rd_kafka_SyncGroupRequest
        if self.behaviour.sync_timeout is SyncTimeout.REBALANCE:
            return self.config.max_poll_interval_ms + 10_000  # kgo, connTimeouter.timeouts
        return self.config.request_timeout_ms

    def send(
        self,
        request: Request,
        handle: Handle,
        future: RequestFuture[Any],
        timeout_ms: int | None = None,
    ) -> None:
        """Send to the coordinator; ``handle`` completes the future, a disconnect fails it (CJ-09)."""
        sent = self.generation

        def answered(response: Any) -> Generator[Wait, None, None] | None:
            try:
                return handle(response, future, sent)
            except JavaError as error:
                if not future.done:
                    future.fail(error)
                return None

        def failed(error: JavaError) -> None:
            if error.exception == "DisconnectException":
                self.coordinator_lost(error)
            future.fail(error)

        self.client.send(self.key, request, answered, failed, timeout_ms)

    # -- heartbeats ------------------------------------------------------------------------------

    def poll_heartbeat(self) -> None:
        """The application polls: throw what the thread failed with, restart the poll timer (CH-05)."""
        thread = self.heartbeat_thread
        if thread is None:
            return
        if thread.failure is not None:
            self.heartbeat_thread = None
            raise thread.failure
        if self.ctx.now_ms >= self.heartbeat.heartbeat_deadline_ms:
            thread.notified = True
        self.heartbeat.poll()

    def check_heartbeat_thread(self) -> None:
        """Throw the thread's failure if the member is still joined (CH-05, time to next heartbeat)."""
        thread = self.heartbeat_thread
        if self.heartbeats_wanted and thread is not None and thread.failure is not None:
            raise thread.failure

    def heartbeat_handler(self) -> HeartbeatHandler:
        """The handler, with its request, for heartbeats of the current generation (CH-08)."""
        if self._heartbeats.generation is not self.generation:
            self._heartbeats = HeartbeatHandler(self, self.generation)
        return self._heartbeats

    def send_heartbeat_request(self) -> None:
        """Queue one heartbeat; several may be in flight (CH-04)."""
        handler = self.heartbeat_handler()
        self.client.send(self.key, handler.request, handler.on_response, handler.on_failure)

    def heartbeat_between_messages(self, timer: Timer) -> Steps[None]:
        """For clients without a thread for it: when a heartbeat is due, send it and wait."""
        thread = self.heartbeat_thread
        if thread is None or not thread.running or self.coordinator_unknown():
            return
        if self.ctx.now_ms >= self.heartbeat.heartbeat_deadline_ms:
            self.heartbeat.sent()
            self.send_heartbeat_request()
            yield from self.client.await_pending(self.key, timer)

    def handle_session_timeout(self) -> None:
        """No answer that counts for ``session.timeout.ms`` (CH-06)."""
        reason = "session timed out without receiving a heartbeat response"
        what = self.behaviour.session_timeout
        if what is SessionTimeout.EXPELLED:
            self._reset_and_rejoin(reason)
        elif what is SessionTimeout.SESSION_FAILS:
            failed = Reaction(lost=True, shown=True, pace=Pace.BACKOFF)
            self._react(failed, JavaError.timeout(reason), reason)
        else:
            self.mark_coordinator_unknown(reason)

    @property
    def expelled(self) -> bool:
        """Whether the member has given its session up by itself and is to join again."""
        return (
            self.behaviour.session_timeout is not SessionTimeout.LOOKUP
            and self.state is JoinState.UNJOINED
            and self.rejoin_needed
        )

    def handle_poll_timeout_expiry(self) -> None:
        """The application has not polled for ``max.poll.interval.ms``: leave (CL-03)."""
        self.ctx.log(
            "warn",
            "consumer poll timeout has expired. This means the time between subsequent calls to "
            "poll() was longer than the configured max.poll.interval.ms, which typically implies "
            "that the poll loop is spending too much time processing messages. You can address this "
            "either by increasing max.poll.interval.ms or by reducing the maximum size of batches "
            "returned in poll() with max.poll.records.",
        )
        self.ctx.note(
            PollNote(event="poll_interval_exceeded", duration_ms=self.config.max_poll_interval_ms)
        )
        self.maybe_leave_group("consumer poll timeout has expired.")

    def handle_answers(self) -> None:
        """Handle answers while the application is away (``Background``)."""
        try:
            self.client.poll_now()
        except JavaError as error:  # metadata's: kept for the application's next call
            self.client.metadata.fatal_error = error

    # -- leaving ---------------------------------------------------------------------------------

    def leave_on_unsubscribe(self, reason: str) -> None:
        """Leave because nothing is subscribed to any more (CL-09)."""
        static = self.config.group_instance_id is not None
        self._leave(reason, sending=not static or self.behaviour.static_unsubscribe_leaves)

    def maybe_leave_group(self, reason: str) -> None:
        """Send LeaveGroup where it is due, then forget the membership in any case (CL-01, CL-03)."""
        self._leave(reason, sending=self.config.group_instance_id is None)

    def _leave(self, reason: str, *, sending: bool) -> None:
        member_id = self.generation.member_id
        if (
            sending
            and not self.coordinator_unknown()
            and self.state is not JoinState.UNJOINED
            and member_id
        ):
            self.ctx.log(
                "info",
                f"Member {member_id} sending LeaveGroup request to coordinator "
                f"{self._coordinator_text} due to {reason}",
            )
            future: RequestFuture[None] = RequestFuture()
            self.send(self._leaving.request(member_id, reason), self._leaving.left, future)
            self.client.poll_now()
        self._reset_and_rejoin("consumer pro-actively leaving the group")

    def close_membership(self, timer: Timer) -> Steps[None]:
        """Stop the heartbeat thread, give up, leave, wait for what is pending (CL-06, CL-07)."""
        if self.heartbeat_thread is not None:
            self.heartbeat_thread.closed = True
            self.heartbeat_thread = None
        if self.config.leave_group_on_close:  # CL-08
            yield from self.on_leave_prepare()
            self.maybe_leave_group("the consumer is being closed")
        if not self.coordinator_unknown() and not (
            yield from self.client.await_pending(self.key, timer)
        ):
            self.ctx.log(
                "warn",
                "Close timed out with pending requests to coordinator, terminating client connections",
            )
