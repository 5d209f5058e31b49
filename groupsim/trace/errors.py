"""What can be wrong with a trace, as types with fields."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

__all__ = ["TraceError", "UnknownKindError"]


class TraceError(Exception):
    """A file that cannot be read as a trace: which file, at which byte, and why."""

    def __init__(self, file: str, offset: int, problem: str) -> None:
        super().__init__(f"{file}: byte {offset}: {problem}")
        self.file = file
        self.offset = offset
        self.problem = problem


class UnknownKindError(ValueError):
    """A kind of event that the trace does not have; ``known`` are those it has."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}"
        super().__init__(f"no event kind {name!r}{hint}")
        self.name = name
        self.known = tuple(known)
