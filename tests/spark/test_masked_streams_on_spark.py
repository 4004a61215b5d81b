"""Filters and selections that Spark does before Python sees the elements change nothing, neither order nor lateness."""

from __future__ import annotations

import glob
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from native_runs import counted, ended, pipeline_of

import penstock as beam
from penstock import field
from penstock.io import ReadFromSpark
from penstock.io.watermarks import BoundedDisorder
from penstock.transforms.trigger import AccumulationMode, AfterCount, Repeatedly
from penstock.transforms.window import FixedWindows

pytestmark = pytest.mark.spark


LARGE = (1 << 63) // 15


def add(folder: Path, number: int, write: Callable[[Path], Any]) -> None:
    """A file that is complete when it appears; streams read files in the order in which they have changed."""
    folder.mkdir(exist_ok=True)
    hidden = folder / f".{number:03d}"
    write(hidden)
    os.utime(hidden, (1_700_000_000 + number,) * 2)
    hidden.rename(folder / f"{number:03d}.part")


def write_json(table: pa.Table, path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


def write_csv(table: pa.Table, path: Path) -> None:
    pa.csv.write_csv(table, path, pa.csv.WriteOptions(include_header=False))


SCHEMA = "`a.b` string, number int, second long, more double"
FORMATS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "json": write_json,
    "csv": write_csv,
    "parquet": pq.write_table,
}


def scores(chance: Random, file: int) -> pa.Table:
    """Rows of half a minute. Some are late, also because of others that a filter leaves out."""
    rows = range(20)
    far = [file * 30 + chance.choice([0, -5, -20, 40, 100 if chance.random() < 0.3 else 0]) for _ in rows]
    return pa.table(
        {
            "a.b": pa.array([chance.choice("abc") for _ in rows], pa.string()),
            "number": pa.array([chance.choice([1, 8, 20, None]) for _ in rows], pa.int32()),
            "second": pa.array(far, pa.int64()),
            "more": pa.array([chance.random() for _ in rows], pa.float64()),
        }
    )


def told(element: Any, window: Any = beam.DoFn.WindowParam, pane: Any = beam.DoFn.PaneInfoParam) -> str:
    """A group with its window and pane."""
    return repr((element, window, pane))


def lines_of(folder: Path) -> Counter[str]:
    """The lines of all files of a folder."""
    return Counter(
        line for file in glob.glob(f"{folder}/out*") for line in Path(file).read_text().splitlines()
    )


def both(tmp_path: Path, read: Callable[[], Any]) -> tuple[Counter[str], dict[str, int]]:
    """What a pipeline with state of Python's gives and counts, which must not depend on who filters."""
    found = []
    for place, flags in enumerate(([], ["--without=native_streams"])):
        pipeline = pipeline_of("streaming", *flags)
        known = pipeline | "Read" >> read() | beam.Filter(~field("number").is_null())
        # Without the filter, some products would have more than 64 bits.
        small = known | "Small" >> beam.Filter(field("number") < 15)
        few = small | "Few" >> beam.Filter(field("number") * LARGE > 0)
        chosen = few | beam.Select(key=field("a.b"), number=field("number") * LARGE)
        windows = beam.WindowInto(
            FixedWindows(60), Repeatedly(AfterCount(3)), AccumulationMode.DISCARDING, allowed_lateness=10
        )
        groups = chosen | windows | beam.Map(lambda row: (row.key, row.number)) | beam.GroupByKey()
        _ = groups | beam.Map(told) | beam.io.WriteToText(f"{tmp_path}/{place}/out")
        assert pipeline.explain().count("# by Spark") == 4 * (not flags)
        result = ended(pipeline)
        found.append((lines_of(tmp_path / str(place)), counted(result)))
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize("name", FORMATS)
def test_groups_are_those_of_python_in_the_same_order(spark, tmp_path, name):
    chance, write = Random(4), FORMATS[name]
    for number in range(5):
        add(tmp_path / "in", number, lambda path: write(scores(chance, number), path))
    limits = {"max_files_per_batch": 1, "ends": True}
    lines, counters = both(
        tmp_path,
        lambda: ReadFromSpark(name, f"{tmp_path}/in/*.part", SCHEMA).as_stream(
            "second", BoundedDisorder(5), **limits
        ),
    )
    assert len(lines) > 10
    assert counters["elements_dropped_as_late"] > 0


def test_an_element_without_a_time_is_an_error_although_a_filter_leaves_it_out(spark, tmp_path):
    table = pa.table(
        {"a.b": ["a", "b"], "number": pa.array([1, 9], pa.int32()), "second": pa.array([0, None], pa.int64())}
    )
    add(tmp_path / "in", 0, lambda path: pq.write_table(table, path))
    pipeline = pipeline_of("streaming")
    read = ReadFromSpark("parquet", f"{tmp_path}/in/*.part", SCHEMA)
    rows = pipeline | "Read" >> read.as_stream("second", BoundedDisorder(5), ends=True)
    _ = rows | beam.Filter(field("number") < 5) | beam.Map(str) | beam.io.WriteToText(f"{tmp_path}/out")
    with pytest.raises(Exception, match="of type Row has no event time: there is None") as caught:
        ended(pipeline)
    assert "'Read' (test_masked_streams_on_spark.py:" in str(caught.value)
