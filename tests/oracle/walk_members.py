"""Moves of the random walk: what members do, rightly and wrongly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.oracle.actors import RANGES, TOPICS, Actor, metadata
from tests.oracle.script import Operation
from tests.oracle.walk_cluster import ClusterMoves
from tests.oracle.walk_offsets import OffsetMoves

__all__ = ["MemberMoves"]


class MemberMoves(ClusterMoves, OffsetMoves):
    """Joins, syncs, heartbeats and leaves; restarts, repetitions and damaged requests."""

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
            return self._until(f"join-{group_id}" if self._chance(85) else f"heartbeat-{group_id}-")
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
        if self._chance(30):
            return self._lucky_guess(actor)
        operation = self._right_thing(actor)
        for _ in range(self.rng.choice((1, 1, 2))):
            self._damage(actor, operation)
        return operation

    def _lucky_guess(self, actor: Actor) -> Operation:
        """A request out of place, but with an id and a generation that the group has."""
        group = self.world.group(actor.group)
        kind = self.rng.choice(("heartbeat", "sync", "commit", "txn_commit", "leave"))
        if kind == "leave":
            members = [[self._anybody(actor.group), None, None]]
            return {
                "op": "leave",
                "client": actor.name,
                "version": actor.versions["leave"],
                "group": actor.group,
                "members": members,
            }
        operation = {
            "heartbeat": lambda: actor.request("heartbeat"),
            "sync": lambda: self._sync(actor),
            "commit": lambda: self._commit(actor),
            "txn_commit": lambda: self._txn_commit(actor),
        }[kind]()
        operation |= {"member": self._anybody(actor.group), "instance": None}
        if group:
            operation["generation"] = group["generation_id"] + self.rng.choice((0, 0, 0, 1))
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
