"""One TCP connection between a client and a broker, as far as a simulation needs it.

Theory of operation. Opening takes a round trip; what is sent before is kept and leaves when the
connection is open. Both directions keep their order. The broker serves one request at a time: as in Kafka the
channel is muted while a request is in hand, so a parked JoinGroup holds back whatever the client
sends behind it (also a LeaveGroup). Which end knows what is kept apart, because faults make the two differ:

- ``state`` is the client's view;
- ``accepted`` is the broker's: it serves what arrives, and sends answers while ``hung_up`` is not set.

A client that closes sends a FIN behind its last request. The broker still serves what came before, as
Kafka does once the channel is unmuted, but answers go nowhere. A reset (a fault) loses all of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, Protocol

from groupsim.protocol.messages import APIS, ApiKey, HeartbeatRequest, Request, Response
from groupsim.runtime.kernel import Handle
from groupsim.runtime.network import DropHow, Lane, Link, Network
from groupsim.trace.writer import ConnectionTrace

__all__ = ["ClientEnd", "Connection", "ConnectionState", "Server"]

Arrived = tuple[int, int, Request, int]
"""A request at the broker: correlation id, API version, request, id of its ``send`` event."""

Answered = tuple[int, Response, int]
"""A response at the client: correlation id, response, id of its ``send`` event."""


class ConnectionState(Enum):
    """The client's view of its connection."""

    OPENING = "opening"
    OPEN = "open"
    CLOSED = "closed"


_OPENING, _OPEN, _CLOSED = ConnectionState

_KEYS: Final[dict[type[Any], ApiKey]] = {
    kind: api.key for api in APIS.values() for kind in (api.request, api.response)
}


class ClientEnd(Protocol):
    """Who holds the client's end of a connection."""

    name: str
    client_id: str
    host: str

    def opened(self, connection: Connection) -> None:
        """The connection is open; call its ``flush`` as soon as the process runs."""

    def answered(self, connection: Connection, answer: Answered) -> None:
        """A response has arrived."""

    def lost(self, connection: Connection) -> None:
        """The connection broke, was refused, or could not be opened in time."""


class Server(Protocol):
    """Who holds the broker's end of a connection."""

    name: str
    node_id: int
    up: bool
    reachable: bool
    connections: dict[Connection, None]
    requests: int
    """How many requests it has served."""
    refreshes: Callable[[HeartbeatRequest, int], bool] | None
    """The short way of its coordinator (``GroupCoordinator.refreshes_session``), if there is one."""

    def serve(self, connection: Connection, arrived: Arrived) -> None:
        """A request is next; call ``connection.reply`` when it is done."""


class Connection:
    """A connection from ``client`` to ``server``. ``channel`` is the client's own word for it."""

    __slots__ = (
        "_kernel",
        "_network",
        "_on_request",
        "_on_response",
        "_timeout",
        "_unsent",
        "_world",
        "accepted",
        "busy",
        "channel",
        "client",
        "down",
        "hung_up",
        "name",
        "queue",
        "reason",
        "server",
        "state",
        "trace",
        "up",
    )

    def __init__(
        self, network: Network, name: str, client: ClientEnd, server: Server, channel: Any = None
    ) -> None:
        self._network = network
        self._world = world = network.world
        self._kernel = world.kernel
        self.name = name
        self.client = client
        self.server = server
        self.channel = channel
        up, down = network.links(client.name, server.node_id)
        self.up = Lane(world.kernel, up)
        self.down = Lane(world.kernel, down)
        self.trace: ConnectionTrace | None = None
        if world.trace is not None:
            self.trace = world.trace.connection(name, client.name, server.name)
        self.state = _OPENING
        self.reason = ""
        self.accepted = False
        self.hung_up = False
        self.busy = False
        self._unsent: list[tuple[int, int, Request, int]] = []
        self.queue: deque[Arrived] = deque()
        self._on_request = self.request_arrives  # bound once: they are pushed for every message
        self._on_response = self.response_arrives
        self._event("opening", "")
        self.up.send(self._syn_arrives, None)
        self._timeout: Handle | None = world.kernel.after(
            network.spec.connect_timeout_us, self._timed_out
        )

    # the client's end

    def request(self, correlation_id: int, api_version: int, request: Request) -> None:
        """Send a request, or keep it until the connection is open.

        On a connection that is gone it goes nowhere: a process that was paused may write before it
        reads that its connection was lost.
        """
        if self.state is not _OPEN:
            if self.state is _OPENING:
                self._unsent.append((correlation_id, api_version, request, self._world.cause))
            return
        now_us = self._kernel.now_us
        sent = 0
        if self.trace is not None:
            sent = self.trace.send(now_us, self._world.cause, correlation_id, request, api_version)
        up = self.up
        if up.link.clear or not self._dropped(up, type(request), sent):
            up.send(self._on_request, (correlation_id, api_version, request, sent))

    def flush(self) -> None:
        """Send what was kept while the connection was being opened."""
        unsent, self._unsent = self._unsent, []
        for correlation_id, api_version, request, self._world.cause in unsent:
            self.request(correlation_id, api_version, request)

    def close(self, reason: str) -> None:
        """Close from the client's side; answers still on their way are dropped on arrival."""
        if self._leave("closed", reason):
            self.up.send(self._fin_arrives, None)
            self.up.close()

    def vanish(self) -> None:
        """The client's host is gone without a word: the broker is not told."""
        self._leave("vanished", "host is down")
        self.up.close()

    def reset(self, reason: str) -> None:
        """Break the connection; both ends learn of it at once."""
        if self.accepted:
            self._forget(reason)
        if self._leave("lost", reason):
            self.client.lost(self)

    def _leave(self, event: str, reason: str) -> bool:
        if self.state is _CLOSED:
            return False
        self.state = _CLOSED
        self.reason = reason
        self._unsent.clear()
        self._stop_waiting()
        self._event(event, reason)
        return True

    def _timed_out(self) -> None:
        self._timeout = None
        if self._leave("timed_out", "no answer to the connection request"):
            self.up.send(self._fin_arrives, None)
            self.up.close()
            self.client.lost(self)

    def _stop_waiting(self) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None

    def _opened(self, _: None) -> None:
        if self.state is _OPENING:
            self.state = _OPEN
            self._stop_waiting()
            self._event("opened", "")
            self.client.opened(self)

    def _refused(self, reason: str) -> None:
        self.up.close()
        if self._leave("refused", reason):
            self.client.lost(self)

    def _rst_arrives(self, reason: str) -> None:
        self.up.close()
        if self._leave("lost", reason):
            self.client.lost(self)

    def response_arrives(self, answer: Answered) -> None:
        """A response is at the client."""
        if self.state is _OPEN:
            self.client.answered(self, answer)
        else:
            self.discard(answer)

    def discard(self, answer: Answered) -> None:
        """A response came too late for its client."""
        self._drop(answer[2], "connection closed by the client")

    # the broker's end

    def reply(self, correlation_id: int, api_version: int, response: Response) -> None:
        """Answer the request in hand and go on to the next one."""
        self.busy = False
        if self.accepted and not self.hung_up:
            now_us = self._kernel.now_us
            sent = 0
            if self.trace is not None:
                sent = self.trace.send(
                    now_us, self._world.cause, correlation_id, response, api_version
                )
            down = self.down
            if down.link.clear or not self._dropped(down, type(response), sent):
                down.send(self._on_response, (correlation_id, response, sent))
        if self.queue:
            self._kernel.push(self._kernel.now_us, self._serve_next, None)
        elif self.hung_up:
            self._forget("")

    def hang_up(self, reason: str) -> None:
        """Close from the broker's side, as its crash does; the client learns of it in time."""
        self._forget(reason)
        if self.server.reachable:
            self.down.send(self._rst_arrives, reason)
        self.down.close()

    def _syn_arrives(self, _: None) -> None:
        server = self.server
        if server.up:
            self.accepted = True
            server.connections[self] = None
            self.down.send(self._opened, None)
        elif server.reachable:
            self.down.send(self._refused, "nobody listens")
            self.down.close()

    def request_arrives(self, arrived: Arrived) -> None:
        """A request is at the broker: served at once, or after those before it."""
        if not self.accepted:
            self._drop(arrived[3], "connection closed by the broker")
        elif self.busy or self.queue:
            self.queue.append(arrived)
        else:
            self.server.serve(self, arrived)

    def _serve_next(self, _: None) -> None:
        if self.accepted and self.queue and not self.busy:
            self.server.serve(self, self.queue.popleft())

    def _fin_arrives(self, _: None) -> None:
        if self.accepted:
            self.hung_up = True
            if not self.busy and not self.queue:
                self._forget("")

    def _forget(self, reason: str) -> None:
        self.accepted = False
        self.server.connections.pop(self, None)
        self.down.close()
        for arrived in self.queue:
            self._drop(arrived[3], reason)
        self.queue.clear()

    # faults and the trace

    def _dropped(self, lane: Lane, kind: type[Any], sent: int) -> bool:
        """Whether a fault swallows the message that is about to leave on ``lane``."""
        if lane.black:
            self._drop(sent, DropHow.BLACK_HOLE)
            return True
        link: Link = lane.link
        if not link.drops:
            return False
        rule = self._network.take_drop(link, _KEYS[kind])
        if rule is None:
            return False
        self._drop(sent, rule.how)
        if rule.how is DropHow.BLACK_HOLE:
            lane.swallow()
        else:
            self._world.kernel.push(self._world.kernel.now_us, self._broken, rule.cause)
        return True

    def _broken(self, cause: int) -> None:
        self._world.cause = cause
        self.reset("reset by a fault")

    def _drop(self, sent: int, reason: str) -> None:
        trace = self._world.trace
        if trace is not None:
            trace.event(self._world.kernel.now_us, sent, "drop", of=sent, reason=str(reason))

    def _event(self, event: str, reason: str) -> None:
        self._world.event(
            "connection",
            who=self.client.name,
            connection=self.name,
            peer=self.server.name,
            event=event,
            reason=reason,
        )
