"""TPC-H and TPC-DS at a small scale: tables as Parquet, the queries as they are written, and DuckDB's answers.

The tables are made once for each scale, in a folder of the system's temporary files, and found there later.

How to use it::

    bench = tpc_h(0.01)
    bench.queries[18]              # the text; bench.for_spark[18] with names in backticks
    bench.paths["orders"]          # the Parquet file
    bench.columns["orders"]        # the names of its columns, with DuckDB's types
    bench.rows("orders")           # its rows, as tuples
    bench.answer(18)               # DuckDB's rows for query 18, or for a text
    bench.answer(18, orders="o_orderkey < 1000", lineitem="l_orderkey < 1000")     # the same for the rows so far
    assert differences(bench.answer(18), found) == []

`tpc_ds(0.01)` is the same for TPC-DS.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb

Row = tuple[Any, ...]

# Spark orders NULLs so, and a LIMIT depends on it.
_SETTINGS = "SET default_null_order = 'nulls_first_on_asc_last_on_desc'"
_NEAR = 1e-9
_QUOTIENTS = {
    "tpcds": {66: (r"sum\((\w+_sales/w_warehouse_sq_ft)\)", r"sum(CAST(\1 AS DECIMAL(38, 6)))")},
}
"""The sums of quotients in queries, and the same sums of rounded ones."""


@dataclass(frozen=True)
class Benchmark:
    """One benchmark at one scale.

    Attributes:
        paths: The Parquet file of each table.
        queries: The text of each query, by its number.
        rounded: Other texts for DuckDB, which divides decimals as floats, of queries that add up quotients: each of
            these has the digits that it has in Spark.
    """

    paths: dict[str, Path]
    queries: dict[int, str]
    rounded: dict[int, str]

    @property
    def for_spark(self) -> dict[int, str]:
        """The queries, where names in double quotes, which are strings for Spark, are in backticks."""
        return {number: re.sub('"([^"]*)"', r"`\1`", text) for number, text in self.queries.items()}

    @property
    def columns(self) -> dict[str, list[tuple[str, str]]]:
        """The names and DuckDB's types of the columns of each table."""
        with self.database() as database:
            return {
                table: [(name, kind) for name, kind, *_ in database.execute(f"DESCRIBE {table}").fetchall()]
                for table in self.paths
            }

    def rows(self, table: str, where: str = "TRUE") -> list[Row]:
        """The rows of a table for which a condition holds, in the order of its file."""
        with self.database() as database:
            return database.execute(f"SELECT * FROM {table} WHERE {where}").fetchall()

    def answer(self, query: int | str, **where: str) -> list[Row]:
        """DuckDB's rows for a query, in their order.

        Args:
            query: Its number, or a text.
            where: A condition for rows, by the name of a table; without one, all rows are there.
        """
        with self.database(**where) as database:
            text = self.rounded.get(query, self.queries[query]) if isinstance(query, int) else query
            return database.execute(text).fetchall()

    def database(self, **where: str) -> duckdb.DuckDBPyConnection:
        """A database with a view for each table, of its rows for which a condition holds."""
        database = duckdb.connect()
        database.execute(_SETTINGS)
        for table, path in self.paths.items():
            condition = where.get(table, "TRUE")
            database.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{path}') WHERE {condition}")
        return database


@cache
def tpc_h(scale: float = 0.01) -> Benchmark:
    """TPC-H; a scale of 1 has 6,000,000 items."""
    return _benchmark("tpch", "dbgen", scale)


@cache
def tpc_ds(scale: float = 0.01) -> Benchmark:
    """TPC-DS; a scale of 1 has 2,880,000 sales in stores."""
    return _benchmark("tpcds", "dsdgen", scale)


def _benchmark(extension: str, generator: str, scale: float) -> Benchmark:
    with duckdb.connect() as database:
        database.execute(f"LOAD '{extension_of(extension)}'")
        queries = dict(database.execute(f"SELECT query_nr, query FROM {extension}_queries()").fetchall())
        folder = Path(tempfile.gettempdir(), "penstock_tpc", f"{extension}-{duckdb.__version__}-{scale}")
        if not folder.is_dir():
            database.execute(f"CALL {generator}(sf = {scale})")
            _write_tables(database, folder)
    paths = {path.stem: path for path in sorted(folder.glob("*.parquet"))}
    rounded = {
        number: re.sub(*quotient, queries[number])
        for number, quotient in _QUOTIENTS.get(extension, {}).items()
    }
    return Benchmark(paths, queries, rounded)


def extension_of(name: str) -> Path:
    """The file of an extension of DuckDB, ``tpch`` or ``tpcds``, in its package."""
    module = import_module(f"duckdb_extension_{name}")
    [path] = Path(str(module.__file__)).parent.rglob("*.duckdb_extension")
    return path


def _write_tables(database: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Writes each table, or nothing if another process is quicker."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.parent))
    for (table,) in database.execute("SELECT table_name FROM duckdb_tables()").fetchall():
        database.execute(f"COPY {table} TO '{made / table}.parquet' (FORMAT parquet)")
    try:
        os.rename(made, folder)
    except OSError:
        shutil.rmtree(made)


def differences(expected: Iterable[Sequence[Any]], found: Iterable[Sequence[Any]]) -> list[str]:
    """Returns what differs between two results as bags of rows, as text; an empty list if nothing does.

    Decimals and integers are equal if their values are. DuckDB divides and averages decimals as floats: such a
    value is equal to a decimal that is the nearest one with its number of digits. Floats differ in their last bits.

    >>> differences([(1, 0.3333333333)], [(Decimal("1.0"), Decimal("0.333333"))])
    []
    >>> differences([(1, 0.3333333333)], [(1, Decimal("0.333334"))])
    ["(1, 0.3333333333) expected, (1, Decimal('0.333334')) found"]
    """
    wanted, given = sorted(map(tuple, expected), key=_order), sorted(map(tuple, found), key=_order)
    if len(wanted) != len(given):
        return [f"{len(wanted)} rows expected, {len(given)} found"]
    return [
        f"{mine} expected, {other} found"
        for mine, other in zip(wanted, given, strict=True)
        if len(mine) != len(other) or not all(map(_is_equal, mine, other))
    ]


def _order(row: Row) -> tuple[Any, ...]:
    """Orders rows by what is exact first, and then by their numbers."""
    exact = tuple("" if _is_number(value) else repr(value) for value in row)
    numbers = tuple(
        (value is not None, float(value or 0)) for value in row if _is_number(value) or value is None
    )
    return exact, numbers


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _is_equal(wanted: Any, given: Any) -> bool:
    if not (_is_number(wanted) and _is_number(given)):
        return bool(wanted == given)
    floats = [isinstance(each, float) for each in (wanted, given)]
    if not any(floats):
        return bool(wanted == given)
    if math.isclose(wanted, given, rel_tol=_NEAR):
        return True
    if all(floats) or isinstance(given, float):
        return False
    step = Decimal(1).scaleb(int(given.as_tuple().exponent)) if isinstance(given, Decimal) else Decimal(1)
    return bool(abs(Decimal(wanted) - given) <= step / 2 * (1 + Decimal(_NEAR)))
