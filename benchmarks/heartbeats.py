"""What a steady group costs: 100 Java members heartbeating for one virtual hour.

The measure is a bare heap loop (heappush and heappop of tuples, and a call) that pushes the same number of
actions, with as many waiting and the same distances in time. Members do not commit (``commit: none``),
so nearly all that happens is heartbeats; metadata is refreshed every five minutes, as in Java.

Both run in turns in this process, a few virtual seconds each, so that whatever else the machine does
disturbs both alike. What is compared is CPU time, over windows of five virtual minutes: each of them
holds all that an hour holds. The ratio is the median of the windows; the least and the greatest are
printed as well.

Also measured: the memory of a process that runs a million trace events.

    python benchmarks/heartbeats.py [--members 100] [--hours 1]

The last line is one JSON object with the ratios.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
from heapq import heappop, heappush
from pathlib import Path
from statistics import median
from typing import Any

from groupsim.protocol.java import java_string_hash
from groupsim.runtime import Simulation, TopicSpec
from groupsim.trace.writer import TraceWriter
from groupsim_clients.machine import ClientSpec
from groupsim_clients.profiles import java

SECOND_US = 1_000_000
HOUR_US = 3600 * SECOND_US
WINDOW_US = 300 * SECOND_US  # as long as Java's metadata.max.age.ms
SLICE_US = 5 * SECOND_US
MAX_RATIO = 4.0
MAX_RATIO_TRACED = 6.0
MAX_MEMORY_MB = 200.0


def group(members: int, trace: TraceWriter | None) -> Simulation:
    """Return a simulation whose group has become stable."""
    simulation = Simulation(seed=7, topics={"orders": TopicSpec(partitions=members)}, trace=trace)
    for number in range(members):
        name = f"c-{number}"
        spec = ClientSpec(
            name=name,
            group_id="checkout",
            subscribe=("orders",),
            config={},
            work={"commit": "none"},
            options={},
        )
        simulation.add_member(name, spec, java, profile="java")
        # spread over the heartbeat interval, as members that start by themselves are
        spread_us = java_string_hash(name) % 3000 * 1000
        simulation.schedule(spread_us, lambda name=name: simulation.start(name))  # type: ignore[misc]
    simulation.kernel.run_until(60 * SECOND_US)
    assert simulation.group_state("checkout") == "Stable"
    return simulation


def bare_loop(actions: int, actors: int, at_us: int) -> float:
    """CPU seconds of a bare heap loop: three hops for each round trip of each actor."""
    heap: list[tuple[int, int, Any, int]] = []
    now_us = at_us
    sequence = 0

    def wake(actor: int) -> None:
        nonlocal sequence
        sequence += 1
        heappush(heap, (now_us + 500, sequence, request, actor))

    def request(actor: int) -> None:
        nonlocal sequence
        sequence += 1
        heappush(heap, (now_us + 500, sequence, response, actor))

    def response(actor: int) -> None:
        nonlocal sequence
        sequence += 1
        heappush(heap, (now_us + 2_999_000, sequence, wake, actor))

    for actor in range(actors):
        sequence += 1
        heappush(heap, (now_us + actor * 3_000_000 // actors, sequence, wake, actor))
    start = time.process_time()
    for _ in range(actions):
        now_us, _sequence, action, actor = heappop(heap)
        action(actor)
    return time.process_time() - start


def window(simulation: Simulation, until_us: int) -> tuple[int, int, float, float]:
    """Round trips, actions, and the CPU seconds of the simulation and of the bare loop."""
    kernel = simulation.kernel
    broker = simulation.cluster.brokers[1]
    members = len(simulation.processes)
    actions_before, trips_before = kernel.executed, broker.requests
    ours = bare = 0.0
    while kernel.now_us < until_us:
        before = kernel.executed
        start = time.process_time()
        kernel.run_until(min(kernel.now_us + SLICE_US, until_us))
        ours += time.process_time() - start
        bare += bare_loop(kernel.executed - before, members, kernel.now_us)
    return broker.requests - trips_before, kernel.executed - actions_before, ours, bare


def measure(members: int, hours: float, trace: TraceWriter | None) -> dict[str, float]:
    """Run simulation and bare loop in turns; return the figures."""
    simulation = group(members, trace)
    end_us = simulation.kernel.now_us + int(hours * HOUR_US)
    gc.collect()
    windows = []
    while simulation.kernel.now_us < end_us:
        windows.append(window(simulation, min(simulation.kernel.now_us + WINDOW_US, end_us)))
    ratios = [ours / bare for _, _, ours, bare in windows]
    return {
        "round_trips": sum(trips for trips, _, _, _ in windows),
        "actions": sum(actions for _, actions, _, _ in windows),
        "us_per_round_trip": median(ours / trips for trips, _, ours, _ in windows) * 1e6,
        "bare_us_per_action": median(bare / actions for _, actions, _, bare in windows) * 1e6,
        "ratio": median(ratios),
        "least": min(ratios),
        "greatest": max(ratios),
    }


def show(title: str, figures: dict[str, float]) -> None:
    print(
        f"{title}: {figures['round_trips']:.0f} round trips, {figures['actions']:.0f} actions; "
        f"{figures['us_per_round_trip']:.2f} µs a round trip "
        f"({1e6 / figures['us_per_round_trip']:,.0f} a second); bare loop "
        f"{figures['bare_us_per_action']:.3f} µs an action; ratio {figures['ratio']:.2f} "
        f"({figures['least']:.2f} to {figures['greatest']:.2f})"
    )


def memory_run(path: str, members: int, events: int) -> None:
    """Run until the trace has so many events; print them and the peak memory."""
    trace = TraceWriter(Path(path), seed=7)
    simulation = group(members, trace)
    while trace.events < events:
        simulation.kernel.run_until(simulation.kernel.now_us + 60 * SECOND_US)
    trace.close()
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"events": trace.events, "peak_mb": peak_kb / 1024}))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--hours", type=float, default=1)
    parser.add_argument("--memory-run", nargs=2, metavar=("PATH", "EVENTS"))
    options = parser.parse_args()
    if options.memory_run:
        memory_run(options.memory_run[0], options.members, int(options.memory_run[1]))
        return 0
    plain = measure(options.members, options.hours, None)
    show("without a trace", plain)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "heartbeats.trace")
        trace = TraceWriter(path, seed=7)
        traced = measure(options.members, options.hours, trace)
        trace.close()
        show(f"with a trace ({trace.events} events, {path.stat().st_size >> 20} MB)", traced)
        child = [sys.executable, __file__, "--memory-run", str(Path(folder, "m.trace")), "1000000"]
        told = subprocess.run(child, check=True, capture_output=True, text=True).stdout
        memory = json.loads(told)
    print(f"memory: {memory['peak_mb']:.0f} MB at most for {memory['events']} events")
    ratios = {
        "ratio": round(plain["ratio"], 2),
        "ratio_traced": round(traced["ratio"], 2),
        "max_ratio": MAX_RATIO,
        "max_ratio_traced": MAX_RATIO_TRACED,
        "memory_mb": round(memory["peak_mb"]),
        "max_memory_mb": MAX_MEMORY_MB,
    }
    met = (
        ratios["ratio"] <= MAX_RATIO
        and ratios["ratio_traced"] <= MAX_RATIO_TRACED
        and ratios["memory_mb"] <= MAX_MEMORY_MB
    )
    print(json.dumps({"benchmark": "heartbeats", **ratios, "met": met}))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
