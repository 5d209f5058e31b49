"""What every move of the random walk needs: the walk's state, choices, and lookups in the run."""

from __future__ import annotations

import random
from typing import Any

from tests.oracle.actors import Actor, make_actor
from tests.oracle.memory import Client
from tests.oracle.script import Operation
from tests.oracle.world import World

__all__ = ["Walk"]


class Walk:
    """A walk over ``world``. ``flavour``: what kind of clients the script has."""

    def __init__(
        self, rng: random.Random, groups: list[str], flavour: dict[str, Any], world: World
    ) -> None:
        self.rng = rng
        self.world = world
        self.flavour = flavour
        self.groups = groups
        self.actors: list[Actor] = []
        for _ in range(rng.choice((1, 2, 3, 4))):
            self._new_actor()
        self.transactions = rng.choice(((1,), (1, 2)))
        self.plot: list[Operation] = []

    def _chance(self, percent: int) -> bool:
        return self.rng.randrange(100) < percent

    def _new_actor(self) -> Actor:
        weights = [5, 2, 1][: len(self.groups)]
        group = self.rng.choices(self.groups, weights)[0]
        actor = make_actor(self.rng, len(self.actors), group, self.flavour)
        self.actors.append(actor)
        return actor

    def _actor(self) -> Actor:
        return self.rng.choice(self.actors)

    def _client(self, actor: Actor) -> Client:
        return self.world.memory.client(actor.name)

    def _group(self) -> str:
        return self.rng.choice(self.groups)

    def _partition(self) -> int:
        if self._chance(4):
            return self.rng.randrange(self.world.partitions)
        return self.world.partition_of(self._group())

    def _belongs(self, actor: Actor) -> bool:
        """Does the group still know the client as it knows itself?"""
        client = self._client(actor)
        group = self.world.group(actor.group)
        return (
            group is not None
            and client.generation == group["generation_id"]
            and any(member["member_id"] == client.member_id() for member in group["members"])
        )

    def _anybody(self, group_id: str) -> str:
        """The id of some member, also of one that was not told yet."""
        group = self.world.group(group_id)
        members = group["members"] if group else ()
        return str(self.rng.choice(members)["member_id"]) if members else "nobody"

    def _any_group(self) -> str:
        return self.rng.choice((*self.groups, *self.groups, self.groups[0], "simple", "gone", ""))
