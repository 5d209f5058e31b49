"""Time inside a client: the shared context, timers, backoff, and what a thread waits for.

The application thread is a generator. Where Java blocks, it yields a ``Wait``; the machine
resumes it when the time has come or the network has something. So the code reads as Java's does
and every call can span time, without a thread, a task or a clock.
"""

from __future__ import annotations

import enum
from collections.abc import Generator
from typing import Final, TypeVar

from groupsim.protocol.effects import Note
from groupsim_clients.machine import ClientEffect, ClientEnvironment, ClientLog

__all__ = ["FOREVER", "Context", "ExponentialBackoff", "Steps", "Timer", "Wait", "WaitKind"]

FOREVER: Final = 1 << 62
"""A time in ms that never comes."""

T = TypeVar("T")


class WaitKind(enum.IntEnum):
    """Where the application thread is while it waits."""

    POLL = 0
    """Inside the network client: responses are handled at once."""
    SLEEP = 1
    """Inside a client call but not polling (a backoff)."""
    AWAY = 2
    """In the application's own code: a callback, processing, or between two calls."""


class Wait:
    """One wait of the application thread.

    Attributes:
        kind: where it waits.
        deadline_ms: when it wants to go on at the latest; ``FOREVER`` when only an event can wake it.
        fetching: it sits in the fetch part of ``poll()``. Java iterates there at least twice a
            second (``fetch.max.wait.ms``) and restarts the poll timer each time, so the poll timer
            does not run while this is set.
        steady: and an answer that changes nothing would change nothing here either, so that
            successful heartbeats need not wake it.

    """

    __slots__ = ("deadline_ms", "fetching", "kind", "steady")

    def __init__(
        self, kind: WaitKind, deadline_ms: int, *, fetching: bool = False, steady: bool = False
    ) -> None:
        self.kind = kind
        self.deadline_ms = deadline_ms
        self.fetching = fetching
        self.steady = steady


Steps = Generator[Wait, None, T]
"""A call of the application thread that may span time and returns ``T``."""


class Context:
    """What all parts of one client share: the time, the effects so far, the coordinator's lock.

    ``lock_depth`` above zero means that the application thread holds Java's coordinator monitor
    while it waits: the heartbeat thread cannot run then.
    """

    __slots__ = ("effects", "env", "lock_depth", "now_ms")

    def __init__(self, env: ClientEnvironment) -> None:
        self.env = env
        self.now_ms = 0
        self.effects: list[ClientEffect] = []
        self.lock_depth = 0

    def note(self, note: Note) -> None:
        """Hand a note to the world, in order with the other effects."""
        self.effects.append(note)

    def log(self, level: str, sentence: str) -> None:
        """Say what the real client would log."""
        self.effects.append(ClientLog(level=level.upper(), sentence=sentence))

    def draw(self, stream: str, bound: int) -> int:
        """The next integer in [0, bound) of the client's named random stream."""
        return self.env.draw(stream, bound)


class Timer:
    """A deadline on the client's clock (Java's ``Timer``, without its cached time)."""

    __slots__ = ("_ctx", "deadline_ms")

    def __init__(self, ctx: Context, timeout_ms: int) -> None:
        self._ctx = ctx
        self.deadline_ms = min(ctx.now_ms + timeout_ms, FOREVER)

    @property
    def remaining_ms(self) -> int:
        """Milliseconds left, never negative."""
        return max(0, self.deadline_ms - self._ctx.now_ms)

    @property
    def expired(self) -> bool:
        """Whether now ≥ deadline (CH-01)."""
        return self._ctx.now_ms >= self.deadline_ms

    def reset(self, timeout_ms: int) -> None:
        """Run again for ``timeout_ms`` from now."""
        self.deadline_ms = min(self._ctx.now_ms + timeout_ms, FOREVER)

    def sleep(self, duration_ms: int) -> Steps[None]:
        """Wait for ``duration_ms`` or what is left, whichever is less, without polling."""
        until = min(self._ctx.now_ms + duration_ms, self.deadline_ms)
        while self._ctx.now_ms < until:
            yield Wait(WaitKind.SLEEP, until)


class ExponentialBackoff:
    """Java's ``ExponentialBackoff`` with base 2 and jitter 0.2, in integers (rule book 2.6).

    Attempt n waits initial · 2ⁿ, at most max, times a factor drawn from [0.8, 1.2), cut to an
    integer and capped at max. If max ≤ initial it is the constant max, without jitter (K-06).
    """

    __slots__ = ("_ctx", "_initial_ms", "_max_ms", "_stream")

    def __init__(self, ctx: Context, initial_ms: int, max_ms: int, stream: str) -> None:
        self._ctx = ctx
        self._initial_ms = min(initial_ms, max_ms)
        self._max_ms = max_ms
        self._stream = stream

    def backoff(self, attempts: int) -> int:
        """Milliseconds to wait after ``attempts`` earlier failures."""
        if self._max_ms <= self._initial_ms:
            return self._initial_ms
        term = self._initial_ms << min(attempts, 62)
        factor = 800_000 + self._ctx.draw(self._stream, 400_000)
        return min(min(term, self._max_ms) * factor // 1_000_000, self._max_ms)
