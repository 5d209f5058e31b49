"""Short ways to say what happens to one classic group, for tests of the driver."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from tests.oracle.driver import Oracle, Result

__all__ = ["CONFIG", "Story", "answers", "errors", "topic"]

CONFIG = {"offsets.topic.num.partitions": 1, "group.min.session.timeout.ms": 1}

Json = dict[str, Any]


def answers(result: Result) -> dict[int, Json]:
    """Responses completed by a command, by token."""
    return {done["token"]: done["response"] for done in result["completed"]}


def errors(result: Result) -> list[int]:
    """Top-level error codes completed by a command, in order."""
    return [done["response"]["errorCode"] for done in result["completed"]]


def topic(offset: int) -> Json:
    """Partition 0 of topic ``t0`` in a commit."""
    return {"name": "t0", "partitions": [{"partitionIndex": 0, "committedOffset": offset}]}


class Story:
    """Commands about the group ``g`` on a fresh coordinator with one offsets partition.

    Each request gets the next token, which is kept in ``token``.
    """

    def __init__(self, oracle: Oracle, **config: object) -> None:
        self.oracle = oracle
        self.token = 0
        settings = {name.replace("_", "."): value for name, value in config.items()}
        oracle.reset(seed="story", config={**CONFIG, **settings}, topics={"t0": 4, "t1": 1})

    def request(self, op: str, version: int, body: Json, **fields: object) -> Result:
        """Send any request."""
        self.token += 1
        return self.oracle.ask(op, token=self.token, version=version, request=body, **fields)

    def join(
        self,
        *,
        version: int = 9,
        member: str = "",
        instance: str | None = None,
        session: int = 10_000,
        rebalance: int = 10_000,
        protocols: Sequence[str] = ("range",),
    ) -> Result:
        """A JoinGroup of protocol type ``consumer`` with empty metadata."""
        body: Json = {
            "groupId": "g",
            "memberId": member,
            "groupInstanceId": instance,
            "sessionTimeoutMs": session,
            "rebalanceTimeoutMs": rebalance,
            "protocolType": "consumer",
            "protocols": [{"name": name} for name in protocols],
        }
        return self.request("join", version, body)

    def sync(
        self,
        member: str,
        generation: int,
        *,
        instance: str | None = None,
        assignments: Mapping[str, bytes] | None = None,
    ) -> Result:
        """A SyncGroup, version 4; ``assignments`` are by member id."""
        body: Json = {
            "groupId": "g",
            "memberId": member,
            "generationId": generation,
            "groupInstanceId": instance,
            "assignments": [
                {"memberId": to, "assignment": base64.b64encode(data).decode()}
                for to, data in (assignments or {}).items()
            ],
        }
        return self.request("sync", 4, body)

    def heartbeat(self, member: str, generation: int) -> Result:
        """A Heartbeat, version 4."""
        body = {"groupId": "g", "memberId": member, "generationId": generation}
        return self.request("heartbeat", 4, body)

    def commit(self, offset: int, *, partition: int = 0, **fields: object) -> Result:
        """An OffsetCommit of a consumer that is in no group, for topic ``t0``."""
        partitions = [{"partitionIndex": partition, "committedOffset": offset}]
        body = {"groupId": "g", "topics": [{"name": "t0", "partitions": partitions}]}
        return self.request("commit", 9, body, **fields)

    def advance(self, ms: int) -> Result:
        """Let virtual time pass."""
        return self.oracle.ask("advance", ms=ms)

    def partition(self) -> Json:
        """The snapshot of the only partition."""
        partition: Json = self.oracle.ask("snapshot")["snapshot"]["partitions"][0]
        return partition

    def group(self) -> Json:
        """The snapshot of the group."""
        group: Json = self.partition()["groups"][0]
        return group

    def members(self) -> list[str]:
        """Member ids in Kafka's order."""
        return [member["member_id"] for member in self.group()["members"]]

    def completed_join(
        self, *instances: str, session: int = 10_000, rebalance: int = 10_000
    ) -> dict[str, str]:
        """Static members join an empty group until its first generation; ids by instance."""
        for instance in instances:
            self.join(instance=instance, session=session, rebalance=rebalance)
        self.advance(max(3000, rebalance))
        group = self.group()
        assert (group["state"], group["generation_id"]) == ("CompletingRebalance", 1)
        return {member["group_instance_id"]: member["member_id"] for member in group["members"]}

    def stable(
        self, *instances: str, session: int = 10_000, rebalance: int = 10_000
    ) -> dict[str, str]:
        """As :meth:`completed_join`, and everybody has synced. Assignments are instance names."""
        ids = self.completed_join(*instances, session=session, rebalance=rebalance)
        leader = self.group()["leader"]
        for instance, member in ids.items():
            if member != leader:
                self.sync(member, 1, instance=instance)
        self.sync(leader, 1, assignments={to: name.encode() for name, to in ids.items()})
        assert self.group()["state"] == "Stable"
        return ids
