"""Exact sums of floats and of their powers, from which values can be taken out again without a trace."""

from __future__ import annotations

import math


class ExactPowers:
    """Sums of the powers of floats, as integers with one common scale.

    A float is an integer over a power of two. So a sum of floats is also one, with as many bits as it needs, and
    what is added and subtracted again leaves no trace. Values that are not numbers are counted separately.

    Args:
        power: The highest power.

    Held is a list: the number of values, how many of them are NaN, infinity and minus infinity, the bits behind the
    point of the values, and the sums of the first power and up, of which each has a multiple of these bits.

    >>> sums = ExactPowers(1)
    >>> held = sums.empty()
    >>> for value, sign in [(1e100, 1), (0.1, 1), (1e100, -1)]:
    ...     sums.change(held, value, sign)
    >>> sums.total(held)
    0.1
    """

    def __init__(self, power: int) -> None:
        self._powers = range(1, power + 1)
        self._first = 5

    def empty(self) -> list[int]:
        """Returns what is held of no values."""
        return [0, 0, 0, 0, 0, *(0 for _ in self._powers)]

    def change(self, held: list[int], value: float | None, sign: int) -> None:
        """Adds a value if the sign is 1, and takes it out if it is -1."""
        if value is None:
            return
        held[0] += sign
        if not math.isfinite(value):
            held[1 if value != value else 2 if value > 0 else 3] += sign
            return
        number, divisor = value.as_integer_ratio()
        bits = divisor.bit_length() - 1
        if bits > held[4]:
            self._widen(held, bits)
        else:
            number <<= held[4] - bits
        for power in self._powers:
            held[4 + power] += sign * number**power

    def _widen(self, held: list[int], bits: int) -> None:
        more = bits - held[4]
        held[4] = bits
        for power in self._powers:
            held[4 + power] <<= more * power

    def merge(self, held: list[int], other: list[int]) -> None:
        """Adds all that another part holds."""
        for at in range(4):
            held[at] += other[at]
        if other[4] > held[4]:
            self._widen(held, other[4])
        more = held[4] - other[4]
        for power in self._powers:
            held[4 + power] += other[4 + power] << more * power

    def is_finite(self, held: list[int]) -> bool:
        """True if all values are numbers below infinity."""
        return not (held[1] or held[2] or held[3])

    def total(self, held: list[int]) -> float:
        """Returns the sum of the values, rounded once."""
        if held[1] or (held[2] and held[3]):
            return math.nan
        if held[2] or held[3]:
            return math.inf if held[2] else -math.inf
        return quotient(held[5], 1 << held[4])


def quotient(numerator: int, denominator: int) -> float:
    """Returns the float nearest to a quotient of integers; infinity for one that is too large.

    >>> quotient(1, 3), quotient(-(1 << 2000), 1)
    (0.3333333333333333, -inf)
    """
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if (numerator > 0) == (denominator > 0) else -math.inf


def as_powers(held: list[int]) -> list[int]:
    """Returns the number of values and the sums of their powers."""
    return [held[0], *held[5:]]
