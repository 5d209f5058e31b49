"""What all parts of a simulation share: the kernel, the streams, the trace, and the current cause.

``cause`` is the id of the trace event that is being handled. Whoever starts to handle something sets it;
whatever is emitted meanwhile names it. Without a trace all ids are 0.
"""

from __future__ import annotations

from typing import Any

from groupsim.protocol.effects import Note
from groupsim.runtime.kernel import Kernel
from groupsim.runtime.randomness import Streams
from groupsim.trace.writer import TraceWriter

__all__ = ["World"]


class World:
    """The common ground of one simulation."""

    __slots__ = ("cause", "kernel", "streams", "trace")

    def __init__(self, seed: int, trace: TraceWriter | None = None) -> None:
        self.kernel = Kernel()
        self.streams = Streams(seed)
        self.trace = trace
        self.cause = 0

    def event(self, kind: str, **fields: Any) -> int:
        """Write an event caused by what is being handled; return its id (0 without a trace)."""
        if self.trace is None:
            return 0
        return self.trace.event(self.kernel.now_us, self.cause, kind, **fields)

    def note(self, who: str, note: Note) -> int:
        """Write a machine's note; return its id (0 without a trace)."""
        if self.trace is None:
            return 0
        return self.trace.note(self.kernel.now_us, self.cause, who, note)
