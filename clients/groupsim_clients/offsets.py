"""Committing and fetching offsets, where they touch membership (rules CO-01 to CO-10, CL-06).

The commit methods of ``ConsumerCoordinator``; what the answers do is in ``offset_answers``. A commit is known to the trace by its ``mode``: auto,
prepare (the automatic one before a rejoin), sync, async, close.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from groupsim.protocol.consumer_protocol import TopicPartition
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from groupsim_clients.errors import JavaError, WakeupError
from groupsim_clients.futures import RequestFuture
from groupsim_clients.generation import NO_GENERATION, Generation
from groupsim_clients.machine import CommitNote
from groupsim_clients.offset_answers import OffsetAnswers
from groupsim_clients.subscription_state import SubscriptionState
from groupsim_clients.timing import Steps, Timer

if TYPE_CHECKING:
    from groupsim_clients.consumer_coordinator import ConsumerCoordinator

__all__ = ["Offsets"]


OffsetMap = Mapping[TopicPartition, int]
Callback = Callable[[OffsetMap, JavaError | None], None]

_REBALANCING = (
    "Offset commit cannot be completed since the consumer is undergoing a rebalance for auto "
    "partition assignment. You can try completing the rebalance by calling poll() and then retry the "
    "operation."
)
_NO_MEMBER = (
    "Offset commit cannot be completed since the consumer is not part of an active group for auto "
    "partition assignment; it is likely that the consumer was kicked out of the group."
)


class Offsets:
    """Commits and committed offsets of one consumer."""

    def __init__(self, coordinator: ConsumerCoordinator, subscriptions: SubscriptionState) -> None:
        self._coordinator = coordinator
        self._ctx = coordinator.ctx
        self._config = coordinator.config
        self._client = coordinator.client
        self._answers = OffsetAnswers(coordinator)
        self._subscriptions = subscriptions
        self.advance_positions: Callable[[], None] = lambda: None
        """Called before positions are committed, so that an application that consumes everything
        at once need not be woken for each record."""
        self.async_commit_fenced = False
        self.in_flight_async = 0
        self.waiting_for_coordinator = 0
        self.prepare_commit: RequestFuture[None] | None = None
        self._completed: deque[tuple[Callback, OffsetMap, JavaError | None]] = deque()
        self._request: tuple[Generation, OffsetMap, OffsetCommitRequest] | None = None
        self._fetch: tuple[object, RequestFuture[dict[TopicPartition, int]]] | None = None
        self.next_auto_commit_ms = self._ctx.now_ms + self._config.auto_commit_interval_ms

    # -- auto-commit ---------------------------------------------------------------------------

    def restart_auto_commit(self) -> None:
        """A join completed (CC-08, CO-08)."""
        self.next_auto_commit_ms = self._ctx.now_ms + self._config.auto_commit_interval_ms

    def maybe_auto_commit(self) -> None:
        """The periodic one, when due (CO-08)."""
        if self._config.enable_auto_commit and self._ctx.now_ms >= self.next_auto_commit_ms:
            self.restart_auto_commit()
            self._auto_commit("auto")

    def start_prepare_commit(self) -> None:
        """The one before a rejoin; stays None when the lookup has to come first (CJ-12)."""
        self.prepare_commit = self._auto_commit("prepare")

    def forget_prepare_commit(self) -> None:
        """It has ended, or nobody waits for it any more (CJ-13, CJ-17)."""
        self.prepare_commit = None

    def _auto_commit(self, mode: str) -> RequestFuture[None] | None:
        def ended(_offsets: OffsetMap, error: JavaError | None) -> None:
            if error is None:
                return
            if error.exception == "RetriableCommitFailedException":
                self.next_auto_commit_ms = self._ctx.now_ms + self._config.retry_backoff_ms
            else:
                self._ctx.log("warn", f"Asynchronous auto-commit of offsets failed: {error.detail}")

        return self.commit_async(self.consumed(), ended, mode=mode)

    def consumed(self) -> dict[TopicPartition, int]:
        """All positions, as far as the application has come by now."""
        self.advance_positions()
        return self._subscriptions.all_consumed()

    # -- commits -------------------------------------------------------------------------------

    def invoke_completed(self) -> None:
        """Run the callbacks of finished asynchronous commits.

        Raises:
            JavaError: an earlier one was fenced: for ever (CO-06, CP-01).

        """
        if self.async_commit_fenced:
            instance = self._config.group_instance_id or "unset_instance_id"
            raise JavaError(
                "FencedInstanceIdException",
                f"Get fenced exception for group.instance.id {instance}, current member.id is "
                f"{self._coordinator.generation.member_id}",
            )
        while self._completed:
            callback, offsets, error = self._completed.popleft()
            callback(offsets, error)

    def commit_async(
        self, offsets: OffsetMap, callback: Callback, *, mode: str = "async"
    ) -> RequestFuture[None] | None:
        """Send a commit without waiting; never repeated (CO-07). None: it waits for a lookup."""
        self.invoke_completed()
        coordinator = self._coordinator
        future = None
        if not offsets or not self._unknown_and_unready():
            future = self._do_commit_async(offsets, callback, mode)
        else:
            self.waiting_for_coordinator += 1

            def found(lookup: RequestFuture[None]) -> None:
                self.waiting_for_coordinator -= 1
                if lookup.error is None:
                    self._do_commit_async(offsets, callback, mode)
                    self._client.poll_now()
                else:
                    self._note(mode, offsets, lookup.error)
                    error = JavaError(
                        "RetriableCommitFailedException", str(lookup.error), retriable=True
                    )
                    self._completed.append((callback, offsets, error))

            coordinator.lookup_coordinator().listen(found)
        self._client.poll_now()
        return future

    def _unknown_and_unready(self) -> bool:
        """``coordinatorUnknownAndUnreadyAsync``: one pass of the lookup without waiting."""
        coordinator = self._coordinator
        if not coordinator.coordinator_unknown():
            return False
        steps = coordinator.ensure_coordinator_ready(Timer(self._ctx, 0), no_wakeup=True)
        try:
            next(steps)
        except StopIteration as end:
            return not end.value
        raise AssertionError("a lookup with a zero timer does not wait")

    def _do_commit_async(
        self, offsets: OffsetMap, callback: Callback, mode: str
    ) -> RequestFuture[None]:
        future = self._send(offsets, mode)
        self.in_flight_async += 1

        def ended(done: RequestFuture[None]) -> None:
            self.in_flight_async -= 1
            error = done.error
            if error is not None and error.retriable:
                error = JavaError("RetriableCommitFailedException", str(error), retriable=True)
            self._completed.append((callback, offsets, error))
            if error is not None and error.exception == "FencedInstanceIdException":
                self.async_commit_fenced = True

        future.listen(ended)
        return future

    def commit_sync(self, offsets: OffsetMap, timer: Timer, *, mode: str = "sync") -> Steps[bool]:
        """Commit and wait; retriable failures are repeated until the time is over (CO-07).

        Raises:
            JavaError: a failure that is not retriable.

        """
        self.invoke_completed()
        coordinator = self._coordinator
        if not offsets:
            return (yield from self._await_async_commits(timer))
        attempts = 0
        while True:
            if coordinator.coordinator_unknown() and not (
                yield from coordinator.ensure_coordinator_ready(timer)
            ):
                return False
            future = self._send(offsets, mode)
            yield from self._client.poll_until(future, timer)
            self.invoke_completed()
            if future.succeeded:
                return True
            if future.error is not None and not future.retriable:
                raise future.error
            yield from timer.sleep(coordinator.retry_backoff.backoff(attempts))
            attempts += 1
            if timer.expired:
                return False

    def _await_async_commits(self, timer: Timer) -> Steps[bool]:
        attempts = 0
        while self.in_flight_async:
            if attempts and timer.expired:
                return False
            yield from self._coordinator.ensure_coordinator_ready(timer)
            yield from self._client.poll(timer)
            self.invoke_completed()
            if not self.in_flight_async:
                break
            yield from timer.sleep(self._coordinator.retry_backoff.backoff(attempts))
            attempts += 1
        return True

    def close(self, timer: Timer) -> Steps[None]:
        """The last automatic commit, and commits that still wait for a coordinator (CL-06).

        Raises:
            WakeupError: never swallowed; other failures are only logged.

        """
        if self._config.enable_auto_commit:
            try:
                yield from self.commit_sync(self.consumed(), timer, mode="close")
            except WakeupError:
                raise
            except JavaError as error:
                self._ctx.log("warn", f"Synchronous auto-commit of offsets failed: {error.detail}")
        while self.waiting_for_coordinator and not timer.expired:
            yield from self._coordinator.ensure_coordinator_ready(timer)
            yield from self._client.poll(timer)
            self.invoke_completed()

    # -- OffsetCommit --------------------------------------------------------------------------

    def _send(self, offsets: OffsetMap, mode: str) -> RequestFuture[None]:
        future: RequestFuture[None] = RequestFuture()
        if not offsets:
            future.complete(None)
            return future
        future.listen(lambda done: self._note(mode, offsets, done.error))
        coordinator = self._coordinator
        if coordinator.coordinator_unknown():
            future.fail(JavaError.of(ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return future
        generation, instance = NO_GENERATION, None  # CO-02
        if self._subscriptions.has_auto_assigned:
            if not coordinator.is_stable:  # CO-01
                self._ctx.log(
                    "info",
                    "Failing OffsetCommit request since the consumer is not part of an active group",
                )
                if coordinator.state.rebalancing:
                    future.fail(JavaError("RebalanceInProgressException", _REBALANCING))
                else:
                    future.fail(JavaError("CommitFailedException", _NO_MEMBER))
                return future
            generation, instance = coordinator.generation, self._config.group_instance_id
        request = self._commit_request(generation, instance, offsets)
        coordinator.send(request, self._answers.committed, future)
        return future

    def _commit_request(
        self, generation: Generation, instance: str | None, offsets: OffsetMap
    ) -> OffsetCommitRequest:
        last = self._request  # the same value again while nothing has moved
        if last is not None and last[0] == generation and last[1] == offsets:
            return last[2]
        by_topic: dict[str, list[OffsetCommitRequestPartition]] = {}
        for partition, offset in offsets.items():
            by_topic.setdefault(partition.topic, []).append(
                OffsetCommitRequestPartition(
                    partition_index=partition.partition,
                    committed_offset=offset,
                    committed_metadata="",
                )
            )
        request = OffsetCommitRequest(
            group_id=self._coordinator.group_id,
            generation_id=generation.generation_id,
            member_id=generation.member_id,
            group_instance_id=instance,
            topics=tuple(
                OffsetCommitRequestTopic(name=topic, partitions=tuple(partitions))
                for topic, partitions in by_topic.items()
            ),
        )
        self._request = (generation, offsets, request)
        return request

    def _note(self, mode: str, offsets: OffsetMap, error: JavaError | None) -> None:
        self._ctx.note(
            CommitNote(
                mode=mode,
                outcome="ok" if error is None else error.exception,
                offsets=tuple((p.topic, p.partition, offset) for p, offset in offsets.items()),
                generation_id=self._coordinator.generation.generation_id,
            )
        )

    # -- OffsetFetch ---------------------------------------------------------------------------

    def fetch_committed(
        self, partitions: tuple[TopicPartition, ...], timer: Timer
    ) -> Steps[dict[TopicPartition, int] | None]:
        """Committed offsets (−1 for none), or None when the time is over (CO-10).

        Raises:
            JavaError: an answer that cannot be retried.

        """
        if not partitions:
            return {}
        coordinator = self._coordinator
        asked = (partitions, coordinator.generation if coordinator.is_stable else None)
        if self._fetch is not None and self._fetch[0] != asked:
            self._fetch = None
        attempts = 0
        while True:
            if not (yield from coordinator.ensure_coordinator_ready(timer)):
                return None
            future = self._fetch[1] if self._fetch is not None else self._send_fetch(partitions)
            self._fetch = (asked, future)
            yield from self._client.poll_until(future, timer)
            if not future.done:
                return None
            self._fetch = None
            if future.error is None:
                return future.value
            if not future.retriable:
                raise future.error
            yield from timer.sleep(coordinator.retry_backoff.backoff(attempts))
            attempts += 1
            if timer.expired:
                return None

    def _send_fetch(
        self, partitions: tuple[TopicPartition, ...]
    ) -> RequestFuture[dict[TopicPartition, int]]:
        coordinator = self._coordinator
        if coordinator.coordinator_unknown():
            return RequestFuture.failure(JavaError.of(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        by_topic: dict[str, list[int]] = {}
        for topic, number in partitions:
            by_topic.setdefault(topic, []).append(number)
        group = OffsetFetchRequestGroup(
            group_id=coordinator.group_id,
            topics=tuple(
                OffsetFetchRequestTopic(name=topic, partition_indexes=tuple(numbers))
                for topic, numbers in by_topic.items()
            ),
        )
        future: RequestFuture[dict[TopicPartition, int]] = RequestFuture()
        request = OffsetFetchRequest(groups=(group,), require_stable=True)
        coordinator.send(request, self._answers.fetched, future)
        return future
