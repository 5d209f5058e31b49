"""Snapshots of a running simulation, for tests, scripts and progress displays."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BrokerStatistics", "ProcessStatistics", "SimulationStatistics"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStatistics:
    """One client process. ``ended`` tells how its last incarnation ended, "" before that."""

    name: str
    group_id: str
    state: str
    incarnation: int
    ended: str
    member_id: str
    owned: tuple[tuple[str, int], ...]
    connections: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStatistics:
    """One broker. ``requests`` were handled in all, ``parked`` of them wait for their answer;
    ``partitions`` are those of ``__consumer_offsets`` that it leads.
    """

    node_id: int
    up: bool
    requests: int
    parked: int
    connections: int
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationStatistics:
    """A simulation at ``now_us``: kernel actions run and waiting, trace events, and its parts."""

    now_us: int
    actions: int
    pending: int
    trace_events: int
    processes: dict[str, ProcessStatistics]
    brokers: dict[int, BrokerStatistics]
