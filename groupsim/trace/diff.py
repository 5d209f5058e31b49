"""Comparing two traces event by event: the first difference, with what came before it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from groupsim.trace.events import Event
from groupsim.trace.reader import RawEvent, TraceReader

__all__ = ["Comparison", "Difference", "compare"]

CONTEXT_EVENTS: Final = 5
"""Events shown before a difference: enough to see what was going on, few enough to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first event that differs; None on the side that has no more events.

    ``fields`` names what differs (time_us, cause, kind, or the kind's fields); ``context`` holds the
    events before it, which are the same on both sides.
    """

    first: Event | None
    second: Event | None
    fields: tuple[str, ...]
    context: tuple[Event, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """``equal`` counts the equal events before the ``difference``, or all of them."""

    equal: int
    difference: Difference | None


def compare(first: TraceReader, second: TraceReader, *, prefix: bool = False) -> Comparison:
    """Compare two traces; with ``prefix``, events that only ``second`` has at its end do not count.

    Kinds are compared by name, so that traces of two versions can be compared. Both readers are read
    to the end of ``first`` (so that it knows its end record) or to the difference.

    Raises:
        TraceError: one of the files is damaged.

    """
    same_kinds = first.header.kinds == second.header.kinds
    before: deque[RawEvent] = deque(maxlen=CONTEXT_EVENTS)
    equal = 0
    for one, two in zip_longest(first.raw(), second.raw()):
        if one is None and prefix:
            break
        if one is None or two is None or one != two:
            difference = _difference(first, second, one, two, before, same_kinds=same_kinds)
            if difference is not None:
                return Comparison(equal=equal, difference=difference)
        equal += 1
        assert one is not None
        before.append(one)
    return Comparison(equal=equal, difference=None)


def _difference(
    first: TraceReader,
    second: TraceReader,
    one: RawEvent | None,
    two: RawEvent | None,
    before: deque[RawEvent],
    *,
    same_kinds: bool,
) -> Difference | None:
    left = None if one is None else first.named(one)
    right = None if two is None else second.named(two)
    if left is not None and not same_kinds and left == right:
        return None  # the same event under another number
    return Difference(
        first=left,
        second=right,
        fields=() if left is None or right is None else _differing(left, right),
        context=tuple(first.named(raw) for raw in before),
    )


def _differing(left: Event, right: Event) -> tuple[str, ...]:
    names = [n for n in ("time_us", "cause", "kind") if getattr(left, n) != getattr(right, n)]
    if left.kind == right.kind:
        fields = [*left.fields, *(name for name in right.fields if name not in left.fields)]
        names += [n for n in fields if left.fields.get(n, ...) != right.fields.get(n, ...)]
    return tuple(names)
