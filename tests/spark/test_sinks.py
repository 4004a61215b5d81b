"""Sinks planned by the runner: which files are there afterwards, and what is in them."""

from __future__ import annotations

import bz2
import dataclasses
import datetime
import gzip
import json
import lzma
import zlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.coders import coders
from penstock.error import UnsupportedByRunner
from penstock.io import (
    WriteToCsv,
    WriteToJson,
    WriteToParquet,
    WriteToParquetBatched,
    WriteToSpark,
    WriteToText,
)
from penstock.io.fileio import FileResult, default_file_naming
from penstock.pvalue import Row
from penstock.transforms.window import GlobalWindow
from penstock.utils.timestamp import Timestamp
from penstock_spark.formats.registry import plan_sink
from penstock_spark.sinks.plan import MicroBatch, SinkPlan
from tests.spark.schemes import FAR, SCHEMES

WHERE = "at step 'Write' (game.py:41)"


@pytest.fixture
def write(spark: SparkSession) -> Callable[..., list[Any]]:
    """Writes values as the runner does: encode in each task, commit on the driver."""

    def run(sink: Any, values: list[Any], partitions: int = 2, batch: int = 3) -> list[Any]:
        plan = plan_sink(getattr(sink, "sink", sink), WHERE)
        parts = plan.partitions or partitions
        # The first tasks have one value more where the values do not come out even.
        ends = [-(-len(values) * number // parts) for number in range(parts + 1)]
        shares = [cloudpickle.dumps(values[begin:end]) for begin, end in pairwise(ends)]
        tasks = spark.range(0, parts, 1, parts)
        return plan.commit(tasks.mapInArrow(_stage(plan, shares, batch), plan.schema), MicroBatch())

    return run


def _stage(plan: SinkPlan, shares: list[bytes], size: int) -> Callable[[Iterator[pa.RecordBatch]], Any]:
    """What each task does: encodes its share of the values, whose number it is given."""
    make_encoder = plan.make_encoder

    def encode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        encoder = make_encoder()
        yield from filter(None, [encoder.start()])
        for batch in batches:
            for number in batch.column("id").to_pylist():
                values = cloudpickle.loads(shares[number])
                for at in range(0, len(values), size):
                    yield encoder.encode(values[at : at + size])
        yield from filter(None, [encoder.finish()])

    return encode


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


NAMES_AND_CONTENT: list[tuple[list[Any], dict[str, Any], dict[str, bytes]]] = [
    (["a", "b"], {"num_shards": 1}, {"o-00000-of-00001": b"a\nb\n"}),
    ([b"\xff", 1, None, "é"], {"num_shards": 1}, {"o-00000-of-00001": b"\xff\n1\nNone\n\xc3\xa9\n"}),
    (["a"], {"shard_name_template": "", "file_name_suffix": ".txt"}, {"o.txt": b"a\n"}),
    (["a"], {"shard_name_template": "_SS_NNN", "num_shards": 1}, {"o_00_001": b"a\n"}),
    ([], {}, {"o-00000-of-00001": b""}),
    ([], {"header": "h", "footer": b"f"}, {"o-00000-of-00001": b"h\nf\n"}),
    ([], {"skip_if_empty": True, "num_shards": 2}, {}),
    (["a"], {"header": "h", "footer": "f", "num_shards": 1}, {"o-00000-of-00001": b"h\na\nf\n"}),
    (
        ["a"],
        {"header": "h", "num_shards": 2},
        {"o-00000-of-00002": b"h\na\n", "o-00001-of-00002": b"h\n"},
    ),
    (["", ""], {"num_shards": 1}, {"o-00000-of-00001": b"\n\n"}),
    ([300], {"coder": coders.VarIntCoder(), "num_shards": 1}, {"o-00000-of-00001": b"\xac\x02\n"}),
]


@pytest.mark.parametrize(
    ("scheme", "values", "arguments", "expected"),
    [
        *(("" if number % 2 else FAR, *case) for number, case in enumerate(NAMES_AND_CONTENT)),
        *(
            pytest.param(FAR if number % 2 else "", *case, marks=pytest.mark.soak)
            for number, case in enumerate(NAMES_AND_CONTENT)
        ),
    ],
)
def test_text_files_have_the_names_and_the_content_that_beam_gives(
    tmp_path: Path,
    write: Any,
    scheme: str,
    values: list[Any],
    arguments: dict[str, Any],
    expected: dict[str, bytes],
) -> None:
    names = write(WriteToText(f"{scheme}{tmp_path}/o", **arguments), values)
    assert contents(tmp_path) == expected
    assert names == [f"{scheme}{tmp_path}/{name}" for name in expected]


@SCHEMES
def test_without_a_number_of_shards_each_task_with_elements_writes_one_file(
    tmp_path: Path, write: Any, scheme: str
) -> None:
    names = write(
        WriteToText(f"{scheme}{tmp_path}/new/o", ".txt", header="h"), list("abcdefgh"), partitions=2
    )
    assert names == [f"{scheme}{tmp_path}/new/o-0000{shard}-of-00002.txt" for shard in range(2)]
    files = list(contents(tmp_path).values())
    assert b"".join(content.removeprefix(b"h\n") for content in files) == b"a\nb\nc\nd\ne\nf\ng\nh\n"


DECOMPRESS = {
    "gzip": gzip.decompress,
    "bzip2": bz2.decompress,
    "deflate": zlib.decompress,
    "lzma": lzma.decompress,
    "zstd": lambda data: pa.input_stream(pa.py_buffer(data), compression="zstd").read() if data else data,
}


@pytest.mark.parametrize(("scheme", "kinds"), [("", set(DECOMPRESS)), (FAR, {"gzip", "bzip2", "deflate"})])
def test_compressed_files_are_whole_also_where_they_are_empty(
    tmp_path: Path, write: Any, scheme: str, kinds: set[str]
) -> None:
    for kind in kinds:
        for values in ([], ["a", "b"]):
            write(WriteToText(f"{scheme}{tmp_path}/{kind}", num_shards=2, compression_type=kind), values)
            parts = [
                DECOMPRESS[kind]((tmp_path / f"{kind}-0000{shard}-of-00002").read_bytes())
                for shard in range(2)
            ]
            assert b"".join(parts) == b"".join(value.encode() + b"\n" for value in values)
    (name,) = write(WriteToText(f"{scheme}{tmp_path}/auto", ".GZ", num_shards=1), ["a"])
    assert gzip.decompress(Path(name.removeprefix(scheme)).read_bytes()) == b"a\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"append_trailing_newlines": False, "header": "h"}, [b"habcdefg"]),
        ({"max_records_per_shard": 3}, [b"a\nb\nc\n", b"d\ne\nf\n", b"g\n"]),
        ({"max_records_per_shard": 4, "header": "h"}, [b"h\na\nb\nc\nd\n", b"h\ne\nf\ng\n"]),
        ({"max_bytes_per_shard": 5}, [b"a\nb\nc\n", b"d\ne\nf\n", b"g\n"]),
        ({"max_bytes_per_shard": 1, "header": "long"}, [b"long\n%c\n" % letter for letter in b"abcdefg"]),
    ],
)
def test_shards_end_at_their_limits_on_local_paths_and_are_refused_by_name_elsewhere(
    tmp_path: Path, write: Any, arguments: dict[str, Any], expected: list[bytes]
) -> None:
    names = write(WriteToText(f"{tmp_path}/o", **arguments), list("abcdefg"), partitions=1)
    assert [Path(name).read_bytes() for name in names] == expected
    with pytest.raises(UnsupportedByRunner, match=next(iter(arguments))):
        plan_sink(WriteToText(f"file://{tmp_path}/o", **arguments).sink, WHERE)


@SCHEMES
def test_a_second_run_replaces_the_files_of_the_first_and_no_others(
    tmp_path: Path, write: Any, scheme: str
) -> None:
    (tmp_path / "o-00000-of-00002.bak").write_bytes(b"keep")
    (tmp_path / "other").write_bytes(b"keep")
    for text in ("old", "new"):
        write(WriteToText(f"{scheme}{tmp_path}/o", num_shards=2), [text, text])
    assert contents(tmp_path) == {
        "o-00000-of-00002": b"new\n",
        "o-00000-of-00002.bak": b"keep",
        "o-00001-of-00002": b"new\n",
        "other": b"keep",
    }


class Breaks(coders.Coder):
    """Fails on one element, after others were written."""

    def encode(self, value: Any) -> bytes:
        if value == "bad":
            raise ValueError("this element breaks")
        return str(value).encode()


@SCHEMES
def test_a_job_that_dies_leaves_neither_files_nor_a_temporary_folder(
    tmp_path: Path, write: Any, scheme: str
) -> None:
    with pytest.raises(PySparkException, match="this element breaks"):
        write(WriteToText(f"{scheme}{tmp_path}/o", coder=Breaks()), ["good"] * 50 + ["bad"], partitions=1)
    assert list(tmp_path.iterdir()) == []


def test_what_only_unbounded_collections_need_is_refused_by_name(tmp_path: Path) -> None:
    for name, value in {"triggering_frequency": 5, "shard_name_template": "-W-SSSSS-of-NNNNN"}.items():
        with pytest.raises(UnsupportedByRunner, match=name):
            plan_sink(WriteToText(f"{tmp_path}/o", **{name: value}).sink, WHERE)


@pytest.fixture(params=["UTC", "Asia/Tokyo"])
def session_zone(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """Spark's own time zone, which must not matter."""
    name = "spark.sql.session.timeZone"
    before = spark.conf.get(name)
    spark.conf.set(name, request.param)
    yield request.param
    spark.conf.set(name, before)


class Inner(NamedTuple):
    x: int


class Score(NamedTuple):
    team: str
    points: int | None
    when: Timestamp
    inner: list[Inner]
    counts: dict[str, float]


SCHEMA = pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.list_(pa.struct({"c": pa.string()})))])


@SCHEMES
def test_dicts_become_parquet_records_of_the_schema(tmp_path: Path, write: Any, scheme: str) -> None:
    values = [{"a": 1, "b": [{"c": "x"}]}, {"a": None}, {"b": [None]}]
    names = write(
        WriteToParquet(f"{scheme}{tmp_path}/o", SCHEMA, file_name_suffix=".parquet", num_shards=1), values
    )
    assert names == [f"{scheme}{tmp_path}/o-00000-of-00001.parquet"]
    expected = [{"a": 1, "b": [{"c": "x"}]}, {"a": None, "b": None}, {"a": None, "b": [None]}]
    assert pq.ParquetFile(f"{tmp_path}/o-00000-of-00001.parquet").read().to_pylist() == expected
    assert len(contents(tmp_path)) == 1


@SCHEMES
def test_parquet_shards_without_records_still_have_the_schema(
    tmp_path: Path, write: Any, scheme: str
) -> None:
    write(WriteToParquet(f"{scheme}{tmp_path}/o", SCHEMA, num_shards=3), [{"a": 1}])
    tables = [pq.ParquetFile(path).read() for path in sorted(tmp_path.iterdir())]
    assert sorted(table.num_rows for table in tables) == [0, 0, 1]
    assert {tuple(table.column_names) for table in tables} == {("a", "b")}


@SCHEMES
@pytest.mark.usefixtures("session_zone")
def test_rows_of_a_known_type_become_parquet_records(tmp_path: Path, write: Any, scheme: str) -> None:
    sink = dataclasses.replace(WriteToParquet(f"{scheme}{tmp_path}/o", num_shards=1).sink, element_type=Score)
    write(
        sink,
        [
            Score("a", None, Timestamp(1), [Inner(1)], {"k": 0.5}),
            Row(team="b", points=2, when=Timestamp(2), inner=[], counts={}),
        ],
    )
    first, second = pq.ParquetFile(f"{tmp_path}/o-00000-of-00001").read().to_pylist()
    assert first["team"] == "a"
    assert first["points"] is None
    assert first["when"] == datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.UTC)
    assert (first["inner"], first["counts"]) == ([{"x": 1}], [("k", 0.5)])
    assert second["points"] == 2


def test_parquet_options_reach_the_file(tmp_path: Path, write: Any) -> None:
    sink = WriteToParquet(
        f"{tmp_path}/o",
        SCHEMA,
        row_group_buffer_size=1,
        record_batch_size=2,
        codec="zstd",
        shard_name_template="",
    )
    write(sink, [{"a": number} for number in range(5)])
    metadata = pq.ParquetFile(f"{tmp_path}/o").metadata
    assert [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)] == [2, 2, 1]
    assert metadata.row_group(0).column(0).compression == "ZSTD"


@SCHEMES
def test_tables_become_parquet_records(tmp_path: Path, write: Any, scheme: str) -> None:
    table = pa.Table.from_pylist([{"a": 1, "b": []}], SCHEMA)
    write(WriteToParquetBatched(f"{scheme}{tmp_path}/o", SCHEMA, num_shards=1), [table, table])
    assert pq.ParquetFile(f"{tmp_path}/o-00000-of-00001").read().num_rows == 2


@SCHEMES
@pytest.mark.parametrize(
    ("value", "problem"), [({"a": "secret"}, "field a does not fit"), ("secret", "has no named fields")]
)
def test_values_that_do_not_fit_the_schema_are_an_error_without_the_value(
    tmp_path: Path, write: Any, scheme: str, value: Any, problem: str
) -> None:
    with pytest.raises(PySparkException, match=problem) as caught:
        write(WriteToParquet(f"{scheme}{tmp_path}/o", SCHEMA), [value])
    assert WHERE in str(caught.value)
    assert "secret" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_columns_that_spark_has_no_type_for_are_written_to_local_paths_only(
    tmp_path: Path, write: Any
) -> None:
    schema = pa.schema({"t": pa.time32("s"), "u": pa.uint64()})
    record = {"t": datetime.time(12), "u": 2**64 - 1}
    write(WriteToParquet(f"{tmp_path}/o", schema, num_shards=1), [record])
    assert pq.ParquetFile(f"{tmp_path}/o-00000-of-00001").read().to_pylist() == [record]
    with pytest.raises(UnsupportedByRunner, match="Spark has no type"):
        plan_sink(WriteToParquet(f"file://{tmp_path}/o", schema).sink, WHERE)


ROWS = [Row(a=1, b="x,y"), Row(a=None, b='"é"')]


@SCHEMES
def test_rows_become_csv_as_pandas_writes_it(tmp_path: Path, write: Any, scheme: str) -> None:
    results = write(WriteToCsv(f"{scheme}{tmp_path}/o.csv", num_shards=1), ROWS, batch=1)
    assert results == [FileResult("o.csv-00000-of-00001", 0, 1, GlobalWindow(), None, None)]
    assert contents(tmp_path) == {"o.csv-00000-of-00001": 'a,b\n1,"x,y"\n,"""é"""\n'.encode()}


@SCHEMES
def test_csv_arguments_and_namings_are_those_of_pandas_and_fileio(
    tmp_path: Path, write: Any, scheme: str
) -> None:
    transform = WriteToCsv(
        f"{scheme}{tmp_path}",
        num_shards=1,
        file_naming=default_file_naming("n", ".csv"),
        sep=";",
        header=False,
        na_rep="-",
    )
    (result,) = write(transform, ROWS)
    assert result.file_name == "n-00000-of-00001.csv"
    assert contents(tmp_path) == {result.file_name: '1;x,y\n-;"""é"""\n'.encode()}


@SCHEMES
def test_an_empty_collection_of_known_columns_writes_a_csv_file_with_a_header(
    tmp_path: Path, write: Any, scheme: str
) -> None:
    sink = WriteToCsv(f"{scheme}{tmp_path}/o").sink
    assert write(sink, []) == []
    assert contents(tmp_path) == {}
    write(dataclasses.replace(sink, columns=("a", "b")), [])
    assert contents(tmp_path) == {"o-00000-of-00001": b"a,b\n"}


@SCHEMES
def test_rows_become_json_lines(tmp_path: Path, write: Any, scheme: str) -> None:
    rows = [*ROWS, Row(a={"n": [1, 2.5]}, b=True)]
    write(WriteToJson(f"{scheme}{tmp_path}/o", num_shards=1), rows, batch=2)
    lines = contents(tmp_path)["o-00000-of-00001"].decode().splitlines()
    assert [json.loads(line) for line in lines] == [row.as_dict() for row in rows]


def test_rows_become_one_json_list(tmp_path: Path, write: Any) -> None:
    write(WriteToJson(f"{tmp_path}/o", num_shards=1, lines=False), ROWS, batch=1)
    assert json.loads(contents(tmp_path)["o-00000-of-00001"]) == [row.as_dict() for row in ROWS]
    with pytest.raises(UnsupportedByRunner, match="lines=False"):
        plan_sink(WriteToJson(f"file://{tmp_path}/o", lines=False).sink, WHERE)


def test_elements_without_fields_are_no_rows(tmp_path: Path, write: Any) -> None:
    with pytest.raises(PySparkException, match="has no named fields"):
        write(WriteToCsv(f"{tmp_path}/o"), ["secret"])
    assert list(tmp_path.iterdir()) == []


def test_any_format_of_spark_can_be_written_by_name(tmp_path: Path, spark: SparkSession, write: Any) -> None:
    transform = WriteToSpark("orc", f"{tmp_path}/o", partition_by="team", schema="team string, points int")
    assert write(transform, [{"team": "a", "points": 1}, Row(team="b", points=None)]) == []
    rows = spark.read.orc(f"{tmp_path}/o").sort("team").collect()
    assert [(row.team, row.points) for row in rows] == [("a", 1), ("b", None)]
    with pytest.raises(PySparkException, match="already exists"):
        write(transform, [])
    typed = dataclasses.replace(
        transform.sink, schema=None, element_type=Inner, mode="overwrite", partition_by=()
    )
    write(typed, [Inner(1)])
    assert spark.read.orc(f"{tmp_path}/o").first().asDict() == {"x": 1}
