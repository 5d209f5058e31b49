"""The async consumer in a simulation: a script's consumer beside a built-in one."""

from __future__ import annotations

import pytest
import trio

from groupsim.protocol.consumer_protocol import TopicPartition
from groupsim.protocol.effects import Note
from groupsim.runtime.scripts import Environment
from groupsim.runtime.simulation import Simulation, run
from groupsim.runtime.specs import TopicSpec
from groupsim_clients.aio import Consumer, ProcessEnded, RebalanceListener
from groupsim_clients.errors import JavaError, WakeupError
from groupsim_clients.machine import ClientSpec
from groupsim_clients.profiles import java

CONFIG = {"partition.assignment.strategy": "range", "enable.auto.commit": False}


def simulation(*, others: int = 0) -> Simulation:
    """A topic of four partitions with 10 records a second each, and built-in members of "g"."""
    made = Simulation(seed=5, topics={"t": TopicSpec(partitions=4, rate_per_s=10)})
    for n in range(others):
        spec = ClientSpec(
            name=f"j-{n}", group_id="g", subscribe=("t",), config=CONFIG, work={}, options={}
        )
        made.add_member(f"j-{n}", spec, java)
        made.start(f"j-{n}")
    return made


class Recorder(RebalanceListener):
    """Writes down what it is told."""

    def __init__(self, env: Environment) -> None:
        self.env = env
        self.told: list[tuple[str, int, tuple[tuple[str, int], ...]]] = []

    async def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Note it."""
        self.told.append(("assigned", self.env.now_us // 1_000_000, partitions))

    async def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Take a second."""
        await self.env.sleep(1)
        self.told.append(("revoked", self.env.now_us // 1_000_000, partitions))


def all_of(*numbers: int) -> tuple[TopicPartition, ...]:
    """Partitions of t."""
    return tuple(TopicPartition("t", n) for n in numbers)


def test_reads_commits_and_leaves() -> None:
    """Poll, commit, close; a second consumer goes on where the first has stopped."""
    positions: list[int | None] = []

    async def script(env: Environment) -> None:
        listener = Recorder(env)
        async with Consumer(env, group_id="g", config=CONFIG) as consumer:
            await consumer.subscribe(["t"], listener)
            read = 0
            while read < 100:
                for batch in await consumer.poll():
                    read += batch.count
            await consumer.commit()
            positions.append(consumer.position(TopicPartition("t", 0)))
            assert consumer.assignment() == all_of(0, 1, 2, 3)
        assert [name for name, _, _ in listener.told] == ["assigned", "revoked"]
        await env.sleep(60)
        async with Consumer(env, group_id="g", config=CONFIG, name="second") as consumer:
            await consumer.subscribe(["t"])
            while not consumer.assignment():
                await consumer.poll(0.1)
            while consumer.position(TopicPartition("t", 0)) is None:
                await consumer.poll(0.01)
            batch = (await consumer.poll(1.0))[0]
            positions.append(batch.first_offset)

    made = simulation()
    made.add_script(script, name="script")
    run(made, until_us=120_000_000)
    assert len(positions) == 2
    assert positions[0] is not None
    assert positions[1] is not None
    assert positions[1] >= positions[0]
    assert made.group_state("g") == "Empty"


def test_shares_with_a_built_in_member() -> None:
    """CC-24: the listener's methods are awaited; revoked takes its time before the JoinGroup."""
    told: list[tuple[str, int, tuple[tuple[str, int], ...]]] = []

    async def script(env: Environment) -> None:
        listener = Recorder(env)
        listener.told = told
        async with Consumer(env, group_id="g", config=CONFIG) as consumer:
            await consumer.subscribe(["t"], listener)
            while env.now_us < 40_000_000:
                await consumer.poll(0.5)

    made = simulation()
    spec = ClientSpec(name="j", group_id="g", subscribe=("t",), config=CONFIG, work={}, options={})
    made.add_member("j", spec, java)
    made.schedule(20_000_000, lambda: made.start("j"))
    made.add_script(script, name="script")
    run(made, until_us=60_000_000)
    assert [name for name, _, _ in told] == ["assigned", "revoked", "assigned", "revoked"]
    assert told[0][2] == all_of(0, 1, 2, 3)
    assert len(told[2][2]) == 2
    assert made.process("j").owned() == all_of(0, 1, 2, 3)


def test_commit_inside_a_callback() -> None:
    """As in Java, the consumer may be used in its own callbacks."""
    notes: list[Note] = []

    async def script(env: Environment) -> None:
        class Committing(RebalanceListener):
            async def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
                """Commit what has been read."""
                await consumer.commit(dict.fromkeys(partitions, 3))

        async with Consumer(env, group_id="g", config=CONFIG) as consumer:
            await consumer.subscribe(["t"], Committing())
            while not consumer.assignment():
                await consumer.poll()
        async with Consumer(env, group_id="g", config=CONFIG) as again:
            await again.subscribe(["t"])
            while not again.assignment() or again.position(TopicPartition("t", 1)) is None:
                await again.poll(0.01)
            assert again.position(TopicPartition("t", 1)) >= 3  # type: ignore[operator]
            notes.append(Note())

    made = simulation()
    made.add_script(script, name="script")
    run(made, until_us=60_000_000)
    assert notes


def test_exceptions_of_java_are_raised() -> None:
    """CC-11, CP-04: an exception of a callback comes out of poll, wrapped; and so do the client's own."""
    seen: list[str] = []

    async def script(env: Environment) -> None:
        class Broken(RebalanceListener):
            async def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
                """Fail."""
                raise RuntimeError("disk full")

        async with Consumer(env, group_id="g", config=CONFIG) as consumer:
            with pytest.raises(JavaError, match="not subscribed"):
                await consumer.poll()
            await consumer.subscribe(["t"], Broken())
            try:
                while True:
                    await consumer.poll()
            except JavaError as error:
                seen.append(str(error))

    made = simulation()
    made.add_script(script, name="script")
    run(made, until_us=30_000_000)
    assert len(seen) == 1
    assert "RuntimeError: disk full" in seen[0]


def test_wakeup_and_cancellation() -> None:
    """Wakeup ends the poll that waits; cancelling it leaves the consumer usable."""
    seen: list[str] = []

    async def script(env: Environment) -> None:
        async with Consumer(env, group_id="g", config=CONFIG) as consumer:
            await consumer.subscribe(["t"])
            async with trio.open_nursery() as nursery:

                async def interrupt() -> None:
                    await env.sleep(0.001)
                    consumer.wakeup()

                nursery.start_soon(interrupt)
                try:
                    await consumer.poll(60)
                except WakeupError:
                    seen.append("woken")
            with trio.move_on_after(0.001) as scope:
                await consumer.poll(60)
            seen.append(f"cancelled {scope.cancelled_caught}")
            while not consumer.assignment():
                await consumer.poll()
            seen.append("joined")

    made = simulation()
    made.add_script(script, name="script")
    run(made, until_us=60_000_000)
    assert seen == ["woken", "cancelled True", "joined"]


def test_crash_is_seen_by_the_script() -> None:
    """The verbs work on it: a crash raises ProcessEnded out of the call that waits."""
    seen: list[str] = []

    async def script(env: Environment) -> None:
        consumer = Consumer(env, group_id="g", config=CONFIG)
        async with consumer:
            await consumer.subscribe(["t"])
            try:
                while True:
                    await consumer.poll()
            except ProcessEnded:
                seen.append(f"{env.now_us // 1_000_000}")
            assert consumer.assignment() == ()

    made = simulation(others=1)
    made.add_script(script, name="script")
    made.schedule(20_000_000, lambda: made.crash("script"))
    run(made, until_us=120_000_000)
    assert seen == ["20"]
    assert made.process("j-0").owned() == all_of(0, 1, 2, 3)


def test_cancelled_consumer_is_killed() -> None:
    """Cancelled inside the ``async with``: no LeaveGroup; the group finds out by the session timeout."""

    async def script(env: Environment) -> None:
        with trio.move_on_after(10):
            async with Consumer(env, group_id="g", config=CONFIG) as consumer:
                await consumer.subscribe(["t"])
                while True:
                    await consumer.poll()

    made = simulation(others=1)
    made.add_script(script, name="script")
    states: list[int] = []
    made.schedule(40_000_000, lambda: states.append(len(made.members_of("g"))))
    made.schedule(100_000_000, lambda: states.append(len(made.process("j-0").owned())))
    run(made, until_us=110_000_000)
    assert made.process("script").ended == "crashed"
    assert states[1] == 4
