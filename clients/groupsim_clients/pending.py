"""What the network client keeps: connections as they were last seen, and requests on their way."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from groupsim.protocol.messages import Request
from groupsim_clients.errors import JavaError
from groupsim_clients.timing import Wait

__all__ = ["BOOTSTRAP", "COORDINATOR", "Connection", "Handler", "Key", "Lost", "PendingRequest"]

BOOTSTRAP = "bootstrap"
COORDINATOR = "coordinator"

Key = tuple[int, str]
Handler = Callable[[Any], Generator[Wait, None, None] | None]


class Connection:
    """One connection as ``ClusterConnectionStates`` sees it: failed, and until when not retried."""

    __slots__ = ("attempts", "failed", "retry_at_ms")

    def __init__(self) -> None:
        self.failed = False
        self.attempts = 0
        self.retry_at_ms = 0


class Lost:
    """News that a connection is gone; ``error`` when authentication failed on it."""

    __slots__ = ("error", "key")

    def __init__(self, key: Key, error: JavaError | None = None) -> None:
        self.key = key
        self.error = error


class PendingRequest:
    """A request that is queued or in flight. ``sent_ms`` is −1 while it is queued."""

    __slots__ = (
        "created_ms",
        "key",
        "on_failure",
        "on_response",
        "request",
        "sent_ms",
        "timeout_ms",
    )

    def __init__(
        self,
        key: Key,
        request: Request,
        created_ms: int,
        timeout_ms: int,
        handlers: tuple[Handler, Callable[[JavaError], None]],
    ) -> None:
        self.key = key
        self.request = request
        self.created_ms = created_ms
        self.timeout_ms = timeout_ms
        self.on_response, self.on_failure = handlers
        self.sent_ms = -1
