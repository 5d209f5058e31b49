"""LeaveGroup: the request, and what its answer does (``LeaveGroupResponseHandler``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    ApiKey,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from groupsim_clients.errors import JavaError
from groupsim_clients.futures import RequestFuture
from groupsim_clients.generation import Generation
from groupsim_clients.membership import MAX_REASON_LENGTH

if TYPE_CHECKING:
    from groupsim_clients.abstract_coordinator import AbstractCoordinator

__all__ = ["LeaveHandler"]

_LEAVE_GROUP = ApiKey.LEAVE_GROUP


class LeaveHandler:
    """The handler of one coordinator. When to leave is not its business."""

    def __init__(self, coordinator: AbstractCoordinator) -> None:
        self._coordinator = coordinator

    def request(self, member_id: str, reason: str) -> LeaveGroupRequest:
        """The request of a member that leaves, in the version that this client sends."""
        coordinator = self._coordinator
        version = dict(coordinator.behaviour.api_versions)[_LEAVE_GROUP]
        if version <= 2:
            return LeaveGroupRequest(group_id=coordinator.group_id, member_id=member_id)
        text = reason[:MAX_REASON_LENGTH] if version >= 5 else None
        return LeaveGroupRequest(
            group_id=coordinator.group_id,
            members=(MemberIdentity(member_id=member_id, reason=text),),
        )

    def left(
        self, response: LeaveGroupResponse, future: RequestFuture[None], sent: Generation
    ) -> None:
        """Handle the answer; errors are logged and change nothing, the member leaves in any case.

        Raises:
            JavaError: the answer names more than one member (CL-04).

        """
        if len(response.members) > 1:  # CL-04
            raise JavaError.illegal_state(
                "The expected leave group response should only contain no more than one member "
                f"info, however get {len(response.members)}"
            )
        code = response.error_code
        if code == ErrorCode.NONE and response.members:
            code = response.members[0].error_code
        if code == ErrorCode.NONE:
            future.complete(None)
        else:
            self._coordinator.ctx.log(
                "error", f"LeaveGroup request with {sent} failed with error: {code.message}"
            )
            future.fail(JavaError.of(code))
