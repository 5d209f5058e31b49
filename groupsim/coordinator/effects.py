"""What the coordinator hands back: answers, log appends, and notes for the trace."""

from __future__ import annotations

from typing import ClassVar

from groupsim.coordinator.records import Record
from groupsim.protocol._base import draft_of
from groupsim.protocol.effects import Note, note
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import Response, message

__all__ = [
    "Append",
    "CoordinatorLog",
    "Effect",
    "GroupTransition",
    "MemberChange",
    "RebalanceCompleted",
    "Reply",
    "TimerArmed",
    "TimerCancelled",
    "TimerFired",
    "TransactionEnded",
    "reply",
]


@message
class Reply:
    """Answer the request that came in with ``token``. A token is answered at most once."""

    token: int
    response: Response


_ReplyDraft = draft_of(Reply)
_new_draft = object.__new__


def reply(token: int, response: Response) -> Reply:
    """``Reply(token=token, response=response)`` at a quarter of its cost, for heartbeats."""
    made = _new_draft(_ReplyDraft)
    made.token = token
    made.response = response
    made.__class__ = Reply
    return made  # type: ignore[no-any-return]


@message
class Append:
    """Append ``records`` as one batch to ``__consumer_offsets`` partition ``partition``.

    The world answers with ``GroupCoordinator.append_completed(append_id, error, now_ms)`` when the
    batch is committed (error NONE) or has failed.
    """

    append_id: int
    partition: int
    records: tuple[Record, ...]


@message
class TransactionEnded:
    """What became of ``complete_transaction``, if it was called with a token."""

    token: int
    error_code: ErrorCode


@note
class GroupTransition(Note):
    """A group changed its state (names of rule 1.1). ``reason`` is Kafka's wording of why."""

    kind: ClassVar[str] = "group_transition"
    group_id: str
    from_state: str
    to_state: str
    generation_id: int
    members: int
    reason: str


@note
class MemberChange(Note):
    """The broker's view of one member changed.

    ``change`` is one of: pending, joined, rejoined, replaced, left, expired, removed, synced,
    leader. ``reason`` is Kafka's wording.
    """

    kind: ClassVar[str] = "member_change"
    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    change: str
    reason: str


@note
class RebalanceCompleted(Note):
    """A join phase ended with members: ``phase`` "join", or their assignment is in: "sync"."""

    kind: ClassVar[str] = "rebalance_phase"
    group_id: str
    generation_id: int
    phase: str
    leader: str
    protocol_name: str | None
    members: tuple[str, ...]


@note
class TimerArmed(Note):
    """A broker timer was armed. ``timer`` is one of session, new-member, pending-member, join,
    initial-join, pending-sync. Write limits (write-timeout), lingers and expiration runs that
    removed something are noted only when they fire, the gauge (T-9) never.
    Extensions of a session by heartbeats and commits make no note: their deadline follows from
    the accepted request.
    """

    kind: ClassVar[str] = "timer_armed"
    timer: str
    key: str
    deadline_ms: int


@note
class TimerFired(Note):
    """A broker timer fired."""

    kind: ClassVar[str] = "timer_fired"
    timer: str
    key: str


@note
class TimerCancelled(Note):
    """A broker timer was cancelled, or replaced by a timer of another kind."""

    kind: ClassVar[str] = "timer_cancelled"
    timer: str
    key: str


@note
class CoordinatorLog(Note):
    """A sentence that Kafka's broker logs for what just happened, in Kafka's words."""

    kind: ClassVar[str] = "broker_log"
    group_id: str
    level: str
    sentence: str


Effect = Reply | Append | TransactionEnded | Note
