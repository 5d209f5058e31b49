"""The GroupCoordinator of a broker, without I/O: requests, timers and append results in, effects
out.

    coordinator = GroupCoordinator(config=CoordinatorConfig(), member_uuid=next_uuid)
    coordinator.load(partition, records, epoch=1, now_ms=0)
    for effect in coordinator.handle(token, request, api_version=9, client_id="c", ...):
        ...  # send a Reply, append an Append, write down the rest

The world owns time, the log and the network. It calls ``advance`` when ``next_deadline_ms`` has
come, and reports what became of each ``Append`` with ``append_completed``. The behaviour is that of
Apache Kafka 4.4 (``GroupCoordinatorService`` and what is below it); the rule ids in the comments
are those of the rule book.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from groupsim.coordinator.access import (
    Authorizer,
    Call,
    LogGate,
    Permit,
    TopicCatalogue,
    TransactionVerifier,
)
from groupsim.coordinator.classic.states import GroupState
from groupsim.coordinator.config import CoordinatorConfig
from groupsim.coordinator.core import Core
from groupsim.coordinator.effects import Effect, reply
from groupsim.coordinator.group_requests import GroupRequests
from groupsim.coordinator.membership_requests import HEARTBEAT_OK, MembershipRequests
from groupsim.coordinator.offset_requests import OffsetRequests
from groupsim.coordinator.outbox import Answer
from groupsim.coordinator.records import LogBatch, Record, TransactionMarker
from groupsim.coordinator.shard import ShardState
from groupsim.coordinator.snapshot import CoordinatorSnapshot, snapshot_of
from groupsim.coordinator.timers import Timer
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import HeartbeatRequest, Request

__all__ = ["GroupCoordinator"]

_SETTLED = 16_384  # so many heartbeat requests are remembered
_QUIET = (GroupState.STABLE, GroupState.COMPLETING)
_ACTIVE = ShardState.ACTIVE  # looking up a member of an enum costs more than a global


class GroupCoordinator:
    """One broker's group coordinator.

    Every method that is told the time returns the effects of that call, in order. Times are
    milliseconds and never go back.
    """

    def __init__(
        self,
        *,
        config: CoordinatorConfig,
        member_uuid: Callable[[], str],
        topics: TopicCatalogue | None = None,
        authorizer: Authorizer | None = None,
        transactions: TransactionVerifier | None = None,
        log_gate: LogGate | None = None,
        started: bool = True,
    ) -> None:
        """Make a coordinator that serves no partition yet.

        Args:
            config: the broker's settings.
            member_uuid: gives the random part of the next member id (J-16).
            topics: known topics; without it every topic and partition exists, without an id.
            authorizer: who may do what; without it everybody may do everything.
            transactions: verifies transactional commits; without it every one is in order.
            log_gate: whether the broker's log takes a batch; without it every one is taken, and
                what fails later is told by ``append_completed``.
            started: whether the component is running (C-03).

        """
        self.config = config
        self.started = started
        self._core = core = Core(config, member_uuid, log_gate)
        self._outbox = core.outbox
        self._queue = core.queue
        self._authorizer = authorizer
        # heartbeats found to be a settled member's, by the identity of the (immutable) request,
        # which is kept here so that the identity stays its own: changes then, timer, timeout
        self._settled: dict[int, tuple[int, Timer, int, HeartbeatRequest]] = {}
        membership = MembershipRequests(core)
        offsets = OffsetRequests(core, topics, transactions)
        groups = GroupRequests(core)
        self._handlers: dict[type, Callable[[Any, Call], None]] = {
            **membership.handlers(),
            **offsets.handlers(),
            **groups.handlers(),
        }
        self._offsets = offsets

    # -- requests ----------------------------------------------------------------------------

    def handle(
        self,
        token: int,
        request: Request,
        *,
        api_version: int,
        client_id: str,
        client_host: str,
        now_ms: int,
    ) -> list[Effect]:
        """Take in one request; its answer comes now or later as ``Reply`` with ``token``.

        ``client_host`` is kept as given; Kafka renders an address as ``/ip``.

        Raises:
            TypeError: the coordinator does not serve this kind of request.

        """
        if type(request) is HeartbeatRequest and self.refreshes_session(request, now_ms):
            return [reply(token, HEARTBEAT_OK)]
        handler = self._handlers.get(type(request))
        if handler is None:
            raise TypeError(f"the group coordinator does not serve {type(request).__name__}")
        self._core.outbox.begin(now_ms)
        answer = Answer(self._core.outbox, token, api_version)
        permit = Permit(self._authorizer, client_id)
        handler(request, Call(answer, permit, client_id, client_host, started=self.started))
        return self._core.finish()

    def refreshes_session(self, request: HeartbeatRequest, now_ms: int) -> bool:
        """Take in the heartbeat of a settled member, by far the most frequent event of any run:
        nothing is written, nothing waits, and its session moves on.

        True: that was it, and the answer is ``HEARTBEAT_OK``, without any other effect. False:
        nothing was done, and the request has to go the long way, through ``handle``. The world may
        ask here first, or leave it to ``handle``; the outcome is the same.
        """
        changes = self._outbox.changes
        settled = self._settled.get(id(request))
        if settled is not None and settled[0] == changes:
            self._queue.move(settled[1], now_ms + settled[2])  # as it was the last time
            return True
        core = self._core
        if self._authorizer is not None or not self.started:
            return False
        group_id = request.group_id
        shard = core.shards.get(core.known_partitions.get(group_id, -1))
        if shard is None or shard.state is not _ACTIVE or not shard.pipeline.idle:
            return False
        group = shard.context.groups.get(group_id)
        if (
            group is None
            or group.generation_id != request.generation_id
            or group.state not in _QUIET
        ):
            return False
        member = group.members.get(request.member_id)
        if member is None or member.group_instance_id != request.group_instance_id:
            return False
        timer = member.session
        if timer is None or not timer.alive or timer.owner is not member or timer.kind != "session":
            return False
        timeout_ms = member.session_timeout_ms
        core.queue.move(timer, now_ms + timeout_ms)
        if len(self._settled) >= _SETTLED:
            self._settled.clear()
        self._settled[id(request)] = (changes, timer, timeout_ms, request)
        return True

    # -- the log -----------------------------------------------------------------------------

    def append_completed(self, append_id: int, error: ErrorCode, now_ms: int) -> list[Effect]:
        """Tell what became of an ``Append``: NONE when it is committed, else why it failed.

        A commit covers all earlier appends of the partition. A failure takes the records back,
        and with them those of later appends of the partition that are not committed (C-11); for
        an id that is over nothing happens.
        """
        self._core.outbox.begin(now_ms)
        for shard in self._core.shards.values():
            pipeline = shard.pipeline
            if pipeline.in_flight and pipeline.holds(append_id):
                if error is ErrorCode.NONE:
                    pipeline.committed(append_id)
                else:
                    pipeline.failed(append_id, error)
        return self._core.finish()

    def high_watermark(self, offsets: Mapping[int, int], now_ms: int) -> list[Effect]:
        """Partition → offset below which all of its log is committed, whoever appended it.

        Partitions are told in the order of ``offsets``, and only then is what follows from it done.
        """
        self._core.outbox.begin(now_ms)
        for partition, offset in offsets.items():
            shard = self._core.shards.get(partition)
            if shard is not None and shard.state is ShardState.ACTIVE:
                shard.pipeline.committed_up_to(offset)
        return self._core.finish()

    def complete_transaction(
        self,
        partition: int,
        marker: TransactionMarker,
        now_ms: int,
        token: int | None = None,
    ) -> list[Effect]:
        """End a transaction with pending offsets on a partition (WriteTxnMarkers, C-18).

        With a ``token`` the outcome comes, now or later, as ``TransactionEnded``.
        """
        self._core.outbox.begin(now_ms)
        self._offsets.complete_transaction(partition, marker, token, started=self.started)
        return self._core.finish()

    def topics_deleted(self, topics: Sequence[tuple[str, str]], now_ms: int) -> list[Effect]:
        """Topics, as (name, id), are gone: so are their offsets (O-23)."""
        self._core.outbox.begin(now_ms)
        self._offsets.topics_deleted(tuple(topics))
        return self._core.finish()

    # -- time --------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """When ``advance`` is to be called next, ``None``: there is no timer.

        May be early, since a session that was refreshed keeps its place; ``advance`` then does
        nothing and the next answer is later. It may also have come already: see ``advance``.
        """
        return self._core.queue.next_deadline_ms()

    def advance(self, now_ms: int) -> list[Effect]:
        """Fire the timers that are due, by deadline and then by the order of arming.

        Returns after the timers of one instant have made an append, so that the world can say
        what became of it; call again while ``next_deadline_ms`` is not after ``now_ms``.
        """
        self._core.outbox.look(now_ms)
        self._core.fire_due(now_ms)
        return self._core.finish()

    # -- leadership --------------------------------------------------------------------------

    def begin_load(self, partition: int, epoch: int, now_ms: int) -> list[Effect]:
        """The partition is led here from ``epoch`` on and its log is being read (C-06, C-08)."""
        self._core.outbox.begin(now_ms)
        self._core.add_shard(partition).begin_load(epoch)
        return self._core.finish()

    def load(
        self, partition: int, records: Sequence[Record], epoch: int, now_ms: int
    ) -> list[Effect]:
        """The partition is led here and ``records`` is its log: serve it (C-16 to C-22).

        Without an earlier ``begin_load`` for this epoch, this is both. An epoch that is not newer
        is ignored (C-08).
        """
        self._core.outbox.begin(now_ms)
        shard = self._core.add_shard(partition)
        shard.begin_load(epoch)
        if shard.state is ShardState.LOADING and shard.epoch == epoch:
            end = len(records)
            batches = [LogBatch(records=tuple(enumerate(records)), next_offset=end)]
            shard.finish_load(batches if records else (), end)
        return self._core.finish()

    def finish_load(
        self,
        partition: int,
        batches: Sequence[LogBatch],
        high_watermark: int,
        now_ms: int,
    ) -> list[Effect]:
        """End a load that ``begin_load`` began, with a log as it is: with gaps where it was
        compacted, and with batches above the high watermark (see ``high_watermark``).
        """
        self._core.outbox.begin(now_ms)
        shard = self._core.shards.get(partition)
        if shard is not None and shard.state is ShardState.LOADING:
            shard.finish_load(batches, high_watermark)
        return self._core.finish()

    def fail_load(self, partition: int, now_ms: int) -> list[Effect]:
        """Reading the partition's log failed: NOT_COORDINATOR until the next election (C-19)."""
        self._core.outbox.begin(now_ms)
        shard = self._core.shards.get(partition)
        if shard is not None and shard.state is ShardState.LOADING:
            shard.fail_load()
        return self._core.finish()

    def unload(self, partition: int, epoch: int | None, now_ms: int) -> list[Effect]:
        """The partition is led elsewhere from ``epoch`` on; ``None``: it is deleted (C-13)."""
        self._core.outbox.begin(now_ms)
        shard = self._core.shards.get(partition)
        if shard is not None and (epoch is None or shard.epoch < epoch):
            shard.unload()
            del self._core.shards[partition]
        return self._core.finish()

    def start(self, now_ms: int) -> list[Effect]:
        """The component starts (C-03)."""
        self._core.outbox.begin(now_ms)
        self.started = True
        return self._core.finish()

    def stop(self, now_ms: int) -> list[Effect]:
        """The component stops and unloads everything; a crash is to drop the object (C-15)."""
        self._core.outbox.begin(now_ms)
        self.started = False
        self._core.queue.clear()  # the runtime closes its timer first
        for shard in self._core.in_order():
            shard.unload()
        self._core.shards.clear()
        return self._core.finish()

    # -- looking in --------------------------------------------------------------------------

    def snapshot(self) -> CoordinatorSnapshot:
        """Everything the coordinator holds, as values."""
        return snapshot_of(self._core)
