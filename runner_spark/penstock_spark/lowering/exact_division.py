"""Divides whole numbers as Python does, in Spark's SQL: the result is the float that is nearest to the quotient."""

from __future__ import annotations

_UNIT = 1 << 62
_FLOATS = 1 << 53
"""Floats represent every whole number up to this one exactly."""


def write_quotient(total: str, count: str) -> str:
    """Returns the SQL of a quotient, a double; the count is at most 2^53, and the quotient must fit into 64 bits.

    If floats represent both numbers exactly, float division rounds correctly. If the total is too large for
    that, the quotient is at least 1: with 62 bits of its fraction, and a last bit that says whether a
    remainder is left, it has more bits than a float, so the cast to a float rounds it, once.
    """
    whole = f"cast({total} div {count} as decimal(19, 0))"
    rest = f"cast({total} - {whole} * {count} as decimal(19, 0))"
    fraction = f"cast(({rest} * {_UNIT}BD) div {count} as decimal(19, 0))"
    more = f"cast(sign({rest} * {_UNIT}BD - {fraction} * {count}) as int)"
    bits = f"cast({whole} * {2 * _UNIT}BD + 2 * {fraction} + {more} as decimal(38, 0))"
    return (
        f"if(abs({total}) <= {_FLOATS}BD, cast({total} as double) / cast({count} as double), "
        f"cast({bits} as double) / {2 * _UNIT}D)"
    )
