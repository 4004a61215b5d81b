"""A DoFn or CombineFn that several steps share is one of its own for each step, however deep it is inside others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import penstock as beam
from penstock.io.each_batch import WriteToMemory
from penstock.options.pipeline_options import PipelineOptions
from tests.runner.plain_runner import collect, run_plain
from tests.shards.toy_query import ToyQuery

CHECKED = ["--runtime_type_check"]


class Total(beam.CombineFn):
    """A sum that is set up once, and used only while it is."""

    is_set_up = False

    def setup(self) -> None:
        assert not self.is_set_up
        self.is_set_up = True

    def create_accumulator(self) -> int:
        return 0

    def add_input(self, accumulator: int, element: int) -> int:
        assert self.is_set_up
        return accumulator + element

    def merge_accumulators(self, accumulators: Any) -> int:
        return sum(accumulators)

    def extract_output(self, accumulator: int) -> int:
        return accumulator

    def teardown(self) -> None:
        assert self.is_set_up
        self.is_set_up = False


class Same(beam.DoFn):
    is_set_up = False

    def setup(self) -> None:
        assert not self.is_set_up
        self.is_set_up = True

    def process(self, element: int) -> list[int]:
        assert self.is_set_up
        return [element]

    def teardown(self) -> None:
        assert self.is_set_up
        self.is_set_up = False


def two_rounds(numbers: Any) -> Any:
    return numbers | beam.CombineGlobally(Total()).with_fanout(1)


def two_totals(numbers: Any) -> Any:
    total = Total()
    return [numbers | label >> beam.CombineGlobally(total) for label in "AB"] | beam.Flatten()


def two_levels(numbers: Any) -> Any:
    total = Total()
    pairs = numbers | beam.Map(lambda number: (0, number))
    return pairs | "A" >> beam.CombinePerKey(total) | "B" >> beam.CombinePerKey(total) | beam.Values()


def two_dofns(numbers: Any) -> Any:
    same = Same()
    return numbers | "A" >> beam.ParDo(same) | "B" >> beam.ParDo(same) | beam.CombineGlobally(sum)


SHAPES: dict[str, tuple[Callable[[Any], Any], list[int]]] = {
    "two rounds": (two_rounds, [6]),
    "two totals": (two_totals, [6, 6]),
    "two levels": (two_levels, [6]),
    "two DoFns": (two_dofns, [6]),
}


@pytest.mark.parametrize("flags", [[], CHECKED], ids=["unchecked", "checked"])
@pytest.mark.parametrize("name", SHAPES)
def test_each_step_sets_its_own_copy_up_once(name: str, flags: list[str]) -> None:
    build, expected = SHAPES[name]
    pipeline = beam.Pipeline(options=PipelineOptions(flags))
    found = collect(build(pipeline | beam.Create([1, 2, 3]) | beam.Reshuffle()))
    run_plain(pipeline)
    assert found == expected
    stream = beam.Pipeline(options=PipelineOptions(flags))
    _ = build(stream | beam.Create([1, 2, 3]) | beam.Reshuffle()) | "Out" >> WriteToMemory([])
    query, got = ToyQuery(stream), []
    for _ in range(query.timeline.batches):
        got += query.batch()["Out"]
    assert got == expected
