"""Finding the group coordinator, and losing it again (rules CJ-01 to CJ-09).

The lowest layer of ``AbstractCoordinator``: who the coordinator is, the shared lookup, and the monitor
that Java holds while it looks.
"""

from __future__ import annotations

from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse
from groupsim_clients.behaviour import Behaviour
from groupsim_clients.config import ConsumerConfig
from groupsim_clients.errors import JavaError
from groupsim_clients.futures import RequestFuture
from groupsim_clients.heartbeat import Heartbeat, HeartbeatThread
from groupsim_clients.machine import ANY_NODE
from groupsim_clients.network_client import NetworkClient
from groupsim_clients.pending import BOOTSTRAP, COORDINATOR
from groupsim_clients.timing import Context, ExponentialBackoff, Steps, Timer

__all__ = ["CoordinatorLookup"]

_INT_MAX = 2**31 - 1


class CoordinatorLookup:
    """Who coordinates the group, as far as this member knows.

    Attributes:
        coordinator: node id of the coordinator; None while it is unknown.

    """

    def __init__(
        self,
        ctx: Context,
        config: ConsumerConfig,
        behaviour: Behaviour,
        client: NetworkClient,
    ) -> None:
        assert config.group_id is not None, "a coordinator needs a group id"
        self.ctx = ctx
        self.config = config
        self.behaviour = behaviour
        self.client = client
        self.group_id = config.group_id
        self.heartbeat = Heartbeat(ctx, config)
        self.heartbeat_thread: HeartbeatThread | None = None
        self.retry_backoff = ExponentialBackoff(
            ctx, config.retry_backoff_ms, config.retry_backoff_max_ms, "retry-backoff"
        )
        self.coordinator: int | None = None
        self._coordinator_text = ""
        self._find_future: RequestFuture[None] | None = None
        self._fatal_find_error: JavaError | None = None
        self._unknown_since_ms = -1
        self._locked_at_ms = 0

    @property
    def key(self) -> tuple[int, str]:
        """The coordinator's connection, apart from the one for everything else (CJ-04)."""
        assert self.coordinator is not None, "no coordinator is known"
        return self.coordinator, COORDINATOR

    def coordinator_unknown(self) -> bool:
        """No coordinator, or its connection failed and may not be retried yet; then it is forgotten
        by the asking (CJ-01).
        """
        if self.coordinator is not None and self.client.is_unavailable(self.key):
            self._forget_coordinator("coordinator unavailable", disconnected=True)
        return self.coordinator is None

    def looks_unknown(self) -> bool:
        """``coordinator_unknown`` without its side effect."""
        return self.coordinator is None or self.client.is_unavailable(self.key)

    def ensure_coordinator_ready(self, timer: Timer, *, no_wakeup: bool = False) -> Steps[bool]:
        """Look the coordinator up until it is known or the time is over (CJ-06). One pass at least.

        Raises:
            JavaError: the lookup failed for good (CJ-05, CJ-07).

        """
        if not self.coordinator_unknown():
            return True
        self.lock()
        try:
            return (yield from self._lookup_loop(timer, no_wakeup=no_wakeup))
        finally:
            self.unlock()

    def lock(self) -> None:
        """Hold the monitor over a wait: the heartbeat thread stands still."""
        if not self.ctx.lock_depth:
            self._locked_at_ms = self.ctx.now_ms
        self.ctx.lock_depth += 1

    def unlock(self) -> None:
        """Let go of it."""
        self.ctx.lock_depth -= 1
        thread = self.heartbeat_thread
        if not self.ctx.lock_depth and thread is not None:
            thread.unlocked(self._locked_at_ms)

    def _lookup_loop(self, timer: Timer, *, no_wakeup: bool) -> Steps[bool]:
        attempts = 0
        while True:
            if self._fatal_find_error is not None:
                error, self._fatal_find_error = self._fatal_find_error, None
                raise error
            future = self.lookup_coordinator()
            yield from self.client.poll_until(future, timer, disable_wakeup=no_wakeup)
            if not future.done:
                break
            fatal = None
            if future.error is not None:
                if future.retriable:
                    yield from timer.sleep(self.retry_backoff.backoff(attempts))
                    attempts += 1
                    yield from self.client.await_metadata_update(timer)
                else:
                    fatal = future.error
                    self.ctx.log("info", f"FindCoordinator request hit fatal exception {fatal}")
            elif self.coordinator is not None and self.client.is_unavailable(self.key):
                self.mark_coordinator_unknown("coordinator unavailable")
                yield from timer.sleep(self.retry_backoff.backoff(attempts))
                attempts += 1
            self._find_future = None
            if fatal is not None:
                raise fatal
            if not self.coordinator_unknown() or timer.expired:
                break
        return not self.coordinator_unknown()

    def lookup_coordinator(self) -> RequestFuture[None]:
        """Start a lookup, or share the one that is running (CJ-02)."""
        if self._find_future is None:
            if self.client.least_loaded_node() is None:
                error = JavaError("NoAvailableBrokersException", retriable=True)
                return RequestFuture.failure(error)
            future: RequestFuture[None] = RequestFuture()
            self._find_future = future
            request = FindCoordinatorRequest(key_type=0, coordinator_keys=(self.group_id,))  # CJ-03

            def failed(error: JavaError) -> None:
                if not error.retriable:
                    self._fatal_find_error = error  # CJ-07
                future.fail(error)

            self.client.send(
                (ANY_NODE, BOOTSTRAP), request, lambda answer: self._found(answer, future), failed
            )
        return self._find_future

    def toggle_lookup(self) -> None:
        """The heartbeat thread's way: look up on one turn, drop the shared future on the next."""
        if self._find_future is None:
            self.lookup_coordinator()
        else:
            self._find_future = None

    def _found(self, response: FindCoordinatorResponse, future: RequestFuture[None]) -> None:
        if len(response.coordinators) != 1:  # CJ-03
            detail = "Group coordinator lookup failed: Invalid response containing more than a single coordinator"
            future.fail(JavaError.illegal_state(detail))
            return
        found = response.coordinators[0]
        if found.error_code == ErrorCode.NONE:
            self.coordinator = found.node_id
            number = _INT_MAX - found.node_id
            self._coordinator_text = f"{found.host}:{found.port} (id: {number} rack: null)"
            self.ctx.log("info", f"Discovered group coordinator {self._coordinator_text}")
            if self.behaviour.lookup_is_contact:
                self.heartbeat.reset_session_timeout()  # CJ-04: and nothing else
            future.complete(None)
        elif found.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED:  # CJ-05
            future.fail(JavaError.group_authorization(self.group_id))
        else:
            future.fail(JavaError.of(found.error_code))

    def mark_coordinator_unknown(self, cause: str) -> None:
        """Forget the coordinator and have its connection closed (CJ-08)."""
        self._forget_coordinator(cause, disconnected=False)

    def coordinator_lost(self, error: JavaError) -> None:
        """Its connection is gone already (CJ-09)."""
        self._forget_coordinator(error.detail or "null", disconnected=True)

    def _forget_coordinator(self, cause: str, *, disconnected: bool) -> None:
        now_ms = self.ctx.now_ms
        if self.coordinator is None:
            outage_ms = now_ms - self._unknown_since_ms
            if outage_ms > self.config.max_poll_interval_ms:
                self.ctx.log(
                    "warn",
                    f"Consumer has been disconnected from the group coordinator for {outage_ms}ms",
                )
            return
        self.ctx.log(
            "info",
            f"Group coordinator {self._coordinator_text} is unavailable or invalid due to cause: "
            f"{cause}. isDisconnected: {str(disconnected).lower()}. Rediscovery will be attempted.",
        )
        old = self.key
        self.coordinator = None
        if not disconnected:
            self.client.disconnect_async(old)
        self._unknown_since_ms = now_ms
