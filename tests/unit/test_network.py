"""Links, connections and their faults, with a puppet on one end and a parrot on the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import ApiKey
from groupsim.runtime import BrokersSpec, Fixed, NetworkSpec, Uniform
from groupsim.trace.events import Event
from groupsim.trace.writer import TraceWriter
from groupsim_clients.machine import ANY_NODE, Disconnect
from tests.unit.fakes import COMMIT, HEARTBEAT, JOIN, LIST, Stage, send

SLOW = NetworkSpec(to_broker=Fixed(us=10_000), to_client=Fixed(us=30_000))


def stage(network: NetworkSpec = SLOW, **arguments: Any) -> Stage:
    """A stage whose links take 10 ms there and 30 ms back."""
    return Stage(network=network, **arguments)


def recorded(*kinds: str, **arguments: Any) -> tuple[Stage, list[Event]]:
    """A stage whose trace events of some kinds are kept."""
    trace, events = TraceWriter(None), []
    for kind in kinds:
        trace.listen(kind, events.append)
    return stage(trace=trace, **arguments), events


def test_setting_up_takes_a_round_trip() -> None:
    """The first request leaves when the connection is open: two round trips to the answer."""
    world = stage()
    world.puppet("p", on_start=[send(1)])
    world.until(1000)
    assert world.parrots[0].calls == [(50, "ListGroupsRequest")]
    assert world.seen() == [(0, "start"), (80, "1 ListGroupsResponse")]


def test_an_open_connection_is_used_again() -> None:
    """Later requests need one round trip; another channel is another connection."""
    world = stage()
    world.puppet("p", on_start=[send(1)])
    world.until(1000)
    world.send(send(2))
    world.send(send(3, channel="y"))
    world.until(2000)
    assert world.seen()[-2:] == [(1040, "2 ListGroupsResponse"), (1080, "3 ListGroupsResponse")]
    assert world.sim.statistics().processes["p"].connections == 2


def test_one_connection_keeps_its_order() -> None:
    """Random latencies overtake each other on the wire, not on a connection."""
    world = stage(NetworkSpec(to_broker=Uniform(low_us=1000, high_us=90_000)))
    world.puppet("p", on_start=[send(n) for n in range(40)])
    world.until(10_000)
    assert [what for _, what in world.seen()[1:]] == [f"{n} ListGroupsResponse" for n in range(40)]


def test_a_parked_request_holds_back_what_follows_on_its_connection() -> None:
    """One request at a time is served on a connection; other connections go on (Kafka mutes)."""
    world = stage()
    world.puppet("p", on_start=[send(1, JOIN), send(2, HEARTBEAT), send(3, HEARTBEAT)])
    world.puppet("q", on_start=[send(1, HEARTBEAT)])
    world.until(1000)
    assert [what for _, what in world.parrots[0].calls] == ["JoinGroupRequest", "HeartbeatRequest"]
    world.send(send(2, LIST), name="q")  # releases the join
    world.until(2000)
    assert world.seen()[1:] == [
        (1040, "1 JoinGroupResponse"),
        (1040, "2 HeartbeatResponse"),
        (1040, "3 HeartbeatResponse"),
    ]


def test_a_client_that_closes_is_still_served_behind_the_parked_request() -> None:
    """A FIN stands behind what was sent before: Kafka reads it all, the answers go nowhere."""
    world, drops = recorded("drop")
    world.puppet("p", on_start=[send(1, JOIN), send(2, HEARTBEAT)])
    world.until(1000)
    world.send(Disconnect(node_id=1, channel="x"))
    world.until(1500)
    world.puppet("q", on_start=[send(1)])
    world.until(3000)
    assert [what for _, what in world.parrots[0].calls][-1] == "HeartbeatRequest"
    assert world.seen() == [(0, "start"), (1000, "order send")]
    assert world.sim.statistics().brokers[1].connections == 1
    assert drops == []


def test_an_answer_under_way_to_a_closed_connection_is_dropped() -> None:
    """It arrives, nobody takes it, and the trace says so."""
    world, drops = recorded("drop")
    world.puppet("p", on_start=[send(1)])
    world.until(60)
    world.send(Disconnect(node_id=1, channel="x"))
    world.until(1000)
    assert len(world.seen()) == 2
    assert [(e.time_us, e.fields["reason"]) for e in drops] == [
        (80_000, "connection closed by the client")
    ]


def test_a_broken_connection_is_told_to_the_client() -> None:
    """A reset loses what is in flight in both directions, and the queue at the broker."""
    world, drops = recorded("drop")
    world.puppet("p", on_start=[send(1, JOIN), send(2, HEARTBEAT)])
    world.until(1000)
    world.sim.disconnect("p")
    world.until(2000)
    assert world.seen()[1:] == [(1000, "lost 1 x")]
    assert [e.fields["reason"] for e in drops] == ["reset by a fault"]
    world.puppet("q", on_start=[send(1)])
    world.until(3000)
    assert "HeartbeatRequest" not in [what for _, what in world.parrots[0].calls]


def test_a_cut_holds_messages_back_and_healing_lets_them_through() -> None:
    """As with TCP nothing is lost by a partition that ends; order is kept."""
    world = stage()
    world.puppet("p", on_start=[send(1)])
    world.until(1000)
    world.sim.cut()
    world.send(send(2), send(3, HEARTBEAT))
    world.until(5000)
    assert len(world.parrots[0].calls) == 1
    world.sim.heal()
    world.until(6000)
    assert world.seen()[-2:] == [(5040, "2 ListGroupsResponse"), (5040, "3 HeartbeatResponse")]


def test_a_cut_can_be_one_way() -> None:
    """Requests get through, answers do not: the broker has done the work."""
    world = stage()
    world.puppet("p", on_start=[send(1)])
    world.until(1000)
    world.sim.cut(direction="to_client")
    world.send(send(2))
    world.until(5000)
    assert [at for at, _ in world.parrots[0].calls] == [50, 1010]
    assert world.seen()[-1] == (1000, "order send")
    world.sim.heal(direction="to_client")
    world.until(6000)
    assert world.seen()[-1] == (5030, "2 ListGroupsResponse")


def test_a_cut_hits_whom_it_names() -> None:
    """Patterns choose clients, ids choose brokers; links made later obey as well."""
    world = stage(brokers=BrokersSpec(count=2))
    world.sim.cut(clients=("a-*",), brokers=(2,))
    for name in ("a-1", "b-1"):
        world.puppet(name, on_start=[send(1), send(2, node_id=2)])
    world.until(1000)
    assert [what for _, what in world.seen("a-1")[1:]] == ["1 ListGroupsResponse"]
    assert [what for _, what in world.seen("b-1")[1:]] == [
        "1 ListGroupsResponse",
        "2 ListGroupsResponse",
    ]


def test_connecting_into_a_cut_times_out() -> None:
    """Nobody answers: the client learns of it when the connection timeout is over."""
    world, events = recorded("connection")
    world.sim.cut()
    world.puppet("p", on_start=[send(1)])
    world.until(20_000)
    assert world.seen()[1:] == [(10_000, "lost 1 x")]
    assert [e.fields["event"] for e in events] == ["opening", "timed_out"]
    world.sim.heal()
    world.until(30_000)
    assert world.sim.statistics().brokers[1].connections == 0


def test_connecting_to_a_dead_broker_is_refused() -> None:
    """Nobody listens: a round trip later the client knows."""
    world = stage()
    world.sim.crash_broker(1)
    world.puppet("p", on_start=[send(1)])
    world.until(1000)
    assert world.seen()[1:] == [(40, "lost 1 x")]


@pytest.mark.parametrize("alive", [1, 2, 3])
def test_a_bootstrap_connection_tries_the_next_broker(alive: int) -> None:
    """``ANY_NODE`` means one broker until it fails, then the next: three tries find any of three."""
    world = stage(brokers=BrokersSpec(count=3, failover_us=10**9))
    for number in {1, 2, 3} - {alive}:
        world.sim.crash_broker(number)
    world.puppet("p")
    for number in range(3):
        world.until((number + 1) * 1000)
        if not any("List" in what for _, what in world.seen()):
            world.send(send(1, node_id=ANY_NODE))
    world.until(9000)
    told = [what for _, what in world.seen() if "order" not in what]
    assert told[-1] == "1 ListGroupsResponse"
    assert told[1:-1] == ["lost -1 x"] * (len(told) - 2)


def test_a_changed_latency_holds_for_what_is_sent_from_then_on() -> None:
    """What is under way keeps its time, later messages of the connection never overtake it."""
    world = stage()
    world.puppet("p", on_start=[send(1)])
    world.until(1000)
    world.send(send(2))
    world.sim.set_link(to_broker=Fixed(us=0), to_client=Fixed(us=5000), clients=("p",))
    world.send(send(3, HEARTBEAT))
    world.until(2000)
    assert world.seen()[-2:] == [(1015, "2 ListGroupsResponse"), (1015, "3 HeartbeatResponse")]


@pytest.mark.parametrize(
    ("direction", "calls"),
    [("to_broker", ["HeartbeatRequest"]), ("to_client", ["HeartbeatRequest"] * 2)],
)
def test_dropping_one_message_by_reset(direction: str, calls: list[str]) -> None:
    """The message is lost and its connection breaks; the next one is not touched."""
    world, drops = recorded("drop")
    world.puppet("p", on_start=[send(1, HEARTBEAT)])
    world.until(1000)
    world.sim.drop_next(direction=direction, api=ApiKey.HEARTBEAT)
    world.send(send(2, HEARTBEAT))
    world.until(1500)
    assert [what for _, what in world.parrots[0].calls] == calls
    assert world.seen()[-1][1] == "lost 1 x"
    assert [e.fields["reason"] for e in drops] == ["reset"]
    world.send(send(3, HEARTBEAT))
    world.until(2000)
    assert world.seen()[-1][1] == "3 HeartbeatResponse"


def test_dropping_into_a_black_hole() -> None:
    """The message and all behind it vanish on this connection; nobody is told."""
    world, drops = recorded("drop")
    world.puppet("p", on_start=[send(1, HEARTBEAT)])
    world.until(1000)
    world.sim.drop_next(api=ApiKey.HEARTBEAT, direction="to_broker", how="black-hole")
    world.send(send(2, LIST), send(3, HEARTBEAT), send(4, LIST))
    world.until(60_000)
    assert [what for _, what in world.seen()[1:]] == [
        "1 HeartbeatResponse",
        "order send",
        "2 ListGroupsResponse",
    ]
    assert [e.fields["reason"] for e in drops] == ["black-hole"] * 2
    world.send(Disconnect(node_id=1, channel="x"), send(5))
    world.until(61_000)
    assert world.seen()[-1][1] == "5 ListGroupsResponse"


def test_drop_rules_count() -> None:
    """``count`` messages of that kind are lost, others pass meanwhile."""
    world, drops = recorded("drop")
    world.sim.drop_next(api=ApiKey.HEARTBEAT, direction="to_broker", count=2)
    world.puppet("p", on_start=[send(1, LIST)])
    for number in range(2, 6):
        world.until(number * 1000)
        world.send(send(number, HEARTBEAT))
    world.until(9000)
    assert len(drops) == 2
    assert [what for _, what in world.parrots[0].calls] == [
        "ListGroupsRequest",
        *["HeartbeatRequest"] * 2,
    ]


def test_a_crashed_broker_breaks_its_connections() -> None:
    """The client learns after the way back; parked requests are never answered."""
    world = stage()
    world.puppet("p", on_start=[send(1, JOIN)])
    world.until(1000)
    world.sim.crash_broker(1)
    world.until(2000)
    assert world.seen()[1:] == [(1030, "lost 1 x")]
    world.sim.start_broker(1)
    world.send(send(2))
    world.until(3000)
    assert world.seen()[-1] == (2080, "2 ListGroupsResponse")
    assert len(world.parrots) == 2


def test_every_fault_is_in_the_trace() -> None:
    """Nothing is injected that the trace does not show (design: faults are data)."""
    world, events = recorded("network", "fault")
    sim = world.sim
    sim.cut(("p",), (1,), "to_broker")
    sim.heal()
    sim.set_link(to_client=Fixed(us=7))
    sim.drop_next(api=ApiKey.JOIN_GROUP, count=3, how="black-hole")
    world.puppet("p")
    sim.disconnect("p")
    sim.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS, count=2, group="g")
    sim.stall_appends(partition=3)
    sim.resume_appends()
    sim.set_replication_delay(4000)
    shown = [
        (e.fields.get("event") or e.fields["fault"], e.fields.get("selector") or e.fields["target"])
        for e in events
    ]
    assert shown == [
        ("cut", "p -> b-1"),
        ("healed", "* <-> *"),
        ("link", "* <- *"),
        ("drop", "* <-> *"),
        ("disconnect", "p <-> *"),
        ("fail-appends", "g"),
        ("stall-appends", "3"),
        ("resume-appends", "*"),
        ("replication-delay", "*"),
    ]


def test_causes_follow_the_messages(tmp_path: Path) -> None:
    """A delivery is caused by its sending, an answer by the delivery of its request."""
    world, events = recorded("send", "deliver", "process")
    world.puppet("p", on_start=[send(1, COMMIT)])
    world.until(1000)
    by_id = {event.id: event for event in events}
    answer = next(e for e in events if e.kind == "send" and e.fields["direction"] == "response")
    last = events[-1]
    assert (last.kind, last.cause) == ("deliver", answer.id)
    request = next(e for e in events if e.kind == "send" and e.fields["direction"] == "request")
    assert by_id[request.cause].fields["event"] == "started"
    assert request.fields["api"] == "OffsetCommit"
