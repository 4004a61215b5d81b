"""CombineGlobally takes the way of CombinePerKey, and still has a result for an empty input."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import penstock as beam
from penstock.functions.combinefn import DefaultingCombineFn
from penstock.transforms.combiners import CountCombineFn, MeanCombineFn
from penstock_spark.folding import group_write
from tests.runner.plain_runner import Settings, collect, run_plain

COMBINES: dict[str, tuple[Any, Any]] = {
    "sum": (sum, 0),
    "count": (CountCombineFn(), 0),
    "mean": (MeanCombineFn(), None),
    "largest": (beam.combiners.TopCombineFn(2), []),
    "any": (any, False),
}
"""CombineFns, and what they give of nothing."""

INPUTS = {"nothing": [], "one": [7], "many": [*range(-3, 100)], "huge": [2**80, 1], "floats": [1.5, 2.25]}
WAYS = list(itertools.product(({"native_sums"}, set()), ({"shortcuts"}, set()), ({"driver_rows"}, set())))


def numbers(p: Any, values: list[Any], is_int: bool) -> Any:
    made = p | beam.Create(values) | beam.Reshuffle()
    return made | beam.Map(lambda value: value).with_output_types(int if is_int else Any)


@pytest.mark.parametrize("name", COMBINES)
def test_a_global_combine_is_that_of_all_values_whichever_way_it_takes(name):
    fn, of_nothing = COMBINES[name]
    for values in INPUTS.values():
        whole = fn(values) if callable(fn) else fn.apply(values)
        expected = whole if values or of_nothing is not None else "nan"
        for ways in WAYS:
            pipeline = beam.Pipeline()
            found = collect(
                numbers(pipeline, values, set(map(type, values)) <= {int}) | beam.CombineGlobally(fn)
            )
            run_plain(pipeline, Settings(partitions=3, without=frozenset().union(*ways)))
            [got] = found
            assert got == expected or (expected == "nan" and got != got), (values, ways)


@pytest.mark.parametrize(
    ("fn", "is_native"), [(sum, True), (CountCombineFn(), True), (MeanCombineFn(), False)]
)
def test_a_plan_gives_a_global_sum_to_what_does_the_sum_of_each_key(fn, is_native):
    plans = []
    for combine in (lambda n: n | beam.CombineGlobally(fn), lambda n: n | keyed | beam.CombinePerKey(fn)):
        pipeline = beam.Pipeline()
        keyed = beam.Map(lambda value: (None, value)).with_output_types(beam.typehints.KV[None, int])
        _ = combine(numbers(pipeline, [1, 2], True)) | beam.io.WriteToMemory([])
        plans.append(pipeline.explain())
    for plan in plans:
        assert ("aggregate by key" in plan) == is_native, plan
        assert "neither a sum nor a count" not in plan or not is_native


def test_no_combine_fn_sees_the_marker_in_batch(monkeypatch):
    def refuse(self: Any, *arguments: Any) -> Any:
        raise AssertionError("the marker came to the CombineFn")

    monkeypatch.setattr(DefaultingCombineFn, "add_input", refuse)
    monkeypatch.setattr(DefaultingCombineFn, "add_inputs", refuse)
    for fn, _ in COMBINES.values():
        pipeline = beam.Pipeline()
        found = collect(numbers(pipeline, [3], True) | beam.CombineGlobally(fn))
        run_plain(pipeline, Settings())
        assert len(found) == 1


def test_the_law_finds_a_marker_that_counts(monkeypatch):
    monkeypatch.setattr(group_write.GroupWriter, "_is_marker", lambda self, batch: False)
    with pytest.raises(AssertionError):
        test_a_global_combine_is_that_of_all_values_whichever_way_it_takes("count")
