"""A short way to write groups down, and to ask an assignor about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groupsim_clients.assignors import Assignor, make_assignor
from tests.vectors.cases import evaluate_round

__all__ = ["assigned", "group", "member", "partitions", "racks", "sticky_claim"]


def partitions(text: str) -> list[list[Any]]:
    """``"t0-0 t1-2"`` → [["t0", 0], ["t1", 2]]."""
    pairs = (word.rsplit("-", 1) for word in text.split())
    return [[topic, int(number)] for topic, number in pairs]


def member(member_id: str, topics: str, **fields: Any) -> dict[str, Any]:
    """A member in the vector format; ``owned`` is written as for ``partitions``.

    Version 3 and no generation unless given.
    """
    owned = partitions(fields.pop("owned", ""))
    return {
        "id": member_id,
        "topics": topics.split(),
        "owned": owned,
        "gen": -1,
        "ver": 3,
        **fields,
    }


def sticky_claim(generation_id: int, claimed: str) -> dict[str, Any]:
    """User data of the sticky assignor."""
    return {"gen": generation_id, "parts": partitions(claimed)}


def racks(*of_partitions: str) -> list[list[str | None]]:
    """Each word is a partition, each letter the rack of a replica; ``-`` is no rack."""
    return [[None if rack == "-" else rack for rack in word] for word in of_partitions]


def group(
    topics: Mapping[str, int | list[list[str | None]]], members: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """A round of the vector format; a number of partitions stands for as many without racks."""
    found = {
        topic: [[None]] * known if isinstance(known, int) else known
        for topic, known in topics.items()
    }
    return {"topics": found, "members": list(members)}


def assigned(
    assignor: str | Assignor,
    topics: Mapping[str, int | list[list[str | None]]],
    members: Sequence[Mapping[str, Any]],
) -> dict[str, str]:
    """Member id → its partitions as text, in order; ``{"!": exception}`` where Java throws."""
    if isinstance(assignor, str):
        assignor = make_assignor(assignor)
    result = evaluate_round(assignor, group(topics, members))["result"]
    if "!" in result:
        return {"!": result["!"]}
    return {m: " ".join(f"{topic}-{n}" for topic, n in plan) for m, plan in result.items()}
