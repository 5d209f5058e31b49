"""Brokers, leadership and the log of ``__consumer_offsets``, with parrots as coordinators."""

from __future__ import annotations

from typing import Any

import pytest

from groupsim.coordinator.core import partition_for
from groupsim.coordinator.records import (
    OffsetCommitKey,
    OffsetCommitValue,
    Record,
    TransactionMarker,
)
from groupsim.protocol.errors import ErrorCode
from groupsim.runtime import BrokersSpec, Fixed, Simulation, TopicSpec
from groupsim.runtime.offsets_log import PartitionLog
from groupsim.trace.events import Event
from groupsim.trace.writer import TraceWriter
from tests.unit.fakes import COMMIT, Stage, send


def recorded(*kinds: str, **arguments: Any) -> tuple[Stage, list[Event]]:
    """A stage and the events of some kinds that happen on it."""
    trace, events = TraceWriter(None), []
    for kind in kinds:
        trace.listen(kind, events.append)
    return Stage(trace=trace, **arguments), events


@pytest.mark.parametrize(
    ("group_id", "partition"),
    [("g", 3), ("checkout", 18), ("", 0), ("polygenelubricants", 0), ("größe", 7)],
)
def test_groups_go_to_kafkas_partition(group_id: str, partition: int) -> None:
    """``Utils.abs(hashCode) % 50``; the hash of "polygenelubricants" is the least integer."""
    assert partition_for(group_id, 50) == partition


def committing(**arguments: Any) -> Stage:
    """A stage whose puppet has sent an OffsetCommit at 0; it gets there at 1.5 ms."""
    world = Stage(**arguments)
    world.puppet("p", on_start=[send(1, COMMIT)])
    return world


def test_an_append_is_committed_after_the_replication_delay() -> None:
    """The answer waits for the high watermark."""
    world = committing(brokers=BrokersSpec(replication_delay=Fixed(us=70_000)))
    world.until(1000)
    assert world.parrots[0].calls == [(1, "OffsetCommitRequest"), (71, "append NONE")]
    assert world.seen()[-1] == (72, "1 OffsetCommitResponse")


def test_a_refused_append_is_told_at_once() -> None:
    """So many are refused, then the log works again."""
    world = Stage()
    world.sim.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS, count=1)
    world.puppet("p", on_start=[send(1, COMMIT), send(2, COMMIT)])
    world.until(1000)
    assert [what for _, what in world.parrots[0].calls] == [
        "OffsetCommitRequest",
        "append NOT_ENOUGH_REPLICAS",
        "OffsetCommitRequest",
        "append NONE",
    ]


def test_refusals_can_end_with_time_and_spare_other_partitions() -> None:
    """``for_us`` ends them; a fault on another partition is none here."""
    world = Stage()
    world.sim.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS, partition=7)
    world.sim.fail_appends(ErrorCode.MESSAGE_TOO_LARGE, for_us=5_000_000, partition=0)
    world.puppet("p", on_start=[send(1, COMMIT)])
    world.until(6000)
    world.send(send(2, COMMIT))
    world.until(7000)
    told = [what for _, what in world.parrots[0].calls if "append" in what]
    assert told == ["append MESSAGE_TOO_LARGE", "append NONE"]
    with pytest.raises(ValueError, match="0 to 49; got 50"):
        world.sim.stall_appends(partition=50)


def test_stalled_replication_goes_on_in_order() -> None:
    """Neither committed nor failed until it is resumed."""
    world = Stage()
    world.sim.stall_appends(partition=0)
    world.puppet("p", on_start=[send(1, COMMIT), send(2, COMMIT, channel="y")])
    world.until(5000)
    assert len(world.parrots[0].calls) == 2
    world.sim.resume_appends()
    world.until(6000)
    assert world.parrots[0].calls[2:] == [(5000, "append NONE")] * 2


def test_moving_a_coordinator_unloads_and_loads() -> None:
    """The epoch rises; the old leader lets go before the new one reads the log."""
    world, events = recorded("leadership", brokers=BrokersSpec(count=2, load_us=400_000))
    del events[:]
    world.until(1000)
    world.sim.move_coordinator(2, partition=0)
    world.until(2000)
    old, new = world.parrots
    assert old.unloads == [(0, 1)]
    assert new.loads[-2:] == [(0, -1, 1), (0, 0, 1)]
    assert [(e.time_us, e.fields["event"], e.fields["broker"]) for e in events] == [
        (1_000_000, "elected", "b-2"),
        (1_000_000, "unloaded", "b-1"),
        (1_000_000, "loading", "b-2"),
        (1_400_000, "loaded", "b-2"),
    ]
    with pytest.raises(ValueError, match="a group or a partition"):
        world.sim.move_coordinator(2)
    world.sim.crash_broker(2)
    with pytest.raises(ValueError, match="broker 2 is down"):
        world.sim.move_coordinator(2, group="g")


def test_a_load_overtaken_by_another_move_is_not_finished() -> None:
    """Leadership moved on while the log was being read."""
    world = Stage(brokers=BrokersSpec(count=2, load_us=400_000))
    world.sim.move_coordinator(2, partition=0)
    world.until(100)
    world.sim.move_coordinator(1, partition=0)
    world.until(5000)
    assert world.parrots[1].loads[-1] == (0, -1, 1)
    assert world.parrots[0].loads[-2:] == [(0, -1, 2), (0, 0, 2)]


@pytest.mark.parametrize(("moves", "kept"), [(True, 0), (False, 3)])
def test_what_was_not_committed_is_lost_with_its_leader_only(moves: bool, kept: int) -> None:
    """Another broker never had it; the same broker, restarted, still has its own log."""
    world = Stage(brokers=BrokersSpec(count=2, replication_delay=Fixed(us=10**9)))
    log = world.sim.cluster.logs[0]
    log.append((Record(), Record(), Record()))
    if moves:
        world.sim.move_coordinator(2, partition=0)
        loads = world.parrots[1].loads
    else:
        world.sim.crash_broker(1)
        world.sim.start_broker(1)
        loads = world.parrots[-1].loads
    assert [entry for entry in loads if entry[0] == 0 and entry[2] == 1] == [(0, kept, 1)]
    assert (log.next_offset, log.high_watermark) == (kept, kept)


def test_an_append_under_way_is_forgotten_when_leadership_moves() -> None:
    """The old leader has answered its clients at unload; nobody hears of the append again."""
    world = committing(brokers=BrokersSpec(count=2, replication_delay=Fixed(us=500_000)))
    world.until(100)
    world.sim.move_coordinator(2, partition=0)
    world.until(2000)
    assert [what for _, what in world.parrots[0].calls] == ["OffsetCommitRequest"]


def test_a_crashed_broker_is_given_up_after_the_failover_time() -> None:
    """Its partitions go to the others; back again, it leads nothing."""
    world = Stage(brokers=BrokersSpec(count=3, failover_us=9_000_000))
    world.sim.crash_broker(1)
    assert world.sim.crash_broker(1) is None
    world.until(8999)
    assert 1 in world.sim.cluster.leaders
    world.until(9000)
    assert set(world.sim.cluster.leaders) == {2, 3}
    world.sim.start_broker(1)
    assert world.sim.start_broker(1) is None
    assert world.sim.statistics().brokers[1].partitions == ()
    assert world.parrots[-1].loads == []


def test_a_broker_back_in_time_leads_as_before() -> None:
    """It was not given up: it loads its partitions again, with new epochs."""
    world = Stage(brokers=BrokersSpec(count=2, failover_us=9_000_000))
    world.sim.crash_broker(1)
    world.until(2000)
    world.sim.start_broker(1)
    world.until(20_000)
    assert world.sim.cluster.leaders[:4] == [1, 2, 1, 2]
    assert {epoch for _, _, epoch in world.parrots[-1].loads} == {1}
    assert len(world.parrots[-1].loads) == 25


def test_a_controlled_shutdown_hands_over_first() -> None:
    """No partition is without a leader for a moment."""
    world, events = recorded("leadership", "process", brokers=BrokersSpec(count=2))
    del events[:]
    world.sim.stop_broker(1)
    assert world.sim.stop_broker(1) is None
    told = [e.fields["event"] for e in events]
    assert (told[0], told[-1]) == ("stopping", "exited")
    assert set(world.sim.cluster.leaders) == {2}
    assert world.sim.statistics().brokers[1].up is False
    alone = Stage()
    alone.sim.stop_broker(1)
    alone.sim.start_broker(1)
    assert len(alone.parrots[-1].loads) == 50


def test_a_coordinators_timers_fire_when_they_are_due() -> None:
    """One action for the next deadline; an earlier one takes its place, a dead one does nothing."""
    world = Stage()
    parrot = world.parrots[0]
    parrot.deadline_ms = 500
    world.puppet("p", on_start=[send(1)])  # any effect makes the broker look
    world.until(499)
    assert parrot.fired == []
    world.until(1000)
    assert parrot.fired == [500]
    parrot.deadline_ms = 2000
    world.send(send(2, COMMIT))
    world.until(1100)
    parrot.deadline_ms = 1500
    world.send(send(3, COMMIT))
    world.until(5000)
    assert parrot.fired == [500, 1500]
    parrot.deadline_ms = 6000
    world.send(send(4, COMMIT))
    world.until(5500)
    world.sim.crash_broker(1)
    world.until(9000)
    assert parrot.fired == [500, 1500]


def offset(partition: int, value: int, producer_id: int = -1) -> Record:
    """An offset record."""
    return Record(
        key=OffsetCommitKey(group="g", topic="t", partition=partition),
        value=OffsetCommitValue(offset=value, metadata="", commit_timestamp=0),
        producer_id=producer_id,
    )


def test_compaction_keeps_the_last_record_of_each_key() -> None:
    """Order stays; transactions stay whole; what is not committed yet stays."""
    log = PartitionLog()
    marker = Record(marker=TransactionMarker(producer_id=5, producer_epoch=0, committed=True))
    records = (
        offset(0, 1),
        offset(1, 1),
        offset(0, 2, producer_id=5),
        offset(0, 3),
        marker,
        offset(1, 2),
        offset(0, 4),
    )
    assert log.append(records) == 0
    log.commit_to(6)
    log.compact()
    assert log.records() == (records[2], records[3], records[4], records[5], records[6])
    assert log.truncate() == 1
    assert log.records() == (records[2], records[3], records[4], records[5])
    assert log.append((offset(0, 9),)) == 6


def test_a_long_log_stays_small() -> None:
    """A million commits of few keys do not fill the memory."""
    log = PartitionLog()
    for value in range(20_000):
        log.append((offset(value % 7, value),))
        log.commit_to(log.next_offset)
    assert len(log.entries) <= 1100
    assert log.next_offset == 20_000
    log.compact()
    assert [
        r.value.offset for r in log.records() if isinstance(r.value, OffsetCommitValue)
    ] == list(range(19_993, 20_000))


def test_topics_grow_and_are_told() -> None:
    """New partitions start empty at their birth; the trace hears of each change."""
    world, events = recorded(
        "topic", topics={"t": TopicSpec(partitions=1, rate_per_s=10), "u": TopicSpec()}
    )
    world.puppet("p")
    world.until(10_000)
    world.sim.add_partitions("t", 2)
    world.sim.create_topic("v", TopicSpec(partitions=4))
    env = world.puppets["p"][-1].env
    assert [env.log_end_offset("t", n, 12_500) for n in (0, 1, 2)] == [125, 25, 0]
    assert env.log_end_offset("x", 0, 12_500) == 0
    assert [(e.fields["topic"], e.fields["partitions"]) for e in events] == [
        ("t", 1),
        ("u", 1),
        ("t", 2),
        ("v", 4),
    ]
    with pytest.raises(ValueError, match="'t' has 2 partitions; 2 is not more"):
        world.sim.add_partitions("t", 2)
    with pytest.raises(ValueError, match="'t' exists"):
        world.sim.create_topic("t", TopicSpec())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: BrokersSpec(count=0), "at least one broker; got 0"),
        (lambda: BrokersSpec(load_us=-1), "must not be negative"),
        (lambda: TopicSpec(partitions=0), "at least one partition; got 0"),
        (lambda: TopicSpec(rate_per_s=-1), "rate must not be negative"),
        (
            lambda: Simulation(seed=1, brokers=BrokersSpec(config={"group.max.sise": 3})),
            "did you mean group.max.size",
        ),
    ],
)
def test_impossible_clusters_are_refused(make: Any, words: str) -> None:
    """When they are written down, with what was found."""
    with pytest.raises(ValueError, match=words):
        make()
