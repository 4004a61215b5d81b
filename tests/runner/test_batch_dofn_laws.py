"""In whatever batches elements come, whichever method takes them: the results, kinds and rows are the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as beam
from penstock.coders import FastPrimitivesCoder
from penstock.error import UnsupportedByRunner
from penstock.options.pipeline_options import PipelineOptions
from penstock.relations.changelog import Changelog
from penstock.transforms.trigger import AccumulationMode, AfterCount, Repeatedly
from penstock.transforms.userstate import ReadModifyWriteStateSpec
from penstock.transforms.window import (
    GlobalWindows,
    SlidingWindows,
    TimestampedValue,
)
from penstock.utils.windowed_value import ValueKind
from penstock_spark.supported import check
from tests.runner.batch_kinds import (
    Doubled,
    DoubledArray,
    Either,
    Same,
)
from tests.runner.plain_runner import Settings, collect, collect_timed, run_plain

SETTINGS = pytest.mark.parametrize(
    "settings", [Settings(1, 1000), Settings(3, 2), Settings(2, 1000, without={"whole_batches"})]
)


class Point(NamedTuple):
    x: int
    name: str | None


class Shifted(Same):
    def process_batch(self, batch: pa.Table) -> Iterator[pa.Table]:
        x = pa.array([each + 1 for each in batch["x"].to_pylist()])
        yield batch.set_column(batch.schema.get_field_index("x"), "x", x)


class ShiftedFrame(Same):
    def process_batch(self, batch: pd.DataFrame) -> Iterator[pd.DataFrame]:
        yield batch.assign(x=batch.x + 1)


def test_tables_have_rows() -> None:
    pipeline = beam.Pipeline()
    points = pipeline | beam.Create([Point(1, "a"), Point(2, None)]).with_output_types(Point)
    rows = pipeline | "Rows" >> beam.Create([beam.Row(x=1, name="a"), beam.Row(x=2, name=None)])
    rows = rows | beam.Select(x=lambda row: int(row.x), name=lambda row: str(row.name))
    shifted = collect(points | beam.ParDo(Shifted()) | beam.ParDo(ShiftedFrame()), "Points")
    others = collect(
        rows | "Table" >> beam.ParDo(Shifted()) | "Frame" >> beam.ParDo(ShiftedFrame()), "Others"
    )
    run_plain(pipeline)
    assert sorted(shifted) == [Point(3, "a"), Point(4, None)]
    assert set(map(type, shifted)) == {Point}
    assert sorted((row.x, row.name) for row in others) == [(3, "a"), (4, "None")]


def changed(dofn: beam.DoFn, settings: Settings) -> list[Any]:
    """The outputs of a DoFn for sums that change: 1, then 3 in its place, then 6 in place of that, many times over."""
    pipeline = beam.Pipeline(options=PipelineOptions(allow_unsafe_triggers=True))
    windowing = beam.Windowing(
        GlobalWindows(), Repeatedly(AfterCount(1)), AccumulationMode.ACCUMULATING_AND_RETRACTING
    )
    elements = [TimestampedValue((key, value), value) for key in range(20) for value in (1, 2, 3)]
    pairs = pipeline | beam.Create(elements).with_output_types(beam.typehints.KV[int, int])
    sums = pairs | beam.WindowInto(windowing) | beam.CombinePerKey(sum)
    numbers = sums | beam.Values().with_output_types(int) | beam.ParDo(dofn)
    found = collect(numbers | Changelog())
    run_plain(pipeline, settings)
    return sorted(found)


@SETTINGS
@pytest.mark.parametrize("kind", [Doubled, DoubledArray, Either])
def test_what_a_batch_makes_of_retractions_are_retractions(kind: type[beam.DoFn], settings: Settings) -> None:
    inserted, before, after = ValueKind.INSERT, ValueKind.UPDATE_BEFORE, ValueKind.UPDATE_AFTER
    expected = [(inserted, 2), (before, 2), (after, 6), (before, 6), (after, 12)]
    assert changed(kind(), settings) == sorted(20 * expected)


class Both(beam.DoFn):
    """Splits numbers into digits, in both ways."""

    def process(self, element: int) -> Iterator[str]:
        yield from str(element)

    def process_batch(self, batch: list[int]) -> Iterator[list[str]]:
        yield list("".join(map(str, batch)))


TIMED = st.lists(st.tuples(st.integers(-50, 50), st.sampled_from([0, 0, 0, 0, 1, 7])), max_size=60)


@settings(max_examples=40, deadline=None)
@given(
    TIMED,
    st.sampled_from([Settings(1, 1000), Settings(2, 3)]),
    st.booleans(),
    st.sampled_from([1, 5, 16_384]),
)
def test_in_whatever_batches_they_come_both_methods_give_the_same(
    elements: list[tuple[int, int]], settings: Settings, whole_batches: bool, pace: int
) -> None:
    timed = [TimestampedValue(value, second) for value, second in elements]
    pipeline = beam.Pipeline()
    numbers = pipeline | beam.Create(timed).with_output_types(int) | beam.WindowInto(SlidingWindows(6, 3))
    found = collect_timed(
        numbers | beam.ParDo(DoubledArray()) | beam.ParDo(Doubled()) | beam.ParDo(Both()), "Batches"
    )
    expected = collect_timed(numbers | beam.FlatMap(lambda element: list(str(4 * element))), "One by one")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock_spark.worker.batch_sizer._FIRST_ELEMENTS", pace)
        run_plain(pipeline, replace(settings, without=set() if whole_batches else {"whole_batches"}))
    assert sorted(found, key=repr) == sorted(expected, key=repr)


class Stateful(beam.DoFn):
    SUM = ReadModifyWriteStateSpec("sum", FastPrimitivesCoder())

    @beam.DoFn.yields_batches
    def process(self, pair: tuple[str, int], state: Any = beam.DoFn.StateParam(SUM)) -> Iterator[list[int]]:
        yield [pair[1]]

    def infer_output_type(self, input_type: Any) -> Any:
        return int


def test_a_dofn_with_state_yields_elements() -> None:
    pipeline = beam.Pipeline()
    _ = pipeline | beam.Create([("a", 1)]) | beam.ParDo(Stateful())
    with pytest.raises(UnsupportedByRunner, match="cannot yield batches yet"):
        check(pipeline.to_graph(), "batch")
