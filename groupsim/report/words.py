"""Numbers and names as people read them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = [
    "clock",
    "duration",
    "partition_seconds",
    "partitions",
    "plain_text",
    "printable",
    "some",
    "without_uuids",
]

_UUID = re.compile(r"\b([0-9a-f]{8})(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_MS = 1_000
_S = 1_000_000
_MINUTE = 60 * _S
_HOUR = 60 * _MINUTE


def clock(time_us: int) -> str:
    """Return a moment of virtual time: ``01:05.250``, with hours when there are any."""
    minutes, rest = divmod(time_us, _MINUTE)
    hours, minutes = divmod(minutes, 60)
    seconds, ms = divmod(rest // _MS, 1_000)
    text = f"{minutes:02}:{seconds:02}.{ms:03}"
    return f"{hours}:{text}" if hours else text


def duration(us: int | None) -> str:
    """Return a length of time: ``350µs``, ``12ms``, ``4.25s``, ``6s``, ``1m05s``.

    Up to a minute it is exact to the millisecond, so that the parts of a rebalance add up.
    """
    if us is None:
        return "–"
    if us == 0:
        return "0"
    if us < _MS:
        return f"{us}µs"
    if us < _S:
        return f"{_round(us, _MS)}ms" if _round(us, _MS) < 1_000 else "1s"
    if _round(us, _MS) < 60_000:
        whole, ms = divmod(_round(us, _MS), 1_000)
        return f"{whole}.{ms:03}".rstrip("0").rstrip(".") + "s"
    minutes, seconds = divmod(_round(us, _S), 60)
    if minutes < 60:
        return f"{minutes}m{seconds:02}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m"


def partition_seconds(partition_us: int) -> str:
    """Return partition time in partition-seconds with one decimal."""
    whole, tenth = divmod(_round(partition_us, _S // 10), 10)
    return f"{whole}.{tenth}"


def partitions(pairs: Iterable[tuple[str, int]]) -> str:
    """Return (topic, partition) pairs as ``orders 0-3,7 payments 1``; ``nothing`` for none."""
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(pairs):
        topics.setdefault(topic, []).append(number)
    return " ".join(f"{t} {_ranges(numbers)}" for t, numbers in topics.items()) or "nothing"


def some(names: Iterable[str], most: int = 3) -> str:
    """Return a list of names, cut after ``most``: ``c-1, c-2, c-3 and 9 more``."""
    listed = list(names)
    shown = ", ".join(listed[:most])
    return shown if len(listed) <= most else f"{shown} and {len(listed) - most} more"


def plain_text(value: Any) -> str:
    """Return any value of an event's field on one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={plain_text(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return " ".join(plain_text(item) for item in value)
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    return printable(str(value))


def without_uuids(text: str) -> str:
    """Return ``text`` with the tails of UUIDs (in Kafka's member ids) cut: ``c-1-cf36d705…``."""
    return _UUID.sub(r"\1…", text)


def printable(text: str) -> str:
    """Return ``text`` without what could take a terminal over: control characters are escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _ranges(numbers: list[int]) -> str:
    parts: list[str] = []
    start = last = numbers[0]
    for number in [*numbers[1:], -1]:
        if number == last + 1:
            last = number
            continue
        parts.append(str(start) if start == last else f"{start}-{last}")
        start = last = number
    return ",".join(parts)


def _round(value: int, unit: int) -> int:
    return (value + unit // 2) // unit
