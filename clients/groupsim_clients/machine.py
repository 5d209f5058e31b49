"""The contract between a client coordinator and the world that runs it.

A client is one sans-IO machine: it holds the whole of one member process (Kafka client and
application), is told what arrives and what time it is, and hands back effects. It never blocks,
asks no clock and draws no randomness of its own.

Anything that satisfies ``ClientMachine`` can take part in a scenario: register a factory under the
entry point group ``groupsim.clients``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol

from groupsim.protocol._base import draft_of
from groupsim.protocol.effects import Note, note
from groupsim.protocol.messages import HeartbeatRequest, Request, Response, message

__all__ = [
    "ANY_NODE",
    "AppRaised",
    "CallbackNote",
    "ClientEffect",
    "ClientEnvironment",
    "ClientFactory",
    "ClientLog",
    "ClientMachine",
    "ClientSpec",
    "CommitNote",
    "Disconnect",
    "Exited",
    "MemberState",
    "Order",
    "Ownership",
    "PollNote",
    "Send",
    "SteadyHeartbeats",
    "send",
]

ANY_NODE = -1
"""Node id of a ``Send`` that any live broker may serve (Java: the least loaded node)."""


@message
class Send:
    """Send ``request`` on the connection (``node_id``, ``channel``), opening it when necessary.

    One connection exists for each pair; Java keeps the coordinator's apart from the rest
    (rule CJ-04), hence ``channel``: "bootstrap" or "coordinator". Requests on one connection are
    delivered and answered in order. The answer comes back with ``correlation_id``.
    """

    correlation_id: int
    node_id: int
    channel: str
    api_version: int
    request: Request


_SendDraft = draft_of(Send)
_new_draft = object.__new__


def send(
    correlation_id: int, node_id: int, channel: str, api_version: int, request: Request
) -> Send:
    """``Send(...)`` at a quarter of its cost, for heartbeats."""
    made = _new_draft(_SendDraft)
    made.correlation_id = correlation_id
    made.node_id = node_id
    made.channel = channel
    made.api_version = api_version
    made.request = request
    made.__class__ = Send
    return made  # type: ignore[no-any-return]


@message
class Disconnect:
    """Close the connection; what is in flight on it is never answered."""

    node_id: int
    channel: str


@message
class Exited:
    """The process has ended by its own will (closed, or its application gave up)."""

    reason: str


@note
class MemberState(Note):
    """The client's own view changed: state, generation and member id after the change."""

    kind: ClassVar[str] = "client_state"
    state: str
    generation_id: int
    member_id: str
    reason: str


@note
class Ownership(Note):
    """Partitions changed hands as the application sees it. ``change`` is assigned, revoked or lost;
    ``partitions`` are (topic, partition) pairs; ``owned`` is what is held afterwards.
    """

    kind: ClassVar[str] = "ownership"
    change: str
    partitions: tuple[tuple[str, int], ...]
    owned: tuple[tuple[str, int], ...]
    generation_id: int


@note
class CallbackNote(Note):
    """A rebalance listener callback: ``phase`` started, finished or raised."""

    kind: ClassVar[str] = "callback"
    callback: str
    phase: str
    partitions: tuple[tuple[str, int], ...]


@note
class CommitNote(Note):
    """An offset commit came to its end: ``outcome`` is "ok" or the name of the failure.

    ``offsets`` are (topic, partition, offset); ``mode`` is auto, prepare (the automatic one before a
    rejoin), sync, async or close.
    """

    kind: ClassVar[str] = "commit"
    mode: str
    outcome: str
    offsets: tuple[tuple[str, int, int], ...]
    generation_id: int


@note
class PollNote(Note):
    """The application went into, or came out of, something long: ``event`` is processing_started,
    processing_finished, poll_interval_exceeded, stuck.
    """

    kind: ClassVar[str] = "application"
    event: str
    duration_ms: int


@note
class AppRaised(Note):
    """An exception came out of a client call; ``exception`` is the Java class's simple name."""

    kind: ClassVar[str] = "exception"
    call: str
    exception: str
    detail: str


@note
class ClientLog(Note):
    """A sentence that the real client logs for what just happened, in its own words."""

    kind: ClassVar[str] = "client_log"
    level: str
    sentence: str


ClientEffect = Send | Disconnect | Exited | Note


@message
class Order:
    """Something the scenario tells a running client to do.

    ``name`` is one of: close (arguments: timeout_ms), subscribe (topics, or pattern), unsubscribe,
    enforce_rebalance (reason), pause_work, resume_work, commit (mode), set_work (work), wakeup.
    """

    name: str
    arguments: Mapping[str, Any]


@message
class ClientSpec:
    """What a scenario says of one client.

    ``config`` has Kafka's configuration names (``session.timeout.ms``), ``work`` describes the
    application, ``options`` belong to the client kind. ``subscribe`` is a tuple of topics or one
    pattern.
    """

    name: str
    group_id: str
    subscribe: tuple[str, ...]
    subscribe_pattern: str | None = None
    config: Mapping[str, Any]
    work: Mapping[str, Any]
    options: Mapping[str, Any]


class ClientEnvironment(Protocol):
    """What the world lends a client besides messages and time. All of it is deterministic."""

    def draw(self, stream: str, bound: int) -> int:
        """The next integer in [0, bound) of the client's own named random stream."""
        ...

    def log_end_offset(self, topic: str, partition: int, now_ms: int) -> int:
        """How many records the partition holds at ``now_ms`` (fetches are not messages here).

        A world may also offer ``next_record_ms(topic, partition, offset, now_ms)``: when the record
        with that offset exists (None: never). Without it an application that spends time on
        records looks for them every ``fetch.max.wait.ms``.
        """
        ...


class ClientMachine(Protocol):
    """One member process. All times are integers in milliseconds of the process's own clock.

    Every input returns effects in the order in which they happen. After every input the world
    asks ``next_wake_ms`` and calls ``wake`` at that time, unless another input comes first.
    """

    def start(self, now_ms: int) -> list[ClientEffect]:
        """The process starts. Called once, first."""
        ...

    def respond(self, correlation_id: int, response: Response, now_ms: int) -> list[ClientEffect]:
        """The answer to the ``Send`` with ``correlation_id`` has arrived."""
        ...

    def disconnected(self, node_id: int, channel: str, now_ms: int) -> list[ClientEffect]:
        """A connection broke or could not be opened; everything in flight on it is lost."""
        ...

    def wake(self, now_ms: int) -> list[ClientEffect]:
        """The time ``next_wake_ms`` named is reached (or passed, after a pause)."""
        ...

    def next_wake_ms(self) -> int | None:
        """When the machine wants to be woken next; None: only by an input."""
        ...

    def order(self, order: Order, now_ms: int) -> list[ClientEffect]:
        """The scenario wants something. Unknown orders raise ``ValueError``."""
        ...

    def owned(self) -> tuple[tuple[str, int], ...]:
        """The (topic, partition) pairs the application believes it owns, sorted."""
        ...


class SteadyHeartbeats(Protocol):
    """What a machine may offer besides ``ClientMachine``: a short way for the steady heartbeats of a
    settled member, by far the most frequent event of any run.

    The world may ask here first, or leave it to ``wake``; what happens is the same.
    """

    beat_key: tuple[int, str]
    """Node id and channel of the connection that heartbeats go out on."""
    beat_version: int
    """Their API version."""
    beat_request: HeartbeatRequest
    """The one value that all heartbeats of a generation are."""
    next_beat_ms: int
    """After a heartbeat: what ``next_wake_ms`` would say."""

    def beat(self, now_ms: int) -> int:
        """Send a heartbeat if that is all there is to do: its correlation id. 0: nothing was done,
        and ``wake`` has to be called.
        """
        ...

    def beat_answered(self, correlation_id: int, response: Response, now_ms: int) -> bool:
        """Take in the answer to a heartbeat if nothing follows from it: no effects, and
        ``next_wake_ms`` stays as it is. False: nothing was done, and ``respond`` has to be called.
        """
        ...


ClientFactory = Callable[[ClientSpec, ClientEnvironment], ClientMachine]
"""What an entry point in the group ``groupsim.clients`` must be."""
