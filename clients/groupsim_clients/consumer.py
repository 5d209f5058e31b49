"""The consumer's calls, each a generator that may span time (``ClassicKafkaConsumer``).

Fetches are no messages here: records are read straight from the world's logs
(``env.log_end_offset``), so ``poll()`` returns as soon as an assigned partition with a known position
has something. What travels is everything about the group and its offsets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from groupsim.protocol.consumer_protocol import TopicPartition
from groupsim.protocol.messages import message
from groupsim_clients.assignors import Assignor
from groupsim_clients.behaviour import Behaviour
from groupsim_clients.config import ConsumerConfig
from groupsim_clients.consumer_coordinator import ConsumerCoordinator
from groupsim_clients.errors import JavaError
from groupsim_clients.listener import RebalanceListener
from groupsim_clients.metadata import Metadata
from groupsim_clients.network_client import NetworkClient
from groupsim_clients.offsets import OffsetMap
from groupsim_clients.subscription_state import SubscriptionState
from groupsim_clients.timing import FOREVER, Context, Steps, Timer

__all__ = ["Batch", "Consumer"]

DEFAULT_CLOSE_TIMEOUT_MS = 30_000  # ConsumerUtils.DEFAULT_CLOSE_TIMEOUT_MS
DEFAULT_REASON = "rebalance enforced by user"  # ConsumerUtils.DEFAULT_REASON


@message
class Batch:
    """Records of one partition out of a ``poll()``: offsets first to first + count − 1."""

    partition: TopicPartition
    first_offset: int
    count: int


class Consumer:
    """One ``KafkaConsumer``. Not to be called while one of its calls is still running.

    Attributes:
        consumes_at_once: the application reads everything the moment it exists and needs no time
            for it; ``poll()`` then returns no records and positions follow the logs.
        endless_polls: polls follow each other without a gap, so the end of one's timeout changes
            nothing and no event is needed for it.

    """

    def __init__(
        self,
        ctx: Context,
        config: ConsumerConfig,
        behaviour: Behaviour,
        assignors: Sequence[Assignor],
    ) -> None:
        self._ctx = ctx
        self.config = config
        self.behaviour = behaviour
        self.subscriptions = SubscriptionState()
        self.metadata = Metadata(ctx, config, self.subscriptions)
        self.client = NetworkClient(ctx, config, behaviour, self.metadata)
        self.coordinator: ConsumerCoordinator | None = None
        if config.group_id is not None:
            self.coordinator = ConsumerCoordinator(
                ctx,
                config,
                behaviour,
                client=self.client,
                subscriptions=self.subscriptions,
                assignors=assignors,
            )
            self.coordinator.offsets.advance_positions = self._advance_positions
        self.consumes_at_once = False
        self.endless_polls = False
        self.closed = False
        self.max_records = config.max_poll_records
        self._poll_timer: Timer | None = None
        self._return_early = False

    # -- subscription --------------------------------------------------------------------------

    def subscribe(
        self, topics: Iterable[str], listener: RebalanceListener | None = None
    ) -> Steps[None]:
        """Subscribe to topics; an empty list is ``unsubscribe`` (CL-09, CL-10).

        Raises:
            JavaError: no group id (K-07), no assignors (K-04), a blank topic, another kind in use.

        """
        coordinator = self._group()
        names = tuple(topics)
        if not names:
            yield from self.unsubscribe()
            return
        if any(not name.strip() for name in names):
            raise JavaError.illegal_argument(
                "Topic collection to subscribe to cannot contain null or empty topic"
            )
        self._check_assignors(coordinator)
        self._ctx.log("info", f"Subscribed to topic(s): {', '.join(names)}")
        coordinator.invoker.listener = listener
        if self.subscriptions.subscribe(names):
            self.metadata.request_update_for_new_topics()

    def subscribe_pattern(self, pattern: str, listener: RebalanceListener | None = None) -> None:
        """Subscribe to all topics whose whole name matches the regular expression.

        Raises:
            JavaError: as ``subscribe``; or the pattern is empty or not a regular expression.

        """
        coordinator = self._group()
        if not pattern:
            raise JavaError.illegal_argument("Topic pattern to subscribe to cannot be empty")
        self._check_assignors(coordinator)
        try:
            compiled = re.compile(pattern)
        except re.error as error:
            raise JavaError("PatternSyntaxException", str(error), kafka=False) from error
        self._ctx.log("info", f"Subscribed to pattern: '{pattern}'")
        coordinator.invoker.listener = listener
        self.subscriptions.subscribe_pattern(compiled)
        coordinator.update_pattern_subscription()
        self.metadata.request_update_for_new_topics()

    def assign(self, partitions: Iterable[TopicPartition]) -> Steps[None]:
        """Manual assignment, without a group; an empty list is ``unsubscribe`` (CL-09)."""
        wanted = tuple(partitions)
        if not wanted:
            yield from self.unsubscribe()
            return
        if self.coordinator is not None:
            self.coordinator.offsets.maybe_auto_commit()
        if self.subscriptions.assign_manually(wanted):
            self.metadata.request_update_for_new_topics()

    def unsubscribe(self) -> Steps[None]:
        """Give everything up, leave, forget the subscription (CL-09). No auto-commit.

        Raises:
            JavaError: the callback threw; the subscription stays then (CL-07).

        """
        if self.coordinator is not None:
            yield from self.coordinator.on_leave_prepare()
            self.coordinator.leave_on_unsubscribe("the consumer unsubscribed from all topics")
        self.subscriptions.unsubscribe()
        self._ctx.log("info", "Unsubscribed all topics or patterns and assigned partitions")

    def enforce_rebalance(self, reason: str | None = None) -> None:
        """Want a rejoin (CP-11).

        Raises:
            JavaError: the consumer has no group.

        """
        if self.coordinator is None:
            raise JavaError.illegal_state(
                "Tried to force a rebalance but consumer does not have a group."
            )
        self.coordinator.request_rejoin(reason or DEFAULT_REASON)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no records of these until resumed or taken away."""
        for partition in partitions:
            self.subscriptions.assignment[partition].paused = True

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """The opposite of ``pause``."""
        for partition in partitions:
            self.subscriptions.assignment[partition].paused = False

    def wakeup(self) -> None:
        """Make the call that waits in the network client, or the next one, throw."""
        self.client.wakeup_requested = True

    # -- poll ----------------------------------------------------------------------------------

    def poll(self, timeout_ms: int) -> Steps[tuple[Batch, ...]]:
        """Records, as soon as there are some, or nothing after ``timeout_ms`` (CP-03).

        Raises:
            JavaError: fatal answers, exceptions of callbacks, failures of the heartbeat thread.
            WakeupError: ``wakeup`` was called.

        """
        if self.subscriptions.kind == "none":
            raise JavaError.illegal_state(
                "Consumer is not subscribed to any topics or assigned any partitions"
            )
        self._return_early = False
        self._poll_timer = timer = Timer(self._ctx, timeout_ms)
        try:
            while True:
                self.client.maybe_trigger_wakeup()
                ready = yield from self._update_assignment(timer)
                batches = yield from self._poll_for_fetches(timer, timeout_ms, ready=ready)
                if batches or timer.expired:
                    return batches
        finally:
            self._poll_timer = None

    def return_early(self) -> None:
        """End a running ``poll()`` as if its timeout had just run out."""
        if self._poll_timer is not None:
            self._poll_timer.deadline_ms = self._ctx.now_ms
            self._return_early = True

    def attend(self, duration_ms: int) -> Steps[None]:
        """Let the membership go on for so long while the application works (``Background``)."""
        until_ms = self._ctx.now_ms + duration_ms
        while self._ctx.now_ms < until_ms:
            ready = yield from self._update_assignment(Timer(self._ctx, 0))
            wait = Timer(self._ctx, 0)
            wait.deadline_ms, steady = self._nothing_before_ms(ready=ready, records=False)
            wait.deadline_ms = min(wait.deadline_ms, until_ms)
            yield from self.client.poll(wait, steady=steady)

    def _update_assignment(self, timer: Timer) -> Steps[bool]:
        coordinator = self.coordinator
        if coordinator is not None and not (
            yield from coordinator.poll(timer, wait_for_join=False)
        ):
            return False
        return (yield from self._update_positions(timer))

    def _update_positions(self, timer: Timer) -> Steps[bool]:
        missing = self.subscriptions.initializing()
        if not missing:
            return True
        committed: dict[TopicPartition, int] = {}
        if self.coordinator is not None:
            fetched = yield from self.coordinator.offsets.fetch_committed(missing, timer)
            if fetched is None:
                return False
            committed = fetched
        for partition in missing:
            self.subscriptions.assignment[partition].position = self._first_position(
                partition, committed.get(partition, -1)
            )
        return True

    def _first_position(self, partition: TopicPartition, committed: int) -> int:
        if committed >= 0:
            return committed
        self._ctx.log(
            "info",
            f"Found no committed offset for partition {partition.topic}-{partition.partition}",
        )
        if self.config.auto_offset_reset == "none":
            raise JavaError(
                "NoOffsetForPartitionException",
                "Undefined offset with no reset policy for partitions: "
                f"[{partition.topic}-{partition.partition}]",
            )
        return 0 if self.config.auto_offset_reset == "earliest" else self._log_end(partition)

    def _poll_for_fetches(
        self, timer: Timer, timeout_ms: int, *, ready: bool
    ) -> Steps[tuple[Batch, ...]]:
        coordinator = self.coordinator
        if coordinator is not None:
            coordinator.check_heartbeat_thread()
        batches = self._collect()
        if batches:
            return batches
        wait = Timer(self._ctx, 0)
        wait.deadline_ms, steady = self._nothing_before_ms(ready=ready)
        if not (steady and self.endless_polls):
            wait.deadline_ms = min(wait.deadline_ms, timer.deadline_ms)
        if coordinator is None:
            yield from self.client.poll(wait, fetching=True, steady=steady)
        else:
            coordinator.heartbeat.application_polls = True
            try:
                yield from self.client.poll(wait, fetching=True, steady=steady)
            finally:
                coordinator.heartbeat.application_polls = False
                coordinator.heartbeat.poll()
        if self.endless_polls and timer.expired and not self._return_early:
            late_ms = self._ctx.now_ms - timer.deadline_ms
            step_ms = max(1, timeout_ms)
            timer.deadline_ms += (late_ms // step_ms + 1) * step_ms
        return self._collect()

    def _nothing_before_ms(self, *, ready: bool, records: bool = True) -> tuple[int, bool]:
        """Until when a look around would find nothing new, and whether the state is steady (CP-12,
        CR-26).

        Java iterates more often; in a steady state its iterations change nothing. While something
        is not ready they set the pace, so then the bound is Java's.
        """
        coordinator = self.coordinator
        until_ms = self._next_record_ms() if records else FOREVER
        if coordinator is None:
            return until_ms, True
        if coordinator.join_future is not None and not coordinator.join_future.done:
            return until_ms, True
        missing = bool(self.subscriptions.initializing())
        if ready and not missing and not coordinator.rejoin_needed:
            if self.config.enable_auto_commit:
                until_ms = min(until_ms, coordinator.offsets.next_auto_commit_ms)
            return until_ms, True
        if coordinator.join_not_before_ms > self._ctx.now_ms:
            return min(until_ms, coordinator.join_not_before_ms), False
        return min(until_ms, self._ctx.now_ms + max(1, self._pace_ms(missing=missing))), False

    def _pace_ms(self, *, missing: bool) -> int:
        fetching = bool(self.subscriptions.fetchable())
        if missing or not (self.client.in_flight or fetching):
            return self.config.retry_backoff_ms
        bound_ms = self.client.max_poll_timeout_ms
        return min(bound_ms, self.config.fetch_max_wait_ms) if fetching else bound_ms

    # -- records -------------------------------------------------------------------------------

    def _log_end(self, partition: TopicPartition) -> int:
        return self._ctx.env.log_end_offset(partition.topic, partition.partition, self._ctx.now_ms)

    def _collect(self) -> tuple[Batch, ...]:
        if self.consumes_at_once:
            return ()
        room = self.max_records
        batches = []
        for partition, state in self.subscriptions.fetchable():
            if state.position is None or not room:
                continue
            count = min(room, self._log_end(partition) - state.position)
            if count > 0:
                batches.append(Batch(partition=partition, first_offset=state.position, count=count))
                state.position += count
                room -= count
        return tuple(batches)

    def _advance_positions(self) -> None:
        if self.consumes_at_once:
            for partition, state in self.subscriptions.fetchable():
                if state.position is not None:
                    state.position = max(state.position, self._log_end(partition))

    def _next_record_ms(self) -> int:
        if self.consumes_at_once:
            return FOREVER
        fetchable = self.subscriptions.fetchable()
        if not fetchable:
            return FOREVER
        env, now_ms = self._ctx.env, self._ctx.now_ms
        ask: Callable[[str, int, int, int], int | None] | None = getattr(
            env, "next_record_ms", None
        )
        if ask is None:  # the world does not say: look as often as Java's fetches come back
            return now_ms + max(1, self.config.fetch_max_wait_ms)
        times = [
            ask(partition.topic, partition.partition, state.position or 0, now_ms)
            for partition, state in fetchable
        ]
        return min((max(time, now_ms + 1) for time in times if time is not None), default=FOREVER)

    # -- commits and the end -------------------------------------------------------------------

    def commit_sync(
        self, timeout_ms: int | None = None, offsets: OffsetMap | None = None
    ) -> Steps[None]:
        """Commit positions, or ``offsets``, and wait (CO-07).

        Raises:
            JavaError: the commit failed or took longer than the timeout (``default.api.timeout.ms``).

        """
        coordinator = self._group()
        if timeout_ms is None:
            timeout_ms = self.config.default_api_timeout_ms
        wanted = coordinator.offsets.consumed() if offsets is None else offsets
        if not (yield from coordinator.offsets.commit_sync(wanted, Timer(self._ctx, timeout_ms))):
            raise JavaError.timeout(
                f"Timeout of {timeout_ms}ms expired before successfully committing offsets"
            )

    def commit_async(
        self,
        callback: Callable[[OffsetMap, JavaError | None], None] | None = None,
        offsets: OffsetMap | None = None,
    ) -> None:
        """Commit positions, or ``offsets``, without waiting; the callback runs in a later call."""
        coordinator = self._group()
        wanted = coordinator.offsets.consumed() if offsets is None else offsets
        coordinator.offsets.commit_async(wanted, callback or self._commit_ended)

    def _commit_ended(self, _offsets: OffsetMap, error: JavaError | None) -> None:
        if error is not None:
            self._ctx.log("error", f"Offset commit failed: {error}")

    def close(self, timeout_ms: int = DEFAULT_CLOSE_TIMEOUT_MS) -> Steps[None]:
        """Commit, give up, leave, within min(``timeout_ms``, ``request.timeout.ms``) (CL-06).

        Raises:
            JavaError: the first thing that went wrong, wrapped; the consumer is closed all the same.

        """
        if self.closed:
            return
        self.closed = True
        if self.coordinator is None:
            return
        timer = Timer(self._ctx, min(timeout_ms, self.config.request_timeout_ms))
        try:
            yield from self.coordinator.close(timer)
        except JavaError as error:
            raise JavaError("KafkaException", f"Failed to close kafka consumer: {error}") from error

    def _group(self) -> ConsumerCoordinator:
        if self.coordinator is None:  # K-07
            raise JavaError(
                "InvalidGroupIdException",
                "To use the group management or offset commit APIs, you must provide a valid "
                "group.id in the consumer configuration.",
            )
        return self.coordinator

    def _check_assignors(self, coordinator: ConsumerCoordinator) -> None:
        if not coordinator.assignors:  # K-04
            raise JavaError.illegal_state(
                "Must configure at least one partition assigner class name to "
                "partition.assignment.strategy configuration property"
            )
