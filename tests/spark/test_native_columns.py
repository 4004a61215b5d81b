"""What Spark computes with columns is what Python computes with elements: the same pipelines, with it and without."""

from __future__ import annotations

import datetime
import glob
import math
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import penstock as beam
from penstock import field
from penstock.graph import DriverList
from penstock.io import ReadFromParquet, WriteToParquet, from_dataframe, to_dataframe
from penstock.io.sink_transforms import SinkTransform
from penstock.testing.test_pipeline import TestPipeline
from penstock.transforms.window import FixedWindows
from penstock_spark.formats.parquet.footers import certain_schema

pytestmark = pytest.mark.spark

N, M, X, TEXT, YES = (field(name) for name in ("n", "m", "x", "text", "yes"))
MOMENT, MOMENT_LAST = field("moment"), field("last")
_ROWS = 400


def table() -> pa.Table:
    """Rows at random, of values that Python and Spark could see in other ways."""
    chance = random.Random(7)
    words = ["", "a", "A", "é", "z", "\U0001f600", "\uffff", "a b", None]
    floats = [0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, 1e300, 3.0, None]
    seconds = [chance.randrange(-500, 500) for _ in range(_ROWS)]
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    columns = {
        "n": pa.array([chance.choice([-7, -1, 0, 1, 59, 60, 1 << 40, None]) for _ in seconds], pa.int64()),
        "m": pa.array([chance.randrange(-100, 100) for _ in seconds], pa.int16()),
        "x": pa.array([chance.choice(floats) for _ in seconds], pa.float64()),
        "text": pa.array([chance.choice(words) for _ in seconds], pa.string()),
        "yes": pa.array([chance.choice([True, False, None]) for _ in seconds], pa.bool_()),
        "at": pa.array(seconds, pa.int64()),
        "moment": pa.array([start + datetime.timedelta(0, at) for at in seconds], pa.timestamp("us", "UTC")),
    }
    return pa.table(columns)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("columns") / "in.parquet"
    pq.write_table(table(), file)
    return str(file)


EXPRESSIONS = [
    *(N + M, M - N, N * M * 3, N // 7, M // 60, N % 7, M % 100, X + 1, X * N, X - X, N),
    *(X == X, X != X, X < 3, X >= 1.5, X > 3, X <= X * 2, N == M, N != 1, N < M, M >= 0),
    *(TEXT == "a", TEXT != "é", TEXT < "a", TEXT >= "\U0001f600", TEXT <= TEXT, YES == YES),
    *((N > 0) & YES, (N > 0) | YES, ~YES, ~(YES & (X > 0)) | TEXT.is_null(), (X + N).is_null(), ~(X > 0)),
    MOMENT <= MOMENT,
]


def every_expression(rows):
    named = {f"e{place}": each for place, each in enumerate(EXPRESSIONS)}
    return rows | beam.Select("text", "x", "moment", **named)


def filters(rows):
    return rows | beam.Filter(~(X > 1) | (N < M)) | beam.Filter((TEXT != "a") & ~TEXT.is_null())


def sums_in_windows(rows):
    grouped = (
        beam.GroupBy("text", "yes", odd=M % 2 == 1)
        .aggregate_field(M * 1_000_000_007, sum, "total")
        .aggregate_field("x", beam.combiners.CountCombineFn(), "count")
        .aggregate_field("m", beam.combiners.MeanCombineFn(), "mean")
        .aggregate_field("m", min, "least")
        .aggregate_field("moment", max, "last")
    )
    again = (
        beam.GroupBy("odd", "is_old")
        .aggregate_field("total", sum, "total")
        .aggregate_field("last", max, "last")
        .aggregate_field("start", min, "start")
    )
    timed = rows | beam.WithTimestamps("at") | "Minutes" >> beam.WindowInto(FixedWindows(60, offset=7))
    starts = beam.Select(
        "odd", "total", "last", start=beam.window_start(), is_old=beam.window_end() > MOMENT_LAST
    )
    return timed | grouped | starts | "Fives" >> beam.WindowInto(FixedWindows(300)) | "Again" >> again


def sums_of_instants(rows):
    seen = (
        beam.GroupBy("text", n=N).aggregate_field("at", sum, "total").aggregate_field("moment", min, "first")
    )
    return rows | "DueTimes" >> beam.WithTimestamps("moment") | "Sum" >> seen


BUILDS = [every_expression, filters, sums_in_windows, sums_of_instants]


def answers(path: str, *options: str) -> tuple[list[list[str]], str]:
    """What each of `BUILDS` gives, with times and windows, sorted as text; and what explain says."""
    pipeline = TestPipeline(additional_pipeline_args=list(options))
    found: list[list[Any]] = []
    for place, build in enumerate(BUILDS):
        rows = pipeline | f"Read {place}" >> ReadFromParquet(path, as_rows=place % 2 == 0)
        found.append([])
        shown = build(rows) | f"Reify {place}" >> beam.Reify.Window() | f"Show {place}" >> beam.Map(repr)
        shown | f"Out {place}" >> SinkTransform(DriverList(found[-1]))
    text = pipeline.explain()
    pipeline.run()
    return [sorted(each) for each in found], text


def test_columns_give_what_elements_give(path):
    native, text = answers(path)
    in_parts, _ = answers(path, "--without=column_bounds")
    plain, other = answers(path, "--without=native_columns")
    for build, own, same, expected in zip(BUILDS, native, in_parts, plain, strict=True):
        assert own == same == expected, build.__name__
        assert len(own) > 5
    assert text.count("query of columns") == len(BUILDS)
    assert "query of columns" not in other


def test_footers_tell_what_spark_finds(spark, path):
    footers = certain_schema(list(map(pq.read_metadata, [path])))
    assert footers is not None
    assert footers.schema == spark.read.option("mergeSchema", True).parquet(path).schema


@pytest.mark.every_spark
def test_a_typed_pipeline_writes_what_a_query_by_hand_writes_and_no_python_runs(spark, path, tmp_path):
    schema = pa.schema([pa.field("text", pa.string()), pa.field("total", pa.int64(), nullable=False)])
    frame = spark.read.parquet(path)
    with TestPipeline() as p:
        total = beam.GroupBy("text").aggregate_field("m", sum, "total")
        sums = p | from_dataframe(frame) | beam.Filter(N > 0) | total
        written = sums | WriteToParquet(f"{tmp_path}/a b%20/out", schema, num_shards=2)
        names: list[str] = []
        written | SinkTransform(DriverList(names))
        assert "without Python" in p.explain()
    assert sorted(names) == sorted(glob.glob(f"{tmp_path}/a b%20/*"))
    assert len(names) == 2
    assert pq.read_schema(names[0]).remove_metadata() == schema
    by_hand = frame.where("n > 0").groupBy("text").agg(F.sum("m").alias("total")).collect()
    rows = [tuple(row.values()) for name in names for row in pq.read_table(name).to_pylist()]
    assert sorted(rows, key=str) == sorted(map(tuple, by_hand), key=str)
    query = to_dataframe(
        TestPipeline() | from_dataframe(frame) | beam.Select("text", m=M * 2), "text string, m bigint"
    )
    assert "Python" not in query._jdf.queryExecution().executedPlan().toString()


@pytest.mark.parametrize(
    ("value", "rows", "parts"),
    [(N, 4, 1), (N * 2 - 1, 3, 1), (N * 4, 4, 2), (N, 8, 2)],
    ids=["small", "computed", "large products", "many rows"],
)
def test_sums_have_one_part_where_the_footers_show_that_no_sum_is_too_large(tmp_path, value, rows, parts):
    source = str(tmp_path / "numbers")
    numbers = pa.array([1 << 60, -(1 << 60), 5, *[0] * (rows - 3)], pa.int64())
    pq.write_table(pa.table({"text": ["a"] * rows, "n": numbers}), source)
    for options, expected in (([], parts), (["--without=column_bounds"], 2)):
        pipeline = TestPipeline(additional_pipeline_args=options)
        rows_of = pipeline | ReadFromParquet(source, as_rows=True)
        sums = rows_of | beam.GroupBy("text").aggregate_field(value, sum, "total")
        frame = to_dataframe(sums, "text string, total bigint")
        plan = frame._jdf.queryExecution().executedPlan().toString()
        assert plan.count("partial_sum") == expected
        assert [row.total for row in frame.collect()] == [sum(value({"n": n}) for n in numbers.to_pylist())]


def numbers_of_groups() -> dict[int, list[int]]:
    """Integers whose means are near the middle of two floats, or of many bits, or at the ends."""
    chance = random.Random(11)
    least, greatest = -(1 << 63), (1 << 63) - 1
    groups = [[least], [least] * 3, [greatest] * 5, [least, greatest], [0, 0], [1, 2, 2], [-1, -2, -2]]
    for count in (1, 2, 3, 7, 10):
        for bits in range(50, 63):
            # A float of so many bits, the middle of it and the next, and what is least beside that.
            middle = (1 << bits) + (1 << max(bits - 53, 0))
            for beside in (-1, 0, 1):
                sign = chance.choice((-1, 1))
                groups.append([sign * middle] * (count - 1) + [sign * (middle + beside)])
    groups += [
        [chance.randrange(-(1 << bits), 1 << bits) for _ in range(chance.randrange(1, 9))]
        for bits in chance.choices(range(2, 64), k=300)
    ]
    return dict(enumerate(groups))


@pytest.mark.parametrize("bits_max", [31, 53, 58, 63])
def test_means_of_whole_numbers_are_rounded_once_as_in_python(spark, tmp_path, bits_max):
    groups = {
        key: numbers
        for key, numbers in numbers_of_groups().items()
        if all(-(1 << bits_max) <= number < 1 << bits_max for number in numbers)
    }
    keys = [key for key, numbers in groups.items() for _ in numbers]
    numbers = pa.array([number for each in groups.values() for number in each], pa.int64())
    pq.write_table(pa.table({"key": keys, "n": numbers}), tmp_path / "numbers")
    expected = {key: sum(each) / len(each) for key, each in groups.items()}
    mean = beam.GroupBy("key").aggregate_field("n", beam.combiners.MeanCombineFn(), "mean")
    loaded = spark.read.parquet(str(tmp_path / "numbers"))
    for source in (ReadFromParquet(str(tmp_path / "numbers"), as_rows=True), from_dataframe(loaded)):
        frame = to_dataframe(TestPipeline() | source | mean, "key bigint, mean double")
        assert "Python" not in frame._jdf.queryExecution().executedPlan().toString()
        assert {row["key"]: row["mean"] for row in frame.collect()} == expected
    assert len(expected) > 30


def test_none_among_small_numbers_is_refused_as_in_python(tmp_path):
    source = str(tmp_path / "numbers")
    pq.write_table(pa.table({"text": ["a", "a"], "n": [1, None]}), source)
    pipeline = TestPipeline()
    rows = pipeline | ReadFromParquet(source, as_rows=True)
    rows | beam.GroupBy("text").aggregate_field(N, sum, "total") | beam.Map(repr)
    with pytest.raises(TypeError, match=r"unsupported.*while running .*Combine"):
        pipeline.run()


@pytest.mark.parametrize(
    ("transform", "error", "message"),
    [
        (
            beam.GroupBy("text").aggregate_field("n", sum, "out"),
            TypeError,
            "unsupported.*while running .*Combine",
        ),
        (
            beam.GroupBy("text").aggregate_field("n", max, "out"),
            TypeError,
            "'>' not.*while running .*Combine",
        ),
        (beam.WithTimestamps("n"), ValueError, r"an element has no time[\s\S]*Stamp"),
        (beam.Select(out=N * (1 << 40)), OverflowError, r"more than 64 bits[\s\S]*without=native_columns"),
    ],
)
def test_what_python_refuses_and_what_has_too_many_bits_is_an_error_of_its_step(
    path, transform, error, message
):
    pipeline = TestPipeline()
    pipeline | ReadFromParquet(path, as_rows=True) | transform | "Look" >> beam.Map(lambda row: row)
    with pytest.raises(error, match=message):
        pipeline.run()
