"""Failures of a client: Java's exceptions as one type with fields, and bad options.

``JavaError`` stands for whatever the Java client would throw or fail a future with. The class name
matters to behaviour in few places only (is it retriable, is it a Kafka exception, which of the
four "join again at once" classes), so it is a field and not a hierarchy.
"""

from __future__ import annotations

from collections.abc import Sequence

from groupsim.protocol.errors import ErrorCode

__all__ = ["ConfigError", "JavaError", "WakeupError"]


class JavaError(Exception):
    """An exception of the Java client.

    Attributes:
        exception: simple name of the Java class, as it appears in rejoin reasons and notes.
        detail: its message.
        retriable: whether the class is a ``RetriableException`` (rule book 2.10).
        kafka: whether it is a ``KafkaException`` (others are wrapped before a user sees them).

    """

    def __init__(
        self, exception: str, detail: str = "", *, retriable: bool = False, kafka: bool = True
    ) -> None:
        super().__init__(f"{exception}: {detail}" if detail else exception)
        self.exception = exception
        self.detail = detail
        self.retriable = retriable
        self.kafka = kafka

    @classmethod
    def of(cls, code: ErrorCode) -> JavaError:
        """The exception that ``Errors.forCode(code).exception()`` is."""
        return cls(code.exception, code.message, retriable=code.retriable)

    @classmethod
    def unexpected(cls, detail: str) -> JavaError:
        """A plain ``KafkaException``."""
        return cls("KafkaException", detail)

    @classmethod
    def illegal_state(cls, detail: str) -> JavaError:
        """A broken assumption of the client itself; no Kafka exception."""
        return cls("IllegalStateException", detail, kafka=False)

    @classmethod
    def illegal_argument(cls, detail: str) -> JavaError:
        """A call with an argument that is not allowed; no Kafka exception."""
        return cls("IllegalArgumentException", detail, kafka=False)

    @classmethod
    def disconnect(cls) -> JavaError:
        """The connection went away while the request was waiting or in flight."""
        return cls("DisconnectException", retriable=True)

    @classmethod
    def timeout(cls, detail: str) -> JavaError:
        """Something took longer than allowed."""
        return cls("TimeoutException", detail, retriable=True)

    @classmethod
    def group_authorization(cls, group_id: str) -> JavaError:
        """``GroupAuthorizationException.forGroupId`` (CR-09 and its like name the group)."""
        return cls("GroupAuthorizationException", f"Not authorized to access group: {group_id}")

    @classmethod
    def from_callback(cls, cause: JavaError) -> JavaError:
        """Wrap what a rebalance listener threw (CJ-17, CC-11, CL-05)."""
        detail = f"User rebalance callback throws an error: {cause}"
        return cls("KafkaException", detail)


class WakeupError(JavaError):
    """``WakeupException``: thrown out of whatever the application thread waits in."""

    def __init__(self, exception: str = "WakeupException") -> None:
        super().__init__(exception)


class ConfigError(ValueError):
    """An option of a client that Java would refuse, or that this client does not know.

    Attributes:
        name: the option.
        value: what was given.
        allowed: what would be right, in words.
        near: known names that look like ``name``.

    """

    def __init__(self, name: str, value: object, allowed: str, near: Sequence[str] = ()) -> None:
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        super().__init__(f"{name}: {value!r} is not allowed: {allowed}{hint}")
        self.name = name
        self.value = value
        self.allowed = allowed
        self.near = tuple(near)
