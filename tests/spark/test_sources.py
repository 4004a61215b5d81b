"""Sources opened by the runner: which elements come out of which files."""

from __future__ import annotations

import bz2
import datetime
import decimal
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock as beam
from penstock.coders import coders
from penstock.elements.row import Row
from penstock.error import UnsupportedByRunner
from penstock.io import (
    ReadAllFromParquet,
    ReadFromParquet,
    ReadFromParquetBatched,
    ReadFromSpark,
    ReadFromText,
    ReadFromTextWithFilename,
)
from penstock.io.sparkio import DataFrameSource
from penstock.testing.util import assert_that, equal_to
from penstock_spark.formats.registry import open_source
from tests.spark.scanned import WHERE, elements


@pytest.fixture
def read(spark: SparkSession) -> Callable[[Any], list[Any]]:
    return lambda transform: elements(open_source(transform.source, spark, WHERE))


@pytest.fixture
def small_splits(spark: SparkSession) -> Iterator[None]:
    """Files are cut into splits of 100 bytes, so that lines straddle splits and partitions hold several."""
    names = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")
    before = {name: spark.conf.get(name) for name in names}
    spark.conf.set(names[0], "100")
    spark.conf.set(names[1], "1")
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


def zstd(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)


TEXT = b"a\r\nb\rc\n\n last"


@pytest.mark.parametrize(
    ("name", "content", "arguments", "expected"),
    [
        ("a.txt", TEXT, {}, ["a", "b\rc", "", " last"]),
        ("a.txt", b"", {}, []),
        ("a.txt", b"\n", {}, [""]),
        ("a.txt", TEXT, {"strip_trailing_newlines": False}, ["a\r\n", "b\rc\n", "\n", " last"]),
        ("a.txt", TEXT, {"skip_header_lines": 2}, ["", " last"]),
        ("a.txt", TEXT, {"skip_header_lines": 9}, []),
        ("a.txt", TEXT, {"skip_header_lines": True}, ["b\rc", "", " last"]),
        ("a.txt", b"a|#b|c|#d\n|#", {"delimiter": b"|#"}, ["a", "b|c", "d\n"]),
        ("a.txt", b"a\xffb", {"delimiter": b"\xff"}, ["a", "b"]),
        ("a.txt", b"a\\\nb\\\\\nc\n", {"escapechar": b"\\"}, ["a\\\nb\\\\", "c"]),
        ("a.gz", gzip.compress(b"a\n", mtime=0) + gzip.compress(b"b\n", mtime=0), {}, ["a", "b"]),
        ("a.GZ", gzip.compress(b"a\nb", mtime=0), {}, ["a", "b"]),
        ("a.bz2", bz2.compress(TEXT), {}, ["a", "b\rc", "", " last"]),
        ("a.deflate", zlib.compress(b"a\nb"), {}, ["a", "b"]),
        ("a.deflate", zlib.compress(b"a\n") + zlib.compress(b"b"), {}, ["a", "b"]),
        ("a.txt", zlib.compress(b"a\n") + zlib.compress(b"b"), {"compression_type": "deflate"}, ["a", "b"]),
        pytest.param("a.zst", zstd(b"a\nb"), {}, ["a", "b"], marks=pytest.mark.every_spark),
        ("a.zstd", zstd(b"a\nb"), {}, ["a", "b"]),
        ("a.xz", lzma.compress(b"a\nb"), {}, ["a", "b"]),
        ("a.txt", gzip.compress(b"a\nb", mtime=0), {"compression_type": "gzip"}, ["a", "b"]),
        ("a.txt", zstd(b"a\nb"), {"compression_type": "zstd"}, ["a", "b"]),
        ("a.gz", b"a\nb", {"compression_type": "uncompressed"}, ["a", "b"]),
        ("a.txt", "é\n".encode("latin-1"), {"coder": coders.BytesCoder()}, [b"\xe9"]),
        ("a.txt", b"a\r\n", {"coder": coders.BytesCoder()}, [b"a"]),
    ],
)
def test_a_text_file_gives_the_records_that_beam_gives(
    tmp_path: Path, read: Any, name: str, content: bytes, arguments: dict[str, Any], expected: list[Any]
) -> None:
    (tmp_path / name).write_bytes(content)
    assert read(ReadFromText(str(tmp_path / name), **arguments)) == expected
    named = read(ReadFromTextWithFilename(str(tmp_path / name), **arguments))
    assert named == [(str(tmp_path / name), each) for each in expected]


@pytest.mark.usefixtures("small_splits")
@pytest.mark.parametrize(
    ("end", "skip"),
    [
        (b"\n", 0),
        (b"\r\n", 1),
        (b"\n", 3),
        pytest.param(b"\r\n", 0, marks=pytest.mark.soak),
        pytest.param(b"\n", 1, marks=pytest.mark.soak),
        pytest.param(b"\r\n", 3, marks=pytest.mark.soak),
    ],
)
def test_lines_and_headers_survive_splits_that_cut_files_anywhere(
    tmp_path: Path, read: Any, end: bytes, skip: int
) -> None:
    expected = []
    for file in range(4):
        lines = [f"{file}:{line}:" + "x" * (line % 37) for line in range(40 + file)]
        (tmp_path / f"{file}.txt").write_bytes(b"".join(line.encode() + end for line in lines))
        expected += lines[skip:]
    (tmp_path / "short.txt").write_bytes(b"only" + end)
    expected += ["only"][skip:]
    assert sorted(read(ReadFromText(f"{tmp_path}/*", skip_header_lines=skip))) == sorted(expected)


def test_headers_are_skipped_in_every_file_of_a_partition_that_holds_several(
    tmp_path: Path, read: Any
) -> None:
    for file in range(7):
        (tmp_path / f"{file}.txt").write_text(f"head\n{file}\n")
    assert sorted(read(ReadFromText(f"{tmp_path}/*", skip_header_lines=1))) == [
        str(file) for file in range(7)
    ]


def test_a_line_of_ten_megabytes_is_one_element(tmp_path: Path, read: Any) -> None:
    (tmp_path / "a.txt").write_bytes((b"x" * 10_000_000 + b"\n") * 3)
    assert [len(line) for line in read(ReadFromText(f"{tmp_path}/a.txt"))] == [10_000_000] * 3


@pytest.mark.xfail(
    strict=True, reason="Spark's line reader does not say whether a line end follows the last line"
)
def test_a_return_at_the_end_of_a_compressed_file_belongs_to_the_line(tmp_path: Path, read: Any) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"a\r"))
    assert read(ReadFromText(f"{tmp_path}/a.txt.gz")) == ["a\r"]


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.txt.xz"])
def test_a_mark_of_the_byte_order_is_no_part_of_the_first_line(tmp_path: Path, read: Any, name: str) -> None:
    pack = {".gz": gzip.compress, ".xz": lzma.compress}.get(Path(name).suffix, bytes)
    (tmp_path / name).write_bytes(pack("\ufeffa\n\ufeffb\n".encode()))
    assert read(ReadFromText(f"{tmp_path}/{name}")) == ["a", "\ufeffb"]


def test_bytes_that_are_not_utf8_are_an_error_that_says_what_to_do(tmp_path: Path, spark: Any) -> None:
    (tmp_path / "a.txt").write_bytes(b"fine\nsecret\xff\n")
    with (
        pytest.raises(UnicodeDecodeError, match=r"in line 2 of .*a\.txt") as caught,
        beam.Pipeline(spark=spark) as p,
    ):
        _ = p | ReadFromText(f"{tmp_path}/a.txt") | beam.Map(len)
    assert "ReadFromText" in str(caught.value)
    assert "coder" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path, spark: Any) -> None:
    (tmp_path / "a.xz").write_bytes(lzma.compress(b"a\nb")[:-5])
    with (
        pytest.raises(ValueError, match=r"a\.xz is not a complete lzma file"),
        beam.Pipeline(spark=spark) as p,
    ):
        _ = p | ReadFromText(f"{tmp_path}/a.xz") | beam.Map(len)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.txt", ["top"]),
        ("**.txt", ["deep", "inner", "top"]),
        ("*/*.txt", ["inner"]),
        ("t?p.txt", ["top"]),
        ("[a-t]op.txt", ["top"]),
        ("[!t]op.txt", []),
        ("in dir%20/*", ["inner"]),
        ("odd/", ["braces"]),
        ("odd/x{a,b}[[]1[]].log", ["braces"]),
        ("out/_temporary/*/*.txt", ["half"]),
    ],
)
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_wildcards_mean_what_they_mean_in_beam(
    tmp_path: Path, read: Any, scheme: str, pattern: str, expected: list[str]
) -> None:
    for name, text in {
        "top.txt": "top",
        "in dir%20/inner.txt": "inner",
        "in dir%20/more/deep.txt": "deep",
        "odd/x{a,b}[1].log": "braces",
        "_hidden.txt": "hidden",
        ".hidden.txt": "hidden",
        "_penstock-temp-1/a.txt": "of another run",
        "out/_temporary/0/part.txt": "half",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert sorted(read(ReadFromText(f"{scheme}{tmp_path}/{pattern}", validate=False))) == expected
    names = [
        name for name, _ in read(ReadFromTextWithFilename(f"{scheme}{tmp_path}/{pattern}", validate=False))
    ]
    assert all(
        name.startswith(f"{scheme}{tmp_path}/") and Path(name.removeprefix(scheme)).exists() for name in names
    )


def test_a_relative_pattern_gives_relative_file_names(
    tmp_path: Path, read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.txt").write_text("x")
    monkeypatch.chdir(tmp_path)
    assert read(ReadFromTextWithFilename("logs/*")) == [("logs/a.txt", "x")]


def test_a_pattern_that_matches_nothing_is_refused_before_anything_starts(
    tmp_path: Path, spark: SparkSession
) -> None:
    for prefix in ("", "file://"):
        source = ReadFromText(f"{prefix}{tmp_path}/*", validate=False).source
        assert elements(open_source(source, spark, WHERE)) == []
        object.__setattr__(source, "validate", True)
        with pytest.raises(OSError, match="No files found based on the file pattern"):
            open_source(source, spark, WHERE)


def test_files_that_spark_would_leave_out_are_refused_by_name(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "_a.txt").write_text("x")
    with pytest.raises(OSError, match="begins with _"):
        open_source(ReadFromText(f"{tmp_path}/_a.txt").source, spark, WHERE)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        open_source(ReadFromText(str(tmp_path)).source, spark, WHERE)


UTC = datetime.UTC
RECORDS = [
    {
        "i": 2**60,
        "u": 2**31,
        "f": 0.5,
        "s": "é",
        "b": b"\xff",
        "t": datetime.datetime(2024, 1, 1, 12, tzinfo=UTC),
        "n": datetime.datetime(2024, 1, 1, 12),
        "d": datetime.date(2024, 1, 1),
        "c": decimal.Decimal("1.50"),
        "l": [{"x": 1}, None],
        "m": [("k", 1)],
        "o": {"p": {"q": 1}, "r": "z"},
    },
    dict.fromkeys("iufsbtndclmo"),
]
SCHEMA = pa.schema(
    {
        "i": pa.int64(),
        "u": pa.uint32(),
        "f": pa.float64(),
        "s": pa.string(),
        "b": pa.binary(),
        "t": pa.timestamp("us", "Europe/Berlin"),
        "n": pa.timestamp("us"),
        "d": pa.date32(),
        "c": pa.decimal128(10, 2),
        "l": pa.list_(pa.struct({"x": pa.int64()})),
        "m": pa.map_(pa.string(), pa.int64()),
        "o": pa.struct({"p": pa.struct({"q": pa.int64()}), "r": pa.string()}),
    }
)


@pytest.fixture
def parquet(tmp_path: Path) -> str:
    pq.write_table(pa.Table.from_pylist(RECORDS, SCHEMA), tmp_path / "a.parquet")
    return f"{tmp_path}/*.parquet"


def test_parquet_files_that_may_be_missing_and_are_give_nothing(tmp_path: Path, read: Any) -> None:
    assert read(ReadFromParquet(f"{tmp_path}/*", validate=False)) == []


def test_parquet_records_are_dicts_of_the_values_that_pyarrow_gives(parquet: str, read: Any) -> None:
    assert read(ReadFromParquet(parquet)) == RECORDS


def test_parquet_as_rows_makes_rows_of_structs_and_dicts_of_maps(parquet: str, read: Any) -> None:
    first, second = read(ReadFromParquet(parquet, as_rows=True))
    assert first.l == [Row(x=1), None]
    assert first.m == {"k": 1}
    assert first.o == Row(p=Row(q=1), r="z")
    assert first.t.utcoffset() == datetime.timedelta(0)
    assert set(second) == {None}


def test_parquet_columns_may_be_parts_of_structs(parquet: str, read: Any) -> None:
    assert read(ReadFromParquet(parquet, columns=["o.p", "i"]))[0] == {"i": 2**60, "o": {"p": {"q": 1}}}


def test_parquet_columns_that_are_not_there_are_refused(parquet: str, spark: SparkSession) -> None:
    with pytest.raises(ValueError, match=r"no columns o\.z"):
        open_source(ReadFromParquet(parquet, columns=["o.z"]).source, spark, WHERE)


def test_parquet_batches_are_tables(parquet: str, read: Any) -> None:
    (table,) = read(ReadFromParquetBatched(parquet, columns=["i", "s"]))
    assert table.to_pylist() == [{"i": 2**60, "s": "é"}, {"i": None, "s": None}]


def test_parquet_columns_that_only_some_files_have_are_none_in_the_others(tmp_path: Path, read: Any) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [2], "b": [3]}), tmp_path / "2.parquet")
    records = read(ReadFromParquet(f"{tmp_path}/*"))
    assert sorted(records, key=lambda record: record["a"]) == [{"a": 1, "b": None}, {"a": 2, "b": 3}]


@pytest.mark.every_spark
@pytest.mark.parametrize(
    ("one", "other", "numbers"),
    [
        (pa.int32(), pa.int64(), (1, 2**40)),
        (pa.int64(), pa.int8(), (2**40, -1)),
        (pa.uint32(), pa.int32(), (2**32 - 1, -1)),
        (pa.int32(), pa.float64(), (2**31 - 1, 1e300)),
        (pa.float32(), pa.float64(), (0.5, 1e300)),
        (
            pa.decimal128(5, 2),
            pa.decimal128(12, 3),
            (decimal.Decimal("1.25"), decimal.Decimal("123456789.125")),
        ),
        (pa.null(), pa.string(), (None, "x")),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), ([1], [2**40])),
        (pa.struct({"x": pa.int32()}), pa.struct({"x": pa.int64()}), ({"x": 1}, {"x": 2**40})),
    ],
    ids=str,
)
def test_a_parquet_column_has_the_type_that_holds_the_values_of_all_files(
    tmp_path: Path, read: Any, one: Any, other: Any, numbers: Any
) -> None:
    for name, kind, number in zip("ab", (one, other), numbers, strict=True):
        pq.write_table(pa.table({"n": pa.array([number], kind), "f": [name]}), tmp_path / f"{name}.parquet")
    # With a scheme, only Spark reaches the files, and it does not read nulls without a type as text.
    for scheme in [""] if one == pa.null() else ["", "file://"]:
        records = read(ReadFromParquet(f"{scheme}{tmp_path}/*"))
        values = [record["n"] for record in sorted(records, key=lambda record: record["f"])]
        assert values == list(numbers)
        assert len({type(value) for value in values if value is not None}) == 1
    assert sorted(read(ReadFromParquet(f"{tmp_path}/*", columns=["f"])), key=str) == [{"f": "a"}, {"f": "b"}]


def test_parquet_columns_whose_types_have_none_in_common_are_refused(
    tmp_path: Path, spark: SparkSession
) -> None:
    pq.write_table(pa.table({"n": [2**60], "f": ["a"]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"n": [0.5], "f": ["b"]}), tmp_path / "b.parquet")
    source = ReadFromParquet(f"{tmp_path}/*").source
    what = f"the column n has different types in the files: int64 in {tmp_path}/a.parquet, double in {tmp_path}/b"
    with pytest.raises(UnsupportedByRunner, match=what) as caught:
        open_source(source, spark, WHERE)
    assert f"\n  {WHERE}\n  hint: leave it out with columns=[...]" in str(caught.value)
    some = elements(open_source(ReadFromParquet(f"{tmp_path}/*", columns=["f"]).source, spark, WHERE))
    assert sorted(some, key=str) == [{"f": "a"}, {"f": "b"}]
    files = [f"{tmp_path}/a.parquet", f"{tmp_path}/b.parquet"]
    with beam.Pipeline() as pipeline:
        found = pipeline | beam.Create(files) | ReadAllFromParquet()
        assert_that(found, equal_to([{"n": 2**60, "f": "a"}, {"n": 0.5, "f": "b"}]))


def test_parquet_nanoseconds_are_read_as_the_microseconds_that_python_has(tmp_path: Path, read: Any) -> None:
    instant = datetime.datetime(2026, 1, 2, 3, 4, 5, 123456)
    nanos = pa.array([1_767_323_045_123_456_789], pa.timestamp("ns"))
    inside = pa.StructArray.from_arrays([nanos.cast(pa.timestamp("ns", "UTC"))], ["at"])
    pq.write_table(pa.table({"at": nanos, "s": inside}), tmp_path / "a.parquet")
    pq.write_table(
        pa.table({"at": pa.array([instant], pa.timestamp("ms"), safe=False)}), tmp_path / "b.parquet"
    )
    first, second = sorted(read(ReadFromParquet(f"{tmp_path}/*")), key=lambda record: record["s"] is None)
    assert first == {"at": instant, "s": {"at": instant.replace(tzinfo=datetime.UTC)}}
    assert second == {"at": instant.replace(microsecond=123_000), "s": None}


def test_a_dataframe_gives_rows_with_instants_in_utc(spark: SparkSession) -> None:
    frame = spark.sql(
        "select 1 as a, named_struct('x', array(2)) as s, map('k', named_struct('y', 1)) as m, "
        "timestamp'2024-07-01 12:00:00+02:00' as t, timestamp_ntz'2024-07-01 12:00:00' as n, "
        "1.5bd as d, null as z"
    )
    (row,) = elements(open_source(DataFrameSource(frame), spark, WHERE))
    assert row == Row(
        a=1,
        s=Row(x=[2]),
        m={"k": Row(y=1)},
        t=datetime.datetime(2024, 7, 1, 10, tzinfo=UTC),
        n=datetime.datetime(2024, 7, 1, 12),
        d=decimal.Decimal("1.5"),
        z=None,
    )
    assert row.t.utcoffset() == datetime.timedelta(0)


def test_a_dataframe_with_two_columns_of_one_name_is_refused(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="the columns a occur twice"):
        open_source(DataFrameSource(spark.sql("select 1 as a, 2 as a")), spark, WHERE)


def test_any_format_of_spark_can_be_read_by_name(tmp_path: Path, spark: SparkSession, read: Any) -> None:
    spark.range(3).write.orc(f"{tmp_path}/o")
    assert sorted(row.id for row in read(ReadFromSpark("orc", f"{tmp_path}/o"))) == [0, 1, 2]
    assert read(ReadFromSpark("text", f"{tmp_path}/o", schema="value string", pathGlobFilter="none")) == []
