"""The kernel inside a trio run: one virtual time for kernel actions and plain trio code."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from fractions import Fraction

import pytest
import trio
from trio.testing import MockClock

from groupsim.runtime.deterministic import SchedulingSwitchError, deterministic_scheduling
from groupsim.runtime.drivers import BUDGET, ClockError, run_virtual
from groupsim.runtime.kernel import Kernel
from groupsim.runtime.realtime import RealTimeKernel, run_realtime
from groupsim.runtime.waiting import KernelEvent, sleep_until_us, sleep_us

Script = Callable[[], Awaitable[None]]


def play(kernel: Kernel, until_us: int, *scripts: Script) -> None:
    """Run the scripts beside the kernel under virtual time; they are cancelled at the end."""

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for script in scripts:
                nursery.start_soon(script)
            await run_virtual(kernel, until_us)
            assert trio.current_time() * 1_000_000 == pytest.approx(until_us, abs=0.5)
            nursery.cancel_scope.cancel()

    trio.run(main, clock=MockClock())


def test_trio_sleep_lives_in_virtual_time() -> None:
    """Plain ``trio.sleep`` wakes at the kernel's microsecond."""
    kernel, seen = Kernel(), []

    async def script() -> None:
        for seconds in (0.1, 3600, 1e-6, 0.333333):
            await trio.sleep(seconds)
            seen.append(kernel.now_us)

    play(kernel, 10_000_000_000, script)
    assert seen == [100_000, 3600_100_000, 3600_100_001, 3600_433_334]


def test_move_on_after_against_a_kernel_event() -> None:
    """A timeout of trio's fires before the kernel's event, or after it, to the microsecond."""
    kernel, seen = Kernel(), []

    async def script() -> None:
        event = KernelEvent(kernel)
        kernel.at(5_000_000, event.set)
        with trio.move_on_after(4.999999) as early:
            await event.wait()
        seen.append((early.cancelled_caught, kernel.now_us))
        with trio.move_on_after(1) as late:
            await event.wait()
        seen.append((late.cancelled_caught, kernel.now_us))

    play(kernel, 20_000_000, script)
    assert seen == [(True, 4_999_999), (False, 5_000_000)]


def test_at_one_instant_deadlines_go_before_actions() -> None:
    """Plain trio's deadline and kernel actions of the same microsecond: the deadline first, always."""
    kernel, seen = Kernel(), []

    async def sleeper() -> None:
        await trio.sleep(0.3)
        seen.append("deadline")

    async def waiter() -> None:
        await sleep_until_us(kernel, 300_000)
        seen.append("task")

    kernel.at(300_000, lambda: seen.append("action"))
    play(kernel, 1_000_000, sleeper, waiter)
    assert seen == ["deadline", "action", "task"]


@pytest.mark.parametrize("seed", range(6))
def test_many_sleeps_and_actions_interleave_exactly(seed: int) -> None:
    """Hundreds of trio sleeps, kernel sleeps and actions, many at the same instants: each happens
    at its exact microsecond, and in the order the rules of the driver give.
    """
    rng = random.Random(seed)
    kernel, seen = Kernel(), []
    instants = rng.sample(range(1, 5_000_000_000), 200)
    wanted: list[tuple[int, int, int]] = []

    async def sleeper(name: int, times: list[int]) -> None:
        for time_us in times:
            # the float nearest to the exact difference, as a user would write it
            await trio.sleep(float(Fraction(time_us - kernel.now_us, 1_000_000)))
            seen.append((kernel.now_us, 0, name))
            assert round(trio.current_time() * 1_000_000) == kernel.now_us

    scripts = []
    for name in range(4):  # no two sleepers share an instant: their order would be trio's to choose
        times = sorted(instants[name::4])
        scripts.append(lambda name=name, times=times: sleeper(name, times))
        wanted += [(time_us, 0, name) for time_us in times]
    for number in range(300):
        time_us = rng.choice(instants)
        kernel.push(time_us, lambda n: seen.append((kernel.now_us, 1, n)), number)
        wanted.append((time_us, 1, number))
    play(kernel, 5_000_000_000, *scripts)
    assert seen == sorted(wanted)


def test_long_chains_of_short_sleeps_do_not_drift() -> None:
    """Ten thousand sleeps of 0.1 s, whose float is not exact, end at 1,000 s to the microsecond."""
    kernel, seen = Kernel(), []

    async def script() -> None:
        for _ in range(10_000):
            await trio.sleep(0.1)
        seen.append(kernel.now_us)

    kernel.at(999_999_999, lambda: seen.append(kernel.now_us))
    kernel.at(1_000_000_000, lambda: seen.append("action"))
    play(kernel, 2_000_000_000, script)
    assert seen == [999_999_999, 1_000_000_000, "action"]


def test_far_from_zero_microseconds_are_still_exact() -> None:
    """After a virtual year a microsecond is a microsecond."""
    year_us = 365 * 86_400 * 1_000_000
    kernel, seen = Kernel(), []

    async def script() -> None:
        await trio.sleep(year_us / 1_000_000)
        for _ in range(50):
            await trio.sleep(0.000001)
            seen.append(kernel.now_us - year_us)

    play(kernel, year_us + 1000, script)
    assert seen == list(range(1, 51))


def test_sleeps_shorter_than_a_microsecond_end() -> None:
    """A sleep too short for the kernel's clock is rounded, and adds up as the floats do."""
    kernel, seen = Kernel(), []

    async def script() -> None:
        for _ in range(10):
            await trio.sleep(0.4e-6)
        seen.append(kernel.now_us)

    play(kernel, 1000, script)
    assert seen == [4]


def test_waiters_of_an_event_wake_one_at_a_time_in_order() -> None:
    """Each waiter has run to its next wait before the following one is woken."""
    kernel, seen = Kernel(), []
    event = KernelEvent(kernel)

    async def waiter(name: int) -> None:
        await sleep_us(kernel, name)  # so that they wait in this order
        await event.wait()
        seen.append(("woken", name))
        await trio.lowlevel.checkpoint()
        seen.append(("done", name))

    kernel.at(1000, event.set)
    play(kernel, 2000, *(lambda n=n: waiter(n) for n in range(5)))
    assert seen == [(what, n) for n in range(5) for what in ("woken", "done")]


def test_cancelled_waits_leave_nothing_behind() -> None:
    """A wait that timed out is neither in the heap nor in the event's queue."""
    kernel, seen = Kernel(), []
    event = KernelEvent(kernel)

    async def script() -> None:
        with trio.move_on_after(1):
            await sleep_us(kernel, 5_000_000)
        with trio.move_on_after(1):
            await event.wait()
        seen.append(kernel.pending())
        event.set()
        await event.wait()
        seen.append(kernel.now_us)

    play(kernel, 3_000_000, script)
    assert seen == [0, 2_000_000]


def test_a_woken_task_acts_before_the_next_action() -> None:
    """An action of the same instant sees what the woken task did."""
    kernel, seen = Kernel(), []

    async def script() -> None:
        await sleep_until_us(kernel, 10)
        await trio.lowlevel.checkpoint()
        seen.append("task")

    kernel.at(5, lambda: kernel.at(10, lambda: seen.append("action")))
    play(kernel, 20, script)
    assert seen == ["task", "action"]


def test_an_exception_in_an_action_ends_the_run() -> None:
    """What an action raises comes out of the driver."""
    kernel = Kernel()
    kernel.at(5, lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        trio.run(run_virtual, kernel, 10, clock=MockClock())


def test_cancellation_gets_through_a_busy_kernel() -> None:
    """A kernel that never runs dry and wakes nobody still lets cancellation in between actions."""
    kernel = Kernel()

    def again(_: None) -> None:
        kernel.push(kernel.now_us + 1, again, None)
        if kernel.executed == 0 and kernel.now_us == 3 * BUDGET:
            scope.cancel()

    again(None)

    async def main() -> None:
        with scope:
            await run_virtual(kernel, 1 << 60)

    scope = trio.CancelScope()
    kernel.push(10, lambda _: scope.cancel(), None)
    trio.run(main, clock=MockClock())
    assert scope.cancelled_caught
    assert kernel.executed <= 2 * BUDGET


@pytest.mark.parametrize(
    ("clock", "words"),
    [
        (None, "SystemClock"),
        (MockClock(rate=1.0), "must stand still"),
        (MockClock(autojump_threshold=0), "must stand still"),
    ],
)
def test_other_clocks_are_refused(clock: MockClock | None, words: str) -> None:
    """Virtual time needs a MockClock that nobody else moves."""
    with pytest.raises(ClockError, match=words):
        trio.run(run_virtual, Kernel(), 10, clock=clock)


def test_real_time_waits_for_the_clock() -> None:
    """Under the real-time driver actions run when trio's clock says so, in the kernel's order."""

    async def main() -> list[tuple[str, int]]:
        kernel, seen = RealTimeKernel(), []
        for name, time_us in (("b", 2_000_000), ("a", 1_000_000), ("c", 2_000_000)):
            kernel.at(
                time_us,
                lambda name=name: seen.append((name, round(trio.current_time() - start))),
            )
        start = trio.current_time()
        await run_realtime(kernel, 3_000_000)
        assert kernel.now_us == 3_000_000
        assert trio.current_time() - start == pytest.approx(3)
        return seen

    seen = trio.run(main, clock=MockClock(autojump_threshold=0))
    assert seen == [("a", 1), ("b", 2), ("c", 2)]


def test_real_time_driver_is_woken_by_a_task() -> None:
    """An action added by a task while the driver sleeps is not late."""

    async def main() -> list[tuple[int, int]]:
        kernel, seen = RealTimeKernel(), []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_realtime, kernel)
            await trio.sleep(1)
            kernel.catch_up()
            kernel.after(
                500_000, lambda: seen.append((kernel.now_us, round(trio.current_time(), 3)))
            )
            event = KernelEvent(kernel)
            kernel.after(700_000, event.set)
            await event.wait()
            seen.append((kernel.now_us, round(trio.current_time(), 3)))
            nursery.cancel_scope.cancel()
        return seen

    seen = trio.run(main, clock=MockClock(autojump_threshold=0))
    assert [at for _, at in seen] == [1.5, 1.7]
    assert seen[0][0] == pytest.approx(1_500_000, abs=2)


def _shuffled_tasks() -> str:
    order: list[str] = []

    async def child(name: str, event: trio.Event) -> None:
        await event.wait()
        order.append(name)

    async def main() -> None:
        for _ in range(10):
            async with trio.open_nursery() as nursery:
                event = trio.Event()
                for name in "abcdef":
                    nursery.start_soon(child, name, event)
                await trio.testing.wait_all_tasks_blocked()
                event.set()

    trio.run(main)
    return "".join(order)


def test_deterministic_scheduling_repeats() -> None:
    """Tasks that trio shuffles run in an order that depends on the seed alone."""

    def once(seed: int) -> str:
        with deterministic_scheduling(seed):
            return _shuffled_tasks()

    assert once(1) == once(1)
    assert once(1) != once(2)


def test_deterministic_scheduling_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the block trio's switch and random state are as before."""
    monkeypatch.setattr(trio._core._run, "_ALLOW_DETERMINISTIC_SCHEDULING", False)
    before = trio._core._run._r.getstate()
    with deterministic_scheduling(3):
        assert trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING
    assert not trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING
    assert trio._core._run._r.getstate() == before


@pytest.mark.parametrize("name", ["_ALLOW_DETERMINISTIC_SCHEDULING", "_r"])
def test_a_moved_switch_fails_loudly(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A trio release without the private name is named in the error."""
    monkeypatch.delattr(trio._core._run, name)
    with (
        pytest.raises(SchedulingSwitchError, match=f"trio {trio.__version__} has no .*{name}"),
        deterministic_scheduling(1),
    ):
        pass
