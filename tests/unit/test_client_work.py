"""The application as data: reading it, and what it then does."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
)
from groupsim.testing.client import ClientBench
from groupsim_clients.errors import ConfigError
from groupsim_clients.machine import AppRaised, CommitNote, PollNote
from groupsim_clients.work import Spread, Work

QUIET = {"enable.auto.commit": False}


@pytest.mark.parametrize(
    ("work", "name"),
    [
        ({"procesing_ms": 5}, "work.procesing_ms"),
        ({"processing_ms": -1}, "work.processing_ms"),
        ({"processing_ms": True}, "work.processing_ms"),
        ({"processing_ms": 1.5}, "work.processing_ms"),
        ({"processing_ms": {"uniform": [5, 4]}}, "work.processing_ms"),
        ({"processing_ms": {"uniform": [5, "x"]}}, "work.processing_ms.uniform"),
        ({"processing_ms": {"lognormal": {"median_ms": 5}}}, "work.processing_ms"),
        ({"processing_ms": {"lognormal": {"median_ms": 5, "p99_ms": 4}}}, "work.processing_ms"),
        ({"processing_ms": {"gamma": 1}}, "work.processing_ms"),
        ({"max_records": 0}, "work.max_records"),
        ({"poll_timeout_ms": "1s"}, "work.poll_timeout_ms"),
        ({"poison": 5}, "work.poison"),
        ({"poison": [{"topic": "t"}]}, "work.poison[0]"),
        (
            {"poison": [{"topic": 1, "partition": 0, "processing_ms": 1}]},
            "work.poison[0].topic",
        ),
        (
            {"poison": [{"topic": "t", "partition": -1, "processing_ms": 1}]},
            "work.poison[0].partition",
        ),
        ({"raises": "Oops"}, "work.raises"),
        ({"raises": {"on_monday": "Oops"}}, "work.raises.on_monday"),
        ({"raises": {"on_lost": {"nth": 1}}}, "work.raises.on_lost"),
        ({"raises": {"on_lost": {"exception": "E", "nth": -1}}}, "work.raises.on_lost.nth"),
        ({"commit": "sometimes"}, "work.commit"),
        ({"on_error": "panic"}, "work.on_error"),
    ],
)
def test_wrong_work_is_refused_by_name(work: dict[str, Any], name: str) -> None:
    """One typed error that names the place."""
    with pytest.raises(ConfigError) as caught:
        ClientBench(work=work)
    assert caught.value.name == name


def test_near_match() -> None:
    """A typing error is answered with what was probably meant."""
    with pytest.raises(ConfigError) as caught:
        Work.from_plain({"procesing_ms": 5})
    assert caught.value.near == ("processing_ms",)


def hashed_draws() -> Any:
    """Draws that look random and are the same everywhere."""
    count = 0

    def draw(stream: str, bound: int) -> int:
        nonlocal count
        count += 1
        digest = hashlib.blake2b(f"{stream}/{count}".encode(), digest_size=8).digest()
        return int.from_bytes(digest) % bound

    return draw


def test_uniform_reaches_both_ends() -> None:
    """Inclusive at both ends."""
    draw = hashed_draws()
    spread = Spread(kind="uniform", low_ms=3, high_ms=6)
    assert {spread.draw(draw, "x") for _ in range(200)} == {3, 4, 5, 6}


def test_lognormal_has_its_median_and_its_tail() -> None:
    """Half below the median, about one in a hundred above the 99th percentile; never negative."""
    draw = hashed_draws()
    spread = Spread(kind="lognormal", low_ms=100, high_ms=1_000)
    values = sorted(spread.draw(draw, "x") for _ in range(4_000))
    assert 90 <= values[2_000] <= 110
    above = sum(value > 1_000 for value in values) / len(values)
    assert 0.004 <= above <= 0.02
    assert values[0] > 0


def test_lognormal_without_spread_is_its_median() -> None:
    """Median = p99: always the same."""
    draw = hashed_draws()
    spread = Spread(kind="lognormal", low_ms=250, high_ms=250)
    assert {spread.draw(draw, "x") for _ in range(20)} == {250}


def test_idle_application_needs_no_events() -> None:
    """Always inside poll, polls of one second: only heartbeats wake it."""
    bench = ClientBench({**QUIET, "metadata.max.age.ms": 10_000_000})
    bench.stable()
    wakes = 0
    while (wake_ms := bench.machine.next_wake_ms()) is not None and wake_ms <= 600_000:
        bench.advance_to(wake_ms)
        wakes += 1
    assert len(bench.sent(HeartbeatRequest)) == 200
    assert wakes == 200


def test_processing_holds_the_next_poll_back() -> None:
    """Records arrive every 250 ms; one poll returns what is there, processing takes 1 s."""
    bench = ClientBench(QUIET, rates={"t": 4}, work={"processing_ms": 1_000})
    bench.stable()
    bench.advance(3_000)
    notes = bench.notes(PollNote)
    assert [note.event for note in notes[:4]] == ["processing_started", "processing_finished"] * 2
    (state,) = bench.consumer.subscriptions.assignment.values()
    assert state.position == 9  # 1 at 250 ms, 4 more at 1 250 ms, 4 more at 2 250 ms


def test_max_records_per_poll() -> None:
    """The rest waits for the next poll."""
    bench = ClientBench(QUIET, rates={"t": 100}, work={"processing_ms": 1_000, "max_records": 10})
    bench.stable()
    bench.advance(2_500)
    (state,) = bench.consumer.subscriptions.assignment.values()
    assert state.position == 21


def test_poison_partition_and_record() -> None:
    """Only batches with the partition, and the offset if one is given, cost the extra time."""
    poison = [{"topic": "t", "partition": 0, "offset": 5, "processing_ms": 60_000}]
    bench = ClientBench(QUIET, rates={"t": 1}, work={"poison": poison})
    bench.stable()
    bench.advance(5_900)
    assert bench.notes(PollNote) == []
    bench.advance(200)
    assert [(n.event, n.duration_ms) for n in bench.notes(PollNote)] == [
        ("processing_started", 60_000)
    ]


@pytest.mark.parametrize(("mode", "expected"), [("sync", "sync"), ("async", "async")])
def test_commit_after_each_batch(mode: str, expected: str) -> None:
    """Sync and async commits follow the processing; automatic ones are off then."""
    bench = ClientBench(rates={"t": 1}, work={"commit": mode, "processing_ms": 100})
    bench.stable()
    bench.advance(3_500)
    assert [note.mode for note in bench.notes(CommitNote)] == [expected] * 3
    assert not bench.consumer.config.enable_auto_commit


def test_no_commits() -> None:
    """None at all."""
    bench = ClientBench(work={"commit": "none"})
    bench.stable()
    bench.advance(60_000)
    bench.order("close")
    assert bench.sent(OffsetCommitRequest) == []


@pytest.mark.parametrize(
    ("on_error", "reason", "leaves"),
    [("close", "closed after Oops", 1), ("crash", "crashed: Oops", 0)],
)
def test_exceptions_end_the_application(on_error: str, reason: str, leaves: int) -> None:
    """Close does what a finally does; crash leaves nothing in order."""
    work = {"raises": {"processing": "Oops"}, "on_error": on_error}
    bench = ClientBench(QUIET, rates={"t": 1}, work=work)
    bench.stable()
    bench.advance(1_500)
    assert [(n.call, n.exception) for n in bench.notes(AppRaised)] == [("poll", "Oops")]
    assert bench.exited == reason
    assert len(bench.sent(LeaveGroupRequest)) == leaves
    assert bench.machine.next_wake_ms() is None


def test_exception_on_the_nth_time() -> None:
    """Only then; continuing polls again after the pause."""
    raises = {"processing": {"exception": "Oops", "nth": 2}}
    bench = ClientBench(QUIET, rates={"t": 1}, work={"raises": raises, "on_error": "continue"})
    bench.stable()
    bench.advance(10_000)
    assert len(bench.notes(AppRaised)) == 1
    assert bench.exited is None


def test_pause_and_resume() -> None:
    """Paused partitions return nothing; polling, and so the membership, goes on."""
    bench = ClientBench(
        {**QUIET, "max.poll.interval.ms": 5_000}, rates={"t": 1}, work={"processing_ms": 10}
    )
    bench.stable()
    bench.advance(2_500)
    bench.order("pause_work")
    bench.advance(60_000)
    (state,) = bench.consumer.subscriptions.assignment.values()
    assert state.position == 2
    assert bench.sent(LeaveGroupRequest) == []
    bench.order("resume_work")
    assert state.position == 62


def test_close_while_processing_waits_for_it() -> None:
    """A signal does not interrupt the application's own code."""
    bench = ClientBench(QUIET, rates={"t": 1}, work={"processing_ms": 5_000, "commit": "sync"})
    bench.stable()
    bench.advance(2_000)
    bench.order("close")
    bench.advance(3_999)
    assert bench.exited is None
    bench.advance(1)
    assert bench.exited == "closed"
    assert {note.outcome for note in bench.notes(CommitNote)} == {"ok"}


def test_order_during_a_poll_is_taken_up_at_once() -> None:
    """An idle poll ends early, as if its timeout had run out."""
    bench = ClientBench(QUIET)
    bench.stable()
    bench.advance(1_234)
    bench.order("enforce_rebalance")
    assert bench.sent(JoinGroupRequest)[-1][0] == 1_234


def test_order_during_processing_waits() -> None:
    """The application does one thing at a time."""
    bench = ClientBench(QUIET, rates={"t": 1}, work={"processing_ms": 5_000})
    bench.stable()
    bench.advance(2_000)
    bench.order("enforce_rebalance")
    bench.advance(3_000)
    assert len(bench.sent(JoinGroupRequest)) == 1
    bench.advance(1_000)
    assert bench.sent(JoinGroupRequest)[-1][0] == 6_000


def test_unsubscribed_application_rests_until_told() -> None:
    """Then it subscribes again."""
    bench = ClientBench(QUIET)
    bench.stable()
    bench.order("unsubscribe")
    bench.advance(60_000)
    assert len(bench.sent(JoinGroupRequest)) == 1
    bench.order("subscribe", topics=("t",))
    assert bench.sent(JoinGroupRequest)[-1][0] == 60_000


def test_subscribe_to_a_pattern_by_order() -> None:
    """Topics and patterns exclude each other: the application unsubscribes in between."""
    bench = ClientBench(QUIET, topics={"t": 1, "u": 1})
    bench.stable()
    bench.order("subscribe", pattern="u.*")
    bench.advance(1_000)
    assert bench.consumer.subscriptions.subscription == {"u"}
    assert len(bench.sent(LeaveGroupRequest)) == 1
    bench.order("subscribe", topics=["t"])
    assert bench.consumer.subscriptions.subscription == {"t"}


def test_set_work_keeps_what_it_does_not_name() -> None:
    """New keys are merged over the old ones; wrong ones are refused at once."""
    bench = ClientBench(QUIET, rates={"t": 1}, work={"commit": "sync"})
    bench.stable()
    bench.order("set_work", processing_ms=700)
    bench.advance(2_000)
    assert bench.notes(CommitNote)[0].mode == "sync"
    with pytest.raises(ConfigError):
        bench.order("set_work", processing_ms="long")


def test_unknown_order() -> None:
    """A ValueError that lists what is known."""
    bench = ClientBench()
    bench.start()
    with pytest.raises(ValueError, match="enforce_rebalance"):
        bench.order("dance")


def test_poll_interval_is_a_pause_between_empty_polls() -> None:
    """Heartbeats then leave on the thread's grid; a rebalance is noticed by the next poll."""
    bench = ClientBench(QUIET, work={"poll_timeout_ms": 100, "poll_interval_ms": 1_300})
    bench.auto[HeartbeatRequest] = lambda _r: HeartbeatResponse(
        error_code=ErrorCode.REBALANCE_IN_PROGRESS
    )
    bench.stable()
    bench.advance(3_950)
    assert [at for at, _ in bench.sent(HeartbeatRequest)] == [3_000]
    assert len(bench.sent(JoinGroupRequest)) == 1
    bench.advance(300)
    assert bench.sent(JoinGroupRequest)[-1][0] == 4_200


def test_world_without_next_record() -> None:
    """Then the logs are looked at every fetch.max.wait.ms."""
    bench = ClientBench({**QUIET, "fetch.max.wait.ms": 400}, work={"processing_ms": 1})

    class Plain:
        def draw(self, stream: str, bound: int) -> int:
            return bound // 2

        def log_end_offset(self, topic: str, partition: int, now_ms: int) -> int:
            return now_ms // 1_000

    bench.start()
    bench.consumer._ctx.env = Plain()
    bench.join(("t", 0))
    bench.advance(1_250)
    (state,) = bench.consumer.subscriptions.assignment.values()
    assert state.position == 1
