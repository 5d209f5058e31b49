"""Random groups for the live comparison: untidy on purpose.

A case depends on (seed, number) alone. The randomness is in choosing *styles* for a whole group
(how ids look, whether subscriptions are equal, who has racks, how honest the claims are), since
independent noise everywhere would never produce the regular groups that most code is about.
"""

from __future__ import annotations

import random
from typing import Any

from groupsim.protocol.consumer_protocol import TopicPartition
from groupsim_clients.assignors.sticky import encode_user_data
from tests.vectors.names import member_ids, topic_names
from tests.vectors.story import rounds_of_a_story

__all__ = ["random_case"]

KINDS = ("cooperative-sticky", "sticky", "range", "roundrobin")
_RACKS = ("a", "b", "c", "z")


def random_case(seed: str, number: int) -> dict[str, Any]:
    """The inputs of one case, to be completed with Java's results."""
    rng = random.Random(f"{seed}/{number}")
    (kind,) = rng.choices(KINDS, weights=(8, 8, 3, 1))
    if rng.random() < 0.15:
        rounds = rounds_of_a_story(rng, kind)
    else:
        # A second, unrelated group for the same object shows what it remembers.
        rounds = [_group(rng, kind) for _ in range(rng.choices((1, 2), weights=(5, 1))[0])]
    return {"case": f"{seed}/{number}", "kind": kind, "rounds": rounds}


def _group(rng: random.Random, kind: str) -> dict[str, Any]:
    topics = random_topics(rng)
    count = rng.choices(
        (rng.randint(1, 4), rng.randint(4, 12), rng.randint(12, 40), rng.randint(40, 110)),
        weights=(20, 14, 5, 1),
    )[0]
    ids = member_ids(rng, count)
    subscriptions = _subscriptions(rng, list(topics), count)
    claims = _claims(rng, topics, subscriptions)
    if count and rng.random() < 0.08:
        _add_phantoms(rng, topics, subscriptions, claims)
    racks = rng.choice((0.0, 0.0, 0.5, 1.0))
    static = rng.choice((0.0, 0.0, 0.3, 1.0))
    old_versions = rng.choice((0.0, 0.0, 0.0, 0.2))
    generations = rng.choice(((5,), (5,), (4, 5), (-1, 4, 5), (-1,), (5, 2**31 - 1)))
    members = []
    for member_id, subscribed, claim in zip(ids, subscriptions, claims, strict=True):
        member: dict[str, Any] = {
            "id": member_id,
            "topics": subscribed,
            "owned": [],
            "gen": rng.choice(generations),
            "ver": rng.randint(0, 2) if rng.random() < old_versions else 3,
        }
        _add_claim(rng, kind, member, claim)
        if rng.random() < static:
            member["inst"] = f"i{rng.randrange(10**6)}"
        if rng.random() < racks:
            member["rack"] = rng.choice(_RACKS[: rng.choice((1, 3, 4))])
        members.append(member)
    group: dict[str, Any] = {"topics": topics, "members": members}
    if rng.random() < 0.2:
        told = _distinct(claims[0]) if claims else []
        group = {"told": {"gen": rng.choice(generations), "parts": told}, **group}
    return group


def random_topics(rng: random.Random) -> dict[str, list[list[str | None]]]:
    """Topic → partitions, each the racks of its replicas."""
    names = topic_names(rng, rng.choice((0, 1, 1, 2, 2, 3, 4, 5, 8, 20)))
    most = rng.choice((1, 2, 3, 7, 14, 40))
    racks: tuple[str | None, ...] = rng.choice(((None,), (None,), ("a",), ("a", "b"), _RACKS[:3]))
    if rng.random() < 0.2:
        racks = (*racks, None)
    replicas = rng.choice((1, 1, 2, 3))
    fixed = rng.randint(1, most) if rng.random() < 0.3 else None  # co-partitioned
    topics: dict[str, list[list[str | None]]] = {}
    for name in names:
        count = fixed or rng.choice((0, 1, rng.randint(1, most), rng.randint(1, most)))
        topics[name] = [[rng.choice(racks) for _ in range(replicas)] for _ in range(count)]
    return topics


def _subscriptions(rng: random.Random, topics: list[str], count: int) -> list[list[str]]:
    known = topics + (["gone"] if rng.random() < 0.15 else [])
    style = rng.choice(("equal", "equal", "one off", "subsets", "few", "sparse"))
    if style in {"equal", "one off"}:
        base = rng.sample(known, rng.randint(min(1, len(known)), len(known)))
        lists = [rng.sample(base, len(base)) for _ in range(count)]
        if style == "one off" and lists:
            lists[rng.randrange(count)] = rng.sample(known, rng.randint(0, len(known)))
    else:
        most = {"subsets": len(known), "few": 2, "sparse": 1}[style]
        lists = [rng.sample(known, min(len(known), rng.randint(0, most))) for _ in range(count)]
    if rng.random() < 0.03 and lists:
        twice = rng.choice(lists)
        twice += twice[:1]  # no Java client writes a topic twice
    return lists


def _claims(
    rng: random.Random, topics: dict[str, list[list[str | None]]], subscriptions: list[list[str]]
) -> list[list[list[Any]]]:
    """What each member says it had: an old plan, made untidy."""
    claims: list[list[list[Any]]] = [[] for _ in subscriptions]
    style = rng.choice(("none", "spread", "spread", "heaped", "heaped", "partly"))
    if style == "none" or not subscriptions:
        return claims
    everything = [[topic, n] for topic, found in topics.items() for n in range(len(found))]
    rng.shuffle(everything)
    heaps = [rng.randrange(len(claims)) for _ in range(rng.randint(1, 3))]
    for partition in everything:
        if style == "partly" and rng.random() < 0.5:
            continue
        takers = heaps if style == "heaped" else range(len(claims))
        willing = [t for t in takers if partition[0] in subscriptions[t] or rng.random() < 0.02]
        if willing:
            claims[rng.choice(willing)].append(partition)
    mess = rng.choice((0.0, 0.0, 0.1, 0.4))
    for claim in claims:
        if everything and rng.random() < mess:
            claim += [rng.choice(everything) for _ in range(rng.randint(1, 4))]
        if everything and rng.random() < mess / 4:
            claim.append([rng.choice(everything)[0], rng.randint(0, 20)])
        if rng.random() < mess / 4:
            claim.append(["gone", 0])
    return claims


def _add_phantoms(
    rng: random.Random,
    topics: dict[str, list[list[str | None]]],
    subscriptions: list[list[str]],
    claims: list[list[list[Any]]],
) -> None:
    """Fill one member up with partitions that do not exist, of a topic of its own: it counts as
    complete and leaves the rebalancing, though others share its other topics (A-65, X3, X4).
    """
    member = rng.randrange(len(claims))
    topics["solo"] = [[rng.choice((None, "a"))]]
    subscriptions[member].append("solo")
    for claim in claims:
        if rng.random() < 0.5:
            claim.clear()
    phantoms = [["solo", number] for number in range(rng.randint(2, 30))]
    claims[member] = rng.sample(phantoms, len(phantoms))


def _add_claim(rng: random.Random, kind: str, member: dict[str, Any], claim: list[Any]) -> None:
    generation = member["gen"] if rng.random() < 0.8 else rng.choice((-1, 3, 4, 5))
    if kind == "cooperative-sticky":
        member["owned"] = claim
        if rng.random() < 0.7:
            member["ud"] = {"gen": generation}
    elif kind == "sticky":
        if claim or rng.random() < 0.5:
            member["ud"] = {"gen": generation, "parts": claim}
        if rng.random() < 0.1:
            member["owned"] = claim
    if rng.random() < 0.02:
        member.pop("ud", None)
        member["raw"] = rng.randbytes(rng.choice((0, 1, 3, 4, 9, 40))).hex()
    elif kind == "sticky" and "ud" in member and rng.random() < 0.05:
        member["raw"] = _damaged(rng, member.pop("ud"))


def _damaged(rng: random.Random, user_data: dict[str, Any]) -> str:
    """User data cut off (4 bytes less is version 0, without generation) or with bytes behind it."""
    partitions = [TopicPartition(topic, number) for topic, number in user_data["parts"]]
    data = encode_user_data(partitions, user_data["gen"])
    cut = rng.choice((1, 4, 4, 4, 5, len(data)))
    return (data + b"\0\0" if rng.random() < 0.2 else data[: len(data) - cut]).hex()


def _distinct(partitions: list[list[Any]]) -> list[list[Any]]:
    return [list(p) for p in dict.fromkeys((topic, number) for topic, number in partitions)]
