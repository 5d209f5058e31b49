"""Where handlers put what is to happen, and where they read what time it is."""

from __future__ import annotations

from groupsim.coordinator.effects import CoordinatorLog, Effect, Reply
from groupsim.protocol.messages import Response

__all__ = ["Answer", "Outbox"]


class Outbox:
    """Effects of the running call and its time; one for each coordinator.

    ``changes`` grows with every call that may change anything, so that what was found out can be
    relied on as long as it stays the same. Looking for due timers is no change, firing one is.
    """

    __slots__ = ("appended", "changes", "effects", "now_ms")

    def __init__(self) -> None:
        self.effects: list[Effect] = []
        self.now_ms = 0
        self.changes = 0
        self.appended = False

    def begin(self, now_ms: int) -> None:
        """Start a call: fresh effects at ``now_ms``."""
        self.changes += 1
        self.look(now_ms)

    def look(self, now_ms: int) -> None:
        """Start a call that changes nothing unless it finds something to do."""
        self.effects = []
        self.now_ms = now_ms
        self.appended = False

    def log(self, group_id: str, level: str, sentence: str) -> None:
        """Note a sentence of Kafka's broker log."""
        self.effects.append(CoordinatorLog(group_id=group_id, level=level, sentence=sentence))


class Answer:
    """The one answer a request may get: Kafka's ``CompletableFuture`` of its response.

    Completing it again does nothing, as with Kafka's future: a parked request whose answer was
    given by a failed write is not answered a second time (C-12).
    """

    __slots__ = ("_outbox", "api_version", "done", "token")

    def __init__(self, outbox: Outbox, token: int, api_version: int) -> None:
        self._outbox = outbox
        self.token = token
        self.api_version = api_version
        self.done = False

    def complete(self, response: Response) -> None:
        """Give the answer, unless it has been given."""
        if not self.done:
            self.done = True
            self._outbox.effects.append(Reply(token=self.token, response=response))
