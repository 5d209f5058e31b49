"""The one decorator and the shared definitions of all protocol messages."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

__all__ = ["ApiKey", "message"]

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def message(cls: type[T]) -> type[T]:
    """Make ``cls`` an immutable value: frozen, slotted, keyword-only, compared by content."""
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)


class ApiKey(enum.IntEnum):
    """Number of a request kind in Kafka's request header (int16 on the wire)."""

    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    TXN_OFFSET_COMMIT = 28
    DELETE_GROUPS = 42
    OFFSET_DELETE = 47
