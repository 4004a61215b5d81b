"""The types of the rows of DataFrames, tables and files, from the source to whatever is made of the rows."""

from __future__ import annotations

import datetime
import decimal
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as beam
from penstock.io import (
    ReadFromCsv,
    ReadFromJson,
    ReadFromParquet,
    ReadFromSpark,
    WriteToParquet,
    WriteToSpark,
    from_dataframe,
    to_dataframe,
)
from penstock.typehints import TypeCheckError

pytestmark = pytest.mark.spark

_COLUMNS: dict[str, tuple[str, Any]] = {
    "b": ("boolean", True),
    "i1": ("tinyint", -1),
    "i4": ("int", 3),
    "i8": ("bigint", 2**62),
    "f4": ("float", 1.5),
    "f8": ("double", float("inf")),
    "s": ("string", "x"),
    "bin": ("binary", bytearray(b"\0z")),
    "d": ("date", datetime.date(2020, 2, 29)),
    "ts": ("timestamp", datetime.datetime(2020, 1, 1, 12, 0, 0, 5)),
    "ntz": ("timestamp_ntz", datetime.datetime(1960, 1, 1, 1, 2, 3)),
    "dec": ("decimal(10,2)", decimal.Decimal("12345678.91")),
    "big": ("decimal(38,0)", decimal.Decimal(10**37)),
    "arr": ("array<int>", [1, None]),
    "m": ("map<string,array<decimal(5,1)>>", {"a": [decimal.Decimal("1.5"), None], "b": None}),
    "st": ("struct<x:int,y:struct<z:timestamp_ntz>>", (1, (datetime.datetime(2000, 1, 1),))),
    "many": ("array<struct<k:string,v:map<string,int>>>", [("k", {"q": 1, "r": None}), None]),
    "odd name": ("int", 7),
    "a.b": ("int", 8),
    "back`quote": ("int", 8),
    "self": ("int", 9),
    "ü": ("string", "u"),
    "_asdict": ("int", 11),
    "as_dict": ("int", 12),
}
_WITHOUT = [[], ["all"]]
"""With the columns that Spark computes, and with Python alone."""


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@pytest.fixture(scope="module")
def frame(spark):
    schema = ", ".join(f"{_quoted(name)} {kind}" for name, (kind, _) in _COLUMNS.items())
    values = tuple(value for _, value in _COLUMNS.values())
    rows = [(0, *values), (1, *(None for _ in values))]
    made = spark.createDataFrame(rows, f"n bigint not null, {schema}")
    made.cache()
    return made


def _content(frame) -> list[str]:
    return sorted(map(repr, frame.collect()))


def _widened(schema) -> str:
    """A schema as text, with the one type of whole and of other numbers that Python has."""
    text = schema.simpleString()
    for narrow, wide in (
        ("tinyint", "bigint"),
        (":int", ":bigint"),
        ("<int", "<bigint"),
        (",int", ",bigint"),
    ):
        text = text.replace(narrow, wide)
    return text.replace("float", "double")


_STEPS = {
    "nothing": None,
    "an identity": beam.Map(lambda row: row),
    "a filter of columns": beam.Filter(beam.field("n") >= 0),
    "a filter in Python": beam.Filter(lambda row: row.n >= 0),
    "a selection": beam.Select("n", *_COLUMNS),
    "a grouping": beam.GroupBy("n") | beam.FlatMap(lambda group: group[1]),
    "a reshuffle": beam.Reshuffle(),
}


@pytest.mark.every_spark
@pytest.mark.parametrize("without", _WITHOUT, ids=["columns", "python"])
@pytest.mark.parametrize("steps", _STEPS)
def test_a_frame_of_any_types_comes_back_as_it_was(spark, frame, steps, without):
    rows = beam.Pipeline(spark=spark, without=without) | from_dataframe(frame)
    made = rows if _STEPS[steps] is None else rows | "Steps" >> _STEPS[steps]
    back = to_dataframe(made)
    assert _content(back) == _content(frame)
    assert _widened(back.schema) == _widened(frame.schema)


def _named(frame):
    """Columns with names that every format takes."""
    return frame.select("n", *(_quoted(name) for name in _COLUMNS if name.isidentifier()))


@pytest.mark.parametrize("without", _WITHOUT, ids=["columns", "python"])
def test_rows_of_any_types_are_the_same_in_every_sink(spark, frame, tmp_path, without):
    named = _named(frame)
    with beam.Pipeline(spark=spark, without=without) as p:
        rows = p | from_dataframe(named) | beam.Filter(beam.field("n") >= 0)
        _ = rows | WriteToParquet(str(tmp_path / "parquet"), file_name_suffix=".parquet")
        _ = rows | WriteToSpark("orc", str(tmp_path / "orc"))
    read = {
        "parquet": spark.read.parquet(*map(str, tmp_path.glob("parquet*.parquet"))),
        "orc": spark.read.orc(str(tmp_path / "orc")),
    }
    for name, written in read.items():
        assert _content(written) == _content(named), name


@pytest.mark.parametrize("without", _WITHOUT, ids=["columns", "python"])
@pytest.mark.parametrize("format", ["parquet rows", "parquet dicts", "orc", "orc by schema"])
def test_files_of_any_types_come_back_as_they_were(spark, frame, tmp_path, format, without):
    named = _named(frame)
    path = str(tmp_path / "table")
    named.write.format(format.split()[0]).save(path)
    read = {
        "parquet rows": lambda: ReadFromParquet(f"{path}/*.parquet", as_rows=True),
        "parquet dicts": lambda: ReadFromParquet(f"{path}/*.parquet"),
        "orc": lambda: ReadFromSpark("orc", path),
        "orc by schema": lambda: ReadFromSpark("orc", path, schema=named.schema),
    }[format]
    records = beam.Pipeline(spark=spark, without=without) | read()
    for label, made in (("at once", records), ("in Python", records | beam.Map(lambda record: record))):
        back = to_dataframe(made)
        assert _content(back) == _content(named), label


def test_parquet_files_that_pyarrow_wrote_have_types_too(spark, tmp_path):
    table = pa.table(
        {
            "u8": pa.array([200, None], pa.uint8()),
            "u64": pa.array([2**64 - 1, None], pa.uint64()),
            "word": pa.array(["a", None]).dictionary_encode(),
            "at": pa.array([datetime.datetime(2020, 1, 1), None], pa.timestamp("ms", "Europe/Berlin")),
            "local": pa.array([datetime.datetime(2020, 1, 1), None], pa.timestamp("us")),
            "long": pa.array([datetime.timedelta(seconds=1), None], pa.duration("us")),
            "nested": pa.array([[{"x": [1, 2]}], None]),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    # Spark itself reads a length of time as a number.
    expected = spark.read.parquet(str(tmp_path / "a.parquet")).selectExpr(
        *("u8", "u64", "word", "at", "local"), "make_dt_interval(0, 0, 0, long / 1000000) AS long", "nested"
    )
    for as_rows in (True, False):
        rows = beam.Pipeline(spark=spark) | ReadFromParquet(str(tmp_path / "*.parquet"), as_rows=as_rows)
        back = to_dataframe(rows | beam.Map(lambda row: row))
        assert _content(back) == _content(expected)


def test_files_with_other_columns_than_the_first_have_the_columns_of_all(spark, tmp_path):
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"c": [1.5], "a": [2]}), tmp_path / "2.parquet")
    rows = beam.Pipeline(spark=spark) | ReadFromParquet(str(tmp_path / "*"), as_rows=True)
    found = {(row.a, row.b, row.c) for row in to_dataframe(rows | beam.Map(lambda row: row)).collect()}
    assert found == {(1, "x", None), (2, None, 1.5)}


_CSV = 'team,points,share,fair,note\nred,3,1.5,true,"a, b"\nblue,,2,,\n'


def test_columns_of_csv_files_have_the_types_that_their_values_have(spark, tmp_path):
    (tmp_path / "a.csv").write_text(_CSV)
    rows = beam.Pipeline(spark=spark) | ReadFromCsv(str(tmp_path / "*.csv"), filename_column="file")
    back = to_dataframe(rows)
    assert back.schema.simpleString() == (
        "struct<team:string,points:bigint,share:double,fair:boolean,note:string,file:string>"
    )
    file = str(tmp_path / "a.csv")
    expected = {("red", 3, 1.5, True, "a, b", file), ("blue", None, 2.0, None, None, file)}
    assert set(map(tuple, back.collect())) == expected
    totals = to_dataframe(rows | beam.GroupBy("fair").aggregate_field("share", sum, "total"))
    assert set(map(tuple, totals.collect())) == {(True, 1.5), (None, 2.0)}


def test_a_column_of_csv_that_turns_out_otherwise_is_refused_before_anything_is_written(
    spark, tmp_path, monkeypatch
):
    from penstock_spark.sources import file_samples

    monkeypatch.setattr(file_samples, "SAMPLE_BYTES", 64)
    (tmp_path / "a.csv").write_text("n,word\n" + "1,a\n" * 100 + "1.5,b\n")
    p = beam.Pipeline(spark=spark)
    rows = p | ReadFromCsv(str(tmp_path / "a.csv"))
    _ = rows | WriteToParquet(str(tmp_path / "out"))
    with pytest.raises(ValueError, match=r"the column n seemed to be int.*\n.*\n.*dtype=\{'n': float\}"):
        p.run()
    assert not list(tmp_path.glob("out*"))
    declared = beam.Pipeline(spark=spark) | ReadFromCsv(str(tmp_path / "a.csv"), dtype={"n": float})
    assert to_dataframe(declared).count() == 101


def test_fields_of_json_files_have_the_types_that_their_values_have(spark, tmp_path):
    objects = [
        {
            "team": "red",
            "points": 3,
            "share": 1,
            "deep": {"x": [1, None], "y": None},
            "none": None,
            "empty": [],
        },
        {"share": 1.5, "deep": {"z": True}, "late": "x"},
    ]
    (tmp_path / "a.json").write_text("".join(json.dumps(each) + "\n" for each in objects))
    rows = beam.Pipeline(spark=spark) | ReadFromJson(str(tmp_path / "*.json"))
    back = to_dataframe(rows)
    assert back.schema.simpleString() == (
        "struct<team:string,points:bigint,share:double,deep:struct<x:array<bigint>,y:string,z:boolean>,"
        "none:string,empty:array<string>,late:string>"
    )
    first, second = sorted(map(tuple, back.collect()), key=lambda row: row[2])
    assert first == ("red", 3, 1.0, ([1, None], None, None), None, [], None)
    assert second == (None, None, 1.5, (None, None, True), None, None, "x")


@pytest.mark.every_spark
def test_empty_frames_and_files_have_types(spark, frame, tmp_path):
    nothing = frame.where("n > 5")
    back = to_dataframe(beam.Pipeline(spark=spark) | from_dataframe(nothing) | beam.Map(lambda row: row))
    assert back.count() == 0
    assert _widened(back.schema) == _widened(frame.schema)
    (tmp_path / "a.csv").write_text("team,points\n")
    csv = to_dataframe(beam.Pipeline(spark=spark) | ReadFromCsv(str(tmp_path / "a.csv")))
    assert csv.columns == ["team", "points"]
    assert csv.count() == 0


@pytest.mark.parametrize("without", _WITHOUT, ids=["columns", "python"])
def test_aggregated_fields_have_types(spark, frame, without):
    rows = beam.Pipeline(spark=spark, without=without) | from_dataframe(frame)
    grouped = (
        beam.GroupBy("d", key=beam.field("s"))
        .aggregate_field("n", sum, "total")
        .aggregate_field("n", beam.combiners.MeanCombineFn(), "mean")
        .aggregate_field("n", beam.combiners.CountCombineFn(), "count")
        .aggregate_field("i4", max, "most")
        .aggregate_field("dec", min, "least")
    )
    back = to_dataframe(rows | grouped)
    assert back.schema.simpleString() == (
        "struct<d:date,key:string,total:bigint,mean:double,count:bigint,most:bigint,least:decimal(10,2)>"
    )
    assert set(map(tuple, back.collect())) == {
        (datetime.date(2020, 2, 29), "x", 0, 0.0, 1, 3, decimal.Decimal("12345678.91")),
        (None, None, 1, 1.0, 1, None, None),
    }


def test_columns_of_one_name_are_refused_where_the_frame_is_read(spark):
    frame = spark.sql("select 1 as a, 2 as a")
    with pytest.raises(
        ValueError, match=r"the columns a occur twice\n  at step 'from_dataframe' \(test_types_"
    ):
        _ = beam.Pipeline(spark=spark) | from_dataframe(frame)


def test_rows_of_a_stream_have_types(spark, tmp_path):
    pq.write_table(pa.table({"team": ["red", "red"], "points": [1, 2]}), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("team,points\nblue,3\n")
    (tmp_path / "a.json").write_text('{"team": "green", "points": 4}\n')
    out = tmp_path / "out"
    with beam.Pipeline(spark=spark, mode="streaming") as p:
        csv = p | ReadFromCsv(str(tmp_path / "*.csv")).as_stream(existing_only=True)
        others = (
            csv,
            p | ReadFromJson(str(tmp_path / "*.json")).as_stream(existing_only=True),
        ) | beam.Flatten()
        _ = others | "Others" >> WriteToSpark("parquet", str(tmp_path / "others"))
        rows = p | ReadFromParquet(str(tmp_path / "*.parquet"), as_rows=True).as_stream(existing_only=True)
        _ = rows | beam.Select("team", double=beam.field("points") * 2) | WriteToSpark("parquet", str(out))
        with pytest.raises(TypeCheckError, match="no field 'poinst'"):
            _ = rows | "Wrong" >> beam.Select("poinst")
    written = spark.read.parquet(str(out))
    assert sorted(map(tuple, written.collect())) == [("red", 2), ("red", 4)]
    assert sorted(map(tuple, spark.read.parquet(str(tmp_path / "others")).collect())) == [
        ("blue", 3),
        ("green", 4),
    ]
