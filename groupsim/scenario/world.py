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
    fault,
    one_of,
)

__all__ = ["Brokers", "Latency", "Link", "LogNormal", "Network", "Spread", "Topic"]


class Topic(Part):
    """A topic. Written short, a number is its partitions."""

    partitions: Annotated[int, Field(ge=1, le=100_000)]
    rate: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    """Records a second, over all partitions."""

    SHORT: ClassVar[Mapping[str, Any]] = {"type": "integer", "minimum": 1}

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take a number for the partitions."""
        return {"partitions": value} if isinstance(value, int) else value


class LogNormal(Part):
    """A log-normal time, by two numbers that dashboards show. ``max`` cuts the tail."""

    median: Duration
    p99: Duration
    max: Duration | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not 0 < self.median <= self.p99:
            raise fault("the 99th percentile is below the median, or the median is 0")
        return self


class Spread(Part):
    """A time that is fixed or drawn. Written short, a time is a fixed one."""

    fixed: Duration | None = None
    uniform: Annotated[tuple[Duration, ...] | None, OneOrMore] = None
    """The lowest and the highest, both included."""
    lognormal: LogNormal | None = None

    SHORT: ClassVar[Mapping[str, Any]] = DURATION_SCHEMA

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
                raise fault("the lowest time comes after the highest")
        return self


_SPREAD_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "fixed": DURATION_SCHEMA,
        "uniform": {"type": "array", "items": DURATION_SCHEMA, "minItems": 2, "maxItems": 2},
        "lognormal": {"type": "object"},
    },
    "additionalProperties": False,
}


class Latency(Part):
    """How long a message travels. Written short, both directions are alike."""

    to_broker: Spread | None = None
    to_client: Spread | None = None

    SHORT: ClassVar[Mapping[str, Any]] = {"anyOf": [DURATION_SCHEMA, _SPREAD_SCHEMA]}

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take one time for both directions."""
        return {"to_broker": value, "to_client": value}

    @model_validator(mode="before")
    @classmethod
    def _alike(cls, value: Any) -> Any:
        if isinstance(value, dict) and value and not set(value) & {"to_broker", "to_client"}:
            return {"to_broker": value, "to_client": value}
        return value


class Link(Part):
    """Another latency between some members and some brokers (all, where not said)."""

    members: Names | None = None
    brokers: NodeIds | None = None
    latency: Latency


class Network(Part):
    """The network between members and brokers."""

    latency: Latency = Latency(to_broker=None, to_client=None)
    """One way; half a millisecond where nothing is said."""
    links: Annotated[tuple[Link, ...], OneOrMore] = ()
    connect_timeout: Duration | None = None


class Brokers(Part):
    """The brokers, numbered from 1 and called ``b-1``, ``b-2``. Written short, a number is how many."""

    count: Annotated[int, Field(ge=1, le=1_000)] = 1
    config: ConfigMap = Field(default_factory=dict)
    """Kafka's broker configuration, such as ``group.initial.rebalance.delay.ms``."""
    racks: Annotated[tuple[str, ...], OneOrMore] = ()
    replication_delay: Spread | None = None
    """From the append to the commit of a coordinator's records; 0 where nothing is said."""
    load_time: Duration | None = None
    """How long a coordinator reads its partition of ``__consumer_offsets`` before it serves."""
    failover_time: Duration | None = None
    """From a broker's crash to the election of new leaders; 9 s where nothing is said."""

    SHORT: ClassVar[Mapping[str, Any]] = {"type": "integer", "minimum": 1}

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take a number for the count."""
        return {"count": value} if isinstance(value, int) else value
