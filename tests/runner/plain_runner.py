"""Runs plans without Spark: the real lowering and the real workers, over frames that are lists of Arrow tables.

Frames are lazy, as Spark's are: one that is read twice and not kept is computed twice. `Settings` says what Spark is
free to choose: the number of partitions, which keys share one, and how many rows a worker gets at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest import mock
from zlib import crc32

import cloudpickle
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import types
from pyspark.sql.pandas.types import to_arrow_schema

import penstock as beam
from penstock.graph import DriverList, Graph
from penstock.io.primitive import SinkTransform
from penstock_spark.lowering.context import Context
from penstock_spark.lowering.jobs import run_plan
from penstock_spark.metrics import SnapshotParam, take_snapshots
from penstock_spark.passes import optimise
from penstock_spark.passes.choose import choose
from penstock_spark.passes.fuse import fuse
from penstock_spark.plan import Plan

_TYPES = {"int": types.IntegerType, "bigint": types.LongType, "binary": types.BinaryType}


@dataclass(frozen=True)
class Settings:
    """What Spark decides."""

    partitions: int = 2
    rows: int = 1000
    salt: bytes = b""


@dataclass(frozen=True, eq=False)
class _Column:
    name: str
    new_name: str

    def __eq__(self, value: Any) -> Any:
        return self.name, value

    def cast(self, kind: str) -> _Column:
        return self

    def alias(self, name: str) -> _Column:
        return _Column(self.name, name)


@dataclass(eq=False)
class Frame:
    """The part of Spark's DataFrame that lowering uses."""

    compute: Callable[[], list[pa.Table]]
    settings: Settings
    kept: list[pa.Table] | None = None
    is_persistent: bool = False

    def tables(self) -> list[pa.Table]:
        tables = self.compute() if self.kept is None else self.kept
        if self.is_persistent:
            self.kept = tables
        return tables

    def _then(self, step: Callable[[list[pa.Table]], list[pa.Table]]) -> Frame:
        return Frame(lambda: step(self.tables()), self.settings)

    def __getitem__(self, name: str) -> _Column:
        return _Column(name, name)

    def select(self, *columns: Any) -> Frame:
        wanted = [self[column] if isinstance(column, str) else column for column in columns]
        names = [column.new_name for column in wanted]
        return self._then(
            lambda tables: [table.select([c.name for c in wanted]).rename_columns(names) for table in tables]
        )

    def where(self, condition: tuple[str, Any]) -> Frame:
        name, value = condition
        return self._then(
            lambda tables: [table.filter([each == value for each in table[name].to_pylist()]) for table in tables]
        )

    def unionAll(self, other: Frame) -> Frame:  # noqa: N802 - Spark's name.
        return Frame(lambda: self.tables() + other.tables(), self.settings)

    def repartition(self, count: int, *names: str) -> Frame:
        def number(row: dict[str, Any]) -> int:
            return crc32(self.settings.salt + repr([row[name] for name in names]).encode())

        return self._spread(count, number)

    def repartitionById(self, count: int, column: _Column) -> Frame:  # noqa: N802 - Spark's name.
        return self._spread(count, lambda row: row[column.name])

    def _spread(self, count: int, number: Callable[[dict[str, Any]], int]) -> Frame:
        def spread(tables: list[pa.Table]) -> list[pa.Table]:
            whole = pa.concat_tables(tables)
            numbers = [number(row) % count for row in whole.to_pylist()]
            return [whole.filter([each == part for each in numbers]) for part in range(count)]

        return self._then(spread)

    def sortWithinPartitions(self, *names: str) -> Frame:  # noqa: N802 - Spark's name.
        def in_order(table: pa.Table) -> pa.Table:
            rows = table.select(list(names)).to_pylist()
            # Spark puts nulls first.
            order = sorted(range(len(rows)), key=lambda i: [(v is not None, v) for v in rows[i].values()])
            return table.take(pa.array(order, pa.int64()))

        return self._then(lambda tables: [in_order(table) for table in tables])

    def mapInArrow(self, function: Callable[..., Any], schema: Any) -> Frame:  # noqa: N802 - Spark's name.
        wanted = to_arrow_schema(types.StructType.fromDDL(schema) if isinstance(schema, str) else schema)

        def task(partition: int, table: pa.Table) -> pa.Table:
            with mock.patch.object(TaskContext, "get", lambda: SimpleNamespace(partitionId=lambda: partition)):
                batches = list(function(iter(table.to_batches(max_chunksize=self.settings.rows))))
            return pa.Table.from_batches([batch.cast(wanted) for batch in batches], wanted)

        return self._then(lambda tables: [task(number, table) for number, table in enumerate(tables)])

    def persist(self, level: Any) -> Frame:
        self.is_persistent = True
        return self

    def unpersist(self) -> None:
        self.kept = None

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name.
        return pa.concat_tables(self.tables())

    collect = tables

    @property
    def write(self) -> Any:
        return SimpleNamespace(format=lambda name: SimpleNamespace(mode=lambda mode: SimpleNamespace(save=self.tables)))


@dataclass
class _Accumulator:
    value: dict[Any, Any] = field(default_factory=dict)

    def add(self, snapshot: dict[Any, Any]) -> None:
        SnapshotParam().addInPlace(self.value, snapshot)


class _Session:
    """The part of a SparkSession that lowering uses."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.sparkContext = SimpleNamespace(
            broadcast=lambda pages: SimpleNamespace(value=pages, destroy=lambda: None)
        )

    def range(self, start: int, end: int, step: int, partitions: int) -> Frame:
        assert (start, end, step) == (0, partitions, 1)
        return Frame(lambda: [pa.table({"id": [number]}) for number in range(partitions)], self.settings)


def plan_of(graph: Graph) -> Plan:
    """What the runner makes of a graph."""
    optimised = optimise(graph)
    return choose(optimised, fuse(optimised))


@contextmanager
def without_spark() -> Any:
    """Lets schemas be made without a JVM."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(types.StructType, "fromDDL", staticmethod(_struct)))
        yield


def _struct(text: str) -> types.StructType:
    fields = [re.fullmatch(r"`?(\w+)`? (\w+)", field.strip()) for field in text.split(",")]
    return types.StructType([types.StructField(f[1], _TYPES[f[2]]()) for f in fields if f])


def run_plain(pipeline: beam.Pipeline | Plan, settings: Settings = Settings()) -> dict[Any, Any]:
    """Runs a pipeline and gives its metrics; what user code raises leaves as a `StepFailed`."""
    plan = pipeline if isinstance(pipeline, Plan) else plan_of(pipeline.to_graph())
    metrics = _Accumulator()
    context: Any = Context(_Session(settings), "run", metrics, settings.partitions, cloudpickle.dumps)  # type: ignore
    with without_spark():
        run_plan(plan, context)
    return take_snapshots(metrics, "run")  # type: ignore[arg-type]


def collect(pcoll: beam.PCollection[Any], label: str = "Collect") -> list[Any]:
    """The list that holds (element, microseconds, windows) of a PCollection once the pipeline has run."""
    into: list[Any] = []
    pcoll | f"{label} seen" >> beam.ParDo(_See()) | label >> SinkTransform(DriverList(into))
    return into


class _See(beam.DoFn):
    def process(self, element, at=beam.DoFn.TimestampParam, window=beam.DoFn.WindowParam):
        yield element, at.micros, window
