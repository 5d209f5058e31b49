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
    Wants,
    one_of,
)
from groupsim.scenario.world import Spread

__all__ = ["Group", "Member", "Poison", "Raise", "Start", "Subscription", "Work"]


class Subscription(Part):
    """What a member reads: topics, or a pattern of Java's that whole names must match.

    Written short, a name or a list of names are topics.
    """

    topics: Annotated[
        tuple[TopicName, ...] | None, OneOrMore, NotEmpty, Wants("a topic, or a list of topics")
    ] = None
    """Topics by name, such as ``orders`` or ``[orders, payments]``; this or ``pattern``."""
    pattern: str | None = None
    """A regular expression of Java's that a topic's whole name must match, such as ``"ord.*"``."""

    SHORT: ClassVar[Mapping[str, Any]] = NAMES_SCHEMA
    WANTED: ClassVar[str] = "a topic, a list of topics"

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
    """When the first copy starts, a time such as 10s; 0s where nothing is said."""
    every: Duration = 0
    """How long after the last copy the next one starts, a time such as 500ms; 0s: all at once."""

    SHORT: ClassVar[Mapping[str, Any]] = {"anyOf": [DURATION_SCHEMA, {"const": "never"}]}
    WANTED: ClassVar[str] = "a time such as 10s, never"

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take a time for ``at`` and ``never`` for no time."""
        return {"at": None if value == "never" else value}


class Poison(Part):
    """A record that takes (nearly) for ever, or a partition whose records all do."""

    topic: TopicName
    """The topic, by name. Required."""
    partition: Annotated[int, Field(ge=0), Wants("a partition's number, from 0")]
    """The partition's number, from 0. Required."""
    offset: Annotated[int, Field(ge=0)] | None = None
    """The record's offset, from 0; every record of the partition, if not said."""
    takes: Spread
    """How much longer a batch with it takes: a time such as 10m, or a drawn one. Required."""


class Raise(Part):
    """An exception, by the simple name of its Java class: the ``nth`` time, or each time."""

    exception: Annotated[str, Wants("a Java exception, such as IllegalStateException")]
    """The simple name of the exception's Java class, such as ``IllegalStateException``. Required."""
    nth: Annotated[int, Field(ge=1)] | None = None
    """Only this time, counted from 1; each time, if not said."""

    SHORT: ClassVar[Mapping[str, Any]] = {"type": "string"}
    WANTED: ClassVar[str] = "an exception's name"

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take a name for the exception, each time."""
        return {"exception": value}


class Work(Part):
    """What the application does. What is not said keeps the client kind's default."""

    poll_timeout: Duration | None = None
    """The argument of ``poll``, a time in whole milliseconds such as 100ms; 1s where nothing is
    said.
    """
    poll_every: Spread | None = None
    """The pause after a poll that returned nothing: a time such as 100ms, or a drawn one; 0 where
    nothing is said.
    """
    takes: Spread | None = None
    """Processing time for what one poll returned: a time such as 200ms, or a drawn one such as
    ``{uniform: [50ms, 2s]}``; 0 where nothing is said. A poll that returned nothing takes none.
    """
    max_records: Annotated[int, Field(ge=1)] | None = None
    """At most so many records for each poll; Kafka's ``max.poll.records`` where nothing is said."""
    poison: Annotated[tuple[Poison, ...] | None, OneOrMore] = None
    """Records or partitions that take longer, such as
    ``{topic: orders, partition: 3, offset: 100, takes: 10m}``; none where nothing is said.
    """
    on_assigned: Spread | None = None
    """Time spent in the rebalance listener's ``onPartitionsAssigned``: a time such as 2s, or a drawn
    one; 0 where nothing is said.
    """
    on_revoked: Spread | None = None
    """Time spent in the rebalance listener's ``onPartitionsRevoked``: a time such as 2s, or a drawn
    one; 0 where nothing is said.
    """
    on_lost: Spread | None = None
    """Time spent in the rebalance listener's ``onPartitionsLost``: a time such as 2s, or a drawn one.
    Where nothing is said there is no such callback, and ``on_revoked`` is called instead, as in Java.
    """
    raises: dict[Literal["on_assigned", "on_revoked", "on_lost", "processing"], Raise] | None = None
    """Exceptions that come out of the application's code, by where: ``processing``, ``on_assigned``,
    ``on_revoked`` or ``on_lost``, such as ``{processing: IllegalStateException}``; none where nothing
    is said.
    """
    commit: Literal["auto", "sync", "async", "none"] | None = None
    """How offsets are committed: ``auto`` (as Kafka's ``enable.auto.commit`` says), ``sync`` or
    ``async`` (by the application, after each batch), or ``none``; ``auto`` where nothing is said.
    """
    close_timeout: Duration | None = None
    """The argument of ``close``, a time in whole milliseconds such as 5s; 30s where nothing is said."""
    on_error: Literal["continue", "close", "crash"] | None = None
    """What the application does with an exception out of the client: ``close`` the consumer and end,
    ``continue`` to poll after ``error_pause``, or ``crash``; ``close`` where nothing is said.
    """
    error_pause: Duration | None = None
    """With ``on_error: continue``, how long it waits before the next poll, a time in whole
    milliseconds such as 500ms; 1s where nothing is said.
    """


class Member(Part):
    """A member, or ``count`` alike: with a count they are called ``name-1``, ``name-2``, and so on."""

    name: MemberName
    """What the member is called everywhere, and its ``client.id`` if its config names none, such as
    ``c``; not ``b-1`` and so on, which are the brokers. Required.
    """
    count: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """How many alike: ``count: 4`` makes ``c-1`` to ``c-4``; without it there is one, ``c``."""
    client: str | None = None
    """The client kind, such as ``java`` or ``librdkafka``: an entry point of ``groupsim.clients``.
    The group's, or ``java``, where nothing is said.
    """
    subscribe: Subscription | None = None
    """What it reads: a topic, a list of topics, or ``{pattern: "ord.*"}``; the group's where nothing
    is said.
    """
    config: ConfigMap = Field(default_factory=dict)
    """Its Kafka configuration, by Kafka's names, merged over the group's. Values of ``*.ms`` are whole
    milliseconds, or a time with its unit: ``session.timeout.ms: 45s``. In a text ``{n}`` is the copy's
    number and ``{name}`` its name: ``group.instance.id: "worker-{n}"``.
    """
    options: dict[str, Any] = Field(default_factory=dict)
    """Switches of the client kind that are no Kafka configuration, such as
    ``misbehave: [never-syncs]``, merged over the group's.
    """
    start: Start | None = None
    """When it starts: a time, ``{at: 10s, every: 500ms}`` for copies one after the other, or
    ``never`` (the timeline starts it); the group's, or 0s, where nothing is said.
    """
    work: Work | None = None
    """What its application does, key by key over what the group says."""
    static: bool | None = None
    """Static membership: Kafka's ``group.instance.id`` is the member's name; the group's, or false,
    where nothing is said.
    """
    host: str | None = None
    """The address that the broker sees, such as ``"/10.0.0.{n}"``, where ``{n}`` is the copy's number;
    a slash and the member's name where nothing is said.
    """
    rack: Annotated[tuple[str, ...] | None, OneOrMore] = None
    """Kafka's ``client.rack``; of a list such as ``[a, b]`` one each in turn; none where nothing is
    said.
    """

    SHORT: ClassVar[Mapping[str, Any]] = {"type": "string"}
    WANTED: ClassVar[str] = "a name"

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

    members: Annotated[
        tuple[Member, ...],
        OneOrMore,
        NotEmpty,
        Wants("a member such as {name: c, count: 4}, or a list of them"),
    ]
    """The group's members: a list; one of them needs no brackets. Required."""
    client: str | None = None
    """The client kind of its members, such as ``java`` or ``librdkafka``; ``java`` where nothing is
    said.
    """
    subscribe: Subscription | None = None
    """What its members read: a topic, a list of topics, or ``{pattern: "ord.*"}``. Required here or
    at each member.
    """
    config: ConfigMap = Field(default_factory=dict)
    """Its members' Kafka configuration, by Kafka's names; what a member says of an option comes first.
    Values of ``*.ms`` are whole milliseconds, or a time with its unit: ``session.timeout.ms: 45s``.
    """
    options: dict[str, Any] = Field(default_factory=dict)
    """Switches of the client kind that are no Kafka configuration, such as
    ``misbehave: [never-syncs]``; none where nothing is said.
    """
    start: Start | None = None
    """When its members start: a time, ``{at: 10s, every: 500ms}``, or ``never``; 0s where nothing is
    said.
    """
    work: Work | None = None
    """What its members' applications do; what a member says of a key comes first."""
    static: bool | None = None
    """Static membership: each member's ``group.instance.id`` is its name; false where nothing is
    said.
    """
