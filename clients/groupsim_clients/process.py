"""One consumer process as a ``ClientMachine``: two threads, one clock.

The application thread is a generator that waits; the heartbeat thread takes turns. After each
input the machine runs whichever can run, the application first, until both wait. Then it names the
earliest time at which either wants to go on.

The hot path is the steady heartbeat: the application sits in ``poll()``, the member is joined, nothing
is pending. ``beat`` and ``respond`` then do in a few steps what the general way would do.
"""

from __future__ import annotations

from typing import Any

from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import ApiKey, HeartbeatRequest, HeartbeatResponse, Response
from groupsim_clients.application import Application
from groupsim_clients.assignors import Assignor
from groupsim_clients.behaviour import Background, Behaviour
from groupsim_clients.config import ConsumerConfig
from groupsim_clients.consumer import Consumer
from groupsim_clients.errors import JavaError
from groupsim_clients.heartbeat import Heartbeat, HeartbeatHandler, HeartbeatThread
from groupsim_clients.machine import (
    ClientEffect,
    ClientEnvironment,
    ClientSpec,
    Exited,
    Order,
    send,
)
from groupsim_clients.network_client import NetworkClient
from groupsim_clients.pending import COORDINATOR, Lost, PendingRequest
from groupsim_clients.timing import FOREVER, Context, Steps, Wait, WaitKind
from groupsim_clients.work import Work

__all__ = ["ConsumerProcess"]

_LIVELOCK = 10_000
_NONE = ErrorCode.NONE


class ConsumerProcess:
    """A process with one consumer and the application around it (``ClientMachine``)."""

    def __init__(
        self,
        spec: ClientSpec,
        env: ClientEnvironment,
        *,
        config: ConsumerConfig,
        behaviour: Behaviour,
        assignors: tuple[Assignor, ...],
        work: Work,
    ) -> None:
        self._ctx = Context(env)
        self._spec = spec
        self._config = config
        self._behaviour = behaviour
        self._assignors = assignors
        self._work = work
        self._request_timeout_ms = config.request_timeout_ms
        self.beat_version = dict(behaviour.api_versions)[ApiKey.HEARTBEAT]
        self._consumer: Consumer | None = None
        self._application: Application | None = None
        self._thread: Steps[Any] | None = None
        self._wait: Wait | None = None
        self.next_beat_ms = -1
        self._next_wake_ms: int | None = None
        # what a settled member needs; set by _schedule before _slow_at_ms says that it is one
        self.beat_key = (-1, COORDINATOR)
        self.beat_request: HeartbeatRequest
        self._heartbeat: Heartbeat
        self._turns: HeartbeatThread
        self._handler: HeartbeatHandler
        self._client: NetworkClient
        self._sent: dict[int, int] = {}  # heartbeats of the hot path in flight, and when they left
        self._slow_at_ms = -1  # before this time only steady heartbeats can be due; −1: not steady
        self._calm_until_ms = -1  # the same when nothing is in flight

    # -- ClientMachine -------------------------------------------------------------------------

    @property
    def consumer(self) -> Consumer:
        """The consumer, for inspection."""
        assert self._consumer is not None, "the process has not been started"
        return self._consumer

    def start(self, now_ms: int) -> list[ClientEffect]:
        """Create the consumer and start the application."""
        ctx = self._ctx
        ctx.now_ms = now_ms
        ctx.effects = []
        for warning in self._config.warnings:
            ctx.log("warn", warning)
        self._consumer = Consumer(ctx, self._config, self._behaviour, self._assignors)
        self._application = Application(ctx, self._spec, self._consumer, self._work)
        self._thread = self._application.run()
        return self._pump()

    def respond(self, correlation_id: int, response: Response, now_ms: int) -> list[ClientEffect]:
        """An answer has arrived: handled at once if a thread polls, else on the next turn."""
        if self.beat_answered(correlation_id, response, now_ms):
            return []
        if self._thread is None:
            return []
        self._begin(now_ms)
        self.consumer.client.inbox.append((correlation_id, response))
        return self._pump()

    def disconnected(self, node_id: int, channel: str, now_ms: int) -> list[ClientEffect]:
        """A connection broke or could not be opened."""
        return self._lost(Lost((node_id, channel)), now_ms)

    def authentication_failed(
        self, node_id: int, channel: str, detail: str, now_ms: int
    ) -> list[ClientEffect]:
        """A connection could not be opened because the broker does not believe who we are: fatal
        to everything that was to go over it (CR-17). Not part of ``ClientMachine``.
        """
        error = JavaError("SaslAuthenticationException", detail)
        return self._lost(Lost((node_id, channel), error), now_ms)

    def _lost(self, lost: Lost, now_ms: int) -> list[ClientEffect]:
        if self._thread is None:
            return []
        self._begin(now_ms)
        self.consumer.client.inbox.append(lost)
        return self._pump()

    def wake(self, now_ms: int) -> list[ClientEffect]:
        """The time that was asked for has come."""
        correlation_id = self.beat(now_ms)
        if correlation_id:
            node_id, channel = self.beat_key
            return [send(correlation_id, node_id, channel, self.beat_version, self.beat_request)]
        if now_ms < self._slow_at_ms and now_ms < self._heartbeat.session_deadline_ms:
            # woken for a timeout of something that has been answered since
            self._next_wake_ms = min(
                self._heartbeat.heartbeat_deadline_ms,
                self._slow_at_ms,
                self._heartbeat.session_deadline_ms,
            )
            return []
        if self._thread is None:
            return []
        self._begin(now_ms)
        return self._pump()

    def next_wake_ms(self) -> int | None:
        """When to wake; None while only an input can change anything."""
        return self._next_wake_ms

    def order(self, order: Order, now_ms: int) -> list[ClientEffect]:
        """Have the application do something.

        Raises:
            ValueError: unknown order.

        """
        if self._thread is None or self._application is None:
            return []
        self._begin(now_ms)
        self._application.take(order)
        wait = self._wait
        if wait is not None and (wait.kind is WaitKind.POLL or self._application.idle):
            self._resume()
        return self._pump()

    def owned(self) -> tuple[tuple[str, int], ...]:
        """What is assigned now, sorted."""
        if self._consumer is None or self._thread is None:
            return ()
        return self._consumer.subscriptions.assigned()

    # -- the hot path --------------------------------------------------------------------------

    def beat(self, now_ms: int) -> int:
        """See ``machine.SteadyHeartbeats``: the short way of a settled member."""
        slow_at_ms = self._slow_at_ms
        if now_ms >= slow_at_ms:
            return 0
        heartbeat = self._heartbeat
        if not heartbeat.heartbeat_deadline_ms <= now_ms < heartbeat.session_deadline_ms:
            return 0
        self._ctx.now_ms = now_ms
        client = self._client
        client.correlation_id = correlation_id = client.correlation_id + 1
        self._sent[correlation_id] = now_ms
        heartbeat.heartbeat_deadline_ms = wake_ms = now_ms + heartbeat.interval_ms
        # min() three times would cost as much as the rest of this method
        expires_ms = now_ms + self._request_timeout_ms + 1
        if expires_ms < slow_at_ms:
            self._slow_at_ms = slow_at_ms = expires_ms
        if slow_at_ms < wake_ms:  # noqa: PLR1730
            wake_ms = slow_at_ms
        if heartbeat.session_deadline_ms < wake_ms:  # noqa: PLR1730
            wake_ms = heartbeat.session_deadline_ms
        self._next_wake_ms = self.next_beat_ms = wake_ms
        thread = self._turns
        thread.work_since_ms = -1  # turn_taken, written out
        thread.turn_at_ms = now_ms + thread.step_ms
        return correlation_id

    def beat_answered(self, correlation_id: int, response: Response, now_ms: int) -> bool:
        """See ``machine.SteadyHeartbeats``: the short way of a settled member."""
        if (
            now_ms >= self._slow_at_ms
            or type(response) is not HeartbeatResponse
            or response.error_code is not _NONE
        ):
            return False
        sent = self._sent
        in_flight = self._client.in_flight
        if sent.pop(correlation_id, -1) >= 0 or in_flight.pop(correlation_id, None) is not None:
            heartbeat = self._heartbeat
            heartbeat.session_deadline_ms = now_ms + heartbeat.session_timeout_ms
            heartbeat.attempts = 0
            if not sent and not in_flight:
                self._slow_at_ms = self._calm_until_ms
        return True

    def _file_heartbeats(self) -> None:
        """What the hot path sent becomes known to the network client, before anything else is."""
        in_flight = self._client.in_flight
        handler = self._handler
        for correlation_id, sent_ms in self._sent.items():
            pending = PendingRequest(
                self.beat_key,
                handler.request,
                sent_ms,
                self._request_timeout_ms,
                handler.handlers,
            )
            pending.sent_ms = sent_ms
            in_flight[correlation_id] = pending
        self._sent.clear()

    # -- the general way -----------------------------------------------------------------------

    def _begin(self, now_ms: int) -> None:
        ctx = self._ctx
        assert now_ms >= ctx.now_ms, f"time went back from {ctx.now_ms} to {now_ms}"
        ctx.now_ms = now_ms
        ctx.effects = []
        if self._sent:
            self._file_heartbeats()

    def _pump(self) -> list[ClientEffect]:
        """Run both threads until they wait."""
        ctx = self._ctx
        for _ in range(_LIVELOCK):
            if self._thread is None:
                self._rest()
                break
            wait = self._wait
            due_ms = ctx.now_ms if wait is None else self._due_ms(wait)
            if due_ms <= ctx.now_ms:
                self._resume()
                continue
            turn_ms = self._turn_at_ms()
            if turn_ms <= ctx.now_ms:
                self._take_turn()
                continue
            self._schedule(due_ms, turn_ms)
            break
        else:
            raise AssertionError(f"{self._spec.name}: the client runs in circles")
        return ctx.effects

    def _due_ms(self, wait: Wait) -> int:
        """When the application thread can go on if nothing arrives before; it may be now or past."""
        if wait.kind is not WaitKind.POLL:
            return wait.deadline_ms
        client = self.consumer.client
        if client.pending_work():
            return self._ctx.now_ms
        return min(wait.deadline_ms, client.next_deadline_ms())

    def _resume(self) -> None:
        assert self._thread is not None
        try:
            self._wait = next(self._thread)
        except StopIteration as end:
            self._thread = self._wait = None
            self._ctx.effects.append(Exited(reason=str(end.value)))

    def _turn_at_ms(self) -> int:
        coordinator = self.consumer.coordinator
        if coordinator is None or coordinator.heartbeat_thread is None or self._wait is None:
            return FOREVER
        if self._answers_at_once and self.consumer.client.answers_waiting():
            return self._ctx.now_ms
        return coordinator.heartbeat_thread.next_turn_ms(
            polling=self._wait.kind is WaitKind.POLL, fetching=self._wait.fetching
        )

    def _take_turn(self) -> None:
        coordinator = self.consumer.coordinator
        assert coordinator is not None
        assert coordinator.heartbeat_thread is not None
        if self._answers_at_once:
            coordinator.handle_answers()
        coordinator.heartbeat_thread.turn()
        if self._wait is not None and self._wait.steady and coordinator.expelled:
            self._wait.deadline_ms = self._ctx.now_ms  # the loop that joins is the client's own

    @property
    def _answers_at_once(self) -> bool:
        """Whether answers are handled now although the application is away."""
        return (
            self._behaviour.background is not Background.NOTHING
            and self._wait is not None
            and self._wait.kind is not WaitKind.POLL
            and not self._ctx.lock_depth
        )

    def _rest(self) -> None:
        """There is nothing to wait for any more: the application has ended."""
        self._slow_at_ms = -1
        self._next_wake_ms = None

    def _schedule(self, due_ms: int, turn_ms: int) -> None:
        """Both threads wait: for when the next of them can go on, and whether that is all calm."""
        self._slow_at_ms = -1
        wait = self._wait
        assert wait is not None
        wake_ms = min(due_ms, turn_ms)
        self._next_wake_ms = None if wake_ms >= FOREVER else wake_ms
        if not wait.steady:
            return
        coordinator = self.consumer.coordinator
        thread = None if coordinator is None else coordinator.heartbeat_thread
        if coordinator is None or thread is None:
            return
        if thread.running and not self._ctx.lock_depth and not coordinator.looks_unknown():
            if self.beat_key != coordinator.key:
                self.beat_key = coordinator.key
            self._heartbeat = coordinator.heartbeat
            self._turns = thread
            self._handler = coordinator.heartbeat_handler()
            self.beat_request = self._handler.request
            self._client = client = coordinator.client
            self._slow_at_ms = self._calm_until_ms = due_ms
            if client.in_flight:
                calm_ms = client.next_deadline_ms(in_flight=False)
                self._calm_until_ms = min(wait.deadline_ms, calm_ms)
