"""Logarithm, exponential and the normal quantile in fixed-point integers.

Why not ``math``: the C libraries of different platforms differ in the last bit of ``exp`` and ``log``, and one
bit can move a delivery by a microsecond and with it the hash of a run. Here are only integer
operations, so the results are the same everywhere. Numbers carry 60 bits behind the point (``ONE``).

Accuracy (shown by tests/unit/test_randomness.py): ``ln`` and ``exp`` better than 10⁻¹⁵ of their
range, ``normal_quantile`` better than 2·10⁻⁹ (P. J. Acklam's rational approximation).
"""

from __future__ import annotations

import math
from fractions import Fraction

__all__ = ["BITS", "ONE", "exp", "ln", "normal_quantile"]

BITS = 60
ONE = 1 << BITS

_LN2 = 799144290325165979  # ln 2 · 2⁶⁰, rounded
_SQRT2 = 1630477228166597777  # √2 · 2⁶⁰, rounded
_LN_TERMS = 12  # (0.1716²)¹² < 2⁻⁶⁰


def _scaled(numbers: str) -> tuple[int, ...]:
    return tuple(round(Fraction(number) * ONE) for number in numbers.split())


# Acklam's coefficients: central region (a, b), tails (c, d); highest power first
_A = _scaled(
    "-3.969683028665376e+01 2.209460984245205e+02 -2.759285104469687e+02 "
    "1.383577518672690e+02 -3.066479806614716e+01 2.506628277459239e+00"
)
_B = _scaled(
    "-5.447609879822406e+01 1.615858368580409e+02 -1.556989798598866e+02 "
    "6.680131188771972e+01 -1.328068155288572e+01 1"
)
_C = _scaled(
    "-7.784894002430293e-03 -3.223964580411365e-01 -2.400758277161838e+00 "
    "-2.549732539343734e+00 4.374664141464968e+00 2.938163982698783e+00"
)
_D = _scaled(
    "7.784695709041462e-03 3.224671290700398e-01 2.445134137142996e+00 3.754408661907416 1"
)
_TAIL = round(Fraction("0.02425") * ONE)
_E = tuple(ONE // math.factorial(n) for n in range(14, 0, -1))  # 0.35¹⁵ / 15! < 2⁻⁶²


def ln(x: int) -> int:
    """Return the natural logarithm of a positive fixed-point number."""
    shift = x.bit_length() - 1 - BITS
    mantissa = x >> shift if shift >= 0 else x << -shift
    if mantissa > _SQRT2:  # into [√½, √2], where the series below is short
        mantissa >>= 1
        shift += 1
    y = (mantissa - ONE << BITS) // (mantissa + ONE)
    square = y * y >> BITS
    power, total = y, 0
    for index in range(_LN_TERMS):  # 2 · artanh y
        total += power // (2 * index + 1)
        power = power * square >> BITS
    return 2 * total + shift * _LN2


def exp(x: int) -> int:
    """Return e to the power of a fixed-point number."""
    halvings = (x + (_LN2 >> 1)) // _LN2
    rest = x - halvings * _LN2
    total = (_horner(_E, rest) * rest >> BITS) + ONE
    return total << halvings if halvings >= 0 else total >> -halvings


def normal_quantile(bits: int) -> int:
    """Return the standard normal deviate that ``bits``, a 64-bit integer, stands for.

    ``bits`` means the probability (bits + ½) / 2⁶⁴; the function is odd around one half.
    """
    mirrored = bits >> 63
    if mirrored:
        bits = (1 << 64) - 1 - bits
    wide = 2 * bits + 1  # the probability, at most one half, times 2⁶⁵
    if wide < _TAIL << 5:
        root = math.isqrt(-2 * (ln(wide << 8) - ln(1 << 13 + BITS)) << BITS)
        value = _ratio(_C, _D, root)
    else:
        q = (wide >> 5) - (ONE >> 1)
        value = q * _ratio(_A, _B, q * q >> BITS) >> BITS
    return -value if mirrored else value


def _ratio(upper: tuple[int, ...], lower: tuple[int, ...], x: int) -> int:
    return (_horner(upper, x) << BITS) // _horner(lower, x)


def _horner(coefficients: tuple[int, ...], x: int) -> int:
    total = 0
    for coefficient in coefficients:
        total = (total * x >> BITS) + coefficient
    return total
