"""Client processes: their life, their pauses, and their clocks."""

from __future__ import annotations

import pytest

from groupsim.runtime import (
    BrokersSpec,
    Fixed,
    NetworkSpec,
    ProcessClock,
    TopicSpec,
    UnknownMemberError,
)
from groupsim.trace.writer import TraceWriter
from groupsim_clients.machine import Exited
from tests.unit.fakes import HEARTBEAT, JOIN, Stage, send

QUICK = NetworkSpec(to_broker=Fixed(us=1000), to_client=Fixed(us=1000))


def test_wakes_come_when_they_were_asked_for() -> None:
    """The machine is woken at its times, and not in between."""
    world = Stage()
    world.puppet("p", wakes=[5, 7, 7, 5000])
    world.until(10_000)
    assert world.seen() == [(0, "start"), (5, "wake"), (7, "wake"), (5000, "wake")]


def test_a_wake_can_be_called_off_and_brought_forward() -> None:
    """Only the machine's last word counts."""
    world = Stage()
    world.puppet("p", wakes=[100])
    world.until(10)
    world.puppets["p"][-1].wakes = [50, 200]
    world.send()
    world.until(60)
    world.puppets["p"][-1].wakes = []
    world.send()
    world.until(1000)
    assert world.seen() == [(0, "start"), (10, "order send"), (50, "wake"), (60, "order send")]


def test_a_graceful_stop_waits_for_the_client() -> None:
    """Asked to close, the machine takes its time, exits, and its connections are closed."""
    world = Stage()
    world.puppet("p", closes_after_ms=400, on_start=[send(1)])
    world.until(1000)
    world.sim.stop("p")
    world.until(1200)
    assert world.sim.statistics().processes["p"].state == "stopping"
    world.until(3000)
    process = world.sim.statistics().processes["p"]
    assert (process.state, process.ended, process.connections) == ("down", "exited", 0)
    assert world.sim.statistics().brokers[1].connections == 0


@pytest.mark.parametrize(
    ("arguments", "killed_ms"),
    [({}, 31_000), ({"timeout_ms": 500}, 1500), ({"kill_after_ms": 300}, 300)],
)
def test_a_stop_that_takes_too_long_is_a_kill(arguments: dict[str, int], killed_ms: int) -> None:
    """A second after the time that it was given, or when the caller says."""
    world = Stage()
    world.puppet("p", closes_after_ms=None)
    world.sim.stop("p", **arguments)
    world.until(killed_ms - 1)
    assert world.sim.statistics().processes["p"].state == "stopping"
    world.until(killed_ms)
    assert world.sim.statistics().processes["p"].ended == "killed"


def test_a_crash_closes_connections_and_forgets_the_machine() -> None:
    """The broker learns of it by the connection; a new incarnation starts from nothing."""
    world = Stage()
    world.puppet("p", on_start=[send(1, JOIN)])
    world.until(1000)
    assert world.sim.statistics().brokers[1].connections == 1
    world.sim.crash("p")
    world.until(1100)
    assert world.sim.statistics().brokers[1].parked == 1  # nobody tells the coordinator
    world.sim.start("p")
    world.until(2000)
    assert [len(world.puppets["p"]), world.sim.process("p").incarnation] == [2, 2]
    assert world.seen() == [(1100, "start")]


def test_a_machine_that_is_gone_tells_nobody() -> None:
    """The broker keeps the connection; its answers are dropped."""
    world = Stage()
    world.puppet("p", on_start=[send(1, JOIN)])
    world.until(1000)
    world.sim.crash("p", how="machine")
    world.until(2000)
    assert world.sim.statistics().brokers[1].connections == 1
    world.puppet("q", on_start=[send(1)])  # releases the join
    world.until(3000)
    assert world.sim.statistics().brokers[1].parked == 0


@pytest.mark.parametrize("how", ["graceful", "crash"])
def test_restart_comes_back_after_its_down_time(how: str) -> None:
    """The down time counts from the end of the old incarnation."""
    world = Stage()
    world.puppet("p", closes_after_ms=100)
    world.until(1000)
    world.sim.restart("p", down_us=5_000_000, how=how)
    world.until(20_000)
    assert world.seen() == [(6100 if how == "graceful" else 6000, "start")]
    with pytest.raises(ValueError, match="graceful or crash; got 'kind'"):
        world.sim.restart("p", how="kind")


def test_a_pause_freezes_timers_and_messages() -> None:
    """Nothing is handled meanwhile; at the end everything due is, in order, at once."""
    world = Stage(network=QUICK)
    world.puppet("p", on_start=[send(1, HEARTBEAT)], wakes=[3000])
    world.until(1000)
    world.send(send(2, JOIN))
    world.until(1500)
    world.sim.pause("p", for_us=5_000_000)
    world.until(2000)
    world.puppet("q", on_start=[send(1)])  # the join's answer arrives at 2005
    world.until(4000)
    world.sim.disconnect("p")
    world.until(6499)
    assert world.seen()[-1] == (1000, "order send")
    world.until(8000)
    assert world.seen()[3:] == [(6500, "wake"), (6500, "lost 1 x")]


def test_what_arrived_is_handled_before_a_timer_that_was_due_later() -> None:
    """The answer came at 2005 ms, the wake was due at 3000: so they are handled at 6500."""
    world = Stage(network=QUICK)
    world.puppet("p", on_start=[send(1, JOIN)], wakes=[3000])
    world.until(1500)
    world.sim.pause("p", for_us=5_000_000)
    world.until(2000)
    world.puppet("q", on_start=[send(1)])
    world.until(8000)
    assert world.seen()[1:] == [(6500, "1 JoinGroupResponse"), (6500, "wake")]


def test_a_paused_process_may_write_to_a_connection_that_is_gone() -> None:
    """Its timer was due before the connection broke: it sends into the void, then hears of it."""
    world = Stage(network=QUICK)
    world.puppet("p", on_start=[send(1)], wakes=[1000], on_wake=[send(2)])
    world.until(900)
    world.sim.pause("p", for_us=1_000_000)
    world.until(1500)
    world.sim.disconnect("p")
    world.until(5000)
    assert world.seen()[2:] == [(1900, "wake"), (1900, "lost 1 x")]
    assert len(world.parrots[0].calls) == 1


def test_resume_ends_a_pause_early() -> None:
    """The planned end of the pause then does nothing, also not to a later pause."""
    world = Stage()
    world.puppet("p", wakes=[100, 900])
    world.sim.pause("p", for_us=500_000)
    world.until(200)
    world.sim.resume("p")
    world.until(300)
    world.sim.pause("p")
    world.until(2000)
    assert world.seen() == [(0, "start"), (200, "wake")]
    world.sim.resume("p")
    assert world.seen()[-1] == (2000, "wake")


def test_a_paused_process_hears_of_its_stop_when_it_resumes() -> None:
    """A signal waits, too; the kill does not."""
    world = Stage()
    world.puppet("p", closes_after_ms=0)
    world.sim.pause("p", for_us=2_000_000)
    world.sim.stop("p")
    world.until(5000)
    assert world.seen()[1:] == [(2000, "order close"), (2000, "wake")]
    assert world.sim.statistics().processes["p"].ended == "exited"
    other = Stage()
    other.puppet("p")
    other.sim.pause("p")
    other.sim.stop("p", timeout_ms=100)
    other.until(5000)
    assert other.sim.statistics().processes["p"].ended == "killed"


def test_a_paused_process_can_crash() -> None:
    """What had arrived is gone with it, and the end of the pause finds nothing."""
    world = Stage(network=QUICK)
    world.puppet("p", on_start=[send(1)], wakes=[3000])
    world.sim.pause("p", for_us=100_000)
    world.until(50)
    world.sim.crash("p")
    world.until(5000)
    assert world.seen() == [(0, "start")]
    assert world.sim.statistics().processes["p"].state == "down"


def test_verbs_that_mean_nothing_do_nothing() -> None:
    """Stopping what is down, starting what runs: None, and no event."""
    trace, events = TraceWriter(None), []
    trace.listen("process", events.append)
    world = Stage(trace=trace)
    world.puppet("p", start=False)
    del events[:]
    sim = world.sim
    assert [sim.stop("p"), sim.crash("p"), sim.pause("p"), sim.resume("p")] == [None] * 4
    assert events == []
    assert sim.start("p") == trace.events
    assert sim.start("p") is None
    assert sim.resume("p") is None
    assert sim.pause("p") is not None
    assert sim.pause("p") is None
    assert sim.stop("p") is not None
    assert sim.stop("p") is None


def test_unknown_names_are_errors() -> None:
    """They say what there is."""
    world = Stage(brokers=BrokersSpec(count=2))
    world.puppet("p")
    with pytest.raises(UnknownMemberError, match="no member 'x'; there are: p"):
        world.sim.start("x")
    with pytest.raises(LookupError, match="no broker 3; node ids are: 1, 2"):
        world.sim.crash_broker(3)
    with pytest.raises(LookupError, match="no broker 9"):
        world.sim.cut(brokers=(9,))
    with pytest.raises(LookupError, match="no topic 'x'; there are: none"):
        world.sim.add_partitions("x", 3)
    with pytest.raises(ValueError, match="member 'p' exists"):
        world.puppet("p")


def test_an_exit_of_its_own_ends_a_process() -> None:
    """What the machine asked for before its exit is still done."""
    world = Stage(network=QUICK)
    world.puppet("p", wakes=[10], on_wake=[send(1), Exited(reason="gave up")], on_start=[send(0)])
    world.until(1000)
    assert world.sim.statistics().processes["p"].ended == "exited"
    assert len(world.parrots[0].calls) == 2
    assert world.seen()[-1] == (10, "wake")


@pytest.mark.parametrize("ppm", [0, 300, -300, 999_999, -500_000])
@pytest.mark.parametrize("offset_ms", [0, 86_400_000])
def test_a_clock_of_ones_own(ppm: int, offset_ms: int) -> None:
    """The machine is woken at the first moment at which its own clock reads the time."""
    clock = ProcessClock(offset_ms=offset_ms, rate_ppm=ppm)
    for local_ms in (offset_ms, offset_ms + 1, offset_ms + 12_345, offset_ms + 10**7 + 1):
        time_us = clock.reaches_us(local_ms)
        assert clock.read_ms(time_us) >= local_ms
        assert time_us == 0 or clock.read_ms(time_us - 1) < local_ms
    world = Stage()
    world.puppet("p", clock=clock, wakes=[offset_ms + 1000, offset_ms + 2000])
    world.until(5000)
    assert world.seen() == [
        (offset_ms + n, what) for n, what in ((0, "start"), (1000, "wake"), (2000, "wake"))
    ]
    assert world.sim.now_us == 5_000_000


@pytest.mark.parametrize(("offset_ms", "ppm"), [(-1, 0), (0, -1_000_000)])
def test_impossible_clocks_are_refused(offset_ms: int, ppm: int) -> None:
    """A clock starts at or after zero and runs forwards."""
    with pytest.raises(ValueError, match=r"must (run forwards|not be negative)"):
        ProcessClock(offset_ms=offset_ms, rate_ppm=ppm)


def test_draws_of_one_process_do_not_move_with_others() -> None:
    """Each incarnation has streams of its own; another member changes none of them."""

    def draws(*names: str) -> list[int]:
        world = Stage()
        for name in names:
            world.puppet(name)
            world.puppets[name][-1].env.draw("jitter", 1000)
        return [world.puppets["p"][-1].env.draw("jitter", 1000) for _ in range(5)]

    assert draws("p") == draws("a", "p", "z")
    world = Stage()
    world.puppet("p")
    first = [world.puppets["p"][-1].env.draw("jitter", 10**9) for _ in range(5)]
    world.sim.crash("p")
    world.sim.start("p")
    assert [world.puppets["p"][-1].env.draw("jitter", 10**9) for _ in range(5)] != first


@pytest.mark.parametrize("rate", [1, 3, 7, 1000, 64_000])
@pytest.mark.parametrize("clock", [ProcessClock(), ProcessClock(offset_ms=77, rate_ppm=400)])
def test_next_record_is_the_first_moment_at_which_it_is_there(
    rate: int, clock: ProcessClock
) -> None:
    """One millisecond earlier the log does not hold it; a log that stands still never will."""
    topics = {"t": TopicSpec(partitions=1, rate_per_s=rate), "still": TopicSpec()}
    world = Stage(topics=topics)
    world.puppet("p", clock=clock)
    env = world.puppets["p"][-1].env
    for offset in (0, 1, 2, 999, 12_345):
        found = env.next_record_ms("t", 0, offset, 0)
        assert env.log_end_offset("t", 0, found) > offset
        assert env.log_end_offset("t", 0, found - 1) <= offset
    assert env.next_record_ms("t", 0, 0, 10**9) == 10**9
    assert env.next_record_ms("still", 0, 0, 5) is None
    assert env.next_record_ms("t", 1, 0, 5) is None
