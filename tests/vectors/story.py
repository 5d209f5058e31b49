"""Random sequences of rounds: one leader's assignor object, members that come, go and stay behind."""

from __future__ import annotations

import random
from typing import Any

from groupsim.protocol.consumer_protocol import Assignment, TopicPartition
from groupsim_clients.assignors import Assignor, make_assignor
from tests.vectors.cases import evaluate_round
from tests.vectors.names import member_ids

__all__ = ["rounds_of_a_story"]

_MOST_MEMBERS = 12  # at one time
_MOST_ROUNDS = 6


class _Member:
    """A client with its own assignor object, that may have missed the last assignment."""

    def __init__(self, member_id: str, kind: str, topics: list[str], rack: str | None) -> None:
        self.member_id = member_id
        self.assignor = make_assignor(kind)
        self.topics = topics
        self.rack = rack
        self.owned: list[list[Any]] = []
        self.generation_id = -1

    def joins(self, *, eager: bool) -> dict[str, Any]:
        """Its part of a round. An eager client has given everything up before it joins."""
        sent = self.assignor.subscription_user_data(self.topics)
        fields: dict[str, Any] = {
            "id": self.member_id,
            "topics": self.topics,
            "owned": [] if eager else self.owned,
            "gen": self.generation_id,
            "ver": 3,
        }
        if sent is not None:
            fields["raw"] = sent.hex()
        if self.rack is not None:
            fields["rack"] = self.rack
        return fields

    def gets(self, partitions: list[list[Any]], generation_id: int) -> None:
        """Its SyncGroup response."""
        self.owned = partitions
        self.generation_id = generation_id
        assigned = Assignment(partitions=tuple(TopicPartition(t, n) for t, n in partitions))
        self.assignor.on_assignment(assigned, generation_id)

    def forgets(self, rng: random.Random) -> None:
        """Loses its membership: the generation, and sometimes what it owned."""
        self.generation_id = -1
        if rng.random() < 0.7:
            self.owned = []


def rounds_of_a_story(rng: random.Random, kind: str) -> list[dict[str, Any]]:
    """Rounds in which the claims come from the results of the rounds before."""
    topics = {f"t{n}": _partitions(rng, rng.randint(1, 9)) for n in range(rng.randint(1, 4))}
    ids = iter(member_ids(rng, _MOST_MEMBERS * _MOST_ROUNDS))
    unequal = rng.random() < 0.5
    racks = rng.random() < 0.3
    members: list[_Member] = []
    leader = make_assignor(kind)
    told: dict[str, Any] | None = None
    rounds: list[dict[str, Any]] = []
    for generation_id in range(1, rng.randint(2, _MOST_ROUNDS) + 1):
        _churn(rng, members, topics)
        while not members or (len(members) < _MOST_MEMBERS and rng.random() < 0.6):
            subscribed = list(topics)
            if unequal:
                subscribed = rng.sample(subscribed, rng.randint(1, len(subscribed)))
            rack = rng.choice("ab") if racks else None
            members.append(_Member(next(ids), kind, subscribed, rack))
        one: dict[str, Any] = {} if told is None else {"told": told}
        one["topics"] = {topic: list(partitions) for topic, partitions in topics.items()}
        one["members"] = [m.joins(eager=kind != "cooperative-sticky") for m in members]
        rounds.append(one)
        told = _finish(rng, leader, one, members, generation_id)
    return rounds


def _churn(rng: random.Random, members: list[_Member], topics: dict[str, Any]) -> None:
    """Members leave or lose their generation; a topic grows or vanishes."""
    members[:] = [member for member in members if rng.random() > 0.15]
    for member in members:
        if rng.random() < 0.1:
            member.forgets(rng)
    rng.shuffle(members)
    if rng.random() < 0.3:
        topic = rng.choice(list(topics))
        topics[topic] = topics[topic] + _partitions(rng, rng.randint(1, 3))
    elif len(topics) > 1 and rng.random() < 0.1:
        del topics[rng.choice(list(topics))]


def _partitions(rng: random.Random, count: int) -> list[list[str | None]]:
    return [[rng.choice("ab")] for _ in range(count)]


def _finish(
    rng: random.Random,
    leader: Assignor,
    one: dict[str, Any],
    members: list[_Member],
    generation_id: int,
) -> dict[str, Any] | None:
    """Hand the results out; some members miss them. Returns what the leader itself was told."""
    result = evaluate_round(leader, one)["result"]
    if "!" in result:
        return None
    for member in members:
        if rng.random() < 0.9:
            member.gets(result[member.member_id], generation_id)
    return {"gen": generation_id, "parts": result[members[0].member_id]}
