"""How long a message takes in one direction: a fixed time, or one drawn for each message.

A latency is a pure function from a 64-bit random integer to microseconds, so the n-th message of a
link takes the same time in every run with the same seed.
"""

from __future__ import annotations

from dataclasses import dataclass

from groupsim.runtime._fixedpoint import BITS, ONE, exp, ln, normal_quantile

__all__ = ["Fixed", "Latency", "LogNormal", "Uniform", "time_text"]

_Z99 = 2682096491178106252  # the normal deviate of 99 %, 2.3263478740…, · 2⁶⁰


def time_text(us: int) -> str:
    """Return a length of time exactly, in the largest unit that keeps it short: ``1.5s``, ``20ms``."""
    for unit_us, unit in ((1_000_000, "s"), (1_000, "ms")):
        if us >= unit_us:
            whole, rest = divmod(us, unit_us)
            decimals = f"{rest:0{len(str(unit_us)) - 1}}".rstrip("0")
            return f"{whole}.{decimals}{unit}" if decimals else f"{whole}{unit}"
    return f"{us}us"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """Always the same time.

    Raises:
        ValueError: the time is negative.

    """

    us: int

    def __post_init__(self) -> None:
        if self.us < 0:
            raise ValueError(f"a latency must not be negative; got {self.us} µs")

    def draw(self, _bits: int) -> int:
        """Return the time in µs."""
        return self.us

    def __str__(self) -> str:
        return time_text(self.us)


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform:
    """Every time from ``low_us`` to ``high_us``, both included, is equally likely.

    Raises:
        ValueError: a bound is negative, or they are the wrong way round.

    """

    low_us: int
    high_us: int

    def __post_init__(self) -> None:
        if not 0 <= self.low_us <= self.high_us:
            raise ValueError(
                f"a uniform latency needs 0 <= low <= high; got {self.low_us} and {self.high_us} µs"
            )

    def draw(self, bits: int) -> int:
        """Return the time in µs for a 64-bit draw."""
        return self.low_us + (bits * (self.high_us - self.low_us + 1) >> 64)

    def __str__(self) -> str:
        return f"uniform {time_text(self.low_us)} to {time_text(self.high_us)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogNormal:
    """A time whose logarithm is normally distributed: mostly near the median, with a long tail.

    ``sigma_permille`` is the standard deviation of the natural logarithm in thousandths;
    ``max_us`` cuts the tail off.

    Raises:
        ValueError: the median is not positive, sigma is negative or above 3000, or the maximum
            lies below the median.

    """

    median_us: int
    sigma_permille: int
    max_us: int | None = None

    def __post_init__(self) -> None:
        if self.median_us <= 0:
            raise ValueError(f"the median must be positive; got {self.median_us} µs")
        if not 0 <= self.sigma_permille <= 3000:
            raise ValueError(f"sigma must be 0 to 3000 thousandths; got {self.sigma_permille}")
        if self.max_us is not None and self.max_us < self.median_us:
            raise ValueError(f"the maximum {self.max_us} µs is below the median")

    @classmethod
    def from_p99(cls, *, median_us: int, p99_us: int, max_us: int | None = None) -> LogNormal:
        """Make one from its median and the time that 99 of 100 messages stay below.

        Raises:
            ValueError: as for the class; also when p99 lies below the median.

        """
        if not 0 < median_us <= p99_us:
            raise ValueError(f"needs 0 < median <= p99; got {median_us} and {p99_us} µs")
        logarithm = ln((p99_us << BITS) // median_us)
        sigma_permille = (logarithm * 2000 + _Z99) // (2 * _Z99)
        return cls(median_us=median_us, sigma_permille=sigma_permille, max_us=max_us)

    def draw(self, bits: int) -> int:
        """Return the time in µs for a 64-bit draw."""
        factor = exp(normal_quantile(bits) * self.sigma_permille // 1000)
        us = self.median_us * factor + (ONE >> 1) >> BITS
        return us if self.max_us is None else min(us, self.max_us)

    def __str__(self) -> str:
        sigma = f"{self.sigma_permille // 1000}.{self.sigma_permille % 1000:03}"
        most = "" if self.max_us is None else f", at most {time_text(self.max_us)}"
        return f"lognormal around {time_text(self.median_us)}, sigma {sigma}{most}"


Latency = Fixed | Uniform | LogNormal
