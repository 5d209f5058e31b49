"""A broker: it serves requests with its GroupCoordinator and carries out what that asks for.

The coordinator counts milliseconds; its next deadline is one action of the kernel, armed lazily:
a deadline that moved later (a heartbeat renewed a session) is found out when the earlier action fires.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from groupsim.coordinator.effects import (
    Append,
    Effect,
    Reply,
    TimerArmed,
    TimerCancelled,
    TimerFired,
)
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    MetadataRequest,
    Request,
    Response,
)
from groupsim.runtime.connection import Arrived, ClientEnd, Connection
from groupsim.runtime.world import World

__all__ = ["Broker", "Cluster", "Coordinator"]

_NEVER = 1 << 62


class Coordinator(Protocol):
    """What a broker needs of ``groupsim.coordinator.GroupCoordinator``."""

    def handle(
        self,
        token: int,
        request: Any,
        *,
        api_version: int,
        client_id: str,
        client_host: str,
        now_ms: int,
    ) -> list[Effect]:
        """Handle a request; its ``Reply`` names the token, now or in a later answer."""
        ...

    def append_completed(self, append_id: int, error: ErrorCode, now_ms: int) -> list[Effect]:
        """An ``Append`` is committed (NONE) or has failed."""
        ...

    def advance(self, now_ms: int) -> list[Effect]:
        """Fire the timers that are due."""
        ...

    def next_deadline_ms(self) -> int | None:
        """When to call ``advance`` next."""
        ...


class Cluster(Protocol):
    """What a broker needs of the cluster around it."""

    def answer(self, request: Request, api_version: int) -> Response:
        """Answer a FindCoordinator or Metadata request."""
        ...

    def append(self, broker: Broker, append: Append) -> ErrorCode:
        """Append to the log; an error other than NONE means that the log refused."""
        ...


class Broker:
    """One broker process. ``coordinator`` is None while it is down.

    ``asking`` is the client whose request is in hand: member ids are drawn from its stream.
    """

    __slots__ = (
        "_armed_us",
        "_cluster",
        "_kernel",
        "_on_deadline",
        "_timers",
        "_trace",
        "_waiting",
        "asking",
        "connections",
        "coordinator",
        "host",
        "incarnation",
        "name",
        "node_id",
        "reachable",
        "refreshes",
        "requests",
        "up",
        "world",
    )

    def __init__(self, world: World, node_id: int, cluster: Cluster) -> None:
        self.world = world
        self._kernel = world.kernel
        self._trace = world.trace
        self.node_id = node_id
        self.name = f"b-{node_id}"
        self.host = self.name
        self.up = False
        self.reachable = True
        self.coordinator: Coordinator | None = None
        self.connections: dict[Connection, None] = {}
        self.requests = 0
        self.incarnation = 0
        self.asking: ClientEnd | None = None
        self._cluster = cluster
        self._waiting: dict[int, tuple[Connection, int, int]] = {}
        self._armed_us = _NEVER
        self.refreshes: Callable[[HeartbeatRequest, int], bool] | None = None
        self._timers: dict[tuple[str, str], int] = {}
        self._on_deadline = self._deadline

    @property
    def parked(self) -> int:
        """How many requests wait for their answer."""
        return len(self._waiting)

    def start(self, coordinator: Coordinator) -> None:
        """The process runs from now on, with a coordinator that knows nothing yet."""
        self.up = self.reachable = True
        self.incarnation += 1
        self.coordinator = coordinator
        # a coordinator may offer a short way for steady heartbeats; ours does
        self.refreshes = getattr(coordinator, "refreshes_session", None)

    def stop(self, reason: str) -> None:
        """The process is gone: its connections break, its memory is lost."""
        self.up = False
        self.coordinator = None
        self._waiting.clear()
        self._timers.clear()
        self._armed_us = _NEVER
        for connection in tuple(self.connections):
            connection.hang_up(reason)

    def serve(self, connection: Connection, arrived: Arrived) -> None:
        """Handle the next request of a connection."""
        correlation_id, api_version, request, sent = arrived
        now_us = self._kernel.now_us
        if self._trace is not None:
            self.world.cause = self._trace.deliver(now_us, sent, sent)
        self.requests = token = self.requests + 1
        kind = type(request)
        if kind is FindCoordinatorRequest or kind is MetadataRequest:
            answer = self._cluster.answer(request, api_version)
            connection.reply(correlation_id, api_version, answer)
            return
        coordinator = self.coordinator
        assert coordinator is not None, f"{self.name} serves a request while it is down"
        client = connection.client
        self.asking = client
        effects = coordinator.handle(
            token,
            request,
            api_version=api_version,
            client_id=client.client_id,
            client_host=client.host,
            now_ms=now_us // 1000,
        )
        connection.busy = True
        self._waiting[token] = (connection, correlation_id, api_version)
        self._carry_out(effects)

    def call(self, work: Callable[[Any, int], list[Effect]]) -> None:
        """Let ``work(coordinator, now_ms)`` run on a live coordinator and carry out its effects."""
        if self.coordinator is not None:
            self._carry_out(work(self.coordinator, self.world.kernel.now_us // 1000))

    def append_done(self, append_id: int, error: ErrorCode) -> None:
        """The log says what became of an append."""
        coordinator = self.coordinator
        if coordinator is not None:
            self.world.cause = self.tell_append_done(append_id, error)
            now_ms = self.world.kernel.now_us // 1000
            self._carry_out(coordinator.append_completed(append_id, error, now_ms))

    def tell_append_done(self, append_id: int, error: ErrorCode) -> int:
        """Write to the trace what became of an append; return the event's id."""
        return self.world.event(
            "append_done", who=self.name, append_id=append_id, error_code=int(error)
        )

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        refused: list[tuple[int, ErrorCode, int]] | None = None
        for effect in effects:
            kind = type(effect)
            if kind is Reply:
                connection, correlation_id, api_version = self._waiting.pop(effect.token)  # type: ignore[union-attr]
                connection.reply(correlation_id, api_version, effect.response)  # type: ignore[union-attr]
            elif kind is Append:
                error = self._cluster.append(self, effect)  # type: ignore[arg-type]
                if error:
                    refused = [*(refused or []), (effect.append_id, error, self.world.cause)]  # type: ignore[union-attr]
            elif self.world.trace is not None:
                self._note(effect)
        if refused is not None:
            for append_id, error, self.world.cause in refused:
                self.append_done(append_id, error)
        self._rearm()

    def _note(self, effect: Any) -> None:
        world = self.world
        kind = type(effect)
        if kind is TimerFired:
            # a timer's firing is caused by its arming, and causes what follows in this answer
            world.cause = self._timers.pop((effect.timer, effect.key), 0)
            world.cause = world.note(self.name, effect)
            return
        event = world.note(self.name, effect)
        if kind is TimerArmed:
            self._timers[effect.timer, effect.key] = event
        elif kind is TimerCancelled:
            self._timers.pop((effect.timer, effect.key), None)

    def _rearm(self) -> None:
        coordinator = self.coordinator
        if coordinator is None:
            return
        deadline_ms = coordinator.next_deadline_ms()
        if deadline_ms is not None and deadline_ms * 1000 < self._armed_us:
            kernel = self.world.kernel
            self._armed_us = armed_us = max(deadline_ms * 1000, kernel.now_us)
            kernel.push(armed_us, self._on_deadline, armed_us)

    def _deadline(self, armed_us: int) -> None:
        coordinator = self.coordinator
        if armed_us != self._armed_us or coordinator is None:
            return  # an earlier deadline took its place, or the process has been down meanwhile
        self._armed_us = _NEVER
        self.world.cause = 0
        self._carry_out(coordinator.advance(armed_us // 1000))
