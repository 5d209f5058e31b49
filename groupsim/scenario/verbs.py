"""What can happen at a time of the timeline, each verb with its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from groupsim.scenario._base import (
    NAMES_SCHEMA,
    ConfigMap,
    Duration,
    GroupRef,
    Names,
    NodeId,
    NodeIds,
    NotEmpty,
    Part,
    TopicName,
    Wants,
    fault,
    one_of,
)
from groupsim.scenario.durations import duration_text
from groupsim.scenario.members import Subscription, Work
from groupsim.scenario.world import Latency, Spread

__all__ = [
    "BrokerTargets",
    "Crash",
    "Cut",
    "Disconnect",
    "DropNext",
    "EnforceRebalance",
    "Entry",
    "FailAppends",
    "LinkChange",
    "LogTarget",
    "MoveCoordinator",
    "Pause",
    "Restart",
    "Resubscribe",
    "SetWork",
    "Stop",
    "Targets",
]


class Targets(Part):
    """The members a verb is for: names, families or patterns, or who leads a group at that moment.

    Written short, names are ``members``.
    """

    members: Names | None = None
    """Who: a name (``c-2``), a family (``c``: all its copies), a pattern (``"c-*"``), or a list; this
    or ``leader_of``.
    """
    leader_of: GroupRef | None = None
    """Who leads this group at that moment, instead of ``members``; nobody, if nobody leads it."""
    one_every: Duration | None = None
    """One after the other, so far apart, a time such as 20s; all at once where nothing is said."""

    SHORT: ClassVar[Mapping[str, Any]] = NAMES_SCHEMA
    WANTED: ClassVar[str] = "members (a name, a family, a pattern, or a list of these)"

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take names for the members."""
        return {"members": value}

    @model_validator(mode="after")
    def _who(self) -> Self:
        one_of(self, ("members", "leader_of"))
        return self


class Stop(Targets):
    """Close gracefully. A process that is not done after ``kill_after`` is killed."""

    timeout: Duration | None = None
    """What the application gives ``close``, a time such as 5s; the member's ``close_timeout`` where
    nothing is said.
    """
    kill_after: Duration | None = None
    """When it is killed if it still runs, a time such as 10s from the stop; a second after
    ``timeout``, or after 31s, where nothing is said.
    """


class Crash(Targets):
    """End at once. A process that dies resets its connections; a machine that dies is only silent."""

    how: Literal["process", "machine"] = "process"
    """``process``: the system resets its connections; ``machine``: they are only silent.
    ``process`` where nothing is said.
    """


class Restart(Targets):
    """Stop, stay down, start again: a deploy. What is said here holds from the new start on."""

    down: Duration = 0
    """How long each stays down between its end and its new start, a time such as 5s; 0s where
    nothing is said.
    """
    how: Literal["graceful", "crash"] = "graceful"
    """``graceful`` closes the consumer in order, ``crash`` kills the process; ``graceful`` where
    nothing is said.
    """
    client: str | None = None
    """The client kind from the new start on, such as ``java``; as before, if not said."""
    subscribe: Subscription | None = None
    """What is read from the new start on: a topic, a list, or a pattern; as before, if not said."""
    config: ConfigMap = Field(default_factory=dict)
    """Kafka configuration from the new start on, merged over what held before. Values of ``*.ms`` are
    whole milliseconds, or a time with its unit: ``session.timeout.ms: 45s``.
    """
    work: Work | None = None
    """What the application does from the new start on, key by key; as before, if not said."""


class Pause(Targets):
    """Freeze the whole process, as a garbage collection or a hypervisor does."""

    for_: Annotated[Duration | None, Field(validation_alias="for", serialization_alias="for")] = (
        None
    )
    """How long, a time such as 50s; until ``resume`` where nothing is said."""


class Resubscribe(Targets):
    """Change the subscription of running members."""

    topics: Annotated[Names, Wants("a topic, or a list of topics")] | None = None
    """The new topics, by name, such as ``orders`` or ``[orders, payments]``; this or ``pattern``."""
    pattern: str | None = None
    """A regular expression of Java's that a topic's whole name must match, such as ``"ord.*"``."""

    @model_validator(mode="after")
    def _what(self) -> Self:
        one_of(self, ("topics", "pattern"))
        return self


class EnforceRebalance(Targets):
    """The application calls ``enforceRebalance``."""

    reason: str | None = None
    """The reason given to the client, which the broker logs; the client's own where nothing is said."""


class SetWork(Targets):
    """From now on, later starts included, the application works otherwise in what is said here."""

    work: Work
    """What changes, such as ``{takes: 2s}``; the rest stays as it is. Required."""


class LinkChange(Part):
    """From now on messages travel otherwise (all members and brokers, where not said)."""

    members: Names | None = None
    """Members at one end: names, families or patterns, such as ``c-3``; all, if not said."""
    brokers: NodeIds | None = None
    """Brokers at the other end, by number, such as 2 or ``[1, 2]``; all, if not said."""
    latency: Latency
    """How long a message travels from now on, one way, such as 20ms; a direction that is not said
    stays as it is. Required.
    """


class Cut(Part):
    """Nothing gets through, nobody is told. ``for`` heals it again."""

    members: Names | None = None
    """Members at one end: names, families or patterns, such as ``c-3``; all, if not said."""
    brokers: NodeIds | None = None
    """Brokers at the other end, by number, such as 2 or ``[1, 2]``; all, if not said."""
    direction: Literal["both", "to_broker", "to_client"] = "both"
    """Which way: ``both``, ``to_broker`` or ``to_client``; ``both`` where nothing is said."""
    for_: Annotated[Duration | None, Field(validation_alias="for", serialization_alias="for")] = (
        None
    )
    """``cut`` only: how long until it is healed, a time such as 10s; until ``heal``, if not said."""

    SHORT: ClassVar[Mapping[str, Any]] = NAMES_SCHEMA
    WANTED: ClassVar[str] = "members (a name, a family, a pattern, or a list of these)"

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take names for the members."""
        return {"members": value}


class Disconnect(Targets):
    """Reset the connections to one broker, or to all."""

    broker: NodeId | None = None
    """The broker's number, such as 1; all brokers, if not said."""


class DropNext(Part):
    """Lose the next message, or ``count`` of them, of one kind (``api`` such as JoinGroup)."""

    members: Names | None = None
    """Members at one end: names, families or patterns, such as ``c-3``; all, if not said."""
    brokers: NodeIds | None = None
    """Brokers at the other end, by number, such as 2 or ``[1, 2]``; all, if not said."""
    direction: Literal["to_broker", "to_client"]
    """Which way the messages go: ``to_broker`` (requests) or ``to_client`` (responses). Required."""
    api: str | None = None
    """Only messages of this API of Kafka's, such as JoinGroup or Heartbeat; any, if not said."""
    count: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """How many messages are lost; 1 where nothing is said."""
    how: Literal["reset", "black-hole"] = "reset"
    """``reset``: the connection breaks, as TCP does in the end; ``black-hole``: the message and all
    that follow on its connection are lost silently. ``reset`` where nothing is said.
    """


class BrokerTargets(Part):
    """The brokers a verb is for: by number, or who coordinates a group at that moment."""

    brokers: NodeIds | None = None
    """Brokers by number, such as 1 or ``[1, 2]``; this or ``coordinator_of``."""
    coordinator_of: GroupRef | None = None
    """Who coordinates this group at that moment, instead of ``brokers``."""
    one_every: Duration | None = None
    """One after the other, so far apart, a time such as 20s; all at once where nothing is said."""

    SHORT: ClassVar[Mapping[str, Any]] = {
        "anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]
    }
    WANTED: ClassVar[str] = "a broker's number, a list of them"

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take numbers for the brokers."""
        return {"brokers": value}

    @model_validator(mode="after")
    def _which(self) -> Self:
        one_of(self, ("brokers", "coordinator_of"))
        return self


class MoveCoordinator(Part):
    """Give the leadership of a group's partition of ``__consumer_offsets`` to another broker."""

    group: GroupRef | None = None
    """The group whose coordinator moves, by name; this or ``partition``."""
    partition: Annotated[int, Field(ge=0), Wants("a partition's number, from 0")] | None = None
    """The partition of ``__consumer_offsets``, by number from 0, instead of ``group``."""
    to: NodeId
    """The number of the broker that leads it from now on, such as 2. Required."""

    @model_validator(mode="after")
    def _which(self) -> Self:
        one_of(self, ("group", "partition"))
        return self


class LogTarget(Part):
    """A partition of ``__consumer_offsets``, by its number or a group's name; all, if not said."""

    group: GroupRef | None = None
    """The partition that holds this group; all partitions, if no ``partition`` is said either."""
    partition: Annotated[int, Field(ge=0), Wants("a partition's number, from 0")] | None = None
    """The partition of ``__consumer_offsets``, by number from 0, instead of ``group``."""

    SHORT: ClassVar[Mapping[str, Any]] = {"type": "string"}
    WANTED: ClassVar[str] = "a group's name"

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take a name for the group."""
        return {"group": value}

    @model_validator(mode="after")
    def _which(self) -> Self:
        one_of(self, ("group", "partition"), least=0)
        return self


class FailAppends(LogTarget):
    """Appends of a group's coordinator fail with one of Kafka's errors: ``count`` of them, or all
    ``for`` some time; the next one, where neither is said.
    """

    error: str = "NOT_ENOUGH_REPLICAS"
    """The name of Kafka's error; NOT_ENOUGH_REPLICAS where nothing is said."""
    count: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """How many appends fail; 1, or with ``for`` all of them, where nothing is said."""
    for_: Annotated[Duration | None, Field(validation_alias="for", serialization_alias="for")] = (
        None
    )
    """How long appends fail, a time such as 10s; until ``count`` have, if not said."""


def _one_verb(schema: dict[str, Any]) -> None:
    """Say in the JSON Schema what ``_complete`` checks."""
    verbs = [name for name in schema["properties"] if name not in Entry.WHEN]
    schema["oneOf"] = [{"required": [verb]} for verb in verbs]


class Entry(Part):
    """One line of the timeline: when, and one verb."""

    at: Duration | None = None
    """When it happens, a time from the start of the run such as 60s; with ``every``, the first time.
    An entry has this or ``every``, and one verb.
    """
    every: Duration | None = None
    """It happens again and again, so far apart, such as 30s; first at ``at``, or after one interval."""
    until: Duration | None = None
    """With ``every``: no more after this time, such as 4m; the end, if not said."""

    start: Targets | None = None
    """Start members that are down, such as ``c-1``."""
    stop: Stop | None = None
    """Close members in order, such as ``c-1`` or ``{members: c-1, kill_after: 10s}``."""
    crash: Crash | None = None
    """End members at once, such as ``c-1`` or ``{members: c-1, how: machine}``."""
    restart: Restart | None = None
    """Stop members and start them again, changed or not: a deploy, such as
    ``{members: "c-*", one_every: 20s, down: 5s}``.
    """
    pause: Pause | None = None
    """Freeze members' processes, such as ``{members: c-3, for: 50s}``."""
    resume: Targets | None = None
    """Let paused members run again, such as ``c-3``."""
    subscribe: Resubscribe | None = None
    """Running members subscribe to something else, such as ``{members: c-1, topics: [orders]}``."""
    unsubscribe: Targets | None = None
    """Running members call ``unsubscribe``: they read nothing any more, such as ``c-1``."""
    enforce_rebalance: EnforceRebalance | None = None
    """Members call ``enforceRebalance``, such as ``c-1`` or ``{members: c-1, reason: new lag}``."""
    set_work: SetWork | None = None
    """Members' applications work otherwise from now on, such as
    ``{members: c-2, work: {takes: 2s}}``.
    """
    commit: Targets | None = None
    """Members commit their offsets now, such as ``c-1``."""
    add_partitions: Annotated[
        dict[TopicName, Annotated[int, Field(ge=1, le=100_000)]] | None,
        NotEmpty,
        Wants("topics and their new totals, such as {orders: 24}"),
    ] = None
    """Topics grow: each with its new total of partitions, such as ``{orders: 24}``."""
    network: LinkChange | None = None
    """Messages take longer or shorter from now on, such as ``{members: c-3, latency: 200ms}``."""
    cut: Cut | None = None
    """Nothing gets through, and nobody is told, such as ``{members: c-1, for: 10s}``."""
    heal: Cut | None = None
    """Undo cuts; what was held back arrives now, such as ``c-1``. ``for`` has no effect here."""
    disconnect: Disconnect | None = None
    """Reset members' connections, such as ``c-1`` or ``{members: c-1, broker: 1}``."""
    drop_next: DropNext | None = None
    """Lose the next messages of a kind, such as
    ``{members: c-1, direction: to_client, api: SyncGroup}``.
    """
    crash_broker: BrokerTargets | None = None
    """Kill brokers, such as ``1`` or ``{coordinator_of: checkout}``. New leaders are elected after
    ``failover_time``, if there is another broker.
    """
    stop_broker: BrokerTargets | None = None
    """Shut brokers down in order, such as ``1`` or ``{coordinator_of: checkout}``: their partitions
    move first.
    """
    start_broker: BrokerTargets | None = None
    """Start brokers that are down, such as ``1``."""
    move_coordinator: MoveCoordinator | None = None
    """Another broker becomes a group's coordinator, without a crash, such as
    ``{group: checkout, to: 2}``.
    """
    fail_appends: FailAppends | None = None
    """The log refuses a coordinator's records, such as
    ``{group: checkout, error: NOT_ENOUGH_REPLICAS, count: 2}``.
    """
    stall_appends: LogTarget | None = None
    """A coordinator's records are neither committed nor refused, until ``resume_appends``, such as
    ``checkout``.
    """
    resume_appends: LogTarget | None = None
    """End a ``stall_appends``, such as ``checkout``: records are committed again."""
    replication_delay: Spread | None = None
    """From now on it takes so long from a coordinator's append to its commit: a time such as 50ms, or
    a drawn one.
    """

    model_config = ConfigDict(json_schema_extra=_one_verb)

    WHEN: ClassVar[tuple[str, ...]] = ("at", "every", "until")

    @classmethod
    def verbs(cls) -> tuple[str, ...]:
        """Return the names of all verbs."""
        return tuple(name for name in cls.model_fields if name not in cls.WHEN)

    @property
    def verb(self) -> str:
        """The one verb of this entry."""
        return next(name for name in self.verbs() if getattr(self, name) is not None)

    @property
    def action(self) -> Any:
        """The verb's arguments."""
        return getattr(self, self.verb)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        one_of(self, self.verbs())
        if self.at is None and self.every is None:
            raise fault("when does it happen?", allowed="at, or every (with until)")
        if self.until is not None and self.every is None:
            raise fault("until goes with every", allowed="every and until, or at alone")
        if self.every is not None and self.add_partitions is not None:
            raise fault("partitions are added once", allowed="at, without every")
        if self.every is not None and self.every == 0:
            raise fault("every is 0", allowed="a time above 0")
        first = self.at if self.at is not None else self.every
        if self.until is not None and first is not None and self.until < first:
            allowed = f"{duration_text(first)} or later"
            raise fault(
                "until comes before the first time",
                found=duration_text(self.until),
                allowed=allowed,
            )
        return self
