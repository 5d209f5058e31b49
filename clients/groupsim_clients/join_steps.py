"""What a consumer does before a join, after it, and before leaving: the steps with callbacks.

Java's ``onJoinPrepare`` (CJ-12 to CJ-18), ``onJoinComplete`` (CC-01 to CC-11) and ``onLeavePrepare``
(CL-05) of ``ConsumerCoordinator``. Partitions are given up and taken here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from groupsim.protocol.consumer_protocol import (
    Assignment,
    SchemaError,
    TopicPartition,
    decode_assignment,
)
from groupsim_clients.assignors import Assignor, RebalanceProtocol
from groupsim_clients.assignors.base import AssignorFailure
from groupsim_clients.errors import JavaError
from groupsim_clients.generation import Generation
from groupsim_clients.subscription_state import partitions_text
from groupsim_clients.timing import Steps, Timer

if TYPE_CHECKING:
    from groupsim_clients.consumer_coordinator import ConsumerCoordinator

__all__ = ["JoinSteps"]


class JoinSteps:
    """The steps of one consumer."""

    def __init__(self, coordinator: ConsumerCoordinator) -> None:
        self._coordinator = coordinator
        self._prepare_timer: Timer | None = None

    def prepare(self, timer: Timer, generation_id: int, member_id: str) -> Steps[bool]:
        """Commit, then give up what is lost or revoked (CJ-12 to CJ-18)."""
        coordinator = self._coordinator
        if self._prepare_timer is None:
            self._prepare_timer = Timer(coordinator.ctx, coordinator.config.max_poll_interval_ms)
        if coordinator.config.enable_auto_commit and not (
            yield from self._commit_before_join(timer, self._prepare_timer)
        ):
            return False
        error = None
        assigned = coordinator.subscriptions.assigned()
        first = coordinator.behaviour.revokes_before_first_join and not assigned
        if (generation_id == -1 or not member_id or coordinator.loses_all) and not first:  # CJ-14
            if assigned:
                coordinator.ctx.log(
                    "info",
                    "Giving away all assigned partitions as lost since generation/memberID has been "
                    "reset,indicating that consumer is in old state or no longer part of the group",
                )
                error = yield from self._give_up("lost", assigned, ())
        elif coordinator.protocol is RebalanceProtocol.EAGER:  # CJ-15
            error = yield from self._give_up("revoked", assigned, ())
        else:  # CJ-16
            subscription = coordinator.subscriptions.subscription
            dropped = tuple(p for p in assigned if p.topic not in subscription)
            if dropped or coordinator.behaviour.revokes_at_session_end:
                kept = tuple(p for p in assigned if p.topic in subscription)
                error = yield from self._give_up("revoked", dropped, kept)
        coordinator.is_leader = False  # CJ-17
        coordinator.subscriptions.reset_group_subscription()
        if coordinator.loses_all or not coordinator.cooperative:
            self._unpaced()
        coordinator.loses_all = False
        self._prepare_timer = None
        coordinator.offsets.forget_prepare_commit()
        if error is not None:
            raise JavaError.from_callback(error)
        return True

    def _commit_before_join(self, timer: Timer, prepare_timer: Timer) -> Steps[bool]:
        coordinator = self._coordinator
        offsets = coordinator.offsets
        if offsets.prepare_commit is None:
            if coordinator.protocol is RebalanceProtocol.EAGER:
                offsets.advance_positions()  # what has been read so far counts
                coordinator.subscriptions.mark_pending_revocation()
            offsets.start_prepare_commit()
        commit = offsets.prepare_commit
        if commit is None:
            return True
        poll_timer = timer if timer.remaining_ms < prepare_timer.remaining_ms else prepare_timer
        yield from coordinator.client.poll_until(commit, poll_timer)
        finished = True
        if prepare_timer.expired:
            coordinator.ctx.log(
                "error",
                "Asynchronous auto-commit of offsets failed: joinPrepare timeout. Will continue to join group",
            )
        elif not commit.done or commit.retriable:
            finished = False
        elif commit.error is not None:
            coordinator.ctx.log(
                "error",
                f"Asynchronous auto-commit of offsets failed: {commit.error.detail}. Will continue to join group.",
            )
        if commit.done:
            offsets.forget_prepare_commit()
        if not finished:
            yield from poll_timer.sleep(coordinator.config.retry_backoff_ms)
        return finished

    def complete(self, generation: Generation, assignment: bytes) -> Steps[None]:
        """Take the assignment in, with callbacks (CC-01 to CC-11)."""
        coordinator = self._coordinator
        if coordinator.behaviour.everybody_watches:
            coordinator.subscriptions.reset_group_subscription()
            coordinator.metadata_snapshot = coordinator.assignment_snapshot = (
                coordinator.new_snapshot()
            )
        elif not coordinator.is_leader:  # CC-01
            coordinator.assignment_snapshot = None
        assignor = coordinator.assignor(generation.protocol_name)
        coordinator.group_metadata = generation
        owned = coordinator.subscriptions.assigned()
        decoded = _decode(assignment)  # CC-02
        assigned = tuple(sorted(set(decoded.partitions)))
        if not coordinator.subscriptions.matches_subscription(assigned):  # CC-03
            coordinator.request_rejoin(
                "received assignment does not match the current subscription",
                f"received assignment {partitions_text(decoded.partitions)} does not match the "
                f"current subscription {coordinator.subscriptions.pretty()}; it is likely that the "
                "subscription has changed since we joined the group, will re-join with current "
                "subscription",
            )
            return
        if coordinator.downgraded:
            owned = yield from self._give_up_after_downgrade(owned)
        held = set(owned)
        added = tuple(p for p in assigned if p not in held)  # CC-04
        error = None
        if coordinator.protocol is RebalanceProtocol.COOPERATIVE:  # CC-05
            error = yield from self._revoke_moved(owned, set(assigned))
        self._widen_joined_subscription(assigned)  # CC-06
        hook_error = self._tell_assignor(assignor, decoded, generation.generation_id)  # CC-07
        error = error or hook_error
        coordinator.offsets.restart_auto_commit()  # CC-08
        coordinator.subscriptions.assign(assigned)  # CC-09
        if added or coordinator.behaviour.tells_unchanged or not coordinator.cooperative:
            raised = yield from coordinator.invoker.invoke("assigned", added)  # CC-10
            error = error or raised
        else:
            coordinator.invoker.unchanged()
        coordinator.leader.compare_own_plan(assignment)
        if error is not None:  # CC-11
            raise error if error.kafka else JavaError.from_callback(error)

    def _revoke_moved(
        self, owned: tuple[TopicPartition, ...], assigned: set[TopicPartition]
    ) -> Steps[JavaError | None]:
        coordinator = self._coordinator
        revoked = tuple(p for p in owned if p not in assigned)
        if not revoked:
            return None
        kept = tuple(p for p in coordinator.subscriptions.assignment if p in assigned)
        if coordinator.behaviour.changes_before_revoking:
            coordinator.subscriptions.assign(kept)
            coordinator.invoker.gave_up("revoked", revoked)
        error = yield from coordinator.invoker.invoke("revoked", revoked)
        self._unpaced()
        coordinator.request_rejoin(
            "need to revoke partitions and re-join",
            f"need to revoke partitions {partitions_text(revoked)} as indicated by the current "
            "assignment and re-join",
        )
        if not coordinator.behaviour.changes_before_revoking:
            coordinator.subscriptions.assign(kept)
            coordinator.invoker.gave_up("revoked", revoked)
        return error

    def _give_up_after_downgrade(
        self, owned: tuple[TopicPartition, ...]
    ) -> Steps[tuple[TopicPartition, ...]]:
        """The group has gone from COOPERATIVE to EAGER: revoke what an eager member would have."""
        coordinator = self._coordinator
        coordinator.downgraded = False
        if owned:
            error = yield from self._give_up("revoked", owned, ())
            if error is not None:
                raise JavaError.from_callback(error)
        return ()

    def _widen_joined_subscription(self, assigned: Sequence[TopicPartition]) -> None:
        coordinator = self._coordinator
        joined = coordinator.joined_subscription
        if not coordinator.subscriptions.has_pattern or joined is None:
            return
        more = {partition.topic for partition in assigned} - joined
        if more:
            if coordinator.subscriptions.subscribe_from_pattern(
                coordinator.subscriptions.subscription | more
            ):
                coordinator.metadata.request_update_for_new_topics()
            coordinator.joined_subscription = joined | more

    def _tell_assignor(
        self, assignor: Assignor, assignment: Assignment, generation_id: int
    ) -> JavaError | None:
        try:
            assignor.on_assignment(assignment, generation_id)
        except AssignorFailure as error:
            return JavaError(error.java_exception, error.detail, kafka=False)
        return None

    def leave(self) -> Steps[None]:
        """One callback with everything, then nothing is assigned (CL-05).

        Raises:
            JavaError: what the callback threw, wrapped (CL-07).

        """
        coordinator = self._coordinator
        dropped = coordinator.subscriptions.assigned()
        if not coordinator.subscriptions.has_auto_assigned or not dropped:
            return
        generation = coordinator.generation
        lost = (
            generation.generation_id == -1
            or not generation.member_id
            or coordinator.state.rebalancing
        )
        error = yield from self._give_up("lost" if lost else "revoked", dropped, ())
        if error is not None:
            raise JavaError.from_callback(error)

    def _give_up(
        self,
        callback: str,
        partitions: tuple[TopicPartition, ...],
        kept: tuple[TopicPartition, ...],
    ) -> Steps[JavaError | None]:
        coordinator = self._coordinator
        error = yield from coordinator.invoker.invoke(callback, partitions)
        coordinator.subscriptions.assign(kept)
        coordinator.invoker.gave_up(callback, partitions)
        return error

    def _unpaced(self) -> None:
        """What was held is given up: no interval before the join that follows."""
        coordinator = self._coordinator
        if coordinator.behaviour.join_interval_ms:
            coordinator.join_not_before_ms = 0


def _decode(assignment: bytes) -> Assignment:
    if len(assignment) < 2:
        raise JavaError.illegal_state(
            "There are insufficient bytes available to read assignment from the sync-group response "
            f"(actual byte size {len(assignment)}) , this is not expected; it is possible that the "
            "leader's assign function is buggy and did not return any assignment for this member, or "
            "because static member is configured and the protocol is buggy hence did not get the "
            "assignment for this member"
        )
    try:
        return decode_assignment(assignment)
    except SchemaError as error:
        raise JavaError("SchemaException", str(error)) from error
