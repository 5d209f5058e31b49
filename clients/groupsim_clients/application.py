"""The application around the consumer: its poll loop, its listener, what it does with exceptions.

One generator, run as the application thread. Orders of the scenario are things this application
does between two calls: a running ``poll()`` ends early for them, as if its timeout had run out;
"close" works like a signal handler that calls ``wakeup()``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from groupsim.protocol.consumer_protocol import TopicPartition
from groupsim_clients.behaviour import Background
from groupsim_clients.consumer import Batch, Consumer
from groupsim_clients.errors import JavaError, WakeupError
from groupsim_clients.machine import AppRaised, ClientSpec, Order, PollNote
from groupsim_clients.timing import FOREVER, Context, Steps, Wait, WaitKind
from groupsim_clients.work import Raise, Spread, Work

__all__ = ["ORDERS", "Application"]

ORDERS: Final = (
    "close",
    "subscribe",
    "unsubscribe",
    "enforce_rebalance",
    "commit",
    "pause_work",
    "resume_work",
    "set_work",
    "wakeup",
)
_WORTH_A_NOTE_MS: Final = 1_000


class Application:
    """The poll loop of one process, and its rebalance listener."""

    def __init__(self, ctx: Context, spec: ClientSpec, consumer: Consumer, work: Work) -> None:
        self._ctx = ctx
        self._spec = spec
        self._consumer = consumer
        self._behaviour = consumer.behaviour
        self._goes_on = consumer.behaviour.background is Background.EVERYTHING
        self._calls: dict[str, int] = {}
        self.orders: deque[Order] = deque()
        self.idle = False
        """Between two calls with nothing to do: an order is taken up at once."""
        self._plain: Mapping[str, Any] = spec.work
        self._call = ""
        self.work = work
        self._use(work)

    def _use(self, work: Work) -> None:
        self.work = work
        consumer = self._consumer
        consumer.consumes_at_once = work.consumes_at_once
        consumer.endless_polls = work.poll_interval.is_zero
        consumer.max_records = work.max_records or consumer.config.max_poll_records

    # -- orders --------------------------------------------------------------------------------

    def take(self, order: Order) -> None:
        """Note an order for the next moment between two calls.

        Raises:
            ValueError: there is no such order, or its arguments are wrong.

        """
        if order.name not in ORDERS:
            raise ValueError(f"unknown order {order.name!r}; known are {', '.join(ORDERS)}")
        if order.name == "set_work":
            Work.from_plain(_work_of(order))
        if order.name in {"close", "wakeup"}:
            self._consumer.wakeup()
        else:
            self._consumer.return_early()
        if order.name != "wakeup":
            self.orders.append(order)

    @property
    def _closing(self) -> Order | None:
        for order in self.orders:
            if order.name == "close":
                return order
        return None

    # -- the loop ------------------------------------------------------------------------------

    def run(self) -> Steps[str]:
        """Subscribe, poll for ever, close; returns why the process ends."""
        try:
            yield from self._subscribe(
                {"topics": self._spec.subscribe, "pattern": self._spec.subscribe_pattern}
            )
        except JavaError as error:
            self._raised("subscribe", error)
            return f"{error.exception} from subscribe"
        while True:
            closing = self._closing
            if closing is not None:
                yield from self._shut_down(closing.arguments)
                return "closed"
            self._call = "poll"
            try:
                if self.orders:
                    order = self.orders.popleft()
                    self._call = order.name
                    yield from self._obey(order)
                elif self._consumer.subscriptions.kind == "none":
                    yield from self._rest(None)
                else:
                    yield from self._poll_once()
            except WakeupError as error:
                if self._closing is None:
                    self._raised(self._call, error)
            except JavaError as error:
                self._raised(self._call, error)
                ending = yield from self._after_error(error)
                if ending:
                    return ending

    def _poll_once(self) -> Steps[None]:
        batches = yield from self._consumer.poll(self.work.poll_timeout_ms)
        if batches:
            yield from self._process(batches)
            yield from self._commit(self.work.commit)
        elif not self.work.poll_interval.is_zero and not self.orders:
            pause_ms = self.work.poll_interval.draw(self._ctx.draw, "poll-interval")
            yield from self._rest(self._ctx.now_ms + pause_ms)

    def _process(self, batches: tuple[Batch, ...]) -> Steps[None]:
        draw = self._ctx.draw
        duration_ms = self.work.processing.draw(draw, "processing")
        for poison in self.work.poison:
            for batch in batches:
                if batch.partition != (poison.topic, poison.partition):
                    continue
                inside = poison.offset is None or (
                    batch.first_offset <= poison.offset < batch.first_offset + batch.count
                )
                if inside:
                    duration_ms += poison.processing.draw(draw, "poison")
        worth_a_note = duration_ms >= _WORTH_A_NOTE_MS
        if worth_a_note:
            self._ctx.note(PollNote(event="processing_started", duration_ms=duration_ms))
        if self._goes_on:
            yield from self._consumer.attend(duration_ms)
        else:
            yield from self._spend(duration_ms)
        if worth_a_note:
            self._ctx.note(PollNote(event="processing_finished", duration_ms=duration_ms))
        self._maybe_raise("processing")

    def _commit(self, mode: str) -> Steps[None]:
        self._call = "commit"
        if mode == "sync":
            yield from self._consumer.commit_sync()
        elif mode == "async":
            self._consumer.commit_async()

    def _after_error(self, error: JavaError) -> Steps[str]:
        if self.work.on_error == "crash":
            return f"crashed: {error.exception}"
        if self.work.on_error == "close":
            yield from self._shut_down({})
            return f"closed after {error.exception}"
        yield from self._rest(self._ctx.now_ms + max(1, self.work.error_pause_ms))
        return ""

    def _shut_down(self, arguments: Mapping[str, Any]) -> Steps[None]:
        """The usual ``finally``: a last commit of the application's own, then ``close``."""
        consumer = self._consumer
        consumer.client.wakeup_requested = False
        timeout_ms = arguments.get("timeout_ms")
        if timeout_ms is None:
            timeout_ms = self.work.close_timeout_ms
        stable = consumer.coordinator is not None and consumer.coordinator.is_stable
        if self.work.commit in {"sync", "async"} and stable:
            try:
                yield from consumer.commit_sync(timeout_ms)
            except JavaError as error:
                self._raised("commit", error)
        try:
            yield from consumer.close(timeout_ms)
        except JavaError as error:
            self._raised("close", error)

    # -- orders, one by one --------------------------------------------------------------------

    def _obey(self, order: Order) -> Steps[None]:
        consumer = self._consumer
        arguments = order.arguments
        if order.name == "subscribe":
            yield from self._subscribe(arguments)
        elif order.name == "unsubscribe":
            yield from consumer.unsubscribe()
        elif order.name == "enforce_rebalance":
            consumer.enforce_rebalance(arguments.get("reason"))
        elif order.name == "commit":
            yield from self._commit(arguments.get("mode", "sync"))
        elif order.name == "pause_work":
            consumer.pause(consumer.subscriptions.assigned())
        elif order.name == "resume_work":
            consumer.resume(consumer.subscriptions.assigned())
        elif order.name == "set_work":
            self._plain = {**self._plain, **_work_of(order)}
            self._use(Work.from_plain(self._plain))

    def _subscribe(self, arguments: Mapping[str, Any]) -> Steps[None]:
        pattern = arguments.get("pattern")
        if pattern is not None:
            if self._consumer.subscriptions.kind == "topics":
                yield from self._consumer.unsubscribe()
            self._consumer.subscribe_pattern(pattern, self)
            return
        topics = tuple(arguments.get("topics") or ())
        if topics or self._consumer.subscriptions.kind != "none":
            if self._consumer.subscriptions.has_pattern:
                yield from self._consumer.unsubscribe()
            yield from self._consumer.subscribe(topics, self)

    # -- the listener --------------------------------------------------------------------------

    def call(self, callback: str, partitions: tuple[TopicPartition, ...]) -> Steps[None]:
        """A rebalance callback (see ``RebalanceListener``)."""
        del partitions
        place = f"on_{callback}"
        if callback == "lost" and not self._has_on_lost:
            if not self._behaviour.lost_falls_back_to_revoked:
                return
            place = "on_revoked"  # CC-23: the interface's default
        spread = {
            "on_assigned": self.work.on_assigned,
            "on_revoked": self.work.on_revoked,
            "on_lost": self.work.on_lost or Spread(),
        }[place]
        yield from self._spend(spread.draw(self._ctx.draw, place))
        self._maybe_raise(place)

    @property
    def _has_on_lost(self) -> bool:
        return self.work.on_lost is not None or any(p == "on_lost" for p, _ in self.work.raises)

    # -- small things --------------------------------------------------------------------------

    def _maybe_raise(self, place: str) -> None:
        nth = self._calls[place] = self._calls.get(place, 0) + 1
        for where, what in self.work.raises:
            if where == place and what.nth in {0, nth}:
                raise _exception(what)

    def _spend(self, duration_ms: int) -> Steps[None]:
        until_ms = self._ctx.now_ms + duration_ms
        while self._ctx.now_ms < until_ms:
            yield Wait(WaitKind.AWAY, until_ms)

    def _rest(self, until_ms: int | None) -> Steps[None]:
        """Do nothing until then, or until an order comes."""
        self.idle = True
        try:
            while not self.orders and (until_ms is None or self._ctx.now_ms < until_ms):
                yield Wait(WaitKind.AWAY, FOREVER if until_ms is None else until_ms)
        finally:
            self.idle = False

    def _raised(self, call: str, error: JavaError) -> None:
        self._ctx.note(AppRaised(call=call, exception=error.exception, detail=error.detail))


def _work_of(order: Order) -> Mapping[str, Any]:
    work: Mapping[str, Any] = order.arguments.get("work", order.arguments)
    return work


def _exception(what: Raise) -> JavaError:
    if what.exception == "WakeupException":
        return WakeupError()
    kafka = what.exception in {"KafkaException", "CommitFailedException", "TimeoutException"}
    return JavaError(what.exception, "thrown by the application", kafka=kafka)
