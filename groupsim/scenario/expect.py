"""What a scenario expects: values only; how they are judged stands in ``expectations``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from groupsim.scenario._base import DURATION_SCHEMA, Duration, GroupRef, Names, Part, Wants, fault

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
    """Count only what happens after this time, such as 30s; from the start, if not said."""
    before: Duration | None = None
    """Count only what happens up to this time, included, such as 2m; to the end, if not said."""

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
            known = [name for name in _BOUNDS if name in type(self).model_fields]
            raise fault("one of these must be given", allowed=", ".join(known))
        if exact is not None and (low is not None or high is not None):
            raise fault("exactly goes alone", allowed="exactly, or at_least and at_most")
        if low is not None and high is not None and low > high:
            raise fault("at_least is above at_most")
        return self


class Count(Bounded, Window):
    """How many in a window. Written short, a number is ``exactly``."""

    at_most: Annotated[int, Field(ge=0)] | None = None
    """The largest number that is met, such as 9; no upper bound, if not said."""
    at_least: Annotated[int, Field(ge=0)] | None = None
    """The smallest number that is met, such as 1; no lower bound, if not said."""
    exactly: Annotated[int, Field(ge=0)] | None = None
    """The only number that is met, such as 3; it goes alone."""

    SHORT: ClassVar[Mapping[str, Any]] = {"type": "integer", "minimum": 0}
    WANTED: ClassVar[str] = "a number"

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take a number for ``exactly``."""
        return {"exactly": value}


class Limit(Bounded, Window):
    """How much time in a window. Written short, a time is ``at_most``."""

    at_most: Duration | None = None
    """The longest time that is met, such as 60s; no upper bound, if not said."""
    at_least: Duration | None = None
    """The shortest time that is met, such as 5s; no lower bound, if not said."""

    SHORT: ClassVar[Mapping[str, Any]] = DURATION_SCHEMA
    WANTED: ClassVar[str] = "a time such as 60s"

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take a time for ``at_most``."""
        return {"at_most": value}


class CountAt(Bounded):
    """A number at one time (the end, where not said). Written short, a number is ``exactly``."""

    at: Duration | None = None
    """When it is looked at, a time such as 60s; the end, if not said."""
    at_most: Annotated[int, Field(ge=0)] | None = None
    """The largest number that is met, such as 9; no upper bound, if not said."""
    at_least: Annotated[int, Field(ge=0)] | None = None
    """The smallest number that is met, such as 1; no lower bound, if not said."""
    exactly: Annotated[int, Field(ge=0)] | None = None
    """The only number that is met, such as 3; it goes alone."""

    SHORT: ClassVar[Mapping[str, Any]] = {"type": "integer", "minimum": 0}
    WANTED: ClassVar[str] = "a number"

    @classmethod
    def short(cls, value: Any) -> Any:
        """Take a number for ``exactly``."""
        return {"exactly": value}


class RaisedCount(Count):
    """Exceptions that applications saw, by the simple name of Java's class (all, where not said).

    Written short: ``none``, or the name of an exception seen at least once.
    """

    exception: str | None = None
    """The simple name of Java's class, such as CommitFailedException; any, if not said."""
    members: Names | None = None
    """Only those of these members: names, families or patterns; all of the group, if not said."""

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
    """How the commits ended: ``ok``, ``refused`` (all that are not ok), or an exception's name, such
    as CommitFailedException; ``ok`` where nothing is said.
    """
    members: Names | None = None
    """Only those of these members: names, families or patterns; all of the group, if not said."""

    SHORT: ClassVar[Mapping[str, Any]] = {"type": "integer", "minimum": 0}
    WANTED: ClassVar[str] = "a number"

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
    """What happened to a member, as the coordinator sees it: ``pending`` (it was given an id and has
    to join with it), ``joined``, ``rejoined``, ``replaced`` (by another with its
    ``group.instance.id``), ``left``, ``expired`` (its session ran out), ``removed`` (it did not join
    or sync in time), ``synced``, or became ``leader``. Required.
    """


class CommittedAt(CountAt):
    """The committed offset of one partition."""

    topic: Annotated[str, Wants("a topic's name")]
    """The topic, by name. Required."""
    partition: Annotated[int, Field(ge=0), Wants("a partition's number, from 0")]
    """The partition's number, from 0. Required."""


class StateAt(Part):
    """The group's state at one time. Written short, at the end."""

    is_: Annotated[GroupState, Field(validation_alias="is", serialization_alias="is")]
    """Kafka's name of the state: Empty, PreparingRebalance, CompletingRebalance, Stable or Dead.
    Required.
    """
    at: Duration | None = None
    """When it is looked at, a time such as 60s; the end, if not said."""

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

    group: GroupRef | None = None
    """The group's name; it may stay unsaid where there is only one group."""
    stable_by: Duration | None = None
    """The group is Stable at this time, such as 30s."""
    stable_from: Duration | None = None
    """From this time on, such as 90s, the group is Stable without a break, to the end."""
    state: StateAt | None = None
    """The group's state at one time, such as ``{at: 60s, is: Stable}``; written short, at the end."""
    rebalances: Count | None = None
    """How often the group entered PreparingRebalance (the first join is one), such as 3 or
    ``{at_most: 9}``.
    """
    generation: CountAt | None = None
    """The group's generation, such as 5 or ``{at: 60s, at_least: 2}``; at the end, if no ``at``."""
    members: CountAt | None = None
    """Members of the group as the coordinator counts them, such as 4 or ``{at: 60s, exactly: 3}``."""
    owners: CountAt | None = None
    """Members that hold at least one partition, such as 4 or ``{at: 60s, exactly: 3}``."""
    changes: ChangeCount | None = None
    """How often a member's standing changed in one way, such as ``{change: expired, exactly: 1}``."""
    unavailable: Limit | None = None
    """Partition-seconds without an owner, as a time: one partition for 10 s is 10s, and so are ten for
    1 s. Such as ``60s`` (at most) or ``{after: 30s, at_most: 40s}``.
    """
    frozen: Limit | None = None
    """Partition-seconds, as a time, during which everybody who owns a partition is paused, so that
    nobody reads it, such as ``10s`` (at most).
    """
    overlap: Limit | None = None
    """Partition-seconds, as a time, during which two live members both believe that they own a
    partition, such as ``0s`` (at most).
    """
    moved: Count | None = None
    """Partitions that came to another owner than their last one, such as ``{at_most: 4}``."""
    raised: RaisedCount | None = None
    """Exceptions that applications saw: ``none``, the name of one that is seen at least once, or
    ``{exception: CommitFailedException, exactly: 2}``.
    """
    commits: CommitCount | None = None
    """Offset commits that ended in one way, such as ``{outcome: refused, at_most: 0}``; a number is
    how many succeed.
    """
    committed: CommittedAt | None = None
    """The committed offset of one partition, such as
    ``{topic: orders, partition: 0, at_least: 100}``; at the end, if no ``at``.
    """

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
