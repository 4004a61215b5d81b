"""The generators whose rows the query lists: values in rows, and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from penstock.scalars.resolving import SqlTypeError, cast
from penstock.scalars.row_functions import Projection
from penstock.scalars.tree import Literal, Scalar
from penstock.scalars.types import BIGINT, NULL, find_common_type
from penstock.sql.generators.generator import Arguments, Generator
from penstock.sql.plan.relations import ColumnDef, Columns


def _stack(arguments: Arguments) -> tuple[Arguments, Columns]:
    count = arguments[0] if arguments else None
    values = arguments[1:]
    rows = count.value if isinstance(count, Literal) else None
    if not isinstance(rows, int) or isinstance(rows, bool) or rows < 1 or not values:
        what = "STACK takes a number of rows, 1 or more, and values"
        raise SqlTypeError(what, "write STACK(2, a, b, c, d) for two rows of two columns")
    width = -(-len(values) // rows)
    missing = Literal(None, NULL)
    filled = [*values, *[missing] * (rows * width - len(values))]
    columns = []
    for at in range(width):
        of_column = filled[at::width]
        names = {each.type.or_null() for each in of_column if each.type.name != "NULL"}
        if len(names) > 1:
            shown = " and ".join(sorted(map(str, names)))
            what = f"column {at + 1} of STACK has values of different types: {shown}"
            raise SqlTypeError(what, "CAST them to one type")
        kind = find_common_type(each.type for each in of_column)
        assert kind is not None
        columns.append(ColumnDef(f"col{at}", kind))
    cells: list[Scalar] = [cast(each, columns[at % width].type) for at, each in enumerate(filled)]
    return tuple(cells), tuple(columns)


def _stacked_rows(values: Sequence[Any], width: int) -> Iterable[tuple[Any, ...]]:
    return (tuple(values[at : at + width]) for at in range(0, len(values), width))


def _range(arguments: Arguments) -> tuple[Arguments, Columns]:
    if not 1 <= len(arguments) <= 4:
        what = f"RANGE takes an end, or a start, an end and a step, not {len(arguments)} values"
        raise SqlTypeError(what, "write RANGE(1, 10) for the numbers from 1 to 9")
    numbers = [_whole(each) for each in arguments]
    if len(numbers) == 1:
        numbers.insert(0, 0)
    start, end, step = (*numbers, 1)[:3]
    if not step:
        raise SqlTypeError("the step of RANGE is 0", "write 1, or -1 for numbers that fall")
    bounds = tuple(Literal(each, BIGINT.or_null(False)) for each in (start, end, step))
    return bounds, (ColumnDef("id", BIGINT.or_null(False)),)


def _whole(argument: Scalar) -> int:
    try:
        [found] = Projection((cast(argument, BIGINT),))(())
    except ArithmeticError:
        found = None
    if not isinstance(found, int):
        raise SqlTypeError(f"RANGE takes integers, not {argument}", "write RANGE(1, 10)")
    return found


def _numbers(values: Sequence[Any], width: int) -> Iterable[tuple[Any, ...]]:
    return zip(range(*values), strict=True)


GENERATORS = (
    Generator("STACK", _stack, _stacked_rows, "STACK({rows}, {all})", constants=1),
    Generator("RANGE", _range, _numbers, "RANGE({all})", in_from_only=True, has_outer=False, constants=4),
)
"""The records."""
