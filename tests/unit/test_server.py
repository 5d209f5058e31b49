"""The in-process server: frames, connections of scripts, and the run around them."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest
import trio
from trio.testing import MockClock

from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    APIS,
    ApiKey,
    FindCoordinatorRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
    ListGroupsRequest,
    MetadataRequest,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from groupsim.runtime import (
    BrokersSpec,
    ConnectionLost,
    Environment,
    Fixed,
    FrameError,
    NetworkSpec,
    Simulation,
    TopicSpec,
    UnknownBrokerError,
    run,
)
from groupsim.runtime.frames import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from groupsim.trace.reader import TraceReader
from groupsim.trace.writer import TraceWriter
from tests.unit.fakes import HEARTBEAT, JOIN, LIST, Parrot, Stage

FETCH = OffsetFetchRequest(
    groups=(
        OffsetFetchRequestGroup(
            group_id="g", topics=(OffsetFetchRequestTopic(name="t", partition_indexes=(0, 1)),)
        ),
        OffsetFetchRequestGroup(group_id="h", topics=None),
    ),
    require_stable=True,
)


@pytest.mark.parametrize(
    "request_value",
    [
        HEARTBEAT,
        FETCH,
        LIST,
        MetadataRequest(topics=None),
        MetadataRequest(topics=()),
        JoinGroupRequest(
            group_id="g",
            session_timeout_ms=1,
            member_id="",
            group_instance_id="i",
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=b"\0\1"),),
        ),
    ],
)
def test_requests_survive_their_frames(request_value: Any) -> None:
    """Nested values, bytes, None and defaults come back as they were."""
    frame = encode_request(request_value, api_version=4, correlation_id=7, client_id="c")
    read = decode_request(frame)
    assert read.request == request_value
    assert (read.correlation_id, read.client_id) == (7, "c")


def test_responses_survive_their_frames() -> None:
    """Error codes are numbers on the way and error codes again at the end."""
    response = JoinGroupResponse(
        error_code=ErrorCode.MEMBER_ID_REQUIRED,
        member_id="m",
        members=(JoinGroupResponseMember(member_id="m", metadata=b"x"),),
    )
    frame = encode_response(9, response)
    assert msgpack.unpackb(frame)[1]["error_code"] == 79
    assert decode_response(frame, ApiKey.JOIN_GROUP) == (9, response)


HB = {"group_id": "g", "generation_id": 1, "member_id": "m"}


@pytest.mark.parametrize(
    ("value", "place", "words"),
    [
        (b"\xc1", "frame", "one msgpack value"),
        (b"", "frame", "one msgpack value"),
        (b"\x01\x02", "frame", "one msgpack value"),
        ({"a": 1}, "frame", "an array"),
        ([12, 4, 1, "c"], "frame", "an array"),
        ([99, 0, 1, "c", {}], "api_key", "12 Heartbeat"),
        ([True, 0, 1, "c", {}], "api_key", "12 Heartbeat"),
        (["12", 0, 1, "c", {}], "api_key", "12 Heartbeat"),
        ([12, 5, 1, "c", HB], "api_version", "0 to 4 for Heartbeat"),
        ([12, None, 1, "c", HB], "api_version", "0 to 4"),
        ([12, 4, -1, "c", HB], "correlation_id", "0 to 2147483647"),
        ([12, 4, 1, 5, HB], "client_id", "a string"),
        ([12, 4, 1, "c", []], "body", "a map of group_id"),
        ([12, 4, 1, "c", {"group_id": "g"}], "body.generation_id", "required"),
        ([12, 4, 1, "c", {**HB, "generation": 2}], "body.generation", "no such field"),
        ([12, 4, 1, "c", {**HB, "generation_id": "2"}], "body.generation_id", "an integer"),
        ([12, 4, 1, "c", {**HB, "generation_id": True}], "body.generation_id", "an integer"),
        ([12, 4, 1, "c", {**HB, "member_id": None}], "body.member_id", "a string"),
        ([3, 12, 1, "c", {"topics": "t"}], "body.topics", "an array"),
        ([3, 12, 1, "c", {"topics": ["t", 5]}], "body.topics[1]", "a string"),
    ],
)
def test_a_bad_frame_is_one_clear_error(value: Any, place: str, words: str) -> None:
    """The error names the place, what was found, and what is allowed."""
    frame = value if isinstance(value, bytes) else msgpack.packb(value)
    with pytest.raises(FrameError) as caught:
        decode_request(frame)
    assert caught.value.place == place
    assert words in str(caught.value)
    assert len(str(caught.value)) < 600


def test_a_frame_is_bytes() -> None:
    """Text is refused; so is a response that is none."""
    with pytest.raises(FrameError, match="allowed: bytes"):
        decode_request("text")  # type: ignore[arg-type]
    with pytest.raises(FrameError, match=r"body.error_code: found 9999"):
        decode_response(msgpack.packb([1, {"error_code": 9999}]), ApiKey.HEARTBEAT)
    with pytest.raises(FrameError, match="correlation_id"):
        decode_response(msgpack.packb(["x", {}]), ApiKey.HEARTBEAT)


def test_every_api_has_frames() -> None:
    """All request and response kinds can be read back (their types are all understood)."""
    for api in APIS.values():
        with pytest.raises(FrameError, match="body"):
            decode_request(msgpack.packb([int(api.key), api.max_version, 0, "", 0]))
        assert decode_response(encode_response(1, api.response()), api.key) == (1, api.response())


Script = Callable[[Environment], Awaitable[None]]


def play(*scripts: Script, until_ms: int = 60_000, world: Stage | None = None) -> Stage:
    """Run scripts against parrots, with 10 ms there and 30 ms back."""
    slow = NetworkSpec(to_broker=Fixed(us=10_000), to_client=Fixed(us=30_000))
    world = world or Stage(network=slow, brokers=BrokersSpec(count=2, failover_us=0))
    for number, script in enumerate(scripts):
        world.sim.add_script(script, name=f"s{number}")
    run(world.sim, until_ms * 1000)
    return world


def test_a_request_takes_its_time() -> None:
    """Connecting costs a round trip, each request another."""
    seen = []

    async def script(env: Environment) -> None:
        connection = await env.connect(2)
        seen.append(env.now_us)
        assert await connection.request(HEARTBEAT) == HeartbeatResponse()
        seen.append(env.now_us)
        await connection.aclose()
        with pytest.raises(ConnectionLost, match="closed by the client"):
            await connection.request(HEARTBEAT)

    world = play(script)
    assert seen == [40_000, 80_000]
    assert [parrot.calls for parrot in world.parrots] == [[], [(50, "HeartbeatRequest")]]


def test_requests_on_one_connection_wait_for_the_parked_one() -> None:
    """Two tasks share a connection; the second is served when the first has its answer."""
    seen = []

    async def script(env: Environment) -> None:
        connection = await env.connect(1)

        async def join() -> None:
            await connection.request(JOIN)
            seen.append(("join", env.now_us))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(join)
            await env.sleep(1)
            await connection.request(HEARTBEAT)
            seen.append(("heartbeat", env.now_us))

    async def releaser(env: Environment) -> None:
        connection = await env.connect(1)
        await env.sleep(5)
        await connection.request(LIST)

    play(script, releaser)
    assert seen == [("join", 5_080_000), ("heartbeat", 5_080_000)]


def test_a_cancelled_request_leaves_the_connection_usable() -> None:
    """Its late answer is thrown away, the next one is not mixed up with it."""
    seen = []

    async def script(env: Environment) -> None:
        connection = await env.connect(1)
        with trio.move_on_after(0.020):
            await connection.request(LIST)
        seen.append(env.now_us)
        seen.append(await connection.request(HEARTBEAT))

    play(script)
    assert seen == [60_000, HeartbeatResponse()]


def test_connection_lost_has_a_reason() -> None:
    """Refused, timed out, reset, and the broker's crash; all waiters learn of it, in order."""
    seen: list[Any] = []

    async def script(env: Environment) -> None:
        sim = env.simulation
        connection = await env.connect(1)
        async with trio.open_nursery() as nursery:

            async def wait(number: int) -> None:
                try:
                    await connection.request(JOIN)
                except ConnectionLost as lost:
                    seen.append((number, lost.reason, env.now_us))

            for number in range(3):
                nursery.start_soon(wait, number)
                await env.sleep(1)
            sim.crash_broker(1)
        for what in ("refused", "cut"):
            if what == "cut":
                sim.cut()
            with pytest.raises(ConnectionLost) as caught:
                await env.connect(1)
            seen.append((caught.value.reason, env.now_us))
        sim.heal()
        other = await env.connect()
        sim.drop_next(api=ApiKey.HEARTBEAT)
        with pytest.raises(ConnectionLost, match="reset by a fault"):
            await other.request(HEARTBEAT)
        with pytest.raises(UnknownBrokerError):
            await env.connect(7)

    play(script)
    assert seen == [
        (0, "b-1 crashed", 3_070_000),
        (1, "b-1 crashed", 3_070_000),
        (2, "b-1 crashed", 3_070_000),
        ("nobody listens", 3_110_000),
        ("no answer to the connection request", 13_110_000),
    ]


def test_frames_by_hand() -> None:
    """The raw channel carries bytes both ways; a bad frame is refused and nothing is sent."""
    seen = []

    async def script(env: Environment) -> None:
        async with await env.connect_frames(1) as channel:
            await channel.send(msgpack.packb([12, 4, 3, "me", HB]))
            seen.append(msgpack.unpackb(await channel.receive()))
            with pytest.raises(FrameError):
                await channel.send(b"nonsense")
            env.simulation.crash_broker(1)
            with pytest.raises(ConnectionLost, match="b-1 crashed"):
                await channel.receive()

    play(script)
    assert seen == [[3, {}]]


def test_an_abandoned_dial_leaves_nothing() -> None:
    """Cancelling ``connect`` closes what was being opened."""

    async def script(env: Environment) -> None:
        with trio.move_on_after(0.015):
            await env.connect(1)

    world = play(script)
    assert world.sim.statistics().brokers[1].connections == 0


def test_scripts_end_with_the_run_and_failures_come_out() -> None:
    """A script still running is cancelled; one that raises ends the run with its exception."""
    ended = []

    async def forever(env: Environment) -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.append(env.now_us)

    async def broken(env: Environment) -> None:
        await env.sleep(2)
        raise RuntimeError("broken script")

    play(forever, until_ms=5000)
    with pytest.raises(RuntimeError, match="broken script"):
        play(forever, broken)
    assert ended == [5_000_000, 2_000_000]


def test_scheduled_callables_may_set_trio_events() -> None:
    """What they wake runs at that instant, before the next action."""
    seen = []

    async def script(env: Environment) -> None:
        event = trio.Event()
        env.simulation.schedule(1_000_000, event.set)
        env.simulation.schedule(1_000_000, lambda: seen.append("next action"))
        await event.wait()
        seen.append(env.now_us)

    play(script)
    assert seen == [1_000_000, "next action"]


def test_run_can_go_on() -> None:
    """Inside one trio run a simulation may be run in stretches."""
    world = Stage()
    world.puppet("p", wakes=[1500])

    async def main() -> None:
        await world.sim.run(1_000_000)
        assert world.seen() == [(0, "start")]
        await world.sim.run(2_000_000)

    trio.run(main, clock=MockClock())
    assert world.seen() == [(0, "start"), (1500, "wake")]


def test_the_trace_is_closed_whatever_happens(tmp_path: Path) -> None:
    """Finished, failed: the file says so and can be read."""

    async def broken(env: Environment) -> None:
        await env.sleep(1)
        raise RuntimeError("no")

    for name, script in (("finished", None), ("failed", broken)):
        path = tmp_path / name
        trace = TraceWriter(path, seed=1)
        simulation = Simulation(seed=1, trace=trace, coordinator=lambda _broker: Parrot())
        if script is None:
            run(simulation, 1_000_000, finish=lambda: None)
        else:
            simulation.add_script(script)
            with pytest.raises(RuntimeError):
                run(simulation, 5_000_000)
        reader = TraceReader(path)
        assert len(list(reader)) == trace.events
        assert reader.finished == (name == "finished")


INTERRUPTED = """
import os, signal, sys
from pathlib import Path
from groupsim.runtime import Simulation, run
from groupsim.trace.writer import TraceWriter

trace = TraceWriter(Path(sys.argv[1]), seed=1)
simulation = Simulation(seed=1, trace=trace)

def again():
    simulation.world.event("script", who="x", sentence="y")
    if simulation.kernel.now_us == 20_000:
        os.kill(os.getpid(), signal.SIGINT)
    simulation.kernel.after(1, again)

again()
try:
    run(simulation, 10**15)
except KeyboardInterrupt:
    print("interrupted", trace.events)
"""


def test_ctrl_c_ends_a_run_with_a_readable_trace(tmp_path: Path) -> None:
    """A signal in the midst of a busy kernel: the run stops between actions, the trace is whole."""
    path = tmp_path / "t.trace"
    child = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=Path(__file__).parents[2],
        env={"PYTHONPATH": "clients:."},
    )
    assert child.returncode == 0, child.stderr
    word, events = child.stdout.split()
    assert word == "interrupted"
    reader = TraceReader(path)
    assert len(list(reader)) == int(events)
    assert 20_000 < int(events) < 200_000
    assert not reader.finished


def test_statistics_are_a_snapshot() -> None:
    """They say what there is, and do not change afterwards."""
    world = Stage(topics={"t": TopicSpec(partitions=3)}, brokers=BrokersSpec(count=2))
    world.puppet("p")
    before = world.sim.statistics()
    world.sim.crash("p")
    assert before.processes["p"].state == "running"
    assert before.processes["p"].owned == (("t", 0),)
    assert before.brokers[2].partitions == tuple(range(1, 50, 2))
    assert world.sim.statistics().processes["p"].owned == ()


def test_metadata_and_coordinators() -> None:
    """FindCoordinator names the leader of the group's partition; Metadata what there is (C-01)."""
    seen: list[Any] = []
    world = Stage(
        topics={"t": TopicSpec(partitions=2)}, brokers=BrokersSpec(count=2, racks=("x", "y"))
    )

    async def script(env: Environment) -> None:
        async with await env.connect() as connection:
            found = await connection.request(
                FindCoordinatorRequest(coordinator_keys=("g", "h", ""))
            )
            seen.append([c.node_id for c in found.coordinators])
            other = await connection.request(
                FindCoordinatorRequest(key_type=1, coordinator_keys=("tx",))
            )
            seen.append((other.coordinators[0].node_id, other.coordinators[0].error_code))
            for topics in (None, ("t", "u")):
                answer = await connection.request(MetadataRequest(topics=topics))
                seen.append([(t.name, t.error_code, len(t.partitions)) for t in answer.topics])
            seen.append([(b.node_id, b.host, b.rack) for b in answer.brokers])
            env.simulation.add_partitions("t", 5)
            answer = await connection.request(MetadataRequest(topics=("t",)))
            seen.append(len(answer.topics[0].partitions))

    play(script, world=world)
    hashes = {"g": 103, "h": 104, "": 0}
    assert seen == [
        [1 + value % 50 % 2 for value in hashes.values()],
        (-1, ErrorCode.INVALID_REQUEST),
        [("t", ErrorCode.NONE, 2)],
        [("t", ErrorCode.NONE, 2), ("u", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)],
        [(1, "b-1", "x"), (2, "b-2", "y")],
        5,
    ]


def test_no_threads_are_left() -> None:
    """A run needs one thread."""
    play()
    assert threading.active_count() == 1


def test_a_listing_goes_to_the_real_coordinator() -> None:
    """The default coordinator is GroupCoordinator."""
    seen = []

    async def script(env: Environment) -> None:
        async with await env.connect() as connection:
            seen.append((await connection.request(ListGroupsRequest())).groups)

    simulation = Simulation(seed=1)
    simulation.add_script(script)
    run(simulation, 1_000_000)
    assert seen == [()]
    assert simulation.group_state("g") is None
    assert simulation.leader_of("g") is None
