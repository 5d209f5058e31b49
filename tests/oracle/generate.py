"""Makes scripts: a weighted random walk that watches a run of Kafka's coordinator while it goes.

The walk knows what each client was told, which groups are in which state and when every timer is
due, so that it reaches deep states: it mostly does the next right thing for some client, at times
the right thing with one field wrong, and in between moves time exactly onto, one millisecond
before and one after an armed deadline. A script depends on (seed, index, length) and on Kafka
alone, never on our coordinator.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.oracle.actors import RANGES, TOPICS, Actor, make_actor, metadata
from tests.oracle.driver import Oracle
from tests.oracle.kafka import KafkaWorld, LivelockError
from tests.oracle.memory import Client
from tests.oracle.script import Operation, Script
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

ERRORS = (
    "UNKNOWN_TOPIC_OR_PARTITION",
    "NOT_ENOUGH_REPLICAS",
    "REQUEST_TIMED_OUT",
    "NOT_LEADER_OR_FOLLOWER",
    "KAFKA_STORAGE_ERROR",
    "MESSAGE_TOO_LARGE",
    "RECORD_LIST_TOO_LARGE",
    "INVALID_FETCH_SIZE",
    "NETWORK_EXCEPTION",
    "INVALID_PRODUCER_EPOCH",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "CORRUPT_MESSAGE",
    "UNKNOWN_SERVER_ERROR",
)
"""What a failing append is told (C-10)."""


def _config(rng: random.Random, theme: str) -> dict[str, int]:
    config = {
        "group.initial.rebalance.delay.ms": rng.choice((0, 0, 3000, 3000, 500)),
        "group.coordinator.append.linger.ms": rng.choice((-1, -1, 0, 0, 5, 10)),
        "offsets.topic.num.partitions": rng.choice((1, 1, 2, 3, 50)),
    }
    if theme == "size" or rng.randrange(8) == 0:
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
    walk = _Walk(rng, theme, groups, world)
    try:
        for _ in range(length):
            walk.step()
    except LivelockError:
        world.operations.pop()
    return script.with_operations(world.operations), world


class _Walk:
    def __init__(self, rng: random.Random, theme: str, groups: list[str], world: World) -> None:
        self.rng = rng
        self.world = world
        self.flavour = _flavour(rng, theme, dict(world.script.config))
        self.weights = WEIGHTS | THEMES[theme]
        self.groups = groups
        self.actors: list[Actor] = []
        for _ in range(rng.choice((1, 2, 3, 4))):
            self._new_actor()
        self.transactions = rng.choice(((1,), (1, 2)))

    # ---- choosing

    def step(self) -> None:
        """Choose the next operation and let it happen."""
        while True:
            family = self.rng.choices(list(self.weights), list(self.weights.values()))[0]
            made: Operation | None = getattr(self, f"_{family}")()
            if made is not None:
                self.world.run(_fit(made))
                return

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

    # ---- what a client does next

    def _step(self) -> Operation | None:
        group_id = self.rng.choice(self.groups)
        if self.world.status(self.world.partition_of(group_id)) != "ACTIVE" and self._chance(70):
            return self._failover(group_id)
        actors = [actor for actor in self.actors if actor.group == group_id]
        group = self.world.group(group_id)
        state = group["state"] if group else ""
        parked = {"PreparingRebalance": "joining", "CompletingRebalance": "syncing"}.get(state)
        waiting = [a for a in actors if self._client(a).phase != parked]
        joined = [a for a in waiting if self._client(a).phase == "joined" and self._belongs(a)]
        if state == "PreparingRebalance" and self._chance(30 if waiting else 85):
            return self._until(f"join-{group_id}")
        if state == "CompletingRebalance" and joined and self._chance(70):
            leaders = [
                a for a in joined if group and self._client(a).member_id() == group["leader"]
            ]
            return self._sync(self.rng.choice(leaders if leaders and self._chance(60) else joined))
        settled = [a for a in waiting if self._belongs(a)]
        if state == "Stable" and settled and self._chance(60):
            return self._right_thing(self.rng.choice(settled))
        if not waiting:
            return self._time() if self._chance(50) else self._after_parking(self._actor())
        return self._right_thing(self.rng.choice(waiting))

    def _belongs(self, actor: Actor) -> bool:
        """Does the group still know the client as it knows itself?"""
        client = self._client(actor)
        group = self.world.group(actor.group)
        return (
            group is not None
            and client.generation == group["generation_id"]
            and any(member["member_id"] == client.member_id() for member in group["members"])
        )

    def _until(self, name: str) -> Operation | None:
        for timer in self.world.snapshot["timers"]:
            if timer.get("name") == name:
                wait = timer["deadline"] - self.world.now_ms
                return {"op": "advance", "ms": wait} if 0 <= wait <= 500_000 else None
        return None

    def _after_parking(self, actor: Actor) -> Operation:
        client = self._client(actor)
        if client.phase == "joining" and self._chance(40):
            return actor.join(client.member_id())
        if client.phase == "syncing" and self._chance(40):
            return self._sync(actor)
        group = self.world.group(actor.group)
        if group and self._chance(50):  # a lucky guess of the generation (H-07)
            return actor.request("heartbeat") | {"generation": group["generation_id"]}
        return actor.request("heartbeat")

    def _right_thing(self, actor: Actor) -> Operation:
        client = self._client(actor)
        phase = client.phase
        if phase in ("joining", "syncing"):  # whatever it waits for, the answer does not come
            phase = "lost"
        elif phase in ("joined", "synced") and not self._belongs(actor) and self._chance(60):
            phase = "synced" if self.world.group(actor.group) and self._chance(20) else "lost"
        if phase in ("new", "lost", "refused"):
            return actor.join("" if self._chance(92) else f"@{actor.name}")
        if phase == "required":
            return actor.join(f"@{actor.name}")
        if phase == "joined" and self._chance(88):
            return self._sync(actor)
        group = self.world.group(actor.group)
        if group and group["state"] == "PreparingRebalance" and self._chance(75):
            self._maybe_change(actor, 15)
            return actor.join(f"@{actor.name}")
        if self._chance(25):
            self._maybe_change(actor, 60)
            return actor.join(f"@{actor.name}")
        return self.rng.choice(
            (actor.request("heartbeat"), actor.request("heartbeat"), self._commit(actor))
        )

    def _maybe_change(self, actor: Actor, percent: int) -> None:
        if not self._chance(percent):
            return
        what = self.rng.randrange(5)
        if what == 0 and len(actor.protocols) > 1:
            self.rng.shuffle(actor.protocols)
        elif what == 1:
            actor.session = self.rng.choice((6000, 10000, 20000))
            actor.rebalance = self.rng.choice((5000, 10000, 60000))
        elif what == 2 and len(actor.protocols) > 1:
            actor.protocols.pop(self.rng.randrange(len(actor.protocols)))
        elif what == 3:
            names = [
                n for n in self.flavour["protocols"] if n not in {p for p, _ in actor.protocols}
            ]
            for name in names[:1]:
                actor.protocols.append((name, metadata(self.rng, TOPICS[:1], self.flavour)))
        elif actor.protocols:
            topics = tuple(topic for topic in TOPICS if self._chance(50))
            name = actor.protocols[0][0]
            actor.protocols[0] = (name, metadata(self.rng, topics, self.flavour))

    def _sync(self, actor: Actor) -> Operation:
        client = self._client(actor)
        leads = client.leader == client.member_id() or self._chance(4)
        assignments = []
        if leads:
            known = {self._client(a).member_id(): f"@{a.name}" for a in self.actors}
            for number, member in enumerate(client.members):
                if self._chance(92):
                    assignments.append([known.get(member, member), f"a{number:03x}"])
            if self._chance(5):
                assignments.append(["nobody", "ff"])
            if assignments and self._chance(3):
                assignments.append([assignments[0][0], "dd"])
        given = {}
        if actor.versions["sync"] >= 5:
            given = {
                "type": client.protocol_type or actor.type,
                "name": client.protocol_name or self.flavour["common"],
            }
        return actor.request("sync", assignments=assignments, **given)

    # ---- mischief

    def _twist(self) -> Operation | None:
        actor = self._actor()
        operation = self._right_thing(actor)
        for _ in range(self.rng.choice((1, 1, 2))):
            self._damage(actor, operation)
        return operation

    def _damage(self, actor: Actor, operation: Operation) -> None:
        other = self._actor()
        choices: list[tuple[str, Callable[[], Any]]] = [
            ("member", lambda: self.rng.choice(
                ("", "nobody", f"@{other.name}", f"@{actor.name}~1", self._anybody(actor.group)))),
            ("instance", lambda: self.rng.choice((None, "i0", "i1", "i9", other.instance))),
            ("version", lambda: self.rng.randint(*RANGES[operation["op"]])),
            ("group", lambda: self.rng.choice(("", "gone", self._group()))),
        ]  # fmt: skip
        if "generation" in operation:
            name = actor.name
            group = self.world.group(actor.group)
            now = group["generation_id"] if group else 0
            choices += 2 * [("generation", lambda: self.rng.choice(
                (f"@{name}+1", f"@{name}-1", now, now, -1, -2, f"@{other.name}")))]  # fmt: skip
        if operation["op"] == "join":
            choices += [
                ("protocols", lambda: self._odd_protocols(operation["protocols"])),
                ("type", lambda: self.rng.choice(("", "connect", "consumer", "x"))),
                ("session", lambda: self.rng.choice((0, -1, 1, 5999, 6000, 1800000, 1800001))),
                ("rebalance", lambda: self.rng.choice((-1, 0, 1, 100, 2147483647))),
            ]
        if operation["op"] == "sync":
            choices += 2 * [
                ("type", lambda: self.rng.choice(("consumer", "connect", "x"))),
                ("name", lambda: self.rng.choice(("range", "sticky", "other"))),
            ]
        if operation["op"] == "sync":
            choices.append(("assignments", lambda: [["nobody", "00"], [f"@{other.name}", ""]]))
        field, value = self.rng.choice(choices)
        operation[field] = value()

    def _anybody(self, group_id: str) -> str:
        """The id of some member, also of one that was not told yet."""
        group = self.world.group(group_id)
        members = group["members"] if group else ()
        return str(self.rng.choice(members)["member_id"]) if members else "nobody"

    def _odd_protocols(self, protocols: list[list[str]]) -> list[list[str]]:
        what = self.rng.randrange(4)
        if what == 0:
            return []
        if what == 1:
            return [["other", "00"]]
        if what == 2 and protocols:
            return [*protocols, [protocols[0][0], "0000"]]
        return list(reversed(protocols))

    def _arrive(self) -> Operation | None:
        if len(self.actors) >= 12 or self._chance(8 * len(self.actors)):
            return None
        return self._new_actor().join("")

    def _restart(self) -> Operation | None:
        """A client starts again and knows nothing; a static one takes its place back (J-23)."""
        static = [a for a in self.actors if a.instance is not None]
        actor = self.rng.choice(static) if static and self._chance(85) else self._actor()
        self._maybe_change(actor, 35)
        return actor.join("")

    def _again(self) -> Operation | None:
        """The same request once more (J-37, S-09, J-46)."""
        past = [
            o
            for o in self.world.operations[-6:]
            if o["op"] in ("join", "sync", "heartbeat", "leave")
        ]
        return dict(self.rng.choice(past)) if past else None

    def _leave(self) -> Operation | None:
        actor = self._actor()
        version = actor.versions["leave"]
        members: list[list[str | None]] = []
        for _ in range(1 if version < 3 else self.rng.choice((1, 1, 1, 2, 3))):
            who = self.rng.choice([actor, actor, self._actor()])
            member = self.rng.choice(
                (
                    *(3 * (f"@{who.name}",)),
                    "",
                    "nobody",
                    f"@{who.name}~1",
                    self._pending(actor.group),
                )
            )
            instance = self.rng.choice((who.instance, who.instance, None, "i0", "i9"))
            members.append([member, instance, self.rng.choice((None, "bye", ""))])
        if version >= 3 and self._chance(3):
            members = []
        group = actor.group if self._chance(95) else self.rng.choice(("", "gone", self._group()))
        return {
            "op": "leave",
            "client": actor.name,
            "version": version,
            "group": group,
            "members": members,
        }

    def _pending(self, group: str) -> str:
        for actor in self.actors:
            if actor.group == group and self._client(actor).phase == "required":
                return f"@{actor.name}"
        return "nobody"

    # ---- time

    def _time(self) -> Operation | None:
        now = self.world.now_ms
        deadlines = [d for d in self.world.deadlines() if d >= now]
        if deadlines and self._chance(80):
            near = deadlines[: self.rng.choice((1, 2, 4, 20))]
            goal = self.rng.choice(near) + self.rng.choice((-1, 0, 0, 0, 1))
            if goal - now > 4_000_000 and self._chance(90):
                return None
            return {"op": "advance", "ms": max(0, goal - now)}
        return {
            "op": "advance",
            "ms": self.rng.choice((0, 1, 1, 5, 10, 500, 2999, 3000, 5000, 60000)),
        }

    # ---- offsets

    def _topics(self, version: int, kind: str) -> list[list[Any]]:
        topics = []
        for topic in TOPICS:
            if self._chance(45):
                continue
            partitions = []
            for number in range(self.rng.choice((1, 1, 2))):
                text = self.rng.choice(("", "m", "long metadata", None, "ééé"))
                epoch = (
                    self.rng.choice((-1, 0, 7)) if version >= (6 if kind == "commit" else 2) else -1
                )
                partitions.append([number, self.rng.randrange(1000), epoch, text])
            topics.append([topic, partitions])
        return topics or [["t0", [[0, self.rng.randrange(1000), -1, ""]]]]

    def _commit(self, actor: Actor) -> Operation:
        version = actor.versions["commit"]
        retention = self.rng.choice((-1, -1, 0, 1, 30000, 60000)) if version <= 4 else -1
        return actor.request("commit", retention=retention, topics=self._topics(version, "commit"))

    def _offsets(self) -> Operation | None:
        actor = self._actor()
        what = self.rng.randrange(8)
        if what <= 1:
            return self._commit(actor)
        if what == 2:
            simple = self._commit(actor) | {"member": "", "instance": None, "generation": -1}
            if self._chance(30):
                simple["generation"] = self.rng.choice((0, 1, -5))
            if self._chance(15):
                simple["member"] = "nobody"
            if self._chance(20):
                simple["group"] = self.rng.choice(("simple", "", self._group()))
            return simple
        if what <= 5:
            return self._fetch(actor)
        if what == 6:
            topics = [[topic, [0, 1]] for topic in TOPICS if self._chance(60)]
            return {
                "op": "offset_delete",
                "version": 0,
                "group": self._any_group(),
                "topics": topics,
            }
        if self._chance(70):
            return None
        if self._chance(50):
            return {"op": "topics_deleted", "topics": [self.rng.choice(TOPICS)]}
        return {
            "op": "topics",
            "topics": {self.rng.choice((*TOPICS, "t3")): self.rng.choice((1, 2, 3))},
        }

    def _any_group(self) -> str:
        return self.rng.choice((*self.groups, *self.groups, self.groups[0], "simple", "gone", ""))

    def _fetch(self, actor: Actor) -> Operation:
        version = actor.versions["fetch"]
        groups = []
        for _ in range(1 if version < 8 else self.rng.choice((1, 1, 2, 3))):
            topics: list[list[Any]] | None = [
                [topic, [0, 1]] for topic in TOPICS if self._chance(70)
            ]
            if version >= 2 and self._chance(35):
                topics = None
            member = self.rng.choice((None, f"@{actor.name}")) if version >= 9 else None
            groups.append([self._any_group(), member, -1, topics])
        stable = version >= 7 and self._chance(50)
        return {"op": "fetch", "version": version, "groups": groups, "stable": stable}

    def _transactions(self) -> Operation | None:
        actor = self._actor()
        version = actor.versions["txn_commit"]
        producer = self.rng.choice(self.transactions)
        if self._chance(4):
            error = self.rng.choice(("INVALID_TXN_STATE", "NETWORK_EXCEPTION", *ERRORS[:3]))
            return {"op": "fail_next_verification", "error": error}
        if self._chance(40):
            return {
                "op": "end_txn",
                "group": self._any_group(),
                "producer": producer,
                "epoch": 0,
                "committed": self._chance(60),
            }
        operation = actor.request(
            "txn_commit",
            transaction=f"tx{producer}",
            producer=producer,
            epoch=0,
            topics=self._topics(version, "txn_commit"),
        )
        if version < 3 or self._chance(45):
            operation |= {"member": "", "instance": None, "generation": -1}
        if self._chance(10):
            operation["generation"] = self.rng.choice((0, -1, 1))
        if self._chance(8):
            operation["group"] = self.rng.choice(("simple", "", "gone"))
        return operation

    # ---- looking from outside

    def _admin(self) -> Operation | None:
        actor = self._actor()
        what = self.rng.randrange(4)
        groups = [self._any_group() for _ in range(self.rng.choice((1, 1, 2, 3)))]
        if what <= 1:
            return {"op": "describe", "version": actor.versions["describe"], "groups": groups}
        if what == 2:
            version = actor.versions["list"]
            names = ("Stable", "empty", "PREPARINGREBALANCE", " Dead", "CompletingRebalance", "?")
            return {
                "op": "list",
                "version": version,
                "states": self.rng.sample(names, self.rng.choice((0, 0, 1, 2)))
                if version >= 4
                else [],
                "types": self.rng.choice(([], [], ["classic"], ["Consumer"], ["?"]))
                if version >= 5
                else [],
            }
        return {"op": "delete", "version": actor.versions["delete"], "groups": groups}

    # ---- the log, and who leads it

    def _log(self) -> Operation | None:
        what = self.rng.randrange(8)
        if not self.world.holding and what <= 1:
            return {"op": "hold", "on": True}
        if self.world.uncommitted() and what <= 4:
            if self.world.holding and self._chance(15):
                return {"op": "hold", "on": False}
            return {"op": "commit_appends", "count": self.rng.choice((1, 1, 1, 2, None))}
        if what <= 6:
            partition = self._partition() if self._chance(70) else None
            return {
                "op": "fail_next_append",
                "partition": partition,
                "error": self.rng.choice(ERRORS),
            }
        return {"op": "compact", "partition": self._partition()}

    def _failover(self, group: str | None = None) -> Operation | None:
        partition = self.world.partition_of(group) if group else self._partition()
        status = self.world.status(partition)
        if not status and self.world.held_loads(partition):
            return {"op": "finish_load", "partition": partition, "error": None}
        if self.rng.randrange(300) == 0:
            return {"op": "shutdown"}
        if status == "LOADING":
            if self._chance(10):
                return {
                    "op": self.rng.choice(("load", "unload")),
                    "partition": partition,
                    "epoch": 1,
                }
            if self._chance(60):
                error = None if self._chance(85) else self.rng.choice(ERRORS)
                return {"op": "finish_load", "partition": partition, "error": error}
            return {"op": "hold_load", "on": False} if self._chance(30) else None
        if status == "ACTIVE":
            if self._chance(10):
                return {"op": "load", "partition": partition, "epoch": self.rng.choice((0, 1))}
            epoch = self.rng.choice((1, 1, 1, 1, None, 0, -1))
            return {"op": "unload", "partition": partition, "epoch": epoch}
        if not self.world.holding_loads and self._chance(15):
            return {"op": "hold_load", "on": True}
        if self._chance(20):
            return {"op": self.rng.choice(("truncate", "compact")), "partition": partition}
        return {"op": "load", "partition": partition, "epoch": self.rng.choice((1, 1, 1, 1, 2, 0))}


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
