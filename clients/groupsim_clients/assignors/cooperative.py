"""``CooperativeStickyAssignor``: sticky, and nothing changes hands before it was given up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from groupsim.protocol._buffer import Reader, SchemaError, Writer
from groupsim.protocol.consumer_protocol import (
    NO_GENERATION,
    Assignment,
    Subscription,
    TopicPartition,
)
from groupsim_clients.assignors._group import in_map_order
from groupsim_clients.assignors._ownership import Claim
from groupsim_clients.assignors.base import ClusterView, GroupMember, RebalanceProtocol
from groupsim_clients.assignors.sticky import AbstractStickyAssignor

__all__ = ["CooperativeStickyAssignor"]


class CooperativeStickyAssignor(AbstractStickyAssignor):
    """The COOPERATIVE variant. What a member has is in its subscription; the user data carries its
    generation for leaders that cannot read the field.
    """

    name = "cooperative-sticky"
    supported_protocols: ClassVar[tuple[RebalanceProtocol, ...]] = (
        RebalanceProtocol.COOPERATIVE,
        RebalanceProtocol.EAGER,
    )

    def subscription_user_data(self, topics: Sequence[str]) -> bytes:
        """The generation of the last assignment, −1 at first, as int32."""
        del topics
        writer = Writer()
        writer.int32(self._generation)
        return writer.getvalue()

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        """Remember the generation."""
        del assignment
        self._generation = generation_id

    def read_claim(self, subscription: Subscription) -> Claim:
        """The owned partitions; the generation from the field, else from the user data.

        A negative field counts as absent, so that a member that lost its generation is judged by
        the old one in its user data (A-31).
        """
        owned = subscription.owned_partitions
        if subscription.generation_id >= 0:
            return Claim(owned, subscription.generation_id)
        if subscription.user_data is None:
            return Claim(owned, NO_GENERATION)
        try:
            return Claim(owned, Reader(subscription.user_data).int32())
        except SchemaError:
            return Claim(owned, NO_GENERATION)

    def assign(
        self, cluster: ClusterView, members: Sequence[GroupMember]
    ) -> dict[str, tuple[TopicPartition, ...]]:
        """See ``Assignor.assign``. Partitions that somebody must give up first are left out."""
        by_map = in_map_order(members)
        plan, transferring = self._plan(cluster, by_map)
        if transferring is None:
            owned = {m.member_id: m.subscription.owned_partitions for m in by_map}
            transferring = _transferring(plan, owned)
        for partition, member_id in transferring.items():
            plan[member_id].remove(partition)
        return {member_id: tuple(partitions) for member_id, partitions in plan.items()}


def _transferring(
    plan: Mapping[str, Sequence[TopicPartition]], owned: Mapping[str, Sequence[TopicPartition]]
) -> dict[TopicPartition, str]:
    """Partition → new member, of those that some member gets and some member loses (A-71).

    Should two members get the same partition, the later one in map order counts (X3).
    """
    added: dict[TopicPartition, str] = {}
    revoked: set[TopicPartition] = set()
    for member_id, assigned in plan.items():
        had = frozenset(owned[member_id])
        has = frozenset(assigned)
        added.update({p: member_id for p in assigned if p not in had})
        revoked.update(had - has)
    return {partition: member_id for partition, member_id in added.items() if partition in revoked}
