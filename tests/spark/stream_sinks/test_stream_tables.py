"""Tables of a stream: save modes, and what is there after tries that failed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark.sql import SparkSession

from penstock.error import RunnerError, UnsupportedByRunner
from penstock.io import WriteToSpark
from penstock.io.sparkio import SparkSink
from penstock_spark.files.file_store import files_of_spark
from penstock_spark.formats.registry import plan_sink
from penstock_spark.lowering.batch_writer import BatchWriter
from penstock_spark.sinks.plan import MicroBatch
from tests.spark.stream_sinks.writing import contents, dying, jobs, runs, score

Writer = Callable[..., BatchWriter]
ALL_FORMATS = ("parquet", "orc", "csv", "json")
FORMATS = pytest.mark.parametrize("format", ALL_FORMATS)


@pytest.mark.parametrize(
    ("format", "partition_by"),
    [
        *((format, ("team",) * (number % 2)) for number, format in enumerate(ALL_FORMATS)),
        *(
            pytest.param(format, ("team",) * (1 - number % 2), marks=pytest.mark.soak)
            for number, format in enumerate(ALL_FORMATS)
        ),
    ],
)
def test_tables_of_files_are_written_exactly_once(
    tmp_path: Path,
    writer: Writer,
    rows: Any,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    format: str,
    partition_by: Any,
) -> None:
    table = tmp_path / "t [1]"
    sink = SparkSink(format, str(table), "append", partition_by, schema="team string, points int")

    def found() -> list[tuple[str, int]]:
        read = (
            spark.read.schema("team string, points int")
            .format(format)
            .load(str(table).replace("[1]", "\\[1\\]"))
        )
        return sorted((row.team, row.points) for row in read.select("team", "points").collect())

    first = writer(sink)
    first(rows([score("red", 0), score("a/b", 1)], partitions=3), 0)
    with monkeypatch.context() as patch:
        files = type(files_of_spark(spark, "file:///"))
        patch.setattr(files, "rename", dying(files.rename, 1))
        with pytest.raises(Exception, match="Killed"):
            first(rows([score("red", 2), score("blue", 3)]), 1)
    assert len(found()) == 3
    again = writer(sink)
    again(rows([score("red", 2), score("green", 3)]), 1)
    again(rows([]), 2)
    assert found() == [("a/b", 1), ("green", 3), ("red", 0), ("red", 2)]
    writer(sink, app="another")(rows([score("grey", 4)]), 1)
    assert len(found()) == 5
    writer(sink)(rows([]), 1)
    assert found() == [("a/b", 1), ("grey", 4), ("red", 0)]
    files = [path for path in table.rglob("*") if path.is_file()]
    assert len(files) == 3
    assert all(path.name.startswith("part-batch-00000") for path in files)
    assert not list(table.rglob("_*"))


def test_options_and_columns_of_a_table_are_as_in_batch_mode(
    tmp_path: Path, writer: Writer, rows: Any
) -> None:
    options = (("header", True), ("path", str(tmp_path)), ("compression", "none"))
    schema = "penstock_batch string, team string"
    write = writer(SparkSink("CSV", None, "append", (), options, schema))
    write(rows([{"penstock_batch": "x", "team": "red"}], partitions=1), 0)
    assert list(contents(tmp_path).values()) == [b"penstock_batch,team\nx,red\n"]
    texts = tmp_path / "texts"
    writer(SparkSink("text", f"file://{texts}", "append", schema="value string"))(rows([{"value": "a"}]), 0)
    assert list(contents(texts).values()) == [b"a\n"]


def test_the_save_mode_is_about_what_is_there_when_a_stream_starts_for_the_first_time(
    tmp_path: Path, writer: Writer, rows: Any, spark: SparkSession
) -> None:
    def started(mode: str, folder: Path) -> BatchWriter:
        started = writer(SparkSink("json", str(folder), mode, schema="team string, points int"))
        started.prepare(spark)
        return started

    full, new = tmp_path / "full", tmp_path / "new"
    full.mkdir()
    (full / "old.json").write_text("{}\n")
    with pytest.raises(FileExistsError, match=r"already exists\n.*'Write 1'"):
        started("error", full)
    started("ignore", full)(rows([score("red", 1)]), 0)
    assert list(contents(full)) == ["old.json"]
    started("append", full)(rows([score("red", 1)]), 0)
    assert len(contents(full)) == 2
    started("overwrite", full)(rows([score("red", 1)]), 0)
    assert list(contents(full).values()) == [b'{"team":"red","points":1}\n']
    started("ignore", new)(rows([score("red", 1)], partitions=1), 0)
    # After a restart, nobody prepares.
    writer(SparkSink("json", str(new), "ignore", schema="team string, points int"))(
        rows([score("red", 2)]), 1
    )
    assert len([name for name in contents(new) if name.startswith("part-")]) == 2


def test_two_sinks_may_write_into_one_table(tmp_path: Path, writer: Writer, rows: Any) -> None:
    sinks = [SparkSink("csv", f"{tmp_path}/t", "append", schema="team string, points int") for _ in range(2)]
    for write in (writer(*sinks), writer(*sinks)):
        write(rows([score("red", 1)], [score("blue", 2)]), 0)
    assert sorted(contents(tmp_path).values()) == [b"blue,2\n", b"red,1\n"]


def test_only_sinks_that_begin_look_at_what_is_there(
    tmp_path: Path, writer: Writer, spark: SparkSession
) -> None:
    write = writer(SparkSink("csv", f"{tmp_path}", "error", schema="team string, points int"))
    write.prepare(spark, {"Write 2"})
    with pytest.raises(FileExistsError):
        write.prepare(spark, {"Write 1"})


def test_overwriting_only_some_partitions_is_refused(
    tmp_path: Path, writer: Writer, spark: SparkSession
) -> None:
    options = (("partitionOverwriteMode", "dynamic"),)
    sink = SparkSink("json", str(tmp_path), "overwrite", ("team",), options, "team string, points int")
    with pytest.raises(UnsupportedByRunner, match="which partitions"):
        writer(sink).prepare(spark)
    assert tmp_path.is_dir()


@pytest.fixture
def database(spark: SparkSession) -> str:
    spark._jvm.java.lang.System.setProperty("derby.stream.error.file", os.devnull)  # type: ignore[union-attr]
    return "jdbc:derby:memory:streams;create=true"


def test_a_database_is_added_to_at_least_once(
    tmp_path: Path, writer: Writer, rows: Any, spark: SparkSession, database: str
) -> None:
    options = {"url": database, "dbtable": "scores"}
    sink = WriteToSpark("jdbc", schema="team string, points int", **options)
    write, effects = writer(sink), tmp_path / "effects"
    write.prepare(spark)
    write(rows([score("red", 1)], effects=effects), 0)
    assert runs(effects) == 2
    write(rows([score("red", 1)]), 0)
    before = jobs(spark)
    write(rows([]), 1)
    assert jobs(spark) - before == 1
    table = spark.read.format("jdbc").options(**options)
    assert [tuple(row) for row in table.load().collect()] == [("red", 1), ("red", 1)]
    with pytest.raises(RunnerError, match=r"(?s)already exists.*'Write 1'"):
        writer(sink).prepare(spark)
    writer(WriteToSpark("jdbc", None, "overwrite", schema="team string, points int", **options)).prepare(
        spark
    )
    assert table.load().collect() == []
    with pytest.raises(UnsupportedByRunner, match="'ignore'"):
        writer(WriteToSpark("jdbc", None, "ignore", schema="team string", **options)).prepare(spark)


def test_delta_learns_which_micro_batch_of_which_stream_it_is() -> None:
    sink = SparkSink("delta", "/t", "error", schema="team string")
    frame = MagicMock()
    plan_sink(sink, "", is_stream=True).commit(frame, MicroBatch(12, "app/Write"))
    writing = frame.write.format.return_value
    assert writing.mode.call_args.args == ("append",)
    assert writing.mode.return_value.options.call_args.kwargs == {"txnAppId": "app/Write", "txnVersion": 12}
