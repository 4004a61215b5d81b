"""Files of a stream: what is there after micro-batches, tries that failed, and tries again."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.elements.row import Row
from penstock.io import WriteToCsv, WriteToJson, WriteToParquet, WriteToSpark, WriteToText
from penstock.io.console import ConsoleSink
from penstock.io.fileio import default_file_naming, single_file_naming
from penstock_spark.files.file_store import HadoopFiles
from penstock_spark.files.temporary import MARK, PREFIX
from penstock_spark.lowering.batch_writer import BatchWriter
from penstock_spark.process.identity import this_process
from penstock_spark.session.backends import is_connect
from tests.spark.schemes import FAR, SCHEMES
from tests.spark.stream_sinks.writing import contents, dying, lines

Writer = Callable[..., BatchWriter]


@SCHEMES
def test_a_micro_batch_that_comes_again_replaces_its_files_and_no_others(
    tmp_path: Path, writer: Writer, rows: Any, scheme: str
) -> None:
    for name in ("o-batch-000012-00000-of-00002.bak", "other", "oo-batch-000012-00000-of-00001.txt"):
        (tmp_path / name).write_text("keep")
    kept = lines(tmp_path)
    sink = WriteToText(f"{scheme}{tmp_path}/o", ".txt")
    first = writer(sink)
    first(rows(["a", "b"]), 12)
    first(rows(["c"], partitions=1), 13)
    assert lines(tmp_path) == kept | {
        "o-batch-000012-00000-of-00002.txt": ["a"],
        "o-batch-000012-00001-of-00002.txt": ["b"],
        "o-batch-000013-00000-of-00001.txt": ["c"],
    }
    first(rows(["b", "a"], partitions=1), 12)
    assert lines(tmp_path) == kept | {
        "o-batch-000012-00000-of-00001.txt": ["b", "a"],
        "o-batch-000013-00000-of-00001.txt": ["c"],
    }
    writer(sink)(rows([]), 13)
    assert lines(tmp_path) == kept | {"o-batch-000012-00000-of-00001.txt": ["b", "a"]}


NAMES_AND_CONTENT: list[tuple[Callable[[str], Any], list[Any], dict[str, bytes]]] = [
    (
        lambda o: WriteToText(o, header="h", footer="f"),
        ["a"],
        {"o-batch-000007-00000-of-00001": b"h\na\nf\n"},
    ),
    (
        lambda o: WriteToText(o, ".txt", num_shards=2),
        ["a"],
        {"o-batch-000007-00000-of-00002.txt": b"a\n", "o-batch-000007-00001-of-00002.txt": b""},
    ),
    (
        lambda o: WriteToText(o, ".txt", shard_name_template=""),
        ["a", "a"],
        {"o-batch-000007.txt": b"a\na\n"},
    ),
    (
        lambda o: WriteToCsv(o, num_shards=1),
        [Row(a=1)],
        {"o-batch-000007-00000-of-00001": b"a\n1\n"},
    ),
    (
        lambda o: WriteToCsv(o, num_shards=1, file_naming=default_file_naming("x", ".csv")),
        [Row(a=1)],
        {"o/batch-000007-x-00000-of-00001.csv": b"a\n1\n"},
    ),
    (
        lambda o: WriteToJson(o, num_shards=1, file_naming=single_file_naming("x", ".json")),
        [Row(a=1)],
        {"o/batch-000007-x.json": b'{"a":1}\n'},
    ),
]


@pytest.mark.parametrize(
    ("scheme", "sink", "elements", "expected"),
    [
        *(("" if number % 2 else FAR, *case) for number, case in enumerate(NAMES_AND_CONTENT)),
        *(
            pytest.param(FAR if number % 2 else "", *case, marks=pytest.mark.soak)
            for number, case in enumerate(NAMES_AND_CONTENT)
        ),
    ],
)
def test_names_and_content_of_text_csv_and_json_files_are_those_of_batch_mode_with_the_number(
    tmp_path: Path,
    writer: Writer,
    rows: Any,
    scheme: str,
    sink: Any,
    elements: list[Any],
    expected: dict[str, bytes],
) -> None:
    described = sink(f"{scheme}{tmp_path}/o")
    for _ in range(2):
        writer(described)(rows(elements), 7)
        assert contents(tmp_path) == expected
    writer(described)(rows([]), 7)
    assert contents(tmp_path) == {}


@SCHEMES
def test_parquet_files_of_a_stream_hold_its_records(
    tmp_path: Path, writer: Writer, rows: Any, spark: SparkSession, scheme: str
) -> None:
    schema = pa.schema([("team", pa.string()), ("points", pa.int64())])
    write = writer(WriteToParquet(f"{scheme}{tmp_path}/o", schema, file_name_suffix=".parquet"))
    for number in (0, 1, 1):
        write(rows([{"team": "red", "points": number}]), number)
    write(rows([]), 2)
    assert list(contents(tmp_path)) == [f"o-batch-00000{n}-00000-of-00001.parquet" for n in range(2)]
    assert sorted(map(tuple, spark.read.parquet(str(tmp_path)).collect())) == [("red", 0), ("red", 1)]


@SCHEMES
def test_a_program_that_dies_while_files_get_their_names_leaves_nothing_twice(
    spark: SparkSession,
    tmp_path: Path,
    writer: Writer,
    rows: Any,
    monkeypatch: pytest.MonkeyPatch,
    scheme: str,
) -> None:
    sink = WriteToText(f"{scheme}{tmp_path}/o")
    is_replaced = not scheme or is_connect(spark)
    owner, name = (os, "replace") if is_replaced else (HadoopFiles, "rename")
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, dying(getattr(owner, name), 1))
        with pytest.raises(Exception, match="Killed"):
            writer(sink)(rows(["a", "b"]), 3)
    assert len(contents(tmp_path)) == 1
    # One that is killed cannot tidy up either.
    abandoned = tmp_path / "_penstock-temp-o-stream-00000-of-00001"
    abandoned.mkdir()
    (abandoned / "half").write_text("a")
    writer(sink)(rows(["a", "b"], partitions=1), 3)
    assert lines(tmp_path) == {"o-batch-000003-00000-of-00001": ["a", "b"]}
    assert [path.name for path in tmp_path.iterdir()] == ["o-batch-000003-00000-of-00001"]


@SCHEMES
def test_a_stream_does_not_begin_among_the_files_of_another(
    tmp_path: Path, writer: Writer, rows: Any, spark: SparkSession, scheme: str
) -> None:
    sinks = [
        WriteToText(f"{scheme}{tmp_path}/new/o"),
        WriteToCsv(f"{scheme}{tmp_path}/new", file_naming=single_file_naming("x", ".csv")),
    ]
    for sink, elements in zip(sinks, (["a"], [Row(a=1)]), strict=True):
        (tmp_path / "new").mkdir(exist_ok=True)
        (tmp_path / "new" / "o-batch-day-00000-of-00001").write_text("keep")
        (tmp_path / "new" / "x.csv").write_text("keep")
        writer(sink).prepare(spark)
        writer(sink)(rows(elements), 1_000_000)
        with pytest.raises(FileExistsError, match=r"of another stream, such as \S*batch-1000000"):
            writer(sink).prepare(spark)


def test_a_folder_that_is_not_there_yet_is_no_reason_not_to_begin(
    tmp_path: Path, writer: Writer, spark: SparkSession
) -> None:
    for scheme in ("", FAR):
        writer(WriteToText(f"{scheme}{tmp_path}/new/o")).prepare(spark)
    assert list(tmp_path.iterdir()) == []


def test_little_data_in_many_partitions_becomes_few_files(tmp_path: Path, writer: Writer, rows: Any) -> None:
    write = writer(WriteToText(f"{tmp_path}/a/o"), WriteToText(f"{tmp_path}/b/o"))
    write(rows(list("abcdef"), ["g"], partitions=7), 0)
    assert lines(tmp_path / "a") == {"o-batch-000000-00000-of-00001": list("abcdef")}
    assert lines(tmp_path / "b") == {"o-batch-000000-00000-of-00001": ["g"]}


def test_a_sink_that_has_no_rows_any_more_lets_go_of_those_of_an_earlier_try(
    tmp_path: Path, writer: Writer, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sinks = [WriteToText(f"{tmp_path}/a/o"), WriteToText(f"file://{tmp_path}/b/o"), ConsoleSink()]
    writer(*sinks)(rows(["a"], ["b"]), 0)
    assert len(contents(tmp_path)) == 2
    writer(*sinks)(rows([], [], ["c"]), 0)
    assert contents(tmp_path) == {}


@pytest.mark.parametrize(
    ("sink", "element"),
    [
        (lambda place: WriteToText(f"{place}/o"), "a"),
        (lambda place: WriteToSpark("text", place, mode="append", schema="value string"), Row(value="a")),
    ],
    ids=["text", "spark"],
)
def test_a_run_that_is_displaced_while_it_writes_names_no_file_and_lets_the_other_one_write(
    tmp_path: Path, writer: Writer, rows: Any, sink: Callable[[str], Any], element: Any
) -> None:
    """As one that stood still after its first look at the checkpoint, while another run took over."""
    asked = []

    def check() -> None:
        asked.append(1)
        if len(asked) == 2:
            [mark] = tmp_path.glob(f"{PREFIX}*/{MARK}")
            mark.write_bytes(replace(this_process(), machine="elsewhere").to_json())
            raise LookupError("displaced")

    displaced = writer(sink(str(tmp_path)))
    displaced._check = check
    with pytest.raises(Exception, match="LookupError"):
        displaced(rows([element]), 12)
    [left] = tmp_path.iterdir()
    assert (left / MARK).exists()
