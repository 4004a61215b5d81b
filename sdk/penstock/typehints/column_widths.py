"""The widths of columns of numbers, which a row's type keeps beside the hints: Python's ints and floats have none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.typehints.row_type import RowTypeConstraint

_BITS = "penstock:bits"


def options_of_widths(widths: Iterable[tuple[str, int]]) -> dict[str, Sequence[tuple[str, int]]]:
    """Returns the options of fields whose numbers have fewer than 64 bits, for `RowTypeConstraint.from_fields`.

    >>> options_of_widths([("points", 32), ("total", 64)])
    {'points': [('penstock:bits', 32)]}
    """
    return {name: [(_BITS, bits)] for name, bits in widths if bits < 64}


def width_of_field(row: RowTypeConstraint, name: str) -> int:
    """Returns the number of bits of a field's numbers: 64, unless the source of the rows says otherwise.

    >>> row = RowTypeConstraint.from_fields([("points", int)], field_options=options_of_widths([("points", 32)]))
    >>> width_of_field(row, "points")
    32
    """
    return next((int(bits) for option, bits in row.field_options(name) if option == _BITS), 64)
