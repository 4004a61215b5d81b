"""Runs plans without Spark: the real lowering and the real workers, over frames that are lists of Arrow tables.

Frames are lazy, as Spark's are: one that is read twice and not kept is computed twice. `Settings` says what Spark is
free to choose: the number of partitions, which keys share one, whose rows arrive first, and how many rows a worker gets
at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest import mock
from zlib import crc32

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import types
from pyspark.sql.pandas.types import to_arrow_schema

import penstock as beam
from penstock.graph import DriverList, Graph
from penstock.io.sink_transforms import SinkTransform
from penstock.options.spark import SparkOptions
from penstock_spark.compiler import Target, batch_plan, optimise
from penstock_spark.lowering import context, jobs, query, stage
from penstock_spark.plan.batch_plan import Plan
from penstock_spark.plan.stream_plan import StreamPlan
from penstock_spark.reports.metrics import take_snapshots
from penstock_spark.session.classic.accumulators import SnapshotParam
from penstock_spark.session.classic.backend import Accumulated
from penstock_spark.stages import stage as worker
from penstock_spark.worker.batch import dumps_with_code
from penstock_spark.worker.rows import GROUP_COLUMNS, NUMBER_COLUMNS, PARTITION_COLUMNS, SORT_COLUMNS

_TYPES = {"int": types.IntegerType, "bigint": types.LongType, "binary": types.BinaryType}


@dataclass(frozen=True)
class Settings:
    """The decisions of Spark, and of the runner; small inputs are cut here, so that tests see several bundles."""

    partitions: int = 2
    rows: int = 1000
    salt: bytes = b""
    quickest: int = 0  # The task whose rows arrive first in the next stage.
    without: Set[str] = frozenset()
    inline_values: int = 1


@dataclass(frozen=True, eq=False)
class _Column:
    name: str

    def __eq__(self, value: Any) -> Any:
        return self.name, value

    def cast(self, kind: str) -> _Column:
        return self


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

    @property
    def columns(self) -> list[str]:
        tables = self.tables()
        return tables[0].schema.names if tables else []

    def _then(self, step: Callable[[list[pa.Table]], list[pa.Table]]) -> Frame:
        return Frame(lambda: step(self.tables()), self.settings)

    def __getitem__(self, name: str) -> _Column:
        return _Column(name)

    def where(self, condition: tuple[str, Any]) -> Frame:
        name, value = condition
        return self._then(
            lambda tables: [table.filter(_mask(table[name].to_pylist(), value)) for table in tables]
        )

    def unionAll(self, other: Frame) -> Frame:
        return Frame(lambda: self.tables() + other.tables(), self.settings)

    def repartitionById(self, count: int, column: _Column) -> Frame:
        return self._spread(count, lambda row: row[column.name])

    def _spread(self, count: int, number: Callable[[dict[str, Any]], int]) -> Frame:
        def spread(tables: list[pa.Table]) -> list[pa.Table]:
            first = self.settings.quickest % len(tables)
            whole = pa.concat_tables(tables[first:] + tables[:first])
            numbers = [number(row) % count for row in whole.to_pylist()]
            return [whole.filter(_mask(numbers, part)) for part in range(count)]

        return self._then(spread)

    def mapInArrow(self, function: Callable[..., Any], schema: Any) -> Frame:
        wanted = to_arrow_schema(types.StructType.fromDDL(schema) if isinstance(schema, str) else schema)

        def task(partition: int, table: pa.Table) -> pa.Table:
            task_context = SimpleNamespace(partitionId=lambda: partition)
            with mock.patch.object(TaskContext, "get", return_value=task_context):
                batches = list(function(iter(table.to_batches(max_chunksize=self.settings.rows))))
            return pa.Table.from_batches([batch.cast(wanted) for batch in batches], wanted)

        return self._then(lambda tables: [task(number, table) for number, table in enumerate(tables)])

    def persist(self, level: Any) -> Frame:
        self.is_persistent = True
        return self

    def unpersist(self) -> Frame:
        self.kept = None
        return self

    def select(self, name: str) -> Frame:
        assert name == "*"
        return self._then(list)

    def toArrow(self) -> pa.Table:
        return pa.concat_tables(self.tables())

    collect = tables

    @property
    def write(self) -> Any:
        return SimpleNamespace(
            format=lambda name: SimpleNamespace(mode=lambda mode: SimpleNamespace(save=self.tables))
        )


def _mask(values: list[Any], wanted: Any) -> pa.Array:
    return pa.array([value == wanted for value in values], pa.bool_())


def _frame_of_rows(rows: pa.Table, spark: _Session) -> Frame:
    return Frame(lambda: [rows], spark.settings)


def _select(frame: Frame, names: tuple[str, ...]) -> Frame:
    return frame._then(lambda tables: [table.select(names) for table in tables])


def _in_order(frame: Frame) -> Frame:
    return frame._then(lambda tables: [table.sort_by("sequence") for table in tables])


def _exchange(frame: Frame, count: int) -> Frame:
    def hashed(row: dict[str, Any]) -> int:
        return crc32(frame.settings.salt + repr([row[name] for name in PARTITION_COLUMNS]).encode())

    def in_order(table: pa.Table) -> pa.Table:
        rows = table.select(SORT_COLUMNS).to_pylist()
        # Spark puts nulls first.
        order = sorted(range(len(rows)), key=lambda i: [(v is not None, v) for v in rows[i].values()])
        return table.take(pa.array(order, pa.int64()))

    return frame._spread(count, hashed)._then(lambda tables: [in_order(table) for table in tables])


def _add_up(frame: Frame, in_order: bool) -> Frame:
    def added(whole: pa.Table) -> pa.Table:
        groups: dict[tuple[Any, ...], list[int]] = {}
        for row in whole.to_pylist():
            numbers = groups.setdefault(tuple(row[name] for name in GROUP_COLUMNS), [0, 0])
            numbers[:] = [so_far + row[name] for so_far, name in zip(numbers, NUMBER_COLUMNS, strict=True)]
        found = [(*group, *numbers) for group, numbers in groups.items()]
        if in_order:
            found.sort(key=lambda row: [(value is not None, value) for value in row])
        rows = list(zip(*found, strict=True))
        columns = rows or [()] * len(whole.schema)
        names = (*GROUP_COLUMNS, *NUMBER_COLUMNS)
        summed = [
            pa.array(each, whole.schema.field(name).type) for each, name in zip(columns, names, strict=True)
        ]
        return pa.table(summed, names)

    spread = frame._spread(frame.settings.partitions, lambda row: crc32(row["key"]))
    return spread._then(lambda tables: [added(table) for table in tables])


@dataclass
class _Accumulator:
    value: dict[Any, Any] = field(default_factory=dict)

    def add(self, snapshot: dict[Any, Any]) -> None:
        SnapshotParam().addInPlace(self.value, snapshot)


class Broadcast:
    """A value that all tasks of a process share."""

    def __init__(self, value: list[bytes]) -> None:
        self.value = value

    def destroy(self) -> None:
        """Nothing to do."""


class _Session:
    """The part of a SparkSession that lowering uses."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.sparkContext = SimpleNamespace(
            broadcast=Broadcast,
            getLocalProperty=lambda name: None,
            setLocalProperty=lambda name, value: None,
        )

    def range(self, start: int, end: int, step: int, partitions: int) -> Frame:
        assert (start, end, step) == (0, partitions, 1)
        return Frame(lambda: [pa.table({"id": [number]}) for number in range(partitions)], self.settings)


def plan_of(graph: Graph, without: Set[str] = frozenset()) -> Plan:
    """The runner's plan of a graph, without some optimisations."""
    target = Target(without=frozenset(without))
    return batch_plan(optimise(graph, target), target)


@contextmanager
def _without_spark() -> Iterator[None]:
    """Replaces the few calls of lowering that go to Java; this process is not a worker of its own."""
    with ExitStack() as stack:
        for owner, name, stand_in in (
            (types.StructType, "fromDDL", staticmethod(_struct)),
            (context, "select", _select),
            (stage, "frame_of_rows", _frame_of_rows),
            (stage, "select", _select),
            (stage, "exchange", _exchange),
            (stage, "sort_rows", _in_order),
            (stage, "add_up", _add_up),
            (jobs, "DataFrame", Frame),
            (worker, "collect_less_often", lambda: None),
        ):
            stack.enter_context(mock.patch.object(owner, name, stand_in))
        yield


def _struct(text: str) -> types.StructType:
    fields = [re.fullmatch(r"`?(\w+)`? (\w+)", field.strip()) for field in text.split(",")]
    return types.StructType([types.StructField(f[1], _TYPES[f[2]]()) for f in fields if f])


def run_plain(
    pipeline: beam.Pipeline | Plan, settings: Settings = Settings(), counted: frozenset[int] = frozenset()
) -> dict[Any, Any]:
    """Runs a pipeline and returns its metrics; an exception of user code leaves as a `StepFailure`."""
    without = frozenset(settings.without)
    if isinstance(pipeline, Plan):
        plan = pipeline
    else:
        without |= pipeline.options.view_as(SparkOptions).switched_off()
        plan = plan_of(pipeline.to_graph(), without)
    carried = _context(settings, without)
    with _without_spark():
        jobs.run_plan(plan, carried, counted)
    return take_snapshots(carried.metrics, "run")


def views_of(plan: StreamPlan) -> context.Context:
    """Computes the bounded side inputs of a query; the context has them, and what was counted."""
    carried = _context(Settings(), frozenset())
    with _without_spark():
        query.compute_views(plan, carried)
    return carried


def _context(settings: Settings, without: Set[str]) -> context.Context:
    return context.Context(
        _Session(settings),  # type: ignore[arg-type]
        "run",
        Accumulated(_Accumulator()),  # type: ignore[arg-type]
        settings.partitions,
        dumps_with_code,
        settings.inline_values,
        without=without,
    )


def collect(pcoll: beam.PCollection[Any], label: str = "Collect") -> list[Any]:
    """The list that holds the elements of a PCollection once the pipeline has run."""
    into: list[Any] = []
    pcoll | label >> SinkTransform(DriverList(into))
    return into


def collect_timed(pcoll: beam.PCollection[Any], label: str = "Collect") -> list[Any]:
    """The elements with (element, microseconds, window) for each window of each element."""
    return collect(pcoll | f"{label} seen" >> beam.ParDo(_See()), label)


class _See(beam.DoFn):
    def process(self, element, at=beam.DoFn.TimestampParam, window=beam.DoFn.WindowParam):
        yield element, at.micros, window
