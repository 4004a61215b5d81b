"""The widths of numbers: integers of 8 to 64 bits, and floats of 32 bits, which are also floats in Python."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import NoReturn

from penstock.error import three_parts
from penstock.scalars.types import SqlType

_SINGLE = struct.Struct("<f")
_BITS_OF_SINGLE = struct.Struct("<i")
_DIGITS_MAX = 9
"""The number of digits that distinguish each float of 32 bits from all others."""

# Integers


def bounds_of(bits: int) -> tuple[int, int]:
    """Returns the smallest and the largest integer with a number of bits.

    >>> bounds_of(8)
    (-128, 127)
    """
    return -(1 << bits - 1), (1 << bits - 1) - 1


def refuse_width(bits: int) -> NoReturn:
    """Refuses an integer that has too many bits for its type."""
    name, wider = SqlType("BIGINT", bits=bits), "DOUBLE" if bits == 64 else "BIGINT"
    what = f"an integer of an SQL expression has more than {bits} bits"
    hint = f"CAST an operand AS {wider}" + ("" if bits == 64 else f": values of type {name} have {bits} bits")
    raise ArithmeticError(three_parts(what, hint=hint))


def fits_width(value: object, bits: int) -> bool:
    """True if a value is an integer that has no more bits.

    >>> fits_width(127, 8), fits_width(128, 8), fits_width(1.5, 8)
    (True, False, False)
    """
    least, greatest = bounds_of(bits)
    return isinstance(value, int) and least <= value <= greatest


# Floats


def single(value: float) -> float:
    """Returns the nearest float of 32 bits, which is infinite if there is none.

    >>> single(0.1), single(1e300)
    (0.10000000149011612, inf)
    """
    try:
        found: float = _SINGLE.unpack(_SINGLE.pack(value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return found


def single_of_exact(exact: int | Decimal, nearest: float) -> float:
    """Returns the float of 32 bits that is nearest to a number.

    A number is rounded twice if it becomes a float of 64 bits first: that may be in the middle between two floats of 32
    bits, where the number itself is not.

    Args:
        exact: The number.
        nearest: The nearest float of 64 bits.
    """
    found = single(nearest)
    if not math.isfinite(found) or exact == Decimal(nearest):
        return found
    is_above = exact > Decimal(nearest)
    other = _neighbour(found, is_up=nearest > found)
    is_between = math.isfinite(other) and nearest - found == other - nearest
    if not is_between or (found > nearest) == is_above:
        return found
    return other


def _neighbour(value: float, is_up: bool) -> float:
    """The next float of 32 bits."""
    [bits] = _BITS_OF_SINGLE.unpack(_SINGLE.pack(value))
    if not value:
        return math.copysign(_SINGLE.unpack(_BITS_OF_SINGLE.pack(1))[0], 1 if is_up else -1)
    found: float = _SINGLE.unpack(_BITS_OF_SINGLE.pack(bits + (1 if (value > 0) == is_up else -1)))[0]
    return found


def shortest_digits(value: float) -> str:
    """Returns the shortest decimal that stands for a finite float of 32 bits.

    >>> shortest_digits(single(0.1)), shortest_digits(16777216.0)
    ('1e-01', '1.6777216e+07')
    """
    for digits in range(1, _DIGITS_MAX):
        text = f"{value:.{digits - 1}e}"
        if single(float(text)) == value:
            return text
    return f"{value:.{_DIGITS_MAX - 1}e}"


def bits_of_single(value: float) -> int:
    """Returns the bits of a float of 32 bits as a number; zero has no sign, and NaN has one form.

    >>> bits_of_single(1.5), bits_of_single(-0.0)
    (1069547520, 0)
    """
    found: int = _BITS_OF_SINGLE.unpack(_SINGLE.pack(value + 0.0 if value == value else math.nan))[0]
    return found


# Results of functions


def with_width(compute: Callable[..., object], result: SqlType) -> Callable[..., object]:
    """Returns a function whose results have the width of a type: others are refused, and floats are rounded.

    >>> from penstock.scalars.types import REAL
    >>> with_width(lambda left, right: left + right, REAL)(single(0.1), 1.0)
    1.100000023841858
    """
    if result.bits == 64 or result.name not in ("BIGINT", "DOUBLE"):
        return compute

    def checked(*values: object) -> object:
        found = compute(*values)
        if isinstance(found, float):
            return single(found)
        return (
            refuse_width(result.bits) if found is not None and not fits_width(found, result.bits) else found
        )

    return checked
