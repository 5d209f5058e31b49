"""Who owned what before: the part that both sticky variants share (A-30 to A-45)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from groupsim.protocol.consumer_protocol import NO_GENERATION, Subscription, TopicPartition
from groupsim_clients.assignors.base import GroupMember

__all__ = ["Claim", "Ownership", "collect_ownership"]


@dataclass(frozen=True, slots=True)
class Claim:
    """What a sticky assignor reads out of one subscription (Java: ``MemberData``).

    ``generation`` is −1 when absent; Java treats the two alike everywhere (A-30).
    """

    partitions: Sequence[TopicPartition]
    generation: int


@dataclass(slots=True)
class Ownership:
    """The outcome of walking all members once, in map order.

    ``owned``: member id → its partitions of participating topics, in the order claimed.
    ``multiply_claimed``: claimed by several members with the same generation, so owned by none.
    ``subscriptions_equal`` chooses the algorithm (A-45). ``claims`` are kept for the general one.
    """

    owned: dict[str, list[TopicPartition]] = field(default_factory=dict)
    multiply_claimed: dict[TopicPartition, None] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)
    subscriptions_equal: bool = True
    max_generation: int = NO_GENERATION


def collect_ownership(
    members: Sequence[GroupMember],
    topics: Collection[str],
    read_claim: Callable[[Subscription], Claim],
    max_generation: int,
) -> Ownership:
    """Walk ``members``, which are in map order (A-40 to A-44). Mirrors ``allSubscriptionsEqual``.

    ``max_generation`` is the highest generation the assignor has seen so far (A-32).
    """
    result = Ownership(max_generation=max_generation)
    walk = _Walk(members, topics, result)
    yardstick: frozenset[str] = frozenset()
    for member in members:
        subscribed = member.subscription.topics
        if not yardstick:  # an empty list before the yardstick goes unnoticed (X1)
            yardstick = frozenset(subscribed)
        elif len(subscribed) != len(yardstick) or not yardstick.issuperset(subscribed):
            result.subscriptions_equal = False
        claim = read_claim(member.subscription)
        result.claims[member.member_id] = claim
        result.max_generation = max(result.max_generation, claim.generation)
        walk.add_claim(member.member_id, claim)
    return result


class _Walk:
    """Hands partitions to claimants, one member after the other."""

    def __init__(
        self, members: Sequence[GroupMember], topics: Collection[str], result: Ownership
    ) -> None:
        self._field_generation = {m.member_id: m.subscription.generation_id for m in members}
        self._topics = topics
        self._result = result
        self._owner: dict[TopicPartition, str] = {}

    def add_claim(self, member_id: str, claim: Claim) -> None:
        """Take over what the member claims, as far as it gets it."""
        mine: list[TopicPartition] = []
        result, topics, owner = self._result, self._topics, self._owner
        result.owned[member_id] = mine
        for partition in claim.partitions:
            if partition.topic not in topics:
                continue  # whether the number exists is not checked (X3)
            other = owner.get(partition)
            if other is None:
                mine.append(partition)
                owner[partition] = member_id
                continue
            # the other's generation is its subscription's field alone, the own one the claim's
            others_generation = self._field_generation[other]
            if claim.generation < others_generation:
                continue
            if claim.generation == others_generation:
                # nobody keeps it; the pointer moves to a member that does not have it
                result.multiply_claimed[partition] = None
            else:
                mine.append(partition)
            _remove_first(result.owned[other], partition)
            owner[partition] = member_id


def _remove_first(partitions: list[TopicPartition], partition: TopicPartition) -> None:
    """``List.remove(Object)``: no failure when absent."""
    if partition in partitions:
        partitions.remove(partition)
