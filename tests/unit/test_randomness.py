"""Named streams, fixed-point functions and latencies: repeatable, independent, and right."""

from __future__ import annotations

import math
import statistics
import uuid
from fractions import Fraction

import pytest

from groupsim.runtime._fixedpoint import BITS, ONE, exp, ln, normal_quantile
from groupsim.runtime.latency import Fixed, LogNormal, Uniform
from groupsim.runtime.randomness import MAX_SEED, Stream, Streams


def test_known_values() -> None:
    """The draws of a seed are part of what a recorded run means: they never change."""
    stream = Stream(7, "link/c-3→b-1/latency")
    assert [hex(stream.at(n)) for n in (0, 1, 8, 10**12)] == GOLDEN


GOLDEN = ["0xedd56438547d7d31", "0x7d9bd7465eeca1a5", "0xb256cbfaae6e9201", "0x9a1d728bcb7b6bd6"]


def test_a_draw_depends_on_seed_name_and_number_only() -> None:
    """Reading in another order, or other streams in between, changes nothing."""
    one, other = Streams(1).stream("a"), Streams(1)
    in_order = [one.draw() for _ in range(40)]
    for name in ("b", "c"):
        other.stream(name).draw()
    assert [other.stream("a").at(n) for n in reversed(range(40))] == in_order[::-1]
    assert Streams(2).stream("a").at(0) != in_order[0]
    assert Streams(1).stream("b").at(0) != in_order[0]
    assert len({*in_order}) == 40


def test_a_name_is_one_stream() -> None:
    """Two places that ask for the same name share the counter."""
    streams = Streams(1)
    first = streams.stream("a").draw()
    assert streams.stream("a").draw() == Streams(1).stream("a").at(1) != first


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 1000, 1 << 64])
def test_below_stays_below(bound: int) -> None:
    """All values are in range, and small ranges are filled evenly."""
    stream = Streams(5).stream("x")
    values = [stream.below(bound) for _ in range(3000)]
    assert 0 <= min(values) <= max(values) < bound
    if bound <= 10:
        for value in range(bound):
            assert values.count(value) == pytest.approx(3000 / bound, rel=0.2)


@pytest.mark.parametrize("bound", [0, -1, (1 << 64) + 1])
def test_bad_bounds_are_refused(bound: int) -> None:
    """A bound that no draw can satisfy is an error that names the stream."""
    with pytest.raises(ValueError, match="stream 'x': bound must be"):
        Streams(5).stream("x").below(bound)


@pytest.mark.parametrize("seed", [-1, MAX_SEED + 1])
def test_seeds_have_64_bits(seed: int) -> None:
    """A seed outside the range is refused, not cut."""
    with pytest.raises(ValueError, match="a seed is an integer from 0 to"):
        Streams(seed)


def test_uuids_are_version_4() -> None:
    """Member ids look like Java's."""
    stream = Streams(9).stream("member-ids")
    made = [stream.uuid() for _ in range(100)]
    assert len(set(made)) == 100
    for text in made:
        assert str(uuid.UUID(text)) == text
        assert uuid.UUID(text).version == 4
        assert uuid.UUID(text).variant == uuid.RFC_4122


def test_logarithm_and_exponential() -> None:
    """Within 10⁻¹⁵ of what ``math`` says, from tiny to large."""
    for x in [Fraction(n, 977) for n in range(1, 3000, 7)] + [
        Fraction(1, 1 << 64),
        Fraction(1 << 40),
    ]:
        fixed = ln(int(x * ONE)) if x * ONE >= 1 else None
        if fixed is not None:
            assert fixed / ONE == pytest.approx(math.log(int(x * ONE) / ONE), abs=2e-15, rel=1e-15)
    for tenth in range(-250, 250):
        assert exp(tenth * ONE // 10) / ONE == pytest.approx(
            math.exp(tenth / 10), rel=1e-14, abs=1e-17
        )


def test_normal_quantile() -> None:
    """Within 2·10⁻⁹ of the exact deviate, tails included; odd around one half; monotone."""
    exact = statistics.NormalDist().inv_cdf
    probabilities = [n / 1000 for n in range(1, 1000)] + [10.0**-n for n in range(4, 19)]
    for probability in probabilities:
        bits = int(probability * 2**64)
        found = normal_quantile(bits) / ONE
        assert found == pytest.approx(exact((bits + 0.5) / 2**64), rel=3e-9, abs=2e-9)
        assert normal_quantile((1 << 64) - 1 - bits) == -normal_quantile(bits)
    grid = [normal_quantile(n << 52) for n in range(4096)]
    assert grid == sorted(grid)
    assert -10 * ONE < normal_quantile(0) < -9 * ONE


def test_fixed_point_is_what_it_was() -> None:
    """The very bits are pinned: a change would change the hash of recorded runs."""
    assert (ln(3 << BITS), exp(ONE), normal_quantile(1 << 60), normal_quantile(12345)) == PINNED


PINNED = (
    1266613732830808712,
    3133965575612453540,
    -1768720566891179664,
    -9212994013169486561,
)


def test_fixed_latency() -> None:
    """A fixed latency does not look at its draw."""
    assert {Fixed(us=70).draw(bits) for bits in (0, 1 << 63, MAX_SEED)} == {70}


def test_latencies_in_words() -> None:
    """Traces and timelines show a latency as people write one, exactly."""
    assert [str(Fixed(us=us)) for us in (0, 70, 20_000, 1_500, 2_000_000, 1_000_001)] == [
        *("0us", "70us", "20ms", "1.5ms", "2s", "1.000001s")
    ]
    assert str(Uniform(low_us=500, high_us=3_000)) == "uniform 500us to 3ms"
    tail = LogNormal(median_us=5_000, sigma_permille=1_020, max_us=80_000)
    assert str(tail) == "lognormal around 5ms, sigma 1.020, at most 80ms"


def test_uniform_latency_has_both_ends() -> None:
    """Smallest and largest draw give the bounds; the mean is in the middle."""
    spec = Uniform(low_us=100, high_us=103)
    assert (spec.draw(0), spec.draw(MAX_SEED)) == (100, 103)
    stream = Stream(3, "u")
    wide = Uniform(low_us=0, high_us=1000)
    assert statistics.mean(wide.draw(stream.at(n)) for n in range(5000)) == pytest.approx(
        500, rel=0.03
    )


def test_lognormal_latency_has_its_distribution() -> None:
    """Median, mean of the logarithm, its deviation and the 99 % point are as asked for."""
    spec = LogNormal.from_p99(median_us=2000, p99_us=10_000)
    stream = Stream(3, "l")
    times = sorted(spec.draw(stream.at(n)) for n in range(8000))
    assert times[4000] == pytest.approx(2000, rel=0.03)
    assert times[7920] == pytest.approx(10_000, rel=0.1)
    deviation = statistics.stdev(math.log(time) for time in times)
    assert deviation == pytest.approx(spec.sigma_permille / 1000, rel=0.03)
    assert spec.draw(1 << 63) == 2000
    assert LogNormal(median_us=10, sigma_permille=0).draw(5) == 10


def test_lognormal_latency_can_be_cut() -> None:
    """No draw exceeds the maximum."""
    assert LogNormal(median_us=10, sigma_permille=3000, max_us=50).draw(MAX_SEED) == 50
    assert LogNormal(median_us=10, sigma_permille=3000).draw(MAX_SEED) > 10**9


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Fixed(us=-1), "must not be negative; got -1"),
        (lambda: Uniform(low_us=2, high_us=1), "0 <= low <= high; got 2 and 1"),
        (lambda: Uniform(low_us=-2, high_us=1), "0 <= low <= high"),
        (lambda: LogNormal(median_us=0, sigma_permille=1), "median must be positive"),
        (lambda: LogNormal(median_us=1, sigma_permille=3001), "0 to 3000 thousandths; got 3001"),
        (lambda: LogNormal(median_us=9, sigma_permille=1, max_us=8), "below the median"),
        (lambda: LogNormal.from_p99(median_us=9, p99_us=8), "got 9 and 8"),
    ],
)
def test_bad_latencies_are_refused(make: object, words: str) -> None:
    """A latency that cannot be is refused when it is written down, with what was found."""
    with pytest.raises(ValueError, match=words):
        make()  # type: ignore[operator]
