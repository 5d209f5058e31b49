"""What a sans-IO machine hands back: effects for the world to carry out, notes for the trace.

Both machines (the coordinator and a client coordinator) answer every input with a list of
effects. An effect asks for something (send this, append that). A *note* asks for nothing: it
tells what happened inside, and the world writes it to the trace as it is.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar, dataclass_transform

from groupsim.protocol._base import message

__all__ = ["NOTE_KINDS", "Note", "note"]


class Note:
    """Base of all notes. ``kind`` is the name of the trace event; its fields are the slots."""

    __slots__ = ()
    kind: ClassVar[str] = ""


N = TypeVar("N", bound=Note)

NOTE_KINDS: dict[str, type[Note]] = {}
"""Every kind of note that has been defined, by name: the trace's schema is made from it."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
def note(cls: type[N]) -> type[N]:
    """Make ``cls`` an immutable note and register its kind.

    Raises:
        ValueError: the kind is missing or taken by another class.

    """
    made: Any = message(cls)
    kind = made.kind
    if not kind or NOTE_KINDS.get(kind, made).__qualname__ != made.__qualname__:
        raise ValueError(f"note {cls.__qualname__}: kind {kind!r} is missing or taken")
    NOTE_KINDS[kind] = made
    return made  # type: ignore[no-any-return]
