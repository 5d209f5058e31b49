"""Groups and their members: who they are, when they start, what their applications do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from groupsim.scenario._base import (
    DURATION_SCHEMA,
    NAMES_SCHEMA,
    ConfigMap,
    Duration,
    MemberName,
    NotEmpty,
    OneOrMore,
    Part,
    TopicName,
    one_of,
)
from groupsim.scenario.world import Spread

__all__ = ["Group", "Member", "Poison", "Raise", "Start", "Subscription", "Work"]


class Subscription(Part):
    """What a member reads: topics, or a pattern of Java's that whole names must match.

    Written short, a name or a list of names are topics.
    """

    topics: Annotated[tuple[TopicName, ...] | None, OneOrMore, NotEmpty] = None
    pattern: str | None = None

    SHORT: ClassVar[Mapping[str, Any]] = NAMES_SCHEMA

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take names for topics."""
        return {"topics": value}

    @model_validator(mode="after")
    def _one(self) -> Self:
        one_of(self, ("topics", "pattern"))
        return self


class Start(Part):
    """When members start: the first ``at``, each next one ``every`` later.

    Written short, a time is ``at``; ``never`` leaves it to the timeline.
    """

    at: Duration | None = 0
    every: Duration = 0

    SHORT: ClassVar[Mapping[str, Any]] = {"anyOf": [DURATION_SCHEMA, {"const": "never"}]}

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take a time for ``at`` and ``never`` for no time."""
        return {"at": None if value == "never" else value}


class Poison(Part):
    """A record that takes (nearly) for ever, or a partition whose records all do."""

    topic: TopicName
    partition: Annotated[int, Field(ge=0)]
    offset: Annotated[int, Field(ge=0)] | None = None
    """None: every record of the partition."""
    takes: Spread


class Raise(Part):
    """An exception, by the simple name of its Java class: the ``nth`` time, or each time."""

    exception: str
    nth: Annotated[int, Field(ge=1)] | None = None

    SHORT: ClassVar[Mapping[str, Any]] = {"type": "string"}

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take a name for the exception, each time."""
        return {"exception": value}


class Work(Part):
    """What the application does. What is not said keeps the client kind's default."""

    poll_timeout: Duration | None = None
    """The argument of ``poll``."""
    poll_every: Spread | None = None
    """The pause after a poll that returned nothing."""
    takes: Spread | None = None
    """Processing time for what one poll returned."""
    max_records: Annotated[int, Field(ge=1)] | None = None
    """At most so many records for each poll; ``max.poll.records`` where nothing is said."""
    poison: Annotated[tuple[Poison, ...] | None, OneOrMore] = None
    on_assigned: Spread | None = None
    on_revoked: Spread | None = None
    on_lost: Spread | None = None
    """Time spent inside the rebalance listener's callbacks."""
    raises: dict[Literal["on_assigned", "on_revoked", "on_lost", "processing"], Raise] | None = None
    """Exceptions that come out of the application's code, by where."""
    commit: Literal["auto", "sync", "async", "none"] | None = None
    close_timeout: Duration | None = None
    on_error: Literal["continue", "close", "crash"] | None = None
    """What the application does with an exception out of ``poll``; ``close``, if not said."""
    error_pause: Duration | None = None
    """How long it waits after an error before it continues."""


class Member(Part):
    """A member, or ``count`` alike: with a count they are called ``name-1``, ``name-2``, and so on."""

    name: MemberName
    count: Annotated[int, Field(ge=1, le=100_000)] | None = None
    client: str | None = None
    """The client kind: an entry point of ``groupsim.clients``. ``java`` where nothing is said."""
    subscribe: Subscription | None = None
    config: ConfigMap = Field(default_factory=dict)
    """The client's configuration. ``{n}`` in a text is the copy's number, ``{name}`` its name."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Switches of the client kind that are no Kafka configuration."""
    start: Start | None = None
    work: Work | None = None
    static: bool | None = None
    """Static membership: ``group.instance.id`` is the member's name."""
    host: str | None = None
    """The address the broker sees; ``{n}`` as in config."""
    rack: Annotated[tuple[str, ...] | None, OneOrMore] = None
    """``client.rack``; of several, one each in turn."""

    SHORT: ClassVar[Mapping[str, Any]] = {"type": "string"}

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take a text for the name."""
        return {"name": value} if isinstance(value, str) else value

    def names(self) -> tuple[str, ...]:
        """Return the names of all copies, in order."""
        if self.count is None:
            return (self.name,)
        return tuple(f"{self.name}-{number}" for number in range(1, self.count + 1))


class Group(Part):
    """A consumer group. What it says of clients holds for all members that do not say otherwise."""

    members: Annotated[tuple[Member, ...], OneOrMore, NotEmpty]
    client: str | None = None
    subscribe: Subscription | None = None
    config: ConfigMap = Field(default_factory=dict)
    options: dict[str, Any] = Field(default_factory=dict)
    start: Start | None = None
    work: Work | None = None
    static: bool | None = None
