"""The world of a scenario: topics, brokers, network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import Field, model_validator

from groupsim.scenario._base import (
    DURATION_SCHEMA,
    ConfigMap,
    Duration,
    Names,
    NodeIds,
    OneOrMore,
    Part,
    Wants,
    fault,
    one_of,
)
from groupsim.scenario.durations import duration_text

__all__ = ["Brokers", "Latency", "Link", "LogNormal", "Network", "Spread", "Topic"]


class Topic(Part):
    """A topic. Written short, a number is its partitions."""

    partitions: Annotated[int, Field(ge=1, le=100_000), Wants("a whole number, 1 or more")]
    """How many partitions the topic begins with, such as 12. Required."""
    rate: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    """Records a second that arrive in each partition, such as 10; 0 where nothing is said."""

    SHORT: ClassVar[Mapping[str, Any]] = {"type": "integer", "minimum": 1}
    WANTED: ClassVar[str] = "how many partitions"

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take a number for the partitions."""
        return {"partitions": value} if isinstance(value, int) else value


class LogNormal(Part):
    """A log-normal time, by two numbers that dashboards show: ``{median: 5ms, p99: 80ms}``."""

    median: Duration
    """The time, with its unit, that half of all draws stay below, such as 5ms. Required."""
    p99: Duration
    """The 99th percentile, a time with its unit such as 80ms; not below the median. Required."""
    max: Duration | None = None
    """Cuts the tail: longer draws are this time, with its unit; no limit where nothing is said."""

    def _found(self) -> str:
        return f"median {duration_text(self.median)}, p99 {duration_text(self.p99)}"

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not 0 < self.median <= self.p99:
            allowed = "a median above 0, and a p99 that is not below it"
            raise fault("not a log-normal time", found=self._found(), allowed=allowed)
        return self


class Spread(Part):
    """A time that is fixed or drawn. Written short, a time is a fixed one."""

    fixed: Duration | None = None
    """Always this time, with its unit: ``{fixed: 20ms}`` is ``20ms`` written long."""
    uniform: Annotated[tuple[Duration, ...] | None, OneOrMore] = None
    """Evenly between the lowest and the highest time, both included, such as ``[1ms, 3ms]``."""
    lognormal: LogNormal | None = None
    """Log-normal, for times with a long tail, such as ``{median: 5ms, p99: 80ms}``."""

    SHORT: ClassVar[Mapping[str, Any]] = DURATION_SCHEMA
    WANTED: ClassVar[str] = "a time such as 20ms"

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take a time for a fixed one."""
        return {"fixed": value}

    @model_validator(mode="after")
    def _one(self) -> Self:
        one_of(self, ("fixed", "uniform", "lognormal"))
        if self.uniform is not None:
            if len(self.uniform) != 2:
                raise fault("not a range", allowed="two times: [lowest, highest]")
            if self.uniform[0] > self.uniform[1]:
                raise fault("not a range", allowed="[lowest, highest], the lowest first")
        return self


_SPREAD_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        name: {**schema, "description": Spread.model_fields[name].description}
        for name, schema in (
            ("fixed", DURATION_SCHEMA),
            ("uniform", {"type": "array", "items": DURATION_SCHEMA, "minItems": 2, "maxItems": 2}),
            ("lognormal", {"type": "object"}),
        )
    },
    "additionalProperties": False,
}


class Latency(Part):
    """How long a message travels. Written short, both directions are alike."""

    to_broker: Spread | None = None
    """From members to brokers: a time such as 1ms, or a drawn one; 500us where nothing is said."""
    to_client: Spread | None = None
    """From brokers to members: a time such as 1ms, or a drawn one; 500us where nothing is said."""

    SHORT: ClassVar[Mapping[str, Any]] = {"anyOf": [DURATION_SCHEMA, _SPREAD_SCHEMA]}
    WANTED: ClassVar[str] = "a time such as 1ms, a drawn one"
    ALSO: ClassVar[tuple[str, ...]] = tuple(Spread.model_fields)
    """Keys that mean a drawn time for both directions."""

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take one time for both directions."""
        return {"to_broker": value, "to_client": value}

    @model_validator(mode="before")
    @classmethod
    def _alike(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        drawn = [name for name in cls.ALSO if name in value]
        apart = [name for name in cls.model_fields if name in value]
        if drawn and apart:
            allowed = "fixed, uniform or lognormal; or to_broker and to_client"
            found = " and ".join((*drawn, *apart))
            raise fault("either both directions or each", found=found, allowed=allowed)
        if drawn:
            return {"to_broker": value, "to_client": value}
        return value


class Link(Part):
    """Another latency between some members and some brokers (all, where not said)."""

    members: Names | None = None
    """Members at one end: names, families or patterns, such as ``c-3``; all, if not said."""
    brokers: NodeIds | None = None
    """Brokers at the other end, by number, such as 2 or ``[1, 2]``; all, if not said."""
    latency: Latency
    """How long a message travels here, one way, such as 20ms. Required."""


class Network(Part):
    """The network between members and brokers."""

    latency: Latency = Latency(to_broker=None, to_client=None)
    """How long a message travels, one way, such as 1ms; 500us where nothing is said."""
    links: Annotated[tuple[Link, ...], OneOrMore] = ()
    """Other latencies between some members and some brokers; none where nothing is said."""
    connect_timeout: Duration | None = None
    """How long a connection may take to be set up, a time with its unit: Kafka's
    ``socket.connection.setup.timeout.ms``; 10s where nothing is said.
    """


class Brokers(Part):
    """The brokers, numbered from 1 and called ``b-1``, ``b-2``. Written short, a number is how many."""

    count: Annotated[int, Field(ge=1, le=1_000)] = 1
    """How many brokers there are; 1 where nothing is said. Failover needs at least 2."""
    config: ConfigMap = Field(default_factory=dict)
    """Kafka's broker configuration, as far as the group coordinator reads it, by Kafka's names, such
    as ``group.initial.rebalance.delay.ms: 3000``. Values of ``*.ms`` are whole milliseconds, or a
    time with its unit. Kafka's defaults where nothing is said.
    """
    racks: Annotated[tuple[str, ...], OneOrMore] = ()
    """Kafka's ``broker.rack``, dealt to the brokers in turn, such as ``[a, b, c]``; none where
    nothing is said.
    """
    replication_delay: Spread | None = None
    """From the append to the commit of a coordinator's records: a time such as 2ms, or a drawn one; 0
    where nothing is said.
    """
    load_time: Duration | None = None
    """How long a new coordinator reads its partition of ``__consumer_offsets`` before it serves, a
    time such as 5s; 0 where nothing is said.
    """
    failover_time: Duration | None = None
    """From a broker's crash to the election of new leaders, a time with its unit (Kafka's
    ``broker.session.timeout.ms``); 9s where nothing is said.
    """

    SHORT: ClassVar[Mapping[str, Any]] = {"type": "integer", "minimum": 1}
    WANTED: ClassVar[str] = "how many brokers"

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take a number for the count."""
        return {"count": value} if isinstance(value, int) else value
