"""What the answers to JoinGroup and SyncGroup do, code by code (rules CR-01 to CR-18, CS-01,
CS-02, CS-20 to CS-28).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from groupsim_clients.errors import JavaError
from groupsim_clients.futures import RequestFuture
from groupsim_clients.generation import Generation, JoinState
from groupsim_clients.timing import Wait

if TYPE_CHECKING:
    from groupsim_clients.abstract_coordinator import AbstractCoordinator

__all__ = ["JoinHandlers"]

_UNKNOWN_COORDINATOR = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
_FATAL_ON_JOIN = frozenset(  # CR-06 to CR-08: raised as they are
    {
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.INVALID_GROUP_ID,
    }
)


class JoinHandlers:
    """The handlers of one coordinator; they complete or fail its join future."""

    def __init__(self, coordinator: AbstractCoordinator) -> None:
        self._coordinator = coordinator

    # -- JoinGroup -----------------------------------------------------------------------------

    def join_group(
        self, response: JoinGroupResponse, future: RequestFuture[bytes], sent: Generation
    ) -> Generator[Wait, None, None] | None:
        """Handle a JoinGroup answer; for a leader the rest takes time (metadata)."""
        if response.error_code != ErrorCode.NONE:
            if not self._coordinator.join_reacts("join", response.error_code, future):
                self._join_refused(response, future, sent)
            return None
        coordinator = self._coordinator
        if self._wrong_protocol_type("JoinGroup", response.protocol_type, future):  # CR-01
            return None
        if coordinator.state is not JoinState.PREPARING_REBALANCE:  # CR-18
            future.fail(JavaError("UnjoinedGroupException", retriable=True))
            return None
        generation = Generation(response.generation_id, response.member_id, response.protocol_name)
        coordinator.set_state(
            JoinState.COMPLETING_REBALANCE, "received a successful JoinGroup response", generation
        )
        coordinator.protocol_chosen(response.protocol_name or "")
        if coordinator.behaviour.heartbeats_while_syncing:
            self.enable_heartbeats()
        coordinator.ctx.log("info", f"Successfully joined group with generation {generation}")
        if response.member_id == response.leader:  # CR-01: no other test
            return self._lead(response, future)
        self._sync((), future)  # CS-02
        return None

    def _join_refused(
        self, response: JoinGroupResponse, future: RequestFuture[bytes], sent: Generation
    ) -> None:
        coordinator = self._coordinator
        code = response.error_code
        log = coordinator.ctx.log
        behaviour = coordinator.behaviour
        if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:  # CR-02
            log("info", "JoinGroup failed: Coordinator is loading the group.")
            future.fail(JavaError.of(code))
        elif code == ErrorCode.UNKNOWN_MEMBER_ID:  # CR-03
            log(
                "info",
                f"JoinGroup failed: {code.message} Need to re-join the group. "
                f"Sent generation was {sent}",
            )
            if not behaviour.join_reset_needs_same_generation or coordinator.generation == sent:
                coordinator.reset_on_response_error("JOIN_GROUP", code)
            future.fail(JavaError.of(code))
        elif code in _UNKNOWN_COORDINATOR:  # CR-04
            coordinator.mark_coordinator_unknown(f"error response {code.name}")
            log(
                "info",
                f"JoinGroup failed: {code.message} Marking coordinator unknown. "
                f"Sent generation was {sent}",
            )
            future.fail(JavaError.of(code))
        elif code == ErrorCode.FENCED_INSTANCE_ID and behaviour.rejoins_after_fencing:
            self._start_again("JOIN_GROUP", code, future)
        elif code == ErrorCode.FENCED_INSTANCE_ID:  # CR-05
            log(
                "error",
                f"JoinGroup failed: The group instance id {coordinator.config.group_instance_id} has "
                f"been fenced by another instance. Sent generation was {sent}",
            )
            future.fail(JavaError.of(code))
        elif code == ErrorCode.MEMBER_ID_REQUIRED and not behaviour.member_id_required_is_fatal:
            self._member_id_required(response, future)
        elif code == ErrorCode.REBALANCE_IN_PROGRESS and (
            behaviour.join_retries_rebalance_in_progress
        ):  # CR-13
            log(
                "info",
                "JoinGroup failed due to non-fatal error: REBALANCE_IN_PROGRESS, which could "
                "indicate a replication timeout on the broker. Will retry.",
            )
            coordinator.forgets_member_id = behaviour.forgets_member_id
            future.fail(JavaError.of(code))
        else:
            self._join_fatal(code, future)

    def _join_fatal(self, code: ErrorCode, future: RequestFuture[bytes]) -> None:
        coordinator = self._coordinator
        group = coordinator.group_id
        if code == ErrorCode.UNSUPPORTED_VERSION:  # CR-11
            coordinator.ctx.log(
                "error",
                "JoinGroup failed due to unsupported version error. Please unset field "
                "group.instance.id and retry to see if the problem resolves",
            )
            future.fail(JavaError.of(code))
            return
        if code == ErrorCode.GROUP_MAX_SIZE_REACHED:  # CR-10
            error = JavaError(
                code.exception,
                f"Consumer group {group} already has the configured maximum number of members.",
            )
        elif code == ErrorCode.GROUP_AUTHORIZATION_FAILED:  # CR-09
            error = JavaError.group_authorization(group)
        elif code in _FATAL_ON_JOIN:
            error = JavaError.of(code)
        else:  # CR-14
            sentence = f"JoinGroup failed due to unexpected error: {code.message}"
            coordinator.ctx.log("error", sentence)
            future.fail(
                JavaError.unexpected(f"Unexpected error in join group response: {code.message}")
            )
            return
        coordinator.ctx.log("error", f"JoinGroup failed due to fatal error: {code.message}")
        future.fail(error)

    def _start_again(self, api: str, code: ErrorCode, future: RequestFuture[bytes]) -> None:
        """Take a fatal answer for UNKNOWN_MEMBER_ID (a misbehaviour)."""
        self._coordinator.reset_on_response_error(api, code)
        future.fail(JavaError.of(ErrorCode.UNKNOWN_MEMBER_ID))

    def _member_id_required(
        self, response: JoinGroupResponse, future: RequestFuture[bytes]
    ) -> None:
        coordinator = self._coordinator
        member_id = response.member_id
        reason = f"need to re-join with the given member-id: {member_id}"
        state = coordinator.state
        if coordinator.behaviour.member_id_required_resets:
            state = JoinState.UNJOINED
            if coordinator.behaviour.reset_repeats_prepare:
                coordinator.needs_join_prepare = True
        if coordinator.behaviour.join_reset_loses and coordinator.cooperative:
            coordinator.needs_join_prepare = True
        coordinator.join_not_before_ms = 0
        coordinator.set_state(state, reason, Generation(-1, member_id, None))  # CR-12
        coordinator.request_rejoin(reason)
        future.fail(JavaError.of(response.error_code))

    # -- SyncGroup -----------------------------------------------------------------------------

    def _lead(
        self, response: JoinGroupResponse, future: RequestFuture[bytes]
    ) -> Generator[Wait, None, None]:
        coordinator = self._coordinator
        coordinator.lock()
        try:
            skip = response.skip_assignment and coordinator.behaviour.honours_skip_assignment
            plan = yield from coordinator.on_leader_elected(
                response.protocol_name or "", response.members, skip_assignment=skip
            )
        except JavaError as error:  # CS-01: an assignor's bug, even a wakeup, fails the join
            if not coordinator.join_reacts("assignor", error, future):
                future.fail(error)
            return
        finally:
            coordinator.unlock()
        assignments = tuple(
            SyncGroupRequestAssignment(member_id=member_id, assignment=data)
            for member_id, data in plan.items()
        )
        self._sync(assignments, future)

    def _sync(
        self, assignments: tuple[SyncGroupRequestAssignment, ...], future: RequestFuture[bytes]
    ) -> None:
        coordinator = self._coordinator
        if coordinator.coordinator_unknown():
            future.fail(JavaError.of(ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return
        if coordinator.behaviour.never_syncs:
            return  # the future stays open for ever
        generation = coordinator.generation
        named = coordinator.behaviour.sync_names_protocol
        request = SyncGroupRequest(
            group_id=coordinator.group_id,
            generation_id=generation.generation_id,
            member_id=generation.member_id,
            group_instance_id=coordinator.config.group_instance_id,
            protocol_type="consumer" if named else None,
            protocol_name=generation.protocol_name if named else None,
            assignments=assignments,
        )
        coordinator.send(request, self.sync_group, future, coordinator.sync_timeout_ms())

    def sync_group(
        self, response: SyncGroupResponse, future: RequestFuture[bytes], sent: Generation
    ) -> None:
        """Handle a SyncGroup answer."""
        if response.error_code != ErrorCode.NONE:
            if not self._coordinator.join_reacts("sync", response.error_code, future):
                self._sync_refused(response.error_code, future, sent)
            return
        if self._wrong_protocol_type("SyncGroup", response.protocol_type, future):  # CS-20
            return
        coordinator = self._coordinator
        generation, state = coordinator.generation, coordinator.state
        if generation.was_reset or state is not JoinState.COMPLETING_REBALANCE:
            if not coordinator.behaviour.wiped_sync_retries_at_once:
                future.complete(response.assignment)
                return
            coordinator.ctx.log(
                "info",
                f"Generation data was cleared by heartbeat thread to {generation} and state is now "
                f"{coordinator.shown_state(state)} before receiving SyncGroup response, marking this "
                "rebalance as failed and retry",
            )
            future.fail(JavaError.of(ErrorCode.ILLEGAL_GENERATION))
            return
        name = response.protocol_name
        if coordinator.behaviour.checks_protocol and name not in {None, generation.protocol_name}:
            coordinator.ctx.log(
                "error",
                f"SyncGroup failed due to inconsistent Protocol Name, received {name} but expected "
                f"{generation.protocol_name}",
            )
            future.fail(JavaError.of(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
            return
        coordinator.ctx.log("info", f"Successfully synced group in generation {generation}")
        if not coordinator.behaviour.stable_when_polled:
            self.now_stable()
        future.complete(response.assignment)

    def now_stable(self) -> None:
        """The member has its assignment (1.2)."""
        coordinator = self._coordinator
        coordinator.set_state(JoinState.STABLE, "received a successful SyncGroup response")
        coordinator.rejoin_reason = ""
        coordinator.rejoin_needed = False
        coordinator.rebalance_end_ms = coordinator.ctx.now_ms
        coordinator.rebalance_start_ms = -1
        if not coordinator.behaviour.heartbeats_while_syncing:
            self.enable_heartbeats()

    def _sync_refused(
        self, code: ErrorCode, future: RequestFuture[bytes], sent: Generation
    ) -> None:
        coordinator = self._coordinator
        log = coordinator.ctx.log
        behaviour = coordinator.behaviour
        if code == ErrorCode.GROUP_AUTHORIZATION_FAILED:  # CS-21
            future.fail(JavaError.group_authorization(coordinator.group_id))
        elif code == ErrorCode.REBALANCE_IN_PROGRESS:  # CS-22
            log(
                "info",
                "SyncGroup failed: The group began another rebalance. Need to re-join the group. "
                f"Sent generation was {sent}",
            )
            coordinator.forgets_member_id = behaviour.forgets_member_id
            future.fail(JavaError.of(code))
        elif code == ErrorCode.FENCED_INSTANCE_ID and behaviour.rejoins_after_fencing:
            self._start_again("SYNC_GROUP", code, future)
        elif code == ErrorCode.FENCED_INSTANCE_ID:  # CS-23
            log(
                "error",
                f"SyncGroup failed: The group instance id {coordinator.config.group_instance_id} has "
                f"been fenced by another instance. Sent generation was {sent}",
            )
            future.fail(JavaError.of(code))
        elif code in {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION}:  # CS-24, CS-25
            log(
                "info",
                f"SyncGroup failed: {code.message} Need to re-join the group. "
                f"Sent generation was {sent}",
            )
            if coordinator.generation == sent:
                coordinator.reset_on_response_error("SYNC_GROUP", code)
            future.fail(JavaError.of(code))
        elif code in _UNKNOWN_COORDINATOR:  # CS-26
            log(
                "info",
                f"SyncGroup failed: {code.message} Marking coordinator unknown. "
                f"Sent generation was {sent}",
            )
            coordinator.mark_coordinator_unknown(f"error response {code.name}")
            future.fail(JavaError.of(code))
        else:  # CS-27
            future.fail(JavaError.unexpected(f"Unexpected error from SyncGroup: {code.message}"))

    # -- both ----------------------------------------------------------------------------------

    def join_ended(self, future: RequestFuture[bytes]) -> None:
        """Count failed rebalances (CJ-19); an old client also falls back to UNJOINED (1.2)."""
        if future.error is None:
            return
        coordinator = self._coordinator
        coordinator.failed_rebalances += 1
        behaviour = coordinator.behaviour
        if behaviour.impatient_join and future.error.exception == "DisconnectException":
            coordinator.forgets_member_id = True
        if behaviour.failed_join_unjoins:
            coordinator.set_state(JoinState.UNJOINED, f"join failed: {future.error.exception}")

    def enable_heartbeats(self) -> None:
        """Start the heartbeat thread's work (1.4)."""
        if self._coordinator.heartbeat_thread is not None:
            self._coordinator.heartbeat_thread.enable()

    def _wrong_protocol_type(
        self, api: str, protocol_type: str | None, future: RequestFuture[bytes]
    ) -> bool:
        coordinator = self._coordinator
        if not coordinator.behaviour.checks_protocol or protocol_type in {None, "consumer"}:
            return False
        coordinator.ctx.log(
            "error",
            f"{api} failed: Inconsistent Protocol Type, received {protocol_type} but expected consumer",
        )
        future.fail(JavaError.of(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        return True
