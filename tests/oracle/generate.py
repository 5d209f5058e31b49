"""Makes scripts: a weighted random walk that watches a run of Kafka's coordinator while it goes.

The walk knows what each client was told, which groups are in which state and when every timer is
due, so that it reaches deep states: it mostly does the next right thing for some client, at times
the right thing with one field wrong, and in between moves time exactly onto, one millisecond
before and one after an armed deadline. A script depends on (seed, index, length) and on Kafka
alone, never on our coordinator.
"""

from __future__ import annotations

import random
from typing import Any

from tests.oracle.driver import Oracle
from tests.oracle.kafka import KafkaWorld, LivelockError
from tests.oracle.script import Operation, Script
from tests.oracle.walk_members import MemberMoves
from tests.oracle.world import World, partition_for

__all__ = ["generate"]

THEMES: dict[str, dict[str, int]] = {
    "membership": {},
    "static": {"restart": 14},
    "size": {"arrive": 16},
    "timing": {"time": 26, "log": 1},
    "failover": {"failover": 14, "log": 10},
    "appends": {"log": 24},
    "offsets": {"offsets": 30, "admin": 10, "time": 16},
    "transactions": {"transactions": 24, "offsets": 14},
    "admin": {"admin": 24},
    "crowd": {"step": 80, "leave": 8},
}
"""Kind of script → families of operations that weigh differently from ``WEIGHTS``."""

WEIGHTS = {
    "step": 60,
    "twist": 8,
    "arrive": 4,
    "restart": 4,
    "again": 3,
    "leave": 5,
    "time": 13,
    "offsets": 6,
    "transactions": 1,
    "admin": 4,
    "log": 4,
    "failover": 2,
}


def _config(rng: random.Random, theme: str) -> dict[str, int]:
    config = {
        "group.initial.rebalance.delay.ms": rng.choice((0, 0, 3000, 3000, 500)),
        "group.coordinator.append.linger.ms": rng.choice((-1, -1, 0, 0, 5, 10)),
        "offsets.topic.num.partitions": rng.choice((1, 1, 2, 3, 50)),
    }
    if theme == "size" or (theme != "crowd" and rng.randrange(8) == 0):
        config["group.max.size"] = rng.choice((1, 2, 2, 3))
    if theme in ("offsets", "transactions") or rng.randrange(5) == 0:
        config["offsets.retention.minutes"] = rng.choice((1, 1, 2))
        config["offsets.retention.check.interval.ms"] = rng.choice((1000, 30000, 60000))
    if rng.randrange(6) == 0:
        config["group.min.session.timeout.ms"] = rng.choice((1, 10, 6000))
        config["group.max.session.timeout.ms"] = rng.choice((10000, 30000))
    if theme == "appends" or rng.randrange(6) == 0:
        config["offsets.commit.timeout.ms"] = rng.choice((1, 50, 100, 5000))
    if rng.randrange(8) == 0:
        config["offset.metadata.max.bytes"] = rng.choice((0, 3, 5))
    return config


def _flavour(rng: random.Random, theme: str, config: dict[str, int]) -> dict[str, Any]:
    protocols = rng.choice(
        (("range",), ("range", "roundrobin"), ("range", "roundrobin", "sticky", "cooperative-sticky"),
         ("default", "compatible", "sessioned"))
    )  # fmt: skip
    return {
        "static": {"static": 80, "size": 35}.get(theme, rng.choice((0, 25, 50))),
        "newest": rng.choice((0, 50, 90)),
        "instances": rng.choice((1, 2, 3, 8)),
        "protocols": protocols,
        "common": rng.choice(protocols),
        "sessions": [
            session
            for session in rng.choice(((10000,), (6000, 10000, 10000), (6000, 10000, 45000)))
            if session <= config.get("group.max.session.timeout.ms", session)
        ],
        "rebalances": rng.choice(
            ((10000,), (10000,), (5000, 60000), (400000, 20000), (0, -5, 10000), (-1,))
        ),
        "type": rng.choice(("consumer", "consumer", "consumer", "consumer", "connect", "x")),
        "unreadable": rng.choice((0, 0, 0, 0, 15)),
    }


def generate(seed: str, index: int, length: int, oracle: Oracle) -> tuple[Script, KafkaWorld]:
    """Script number ``index`` of ``seed`` with ``length`` operations, and Kafka's run of it."""
    rng = random.Random(f"groupsim oracle {seed} {index}")
    theme = rng.choice(list(THEMES))
    groups = [f"g{number}" for number in range(rng.choice((1, 1, 1, 2, 3)))]
    config = _config(rng, theme)
    count = config["offsets.topic.num.partitions"]
    led = {
        partition_for(group, count)
        for group in [*groups, "simple", "", "gone"][: -rng.randint(1, 3)]
    }
    script = Script(
        seed=f"{seed}/{index}",
        config=config,
        partitions=tuple(sorted(led)) if count > 3 else None,
    )
    world = KafkaWorld(script, oracle)
    flavour = _flavour(rng, theme, config)
    walk = _Walk(rng, groups, flavour, world, WEIGHTS | THEMES[theme])
    if theme == "crowd":
        walk.gather(rng.randint(11, 15))
    try:
        for _ in range(length):
            walk.step()
    except LivelockError:
        world.operations.pop()
    return script.with_operations(world.operations), world


class _Walk(MemberMoves):
    def __init__(
        self,
        rng: random.Random,
        groups: list[str],
        flavour: dict[str, Any],
        world: World,
        weights: dict[str, int],
    ) -> None:
        super().__init__(rng, groups, flavour, world)
        self._families = list(weights)
        self._weights = list(weights.values())

    def gather(self, count: int) -> None:
        """Begin with so many joins that the tables of members grow (a HashMap does at 13)."""
        group = self.groups[0]
        for _ in range(count):
            actor = self._new_actor()
            actor.group = group
            if actor.instance is None:
                actor.versions["join"] = self.rng.choice((0, 1, 2, 3))
            else:
                actor.instance = f"{actor.instance}-{actor.name}"
            self.plot.append(actor.join(""))
        if self._chance(70):
            delay = self.world.config["group.initial.rebalance.delay.ms"]
            self.plot.append({"op": "advance", "ms": delay})

    def step(self) -> None:
        """Choose the next operation and let it happen."""
        if self.plot:
            self.world.run(_fit(self.plot.pop(0)))
            return
        while True:
            family = self.rng.choices(self._families, self._weights)[0]
            made: Operation | None = getattr(self, f"_{family}")()
            if made is not None:
                self.world.run(_fit(made))
                return


_SINCE = {
    ("join", "rebalance"): 1,
    ("join", "instance"): 5,
    ("join", "reason"): 8,
    ("sync", "instance"): 3,
    ("sync", "type"): 5,
    ("sync", "name"): 5,
    ("heartbeat", "instance"): 3,
    ("commit", "instance"): 7,
    ("txn_commit", "instance"): 3,
}


def _fit(operation: Operation) -> Operation:
    """Leave out what the operation's API version cannot say."""
    kind, version = operation["op"], operation.get("version", 0)
    for (of, field), since in _SINCE.items():
        if of == kind and version < since:
            operation.pop(field, None)
    if kind == "txn_commit" and version < 3:
        operation |= {"member": "", "generation": -1}
    if kind == "commit" and version > 4:
        operation["retention"] = -1
    if kind in ("commit", "txn_commit") and version < (6 if kind == "commit" else 2):
        operation["topics"] = [
            [topic, [[number, offset, -1, text] for number, offset, _, text in partitions]]
            for topic, partitions in operation["topics"]
        ]
    if kind == "sync" and version >= 5:
        operation.setdefault("type", "consumer")
        operation.setdefault("name", "range")
    if kind == "leave":
        if version < 3:
            operation["members"] = [
                [member, None, None] for member, *_ in operation["members"][:1]
            ] or [["", None, None]]
        elif version < 5:
            operation["members"] = [[m, i, None] for m, i, _ in operation["members"]]
    return operation
