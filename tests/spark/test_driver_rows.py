"""Rows that the driver makes of a few values, on Spark: the same results and metrics as with tasks, and no task of
Python for them."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

import penstock as beam
from penstock.pvalue import AsDict, AsList
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.trigger import AccumulationMode, AfterCount, Repeatedly
from penstock.transforms.window import FixedWindows, Sessions, SlidingWindows, TimestampedValue
from penstock_spark.lowering import stage
from penstock_spark.lowering.frames import frame_of_rows
from penstock_spark.worker.rows import exchange_records

pytestmark = pytest.mark.spark

BOTH = pytest.mark.parametrize("options", [[], ["--without=driver_rows"]], ids=["driver", "tasks"])
SECONDS = (1, 4, 12, 30)
SMALLEST, LARGEST = -(2**63), 2**63 - 1


def timed(label, seconds):
    """Pairs of one key, each at the second that is its value."""
    pairs = [TimestampedValue(("k", at), at) for at in seconds]
    return label >> beam.Create(pairs).with_output_types(tuple[str, int])


@pytest.fixture
def made(monkeypatch):
    """The tables that the driver has made."""
    tables = []

    def noting(rows, spark):
        tables.append(rows)
        return frame_of_rows(rows, spark)

    monkeypatch.setattr(stage, "frame_of_rows", noting)
    return tables


def test_a_frame_of_rows_has_every_value_as_it_is(spark):
    numbers = [SMALLEST, LARGEST, 0]
    record = exchange_records(
        *(3, 7, [b"", b"'\\\x00\xff", b"N"], numbers, numbers, [None, b"", b"w"], [0] * 3, [-1] * 3),
        [b"a" * 5_000, b"", None],
    )
    frame = frame_of_rows(pa.Table.from_batches([record, record.slice(2, 1)]), spark)
    assert [field.dataType.simpleString() for field in frame.schema] == [
        *("int", "int", "binary", "bigint", "bigint", "binary", "bigint", "bigint", "binary")
    ]
    assert frame.toArrow().to_pylist() == [*record.to_pylist(), *record.slice(2, 1).to_pylist()]


@BOTH
def test_groupings_windows_and_side_inputs_are_the_same(options, made):
    pairs = [("b", 1.5), ("a", None), ("b", float("inf")), (None, -1), ((1, "x"), b"\x00"), ("a", 2**70)]
    with TestPipeline(additional_pipeline_args=options) as p:
        groups = p | "Pairs" >> beam.Create(pairs) | "Group" >> beam.GroupByKey()
        shown = groups | beam.MapTuple(lambda key, values: (key, sorted(map(repr, values))))
        expected = {key: sorted(repr(v) for k, v in pairs if k == key) for key in dict(pairs)}
        assert_that(shown, equal_to(list(expected.items())), label="groups")
        for name, windowfn, sums in (
            ("fixed", FixedWindows(10), [5, 12, 30]),
            ("sliding", SlidingWindows(20, 10), [5, 17, 12, 30, 30]),
            ("sessions", Sessions(9), [17, 30]),
        ):
            windowed = p | timed(f"Of {name}", SECONDS) | f"In {name}" >> beam.WindowInto(windowfn)
            total = (
                windowed | f"Sum of {name}" >> beam.CombinePerKey(sum) | f"Values of {name}" >> beam.Values()
            )
            assert_that(total, equal_to(sums), label=name)
        early = p | timed("Counted", SECONDS)
        early |= "Early" >> beam.WindowInto(
            FixedWindows(60), Repeatedly(AfterCount(2)), accumulation_mode=AccumulationMode.ACCUMULATING
        )
        assert_that(
            early | "Early sum" >> beam.CombinePerKey(sum) | "Early values" >> beam.Values(),
            equal_to([5, 47]),
            label="early",
        )
        names, rates = (
            p | "Names" >> beam.Create(["x", "y"]),
            p | "Rates" >> beam.Create([("x", 2), ("y", 3)]),
        )
        one = p | "One" >> beam.Create([1])
        used = one | beam.Map(
            lambda x, names, rates: [(n, rates[n]) for n in sorted(names)], AsList(names), AsDict(rates)
        )
        assert_that(used, equal_to([[("x", 2), ("y", 3)]]), label="views")
    assert bool(made) == (not options)


@BOTH
def test_nothing_and_a_marker_give_the_default(options, made):
    with TestPipeline(additional_pipeline_args=options) as p:
        empty = p | "Nothing" >> beam.Create([1]) | beam.Filter(lambda x: x > 1) | beam.Reshuffle()
        assert_that(empty | beam.CombineGlobally(sum), equal_to([0]), label="sum")
        mean = empty | beam.combiners.Mean.Globally() | beam.Map(math.isnan)
        assert_that(mean, equal_to([True]), label="mean")
        assert_that(empty, equal_to([]), label="nothing")
    assert bool(made) == (not options)


def test_values_that_cannot_be_grouped_fail_in_a_task_which_names_the_step(made):
    with pytest.raises(TypeError, match="not \\(key, value\\) pairs") as raised, TestPipeline() as p:
        _ = (
            p
            | beam.Create([1, 2]).with_output_types(tuple[str, int])
            | "Group" >> beam.GroupByKey()
            | beam.Map(print)
        )
    assert "Group" in str(raised.value)
    assert made == []


@BOTH
def test_elements_that_are_in_no_window_are_counted(options, made):
    """Each of these windows lasts one second of ten; where no element is in one, tasks find out."""
    counts = []
    for seconds in ([0, 5], [5, 6]):
        p = TestPipeline(additional_pipeline_args=options)
        _ = (
            p
            | timed("Pairs", seconds)
            | beam.WindowInto(SlidingWindows(1, 10))
            | beam.GroupByKey()
            | beam.Map(lambda group: group)
        )
        result = p.run()
        result.wait_until_finish()
        found = result.metrics().query()["counters"]
        counts += [c.committed for c in found if c.key.metric.name == "elements_in_no_window"]
    assert counts == [1, 2]
    assert len(made) == (0 if options else 1)
