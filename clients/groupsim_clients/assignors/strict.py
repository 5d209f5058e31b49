"""The named strict mode: reports the anomalies of Java's assignors instead of imitating them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from groupsim.protocol.consumer_protocol import Assignment, TopicPartition
from groupsim.protocol.messages import message
from groupsim_clients.assignors.base import (
    Assignor,
    AssignorFailure,
    ClusterView,
    GroupMember,
    RebalanceProtocol,
)

__all__ = ["Anomaly", "AnomalyError", "StrictAssignor"]

_RULE_OF_FAILURE = {
    "IllegalStateException": "X3",
    "NullPointerException": "X4",
    "(never returns)": "X5",
}


@message
class Anomaly:
    """One thing that no assignor should do.

    ``rule``: X1 a member without topics got something, X2 a topic it does not subscribe to, X3 a
    partition given twice or not existing or a plan that does not come out even, X4 a null
    pointer, X5 a rebalancing without end.
    ``member_id`` and ``partition`` are None where Java's assignor failed as a whole.
    """

    rule: str
    member_id: str | None
    partition: TopicPartition | None
    detail: str


class AnomalyError(Exception):
    """The plan that Java would have made, or died of, is not one to follow.

    ``anomalies`` says why; ``plan`` is that plan, None if there is none.
    """

    def __init__(
        self,
        anomalies: tuple[Anomaly, ...],
        plan: Mapping[str, tuple[TopicPartition, ...]] | None,
    ) -> None:
        super().__init__("; ".join(f"{found.rule}: {found.detail}" for found in anomalies))
        self.anomalies = anomalies
        self.plan = plan


class StrictAssignor(Assignor):
    """Any assignor, looked over: ``assign`` raises ``AnomalyError`` for X1 to X5.

    A failure of the inner assignor that is none of these is passed on.
    """

    def __init__(self, inner: Assignor) -> None:
        self._inner = inner
        self.name: str = inner.name  # type: ignore[misc]
        self.supported_protocols: tuple[RebalanceProtocol, ...] = (  # type: ignore[misc]
            inner.supported_protocols
        )

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:
        """The inner assignor's."""
        return self._inner.subscription_user_data(topics)

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        """Told to the inner assignor."""
        self._inner.on_assignment(assignment, generation_id)

    def assign(
        self, cluster: ClusterView, members: Sequence[GroupMember]
    ) -> dict[str, tuple[TopicPartition, ...]]:
        """See ``Assignor.assign``.

        Raises ``AnomalyError``: the plan has, or Java died of, one of X1 to X5.
        """
        try:
            plan = self._inner.assign(cluster, members)
        except AssignorFailure as failure:
            rule = _RULE_OF_FAILURE.get(failure.java_exception)
            if rule is None:
                raise
            anomaly = Anomaly(rule=rule, member_id=None, partition=None, detail=str(failure))
            raise AnomalyError((anomaly,), None) from failure
        anomalies = tuple(_anomalies(plan, cluster, members))
        if anomalies:
            raise AnomalyError(anomalies, plan)
        return plan


def _anomalies(
    plan: Mapping[str, tuple[TopicPartition, ...]],
    cluster: ClusterView,
    members: Sequence[GroupMember],
) -> Iterator[Anomaly]:
    owner: dict[TopicPartition, str] = {}
    for member in members:
        member_id, subscribed = member.member_id, member.subscription.topics
        for partition in plan[member_id]:
            name = f"{partition.topic}-{partition.partition}"
            rules: list[tuple[str, str]] = []
            if not subscribed:
                rules.append(("X1", f"{member_id} subscribes to nothing and gets {name}"))
            elif partition.topic not in subscribed:
                rules.append(("X2", f"{member_id} gets {name} without subscribing to it"))
            if partition.partition >= len(cluster.get(partition.topic, ())):
                rules.append(("X3", f"{member_id} keeps {name}, which does not exist"))
            if partition in owner:
                rules.append(("X3", f"{member_id} gets {name}, as {owner[partition]} does"))
            owner[partition] = member_id
            for rule, detail in rules:
                yield Anomaly(rule=rule, member_id=member_id, partition=partition, detail=detail)
