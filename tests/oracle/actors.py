"""The clients a script speaks for: what they offer, in which versions, and how they would go on."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

__all__ = ["TOPICS", "Actor", "make_actor", "subscription"]

TOPICS = ("t0", "t1", "t2")
UNREADABLE = ("", "00", "ff", "0000ffffffff", "000000000001000174", "0000000000030002")
"""Subscriptions that Kafka cannot read (PR-15: the group's topics stay unknown), or barely."""


def subscription(topics: tuple[str, ...], version: int = 0, tail: bytes = b"") -> str:
    """A consumer protocol subscription as hex text: version, topics, user data, ``tail``."""
    body = version.to_bytes(2, "big", signed=True) + len(topics).to_bytes(4, "big")
    for topic in topics:
        body += len(topic).to_bytes(2, "big") + topic.encode()
    return (body + b"\xff\xff\xff\xff" + tail).hex()


@dataclass(slots=True)
class Actor:
    """One client of a script. ``versions``: kind of operation → API version it speaks."""

    name: str
    group: str
    instance: str | None
    client_id: str
    versions: dict[str, int]
    session: int
    rebalance: int
    type: str
    protocols: list[tuple[str, str]] = field(default_factory=list)

    def join(self, member: str) -> dict[str, Any]:
        """A JoinGroup as this client would send it."""
        return {
            "op": "join",
            "client": self.name,
            "version": self.versions["join"],
            "group": self.group,
            "member": member,
            "instance": self.instance,
            "type": self.type,
            "protocols": [list(protocol) for protocol in self.protocols],
            "session": self.session,
            "rebalance": self.rebalance,
            "client_id": self.client_id,
        }

    def request(self, kind: str, **fields: Any) -> dict[str, Any]:
        """A request about a membership: client, version, group, member, instance, generation."""
        return {
            "op": kind,
            "client": self.name,
            "version": self.versions[kind],
            "group": self.group,
            "member": f"@{self.name}",
            "instance": self.instance,
            "generation": f"@{self.name}",
            **fields,
        }


RANGES = {
    "join": (0, 9),
    "sync": (0, 5),
    "heartbeat": (0, 4),
    "leave": (0, 5),
    "commit": (2, 10),
    "txn_commit": (0, 6),
    "fetch": (1, 10),
    "describe": (0, 6),
    "list": (0, 5),
    "delete": (0, 3),
    "offset_delete": (0, 0),
}
"""Kind of request → API versions, oldest and newest."""


def make_actor(rng: random.Random, number: int, group: str, flavour: dict[str, Any]) -> Actor:
    """A client. ``flavour`` of the script: static (percent), names of protocols, timeouts, type."""
    static = rng.randrange(100) < flavour["static"]
    versions = {kind: rng.randint(low, high) for kind, (low, high) in RANGES.items()}
    if rng.randrange(100) < flavour["newest"]:
        versions = {kind: high for kind, (_, high) in RANGES.items()}
    if static:
        for kind, least in (
            ("join", 5),
            ("sync", 3),
            ("heartbeat", 3),
            ("leave", 3),
            ("commit", 7),
        ):
            versions[kind] = max(versions[kind], least)
    names = list(flavour["protocols"])
    rng.shuffle(names)
    offered = names[: rng.randint(1, len(names))]
    if flavour["common"] not in offered:
        offered.insert(rng.randint(0, len(offered)), flavour["common"])
    topics = tuple(topic for topic in TOPICS if rng.randrange(2))
    return Actor(
        name=f"c{number}",
        group=group,
        instance=f"i{rng.randrange(flavour['instances'])}" if static else None,
        client_id=rng.choice(("app", "app", "", "ü-client", f"k{number}")),
        versions=versions,
        session=rng.choice(flavour["sessions"]),
        # a static member with no time to rejoin makes Kafka spin (PR-13)
        rebalance=max(rng.choice(flavour["rebalances"]), 100 if static else -5),
        type=flavour["type"],
        protocols=[(name, metadata(rng, topics, flavour)) for name in offered],
    )


def metadata(rng: random.Random, topics: tuple[str, ...], flavour: dict[str, Any]) -> str:
    """What a member says with a protocol: mostly a subscription, at times something unreadable."""
    if rng.randrange(100) < flavour["unreadable"]:
        return rng.choice(UNREADABLE)
    version = rng.choice((0, 0, 0, 1, 3, 9, -1))
    tail = rng.choice((b"", b"", b"\x00\x00\x00\x00", b"\x00\x00\x00\x00\xff\xff\xff\xff"))
    return subscription(topics, version, tail)
