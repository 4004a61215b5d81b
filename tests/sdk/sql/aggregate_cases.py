"""The cases of aggregates, which are lines of a text: calls and their values over four groups of rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from penstock.scalars.row_functions import Projection
from penstock.scalars.types import SqlType, decimal_type
from penstock.sql.binding.queries import bind
from penstock.sql.binding.statement import Tables
from penstock.sql.execution.aggregating import SqlAggregates, argument_of
from penstock.sql.plan.relations import Aggregate, ColumnDef, skip_projections

COLUMNS: Mapping[str, SqlType] = {
    "k": SqlType("STRING"),
    "u": SqlType("BIGINT"),
    "n": SqlType("BIGINT"),
    "m": SqlType("BIGINT"),
    "x": SqlType("DOUBLE"),
    "d": decimal_type(6, 2),
    "b": SqlType("BOOLEAN"),
    "s": SqlType("STRING"),
    "i": SqlType("INTERVAL"),
    "t": SqlType("TIMESTAMP"),
}
"""The columns of the table; `k` is the key, and `u` is another number in each row."""


def _row(k: str, u: int, *values: Any) -> tuple[Any, ...]:
    n, m, x, d, b, s, minutes, day = values
    return (
        *(k, u, n, m, x, None if d is None else Decimal(d), b, s),
        None if minutes is None else timedelta(minutes=minutes),
        None if day is None else datetime(2026, 1, day, tzinfo=UTC),
    )


ROWS = (
    _row("a", 1, 1, 1, 1.5, "1.25", True, "x", 1440, 3),
    _row("a", 2, 2, 6, 2.5, "2.50", False, "y", 120, 1),
    _row("a", 3, 4, 3, -1.0, None, None, None, None, None),
    _row("a", 4, 4, None, 0.1, "9.99", True, "x", 3, 2),
    _row("b", 5, 7, 2, math.nan, "7.77", True, "z", 5, 9),
    _row("c", 6, None, None, None, None, None, None, None, None),
    _row("d", 7, 5, 8, 2.0, "1.00", False, "q", 1440, 4),
    _row("d", 8, 6, 8, 2.0, "2.00", False, "r", 1440, 4),
    _row("d", 9, 9, 8, 2.0, "4.00", False, "r", 1440, 5),
)
"""The rows: a group of several, one of one row, one of nothing but NULL, and one with equal values."""
GROUPS = ("a", "b", "c", "d")
_ONLY_HERE = "only here:"


class Case(NamedTuple):
    """A call and its values.

    Attributes:
        call: An aggregate, or an expression of some.
        values: An expression of the value of each group.
        is_of_spark: Whether Spark has it, too.
    """

    call: str
    values: tuple[str, ...]
    is_of_spark: bool


def _case(line: str) -> Case:
    call, values = line.removeprefix(_ONLY_HERE).split(" -> ")
    return Case(
        call.strip(), tuple(each.strip() for each in values.split(" | ")), not line.startswith(_ONLY_HERE)
    )


CASES = [
    _case(line)
    for line in Path(__file__).with_name("aggregate_cases.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
"""All cases."""


class Read(NamedTuple):
    """A call as the plan has it: the grouping, and what makes the row of its result."""

    aggregate: Aggregate
    project: Projection

    @property
    def type(self) -> SqlType:
        return self.project.scalars[-1].type


def read(call: str) -> Read:
    """Binds a call over the table."""
    tables = Tables({"rows": tuple(ColumnDef(*each) for each in COLUMNS.items())}, {}, {})
    [project], aggregate = skip_projections(
        bind(f"SELECT k, {call} AS r FROM rows GROUP BY k", tables).relation
    )
    assert isinstance(aggregate, Aggregate)
    return Read(aggregate, Projection(project.scalars))


def values_of(
    call: str,
    changes: Iterable[tuple[int, tuple[Any, ...]]],
    retracts: bool = False,
    parts: int = 1,
) -> dict[str, Any]:
    """Returns the value of a call for each group.

    Args:
        call: The call.
        changes: Signs and rows.
        retracts: Whether signs may be -1.
        parts: In how many parts the rows come, which are merged.
    """
    aggregate, project = read(call)
    arguments = Projection(tuple(map(argument_of, aggregate.calls)))
    combine = SqlAggregates(aggregate.calls, retracts)
    held: dict[str, list[Any]] = {}
    for number, (sign, row) in enumerate(changes):
        own = held.setdefault(row[0], [combine.create_accumulator() for _ in range(parts)])
        change = combine.add_input if sign > 0 else combine.subtract_input
        own[number % parts] = change(own[number % parts], arguments(row))
    found = {}
    for key, own in held.items():
        merged = combine.merge_accumulators(own) if parts > 1 else own[0]
        _, *results = combine.extract_output(merged)
        found[key] = project((key, *results))[1]
    return found
