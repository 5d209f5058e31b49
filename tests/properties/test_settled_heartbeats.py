"""The short way for settled members' heartbeats changes nothing but the cost.

Two coordinators get the same script. One is given the same heartbeat value again and again, as
clients do, so that it may rely on what it found out before; the other gets a fresh copy each time,
so that it looks anew. Effects and timers have to be the same throughout (H-05 to H-09).
"""

from __future__ import annotations

import dataclasses
import random

import pytest

from groupsim.coordinator import CoordinatorConfig, GroupCoordinator, partition_for
from groupsim.coordinator.effects import Append, Effect, Reply
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberIdentity,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    Request,
    SyncGroupRequest,
)

GROUPS = ("a", "b", "größe")


class Twin:
    """A coordinator with its log; ``copies``: whether it is given copies of its requests."""

    def __init__(self, copies: bool) -> None:
        numbers = iter(range(10**6))
        config = CoordinatorConfig.from_kafka({"group.initial.rebalance.delay.ms": 100})
        self.coordinator = GroupCoordinator(
            config=config, member_uuid=lambda: f"uuid-{next(numbers)}"
        )
        self.copies = copies
        self.pending: list[Append] = []
        self.token = 0
        for partition in range(50):
            self.coordinator.load(partition, (), 0, 0)

    def request(self, request: Request, now_ms: int) -> list[Effect]:
        """Hand over a request."""
        self.token += 1
        if self.copies:
            request = dataclasses.replace(request)
        return self.take(
            self.coordinator.handle(
                self.token,
                request,
                api_version=5 if not isinstance(request, HeartbeatRequest) else 4,
                client_id="c",
                client_host="/h",
                now_ms=now_ms,
            )
        )

    def take(self, effects: list[Effect]) -> list[Effect]:
        """Keep the appends of a call."""
        self.pending += [effect for effect in effects if isinstance(effect, Append)]
        return effects

    def settle(self, error: ErrorCode, now_ms: int) -> list[Effect]:
        """Say what became of the oldest append."""
        if not self.pending:
            return []
        append = self.pending.pop(0)
        return self.take(self.coordinator.append_completed(append.append_id, error, now_ms))


def requests(rng: random.Random, known: dict[str, tuple[str, int]]) -> Request:
    """A request that makes sense more often than not."""
    group_id = rng.choice(GROUPS)
    member_id, generation = known.get(group_id, ("", -1))
    kind = rng.random()
    if kind < 0.3 or not member_id:
        return JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=6000,
            rebalance_timeout_ms=5000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
        )
    if kind < 0.6:
        return SyncGroupRequest(
            group_id=group_id,
            generation_id=generation,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name="range",
        )
    if kind < 0.7:
        return LeaveGroupRequest(group_id=group_id, members=(MemberIdentity(member_id=member_id),))
    offset = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id=generation,
        member_id=member_id,
        topics=(OffsetCommitRequestTopic(name="t", partitions=(offset,)),),
    )


@pytest.mark.parametrize("seed", range(12))
def test_remembered_heartbeats_are_as_good_as_new_ones(seed: int) -> None:
    """Joins, syncs, commits, failed appends, leaves, unloads and expiries between heartbeats."""
    rng = random.Random(seed)
    twins = (Twin(copies=False), Twin(copies=True))
    known: dict[str, tuple[str, int]] = {}
    heartbeats: dict[tuple[str, str, int], HeartbeatRequest] = {}
    now_ms, epoch, answered = 0, 0, 0
    for _ in range(600):
        jumps = rng.random() < 0.04  # sessions end
        now_ms += 7000 if jumps else rng.choice((0, 1, 10, 300))
        dice = 0.95 if jumps else rng.random()
        both: list[list[Effect]]
        if dice < 0.5 and known:
            group_id = rng.choice(list(known))
            member_id, generation = known[group_id]
            key = (group_id, member_id, generation)
            heartbeat = heartbeats.setdefault(
                key,
                HeartbeatRequest(group_id=group_id, generation_id=generation, member_id=member_id),
            )
            both = [twin.request(heartbeat, now_ms) for twin in twins]
            answered += sum(isinstance(effect, Reply) for effect in both[0])
        elif dice < 0.75:
            request = requests(rng, known)
            both = [twin.request(request, now_ms) for twin in twins]
        elif dice < 0.9:
            error = rng.choice((ErrorCode.NONE,) * 9 + (ErrorCode.NOT_ENOUGH_REPLICAS,))
            both = [twin.settle(error, now_ms) for twin in twins]
        elif dice < 0.99:
            both = [twin.take(twin.coordinator.advance(now_ms)) for twin in twins]
        else:
            epoch += 2
            partition = partition_for(rng.choice(GROUPS), 50)
            both = [
                twin.coordinator.unload(partition, epoch - 1, now_ms)
                + twin.coordinator.load(partition, (), epoch, now_ms)
                for twin in twins
            ]
        assert both[0] == both[1]
        for effect in both[0]:
            if isinstance(effect, Reply) and isinstance(effect.response, JoinGroupResponse):
                response = effect.response
                for group_id in GROUPS:
                    group = twins[0].coordinator.snapshot().group(group_id)
                    if group and any(m.member_id == response.member_id for m in group.members):
                        known[group_id] = (response.member_id, response.generation_id)
                    elif response.error_code is ErrorCode.MEMBER_ID_REQUIRED and (
                        group and response.member_id in group.pending_joins
                    ):
                        known[group_id] = (response.member_id, -1)
        assert twins[0].coordinator.snapshot() == twins[1].coordinator.snapshot()
    assert answered > 50
