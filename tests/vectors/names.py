"""Names for random groups: ordinary ones, and ones chosen to meet in Java's hash tables."""

from __future__ import annotations

import random
import uuid

from groupsim.protocol.java import java_string_hash, spread

__all__ = ["member_ids", "topic_names"]

_BUCKETS = 16  # HashMap's first table
_MOST_IN_BUCKET = 7  # with more, big tables may get trees, which are not modelled


def topic_names(rng: random.Random, count: int) -> list[str]:
    """Distinct topic names."""
    style = rng.choice(("t{}", "topic-{}", "tens", "twins", "crowd", "mixed", "far"))
    if style == "tens":  # t00-9 and t10-8 have one hash code
        names = [f"t{number}0" for number in range(count)]
    elif style == "twins":
        names = _twins(rng, min(count, _MOST_IN_BUCKET))
    elif style == "crowd":
        names = _crowd(rng, count)
    elif style == "mixed":
        names = [rng.choice(("a{}", "orders.v{}", "x.y_{}")).format(n) for n in range(count)]
    elif style == "far" and rng.random() < 0.3:  # Java and Python disagree on their order
        names = [rng.choice(("\ue000{}", "\U0001f600{}", "é{}")).format(n) for n in range(count)]
    else:
        names = [(style if "{" in style else "p{}").format(number) for number in range(count)]
    rng.shuffle(names)
    return names


def member_ids(rng: random.Random, count: int) -> list[str]:
    """Distinct member ids, in the order in which the leader sees them."""
    style = rng.choice(("java", "java", "short", "hex", "twins", "crowd"))
    if style == "twins" and count <= _MOST_IN_BUCKET:
        ids = _twins(rng, count)
    elif style == "crowd" and count <= 20:
        ids = _crowd(rng, count)
    elif style == "short":
        ids = [f"{rng.choice('abcm')}{number}" for number in range(count)]
    elif style == "hex":
        ids = [f"c{number}{rng.getrandbits(rng.choice((8, 64, 200))):x}" for number in range(count)]
    else:
        ids = [f"consumer-g-{number}-{_uuid(rng)}" for number in range(count)]
    rng.shuffle(ids)
    return ids


def _twins(rng: random.Random, count: int) -> list[str]:
    """Up to 16 strings with the same hash code, of which few enough are used."""
    names = [a + b + c + d for a in _PAIR for b in _PAIR for c in _PAIR for d in _PAIR]
    assert count <= _MOST_IN_BUCKET
    return rng.sample(names, count)


_PAIR = ("Aa", "BB")


def _crowd(rng: random.Random, count: int) -> list[str]:
    """Ids that share one bucket of 16, so that the table doubles early (A-06, exception ii)."""
    bucket = rng.randrange(_BUCKETS)
    ids: list[str] = []
    number = rng.randrange(1000)
    while len(ids) < count:
        number += 1
        name = f"m{number}"
        hashed = spread(java_string_hash(name))
        meeting = [i for i in ids if (spread(java_string_hash(i)) ^ hashed) & 63 == 0]
        if hashed % _BUCKETS == bucket and len(meeting) < _MOST_IN_BUCKET:
            ids.append(name)
    return ids


def _uuid(rng: random.Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))
