"""What an assignor is, what it is given, and how it fails.

Mirrors ``ConsumerPartitionAssignor``. The leader of a group runs ``assign`` on everybody's
subscription; every member asks its own assignor for the user data it sends and tells it the
assignment it got.
"""

from __future__ import annotations

import abc
import enum
from collections.abc import Mapping, Sequence
from typing import ClassVar

from groupsim.protocol.consumer_protocol import Assignment, Subscription, TopicPartition
from groupsim.protocol.messages import message

__all__ = [
    "Assignor",
    "AssignorFailure",
    "AssignorLivelock",
    "ClusterView",
    "GroupMember",
    "PartitionInfo",
    "RebalanceProtocol",
    "without_racks",
]


class RebalanceProtocol(enum.IntEnum):
    """How members give partitions up: all of them before joining, or only what they must."""

    EAGER = 0
    COOPERATIVE = 1


@message
class PartitionInfo:
    """What metadata says of one partition: the racks of all its replicas, offline ones too (A-04).

    None stands for a replica on a broker without a rack.
    """

    racks: tuple[str | None, ...] = ()


ClusterView = Mapping[str, tuple[PartitionInfo, ...]]
"""Topic → its partitions by number. A topic without metadata is absent or has none."""

_RACKLESS = PartitionInfo()


def without_racks(partition_counts: Mapping[str, int]) -> dict[str, tuple[PartitionInfo, ...]]:
    """A cluster view from topic → number of partitions, for clusters without racks."""
    return {topic: (_RACKLESS,) * count for topic, count in partition_counts.items()}


@message
class GroupMember:
    """One member as the leader sees it in the JoinGroup response."""

    member_id: str
    group_instance_id: str | None = None
    subscription: Subscription


class AssignorFailure(Exception):  # noqa: N818 - Java's exceptions are the errors
    """``assign`` failed as Java's would have; in the client it becomes an exception of ``poll()``.

    ``java_exception`` is the simple name of the Java exception, ``detail`` says where it came from.
    """

    def __init__(self, java_exception: str, detail: str) -> None:
        super().__init__(f"{java_exception}: {detail}")
        self.java_exception = java_exception
        self.detail = detail


class AssignorLivelock(AssignorFailure):
    """Java's ``assign`` would never return: its rebalancing comes back to where it was (X5).

    Nothing is thrown in Java; ``poll()`` hangs while heartbeats go on, until the poll timer ends
    the membership. ``java_exception`` is "(never returns)".
    """

    def __init__(self) -> None:
        super().__init__("(never returns)", "the rebalancing moves partitions in a circle")


class Assignor(abc.ABC):
    """A partition assignment strategy with the state that one client keeps for it.

    One object belongs to one client for its lifetime: sticky assignors remember the assignment they
    were told and the highest generation they ever saw (A-32).
    """

    name: ClassVar[str]
    supported_protocols: ClassVar[tuple[RebalanceProtocol, ...]] = (RebalanceProtocol.EAGER,)

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:
        """The bytes to send as the subscription's user data when joining; ``topics`` is what the
        member subscribes to.
        """
        del topics
        return None

    @abc.abstractmethod
    def assign(
        self, cluster: ClusterView, members: Sequence[GroupMember]
    ) -> dict[str, tuple[TopicPartition, ...]]:
        """Member id → its partitions in Java's order, for every member.

        ``members`` stand in the order of the JoinGroup response, which decides ties (A-06).

        Raises ``AssignorFailure``: where Java's assignor throws.
        """

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        """The member got ``assignment`` in generation ``generation_id``."""
        del assignment, generation_id
