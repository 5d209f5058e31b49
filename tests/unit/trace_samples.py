"""Small traces written by hand, for the tests of readers, metrics and reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from groupsim.protocol.messages import HeartbeatRequest, HeartbeatResponse
from groupsim.trace.writer import TraceWriter
from groupsim_clients.machine import Ownership

SCENARIO: dict[str, Any] = {"name": "small", "topics": {"orders": {"partitions": 3}}, "list": [1]}


def small_trace(path: Path | None, *, seed: int = 7, end: str | None = "finished") -> TraceWriter:
    """Write a trace of ten events with all shapes of fields; ``end`` None leaves it unfinished."""
    writer = TraceWriter(path, scenario=SCENARIO, seed=seed)
    fill(writer)
    if end is not None:
        writer.close(end, time_us=60_000_000)
    return writer


def fill(writer: TraceWriter, *, sentence: str = "the first") -> None:
    """Write the ten events of ``small_trace``."""
    event = writer.event
    event(0, 0, "topic", topic="orders", partitions=3)
    started = event(500, 0, "process", who="c-1", role="client", event="started", detail="")
    link = writer.connection("c1", "c-1", "b-1")
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id="c-1-x")
    sent = link.send(1_000, started, 0, beat, 4)
    heard = writer.deliver(1_500, sent, sent)
    answer = link.send(1_500, heard, 0, HeartbeatResponse(), 4)
    writer.deliver(2_000, answer, answer)
    owned = (("orders", 0), ("orders", 2))
    note = Ownership(change="assigned", partitions=owned, owned=owned, generation_id=1)
    writer.note(2_500, 6, "c-1", note)
    event(3_000, 0, "script", who="s", sentence=sentence)
    event(4_000, 0, "fault", fault="disk", target="b-1", detail={"for_us": 5, "raw": b"\0\xff"})
    event(5_000, 9, "process", who="c-1", role="client", event="crashed", detail="power cut")
