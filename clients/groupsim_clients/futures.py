"""The outcome of something that was sent (Java's ``RequestFuture``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from groupsim_clients.errors import JavaError

__all__ = ["RequestFuture"]

T = TypeVar("T")


class RequestFuture(Generic[T]):
    """Pending, then a value or a failure; listeners are told in the order of their adding."""

    __slots__ = ("_listeners", "_value", "done", "error")

    def __init__(self) -> None:
        self.done = False
        self.error: JavaError | None = None
        self._value: T | None = None
        self._listeners: list[Callable[[RequestFuture[T]], None]] = []

    @classmethod
    def failure(cls, error: JavaError) -> RequestFuture[T]:
        """A future that has already failed."""
        future = cls()
        future.fail(error)
        return future

    @classmethod
    def success(cls, value: T) -> RequestFuture[T]:
        """A future that has already succeeded."""
        future = cls()
        future.complete(value)
        return future

    @property
    def succeeded(self) -> bool:
        """Done, and without a failure."""
        return self.done and self.error is None

    @property
    def retriable(self) -> bool:
        """Failed with a retriable exception."""
        return self.error is not None and self.error.retriable

    @property
    def value(self) -> T:
        """What it succeeded with."""
        assert self.succeeded, f"future is not successful: done={self.done}, error={self.error}"
        return self._value  # type: ignore[return-value]

    def complete(self, value: T) -> None:
        """Succeed and tell the listeners."""
        self._value = value
        self._finish()

    def fail(self, error: JavaError) -> None:
        """Fail and tell the listeners."""
        self.error = error
        self._finish()

    def listen(self, listener: Callable[[RequestFuture[T]], None]) -> None:
        """Call ``listener(future)`` when it is done; at once if it already is."""
        if self.done:
            listener(self)
        else:
            self._listeners.append(listener)

    def _finish(self) -> None:
        assert not self.done, "a future is completed once"
        self.done = True
        for listener in self._listeners:
            listener(self)
