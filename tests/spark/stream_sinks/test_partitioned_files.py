"""Files of a stream in folders of partitions: micro-batches that come again, that die, and that have nothing."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock as beam
from penstock.io import ReadFromParquet, WriteToCsv, WriteToJson, WriteToParquet
from penstock.io.avroio import WriteToAvro
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.test_stream import TestStream
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.window import TimestampedValue
from penstock_spark.files.file_store import HadoopFiles
from penstock_spark.formats.registry import window_files
from penstock_spark.lowering.batch_writer import BatchWriter
from penstock_spark.reports.failure import find_failure
from penstock_spark.session.backends import is_connect
from penstock_spark.sinks.window_files import WriteWindow
from tests.spark.schemes import FAR
from tests.spark.stream_sinks.writing import contents, dying

Writer = Callable[..., BatchWriter]
SCHEMA = pa.schema([("team", pa.string()), ("points", pa.int64())])


class Score(NamedTuple):
    team: str | None
    points: int


def score(team: str | None, points: int) -> dict[str, Any]:
    return {"team": team, "points": points}


def sink(place: str, how: str = "parquet", **arguments: Any) -> Any:
    """The sink that a write to a format has when it is applied, in folders by team."""
    if how == "parquet":
        return WriteToParquet(f"{place}/o", SCHEMA, partition_by="team", **arguments)
    write = WRITERS[how](f"{place}/o", partition_by="team", **arguments)
    _ = beam.Pipeline() | beam.Create([]).with_output_types(Score) | write
    return write


WRITERS: dict[str, Callable[..., Any]] = {"csv": WriteToCsv, "json": WriteToJson, "avro": WriteToAvro}
WITHOUT_AVRO = pytest.mark.skipif(importlib.util.find_spec("fastavro") is None, reason="needs fastavro")
WAYS = pytest.mark.parametrize(
    ("how", "scheme"),
    [
        ("parquet", ""),
        ("parquet", FAR),
        pytest.param("csv", "", marks=pytest.mark.soak),
        ("csv", FAR),
        pytest.param("avro", "", marks=WITHOUT_AVRO),
    ],
)
"""Who writes: pyarrow, Spark, pandas, Spark with text of pandas, and fastavro; JSON takes the ways of CSV."""


def avro_rows(path: Path) -> list[Any]:
    from fastavro import reader

    with path.open("rb") as file:
        return list(reader(file))


READERS: dict[str, Callable[[Path], list[Any]]] = {
    "parquet": lambda path: pq.ParquetFile(path).read().to_pylist(),
    "csv": lambda path: list(csv.DictReader(path.read_text().splitlines())),
    "json": lambda path: list(map(json.loads, path.read_text().splitlines())),
    "avro": avro_rows,
}


def rows_of(folder: Path, how: str = "parquet") -> dict[str, list[int]]:
    """The points in every file of a folder."""
    return {
        str(path.relative_to(folder)): [int(row["points"]) for row in READERS[how](path)]
        for path in sorted(folder.rglob("o*"))
    }


@WAYS
def test_a_micro_batch_that_comes_again_replaces_its_files_in_all_folders_and_no_others(
    tmp_path: Path, writer: Writer, rows: Any, how: str, scheme: str
) -> None:
    write = sink(f"{scheme}{tmp_path}", how)
    writer(write)(rows([score("a", 1), score("b", 2)]), 12)
    writer(write)(rows([score("a", 3)], partitions=1), 13)
    for name in ("team=b/o-batch-000012-00000-of-00002.bak", "team=b/oo-batch-000012-00000-of-00001"):
        (tmp_path / name).write_text("keep")
    kept = {name for name in contents(tmp_path) if "bak" in name or "oo-" in name}
    names = set(contents(tmp_path)) - kept
    assert names == {
        "team=a/o-batch-000012-00000-of-00001",
        "team=b/o-batch-000012-00000-of-00001",
        "team=a/o-batch-000013-00000-of-00001",
    }
    # The elements come in another order, and those of a value do not come at all.
    writer(write)(rows([score("c", 5), score("a", 4)], partitions=1), 12)
    assert set(contents(tmp_path)) - kept == {
        "team=a/o-batch-000012-00000-of-00001",
        "team=a/o-batch-000013-00000-of-00001",
        "team=c/o-batch-000012-00000-of-00001",
    }
    writer(write)(rows([]), 13)
    assert set(contents(tmp_path)) - kept == {
        "team=a/o-batch-000012-00000-of-00001",
        "team=c/o-batch-000012-00000-of-00001",
    }
    assert kept < set(contents(tmp_path))


@WAYS
def test_a_program_that_dies_while_files_get_their_names_leaves_nothing_twice(
    spark: SparkSession,
    tmp_path: Path,
    writer: Writer,
    rows: Any,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
    scheme: str,
) -> None:
    write = sink(f"{scheme}{tmp_path}", how)
    is_replaced = not scheme or is_connect(spark)
    owner, name = (os, "replace") if is_replaced else (HadoopFiles, "rename")
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, dying(getattr(owner, name), 1))
        with pytest.raises(Exception, match="Killed"):
            writer(write)(rows([score("a", 1), score("b", 2)]), 3)
    assert len(contents(tmp_path)) == 1
    # One that is killed cannot tidy up either.
    abandoned = tmp_path / "_penstock-temp-o-stream-00000-of-00001" / "team=d"
    abandoned.mkdir(parents=True)
    (abandoned / "half").write_text("a")
    writer(write)(rows([score("b", 2), score("c", 1)], partitions=1), 3)
    assert rows_of(tmp_path, how) == {
        "team=b/o-batch-000003-00000-of-00001": [2],
        "team=c/o-batch-000003-00000-of-00001": [1],
    }
    assert {path.name for path in tmp_path.iterdir()} <= {"team=a", "team=b", "team=c"}


@WAYS
def test_a_task_that_fails_leaves_what_was_there(
    tmp_path: Path, writer: Writer, rows: Any, how: str, scheme: str
) -> None:
    write = sink(f"{scheme}{tmp_path}", how)
    writer(write)(rows([score("a", 1)]), 3)
    before = contents(tmp_path)
    # Text takes any value.
    misfit = score(None, 1) | ({"team": 3} if how == "csv" else {"points": "many"})
    for wrong in (score("", 2), misfit):
        with pytest.raises(Exception, match=r"Write 1"):
            writer(write)(rows([score("b", 1), wrong]), 3)
        assert contents(tmp_path) == before


@WAYS
def test_a_stream_does_not_begin_among_the_files_of_another(
    tmp_path: Path, writer: Writer, rows: Any, spark: SparkSession, how: str, scheme: str
) -> None:
    write = sink(f"{scheme}{tmp_path}/new", how)
    writer(write).prepare(spark)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "new" / "team=a").mkdir(parents=True)
    (tmp_path / "new" / "team=a" / "o-batch-day-00000-of-00001").write_text("keep")
    writer(write).prepare(spark)
    writer(write)(rows([score("b", 1)]), 1_000_000)
    with pytest.raises(FileExistsError, match=r"of another stream, such as team=b/o-batch-1000000"):
        writer(write).prepare(spark)


def test_a_folder_gets_at_most_as_many_files_as_are_asked_for(
    tmp_path: Path, writer: Writer, rows: Any
) -> None:
    elements = [score("ab"[number % 2], number) for number in range(20)]
    writer(sink(str(tmp_path / "one"), num_shards=1))(rows(elements, partitions=5), 0)
    assert [len(points) for points in rows_of(tmp_path / "one").values()] == [10, 10]
    writer(sink(str(tmp_path / "many")))(rows(elements, partitions=5), 0)
    many = rows_of(tmp_path / "many")
    assert list(many) == [f"team={team}/o-batch-000000-0000{n}-of-00005" for team in "ab" for n in range(5)]


def test_what_is_in_the_way_of_a_folder_is_named(tmp_path: Path, writer: Writer, rows: Any) -> None:
    (tmp_path / "team=a").write_text("a file")
    with pytest.raises(Exception, match="Write 1") as caught:
        writer(sink(str(tmp_path)))(rows([score("a", 1)]), 0)
    failure = find_failure(str(caught.value))
    assert failure is not None
    assert re.search(r"team=a cannot be written.*\n.*Write 1.*\n.*hint: ", failure.message)


def test_files_of_windows_are_kept_apart_and_their_names_are_elements(tmp_path: Path) -> None:
    with TestPipeline(mode="streaming") as pipeline:
        stream = TestStream().add_elements(
            [TimestampedValue(score(*each), each[1]) for each in [("a", 1), ("b/c", 2), (None, 3), ("a", 70)]]
        )
        names = pipeline | stream | sink(str(tmp_path), triggering_frequency=60)
        assert_that(
            names | beam.Map(lambda name: os.path.relpath(name, tmp_path)),
            equal_to(
                [
                    "team=a/o-[0.0, 60.0)-00000-of-00001",
                    "team=b%2Fc/o-[0.0, 60.0)-00000-of-00001",
                    "team=__HIVE_DEFAULT_PARTITION__/o-[0.0, 60.0)-00000-of-00001",
                    "team=a/o-[60.0, 120.0)-00000-of-00001",
                ]
            ),
        )
    with beam.Pipeline() as pipeline:
        found = pipeline | ReadFromParquet(str(tmp_path), partition_by="team")
        assert_that(found, equal_to([score("a", 1), score("b/c", 2), score(None, 3), score("a", 70)]))


def test_a_task_of_a_window_that_is_run_again_replaces_its_files_and_leaves_nothing_else(
    tmp_path: Path,
) -> None:
    from penstock.transforms.window import IntervalWindow
    from penstock.utils.windowed_value import PaneInfo

    write = WriteWindow(window_files(sink(str(tmp_path)).sink, "here"))
    pane = PaneInfo(True, True, 0, 0, 0)
    pairs = [(score("a", 1),), (score("b", 2),)]
    for _ in range(2):
        names = list(write.process((0, pairs), IntervalWindow(0, 60), pane))
        assert len(names) == 2
        assert sorted(rows_of(tmp_path).values()) == [[1], [2]]
        assert {path.name for path in tmp_path.iterdir()} == {"team=a", "team=b"}
