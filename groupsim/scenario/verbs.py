"""What can happen at a time of the timeline, each verb with its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from groupsim.scenario._base import (
    NAMES_SCHEMA,
    ConfigMap,
    Duration,
    Names,
    NodeIds,
    Part,
    TopicName,
    fault,
    one_of,
)
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
    leader_of: str | None = None
    one_every: Duration | None = None
    """One after the other, so far apart, in the order of their declaration."""

    SHORT: ClassVar[Mapping[str, Any]] = NAMES_SCHEMA

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
    """What the application gives ``close``."""
    kill_after: Duration | None = None


class Crash(Targets):
    """End at once. A process that dies resets its connections; a machine that dies is only silent."""

    how: Literal["process", "machine"] = "process"


class Restart(Targets):
    """Stop, stay down, start again: a deploy. What is said here holds from the new start on."""

    down: Duration = 0
    how: Literal["graceful", "crash"] = "graceful"
    client: str | None = None
    subscribe: Subscription | None = None
    config: ConfigMap = Field(default_factory=dict)
    work: Work | None = None


class Pause(Targets):
    """Freeze the whole process, as a garbage collection or a hypervisor does."""

    for_: Annotated[Duration | None, Field(validation_alias="for", serialization_alias="for")] = (
        None
    )


class Resubscribe(Targets):
    """Change the subscription of running members."""

    topics: Names | None = None
    pattern: str | None = None

    @model_validator(mode="after")
    def _what(self) -> Self:
        one_of(self, ("topics", "pattern"))
        return self


class EnforceRebalance(Targets):
    """The application calls ``enforceRebalance``."""

    reason: str | None = None


class SetWork(Targets):
    """From now on, later starts included, the application works otherwise in what is said here."""

    work: Work


class LinkChange(Part):
    """From now on messages travel otherwise (all members and brokers, where not said)."""

    members: Names | None = None
    brokers: NodeIds | None = None
    latency: Latency


class Cut(Part):
    """Nothing gets through, nobody is told. ``for`` heals it again."""

    members: Names | None = None
    brokers: NodeIds | None = None
    direction: Literal["both", "to_broker", "to_client"] = "both"
    for_: Annotated[Duration | None, Field(validation_alias="for", serialization_alias="for")] = (
        None
    )

    SHORT: ClassVar[Mapping[str, Any]] = NAMES_SCHEMA

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take names for the members."""
        return {"members": value}


class Disconnect(Targets):
    """Reset the connections to one broker, or to all."""

    broker: Annotated[int, Field(ge=1)] | None = None


class DropNext(Part):
    """Lose the next message, or ``count`` of them, of one kind (``api`` such as JoinGroup)."""

    members: Names | None = None
    brokers: NodeIds | None = None
    direction: Literal["to_broker", "to_client"]
    api: str | None = None
    count: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    how: Literal["reset", "black-hole"] = "reset"
    """Reset the connection (what TCP does in the end), or lose it silently."""


class BrokerTargets(Part):
    """The brokers a verb is for: by number, or who coordinates a group at that moment."""

    brokers: NodeIds | None = None
    coordinator_of: str | None = None
    one_every: Duration | None = None

    SHORT: ClassVar[Mapping[str, Any]] = {
        "anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]
    }

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

    group: str | None = None
    partition: Annotated[int, Field(ge=0)] | None = None
    to: Annotated[int, Field(ge=1)]

    @model_validator(mode="after")
    def _which(self) -> Self:
        one_of(self, ("group", "partition"))
        return self


class LogTarget(Part):
    """A partition of ``__consumer_offsets``, by its number or a group's name; all, if not said."""

    group: str | None = None
    partition: Annotated[int, Field(ge=0)] | None = None

    SHORT: ClassVar[Mapping[str, Any]] = {"type": "string"}

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
    count: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    for_: Annotated[Duration | None, Field(validation_alias="for", serialization_alias="for")] = (
        None
    )


def _one_verb(schema: dict[str, Any]) -> None:
    """Say in the JSON Schema what ``_complete`` checks."""
    verbs = [name for name in schema["properties"] if name not in Entry.WHEN]
    schema["oneOf"] = [{"required": [verb]} for verb in verbs]


class Entry(Part):
    """One line of the timeline: when, and one verb."""

    at: Duration | None = None
    """When; with ``every``, the first time."""
    every: Duration | None = None
    """Again and again, until ``until`` or the end."""
    until: Duration | None = None

    start: Targets | None = None
    stop: Stop | None = None
    crash: Crash | None = None
    restart: Restart | None = None
    pause: Pause | None = None
    resume: Targets | None = None
    subscribe: Resubscribe | None = None
    unsubscribe: Targets | None = None
    enforce_rebalance: EnforceRebalance | None = None
    set_work: SetWork | None = None
    commit: Targets | None = None
    add_partitions: dict[TopicName, Annotated[int, Field(ge=1, le=100_000)]] | None = None
    """Topic: its new total."""
    network: LinkChange | None = None
    cut: Cut | None = None
    heal: Cut | None = None
    disconnect: Disconnect | None = None
    drop_next: DropNext | None = None
    crash_broker: BrokerTargets | None = None
    stop_broker: BrokerTargets | None = None
    start_broker: BrokerTargets | None = None
    move_coordinator: MoveCoordinator | None = None
    fail_appends: FailAppends | None = None
    stall_appends: LogTarget | None = None
    """Appends are neither committed nor refused, until ``resume_appends``."""
    resume_appends: LogTarget | None = None
    replication_delay: Spread | None = None
    """From now on it takes so long from an append to its commit."""

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
            raise fault("until goes with every")
        if self.every is not None and self.add_partitions is not None:
            raise fault("partitions are added once", allowed="at, without every")
        if self.every is not None and self.every == 0:
            raise fault("every is 0", allowed="a time above 0")
        return self
