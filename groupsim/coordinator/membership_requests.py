"""The gate of JoinGroup, SyncGroup, Heartbeat and LeaveGroup: what ``KafkaApis`` and
``GroupCoordinatorService`` check before a group is looked at, and how answers are shaped.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final

from groupsim.coordinator.access import Call, Permit
from groupsim.coordinator.classic.group import join_answer
from groupsim.coordinator.classic.heartbeat import heartbeat
from groupsim.coordinator.classic.join import Joiner, join_group
from groupsim.coordinator.classic.leave import leave_group
from groupsim.coordinator.classic.sync import sync_group
from groupsim.coordinator.core import Core
from groupsim.coordinator.failures import operation_error
from groupsim.coordinator.outbox import Answer
from groupsim.coordinator.pipeline import NOTHING, Result
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

__all__ = ["HEARTBEAT_OK", "MembershipRequests"]

_HEARTBEATS: Final = {code: HeartbeatResponse(error_code=code) for code in ErrorCode}
HEARTBEAT_OK: Final = _HEARTBEATS[ErrorCode.NONE]
"""The shared answer to a good heartbeat."""


class MembershipRequests:
    """Handlers of the four requests."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def handlers(self) -> dict[type, Callable[[Any, Call], None]]:
        """Handlers by type of request."""
        return {
            JoinGroupRequest: self.join,
            SyncGroupRequest: self.sync,
            HeartbeatRequest: self.heartbeat,
            LeaveGroupRequest: self.leave,
        }

    def _gate_error(
        self, group_id: str | None, instance_id: str | None, permit: Permit
    ) -> ErrorCode:
        """J-01, J-02 and their like: an old metadata version, then authorization."""
        if instance_id is not None and self._core.config.switches.static_membership_gate:
            return ErrorCode.UNSUPPORTED_VERSION
        if not permit.allows("READ", "GROUP", group_id or ""):
            return ErrorCode.GROUP_AUTHORIZATION_FAILED
        return ErrorCode.NONE

    @staticmethod
    def _component_error(group_id: str | None, started: bool) -> ErrorCode:
        """J-04, J-05 and their like."""
        if not started:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return ErrorCode.NONE if group_id else ErrorCode.INVALID_GROUP_ID

    # -- JoinGroup ---------------------------------------------------------------------------

    def join(
        self,
        request: JoinGroupRequest,
        call: Call,
    ) -> None:
        """J-01 to J-08, J-48."""
        answer = call.answer
        if call.api_version == 0:  # J-03: no such field on the wire
            request = dataclasses.replace(request, rebalance_timeout_ms=request.session_timeout_ms)
        error = self._gate_error(request.group_id, request.group_instance_id, call.permit)
        if error is not ErrorCode.NONE:
            join_answer(answer, error_code=error)
            return
        error = self._component_error(request.group_id, call.started)
        config = self._core.config
        if error is ErrorCode.NONE and not (  # J-06
            config.group_min_session_timeout_ms
            <= request.session_timeout_ms
            <= config.group_max_session_timeout_ms
        ):
            error = ErrorCode.INVALID_SESSION_TIMEOUT
        if error is not ErrorCode.NONE:
            join_answer(answer, error_code=error, member_id=request.member_id)
            return
        shard = self._core.shard_of(request.group_id)
        joiner = Joiner(request, answer, call.client_id, call.client_host)

        def respond(error: ErrorCode) -> None:  # J-07, J-48, C-12
            if error is not ErrorCode.NONE:
                join_answer(answer, error_code=operation_error(error))

        shard.write(lambda: join_group(shard.context, joiner), respond)

    # -- SyncGroup ---------------------------------------------------------------------------

    def sync(
        self,
        request: SyncGroupRequest,
        call: Call,
    ) -> None:
        """S-01, S-02."""
        answer = call.answer
        error = self._sync_gate_error(request, call.api_version, call.permit)
        if error is ErrorCode.NONE:
            error = self._component_error(request.group_id, call.started)
        if error is not ErrorCode.NONE:
            answer.complete(SyncGroupResponse(error_code=error))
            return
        shard = self._core.shard_of(request.group_id)

        def respond(error: ErrorCode) -> None:
            if error is not ErrorCode.NONE:
                answer.complete(SyncGroupResponse(error_code=operation_error(error)))

        shard.write(lambda: sync_group(shard.context, request, answer), respond)

    def _sync_gate_error(
        self, request: SyncGroupRequest, api_version: int, permit: Permit
    ) -> ErrorCode:
        """S-01, in this order."""
        error = self._gate_error(request.group_id, request.group_instance_id, permit)
        if error is ErrorCode.UNSUPPORTED_VERSION:
            return error
        if api_version >= 5 and (request.protocol_type is None or request.protocol_name is None):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return error

    # -- Heartbeat ---------------------------------------------------------------------------

    def heartbeat(
        self,
        request: HeartbeatRequest,
        call: Call,
    ) -> None:
        """H-01 to H-03, H-09."""
        answer = call.answer
        error = self._gate_error(request.group_id, request.group_instance_id, call.permit)
        if error is ErrorCode.NONE:
            error = self._component_error(request.group_id, call.started)
        if error is not ErrorCode.NONE:
            answer.complete(_HEARTBEATS[error])
            return
        shard = self._core.shard_of(request.group_id)
        outcome = ErrorCode.NONE

        def operation() -> Result:
            nonlocal outcome
            outcome = heartbeat(shard.context, request)
            return NOTHING

        def respond(error: ErrorCode) -> None:
            if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS or (
                error is ErrorCode.NETWORK_EXCEPTION
            ):
                answer.complete(HEARTBEAT_OK)  # H-03: as mapped by C-10
            elif error is not ErrorCode.NONE:
                answer.complete(_HEARTBEATS[operation_error(error)])
            else:
                answer.complete(_HEARTBEATS[outcome])

        shard.write(operation, respond)

    # -- LeaveGroup --------------------------------------------------------------------------

    def leave(
        self,
        request: LeaveGroupRequest,
        call: Call,
    ) -> None:
        """L-01 to L-03, L-12."""
        answer = call.answer
        leaving = request.members
        if call.api_version < 3:  # L-01, L-13: one member, by id alone
            leaving = (MemberIdentity(member_id=request.member_id),)
        error = ErrorCode.NONE
        if not call.permit.allows("READ", "GROUP", request.group_id or ""):
            error = ErrorCode.GROUP_AUTHORIZATION_FAILED
        if error is ErrorCode.NONE:
            error = self._component_error(request.group_id, call.started)
        if error is not ErrorCode.NONE:
            answer.complete(LeaveGroupResponse(error_code=error))
            return
        shard = self._core.shard_of(request.group_id)
        response = LeaveGroupResponse()

        def operation() -> Result:
            nonlocal response
            result, response = leave_group(shard.context, request.group_id, leaving)
            return result

        def respond(error: ErrorCode) -> None:
            shown = response
            if error is ErrorCode.UNKNOWN_MEMBER_ID:  # L-03
                shown = _all_unknown(leaving)
            elif error is not ErrorCode.NONE:
                shown = LeaveGroupResponse(error_code=operation_error(error))
            answer.complete(_as_version(shown, answer))

        shard.write(operation, respond)


def _all_unknown(leaving: tuple[MemberIdentity, ...]) -> LeaveGroupResponse:
    return LeaveGroupResponse(
        members=tuple(
            MemberResponse(
                member_id=identity.member_id,
                group_instance_id=identity.group_instance_id,
                error_code=ErrorCode.UNKNOWN_MEMBER_ID,
            )
            for identity in leaving
        )
    )


def _as_version(response: LeaveGroupResponse, answer: Answer) -> LeaveGroupResponse:
    """L-13: below version 3 the member's error is the answer's."""
    if answer.api_version >= 3 or response.error_code is not ErrorCode.NONE:
        return response
    return LeaveGroupResponse(error_code=response.members[0].error_code)
