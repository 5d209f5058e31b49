"""A coordinator on a bench: a manual clock, a log in memory, and short ways to ask for things.

    bench = Bench({"group.initial.rebalance.delay.ms": 0})
    leader, follower = bench.stable(2)
    bench.sleep(10_000)                      # their sessions pass
    assert bench.group().state is GroupState.EMPTY

Appends are committed at once unless told otherwise (``hold``, ``fail_with``). Time moves only in
``sleep``, from deadline to deadline, so that every timer sees its own instant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from groupsim.coordinator import CoordinatorConfig, GroupCoordinator, GroupSnapshot
from groupsim.coordinator.access import Authorizer, TopicCatalogue, TransactionVerifier
from groupsim.coordinator.classic.group import ClassicGroup
from groupsim.coordinator.config import Switches
from groupsim.coordinator.effects import Append, CoordinatorLog, Effect, Reply, TransactionEnded
from groupsim.coordinator.records import GroupMetadataValue, Record
from groupsim.protocol.consumer_protocol import Subscription, encode_subscription
from groupsim.protocol.effects import Note
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    Request,
    Response,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

__all__ = ["Bench", "offers", "subscription"]

R = TypeVar("R")


def subscription(*topics: str) -> bytes:
    """A consumer's subscription to these topics, as version 1."""
    return encode_subscription(Subscription(topics=topics), 1)


def offers(*protocols: str | tuple[str, bytes]) -> tuple[JoinGroupRequestProtocol, ...]:
    """Protocols by name, subscribed to ``orders`` unless bytes are given with the name."""
    pairs = [
        (entry, subscription("orders")) if isinstance(entry, str) else entry for entry in protocols
    ]
    return tuple(JoinGroupRequestProtocol(name=name, metadata=data) for name, data in pairs)


class Bench:
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

    def join(
        self,
        member_id: str = "",
        *,
        group: str = "g",
        instance: str | None = None,
        protocol_type: str = "consumer",
        protocols: Iterable[str | tuple[str, bytes]] = ("range",),
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        reason: str | None = None,
        version: int = 9,
        client_id: str = "client",
        client_host: str = "/127.0.0.1",
    ) -> int:
        """Send a JoinGroup and return its token."""
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=offers(*protocols),
            reason=reason,
        )
        return self.send(request, version, client_id=client_id, client_host=client_host)

    def joined(self, token: int) -> JoinGroupResponse:
        """The answer to a JoinGroup."""
        return self.answer(token, JoinGroupResponse)

    def new_id(self, **options: Any) -> str:
        """Ask for a member id (J-17)."""
        response = self.joined(self.join(**options))
        if response.error_code is not ErrorCode.MEMBER_ID_REQUIRED:
            raise AssertionError(f"no member id: {response}")
        return response.member_id

    def sync(
        self,
        member_id: str,
        *,
        group: str = "g",
        instance: str | None = None,
        generation: int | None = None,
        assignments: Mapping[str, bytes] | None = None,
        protocol_type: str | None = "consumer",
        protocol_name: str | None = "range",
        version: int = 5,
    ) -> int:
        """Send a SyncGroup and return its token; the group's own generation unless given."""
        request = SyncGroupRequest(
            group_id=group,
            generation_id=self._generation(group, generation),
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=name, assignment=data)
                for name, data in (assignments or {}).items()
            ),
        )
        return self.send(request, version)

    def synced(self, token: int) -> SyncGroupResponse:
        """The answer to a SyncGroup."""
        return self.answer(token, SyncGroupResponse)

    def _generation(self, group: str, generation: int | None) -> int:
        return self.group(group).generation_id if generation is None else generation

    def heartbeat(
        self,
        member_id: str,
        *,
        group: str = "g",
        instance: str | None = None,
        generation: int | None = None,
    ) -> ErrorCode:
        """Send a Heartbeat and return its error; it must be answered at once."""
        request = HeartbeatRequest(
            group_id=group,
            generation_id=self._generation(group, generation),
            member_id=member_id,
            group_instance_id=instance,
        )
        response: Any = self.replies[self.send(request, 4)]
        code: ErrorCode = response.error_code
        return code

    def leave(
        self,
        *members: str | MemberIdentity,
        group: str = "g",
        version: int = 5,
    ) -> LeaveGroupResponse:
        """Send a LeaveGroup; below version 3 with the one member given."""
        identities = tuple(
            MemberIdentity(member_id=entry) if isinstance(entry, str) else entry
            for entry in members
        )
        old = identities[0].member_id if version < 3 else ""
        request = LeaveGroupRequest(
            group_id=group, member_id=old, members=() if version < 3 else identities
        )
        return self.answer(self.send(request, version), LeaveGroupResponse)

    def leave_codes(self, *members: str | MemberIdentity) -> list[ErrorCode]:
        """The results of a LeaveGroup, member by member."""
        return [entry.error_code for entry in self.leave(*members).members]

    def commit(
        self,
        offsets: Mapping[tuple[str, int], int] | None = None,
        *,
        member_id: str = "",
        group: str = "g",
        instance: str | None = None,
        generation: int = -1,
        retention_ms: int = -1,
        metadata: str | None = None,
        version: int = 9,
    ) -> list[ErrorCode]:
        """Commit offsets (``orders``-0 at 7 unless given) and return the partitions' errors."""
        token = self.send_commit(
            offsets,
            member_id=member_id,
            group=group,
            instance=instance,
            generation=generation,
            retention_ms=retention_ms,
            metadata=metadata,
            version=version,
        )
        return self.commit_codes(token)

    def send_commit(
        self,
        offsets: Mapping[tuple[str, int], int] | None = None,
        *,
        member_id: str = "",
        group: str = "g",
        instance: str | None = None,
        generation: int = -1,
        retention_ms: int = -1,
        metadata: str | None = None,
        version: int = 9,
    ) -> int:
        """Send an OffsetCommit and return its token."""
        wanted = {("orders", 0): 7} if offsets is None else offsets
        request = OffsetCommitRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            retention_time_ms=retention_ms,
            topics=tuple(
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=(
                        OffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=offset,
                            committed_metadata=metadata,
                        ),
                    ),
                )
                for (topic, partition), offset in wanted.items()
            ),
        )
        return self.send(request, version)

    def commit_codes(self, token: int) -> list[ErrorCode]:
        """The errors of an answered OffsetCommit, partition by partition."""
        response = self.answer(token, OffsetCommitResponse)
        return [entry.error_code for topic in response.topics for entry in topic.partitions]

    def fetch(
        self,
        *partitions: tuple[str, int],
        group: str = "g",
        stable: bool = False,
        version: int = 9,
    ) -> dict[tuple[str, int], int | ErrorCode]:
        """Fetch offsets (all of them unless partitions are given): offset or error of each."""
        response = self.answer(
            self.send_fetch(*partitions, group=group, stable=stable, version=version),
            OffsetFetchResponse,
        )
        found = response.groups[0]
        if found.error_code is not ErrorCode.NONE:
            raise AssertionError(f"fetch failed: {found}")
        return {
            (topic.name, entry.partition_index): (entry.error_code or entry.committed_offset)
            for topic in found.topics
            for entry in topic.partitions
        }

    def send_fetch(
        self,
        *partitions: tuple[str, int],
        group: str = "g",
        stable: bool = False,
        version: int = 9,
    ) -> int:
        """Send an OffsetFetch and return its token."""
        topics = tuple(
            OffsetFetchRequestTopic(name=topic, partition_indexes=(index,))
            for topic, index in partitions
        )
        return self.send(
            OffsetFetchRequest(
                groups=(OffsetFetchRequestGroup(group_id=group, topics=topics or None),),
                require_stable=stable,
            ),
            version,
        )

    # -- whole stories -----------------------------------------------------------------------

    def completing(self, size: int, **options: Any) -> list[str]:
        """A new group of ``size`` dynamic members that has just ended its join phase.

        The leader comes first, the others in Kafka's order.
        """
        group_id = options.get("group", "g")
        tokens = [self.join(**{"version": 3, **options}) for _ in range(size)]
        self._end_join_phase(group_id)
        for token in tokens:
            if self.joined(token).error_code is not ErrorCode.NONE:
                raise AssertionError(f"join failed: {self.joined(token)}")
        return self._leader_first(group_id)

    def completing_static(self, *instances: str, **options: Any) -> list[str]:
        """The same with static members; their ids in the order of ``instances``."""
        group_id = options.get("group", "g")
        for instance in instances:
            self.join(instance=instance, **options)
        self._end_join_phase(group_id)
        return [self.group(group_id).static_members[instance] for instance in instances]

    def _end_join_phase(self, group_id: str) -> None:
        for _ in range(100):
            timer = self.timers().get(f"join-{group_id}")
            if timer is None:
                return
            self.sleep(timer[1] - self.now_ms)
        raise AssertionError("the join phase does not end")

    def _leader_first(self, group_id: str) -> list[str]:
        group = self.group(group_id)
        return sorted(group.members, key=lambda member_id: member_id != group.leader_id)

    def assign(self, group: str = "g") -> None:
        """Let every member sync, the leader last; each is assigned its own id as bytes."""
        seen = self.group(group)
        everything = {name: name.encode() for name in seen.members}
        order = [name for name in seen.members if name != seen.leader_id]
        for name in [*order, seen.leader_id or ""]:
            self.sync(
                name,
                group=group,
                assignments=everything if name == seen.leader_id else None,
                protocol_type=seen.protocol_type,
                protocol_name=seen.protocol_name,
            )

    def stable(self, size: int, **options: Any) -> list[str]:
        """A STABLE group of ``size`` dynamic members at generation 1, the leader first."""
        members = self.completing(size, **options)
        self.assign(options.get("group", "g"))
        return members

    def stable_static(self, *instances: str, **options: Any) -> list[str]:
        """A STABLE group of static members, ids in the order of ``instances``."""
        members = self.completing_static(*instances, **options)
        self.assign(options.get("group", "g"))
        return members

    def keep_alive(self, members: Iterable[str], duration_ms: int, every_ms: int = 3000) -> None:
        """Let time pass while members send heartbeats."""
        end_ms = self.now_ms + duration_ms
        while self.now_ms < end_ms:
            for member_id in members:
                self.heartbeat(member_id)
            self.sleep(min(every_ms, end_ms - self.now_ms))
