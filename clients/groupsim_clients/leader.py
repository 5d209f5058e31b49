"""The leader's step of a rebalance: the assignment of the whole group (rules CS-03 to CS-12).

Java's ``ConsumerCoordinator.onLeaderElected``, ``performAssignment`` in older versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from groupsim.protocol.consumer_protocol import (
    Assignment,
    SchemaError,
    TopicPartition,
    decode_subscription,
    encode_assignment,
)
from groupsim.protocol.messages import JoinGroupResponseMember
from groupsim_clients.assignors import Assignor, GroupMember, RebalanceProtocol
from groupsim_clients.assignors.base import AssignorFailure
from groupsim_clients.errors import JavaError
from groupsim_clients.subscription_state import partitions_text, topics_text
from groupsim_clients.timing import FOREVER, Context, Steps, Timer

if TYPE_CHECKING:
    from groupsim_clients.consumer_coordinator import ConsumerCoordinator

__all__ = ["Leader"]

_BUILT_IN = frozenset({"range", "roundrobin", "sticky", "cooperative-sticky"})


class Leader:
    """What one consumer does when its group has chosen it as leader."""

    def __init__(self, coordinator: ConsumerCoordinator) -> None:
        self._coordinator = coordinator
        self._own_plan: bytes | None = None

    def assign_group(
        self, protocol: str, members: Sequence[JoinGroupResponseMember], *, skip_assignment: bool
    ) -> Steps[dict[str, bytes]]:
        """Assign for the whole group (CS-03 to CS-11)."""
        coordinator = self._coordinator
        assignor = coordinator.assignor(protocol)
        group = self._group(members)
        topics = {topic for member in group for topic in member.subscription.topics}
        yield from self._update_group_subscription(topics)  # CS-05
        coordinator.is_leader = True  # CS-06
        if skip_assignment:  # CS-07
            coordinator.ctx.log(
                "info",
                "Skipped assignment for returning static leader at generation "
                f"{coordinator.generation.generation_id}. The static leader will continue with its "
                "existing assignment.",
            )
            coordinator.assignment_snapshot = coordinator.metadata_snapshot
            if coordinator.behaviour.plans_when_skipped:
                plan = self._assign(assignor, group)
                own = plan.get(coordinator.generation.member_id, ())
                self._own_plan = self._encoded(own)
            return {}
        plan = self._assign(assignor, group)  # CS-08
        trusted = (
            assignor.name == "cooperative-sticky"
            and coordinator.behaviour.trusts_cooperative_sticky
        )
        if coordinator.protocol is RebalanceProtocol.COOPERATIVE and not trusted:
            _validate_cooperative(coordinator.ctx, group, plan)  # CS-09
        if assignor.name not in _BUILT_IN or not coordinator.behaviour.trusts_builtin_topics:
            yield from self._check_assigned_topics(plan, topics)  # CS-10
        coordinator.assignment_snapshot = coordinator.metadata_snapshot  # CS-11
        coordinator.ctx.log(
            "info",
            f"Finished assignment for group at generation {coordinator.generation.generation_id}: "
            + _plan_text(plan),
        )
        return {member_id: self._encoded(partitions) for member_id, partitions in plan.items()}

    def _encoded(self, partitions: tuple[TopicPartition, ...]) -> bytes:
        behaviour = self._coordinator.behaviour
        version = behaviour.assignment_version
        if version is None:
            version = behaviour.subscription_version
        return encode_assignment(Assignment(partitions=partitions), version)

    def _assign(
        self, assignor: Assignor, group: Sequence[GroupMember]
    ) -> dict[str, tuple[TopicPartition, ...]]:
        try:
            return assignor.assign(self._coordinator.metadata.topics, group)
        except AssignorFailure as error:
            raise JavaError(error.java_exception, error.detail, kafka=False) from error
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            # an assignor of the user's own: any runtime exception fails the join (CS-01)
            raise JavaError(type(error).__name__, str(error), kafka=False) from error

    def _group(self, members: Sequence[JoinGroupResponseMember]) -> tuple[GroupMember, ...]:
        coordinator = self._coordinator
        if not coordinator.behaviour.leaves_out_bad_members:
            return tuple(self._group_member(member) for member in members)  # CS-04
        group = []
        for member in members:
            try:
                group.append(self._group_member(member))
            except JavaError:
                coordinator.ctx.log(
                    "error", f"Failed to parse metadata of member {member.member_id}"
                )
        return tuple(group)

    def _group_member(self, member: JoinGroupResponseMember) -> GroupMember:
        try:
            subscription = decode_subscription(member.metadata)
        except SchemaError as error:
            raise JavaError("SchemaException", str(error)) from error
        return GroupMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            subscription=subscription,
        )

    def _update_group_subscription(self, topics: Iterable[str]) -> Steps[None]:
        coordinator = self._coordinator
        if coordinator.subscriptions.group_subscribe(topics):
            coordinator.metadata.request_update_for_new_topics()
        if not coordinator.behaviour.leader_waits_for_metadata:
            coordinator.metadata.request_update(reset_backoff=True)
            return
        if not (
            yield from coordinator.client.ensure_fresh_metadata(Timer(coordinator.ctx, FOREVER))
        ):
            raise JavaError.timeout("metadata")
        coordinator.maybe_update_subscription_metadata()

    def _check_assigned_topics(
        self, plan: Mapping[str, tuple[TopicPartition, ...]], topics: set[str]
    ) -> Steps[None]:
        coordinator = self._coordinator
        assigned = {partition.topic for partitions in plan.values() for partition in partitions}
        if topics - assigned:
            coordinator.ctx.log(
                "warn",
                "The following subscribed topics are not assigned to any members: "
                f"{topics_text(topics - assigned)} ",
            )
        if assigned - topics:
            coordinator.ctx.log(
                "info",
                "The following not-subscribed topics are assigned, and their metadata will be "
                f"fetched from the brokers: {topics_text(assigned - topics)}",
            )
            yield from self._update_group_subscription(topics | assigned)

    def compare_own_plan(self, assignment: bytes) -> None:
        """A leader that was told to skip compares what it got with what it would have assigned."""
        own, self._own_plan = self._own_plan, None
        if own is not None and own != assignment:
            self._coordinator.request_rejoin("the leader was reassigned an old plan")


def _validate_cooperative(
    ctx: Context,
    group: Sequence[GroupMember],
    plan: Mapping[str, tuple[TopicPartition, ...]],
) -> None:
    """Nothing may be taken from one member and given to another in the same plan (CS-09)."""
    added: set[TopicPartition] = set()
    revoked: set[TopicPartition] = set()
    for member in group:
        if member.member_id in plan:
            owned, given = set(member.subscription.owned_partitions), set(plan[member.member_id])
            added |= given - owned
            revoked |= owned - given
    moved = sorted(added & revoked)
    if moved:
        ctx.log(
            "error",
            "With the COOPERATIVE protocol, owned partitions cannot be reassigned to other members; "
            f"however the assignor has reassigned partitions {partitions_text(moved)} which are still "
            "owned by some members",
        )
        raise JavaError.illegal_state(
            "Assignor supporting the COOPERATIVE protocol violates its requirements"
        )


def _plan_text(plan: Mapping[str, tuple[TopicPartition, ...]]) -> str:
    members = (
        f"{member_id}=Assignment(partitions={partitions_text(partitions)})"
        for member_id, partitions in plan.items()
    )
    return "{" + ", ".join(members) + "}"
