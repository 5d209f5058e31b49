"""``StickyAssignor`` and what it shares with ``CooperativeStickyAssignor``."""

from __future__ import annotations

import abc
from collections.abc import Sequence

from groupsim.protocol._buffer import Reader, SchemaError, Writer
from groupsim.protocol.consumer_protocol import (
    NO_GENERATION,
    Assignment,
    Subscription,
    TopicPartition,
)
from groupsim_clients.assignors._constrained import ConstrainedBuilder
from groupsim_clients.assignors._general import GeneralBuilder
from groupsim_clients.assignors._group import in_map_order, participating_topics
from groupsim_clients.assignors._java_order import compute_if_absent_order, string_hash
from groupsim_clients.assignors._ownership import Claim, collect_ownership
from groupsim_clients.assignors._sticky_racks import StickyRacks
from groupsim_clients.assignors.base import Assignor, ClusterView, GroupMember

__all__ = ["AbstractStickyAssignor", "StickyAssignor", "decode_user_data", "encode_user_data"]

_NO_CLAIM = Claim((), NO_GENERATION)


class AbstractStickyAssignor(Assignor):
    """Keeps partitions where they are as far as balance allows; minds racks.

    ``max_generation`` is the highest generation this object has seen in any round (A-32).
    """

    def __init__(self) -> None:
        self.max_generation = NO_GENERATION
        self._generation = NO_GENERATION

    @abc.abstractmethod
    def read_claim(self, subscription: Subscription) -> Claim:
        """What the member had and in which generation (Java: ``memberData``)."""

    def assign(
        self, cluster: ClusterView, members: Sequence[GroupMember]
    ) -> dict[str, tuple[TopicPartition, ...]]:
        """See ``Assignor.assign``."""
        plan, _ = self._plan(cluster, in_map_order(members))
        return {member_id: tuple(partitions) for member_id, partitions in plan.items()}

    def _plan(
        self, cluster: ClusterView, members: Sequence[GroupMember]
    ) -> tuple[dict[str, list[TopicPartition]], dict[TopicPartition, str] | None]:
        """The plan for ``members``, which are in map order, and the partitions that move in it
        from one member to another; None when the algorithm does not note them.
        """
        topics = participating_topics(cluster, members)
        racks = StickyRacks(members, topics)
        ownership = collect_ownership(members, topics, self.read_claim, self.max_generation)
        self.max_generation = ownership.max_generation
        if ownership.subscriptions_equal:
            constrained = ConstrainedBuilder(topics, racks, ownership)
            return constrained.build(), constrained.transferring
        return GeneralBuilder(topics, members, racks, ownership).build(), None


class StickyAssignor(AbstractStickyAssignor):
    """The EAGER variant. What a member had is in the user data alone (3.5 of the rule book)."""

    name = "sticky"

    def __init__(self) -> None:
        super().__init__()
        self._assignment: tuple[TopicPartition, ...] | None = None

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:
        """None before the first assignment; then the last one, whatever became of it since."""
        del topics
        if self._assignment is None:
            return None
        return encode_user_data(self._assignment, self._generation)

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        """Remember it for the next user data; nothing ever clears it."""
        self._assignment = assignment.partitions
        self._generation = generation_id

    def read_claim(self, subscription: Subscription) -> Claim:
        """From the user data; the subscription's own fields do not count."""
        if not subscription.user_data:
            return _NO_CLAIM
        return decode_user_data(subscription.user_data)


def encode_user_data(partitions: Sequence[TopicPartition], generation_id: int) -> bytes:
    """User data v1 of the sticky assignor: array of (topic, array of int32), int32 generation.

    Topics stand in the order of the Java map that groups them (A-06, exception i).
    """
    numbers: dict[str, list[int]] = {}
    for topic, number in partitions:
        numbers.setdefault(topic, []).append(number)
    topics = compute_if_absent_order((topic for topic, _ in partitions), string_hash)
    writer = Writer()
    writer.int32(len(topics))
    for topic in topics:
        writer.string(topic)
        writer.int32_array(numbers[topic])
    writer.int32(generation_id)
    return writer.getvalue()


def decode_user_data(data: bytes) -> Claim:
    """The claim in user data v1, else v0 (no generation), else no claim. Never fails."""
    reader = Reader(data)
    partitions: list[TopicPartition] = []
    try:
        for _ in range(reader.array_length()):
            topic = reader.string()
            partitions += [TopicPartition(topic, number) for number in reader.int32_array()]
    except SchemaError:
        return _NO_CLAIM
    try:
        return Claim(partitions, reader.int32())
    except SchemaError:
        return Claim(partitions, NO_GENERATION)
