"""Whatever happens to a group, when it is over every partition has exactly one owner again."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from groupsim.runtime.simulation import Simulation, run
from groupsim.runtime.specs import BrokersSpec, TopicSpec
from groupsim_clients.machine import ClientSpec, Order
from groupsim_clients.profiles import java, java_2_4

STRATEGIES = ("range", "roundrobin", "sticky", "cooperative-sticky", "range,cooperative-sticky")
WORKS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"processing_ms": {"uniform": [0, 5_000]}},
    {"processing_ms": 200, "commit": "sync"},
    {"processing_ms": 200, "commit": "async"},
    {"poll_interval_ms": 500},
    {"on_revoked_ms": 2_000, "on_assigned_ms": 500},
)


def add_members(simulation: Simulation, rnd: random.Random) -> list[str]:
    """Some members, of different kinds, that start within five seconds."""
    strategy = rnd.choice(STRATEGIES)
    names = [f"c-{n}" for n in range(rnd.randint(2, 6))]
    for name in names:
        config: dict[str, Any] = {
            "partition.assignment.strategy": strategy,
            "session.timeout.ms": 10_000,
            "max.poll.interval.ms": 20_000,
        }
        if rnd.random() < 0.3:
            config["group.instance.id"] = name
        spec = ClientSpec(
            name=name,
            group_id="g",
            subscribe=("t",) if rnd.random() < 0.7 else ("t", "u"),
            config=config,
            work={"on_error": "continue", **rnd.choice(WORKS)},
            options={},
        )
        old = strategy == "range" and rnd.random() < 0.2
        simulation.add_member(name, spec, java_2_4 if old else java)
        simulation.schedule(rnd.randint(0, 5_000_000), lambda name=name: simulation.start(name))
    return names


def faults(simulation: Simulation, name: str, for_us: int) -> list[list[Callable[[], object]]]:
    """What may happen to a member or its broker: at once, and after some time."""
    return [
        [lambda: simulation.restart(name, for_us, "crash")],
        [lambda: simulation.restart(name, for_us)],
        [lambda: simulation.pause(name, for_us)],
        [lambda: simulation.cut((name,)), lambda: simulation.heal((name,))],
        [lambda: simulation.disconnect(name)],
        [lambda: simulation.drop_next((name,), how="black-hole")],
        [lambda: simulation.order(name, Order(name="enforce_rebalance", arguments={}))],
        [lambda: simulation.crash_broker(1), lambda: simulation.start_broker(1)],
    ]


@pytest.mark.parametrize("seed", [2, 13, 35, 52, 79, 104])
def test_one_owner_each_in_the_end(seed: int) -> None:
    """CJ-10, CH-06, CC-20, CL-03: three minutes after the last fault the group is stable, nobody has given up,
    and no partition has two owners or none.
    """
    rnd = random.Random(seed)
    topics = {"t": TopicSpec(partitions=rnd.randint(1, 12), rate_per_s=rnd.choice([0, 5, 50]))}
    topics["u"] = TopicSpec(partitions=3, rate_per_s=1)
    simulation = Simulation(seed=seed, topics=topics, brokers=BrokersSpec(count=rnd.randint(1, 3)))
    names = add_members(simulation, rnd)
    for _ in range(rnd.randint(3, 12)):
        at_us, for_us = rnd.randint(8_000_000, 100_000_000), rnd.randint(100_000, 20_000_000)
        first, *later = rnd.choice(faults(simulation, rnd.choice(names), for_us))
        simulation.schedule(at_us, first)
        for action in later:
            simulation.schedule(at_us + for_us, action)
    run(simulation, until_us=300_000_000)
    owned = [partition for name in names for partition in simulation.process(name).owned()]
    assert simulation.group_state("g") == "Stable"
    assert len(owned) == len(set(owned))
    assert {p for p in owned if p[0] == "t"} == {("t", n) for n in range(topics["t"].partitions)}
    assert all(simulation.process(name).machine is not None for name in names)
