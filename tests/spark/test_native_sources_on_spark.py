"""Streams of other sources than Parquet that Spark computes: their columns have the values that Python would read."""

from __future__ import annotations

import csv
import glob
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyarrow import orc

import penstock as beam
from penstock import field
from penstock.io import ReadFromCsv, ReadFromOrc, ReadFromSpark, WriteToParquet
from penstock.io.delta import ReadFromDelta
from penstock.io.watermarks import BoundedDisorder
from penstock.transforms.window import FixedWindows
from tests.runner.native_runs import WAIT_SECONDS_MAX, counted, ended, instants, pipeline_of, until

pytestmark = pytest.mark.spark

TOTAL = "Sum" >> beam.GroupBy("key").aggregate_field("number", sum, "total")


class Format(NamedTuple):
    """How a test writes a file of a format, and reads all of them."""

    write: Callable[[pa.Table, Path, int], None]
    read: Callable[[Path], Any]
    time: str = "at"  # The field with event times.


def appear(folder: Path, number: int, suffix: str, write: Callable[[Path], Any]) -> None:
    """A file that is complete when it appears; streams read files in the order in which they have changed."""
    folder.mkdir(exist_ok=True)
    hidden = folder / f".{number:03d}"
    write(hidden)
    os.utime(hidden, (1_700_000_000 + number,) * 2)
    hidden.rename(folder / f"{number:03d}.{suffix}")


def add_csv(table: pa.Table, folder: Path, number: int) -> None:
    """The table with its seconds, as CSV with quotes, missing values and numbers in several forms."""

    def write(path: Path) -> None:
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(table.column_names)
            for row in table.to_pylist():
                row["number"] = f" +{row['number']}" if row["number"] == 5 else row["number"]
                writer.writerow(["NULL" if value is None else value for value in row.values()])

    appear(folder, number, "csv", write)


FORMATS = {
    "csv": Format(add_csv, lambda folder: ReadFromCsv(f"{folder}/*.csv"), "second"),
    "orc": Format(
        lambda table, folder, number: appear(
            folder, number, "orc", lambda path: orc.write_table(table, path)
        ),
        lambda folder: ReadFromOrc(f"{folder}/*.orc", as_rows=True),
    ),
    "delta": Format(
        lambda table, folder, number: write_deltalake(str(folder), table, mode="append"),
        lambda folder: ReadFromDelta(str(folder), as_rows=True),
    ),
}


def scores(chance: Random, file: int) -> pa.Table:
    """Rows at random of half a minute, which arrive out of order within the bound."""
    rows = range(30)
    seconds = [file * 30 + chance.randrange(-10, 10) for _ in rows]
    keys = ["a", "b", 'c "d", e', "é", None]
    return pa.table(
        {
            "key": pa.array([chance.choice(keys) for _ in rows], pa.string()),
            "a.b": pa.array([chance.choice([True, False, None]) for _ in rows], pa.bool_()),
            "weight": pa.array([chance.choice([0.5, -1e300, 3.0, None]) for _ in rows], pa.float64()),
            "number": pa.array([chance.choice([-3, 0, 5, 1 << 62]) for _ in rows], pa.int64()),
            "second": pa.array(seconds, pa.int64()),
            "at": instants(seconds),
        }
    )


def stream(format: Format, folder: Path, **more: Any) -> Any:
    """The rows of a folder as a stream."""
    limits = {"existing_only": True} | more
    return "Read" >> format.read(folder).as_stream(format.time, BoundedDisorder(20), **limits)


def lines_of(folder: Path) -> Counter[str]:
    """The lines of all files of a folder."""
    return Counter(
        line for file in glob.glob(f"{folder}/out*") for line in Path(file).read_text().splitlines()
    )


def shown(row: Any, window: Any = beam.DoFn.WindowParam, time: Any = beam.DoFn.TimestampParam) -> str:
    """A result with its window and time."""
    return repr((row, window, time))


@pytest.mark.parametrize("name", FORMATS)
def test_results_are_those_of_python(spark, tmp_path, name):
    chance, format = Random(7), FORMATS[name]
    for number in range(3):
        format.write(scores(chance, number), tmp_path / "in", number)
    many = (
        beam.GroupBy("key", yes=field("a.b"), size=field("number") > 3, is_heavy=field("weight") > 1)
        .aggregate_field("second", min, "first")
        .aggregate_field("second", max, "last")
    )
    found = []
    for place, flags in enumerate(([], ["--without=native_streams"])):
        pipeline = pipeline_of("streaming", *flags)
        kept = pipeline | stream(format, tmp_path / "in") | beam.Filter(~field("weight").is_null())
        lines = kept | beam.WindowInto(FixedWindows(60)) | many | beam.Map(shown)
        _ = lines | beam.io.WriteToText(f"{tmp_path}/{place}/out")
        assert ("# by Spark" in pipeline.explain()) is not bool(flags)
        assert counted(ended(pipeline)) == {}
        found.append(lines_of(tmp_path / f"{place}"))
    assert found[0] == found[1]
    assert len(found[0]) > 20


@pytest.mark.parametrize("name", FORMATS)
def test_whole_rows_reach_a_sink_of_columns(spark, tmp_path, name):
    chance, format = Random(3), FORMATS[name]
    tables = [scores(chance, number) for number in range(2)]
    for number, table in enumerate(tables):
        format.write(table, tmp_path / "in", number)
    pipeline = pipeline_of("streaming")
    kept = pipeline | stream(format, tmp_path / "in") | beam.Filter(field("number") != 0)
    schema = pa.concat_tables(tables).drop_columns("at").schema
    names = schema.names
    _ = kept | beam.Select(*names) | WriteToParquet(f"{tmp_path}/out", schema)
    assert "takes the columns unchanged" in pipeline.explain()
    ended(pipeline)
    written = pa.concat_tables([pq.read_table(file) for file in glob.glob(f"{tmp_path}/out*")])
    expected = [row for table in tables for row in table.select(names).to_pylist() if row["number"] != 0]
    assert Counter(map(repr, written.to_pylist())) == Counter(map(repr, expected))


@pytest.mark.parametrize("name", FORMATS)
def test_a_stream_continues_on_its_checkpoint_and_drains(spark, tmp_path, name):
    format, tables = FORMATS[name], [scores(Random(number), number) for number in range(4)]
    tables = [table.filter(pc.less(table["number"], 9)) for table in tables]

    def run() -> Any:
        pipeline = pipeline_of("streaming", f"--checkpoint_location={tmp_path}/checkpoint")
        totals = (
            pipeline
            | stream(format, tmp_path / "in", existing_only=False)
            | beam.WindowInto(FixedWindows(60))
            | TOTAL
        )
        schema = pa.schema([("key", pa.string()), ("total", pa.int64())])
        _ = totals | WriteToParquet(f"{tmp_path}/out/totals", schema)
        return pipeline.run()

    def commits() -> int:
        return len(glob.glob(f"{tmp_path}/checkpoint/spark/commits/[0-9]*"))

    for number in range(2):
        format.write(tables[number], tmp_path / "in", number)
    result = run()
    until(lambda: commits() >= 1, result)
    result.cancel()
    for number in range(2, 4):
        format.write(tables[number], tmp_path / "in", number)
    before, result = commits(), run()
    until(lambda: commits() > before, result)
    result.drain()
    assert result.wait_until_finish(duration=WAIT_SECONDS_MAX * 1_000) == "DRAINED"
    sums: Counter[Any] = Counter()
    for row in pa.concat_tables(tables).to_pylist():
        sums[row["key"], row["second"] // 60] += row["number"]
    written = [
        row for file in glob.glob(f"{tmp_path}/out/totals*") for row in pq.read_table(file).to_pylist()
    ]
    expected = Counter((key, total) for (key, _), total in sums.items())
    assert Counter((row["key"], row["total"]) for row in written) == expected


LATER: dict[str, tuple[str, Callable[[Path], Any], str]] = {
    "a csv line with too few fields": (
        "csv",
        lambda path: path.write_text("key,number,second\na,1\n"),
        "line 2 of .* cannot be read: the record has 2 fields instead of 3",
    ),
    "a csv header with other columns": (
        "csv",
        lambda path: path.write_text("key,second,number\na,1,2\n"),
        "has different columns than earlier files",
    ),
    "a csv value of another type": (
        "csv",
        lambda path: path.write_text("key,number,second\na,1.5,2\n"),
        "line 2 of .* cannot be read: the value of number is not of type int",
    ),
    "a csv number of more than 64 bits": (
        "csv",
        lambda path: path.write_text(f"key,number,second\na,{1 << 63},2\n"),
        "line 2 of .* cannot be read: the value of number is an integer of more than 64 bits",
    ),
    "an orc file with another type": (
        "orc",
        lambda path: orc.write_table(pa.table({"key": ["a"], "number": [1.5], "second": [2]}), path),
        "the column number of .* has the type double, and the pipeline reads it as bigint",
    ),
    "an orc file with another column": (
        "orc",
        lambda path: orc.write_table(pa.table({"key": ["a"], "more": [1]}), path),
        "has columns that no file had when the stream started: more",
    ),
    "a file that is not orc": (
        "orc",
        lambda path: path.write_text("?"),
        "is not an ORC file, or it is damaged",
    ),
}


@pytest.mark.parametrize("case", LATER)
def test_what_is_wrong_in_a_later_file_is_an_error_of_the_step(spark, tmp_path, case):
    name, write, reason = LATER[case]
    format = FORMATS[name]._replace(time="second")
    format.write(pa.table({"key": ["a"], "number": [1], "second": [0]}), tmp_path / "in", 0)
    pipeline = pipeline_of("streaming")
    totals = (
        pipeline
        | stream(format, tmp_path / "in", existing_only=False)
        | beam.WindowInto(FixedWindows(60))
        | TOTAL
    )
    _ = totals | beam.Map(str) | beam.io.WriteToText(f"{tmp_path}/out")
    result = pipeline.run()
    appear(tmp_path / "in", 1, name, write)
    with pytest.raises(Exception, match=reason) as caught:
        result.wait_until_finish(duration=WAIT_SECONDS_MAX * 1_000)
    assert "'Read' (test_native_sources_on_spark.py:" in str(caught.value)


def test_smaller_numbers_and_missing_columns_of_a_later_orc_file_are_read(spark, tmp_path):
    small = pa.table({"key": ["a"], "number": pa.array([2], pa.int8()), "second": pa.array([3], pa.int16())})
    tables = [pa.table({"key": ["a"], "number": [1], "second": [0]}), small, small.drop_columns("key")]
    for number, table in enumerate(tables[:1]):
        FORMATS["orc"].write(table, tmp_path / "in", number)
    pipeline = pipeline_of("streaming")
    read = ReadFromOrc(f"{tmp_path}/in/*.orc", columns=["key", "number", "second"])
    rows = pipeline | "Read" >> read.as_stream("second", BoundedDisorder(20))
    _ = (
        rows
        | beam.WindowInto(FixedWindows(60))
        | TOTAL
        | beam.Map(str)
        | beam.io.WriteToText(f"{tmp_path}/out")
    )
    result = pipeline.run()
    for number, table in enumerate(tables[1:], 1):
        FORMATS["orc"].write(table, tmp_path / "in", number)
    result.drain()
    assert result.wait_until_finish(duration=WAIT_SECONDS_MAX * 1_000) == "DRAINED"
    assert lines_of(tmp_path) == Counter(["Result(key='a', total=3)", "Result(key=None, total=2)"])


def test_columns_of_folders_and_the_names_of_files(spark, tmp_path):
    for day in (1, 2):
        (tmp_path / "in" / f"day={day}").mkdir(parents=True)
        add_csv(
            pa.table({"key": ["a", "b"], "number": [day, 10 * day], "second": [0, 70]}),
            tmp_path / "in" / f"day={day}",
            day,
        )
    found = []
    for place, flags in enumerate(([], ["--without=native_streams"])):
        pipeline = pipeline_of("streaming", *flags)
        read = ReadFromCsv(
            f"{tmp_path}/in",
            partition_by=("day",),
            schema=pa.schema([("day", pa.int64())]),
            filename_column="file",
        )
        rows = pipeline | "Read" >> read.as_stream("second", BoundedDisorder(20), existing_only=True)
        sums = beam.GroupBy("file", "day").aggregate_field("number", sum, "total")
        lines = rows | beam.WindowInto(FixedWindows(60)) | sums | beam.Map(shown)
        _ = lines | beam.io.WriteToText(f"{tmp_path}/{place}/out")
        assert ("# by Spark" in pipeline.explain()) is not bool(flags)
        ended(pipeline)
        found.append(lines_of(tmp_path / f"{place}"))
    assert found[0] == found[1]
    assert len(found[0]) == 4


def test_a_source_of_sparks_without_files(spark, tmp_path):
    source = ReadFromSpark(
        "rate-micro-batch", rowsPerBatch=10, startTimestamp=0, advanceMillisPerBatch=20_000
    )
    pipeline = pipeline_of("streaming", f"--checkpoint_location={tmp_path}/checkpoint")
    rows = pipeline | "Read" >> source.as_stream("timestamp", BoundedDisorder(0))
    counts = beam.GroupBy(is_odd=field("value") % 2 == 1).aggregate_field("value", sum, "total")
    lines = rows | beam.WindowInto(FixedWindows(60)) | counts | beam.Map(shown)
    _ = lines | beam.io.WriteToText(f"{tmp_path}/out")
    # Only Spark knows its columns.
    assert "only known when it is opened" in pipeline.explain()
    result = pipeline.run()
    [plan] = (json.loads(file.read_text()) for file in (tmp_path / "checkpoint").glob("plan-*.json"))
    assert list(plan["native"]) == ["GroupBy(is_odd)/CombinePerKey(TupleCombineFn)"]
    # A window has three micro-batches, the first one the numbers from 0 to 29.
    first = [sum(range(remainder, 30, 2)) for remainder in (0, 1)]
    until(lambda: len(lines_of(tmp_path)) >= 4, result)
    result.cancel()
    found = lines_of(tmp_path)
    assert max(found.values()) == 1
    assert sum(f"total={total})" in line for line in found for total in first) == 2
