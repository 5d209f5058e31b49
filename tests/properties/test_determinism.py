"""The same seed gives the same trace, whatever Python's hash seed and in whatever process."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

PROGRAM = """
import sys
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import ApiKey, ListGroupsRequest
from groupsim.runtime import *
from groupsim.trace.writer import TraceWriter
from groupsim_clients.machine import ClientSpec, Order
from groupsim_clients.profiles import java

trace = TraceWriter(None, seed=int(sys.argv[1]))
simulation = Simulation(
    seed=int(sys.argv[1]),
    topics={"orders": TopicSpec(partitions=12, rate_per_s=50), "other": TopicSpec(partitions=3)},
    brokers=BrokersSpec(count=3, replication_delay=Uniform(low_us=0, high_us=9000), load_us=50_000),
    network=NetworkSpec(
        to_broker=LogNormal(median_us=800, sigma_permille=700), to_client=Uniform(low_us=1, high_us=9999)
    ),
    trace=trace,
)
for number in range(int(sys.argv[2])):
    name = f"c-{number}"
    spec = ClientSpec(
        name=name, group_id=f"g-{number % 2}", subscribe=("orders", "other"),
        config={"session.timeout.ms": 10_000}, work={"processing_ms": 20}, options={},
    )
    simulation.add_member(name, spec, java, clock=ProcessClock(offset_ms=number * 1000, rate_ppm=number))
    simulation.schedule(number * 700_000, lambda name=name: simulation.start(name))

async def script(env):
    for round_number in range(6):
        async with await env.connect() as connection:
            for group in (await connection.request(ListGroupsRequest())).groups:
                env.log(f"{group.group_id} {group.group_state}")
        await env.sleep(env.draw("pause", 20))

simulation.add_script(script)
S = 1_000_000
simulation.schedule(40 * S, lambda: simulation.crash("c-0"))
simulation.schedule(50 * S, lambda: simulation.pause("c-1", 15 * S))
simulation.schedule(60 * S, lambda: simulation.restart("c-2", 3 * S))
simulation.schedule(70 * S, lambda: simulation.cut(("c-3",), direction="to_client"))
simulation.schedule(75 * S, lambda: simulation.heal())
simulation.schedule(80 * S, lambda: simulation.crash_broker(2))
simulation.schedule(95 * S, lambda: simulation.add_partitions("orders", 20))
simulation.schedule(99 * S, lambda: simulation.drop_next(api=ApiKey.HEARTBEAT, count=2))
simulation.schedule(105 * S, lambda: simulation.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS, count=3))
run(simulation, 120 * S)
print(trace.sha256(), trace.events)
"""


@cache
def play(seed: int, hash_seed: str, members: int = 6) -> tuple[str, int]:
    """Run the program in a process of its own; return its trace's hash and number of events."""
    child = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(seed), str(members)],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        env={"PYTHONPATH": "clients:.", "PYTHONHASHSEED": hash_seed},
    )
    assert child.returncode == 0, child.stderr
    digest, events = child.stdout.split()
    return digest, int(events)


def test_one_seed_is_one_trace() -> None:
    """Groups, faults, scripts and random latencies, under two values of PYTHONHASHSEED."""
    first, second = play(7, "1"), play(7, "4242")
    assert first == second
    assert first[1] > 2000


def test_another_seed_is_another_trace() -> None:
    """The seed decides something at all."""
    assert play(7, "1")[0] != play(8, "1")[0]
