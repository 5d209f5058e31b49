"""The bench itself: a coordinator with a manual clock and a log in memory.

Everything goes through ``send`` and ``answer`` here; ``coordinator.Bench`` has shorter ways.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from groupsim.coordinator import CoordinatorConfig, GroupCoordinator, GroupSnapshot
from groupsim.coordinator.access import Authorizer, TopicCatalogue, TransactionVerifier
from groupsim.coordinator.classic.group import ClassicGroup
from groupsim.coordinator.config import Switches
from groupsim.coordinator.effects import Append, CoordinatorLog, Effect, Reply, TransactionEnded
from groupsim.coordinator.records import GroupMetadataValue, Record
from groupsim.protocol.effects import Note
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import Request, Response

__all__ = ["BareBench"]

R = TypeVar("R")


class BareBench:
    """A coordinator, its clock and its log.

    Attributes:
        now_ms: the time.
        replies: answers by token.
        notes: everything the coordinator noted, in order.
        appends: every append it asked for, in order.
        log: what has been committed, by partition.
        hold: appends wait in ``waiting`` until ``commit_appends``.
        fail_with: appends fail with this error, at once.

    """

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        *,
        topics: TopicCatalogue | None = None,
        authorizer: Authorizer | None = None,
        transactions: TransactionVerifier | None = None,
        switches: Switches | None = None,
        log_gate: Callable[[Append], ErrorCode] | None = None,
        load: bool = True,
    ) -> None:
        options = {"offsets.topic.num.partitions": 1, **(config or {})}
        self.config = CoordinatorConfig.from_kafka(options, switches=switches)
        self._world: dict[str, Any] = {
            "topics": topics,
            "authorizer": authorizer,
            "transactions": transactions,
            "log_gate": log_gate,
        }
        self.now_ms = 0
        self.replies: dict[int, Response] = {}
        self.ended: dict[int, ErrorCode] = {}
        self.notes: list[Note] = []
        self.appends: list[Append] = []
        self.log: dict[int, list[Record]] = {}
        self.waiting: list[Append] = []
        self.hold = False
        self.fail_with: ErrorCode | None = None
        self._tokens = 0
        self._uuids = 0
        self._epoch = 0
        self.coordinator = self._new_coordinator()
        if load:
            self.load()

    def _new_coordinator(self) -> GroupCoordinator:
        return GroupCoordinator(config=self.config, member_uuid=self._next_uuid, **self._world)

    def _next_uuid(self) -> str:
        self._uuids += 1
        return f"00000000-0000-4000-8000-{self._uuids:012d}"

    # -- effects -----------------------------------------------------------------------------

    def carry_out(self, effects: Sequence[Effect]) -> None:
        """Do what the coordinator asks for."""
        for effect in effects:
            if isinstance(effect, Reply):
                if effect.token in self.replies:
                    raise AssertionError(f"token {effect.token} is answered twice")
                self.replies[effect.token] = effect.response
            elif isinstance(effect, TransactionEnded):
                self.ended[effect.token] = effect.error_code
            elif isinstance(effect, Append):
                self.appends.append(effect)
                self._append(effect)
            else:
                self.notes.append(effect)

    def _append(self, append: Append) -> None:
        if self.fail_with is not None:
            self.complete(append, self.fail_with)
        elif self.hold:
            self.waiting.append(append)
        else:
            self.complete(append)

    def complete(self, append: Append, error: ErrorCode = ErrorCode.NONE) -> None:
        """Tell what became of an append."""
        if error is ErrorCode.NONE:
            self.log.setdefault(append.partition, []).extend(append.records)
        self.carry_out(self.coordinator.append_completed(append.append_id, error, self.now_ms))

    def commit_appends(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """Complete everything that is held, in order."""
        waiting, self.waiting = self.waiting, []
        for append in waiting:
            self.complete(append, error)

    def sentences(self) -> list[str]:
        """What Kafka's broker would have logged."""
        return [note.sentence for note in self.notes if isinstance(note, CoordinatorLog)]

    # -- time and leadership -----------------------------------------------------------------

    def sleep(self, duration_ms: int) -> None:
        """Let time pass, timer by timer."""
        end_ms = self.now_ms + duration_ms
        while (due_ms := self.coordinator.next_deadline_ms()) is not None and due_ms <= end_ms:
            self.now_ms = max(self.now_ms, due_ms)
            self.carry_out(self.coordinator.advance(self.now_ms))
        self.now_ms = end_ms

    def load(self) -> None:
        """Load every partition from the log, under a new epoch."""
        self._epoch += 1
        for partition in range(self.config.offsets_topic_num_partitions):
            records = self.log.get(partition, [])
            self.carry_out(self.coordinator.load(partition, records, self._epoch, self.now_ms))

    def unload(self) -> None:
        """Unload every partition, as for an election that went elsewhere."""
        self._epoch += 1
        for partition in range(self.config.offsets_topic_num_partitions):
            self.carry_out(self.coordinator.unload(partition, self._epoch, self.now_ms))

    def fail_over(self) -> None:
        """The broker crashes without a word; another one loads the log."""
        self.coordinator = self._new_coordinator()
        self.waiting.clear()
        self.load()

    # -- looking in --------------------------------------------------------------------------

    def group(self, group_id: str = "g") -> ClassicGroup:
        """The living group itself, for tests that force a state."""
        group = self.coordinator._core.shard_of(group_id).context.groups.get(group_id)
        if group is None:
            raise LookupError(f"no group {group_id}")
        return group

    def has_group(self, group_id: str = "g") -> bool:
        """Whether the group exists, committed or not."""
        return self.coordinator.snapshot().group(group_id) is not None

    def seen(self, group_id: str = "g") -> GroupSnapshot:
        """The group as a value."""
        snapshot = self.coordinator.snapshot().group(group_id)
        if snapshot is None:
            raise LookupError(f"no group {group_id}")
        return snapshot

    def timers(self) -> dict[str, tuple[str, int]]:
        """Kind and deadline of the keyed timers of groups, by key."""
        return {
            timer.key: (timer.kind, timer.deadline_ms)
            for timer in self.coordinator.snapshot().timers
            if timer.kind not in ("expiration", "gauge")
        }

    def group_records(self) -> list[GroupMetadataValue | None]:
        """Group records that were appended, tombstones as ``None``."""
        values = [
            record.value
            for append in self.appends
            for record in append.records
            if hasattr(record.key, "group") and not hasattr(record.key, "topic")
        ]
        return [value if isinstance(value, GroupMetadataValue) else None for value in values]

    # -- requests ----------------------------------------------------------------------------

    def send(
        self,
        request: Request,
        version: int = 9,
        *,
        client_id: str = "client",
        client_host: str = "/127.0.0.1",
    ) -> int:
        """Send a request and return its token; the answer may come later."""
        self._tokens += 1
        token = self._tokens
        self.carry_out(
            self.coordinator.handle(
                token,
                request,
                api_version=version,
                client_id=client_id,
                client_host=client_host,
                now_ms=self.now_ms,
            )
        )
        return token

    def answer(self, token: int, kind: type[R]) -> R:
        """The answer to a token; it must be there and of this kind."""
        response = self.replies.get(token)
        if not isinstance(response, kind):
            raise TypeError(f"token {token}: {response!r} is no {kind.__name__}")
        return response

    def is_parked(self, token: int) -> bool:
        """Whether a request has no answer yet."""
        return token not in self.replies
