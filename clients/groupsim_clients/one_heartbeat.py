"""The process of clients that never have two heartbeats in flight.

Java's short way for steady heartbeats sends when one is due, whatever became of the last one. Here it
is left whenever an answer is missing; the general way then waits for the answer.
"""

from __future__ import annotations

from groupsim.protocol.messages import Response
from groupsim_clients.process import ConsumerProcess

__all__ = ["OneHeartbeatProcess"]


class OneHeartbeatProcess(ConsumerProcess):
    """A ``ConsumerProcess`` whose heartbeats wait for each other."""

    def beat(self, now_ms: int) -> int:
        """The short way, unless something is unanswered."""
        if self._slow_at_ms >= 0 and (self._sent or self._client.in_flight):
            self._slow_at_ms = -1
            return 0
        return super().beat(now_ms)

    def beat_answered(self, correlation_id: int, response: Response, now_ms: int) -> bool:
        """The short way for what was sent on it; other answers may set a waiting heartbeat free."""
        if correlation_id not in self._sent:
            self._slow_at_ms = -1
            return False
        return super().beat_answered(correlation_id, response, now_ms)
