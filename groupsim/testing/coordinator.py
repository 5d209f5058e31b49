"""A coordinator on a bench: a manual clock, a log in memory, and short ways to ask for things.

    bench = Bench({"group.initial.rebalance.delay.ms": 0})
    leader, follower = bench.stable(2)
    bench.sleep(10_000)                      # their sessions pass
    assert bench.group().state is GroupState.EMPTY

Appends are committed at once unless told otherwise (``hold``, ``fail_with``). Time moves only in
``sleep``, from deadline to deadline, so that every timer sees its own instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from groupsim.protocol.consumer_protocol import Subscription, encode_subscription
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
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from groupsim.testing.bench import BareBench

__all__ = ["Bench", "offers", "subscription"]


def subscription(*topics: str) -> bytes:
    """A consumer's subscription to these topics, as version 1."""
    return encode_subscription(Subscription(topics=topics), 1)


def offers(*protocols: str | tuple[str, bytes]) -> tuple[JoinGroupRequestProtocol, ...]:
    """Protocols by name, subscribed to ``orders`` unless bytes are given with the name."""
    pairs = [
        (entry, subscription("orders")) if isinstance(entry, str) else entry for entry in protocols
    ]
    return tuple(JoinGroupRequestProtocol(name=name, metadata=data) for name, data in pairs)


class Bench(BareBench):
    """A bench (see ``BareBench`` for what it holds) with short ways to ask for things."""

    # -- requests ----------------------------------------------------------------------------

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
