"""Cases of queries, which are text files that anybody can add to: tables, queries over them, and the rows they give.

A file of ``tests/sql/queries`` is read line by line. Lines that begin with ``#`` are comments, and empty lines end what
stands before them::

    table goals: team STRING, points INT
    ["blue", 3]
    ["red", null]

    query: sums of teams
    SELECT team, SUM(points) AS total FROM goals GROUP BY team
    rows: team, total
    ["blue", 3]
    ["red", null]

A row is a JSON list. A time is written as ``"2026-01-01T12:00:00Z"``, and a decimal as a text; ``NaN`` is a number. The
rows of a result have no order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import penstock as beam
from penstock.typehints.row_type import RowTypeConstraint

FOLDER = Path(__file__).with_name("queries")

_TYPES: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "BIGINT": (int, int),
    "BOOLEAN": (bool, bool),
    "DECIMAL": (Decimal, Decimal),
    "DOUBLE": (float, float),
    "INT": (int, int),
    "STRING": (str, str),
    "TIMESTAMP": (datetime, datetime.fromisoformat),
}
"""The types of columns: in Python, and how a value is made of that in JSON."""


@dataclass(frozen=True)
class Table:
    """A table of a file.

    Attributes:
        columns: Pairs of a name and a SQL type.
        rows: Its rows.
    """

    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Any, ...], ...]

    @property
    def spark_schema(self) -> str:
        """The columns as Spark writes them."""
        return ", ".join(
            f"{name} {kind.replace('DECIMAL', 'DECIMAL(38, 18)')}" for name, kind in self.columns
        )

    @property
    def row_type(self) -> RowTypeConstraint:
        """The columns as penstock writes them; each may be NULL."""
        return RowTypeConstraint.from_fields([(name, _TYPES[kind][0] | None) for name, kind in self.columns])

    def create(self) -> beam.PTransform[Any, Any]:
        """A transform that gives the rows."""
        names = [name for name, _ in self.columns]
        rows = [beam.Row(**dict(zip(names, row, strict=True))) for row in self.rows]
        return beam.Create(rows, reshuffle=False).with_output_types(self.row_type)


@dataclass(frozen=True)
class Case:
    """A query and what it gives.

    Attributes:
        name: The file, and the name in it.
        tables: The tables of the file.
        query: The query.
        columns: The names of the columns of the result.
        rows: The rows of the result, as `shown` gives them.
    """

    name: str
    tables: dict[str, Table]
    query: str
    columns: tuple[str, ...]
    rows: list[str]

    @property
    def read(self) -> dict[str, Table]:
        """The tables that the query names."""
        return {name: table for name, table in self.tables.items() if re.search(rf"\b{name}\b", self.query)}


@dataclass
class _File:
    """A file as far as it is read."""

    name: str
    tables: dict[str, Table] = field(default_factory=dict)
    cases: list[Case] = field(default_factory=list)

    def add(self, block: list[str]) -> None:
        """Adds a table or a case.

        Raises:
            ValueError: The lines are neither.
        """
        word, _, rest = block[0].partition(" ")
        if word == "table":
            name, _, columns = rest.partition(":")
            pairs = tuple((column.split()[0], column.split()[1]) for column in columns.split(","))
            made = [_TYPES[kind][1] for _, kind in pairs]
            self.tables[name.strip()] = Table(pairs, tuple(_values(line, made) for line in block[1:]))
        elif word == "query:":
            [end] = [number for number, line in enumerate(block) if line.startswith("rows:")]
            columns = tuple(column.strip() for column in block[end].removeprefix("rows:").split(","))
            rows = sorted(json.dumps(json.loads(line)) for line in block[end + 1 :])
            query = "\n".join(block[1:end])
            self.cases.append(Case(f"{self.name}: {rest}", self.tables, query, columns, rows))
        else:
            raise ValueError(f"{self.name}: neither a table nor a query: {block[0]!r}")


def _values(line: str, made: list[Callable[[Any], Any]]) -> tuple[Any, ...]:
    return tuple(
        None if value is None else make(value) for make, value in zip(made, json.loads(line), strict=True)
    )


def cases_of(name: str, text: str) -> list[Case]:
    """The cases of a file.

    >>> [case] = cases_of("a", "table t: n INT\\n[1]\\n\\nquery: all\\nSELECT n FROM t\\nrows: n\\n[1]\\n")
    >>> case.name, case.query, case.rows, case.read["t"].rows
    ('a: all', 'SELECT n FROM t', ['[1]'], ((1,),))
    """
    found = _File(name)
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("#"):
            continue
        if line.strip():
            block.append(line)
        elif block:
            found.add(block)
            block = []
    return found.cases


def shown(rows: Iterable[Any]) -> list[str]:
    """The rows of a result as a file has them, in order.

    >>> shown([(Decimal("1.50"), None), (-0.0, float("nan"))])
    ['["1.50", null]', '[-0.0, NaN]']
    """
    return sorted(json.dumps([_in_json(value) for value in row]) for row in rows)


def _in_json(value: Any) -> Any:
    match value:
        case datetime():
            zoned = value if value.tzinfo else value.replace(tzinfo=UTC)
            return zoned.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case Decimal():
            return str(value)
        case _:
            return value


CASES = [
    case
    for file in sorted(FOLDER.glob("*.txt"))
    for case in cases_of(file.stem, file.read_text(encoding="utf-8"))
]
"""All cases."""
