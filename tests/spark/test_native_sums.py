"""Sums and counts that Spark's own aggregate adds up give what Python gives."""

from __future__ import annotations

import pytest

import penstock as beam
from penstock.error import RunnerError
from penstock.io import ReadFromText
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.window import FixedWindows, SlidingWindows, TimestampedValue
from penstock.typehints import KV

pytestmark = pytest.mark.spark


@pytest.fixture
def lines(tmp_path):
    """Lines ``key,number``: numbers of up to 86 bits with both signs, whose sums go beyond 64 bits."""
    pairs = [(f"k{i % 7}", (-1) ** (i % 3) * (i << (i % 75))) for i in range(2000)]
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"{key},{number}\n" for key, number in pairs))
    return str(path), pairs


def parse(line: str) -> tuple[str, int]:
    key, number = line.split(",")
    return key, int(number)


def test_sums_of_integers_beyond_64_bits_are_exact(lines):
    path, pairs = lines
    expected: dict[str, int] = {}
    for key, number in pairs:
        expected[key] = expected.get(key, 0) + number
    assert max(map(abs, expected.values())) > 1 << 64
    with TestPipeline() as p:
        sums = p | ReadFromText(path) | beam.Map(parse) | beam.CombinePerKey(sum)
        assert_that(sums, equal_to(list(expected.items())))
        assert "aggregate by key" in p.explain()


def test_an_integer_beyond_93_bits_is_an_error_that_tells_the_way_out(tmp_path):
    (tmp_path / "one.txt").write_text(f"k,{1 << 100}\n")
    pipeline = TestPipeline()
    typed = pipeline | ReadFromText(str(tmp_path / "one.txt")) | beam.Map(parse)
    _ = typed | beam.CombinePerKey(sum) | beam.Map(print)
    with pytest.raises(OverflowError, match=r"more than 93 bits[\s\S]*declare the values as Any"):
        pipeline.run()
    with TestPipeline() as p:
        untyped = (
            p
            | ReadFromText(str(tmp_path / "one.txt"))
            | beam.Map(parse).with_output_types(KV[str, beam.typehints.Any])
        )
        assert_that(untyped | beam.CombinePerKey(sum), equal_to([("k", 1 << 100)]))


def test_a_total_that_spark_cannot_hold_is_an_error_also_where_the_session_lets_numbers_wrap_around(
    spark, tmp_path
):
    for number in range(6):
        (tmp_path / f"{number}.txt").write_text(f"k,{1 << 92}\n")
    # Each file is a task of its own, so that the partial sums fit and only their total does not.
    settings = {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.files.maxPartitionBytes": "10",
        "spark.sql.files.openCostInBytes": "1000000",
    }
    before = {name: spark.conf.get(name) for name in settings}
    pipeline = TestPipeline()
    _ = pipeline | ReadFromText(str(tmp_path / "*.txt")) | beam.Map(parse) | beam.CombinePerKey(sum)
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        with pytest.raises(RunnerError, match="overflow"):
            pipeline.run()
        assert spark.conf.get("spark.sql.ansi.enabled") == "false"
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def test_a_float_among_declared_integers_is_an_error_and_not_cut_off(tmp_path):
    (tmp_path / "one.txt").write_text("1.5\n")
    pipeline = TestPipeline()
    wrong = (
        pipeline
        | ReadFromText(str(tmp_path / "one.txt"))
        | beam.Map(lambda x: ("k", float(x))).with_output_types(KV[str, int])
    )
    _ = wrong | beam.CombinePerKey(sum) | beam.Map(print)
    with pytest.raises(TypeError, match="declared int, but some are not"):
        pipeline.run()


def test_windows_timestamps_and_several_combines_share_one_aggregate(lines):
    path, pairs = lines
    with TestPipeline() as p:
        stamped = (
            p
            | ReadFromText(path)
            | beam.Map(parse)
            | beam.Map(lambda kv: TimestampedValue(kv, len(str(kv[1])))).with_output_types(KV[str, int])
        )
        fixed = stamped | beam.WindowInto(FixedWindows(10)) | beam.combiners.Count.PerKey()
        sliding = (
            stamped | "Sliding" >> beam.WindowInto(SlidingWindows(20, 10)) | "Sum" >> beam.CombinePerKey(sum)
        )
        placed = fixed | "Place" >> beam.Map(
            lambda kv, window=beam.DoFn.WindowParam, at=beam.DoFn.TimestampParam: (
                kv,
                window.start_micros,
                at.micros,
            )
        )
        total = sliding | "Start" >> beam.Map(
            lambda kv, window=beam.DoFn.WindowParam: (window.start_micros, *kv)
        )
        counts, sums = reference(pairs)
        assert_that(placed, equal_to(counts), label="counts")
        assert_that(total, equal_to(sums), label="sums")
        assert p.explain().count("aggregate by key") == 1


def reference(pairs):
    counts: dict = {}
    sums: dict = {}
    for key, number in pairs:
        at = len(str(number)) * 1_000_000
        start = at - at % 10_000_000
        counts[key, start] = counts.get((key, start), 0) + 1
        for first in (start, start - 10_000_000):
            sums[first, key] = sums.get((first, key), 0) + number
    placed = [((key, count), start, start + 9_999_999) for (key, start), count in counts.items()]
    return placed, [(start, key, total) for (start, key), total in sums.items()]
