"""Assignors of clients that are not Java: what they do differently with the same names (table 6.3).

Sources: librdkafka ``rdkafka_assignor.c`` (``rd_kafka_group_member_cmp``), ``rdkafka_range_assignor.c``
and ``rdkafka_cgrp.c`` (``rd_kafka_cooperative_protocol_adjust_assignment``); kafka-python
``kafka/coordinator/assignors``; franz-go ``group_balancer.go``. The sticky plans themselves are Java's
in all variants: the others' algorithms are not modelled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cmp_to_key
from itertools import groupby, islice
from types import MappingProxyType
from typing import Final

from groupsim.protocol._text import java_sort_key
from groupsim.protocol.consumer_protocol import (
    NO_GENERATION,
    Assignment,
    Subscription,
    TopicPartition,
)
from groupsim_clients.assignors._group import in_map_order
from groupsim_clients.assignors._ownership import Claim
from groupsim_clients.assignors.base import (
    Assignor,
    AssignorFailure,
    ClusterView,
    GroupMember,
    PartitionInfo,
    RebalanceProtocol,
)
from groupsim_clients.assignors.cooperative import CooperativeStickyAssignor
from groupsim_clients.assignors.roundrobin import RoundRobinAssignor
from groupsim_clients.assignors.sticky import StickyAssignor, decode_user_data, encode_user_data

__all__ = ["FRANZ_GO", "KAFKA_PYTHON", "LIBRDKAFKA", "maker"]

Plan = dict[str, tuple[TopicPartition, ...]]
Order = Callable[[Sequence[GroupMember]], list[GroupMember]]
Take = Callable[[GroupMember, int], bool]


# -- the order of members -----------------------------------------------------------------------------


def librdkafka_order(members: Sequence[GroupMember]) -> list[GroupMember]:
    """Two static members by instance id, any other pair by member id.

    With static and dynamic members in one group that is no order at all (not transitive); the
    result then depends on the sort, which is Python's here and the C library's there.
    """

    def compare(a: GroupMember, b: GroupMember) -> int:
        left, right = a.member_id, b.member_id
        if a.group_instance_id is not None and b.group_instance_id is not None:
            left, right = a.group_instance_id, b.group_instance_id
        return (left > right) - (left < right)

    return sorted(members, key=cmp_to_key(compare))


def kafka_python_order(members: Sequence[GroupMember]) -> list[GroupMember]:
    """Static members first, but out of *runs*: only the last run of each kind is kept, so members
    are dropped where static and dynamic ones alternate in the answer to JoinGroup.
    """
    runs = {
        static: list(run)
        for static, run in groupby(members, lambda m: m.group_instance_id is not None)
    }
    return [
        member
        for static in (True, False)
        for member in sorted(
            runs.get(static, []), key=lambda m: (m.group_instance_id or "", m.member_id)
        )
    ]


def franz_go_order(members: Sequence[GroupMember]) -> list[GroupMember]:
    """As Java: static members first, by instance id, then the others by member id."""
    return sorted(
        members,
        key=lambda m: (m.group_instance_id is None, m.group_instance_id or m.member_id),
    )


# -- range and roundrobin ------------------------------------------------------------------------------


class _Topic:
    """One topic while ranges are dealt out: quotas, and what is left."""

    def __init__(self, name: str, count: int, members: list[GroupMember]) -> None:
        self.name = name
        self.members = members
        self.count = count
        self.left = dict.fromkeys(range(count))
        self.given: dict[str, list[int]] = {member.member_id: [] for member in members}
        self._quota, self._extras = divmod(count, len(members))

    def room(self, member: GroupMember) -> int:
        """How many more the member may take."""
        extra = 1 if self._extras > 0 else 0
        return max(0, self._quota + extra - len(self.given[member.member_id]))

    def give(self, member: GroupMember, number: int) -> None:
        """Give one partition to the member."""
        given = self.given[member.member_id]
        given.append(number)
        del self.left[number]
        if len(given) > self._quota:
            self._extras -= 1

    def deal(self, may: Take) -> None:
        """Each member in turn takes the lowest partitions that it may."""
        for member in self.members:
            for number in tuple(
                islice((n for n in self.left if may(member, n)), self.room(member))
            ):
                self.give(member, number)


def _anything(_member: GroupMember, _number: int) -> bool:
    return True


def _consumers(members: Sequence[GroupMember]) -> dict[str, list[GroupMember]]:
    consumers: dict[str, list[GroupMember]] = {}
    for member in members:
        for topic in member.subscription.topics:
            consumers.setdefault(topic, []).append(member)
    return consumers


def _topics(cluster: ClusterView, members: Sequence[GroupMember], order: Order) -> list[_Topic]:
    return [
        _Topic(topic, len(cluster[topic]), order(subscribed))
        for topic, subscribed in sorted(_consumers(members).items())
        if cluster.get(topic)
    ]


def _collected(topics: Sequence[_Topic], members: Sequence[GroupMember]) -> Plan:
    plan: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
    for topic in topics:
        for member_id, numbers in topic.given.items():
            plan[member_id] += [TopicPartition(topic.name, number) for number in sorted(numbers)]
    return {member_id: tuple(partitions) for member_id, partitions in plan.items()}


class _Simple(Assignor):
    """range and roundrobin send empty user data, not null."""

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:
        """Empty bytes."""
        del topics
        return b""


class LibrdkafkaRange(_Simple):
    """range with racks; topics with the same members and counts together (KIP-881).

    Unlike Java's, a member without a rack matches nothing where topics are dealt out together.
    """

    name = "range"

    def assign(self, cluster: ClusterView, members: Sequence[GroupMember]) -> Plan:
        """See ``Assignor.assign``. Never fails."""
        topics = _topics(cluster, members, librdkafka_order)
        for group in _together(topics):
            if len(group) > 1:
                _deal_together(group, cluster)
            elif _minds_racks(group[0], cluster[group[0].name]):
                group[0].deal(_in_rack(cluster[group[0].name]))
        for topic in topics:
            topic.deal(_anything)
        return _collected(topics, members)


def _minds_racks(topic: _Topic, partitions: Sequence[PartitionInfo]) -> bool:
    racks = [frozenset(rack for rack in info.racks if rack) for info in partitions]
    everywhere = frozenset[str]().union(*racks)
    wanted = {member.subscription.rack_id for member in topic.members}
    return not everywhere.isdisjoint(wanted) and any(some != everywhere for some in racks)


def _in_rack(partitions: Sequence[PartitionInfo]) -> Take:
    return lambda member, number: (
        not member.subscription.rack_id or member.subscription.rack_id in partitions[number].racks
    )


def _together(topics: Sequence[_Topic]) -> list[list[_Topic]]:
    groups: dict[tuple[tuple[str, ...], int], list[_Topic]] = {}
    for topic in topics:
        key = (tuple(member.member_id for member in topic.members), topic.count)
        groups.setdefault(key, []).append(topic)
    return list(groups.values())


def _deal_together(group: Sequence[_Topic], cluster: ClusterView) -> None:
    for number in range(len(cluster[group[0].name])):
        for member in group[0].members:
            rack = member.subscription.rack_id
            if rack and all(
                topic.room(member) and rack in cluster[topic.name][number].racks for topic in group
            ):
                for topic in group:
                    topic.give(member, number)
                break


class FranzGoRange(Assignor):
    """range with racks, topic by topic; what counts is the rack of a partition's leader alone.

    The leader is taken to be the first replica, as it is while no broker is down.
    """

    name = "range"

    def assign(self, cluster: ClusterView, members: Sequence[GroupMember]) -> Plan:
        """See ``Assignor.assign``. Never fails."""
        topics = _topics(cluster, members, franz_go_order)
        for topic in topics:
            topic.deal(_in_leaders_rack(cluster[topic.name]))
            topic.deal(_anything)
        return _collected(topics, members)


def _in_leaders_rack(partitions: Sequence[PartitionInfo]) -> Take:
    def may(member: GroupMember, number: int) -> bool:
        rack, racks = member.subscription.rack_id, partitions[number].racks
        return bool(rack) and bool(racks) and racks[0] == rack

    return may


class KafkaPythonRange(_Simple):
    """range without racks, with kafka-python's order of members."""

    name = "range"

    def assign(self, cluster: ClusterView, members: Sequence[GroupMember]) -> Plan:
        """See ``Assignor.assign``. Never fails."""
        topics = _topics(cluster, members, kafka_python_order)
        for topic in topics:
            topic.deal(_anything)
        return _collected(topics, members)


def _round_robin(
    cluster: ClusterView, members: Sequence[GroupMember], circle: list[GroupMember]
) -> Plan:
    """Deal partitions round the circle; a member that does not subscribe is passed over.

    Raises ``LookupError`` with the topic: nobody in the circle subscribes to it.
    """
    dealt: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
    position = 0
    for topic in sorted(_consumers(members), key=java_sort_key):
        for number in range(len(cluster.get(topic, ()))):
            for step in range(len(circle)):
                member = circle[(position + step) % len(circle)]
                if topic in member.subscription.topics:
                    position += step + 1
                    dealt[member.member_id].append(TopicPartition(topic, number))
                    break
            else:
                raise LookupError(topic)
    return {member_id: tuple(partitions) for member_id, partitions in dealt.items()}


class LibrdkafkaRoundRobin(_Simple):
    """roundrobin as Java's, with librdkafka's order of members."""

    name = "roundrobin"

    def assign(self, cluster: ClusterView, members: Sequence[GroupMember]) -> Plan:
        """See ``Assignor.assign``. Never fails."""
        return _round_robin(cluster, members, librdkafka_order(members))


class KafkaPythonRoundRobin(_Simple):
    """roundrobin that works only while everybody in the circle subscribes to everything."""

    name = "roundrobin"

    def assign(self, cluster: ClusterView, members: Sequence[GroupMember]) -> Plan:
        """See ``Assignor.assign``. Raises ``AssignorFailure`` where a member would be passed over:
        the loop takes a pair of ids for a member id (KeyError).
        """
        circle = kafka_python_order(members)
        topics = [topic for topic in _consumers(members) if cluster.get(topic)]
        if any(topic not in member.subscription.topics for topic in topics for member in circle):
            raise AssignorFailure("KeyError", "roundrobin with unequal subscriptions")
        return _round_robin(cluster, members, circle)


# -- sticky and cooperative-sticky -----------------------------------------------------------------------


class LibrdkafkaCooperativeSticky(CooperativeStickyAssignor):
    """COOPERATIVE only (librdkafka refuses to mix); user data has the layout of sticky v1.

    The plan is adjusted in three parts: what stays with its owner is kept, what nobody owns is given
    at once, and what a member owns although the plan does not know it is given back.
    """

    supported_protocols = (RebalanceProtocol.COOPERATIVE,)

    def __init__(self) -> None:
        super().__init__()
        self._assignment: tuple[TopicPartition, ...] = ()

    def subscription_user_data(self, topics: Sequence[str]) -> bytes:
        """The last assignment and its generation; empty before the first one."""
        del topics
        if self._generation == NO_GENERATION:
            return b""
        return encode_user_data(self._assignment, self._generation)

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        """Remember it."""
        self._assignment = assignment.partitions
        self._generation = generation_id

    def read_claim(self, subscription: Subscription) -> Claim:
        """Owned partitions; the generation from the field, else from user data of sticky v1."""
        return _sticky_claim(subscription)

    def assign(self, cluster: ClusterView, members: Sequence[GroupMember]) -> Plan:
        """See ``Assignor.assign``."""
        planned, _ = self._plan(cluster, in_map_order(members))
        to = {partition: member_id for member_id, some in planned.items() for partition in some}
        owner = {
            partition: member.member_id
            for member in members
            for partition in member.subscription.owned_partitions
        }
        adjusted: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
        for partition, member_id in to.items():
            if owner.get(partition, member_id) == member_id:
                adjusted[member_id].append(partition)
        for partition, member_id in owner.items():
            if partition not in to:
                adjusted[member_id].append(partition)
        return {member_id: tuple(partitions) for member_id, partitions in adjusted.items()}


def _sticky_claim(subscription: Subscription) -> Claim:
    owned = subscription.owned_partitions
    if subscription.generation_id >= 0 or not subscription.user_data:
        return Claim(owned, subscription.generation_id)
    return Claim(owned, decode_user_data(subscription.user_data).generation)


class KafkaPythonCooperativeSticky(CooperativeStickyAssignor):
    """COOPERATIVE only; no user data, owned partitions in the field (v1), no generation; nothing
    goes to another member while somebody says that he owns it.
    """

    supported_protocols = (RebalanceProtocol.COOPERATIVE,)

    def subscription_user_data(self, topics: Sequence[str]) -> bytes:
        """Empty bytes."""
        del topics
        return b""

    def assign(self, cluster: ClusterView, members: Sequence[GroupMember]) -> Plan:
        """See ``Assignor.assign``."""
        planned, _ = self._plan(cluster, in_map_order(members))
        owner = {
            partition: member.member_id
            for member in members
            for partition in member.subscription.owned_partitions
        }
        return {
            member_id: tuple(p for p in sorted(some) if owner.get(p, member_id) == member_id)
            for member_id, some in planned.items()
        }


class FranzGoCooperativeSticky(CooperativeStickyAssignor):
    """User data in the layout of sticky v1; before the first assignment the generation is −1 in the
    field and the array is empty, which a Java leader reads as generation 0.
    """

    def __init__(self) -> None:
        super().__init__()
        self._assignment: tuple[TopicPartition, ...] = ()

    def subscription_user_data(self, topics: Sequence[str]) -> bytes:
        """The last assignment and its generation."""
        del topics
        return encode_user_data(self._assignment, self._generation)

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        """Remember it."""
        self._assignment = tuple(sorted(assignment.partitions))
        self._generation = generation_id

    def read_claim(self, subscription: Subscription) -> Claim:
        """Owned partitions; the generation from the field, else from user data of sticky v1."""
        return _sticky_claim(subscription)


# -- by client ---------------------------------------------------------------------------------------------

Kinds = Mapping[str, Callable[[], Assignor]]

LIBRDKAFKA: Final[Kinds] = MappingProxyType(
    {
        "range": LibrdkafkaRange,
        "roundrobin": LibrdkafkaRoundRobin,
        "cooperative-sticky": LibrdkafkaCooperativeSticky,
    }
)
KAFKA_PYTHON: Final[Kinds] = MappingProxyType(
    {
        "range": KafkaPythonRange,
        "roundrobin": KafkaPythonRoundRobin,
        "sticky": StickyAssignor,
        "cooperative-sticky": KafkaPythonCooperativeSticky,
    }
)
FRANZ_GO: Final[Kinds] = MappingProxyType(
    {
        "range": FranzGoRange,
        "roundrobin": RoundRobinAssignor,
        "sticky": StickyAssignor,
        "cooperative-sticky": FranzGoCooperativeSticky,
    }
)


def maker(kinds: Kinds) -> Callable[[str], Assignor]:
    """The function that makes a client's assignor of a name.

    It raises ``ValueError`` for names that the client does not have.
    """

    def make(name: str) -> Assignor:
        if name not in kinds:
            raise ValueError(f"no assignor {name!r}; there are {', '.join(kinds)}")
        return kinds[name]()

    return make
