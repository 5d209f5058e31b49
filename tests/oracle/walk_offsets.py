"""Moves of the random walk: offsets, transactions, and looking at groups from outside."""

from __future__ import annotations

from typing import Any

from tests.oracle.actors import TOPICS, Actor
from tests.oracle.script import Operation
from tests.oracle.walk import Walk
from tests.oracle.walk_cluster import ERRORS

__all__ = ["OffsetMoves"]


class OffsetMoves(Walk):
    """Commits, fetches, deletions, transactions, Describe, List and DeleteGroups."""

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
        operation = self._txn_commit(actor, producer)
        if version < 3 or self._chance(45):
            operation |= {"member": "", "instance": None, "generation": -1}
        if self._chance(10):
            operation["generation"] = self.rng.choice((0, -1, 1))
        if self._chance(8):
            operation["group"] = self.rng.choice(("simple", "", "gone"))
        return operation

    def _txn_commit(self, actor: Actor, producer: int = 1) -> Operation:
        version = actor.versions["txn_commit"]
        return actor.request(
            "txn_commit",
            transaction=f"tx{producer}",
            producer=producer,
            epoch=0,
            topics=self._topics(version, "txn_commit"),
        )

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
