"""What a steady group costs: 100 Java members heartbeating for one virtual hour.

The measure is a bare heap loop (heappush and heappop of tuples, and a call) that pushes the same number of
actions, with as many waiting and the same distances in time. Members do not commit (``commit: none``),
so nearly all that happens is heartbeats; metadata is refreshed every five minutes, as in Java.

Both run in turns in this process, in slices of five virtual minutes, and what is compared is the CPU
time of the fastest slice of each: every slice holds all that an hour holds, and on a shared machine the
fastest is the one that others disturbed least. The ratio of the sums is printed as well.

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
from typing import Any

from groupsim.protocol.java import java_string_hash
from groupsim.runtime import Simulation, TopicSpec
from groupsim.trace.writer import TraceWriter
from groupsim_clients.machine import ClientSpec
from groupsim_clients.profiles import java

SECOND_US = 1_000_000
HOUR_US = 3600 * SECOND_US
SLICE_US = 300 * SECOND_US  # as long as Java's metadata.max.age.ms
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


def measure(members: int, until_us: int, trace: TraceWriter | None) -> dict[str, float]:
    """Run simulation and bare loop in turns; return the figures."""
    simulation = group(members, trace)
    kernel = simulation.kernel
    broker = simulation.cluster.brokers[1]
    trips = actions = 0
    ours: list[float] = []
    bare: list[float] = []
    costs: list[float] = []
    gc.collect()
    while kernel.now_us < until_us:
        actions_before, trips_before = kernel.executed, broker.requests
        start = time.process_time()
        kernel.run_until(min(kernel.now_us + SLICE_US, until_us))
        ours.append(time.process_time() - start)
        slice_actions = kernel.executed - actions_before
        slice_trips = broker.requests - trips_before
        bare.append(bare_loop(slice_actions, members, kernel.now_us))
        costs.append(ours[-1] / slice_trips)
        actions += slice_actions
        trips += slice_trips
    return {
        "round_trips": trips,
        "actions": actions,
        "us_per_round_trip": min(costs) * 1e6,
        "bare_us_per_action": min(bare) * len(bare) / actions * 1e6,
        "ratio": min(ours) / min(bare),
        "ratio_of_sums": sum(ours) / sum(bare),
    }


def show(title: str, figures: dict[str, float]) -> None:
    print(
        f"{title}: {figures['round_trips']:.0f} round trips, {figures['actions']:.0f} actions; "
        f"{figures['us_per_round_trip']:.2f} µs a round trip "
        f"({1e6 / figures['us_per_round_trip']:,.0f} a second); bare loop "
        f"{figures['bare_us_per_action']:.3f} µs an action; ratio {figures['ratio']:.2f} "
        f"(of the sums: {figures['ratio_of_sums']:.2f})"
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
    until_us = 60 * SECOND_US + int(options.hours * HOUR_US)
    plain = measure(options.members, until_us, None)
    show("without a trace", plain)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "heartbeats.trace")
        trace = TraceWriter(path, seed=7)
        traced = measure(options.members, until_us, trace)
        trace.close()
        show(f"with a trace ({trace.events} events, {path.stat().st_size >> 20} MB)", traced)
        child = [sys.executable, __file__, "--memory-run", str(Path(folder, "m.trace")), "1000000"]
        told = subprocess.run(child, check=True, capture_output=True, text=True).stdout
        memory = json.loads(told)
    print(f"memory: {memory['peak_mb']:.0f} MB at most for {memory['events']} events")
    ratios = {
        "ratio": round(plain["ratio"], 2),
        "ratio_traced": round(traced["ratio"], 2),
        "ratio_of_sums": round(plain["ratio_of_sums"], 2),
        "ratio_traced_of_sums": round(traced["ratio_of_sums"], 2),
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
