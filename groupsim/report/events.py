"""Single events as one line of text, for those who want to see exactly what is in a trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from groupsim.report.words import clock, printable
from groupsim.trace.events import Event

__all__ = ["event_text"]

LONGEST: Final = 2_000
"""Longer lines (a leader's assignments of a large group) are cut."""


def event_text(event: Event) -> str:
    """Return id, time, cause, kind and fields of an event on one line."""
    fields = " ".join(f"{name}={_value(value)}" for name, value in event.fields.items())
    cause = f" <-#{event.cause}" if event.cause else ""
    text = f"{clock(event.time_us)} #{event.id}{cause} {event.kind} {fields}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text)} characters)"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}={_value(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, bytes):
        return f"<{len(value)} bytes {value[:8].hex()}>" if value else "<0 bytes>"
    if isinstance(value, str):
        quote = not value or any(c in value for c in ' =,[]{}"')
        return f'"{printable(value)}"' if quote else printable(value)
    return str(value)
