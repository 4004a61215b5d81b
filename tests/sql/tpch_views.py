"""The queries of TPC-H as views over orders that come and go, as the refresh functions of the benchmark have them.

Orders and their items arrive in parts. A part inserts new orders (refresh function 1), and deletes some of the oldest
(refresh function 2). After each part, a view is what the same query returns by DuckDB over the rows so far.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter, namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import duckdb

import penstock as beam
from penstock.io import WriteToMemory
from penstock.testing.test_stream import TestStream
from penstock.transforms.sql import SqlTransform
from penstock.typehints.column_types import decimal_of
from penstock.typehints.row_type import RowTypeConstraint
from tests.shards.toy_query import ToyQuery
from tests.sql.relations import ComeOrGo
from tests.sql.tpc import Benchmark, differences

_KEYS = {"orders": "o_orderkey", "lineitem": "l_orderkey"}
"""The tables that change, and the columns that name orders."""


_LOOSER = (
    (r"(n_name) = '[^']+'", r"\1 > 'T'"),
    (r"(r_name|p_type|p_brand|p_container) = '[^']+'", r"\1 > 'A'"),
    (r"p_size = \d+", "p_size > 5"),
    (r"'%BRASS'|'forest%'|'%green%'", "'%'"),
    (r"> 300", "> 150"),
    (r"'199[345]-01-01'(?= AS date\)\s+AND o)", "'1992-01-01'"),
)


def loosen(query: str) -> str:
    """Returns a query whose conditions let through more rows, for tables that have few."""
    for pattern, instead in _LOOSER:
        query = re.sub(pattern, instead, query)
    return query


class Part(NamedTuple):
    """The orders that a part inserts and deletes, as places in `Parts.keys`."""

    inserted: range
    deleted: range


@dataclass(frozen=True)
class Parts:
    """The orders of a benchmark in parts.

    Attributes:
        bench: The tables and queries.
        number: How many parts there are.
        share: How many of the orders take part, of 1.
    """

    bench: Benchmark
    number: int
    share: float = 1.0

    @property
    def parts(self) -> list[Part]:
        """The parts: each one inserts as many orders, and from the second on deletes a third as many of the oldest."""
        count = int(len(_table(self.bench, "orders")) * self.share)
        each, deleted = count // self.number, count // self.number // 3
        return [
            Part(range(at * each, (at + 1) * each), range(max(0, at - 1) * deleted, at * deleted))
            for at in range(self.number)
        ]

    @property
    def keys(self) -> list[int]:
        """The keys of orders, mixed so that parts have orders of all times."""
        names = [name for name, _ in self.bench.columns["orders"]]
        place = names.index("o_orderkey")
        return sorted(
            (row[place] for row in _table(self.bench, "orders")), key=lambda key: (key * 7919) % 10007
        )


@cache
def _rows_of(path: str) -> list[tuple[Any, ...]]:
    return duckdb.sql(f"SELECT * FROM read_parquet('{path}')").fetchall()


def _table(bench: Benchmark, name: str) -> list[tuple[Any, ...]]:
    return _rows_of(str(bench.paths[name]))


def tables_of(bench: Benchmark, query: str) -> list[str]:
    """The tables that a query names."""
    return [name for name in bench.paths if re.search(rf"\b{name}\b", query)]


def row_type_of(bench: Benchmark, table: str) -> RowTypeConstraint:
    """The columns of a table, of which none may be NULL."""
    return RowTypeConstraint.from_fields([(name, _hint_of(kind)) for name, kind in bench.columns[table]])


def _hint_of(kind: str) -> Any:
    if found := re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", kind):
        return decimal_of(int(found[1]), int(found[2]))
    return {"BIGINT": int, "INTEGER": int, "VARCHAR": str, "DATE": datetime.date}[kind]


def play(parts: Parts, text: str, shards: int = 2) -> Iterator[tuple[list[str], int]]:
    """Plays the view of a query, part by part.

    Yields:
        What differs between the net of the view and DuckDB's rows after each part, and how many rows it has.
    """
    pipeline = beam.Pipeline()
    changes = _streams(parts, pipeline, tables_of(parts.bench, text)) | SqlTransform(text)
    changes | beam.Changelog() | WriteToMemory([])
    toy = ToyQuery(pipeline, "streaming", shards)
    net: Counter[tuple[Any, ...]] = Counter()
    for wanted in _answers(parts, text):
        for kind, row in (each for sink in toy.batch().values() for each in sink):
            net[tuple(row)] += -1 if kind.is_retraction else 1
        assert min(net.values(), default=0) >= 0
        rows = list(net.elements())
        yield differences(wanted, rows), len(rows)


def _streams(parts: Parts, pipeline: beam.Pipeline, tables: list[str]) -> dict[str, Any]:
    stream = TestStream(output_tags=tables)
    changes = {name: _changes_of(parts, name) for name in tables if name in _KEYS}
    for number in range(parts.number):
        for name in tables:
            if name in _KEYS:
                found = changes[name][number]
            else:
                found = [(1, row) for row in _table(parts.bench, name)] if number == 0 else []
            if found:
                stream = stream.add_elements(found, name)
        stream = stream.end_micro_batch()
    for name in tables:
        stream = stream.advance_watermark_to_infinity(name)
    read = pipeline | stream
    return {
        name: read[name]
        | f"Rows of {name}"
        >> beam.ParDo(ComeOrGo(_kind_of(parts.bench, name), name in _KEYS)).with_output_types(
            row_type_of(parts.bench, name)
        )
        for name in tables
    }


def _kind_of(bench: Benchmark, table: str) -> Any:
    """The class of the rows of a table."""
    return namedtuple(table, [name for name, _ in bench.columns[table]])


def _changes_of(parts: Parts, table: str) -> list[list[tuple[int, tuple[Any, ...]]]]:
    """The signs and rows of a table that each part inserts and deletes."""
    names = [name for name, _ in parts.bench.columns[table]]
    place = names.index(_KEYS[table])
    of_order: dict[int, list[tuple[Any, ...]]] = {}
    for row in _table(parts.bench, table):
        of_order.setdefault(row[place], []).append(row)
    keys = parts.keys
    return [
        [(-1, row) for at in part.deleted for row in of_order.get(keys[at], ())]
        + [(1, row) for at in part.inserted for row in of_order.get(keys[at], ())]
        for part in parts.parts
    ]


def _answers(parts: Parts, text: str) -> Iterator[list[tuple[Any, ...]]]:
    """DuckDB's rows for a query after each part."""
    keys, there = parts.keys, set()
    with duckdb.connect() as database:
        database.execute("SET threads = 1")
        database.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        database.execute("CREATE TABLE present (key BIGINT)")
        for name in tables_of(parts.bench, text):
            where = f" WHERE {_KEYS[name]} IN (SELECT key FROM present)" if name in _KEYS else ""
            path = parts.bench.paths[name]
            database.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{path}'){where}")
        for part in parts.parts:
            there |= {keys[at] for at in part.inserted}
            there -= {keys[at] for at in part.deleted}
            database.execute("DELETE FROM present")
            listed = ",".join(f"({key})" for key in sorted(there))
            database.execute(f"INSERT INTO present VALUES {listed}")
            yield database.execute(text).fetchall()
