"""Spark's own aggregate in a simulated query: columns, or parts of sums, and the watermark that Spark keeps of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from types import SimpleNamespace
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.io.streaming.stream_sources import StreamSource
from penstock_spark.files.whole_files import CheckFiles
from penstock_spark.lowering import native_stream, stream_times
from penstock_spark.plan.column_plan import Combined, Windowed, apply_to_table, event_time_field
from penstock_spark.plan.spark_watermark import END_MICROS, SHIFT_MICROS
from penstock_spark.reports.failure import fail_step
from penstock_spark.sources.scan import StreamScan
from penstock_spark.stream.sources.sums import MOVES, SUMS
from penstock_spark.worker.column_read import ColumnReader
from penstock_spark.worker.rows import GROUP_COLUMNS, NUMBER_COLUMNS
from tests.runner.native_host import Group, Sums
from tests.simulation.simulated_disk import File, Folder, plain
from tests.simulation.simulated_spark import Files, Planned, Rows, Stream
from tests.simulation.simulated_world import START_MICROS

_NEVER_MICROS = END_MICROS
"""When a group is over that no watermark ends."""

_WRONG = 100
"""What Spark reads in place of a number that a later file has in another type."""

_SECOND_MICROS = 1_000_000
Values = dict[str, Any]
"""The columns of a row by their names; a row without a group has none but the time that moves the watermark."""


class Score(NamedTuple):
    """A row of a file with columns."""

    key: str
    value: int
    at: int


@dataclass(frozen=True, eq=False)
class Aggregate:
    """The aggregate of a query: how rows become groups and numbers, and groups become columns."""

    group_of: Callable[[Values], tuple[Group, tuple[int, ...]]]
    columns_of: Callable[[Sums], Values]
    kinds: pa.Schema  # The types of these columns.
    watermark: Watermark | None  # None if no group is ever over.
    null: str = ""  # The column that has no value in rows that are grouped.
    names: tuple[str, ...] = ()  # The columns in the order of a sink that takes them.

    def values_of(self, row: Any) -> Values:
        """A row of a source, or of the tasks that read it."""
        return row if isinstance(row, dict) else dict(zip(SUMS.names, row, strict=True))

    def is_grouped(self, row: Values) -> bool:
        """True unless a row only moves the watermark."""
        return row[self.null] is None if self.null else row is not _END

    def moved(self, watermark_micros: int, rows: Sequence[Values]) -> int:
        """The watermark that Spark has after some rows."""
        seen = [row[MOVES] for row in rows if row[MOVES] is not None]
        if self.watermark is None or not seen:
            return watermark_micros
        return max(watermark_micros, (max(seen) // 1_000 - self.watermark.delay_millis) * 1_000)

    def record(self, emitted: Sums, clock_micros: int) -> pa.RecordBatch:
        """The columns that a task of Python gets."""
        columns = {name: pa.array(self.columns_of(emitted)[name], kind) for name, kind in _named(self.kinds)}
        clock = pa.array([clock_micros] * len(emitted), pa.int64())
        return pa.RecordBatch.from_arrays([*columns.values(), clock], names=[*columns, "clock"])


def _named(schema: pa.Schema) -> list[tuple[str, pa.DataType]]:
    return list(zip(schema.names, schema.types, strict=True))


# Spark's columns, as far as the lowering of native streams names them.


@dataclass(frozen=True)
class InCommand:
    """A condition on a field of a line of JSON."""

    field: str
    wanted: tuple[str, ...]

    def where(self, stream: Stream) -> Stream:
        """The rows of a source of lines that have one of the wanted values."""
        [source] = stream.sources
        assert isinstance(source, Files)

        def to_rows(clock_micros: int, line: str) -> list[Any]:
            return [_END] if json.loads(line)[self.field] in self.wanted else []

        source.to_rows = to_rows
        return stream


@dataclass(frozen=True)
class IsNull:
    """A condition on a column."""

    column: str

    def where(self, stream: Stream) -> Stream:
        """The rows without a value there; the others only move the watermark."""
        return replace(stream, null=self.column)


_END: Values = {MOVES: END_MICROS}


def _col(name: str) -> Any:
    return SimpleNamespace(isNull=lambda: IsNull(name))


def _get_json_object(column: str, path: str) -> Any:
    name = path.removeprefix("$.")
    return SimpleNamespace(isin=lambda *wanted: InCommand(name, wanted))


FUNCTIONS = SimpleNamespace(col=_col, get_json_object=_get_json_object)
"""The functions of ``pyspark.sql`` that it calls."""


def read_stream(session: Any) -> Any:
    """Spark's reader of lines of files."""

    def load(location: str) -> Stream:
        return Stream(session, (Files(folder=plain(location)),))

    return SimpleNamespace(format=lambda name: SimpleNamespace(load=load))


class Watermark(stream_times.Watermark):
    """What a lowered stream knows of its watermark, and how rows of sources move it."""

    @property
    def delay_millis(self) -> int:
        return self._delay_millis

    def kept_over_parts(self, rows: Any) -> Any:
        return replace(rows, sources=(*rows.sources, *self.ends.sources), watermark=self)  # type: ignore[attr-defined]

    def over_micros(self, start_micros: int) -> int:
        """The watermark at which a window is over that begins at a time."""
        return start_micros + self._from_start

    def of_element(self, micros: int, clock_micros: int) -> int | None:
        """The time by which an element moves the watermark; None if it is too far ahead of the clock."""
        is_ahead = self.max_ahead_micros is not None and micros > clock_micros + self.max_ahead_micros
        return None if is_ahead else micros + SHIFT_MICROS


def add_up(stream: Stream, keys: tuple[str, ...]) -> Stream:
    """The sums of parts that Python has made."""
    watermark = stream.watermark
    assert keys == (GROUP_COLUMNS if watermark is None else (*GROUP_COLUMNS, "x")), keys

    def group_of(row: Values) -> tuple[Group, tuple[int, ...]]:
        over_micros = _NEVER_MICROS
        if watermark is not None:
            # Their first bound is the end of the window.
            over_micros = watermark.over_micros(row["first"] - watermark.size_micros)
        key = tuple(row[name] for name in GROUP_COLUMNS)
        return Group(key, over_micros), tuple(row[name] for name in NUMBER_COLUMNS)

    def columns_of(emitted: Sums) -> Values:
        rows = [(*group.key, *numbers) for group, numbers in emitted.items()]
        names = (*GROUP_COLUMNS, *NUMBER_COLUMNS)
        return {name: [row[place] for row in rows] for place, name in enumerate(names)}

    kinds = pa.schema([SUMS.field(name) for name in (*GROUP_COLUMNS, *NUMBER_COLUMNS)])
    return replace(stream, aggregate=Aggregate(group_of, columns_of, kinds, watermark, stream.null))


def select(stream: Stream, names: tuple[str, ...]) -> Stream:
    """The columns that the aggregate has."""
    assert stream.aggregate is not None
    assert names == tuple(stream.aggregate.kinds.names), names
    return stream


def lower_columns(columns: Any, frame: Stream, in_order: bool, times: Any) -> tuple[Stream, ColumnReader]:
    """A grouping of columns, and how Python reads what it emits."""
    table = _table_after(columns)
    reader = ColumnReader(
        tuple(name for name, _ in table.fields), table.records, table.time, table.windowfn, is_combined=True
    )
    return _grouped(columns, frame, times), reader


def columns_for(columns: Any, frame: Stream, schema: Any, where: str, times: Any) -> Stream:
    """A grouping of columns, in the schema of a sink that takes them."""
    grouped = _grouped(columns, frame, times)
    places = {name: f"c{place}" for place, (name, _) in enumerate(_table_after(columns).fields)}
    assert grouped.aggregate is not None
    names = tuple(places[field.name] for field in schema)
    return replace(
        grouped, columns_of_rows=tuple(schema.names), aggregate=replace(grouped.aggregate, names=names)
    )


def _table_after(columns: Any) -> Any:
    return reduce(
        lambda before, operation: apply_to_table(operation, before), columns.operations, columns.table
    )


def _grouped(columns: Any, frame: Stream, times: Any) -> Stream:
    """A window, and the sums of one field by others."""
    [grouping] = [each for each in columns.operations if isinstance(each, Combined)]
    [(_, kind, summed)] = grouping.combines
    windowfn = [each.windowfn for each in columns.operations if isinstance(each, Windowed)][-1]
    assert kind == "sum"
    watermark, stamp = times.watermark, times.stamp

    def group_of(row: Values) -> tuple[Group, tuple[int, ...]]:
        score: Score = row["score"]
        key = tuple(each(score) for _, each in grouping.keys)
        if windowfn is None:
            return Group(key, _NEVER_MICROS), (summed(score),)
        micros = stamp(score) * _SECOND_MICROS
        start_micros = micros - (micros - windowfn.offset_micros) % windowfn.size_micros
        return Group((*key, start_micros), watermark.over_micros(start_micros)), (summed(score),)

    names = [*(f"c{place}" for place in range(len(grouping.keys))), *(["w"] if windowfn is not None else [])]
    result = f"c{len(grouping.keys)}"

    def columns_of(emitted: Sums) -> Values:
        keys = {name: [group.key[place] for group in emitted] for place, name in enumerate(names)}
        return {**keys, result: [numbers[0] for numbers in emitted.values()]}

    fields = [pa.field(name, pa.string()) for name in names if name != "w"]
    fields += [pa.field(result, pa.int64()), *([pa.field("w", pa.int64())] if windowfn is not None else [])]
    source = frame.sources[-1]
    assert isinstance(source, Files)
    make_score = source.to_rows
    assert make_score is not None

    def to_rows(clock_micros: int, line: str) -> list[Any]:
        [score] = make_score(clock_micros, line)
        moves = None
        if watermark is not None:
            moves = watermark.of_element(stamp(score) * _SECOND_MICROS, clock_micros)
        return [{"score": score, MOVES: moves}]

    source.to_rows = to_rows
    ends = () if watermark is None else watermark.ends.sources
    aggregate = Aggregate(group_of, columns_of, pa.schema(fields), watermark)
    return replace(frame, sources=(*frame.sources, *ends), aggregate=aggregate)


# The files of columns, and what looks at them before Spark reads them.


def is_strange(line: str) -> bool:
    """True if Spark takes the number of a line for another one, since its file is not like the first ones."""
    return line.split(",")[1].startswith("+")


def open_columns(source: StreamSource, spark: Any, where: str) -> StreamScan:
    """Files with columns: Spark reads them, unless one that is there already is strange; then Python's tasks do."""
    folder = source.source.file_pattern.rpartition("/")[0]  # type: ignore[attr-defined]
    limit = dict(source.options).get("maxFilesPerTrigger")
    is_by_spark = not any(is_strange(line) for line in _lines_in(spark.disk, folder))
    assert event_time_field(source) is not None

    def to_rows(clock_micros: int, line: str) -> list[Any]:
        key, value, second, _ = line.split(",")
        number = _WRONG if is_by_spark and is_strange(line) else int(value)
        return [Score(key, number, START_MICROS // _SECOND_MICROS + int(second))]

    def check(names: Sequence[str]) -> None:
        for name in names:
            spark.world.look(f"look at {name} before Spark reads it")
            found = spark.disk.find(f"{folder}/{name}")
            assert isinstance(found, File)
            if any(map(is_strange, found.content.decode().splitlines())):
                fail_step(ValueError(f"{STRANGE}: {name}"), where)

    files = Files(folder=folder, limit=None if limit is None else int(limit), to_rows=to_rows)
    frame = Stream(spark, (files,))
    return StreamScan(
        frame,
        _no_decoder,
        make_columns=lambda names: frame,
        check_files=check if is_by_spark else None,
    )


STRANGE = "Spark does not read what is in the file"
"""How the error of a strange file begins."""


def _lines_in(disk: Any, folder: str) -> list[str]:
    found = disk.find(folder)
    files = found.children.values() if isinstance(found, Folder) else ()
    return [line for file in files if isinstance(file, File) for line in file.content.decode().splitlines()]


def _no_decoder() -> Any:
    raise AssertionError("no task of Python reads these files")


@dataclass(eq=False)
class FilesLookedAt:
    """Looks at the files of a micro-batch as the runner does, and takes them for whole."""

    spark: Any
    places: Any
    checks: dict[int, CheckFiles]
    may_be_short: bool = field(default=False, init=False)

    def begin(self, frame: Rows) -> None:
        """Raises a step's failure if Spark would read another value than a file has."""
        planned: Planned | None = frame.query.planned
        assert planned is not None
        for number, check in self.checks.items():
            source = frame.query.sources[number]
            if isinstance(source, Files) and planned.starts[number] != planned.ends[number]:
                check([name for name, _ in source.files_of(planned.starts[number], planned.ends[number])])

    def check(self, frame: Rows) -> None:
        """Takes all files for whole."""

    def close(self) -> None:
        """Nothing to close."""


STAND_INS: list[tuple[Any, str, Any]] = [
    (native_stream, "F", FUNCTIONS),
    (native_stream, "Watermark", Watermark),
    (native_stream, "now_micros", lambda: None),
    (native_stream, "add_up", add_up),
    (native_stream, "select", select),
    (native_stream, "lower_columns", lower_columns),
    (native_stream, "lower_to_schema", columns_for),
    (native_stream, "DataFrame", Stream),
    (native_stream, "_no_rows", lambda frame, like: frame),
    (native_stream, "_counted", lambda frame, name: frame),
]
"""What the lowering of native streams calls of Spark."""
