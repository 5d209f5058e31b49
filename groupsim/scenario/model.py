"""A scenario: what a YAML file says, as immutable values. docs/scenarios.md has it in prose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import Field

from groupsim.scenario._base import Duration, GroupName, NotEmpty, OneOrMore, Part, TopicName, Wants
from groupsim.scenario.expect import Expectation
from groupsim.scenario.members import Group, Member
from groupsim.scenario.verbs import Entry
from groupsim.scenario.world import Brokers, Network, Topic

__all__ = ["VERSION", "Scenario"]

VERSION: Final = 1


class Scenario(Part):
    """A scenario. Two are equal when they say the same, whatever they were made from."""

    groupsim: Literal[1] = VERSION
    """The version of this format: 1. Required."""
    name: Annotated[
        str,
        Field(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", max_length=60),
        Wants("small letters, digits and hyphens, such as rolling-restart"),
    ]
    """The scenario's name: small letters, digits and hyphens, such as rolling-restart. Required."""
    title: Annotated[str, Field(max_length=200)] = ""
    """One line for ``groupsim list``; empty where nothing is said."""
    lesson: Annotated[str, Field(max_length=20_000)] = ""
    """What a teacher would say: what is to be seen, why, and what to try next; printed above the run."""
    topics: Annotated[
        dict[TopicName, Topic], NotEmpty, Wants("topics by name, such as {orders: 12}")
    ]
    """The topics by name, such as ``orders: {partitions: 12, rate: 100}``. Required: at least one."""
    brokers: Brokers = Brokers()
    """How many brokers there are, and their configuration; one of them where nothing is said."""
    network: Network = Network()
    """How long messages travel between members and brokers; 500us one way where nothing is said."""
    groups: Annotated[
        dict[GroupName, Group],
        NotEmpty,
        Wants("groups by name, such as {checkout: {subscribe: orders, members: c}}"),
    ]
    """The consumer groups by name, which is their members' Kafka ``group.id``. Required: one or more."""
    timeline: Annotated[
        tuple[Entry, ...],
        OneOrMore,
        Wants("an entry such as {at: 60s, crash: c-2}, or a list of them"),
    ] = ()
    """What happens when, such as ``{at: 60s, crash: c-2}``; nothing but the members' starts where
    nothing is said. Entries at one moment happen in the order of the file.
    """
    until: Annotated[Duration, Field(gt=0)]
    """Where the run ends, a time from its start such as 5m. Required."""
    seed: Annotated[int, Field(ge=0, lt=1 << 64)] = 0
    """The seed of all randomness where ``--seed`` gives none, a whole number from 0; 0 where nothing
    is said.
    """
    expect: Annotated[
        tuple[Expectation, ...],
        OneOrMore,
        Wants("an expectation such as {stable_by: 30s}, or a list of them"),
    ] = ()
    """What the run is judged by, such as ``{group: checkout, stable_by: 30s}``; without it there is
    nothing to be met or missed.
    """
    stop_early: Duration | None = None
    """Break the run off here, before ``until``: what cannot be known then is undecided."""
    scripts: Annotated[tuple[str, ...], OneOrMore] = ()
    """Names of the Python functions that took part in the run that wrote this down."""

    HIDDEN: ClassVar[tuple[str, ...]] = ("stop_early", "scripts")
    """Fields of recorded runs; people do not write them."""

    @property
    def end_us(self) -> int:
        """Where this run really ends."""
        return self.until if self.stop_early is None else min(self.until, self.stop_early)

    def members(self) -> dict[str, tuple[str, Member]]:
        """Return every member by name, copies counted out, with its group, in the file's order."""
        return {
            name: (group_id, member)
            for group_id, group in self.groups.items()
            for member in group.members
            for name in member.names()
        }

    def ended_at(self, us: int | None) -> Self:
        """Return this scenario with another end: an earlier one breaks it off."""
        if us is None:
            return self
        change: dict[str, int] = {"stop_early": us} if us < self.until else {"until": us}
        return self.model_copy(update=change)

    def to_plain(self) -> dict[str, Any]:
        """Return maps, lists, texts and numbers from which ``from_plain`` makes an equal scenario."""
        plain: dict[str, Any] = self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return {"groupsim": self.groupsim, **plain}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Scenario:
        """Return the scenario that plain data describes, as a file would.

        Raises:
            ScenarioError: it is not a scenario; all faults at once.

        """
        from groupsim.scenario.loader import scenario_from_data

        return scenario_from_data(dict(plain), "scenario")
