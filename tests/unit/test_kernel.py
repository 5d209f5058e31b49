"""The kernel alone: order, cancelling, limits."""

from __future__ import annotations

import random

import pytest

from groupsim.runtime.kernel import Handle, Kernel


def test_order_is_time_then_sequence() -> None:
    """Actions run by time; those of one time in the order in which they were asked for."""
    kernel, ran = Kernel(), []
    for name, time_us in (("c", 20), ("a", 10), ("d", 20), ("b", 10)):
        kernel.at(time_us, lambda name=name: ran.append((kernel.now_us, name)))
    kernel.run_until(30)
    assert ran == [(10, "a"), (10, "b"), (20, "c"), (20, "d")]
    assert kernel.now_us == 30


def test_push_and_at_share_one_order() -> None:
    """The fast way and the cancellable way are one sequence."""
    kernel, ran = Kernel(), []
    kernel.push(5, ran.append, "first")
    kernel.at(5, lambda: ran.append("second"))
    kernel.push(5, ran.append, "third")
    kernel.run_until(5)
    assert ran == ["first", "second", "third"]


def test_now_means_after_what_is_already_due() -> None:
    """An action asked for at the current time runs behind those already waiting for it."""
    kernel, ran = Kernel(), []

    def first() -> None:
        ran.append("first")
        kernel.after(0, lambda: ran.append("asked for by first"))

    kernel.at(1, first)
    kernel.at(1, lambda: ran.append("second"))
    kernel.run_until(1)
    assert ran == ["first", "second", "asked for by first"]


def test_cancelled_action_does_not_run() -> None:
    """Cancelling is final, idempotent, and does not disturb the rest."""
    kernel, ran = Kernel(), []
    gone = kernel.at(1, lambda: ran.append("gone"))
    kernel.at(1, lambda: ran.append("kept"))
    gone.cancel()
    gone.cancel()
    assert kernel.pending() == 1
    assert not gone.pending
    kernel.run_until(1)
    assert ran == ["kept"]
    assert kernel.pending() == 0


def test_cancelling_after_the_fact_changes_nothing() -> None:
    """A handle whose action ran is spent: the count of pending actions stays right."""
    kernel = Kernel()
    handle = kernel.at(1, lambda: None)
    kernel.at(2, lambda: None)
    kernel.run_until(1)
    handle.cancel()
    assert kernel.pending() == 1


def test_an_action_may_cancel_one_of_the_same_instant() -> None:
    """What is cancelled at its very time, before its turn, does not run."""
    kernel, ran = Kernel(), []
    handles: list[Handle] = []

    def cancel() -> None:
        handles[0].cancel()

    kernel.at(1, cancel)
    handles.append(kernel.at(1, lambda: ran.append("late")))
    kernel.run_until(1)
    assert ran == []


def test_cancelled_actions_do_not_pile_up() -> None:
    """The heap stays as large as what is pending, however often timers are set anew."""
    kernel = Kernel()
    kernel.at(10_000_000, lambda: None)
    for _ in range(10_000):
        kernel.at(5_000_000, lambda: None).cancel()
    assert kernel.pending() == 1
    assert len(kernel.heap) < 200


def test_sweeping_inside_the_pump_keeps_order() -> None:
    """A sweep of dead entries during an action loses no action and changes no order."""
    kernel, ran = Kernel(), []

    def churn() -> None:
        for handle in [kernel.at(50, lambda: ran.append("dead")) for _ in range(500)]:
            handle.cancel()

    kernel.at(1, churn)
    for time_us in range(2, 40):
        kernel.push(time_us, ran.append, time_us)
    kernel.run_until(60)
    assert ran == list(range(2, 40))


def test_limit_is_inclusive_and_time_stays_at_the_last_action() -> None:
    """``pump`` runs what is due at the limit, and leaves the rest."""
    kernel, ran = Kernel(), []
    for time_us in (1, 2, 3):
        kernel.push(time_us, ran.append, time_us)
    assert kernel.pump(2) == 2
    assert (ran, kernel.now_us, kernel.next_us()) == ([1, 2], 2, 3)
    assert kernel.pump(10, budget=0) == 0
    assert kernel.executed == 2


def test_pump_stops_behind_an_action_that_wakes_a_task() -> None:
    """The next action of the same instant waits until the woken task has acted."""
    kernel, ran = Kernel(), []
    kernel.at(1, kernel.wake)
    kernel.push(1, ran.append, "next")
    assert kernel.pump(5) == 1
    assert kernel.woken
    assert ran == []
    kernel.woken = False
    assert kernel.pump(5) == 1
    assert ran == ["next"]


def test_step_runs_one_action() -> None:
    """``step`` skips what was cancelled, and tells when nothing is left."""
    kernel, ran = Kernel(), []
    kernel.at(1, lambda: ran.append(1)).cancel()
    kernel.at(7, lambda: ran.append(7))
    assert kernel.step()
    assert (ran, kernel.now_us) == ([7], 7)
    assert not kernel.step()


def test_the_past_is_refused() -> None:
    """Time never goes back, and no action is jumped over."""
    kernel = Kernel(start_us=100)
    with pytest.raises(ValueError, match="99 µs is in the past; it is 100 µs"):
        kernel.at(99, lambda: None)
    with pytest.raises(ValueError, match="in the past"):
        kernel.after(-1, lambda: None)
    kernel.at(200, lambda: None)
    with pytest.raises(ValueError, match="an action is due at 200 µs, before 201 µs"):
        kernel.advance_to(201)
    kernel.advance_to(200)
    with pytest.raises(ValueError, match="in the past"):
        kernel.advance_to(199)


def test_an_exception_leaves_the_kernel_usable() -> None:
    """The action that raised is gone, the others are still there."""
    kernel, ran = Kernel(), []

    def broken() -> None:
        raise RuntimeError("broken")

    kernel.at(1, broken)
    kernel.push(2, ran.append, 2)
    with pytest.raises(RuntimeError, match="broken"):
        kernel.run_until(5)
    assert kernel.executed == 1
    kernel.run_until(5)
    assert ran == [2]


@pytest.mark.parametrize("seed", range(20))
def test_random_churn_against_a_sorted_list(seed: int) -> None:
    """Thousands of pushes and cancels: what runs, and in which order, is what sorting says."""
    rng = random.Random(seed)
    kernel, ran = Kernel(), []
    wanted: list[tuple[int, int]] = []
    handles = []
    for number in range(3000):
        time_us = rng.randrange(100)
        if rng.random() < 0.4:
            kernel.push(time_us, ran.append, number)
            wanted.append((time_us, number))
        else:
            handles.append((kernel.at(time_us, lambda n=number: ran.append(n)), time_us, number))
    for handle, time_us, number in handles:
        if rng.random() < 0.7:
            handle.cancel()
        else:
            wanted.append((time_us, number))
    assert kernel.pending() == len(wanted)
    kernel.run_until(100)
    assert ran == [number for _, number in sorted(wanted)]
