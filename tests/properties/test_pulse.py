"""The short way of steady heartbeats through the runtime changes nothing but the cost.

Groups of different clients meet faults at random times, once with ``Pulse`` and once without: the traces have
to be the same byte for byte.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from groupsim.protocol.messages import ApiKey
from groupsim.runtime import (
    BrokersSpec,
    Fixed,
    NetworkSpec,
    ProcessClock,
    Simulation,
    TopicSpec,
    Uniform,
)
from groupsim.runtime.connection import Connection, ConnectionState
from groupsim.runtime.process import ClientProcess
from groupsim.runtime.pulse import Pulse
from groupsim.trace.writer import TraceWriter
from groupsim_clients.machine import ClientSpec, Order, SteadyHeartbeats
from groupsim_clients.profiles import java, kafka_python, librdkafka

S = 1_000_000
PROFILES = (java, librdkafka, kafka_python, java)
MEMBERS = tuple(f"c-{number}" for number in range(len(PROFILES)))
LATENCIES = (
    Fixed(us=400_000),  # slow: most of the time something is on its way when a fault strikes
    Uniform(low_us=100, high_us=900_000),
    Fixed(us=1_800_000),  # slower than the heartbeats: several are under way on one connection
    Fixed(us=500),
)

FAULTS = (
    "crash",
    "crash-host",
    "restart",
    "pause",
    "pause",
    "cut",
    "heal",
    "drop-requests",
    "drop-answers",
    "disconnect",
    "latency",
    "latency",
    "crash-broker",
    "move",
    "stop",
    "subscribe",
    "stall",
)
Fault = tuple[int, str, str, int]
"""When (µs), what, to whom, and a number that says how."""


def plan(seed: int) -> list[Fault]:
    """Three to eight faults in a stable group's first two minutes."""
    draw = random.Random(seed)
    return [
        (
            draw.randrange(12 * S, 110 * S),
            draw.choice(FAULTS),
            draw.choice(MEMBERS),
            draw.randrange(4),
        )
        for _ in range(draw.randrange(3, 9))
    ]


def do(simulation: Simulation, fault: str, name: str, number: int) -> None:
    """Carry out one fault."""
    match fault:
        case "crash" | "crash-host":
            simulation.crash(name, "machine" if fault == "crash-host" else "process")
            simulation.schedule(simulation.now_us + 3 * S, lambda: simulation.start(name))
        case "restart":
            simulation.restart(name, number * S)
        case "pause":
            simulation.pause(name, (1 + 5 * number) * S)
        case "cut":
            simulation.cut((name,), direction=("to_broker", "to_client", "both", "both")[number])
        case "heal":
            simulation.heal()
        case "drop-requests" | "drop-answers":
            way = "to_broker" if fault == "drop-requests" else "to_client"
            how = ("reset", "black-hole")[number % 2]
            simulation.drop_next((name,), direction=way, api=ApiKey.HEARTBEAT, count=1, how=how)
        case "disconnect":
            simulation.disconnect(name)
        case "latency":
            simulation.set_link(to_broker=LATENCIES[number], to_client=LATENCIES[3 - number])
        case "crash-broker":
            simulation.crash_broker(1 + number % 2)
            simulation.schedule(
                simulation.now_us + 5 * S, lambda: simulation.start_broker(1 + number % 2)
            )
        case "move" if simulation.cluster.broker(1 + number % 2).up:
            simulation.move_coordinator(1 + number % 2, group="g")
        case "stop":
            simulation.stop(name, 1000 * number)
        case "subscribe":
            order = Order(name="subscribe", arguments={"topics": ("other", "orders")[number % 2 :]})
            simulation.order(name, order)
        case "stall":
            simulation.stall_appends(group="g")
            simulation.schedule(
                simulation.now_us + 2 * S, lambda: simulation.resume_appends(group="g")
            )


def group(
    latency: int, seed: int, trace: TraceWriter | None = None, *, commits: bool = True
) -> Simulation:
    """Four members of three kinds that start by and by; one of them has a clock of its own."""
    simulation = Simulation(
        seed=seed,
        topics={"orders": TopicSpec(partitions=6, rate_per_s=9), "other": TopicSpec(partitions=2)},
        brokers=BrokersSpec(
            count=2, failover_us=2 * S, replication_delay=Uniform(low_us=0, high_us=800_000)
        ),
        network=NetworkSpec(to_broker=LATENCIES[latency], to_client=LATENCIES[latency]),
        trace=trace,
    )
    for number, (name, profile) in enumerate(zip(MEMBERS, PROFILES, strict=True)):
        spec = ClientSpec(
            name=name,
            group_id="g",
            subscribe=("orders",),
            config={
                "session.timeout.ms": 8_000,
                "heartbeat.interval.ms": 1_000,
                "auto.commit.interval.ms": 1_000,
            },
            work={"commit": "auto" if commits and number % 2 else "none", "on_error": "continue"},
            options={},
        )
        clock = ProcessClock(offset_ms=5, rate_ppm=50) if number == 3 else ProcessClock()
        simulation.add_member(name, spec, profile, clock=clock)
        simulation.schedule(number * 300_000, lambda name=name: simulation.start(name))  # type: ignore[misc]
    return simulation


def play(faults: list[Fault], latency: int, seed: int) -> tuple[str, int, int, int]:
    """Run two minutes; return the trace's hash, its number of events, the actions run and the requests served."""
    trace = TraceWriter(None, seed=seed)
    simulation = group(latency, seed, trace)
    for at_us, fault, name, number in faults:
        simulation.schedule(
            at_us,
            lambda fault=fault, name=name, number=number: do(simulation, fault, name, number),  # type: ignore[misc]
        )
    simulation.kernel.run_until(120 * S)
    requests = sum(broker.requests for broker in simulation.cluster.brokers.values())
    return trace.sha256(), trace.events, simulation.kernel.executed, requests


@contextmanager
def the_long_way() -> Iterator[None]:
    """Have no process find a pulse."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClientProcess, "_find_pulse", lambda _process, _beats: None)
        yield


@pytest.mark.parametrize("seed", range(60))
def test_the_short_way_is_the_long_way(seed: int) -> None:
    """Same events, same order, same times, whatever is cut, broken, frozen or moved."""
    short = play(plan(seed), seed % 4, seed)
    with the_long_way():
        assert play(plan(seed), seed % 4, seed) == short


def test_the_short_way_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the property above would say nothing: nearly all heartbeats go this way."""
    arrived = 0
    right = Pulse._arrive

    def counted(self: Pulse, message: Any) -> None:
        nonlocal arrived
        arrived += 1
        right(self, message)

    monkeypatch.setattr(Pulse, "_arrive", counted)
    play([], 3, 1)
    assert arrived > 200  # three of the clients have plain clocks; two minutes hold 120 heartbeats


def steady() -> tuple[Simulation, Connection]:
    """A settled group, and the connection that its first member's pulse goes over."""
    simulation = group(latency=3, seed=1, commits=False)
    simulation.kernel.run_until(20 * S)
    process = simulation.process("c-0")
    pulse = process._pulse
    assert pulse is not None
    return simulation, pulse._connection


def test_a_busy_connection_is_not_overtaken() -> None:
    """The broker has a request of the connection in hand: heartbeats wait behind it, and behind one
    another, although the coordinator could answer them at once.
    """
    simulation, connection = steady()
    connection.busy = True
    simulation.kernel.run_until(22 * S)
    waiting = len(connection.queue)
    assert waiting > 0
    connection.busy = False
    simulation.kernel.run_until(24 * S)
    assert len(connection.queue) > waiting


def test_a_pulse_ends_where_the_heartbeats_go_elsewhere() -> None:
    """The old connection is still open, and nothing more is sent on it."""
    simulation, connection = steady()
    machine = cast(SteadyHeartbeats, simulation.process("c-0").machine)
    node_id, channel = machine.beat_key
    machine.beat_key = (3 - node_id, channel)
    before = connection.up.last_us
    elsewhere = simulation.process("c-0")._connections
    while machine.beat_key not in elsewhere:
        assert simulation.kernel.step()
        assert simulation.now_us < 25 * S
    assert connection.state is ConnectionState.OPEN
    assert connection.up.last_us == before
