"""What a scenario expects: values only; how they are judged stands in ``expectations``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from groupsim.scenario._base import DURATION_SCHEMA, Duration, Names, Part, fault

__all__ = [
    "ChangeCount",
    "CommitCount",
    "CommittedAt",
    "Count",
    "CountAt",
    "Expectation",
    "Limit",
    "RaisedCount",
    "StateAt",
    "Window",
]

GroupState = Literal["Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"]
_BOUNDS = ("at_most", "at_least", "exactly")


class Window(Part):
    """The part of the run that counts: after ``after`` (0) up to ``before`` (the end), included."""

    after: Duration | None = None
    before: Duration | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.after is not None and self.before is not None and self.after >= self.before:
            raise fault("the window is empty: after is not earlier than before")
        return self


class Bounded(Part):
    """Something with one bound, or with a lower and an upper one."""

    @model_validator(mode="after")
    def _bounds(self) -> Self:
        low, high = getattr(self, "at_least", None), getattr(self, "at_most", None)
        exact = getattr(self, "exactly", None)
        if low is None and high is None and exact is None:
            raise fault("one of these must be given", allowed=", ".join(_BOUNDS))
        if exact is not None and (low is not None or high is not None):
            raise fault("exactly goes alone", allowed="exactly, or at_least and at_most")
        if low is not None and high is not None and low > high:
            raise fault("at_least is above at_most")
        return self


class Count(Bounded, Window):
    """How many in a window. Written short, a number is ``exactly``."""

    at_most: Annotated[int, Field(ge=0)] | None = None
    at_least: Annotated[int, Field(ge=0)] | None = None
    exactly: Annotated[int, Field(ge=0)] | None = None

    SHORT: ClassVar[Mapping[str, Any]] = {"type": "integer", "minimum": 0}

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take a number for ``exactly``."""
        return {"exactly": value}


class Limit(Bounded, Window):
    """How much time in a window. Written short, a time is ``at_most``."""

    at_most: Duration | None = None
    at_least: Duration | None = None

    SHORT: ClassVar[Mapping[str, Any]] = DURATION_SCHEMA

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take a time for ``at_most``."""
        return {"at_most": value}


class CountAt(Bounded):
    """A number at one time (the end, where not said). Written short, a number is ``exactly``."""

    at: Duration | None = None
    at_most: Annotated[int, Field(ge=0)] | None = None
    at_least: Annotated[int, Field(ge=0)] | None = None
    exactly: Annotated[int, Field(ge=0)] | None = None

    SHORT: ClassVar[Mapping[str, Any]] = {"type": "integer", "minimum": 0}

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take a number for ``exactly``."""
        return {"exactly": value}


class RaisedCount(Count):
    """Exceptions that applications saw, by the simple name of Java's class (all, where not said).

    Written short: ``none``, or the name of an exception seen at least once.
    """

    exception: str | None = None
    members: Names | None = None

    SHORT: ClassVar[Mapping[str, Any]] = {"type": "string"}

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take ``none`` for none at all, another text for an exception."""
        return {"exactly": 0} if value == "none" else {"exception": value, "at_least": 1}


class CommitCount(Count):
    """Offset commits that came to an end: ``outcome`` is ok, refused (all that are not ok), or the
    name of the exception.
    """

    outcome: str = "ok"
    members: Names | None = None

    SHORT: ClassVar[Mapping[str, Any]] = {"type": "integer", "minimum": 0}

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take a number for how many succeed."""
        return {"exactly": value}


class ChangeCount(Count):
    """Changes of the group's members as the coordinator sees them."""

    change: Literal[
        "pending",
        "joined",
        "rejoined",
        "replaced",
        "left",
        "expired",
        "removed",
        "synced",
        "leader",
    ]


class CommittedAt(CountAt):
    """The committed offset of one partition."""

    topic: str
    partition: Annotated[int, Field(ge=0)]


class StateAt(Part):
    """The group's state at one time. Written short, at the end."""

    is_: Annotated[GroupState, Field(validation_alias="is", serialization_alias="is")]
    at: Duration | None = None

    SHORT: ClassVar[Mapping[str, Any]] = {"type": "string"}

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take a name for the state."""
        return {"is": value}


def _something(schema: dict[str, Any]) -> None:
    """Say in the JSON Schema that an expectation expects something."""
    kinds = [name for name in schema["properties"] if name not in Expectation.WHO]
    schema["anyOf"] = [{"required": [kind]} for kind in kinds]


class Expectation(Part):
    """What is expected of one group (which may stay unsaid where there is only one)."""

    group: str | None = None
    stable_by: Duration | None = None
    """At this time at the latest the group has become Stable, and at this time it is."""
    stable_from: Duration | None = None
    """From this time on the group is Stable without a break, to the end."""
    state: StateAt | None = None
    rebalances: Count | None = None
    """How often the group entered PreparingRebalance (the first join is one)."""
    generation: CountAt | None = None
    members: CountAt | None = None
    """Members of the group as the broker counts them."""
    owners: CountAt | None = None
    """Members that hold at least one partition."""
    changes: ChangeCount | None = None
    """How often a member's standing changed: joined, left, expired, ..."""
    unavailable: Limit | None = None
    """Partition-seconds without an owner: one partition for 10 s is 10s, and so are ten for 1 s."""
    frozen: Limit | None = None
    """Partition-seconds during which everybody who owns a partition is paused: nobody reads it."""
    overlap: Limit | None = None
    """Partition-seconds during which two live members both believe that they own a partition."""
    moved: Count | None = None
    """Partitions that came to another owner than the last one."""
    raised: RaisedCount | None = None
    commits: CommitCount | None = None
    committed: CommittedAt | None = None

    model_config = ConfigDict(json_schema_extra=_something)

    WHO: ClassVar[tuple[str, ...]] = ("group",)

    @classmethod
    def kinds(cls) -> tuple[str, ...]:
        """Return the names of everything that can be expected."""
        return tuple(name for name in cls.model_fields if name not in cls.WHO)

    def given(self) -> tuple[str, ...]:
        """Return the names of what is expected here."""
        return tuple(name for name in self.kinds() if getattr(self, name) is not None)

    @model_validator(mode="after")
    def _expects(self) -> Self:
        if not self.given():
            raise fault("nothing is expected", allowed=", ".join(self.kinds()))
        return self
