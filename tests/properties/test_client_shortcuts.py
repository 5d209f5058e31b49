"""The client's two shortcuts change nothing: heartbeat turns that are not taken, and the hot path."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    SyncGroupRequest,
)
from groupsim.testing.client import ClientBench, Happened
from groupsim_clients.heartbeat import HeartbeatThread
from groupsim_clients.process import ConsumerProcess
from groupsim_clients.timing import FOREVER

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("advance"), st.integers(1, 7_000)),
        st.tuples(
            st.just("answer"),
            st.sampled_from(
                [
                    ErrorCode.NONE,
                    ErrorCode.REBALANCE_IN_PROGRESS,
                    ErrorCode.ILLEGAL_GENERATION,
                    ErrorCode.NOT_COORDINATOR,
                    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                ]
            ),
        ),
        st.tuples(st.just("lose"), st.just(0)),
        st.tuples(st.just("join"), st.integers(2, 9)),
    ),
    min_size=3,
    max_size=25,
)
CONFIG = {
    "session.timeout.ms": 10_000,
    "max.poll.interval.ms": 12_000,
    "retry.backoff.ms": 300,
}


def play(
    steps: list[tuple[str, Any]], work: dict[str, Any], request_timeout_ms: int = 8_000
) -> list[Happened]:
    """What a client does in this story."""
    config = {**CONFIG, "request.timeout.ms": request_timeout_ms}
    bench = ClientBench(config, rates={"t": 1}, work={"on_error": "continue", **work})
    bench.auto[HeartbeatRequest] = None
    bench.stable()
    for what, value in steps:
        if what == "advance":
            bench.advance(value)
        elif what == "answer" and bench.opened(HeartbeatRequest):
            bench.answer(bench.take(HeartbeatRequest), HeartbeatResponse(error_code=value))
        elif what == "lose":
            bench.break_connection(0, "coordinator")
        elif what == "join":
            if bench.opened(JoinGroupRequest):
                bench.answer(bench.take(JoinGroupRequest), bench.joined(generation_id=value))
            elif bench.opened(SyncGroupRequest):
                bench.sync(("t", 0))
    return bench.log


@settings(max_examples=60, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(steps=STEPS, busy=st.booleans(), timeout_ms=st.sampled_from([2_000, 8_000]))
def test_turns_that_are_not_taken(
    steps: list[tuple[str, Any]], busy: bool, timeout_ms: int
) -> None:
    """1.4, CH-05: everything happens when it happens if every turn of the thread is taken."""
    work = {"processing_ms": 4_321} if busy else {}
    lazy = play(steps, work, timeout_ms)
    right = HeartbeatThread.next_turn_ms

    def every_turn(self: HeartbeatThread, *, polling: bool, fetching: bool) -> int:
        when = right(self, polling=polling, fetching=fetching)
        return when if when == FOREVER else min(when, self.turn_at_ms)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HeartbeatThread, "next_turn_ms", every_turn)
        never_steady(patch)  # the hot path takes no turns that are not needed
        assert play(steps, work, timeout_ms) == lazy


@settings(max_examples=60, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(steps=STEPS, busy=st.booleans(), timeout_ms=st.sampled_from([2_000, 8_000]))
def test_hot_path(steps: list[tuple[str, Any]], busy: bool, timeout_ms: int) -> None:
    """CH-02, CH-04, CH-10: steady heartbeats handled the long way give the same run."""
    work = {"processing_ms": 4_321} if busy else {}
    short = play(steps, work, timeout_ms)
    with pytest.MonkeyPatch.context() as patch:
        never_steady(patch)
        assert play(steps, work, timeout_ms) == short


def never_steady(patch: pytest.MonkeyPatch) -> None:
    """Have everything handled the long way."""
    right = ConsumerProcess._schedule

    def schedule(self: ConsumerProcess, due_ms: int, turn_ms: int) -> None:
        right(self, due_ms, turn_ms)
        self._slow_at_ms = -1

    patch.setattr(ConsumerProcess, "_schedule", schedule)


def test_polling_is_enough_however_short_the_poll_interval() -> None:
    """CH-05, CH-07: an idle application inside poll is never beyond its poll interval, also when that is
    shorter than the heartbeat interval.
    """
    bench = ClientBench({"max.poll.interval.ms": 1_000, "enable.auto.commit": False})
    bench.stable()
    bench.advance(30_000)
    assert bench.states()[-1] == "STABLE"
    assert len(bench.sent(HeartbeatRequest)) == 10
