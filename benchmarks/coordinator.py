"""What the bare coordinator costs: heartbeats, and full rebalances of 10 to 5,000 members.

    python -m benchmarks.coordinator

A rebalance is measured in three parts, each per member: the JoinGroup requests, the completion of the join
phase (all answers, the leader's list included), and the SyncGroup requests with the answers after
the commit. The leader's list alone, and its assignment alone, are measured beside them, since both grow with the
group in any implementation. Times are CPU times of this process; the best of several runs counts.
The last line is JSON: ratios within this run, which is what can be compared between machines.
"""

from __future__ import annotations

import gc
import heapq
import json
import time
from collections.abc import Callable

from groupsim.coordinator.effects import reply
from groupsim.protocol.messages import HeartbeatRequest, HeartbeatResponse
from groupsim.testing.coordinator import Bench

SIZES = (10, 100, 1000, 5000)
HEARTBEATS = 200_000
SESSION_MS = 10_000


def best(run: Callable[[], float], rounds: int) -> float:
    """The least time of several rounds."""
    return min(run() for _ in range(rounds))


def measured(work: Callable[[], object]) -> float:
    """CPU seconds of one call, without pauses of the collector."""
    gc.collect()
    gc.disable()
    begun = time.process_time()
    work()
    spent = time.process_time() - begun
    gc.enable()
    return spent


# -- heartbeats ------------------------------------------------------------------------------


def heartbeat_us() -> float:
    """One heartbeat of a stable group of 100 members."""
    bench = Bench()
    members = bench.stable(100, session_ms=SESSION_MS)
    requests = [HeartbeatRequest(group_id="g", generation_id=1, member_id=name) for name in members]
    handle, now_ms = bench.coordinator.handle, bench.now_ms

    def work() -> None:
        for turn in range(HEARTBEATS // len(requests)):
            for request in requests:
                handle(
                    1,
                    request,
                    api_version=4,
                    client_id="client",
                    client_host="/127.0.0.1",
                    now_ms=now_ms + turn,
                )

    return measured(work) / HEARTBEATS * 1e6


def heap_loop_us() -> float:
    """A bare loop that pushes and pops one heap entry for each heartbeat, to compare with."""
    heap = [(number, number, None) for number in range(100)]
    heapq.heapify(heap)

    def work() -> None:
        for number in range(HEARTBEATS):
            heapq.heappop(heap)
            heapq.heappush(heap, (number + 100, number, None))

    return measured(work) / HEARTBEATS * 1e6


def answer_us() -> float:
    """Making the answer alone: a list with one Reply."""
    response = HeartbeatResponse()

    def work() -> None:
        for number in range(HEARTBEATS):
            _ = [reply(number, response)]

    return measured(work) / HEARTBEATS * 1e6


# -- rebalances ------------------------------------------------------------------------------


def rebalance_us(size: int) -> dict[str, float]:
    """Microseconds of each part of a rebalance, per member."""
    bench = Bench({"offsets.retention.check.interval.ms": 10**9})
    tokens: list[int] = []
    parts = {"join": measured(lambda: tokens.extend(bench.join(version=3) for _ in range(size)))}
    parts["complete"] = measured(lambda: bench.sleep(6000))
    group = bench.group()
    leader = bench.joined(tokens[0]).leader
    parts["leader_list"] = measured(group.joined_members)
    members = [bench.joined(token).member_id for token in tokens]
    assignments = dict.fromkeys(members, b"assignment")

    def syncs() -> None:
        for name in members:
            bench.sync(name, assignments=assignments if name == leader else None)

    parts["sync"] = measured(syncs)
    assert bench.seen().state == "Stable"
    return {name: spent / size * 1e6 for name, spent in parts.items()}


def report_rebalances() -> dict[int, dict[str, float]]:
    """Measure all sizes and print them."""
    print(
        f"{'members':>8} {'join':>8} {'complete':>9} {'sync':>8} {'total':>8} {'list':>6}   µs per member"
    )
    found = {}
    for size in SIZES:
        rounds = [rebalance_us(size) for _ in range(3 if size >= 1000 else 20)]
        parts = {name: min(one[name] for one in rounds) for name in rounds[0]}
        parts["total"] = parts["join"] + parts["complete"] + parts["sync"]
        found[size] = parts
        print(
            f"{size:>8} {parts['join']:>8.1f} {parts['complete']:>9.1f} {parts['sync']:>8.1f}"
            f" {parts['total']:>8.1f} {parts['leader_list']:>6.1f}"
        )
    return found


def main() -> None:
    """Measure, print, and end with one line of ratios."""
    beat = best(heartbeat_us, 3)
    heap = best(heap_loop_us, 3)
    answer = best(answer_us, 3)
    print(f"heartbeat  {beat:.2f} µs, {1e6 / beat:,.0f} a second (stable group of 100 members)")
    print(f"           bare heap loop {heap:.2f} µs, making the answer alone {answer:.2f} µs")
    found = report_rebalances()
    ratios = {
        "heartbeat_to_heap_loop": round(beat / heap, 2),
        "heartbeat_to_making_its_answer": round(beat / answer, 2),
        **{
            f"per_member_{size}_to_100": round(found[size]["total"] / found[100]["total"], 2)
            for size in SIZES
        },
        "leader_list_share_5000": round(found[5000]["leader_list"] / found[5000]["total"], 3),
    }
    print(json.dumps(ratios))


if __name__ == "__main__":
    main()
