"""The network client: queue, in-flight requests, timeouts, connections and who handles answers
(``ConsumerNetworkClient`` on top of ``NetworkClient``; rules CN-01 to CN-06).

What arrives waits in ``inbox`` as bytes wait in a socket until some thread polls. Handlers then run
in that thread. The application thread polls with ``poll``, a generator; the heartbeat thread with
``poll_now``, which never waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from typing import Any

from groupsim.protocol.messages import API_OF_REQUEST, MetadataResponse, Request, Response
from groupsim_clients.behaviour import Behaviour
from groupsim_clients.config import ConsumerConfig
from groupsim_clients.errors import JavaError, WakeupError
from groupsim_clients.futures import RequestFuture
from groupsim_clients.machine import ANY_NODE, Disconnect, Send
from groupsim_clients.metadata import Metadata
from groupsim_clients.pending import BOOTSTRAP, Connection, Handler, Key, Lost, PendingRequest
from groupsim_clients.timing import (
    FOREVER,
    Context,
    ExponentialBackoff,
    Steps,
    Timer,
    Wait,
    WaitKind,
)

__all__ = ["NetworkClient"]

MAX_POLL_TIMEOUT_MS = 5_000  # ConsumerNetworkClient.MAX_POLL_TIMEOUT_MS


class NetworkClient:
    """Everything between the coordinator code and the wire."""

    def __init__(
        self, ctx: Context, config: ConsumerConfig, behaviour: Behaviour, metadata: Metadata
    ) -> None:
        self._ctx = ctx
        self._config = config
        self.metadata = metadata
        versions = dict(behaviour.api_versions)
        self._versions = {
            request: versions[api.key]
            for request, api in API_OF_REQUEST.items()
            if api.key in versions
        }
        self._reconnect = ExponentialBackoff(
            ctx, config.reconnect_backoff_ms, config.reconnect_backoff_max_ms, "reconnect-backoff"
        )
        self._connections: dict[Key, Connection] = {}
        self.correlation_id = 0
        self._metadata_in_flight: tuple[int, int] | None = None  # correlation id, request version
        self.unsent: list[PendingRequest] = []
        self.in_flight: dict[int, PendingRequest] = {}
        self.inbox: deque[tuple[int, Response] | Lost] = deque()
        self.completions: deque[tuple[PendingRequest, Response | None, JavaError | None]] = deque()
        self._suspended: deque[Generator[Wait, None, None]] = deque()
        self.pending_disconnects: list[Key] = []
        self.wakeup_requested = False
        self.wakeups_disabled = False
        self.max_poll_timeout_ms = min(config.heartbeat_interval_ms, MAX_POLL_TIMEOUT_MS)

    # -- sending -------------------------------------------------------------------------------

    def send(
        self,
        key: Key,
        request: Request,
        on_response: Handler,
        on_failure: Callable[[JavaError], None],
        timeout_ms: int | None = None,
    ) -> PendingRequest:
        """Queue a request; it leaves with the next poll that finds the connection usable (CN-01)."""
        if timeout_ms is None:
            timeout_ms = self._config.request_timeout_ms
        pending = PendingRequest(
            key, request, self._ctx.now_ms, timeout_ms, (on_response, on_failure)
        )
        self.unsent.append(pending)
        return pending

    def transmit(self, pending: PendingRequest) -> None:
        """Put a queued request on the wire."""
        pending.sent_ms = self._ctx.now_ms
        self.correlation_id += 1
        self.in_flight[self.correlation_id] = pending
        connection = self._connections.get(pending.key)
        if connection is not None:
            connection.failed = False  # being connected again
        node_id, channel = pending.key
        self._ctx.effects.append(
            Send(
                correlation_id=self.correlation_id,
                node_id=node_id,
                channel=channel,
                api_version=self._versions[type(pending.request)],
                request=pending.request,
            )
        )

    def least_loaded_node(self) -> int | None:
        """A node for lookups and metadata: any live one, or None while none may be tried (CJ-02)."""
        connection = self._connections.get((ANY_NODE, BOOTSTRAP))
        if connection is None or not connection.failed:
            return ANY_NODE
        if connection.attempts < self.metadata.brokers:  # another broker can be tried at once
            return ANY_NODE
        return ANY_NODE if self._ctx.now_ms >= connection.retry_at_ms else None

    def is_unavailable(self, key: Key) -> bool:
        """Whether the last attempt failed and its backoff still runs (CN-06)."""
        connection = self._connections.get(key)
        return (
            connection is not None
            and connection.failed
            and self._ctx.now_ms < connection.retry_at_ms
        )

    def disconnect_async(self, key: Key) -> None:
        """Drop the connection with the next poll; what it carries fails then (CN-05)."""
        self.pending_disconnects.append(key)

    # -- polling -------------------------------------------------------------------------------

    def poll(
        self,
        timer: Timer,
        future: RequestFuture[Any] | None = None,
        *,
        disable_wakeup: bool = False,
        fetching: bool = False,
        steady: bool = False,
    ) -> Steps[None]:
        """One ``ConsumerNetworkClient.poll``: handlers, disconnects, sends, one wait, and what
        arrived (CN-03). Ends early when something arrives.

        Raises:
            WakeupError: the application was woken (unless disabled).
            JavaError: metadata brought an error (CN-04).

        """
        if self.completions or self._suspended:
            yield from self.fire()
        self._apply_disconnects()
        if self.unsent:
            self._try_send()
        if not self.completions and (future is None or not future.done) and not timer.expired:
            self._maybe_update_metadata()
            if not self.pending_work():
                yield Wait(WaitKind.POLL, timer.deadline_ms, fetching=fetching, steady=steady)
                while steady and self._only_metadata_was_due(timer):
                    yield Wait(WaitKind.POLL, timer.deadline_ms, fetching=fetching, steady=True)
        self._network_step()
        if not disable_wakeup:
            self.maybe_trigger_wakeup()
        if self.unsent:
            self._try_send()
            self._fail_expired()
        if self.completions or self._suspended:
            yield from self.fire()
        self.metadata.maybe_throw()

    def poll_until(
        self, future: RequestFuture[Any], timer: Timer, *, disable_wakeup: bool = False
    ) -> Steps[bool]:
        """Poll until the future is done or the time is up; returns whether it is done."""
        while True:
            yield from self.poll(timer, future, disable_wakeup=disable_wakeup)
            if future.done or timer.expired:
                return future.done

    def poll_now(self) -> None:
        """``pollNoWakeup``: a poll that does not wait, for the heartbeat thread and for flushes."""
        self._fire_without_waiting()
        self._apply_disconnects()
        self._try_send()
        self._network_step()
        self._try_send()
        self._fail_expired()
        self._fire_without_waiting()
        self.metadata.maybe_throw()

    def await_metadata_update(self, timer: Timer) -> Steps[bool]:
        """Ask for metadata and poll until it came or the time is up."""
        version = self.metadata.request_update(reset_backoff=False)
        while True:
            yield from self.poll(timer)
            if self.metadata.update_version != version or timer.expired:
                return self.metadata.update_version > version

    def ensure_fresh_metadata(self, timer: Timer) -> Steps[bool]:
        """Wait for metadata if an update is wanted or due (CS-05, CP-08)."""
        metadata = self.metadata
        if metadata.update_requested or self._ctx.now_ms >= metadata.next_update_ms():
            return (yield from self.await_metadata_update(timer))
        return True

    def has_pending(self, key: Key) -> bool:
        """Whether requests to this connection are queued or unanswered."""
        return any(p.key == key for p in self.unsent) or any(
            p.key == key for p in self.in_flight.values()
        )

    def has_pending_request(self, kind: type[Request]) -> bool:
        """Whether a request of this kind is queued or unanswered."""
        return any(type(p.request) is kind for p in self.unsent) or any(
            type(p.request) is kind for p in self.in_flight.values()
        )

    def await_pending(self, key: Key, timer: Timer) -> Steps[bool]:
        """Poll until nothing is pending on the connection or the time is up (CL-06)."""
        while self.has_pending(key) and not timer.expired:
            yield from self.poll(timer)
        return not self.has_pending(key)

    def maybe_trigger_wakeup(self) -> None:
        """Throw if the application was woken."""
        if self.wakeup_requested and not self.wakeups_disabled:
            self.wakeup_requested = False
            raise WakeupError

    # -- what the machine asks -----------------------------------------------------------------

    def pending_work(self) -> bool:
        """Whether a poll would find something to do at once."""
        return self.answers_waiting() or (self.wakeup_requested and not self.wakeups_disabled)

    def answers_waiting(self) -> bool:
        """Whether a poll would handle an answer or send something now."""
        return bool(
            self.inbox
            or self.completions
            or self.pending_disconnects
            or (self.unsent and any(self._usable(pending.key) for pending in self.unsent))
        )

    def next_deadline_ms(self, *, in_flight: bool = True) -> int:
        """When a poll would have something to do although nothing arrives; ``in_flight`` False
        leaves the timeouts of what is in flight out.
        """
        next_ms = FOREVER
        for pending in self.in_flight.values() if in_flight else ():
            next_ms = min(next_ms, pending.sent_ms + pending.timeout_ms + 1)
        for pending in self.unsent:
            next_ms = min(next_ms, pending.created_ms + pending.timeout_ms + 1)
            connection = self._connections.get(pending.key)
            if connection is not None and connection.failed:
                next_ms = min(next_ms, connection.retry_at_ms)
        if self._metadata_in_flight is None:
            due_ms = self.metadata.next_update_ms()
            if self.least_loaded_node() is None:
                due_ms = max(due_ms, self._connections[ANY_NODE, BOOTSTRAP].retry_at_ms)
            next_ms = min(next_ms, due_ms)
        return next_ms

    # -- inside --------------------------------------------------------------------------------

    def fire(self) -> Steps[None]:
        """Run the handlers of what has completed, in order (CN-02)."""
        while self._suspended:
            yield from self._suspended.popleft()
        while self.completions:
            pending, response, error = self.completions.popleft()
            if error is not None:
                pending.on_failure(error)
                continue
            steps = pending.on_response(response)
            if steps is not None:
                yield from steps

    def _fire_without_waiting(self) -> None:
        while self.completions:
            pending, response, error = self.completions.popleft()
            if error is not None:
                pending.on_failure(error)
                continue
            steps = pending.on_response(response)
            if steps is not None and next(steps, None) is not None:
                self._suspended.append(steps)  # has to wait: goes on when the application polls

    def _usable(self, key: Key) -> bool:
        if key[0] == ANY_NODE:
            return self.least_loaded_node() is not None
        return not self.is_unavailable(key)

    def _try_send(self) -> None:
        kept = []
        for pending in self.unsent:
            if self._usable(pending.key):
                self.transmit(pending)
            else:
                kept.append(pending)
        self.unsent[:] = kept

    def _network_step(self) -> None:
        if self.inbox:
            self._receive()
        self._maybe_update_metadata()
        if self.in_flight:
            self._time_out_in_flight()

    def _receive(self) -> None:
        inbox = self.inbox
        while inbox:
            arrived = inbox.popleft()
            if isinstance(arrived, Lost):
                self._connection_lost(arrived.key, arrived.error)
                continue
            pending = self.in_flight.pop(arrived[0], None)
            if pending is None:
                continue  # of a connection that we closed
            connection = self._connections.get(pending.key)
            if connection is not None:
                connection.failed = False
                connection.attempts = 0
            if self._metadata_in_flight and self._metadata_in_flight[0] == arrived[0]:
                version = self._metadata_in_flight[1]
                self._metadata_in_flight = None
                assert isinstance(arrived[1], MetadataResponse)
                self.metadata.update(arrived[1], version)
            else:
                self.completions.append((pending, arrived[1], None))

    def _maybe_update_metadata(self) -> None:
        if self._metadata_in_flight is not None:
            return
        if self._ctx.now_ms < self.metadata.next_update_ms() or self.least_loaded_node() is None:
            return
        request, version = self.metadata.request()
        pending = PendingRequest(
            (ANY_NODE, BOOTSTRAP),
            request,
            self._ctx.now_ms,
            self._config.request_timeout_ms,
            (_ignore, _ignore_failure),
        )
        self.transmit(pending)
        self._metadata_in_flight = (self.correlation_id, version)

    def _only_metadata_was_due(self, timer: Timer) -> bool:
        """Ask for metadata if that is all that the wait ended for.

        Java's poll returns then, and its caller looks around; in a steady state it finds nothing.
        """
        if timer.expired or self.pending_work():
            return False
        asked = self.correlation_id
        self._maybe_update_metadata()
        return self.correlation_id != asked and self._ctx.now_ms < self.next_deadline_ms()

    def _connection_lost(self, key: Key, error: JavaError | None = None) -> None:
        """The other side, a request timeout or failed authentication ended the connection (CN-01)."""
        self._mark_failed(key)
        if self._ctx.now_ms >= self.metadata.next_update_ms() and not self._metadata_in_flight:
            self.metadata.failed_update()
        failure = error or JavaError.disconnect()
        self._cancel(key, failure)
        if error is not None:
            self.metadata.fatal_error = error
        self.metadata.request_update(reset_backoff=False)
        self._fail_unsent(key, failure)

    def _fail_unsent(self, key: Key, failure: JavaError) -> None:
        for pending in [p for p in self.unsent if p.key == key]:
            self.unsent.remove(pending)
            self.completions.append((pending, None, failure))

    def _apply_disconnects(self) -> None:
        while self.pending_disconnects:
            key = self.pending_disconnects.pop(0)
            self._fail_unsent(key, JavaError.disconnect())
            connection = self._connections.get(key)
            if connection is not None and connection.failed:
                continue
            self._ctx.effects.append(Disconnect(node_id=key[0], channel=key[1]))
            self._cancel(key, JavaError.disconnect())
            self._mark_failed(key)

    def _cancel(self, key: Key, failure: JavaError) -> None:
        for correlation_id in [c for c, p in self.in_flight.items() if p.key == key]:
            pending = self.in_flight.pop(correlation_id)
            if self._metadata_in_flight and self._metadata_in_flight[0] == correlation_id:
                self._metadata_in_flight = None
                self.metadata.failed_update()
            else:
                self.completions.append((pending, None, failure))

    def _mark_failed(self, key: Key) -> None:
        connection = self._connections.setdefault(key, Connection())
        connection.failed = True
        wait_ms = self._reconnect.backoff(connection.attempts)
        connection.retry_at_ms = self._ctx.now_ms + wait_ms
        connection.attempts += 1

    def _time_out_in_flight(self) -> None:
        now_ms = self._ctx.now_ms
        late = dict.fromkeys(
            p.key for p in self.in_flight.values() if now_ms - p.sent_ms > p.timeout_ms
        )
        for key in late:
            self._ctx.log("info", f"Disconnecting from node {key[0]} due to request timeout.")
            self._ctx.effects.append(Disconnect(node_id=key[0], channel=key[1]))
            self._connection_lost(key)

    def _fail_expired(self) -> None:
        now_ms = self._ctx.now_ms
        for pending in [p for p in self.unsent if now_ms - p.created_ms > p.timeout_ms]:
            self.unsent.remove(pending)
            detail = f"Failed to send request after {pending.timeout_ms} ms."
            self.completions.append((pending, None, JavaError.timeout(detail)))


def _ignore(_response: object) -> None:
    """Metadata is taken in before handlers run."""


def _ignore_failure(_error: JavaError) -> None:
    """As above."""
