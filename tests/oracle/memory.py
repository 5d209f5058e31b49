"""What the clients of a script were told: resolves ``"@c3"`` and follows each client's life."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.script import Operation

__all__ = ["Client", "Memory"]

_REFERENCE = re.compile(r"@(?P<client>[a-z0-9]+)(?:~(?P<back>\d+))?(?P<plus>[+-]\d+)?$")


@dataclass(slots=True)
class Client:
    """One client as its answers left it.

    ``phase``: new (knows nothing), required (was told its id), joining (its join is parked),
    joined (has a generation), syncing (its sync is parked), synced, lost (was told that its
    membership is void), refused (by anything else).
    """

    ids: list[str] = field(default_factory=list)
    generation: int = -1
    leader: str = ""
    protocol_type: str | None = None
    protocol_name: str | None = None
    members: list[str] = field(default_factory=list)
    skip_assignment: bool = False
    phase: str = "new"

    def member_id(self, back: int = 0) -> str:
        """The id answered ``back`` times before the last one; "" when there is none."""
        return self.ids[-1 - back] if back < len(self.ids) else ""


LOST = {"UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID"}
RETRIABLE = {"COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"}


class Memory:
    """All clients of a run. ``sent`` and ``answered`` keep it; ``resolve`` uses it."""

    def __init__(self) -> None:
        self._clients: dict[str, Client] = {}
        self._waiting: dict[int, Operation] = {}

    def client(self, name: str) -> Client:
        """A client by name; one that was never heard of knows nothing."""
        return self._clients.setdefault(name, Client())

    def _member(self, text: str) -> str:
        found = _REFERENCE.match(text)
        if not found:
            return text
        return self.client(found["client"]).member_id(int(found["back"] or 0))

    def _generation(self, value: int | str) -> int:
        if isinstance(value, int):
            return value
        found = _REFERENCE.match(value)
        if found is None:
            raise ValueError(f"not a generation: {value!r}")
        return self.client(found["client"]).generation + int(found["plus"] or 0)

    def resolve(self, operation: Operation) -> Operation:
        """The operation with every reference replaced by what it stands for now."""
        concrete = dict(operation)
        if "member" in concrete:
            concrete["member"] = self._member(concrete["member"])
        if "generation" in concrete:
            concrete["generation"] = self._generation(concrete["generation"])
        if "assignments" in concrete:
            concrete["assignments"] = [
                [self._member(member), data] for member, data in concrete["assignments"]
            ]
        if "members" in concrete:
            concrete["members"] = [
                [self._member(member), *rest] for member, *rest in concrete["members"]
            ]
        if concrete["op"] == "fetch":
            concrete["groups"] = [
                [group, member and self._member(member), epoch, topics]
                for group, member, epoch, topics in concrete["groups"]
            ]
        return concrete

    def sent(self, token: int, operation: Operation) -> None:
        """A request left a client."""
        kind = operation["op"]
        if kind not in ("join", "sync", "heartbeat", "commit"):
            return
        self._waiting[token] = operation
        client = self.client(operation["client"])
        if kind == "join":
            client.phase = "joining"
        elif kind == "sync":
            client.phase = "syncing"

    def answered(self, token: int, response: dict[str, Any], error: str) -> None:
        """A request was answered: ``response`` is Kafka's JSON, ``error`` its top-level code."""
        operation = self._waiting.pop(token, None)
        if operation is None:
            return
        client = self.client(operation["client"])
        if operation["op"] == "join":
            self._joined(client, response, error)
        elif operation["op"] == "sync" and client.phase == "syncing":
            client.phase = {"NONE": "synced"}.get(error, "lost" if error in LOST else "joined")
        elif error in LOST:
            client.phase = "lost"

    @staticmethod
    def _joined(client: Client, response: dict[str, Any], error: str) -> None:
        member_id = response["memberId"]
        if (
            member_id
            and member_id != client.member_id()
            and error in ("NONE", "MEMBER_ID_REQUIRED")
        ):
            client.ids.append(member_id)
        if error == "NONE":
            client.phase = "joined"
            client.generation = response["generationId"]
            client.leader = response["leader"]
            client.protocol_type = response.get("protocolType")
            client.protocol_name = response["protocolName"]
            client.members = [member["memberId"] for member in response["members"]]
            client.skip_assignment = response.get("skipAssignment", False)
        elif error == "MEMBER_ID_REQUIRED" or (error in RETRIABLE and client.ids):
            client.phase = "required"
        else:
            client.phase = (
                "lost" if error in LOST or error == "GROUP_MAX_SIZE_REACHED" else "refused"
            )
