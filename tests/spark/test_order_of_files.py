"""The order of elements that arrive at one moment, of files that Spark deals out as it likes: the largest first."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock as beam
from penstock.io.watermarks import BoundedDisorder
from penstock.transforms.trigger import AccumulationMode, AfterCount, Repeatedly
from penstock.transforms.window import GlobalWindows

EACH = beam.WindowInto(GlobalWindows(), Repeatedly(AfterCount(1)), AccumulationMode.ACCUMULATING)
FORMATS = ("text", "csv", "json", "parquet")
FILES = {"a": ["first"], "b": [f"second {number}" for number in range(200)], "c": ["third"]}
"""By name; the second file is the largest, and has several blocks."""
CHANGES = "cab"
"""The files in the order in which they have changed; Spark lists them in another one."""


def values_of(names: str) -> list[str]:
    """All values of some files."""
    return [value for name in names for value in FILES[name]]


def write_all(folder: Path) -> None:
    """The files in each format."""
    for seconds, name in enumerate(CHANGES, 1_700_000_000):
        write(folder, name, FILES[name])
        for path in folder.glob(f"*/{name}.*"):
            os.utime(path, (seconds, seconds))


def write(folder: Path, name: str, values: list[str]) -> None:
    """A file of each format."""
    text = {
        "text": "".join(f"{value}\n" for value in values),
        "csv": "name,at\n" + "".join(f"{value},7\n" for value in values),
        "json": "".join(json.dumps({"name": value, "at": 7}) + "\n" for value in values),
    }
    for format in FORMATS:
        (folder / format).mkdir(parents=True, exist_ok=True)
        path = folder / format / f"{name}.{format}"
        if format == "parquet":
            pq.write_table(pa.table({"name": values, "at": [7] * len(values)}), path, row_group_size=50)
        else:
            path.write_text(text[format])


@pytest.fixture
def small_blocks(spark: SparkSession) -> Any:
    """Spark reads files in blocks of 1,000 bytes."""
    name = "spark.sql.files.maxPartitionBytes"
    before = spark.conf.get(name)
    spark.conf.set(name, "1000b")
    yield
    spark.conf.set(name, before)


def read(spark: SparkSession, folder: Path, **how: Any) -> dict[str, list[list[str]]]:
    """The panes of all that each format has, of which each element makes one."""
    panes: list[tuple[str, list[str]]] = []
    pipeline = beam.Pipeline(spark=spark, mode="streaming", shuffle_partitions=2)
    readers = {
        "csv": beam.io.ReadFromCsv(f"{folder}/csv/*"),
        "json": beam.io.ReadFromJson(f"{folder}/json/*"),
        "parquet": beam.io.ReadFromParquet(f"{folder}/parquet/*"),
    }
    how = {"existing_only": True, "event_time": lambda element: 7, "watermark": BoundedDisorder(0), **how}
    text = pipeline | "Text" >> beam.io.ReadFromText(f"{folder}/text/*").as_stream(**how)
    named = [text | "text" >> beam.Map(lambda line: ("text", line))]
    for format, reader in readers.items():
        rows = pipeline | f"Read {format}" >> reader.as_stream(**how)
        name_of = (lambda row: row["name"]) if format == "parquet" else (lambda row: row.name)
        named.append(
            rows | format >> beam.Map(lambda row, format, name_of: (format, name_of(row)), format, name_of)
        )
    _ = named | beam.Flatten() | EACH | beam.GroupByKey() | beam.io.WriteToMemory(panes)
    pipeline.run().wait_until_finish()
    found: dict[str, list[list[str]]] = {}
    for format, values in panes:
        found.setdefault(format, []).append(list(values))
    return found


@pytest.mark.parametrize("files_at_once", [pytest.param(1, marks=pytest.mark.soak), 3])
def test_what_arrives_in_one_tick_is_in_the_order_of_the_names_of_files_and_of_the_lines_in_them(
    spark, tmp_path, small_blocks, files_at_once
):
    # When the files have changed is another order: a log may have been copied.
    write_all(tmp_path)
    in_order = values_of("abc")
    found = read(spark, tmp_path, arrival_time=lambda element: 7, max_files_per_batch=files_at_once)
    assert sorted(found) == sorted(FORMATS)
    for format, panes in found.items():
        assert sorted(panes, key=len) == [in_order[: count + 1] for count in range(len(in_order))], format


def test_files_of_a_live_stream_are_in_the_order_in_which_they_have_changed(spark, tmp_path, small_blocks):
    write_all(tmp_path)
    found = read(spark, tmp_path)
    assert sorted(found) == sorted(FORMATS)
    for format, panes in found.items():
        assert max(panes, key=len) == values_of(CHANGES), format
