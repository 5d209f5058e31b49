"""Failures inside the coordinator, and what clients see of them (rule C-10)."""

from __future__ import annotations

from groupsim.protocol.errors import ErrorCode

__all__ = ["CoordinatorError", "GroupError", "IllegalStateError", "append_error", "operation_error"]


class CoordinatorError(Exception):
    """An operation ends with an error code.

    Attributes:
        code: the code as Kafka's ``Errors.forException`` would give it.
        message: Kafka's words where an answer carries them, else ``None``.

    """

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.message)
        self.code = code
        self.message = message


class GroupError(CoordinatorError):
    """Kafka's ``ApiException``: something the group's rules refuse."""


class IllegalStateError(CoordinatorError):
    """Kafka's ``IllegalStateException``: clients see UNKNOWN_SERVER_ERROR (J-48)."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, message)


_APPEND = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
_OPERATION = {**_APPEND, ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}


def append_error(error: ErrorCode) -> ErrorCode:
    """``appendGroupMetadataErrorToResponseError``: for the callbacks of Join and Sync (C-10)."""
    return _APPEND.get(error, error)


def operation_error(error: ErrorCode) -> ErrorCode:
    """``CoordinatorOperationExceptionHelper``: for every other answer (C-10)."""
    return _OPERATION.get(error, error)
