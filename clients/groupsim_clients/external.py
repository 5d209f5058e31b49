"""A consumer process whose application is somebody else: calls come from outside, one by one.

``ExternalProcess`` is a ``ClientMachine`` like any other; its application thread does whatever
``begin_*`` was called with and otherwise rests in the application's own code. A rebalance callback
shows as ``callback`` until ``callback_done``; calls may be begun inside it, as Java allows. The async
``Consumer`` of ``groupsim_clients.aio`` is made of this.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from groupsim.protocol.consumer_protocol import TopicPartition
from groupsim_clients.assignors import make_assignor
from groupsim_clients.behaviour import CURRENT
from groupsim_clients.config import ConsumerConfig
from groupsim_clients.consumer import DEFAULT_CLOSE_TIMEOUT_MS, Batch, Consumer
from groupsim_clients.errors import JavaError
from groupsim_clients.machine import (
    AppRaised,
    ClientEffect,
    ClientEnvironment,
    ClientSpec,
    Order,
)
from groupsim_clients.offsets import OffsetMap
from groupsim_clients.process import ConsumerProcess
from groupsim_clients.timing import FOREVER, Steps, Wait, WaitKind
from groupsim_clients.work import Work

__all__ = ["Call", "ExternalProcess", "external"]

T = TypeVar("T")


class Call(Generic[T]):
    """One call of the consumer: running, then a value or an error."""

    def __init__(self, name: str, steps: Steps[T]) -> None:
        self.name = name
        self.done = False
        self.error: JavaError | None = None
        self._steps = steps
        self._value: T | None = None

    def run(self) -> Steps[None]:
        """Run it on the application thread."""
        try:
            self._value = yield from self._steps
        except JavaError as error:
            self.error = error
        self.done = True

    @property
    def value(self) -> T:
        """What it returned.

        Raises:
            JavaError: what it threw.

        """
        assert self.done, f"{self.name} is still running"
        if self.error is not None:
            raise self.error
        return self._value  # type: ignore[return-value]


class ExternalProcess(ConsumerProcess):
    """The machine. ``notify`` is called when a call has ended or a callback waits for its end.

    Attributes:
        callback: a callback that nobody has taken up yet: its name (assigned, revoked, lost) and
            its partitions. Whoever runs it calls ``take_callback``, then ``callback_done``.

    """

    callback: tuple[str, tuple[TopicPartition, ...]] | None = None
    notify: Callable[[], None] | None = None
    _callbacks: int = 0

    def start(self, now_ms: int) -> list[ClientEffect]:
        """Create the consumer; nothing is subscribed yet."""
        self._waiting: deque[Call[Any]] = deque()
        self._answers: list[JavaError | None] = []
        ctx = self._ctx
        ctx.now_ms = now_ms
        ctx.effects = []
        self._consumer = Consumer(ctx, self._config, self._behaviour, self._assignors)
        self._thread = self._application_thread()
        return self._pump()

    # -- calls ---------------------------------------------------------------------------------

    def begin(self, call: Call[Any], now_ms: int) -> list[ClientEffect]:
        """Run a call on the application thread; it must not be inside another one, except in a
        callback.
        """
        self._begin(now_ms)
        self._waiting.append(call)
        self._resume()
        return self._pump()

    def poll(self, timeout_ms: int) -> Call[tuple[Batch, ...]]:
        """``poll(timeout)``: records as soon as there are some."""
        return Call("poll", self.consumer.poll(timeout_ms))

    def subscribe(self, topics: tuple[str, ...]) -> Call[None]:
        """``subscribe(topics, listener)``; the listener is whoever answers ``callback``."""
        return Call("subscribe", self.consumer.subscribe(topics, self))

    def subscribe_pattern(self, pattern: str) -> Call[None]:
        """``subscribe(pattern, listener)``."""

        def steps() -> Steps[None]:
            self.consumer.subscribe_pattern(pattern, self)
            yield from ()

        return Call("subscribe", steps())

    def unsubscribe(self) -> Call[None]:
        """``unsubscribe()``."""
        return Call("unsubscribe", self.consumer.unsubscribe())

    def commit_sync(self, offsets: OffsetMap | None, timeout_ms: int | None) -> Call[None]:
        """``commitSync(offsets, timeout)``."""
        return Call("commit", self.consumer.commit_sync(timeout_ms, offsets))

    def commit_async(
        self,
        offsets: OffsetMap | None,
        callback: Callable[[OffsetMap, JavaError | None], None] | None,
    ) -> Call[None]:
        """``commitAsync(offsets, callback)``."""

        def steps() -> Steps[None]:
            self.consumer.commit_async(callback, offsets)
            yield from ()

        return Call("commit", steps())

    def close(self, timeout_ms: int = DEFAULT_CLOSE_TIMEOUT_MS) -> Call[None]:
        """``close(timeout)``; the process ends with it."""

        def steps() -> Steps[None]:
            self.consumer.client.wakeup_requested = False
            yield from self.consumer.close(timeout_ms)

        return Call("close", steps())

    def take_callback(self) -> tuple[str, tuple[TopicPartition, ...]]:
        """The callback that is to be run now."""
        taken = self.callback
        assert taken is not None, "no callback is to be run"
        self.callback = None
        return taken

    def callback_done(self, error: JavaError | None, now_ms: int) -> list[ClientEffect]:
        """The callback that was taken last has returned, or thrown."""
        assert self._callbacks > 0, "no callback is running"
        self._begin(now_ms)
        self.callback = None
        self._answers.append(error)
        self._resume()
        return self._pump()

    def order(self, order: Order, now_ms: int) -> list[ClientEffect]:
        """Calls come as orders: ``call`` (argument call), ``callback_done`` (error), ``wakeup``; "close"
        from outside is a signal, that is a wakeup.

        Raises:
            ValueError: another order; the application is not ours to command.

        """
        if self._thread is None:
            return []
        if order.name == "call":
            return self.begin(order.arguments["call"], now_ms)
        if order.name == "callback_done":
            return self.callback_done(order.arguments["error"], now_ms)
        if order.name not in {"wakeup", "close"}:
            raise ValueError(
                f"unknown order {order.name!r}; the application of this client is a script"
            )
        self._begin(now_ms)
        self.consumer.wakeup()
        return self._pump()

    # -- the application thread ----------------------------------------------------------------

    def _application_thread(self) -> Steps[str]:
        while not self.consumer.closed:
            yield from self._serve(lambda: self.consumer.closed)
        return "closed"

    def _serve(self, until: Callable[[], bool]) -> Steps[None]:
        while not until():
            if not self._waiting:
                yield Wait(WaitKind.AWAY, FOREVER)
                continue
            call = self._waiting.popleft()
            yield from call.run()
            if call.error is not None:
                error = call.error
                self._ctx.note(
                    AppRaised(call=call.name, exception=error.exception, detail=error.detail)
                )
            self._tell()

    def call(self, callback: str, partitions: tuple[TopicPartition, ...]) -> Steps[None]:
        """A rebalance callback: show it and wait until it is done (see ``RebalanceListener``)."""
        self.callback = (callback, partitions)
        self._callbacks += 1
        self._tell()
        yield from self._serve(lambda: bool(self._answers))
        self._callbacks -= 1
        error = self._answers.pop()
        if error is not None:
            raise error

    def _tell(self) -> None:
        if self.notify is not None:
            self.notify()


def external(spec: ClientSpec, env: ClientEnvironment) -> ExternalProcess:
    """A current Java consumer without an application.

    Raises:
        ConfigError: options that Java would refuse.

    """
    config = ConsumerConfig.from_kafka(spec.config, group_id=spec.group_id or None)
    assignors = tuple(make_assignor(name) for name in config.assignors)
    return ExternalProcess(
        spec, env, config=config, behaviour=CURRENT, assignors=assignors, work=Work()
    )
