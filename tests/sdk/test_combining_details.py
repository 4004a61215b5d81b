"""Combines: the numbers that a mean takes, and what is called with side inputs."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as beam
from penstock.transforms.combiners import MeanCombineFn
from penstock.transforms.combining.combine import CombineValuesDoFn
from penstock.typehints.decorators import TypeCheckError


def test_means_take_numbers_of_numpy_and_no_texts() -> None:
    numpy = pytest.importorskip("numpy")
    numbers = beam.Pipeline() | beam.Create([numpy.int64(1), numpy.float32(2.5)])
    assert (numbers | beam.combiners.Mean.Globally()).element_type is float
    assert MeanCombineFn().apply([numpy.int64(1), numpy.float32(2.5)]) == 1.75
    with pytest.raises(TypeCheckError):
        _ = beam.Pipeline() | beam.Create(["a"]) | beam.combiners.Mean.Globally()


class Recording(beam.CombineFn):
    def create_accumulator(self, more: int) -> list[Any]:
        return []

    def add_input(self, accumulator: list[Any], element: int, more: int) -> list[Any]:
        return [*accumulator, element]

    def compact(self, accumulator: list[Any], more: int) -> list[Any]:
        return [*accumulator, ("compact", more)]

    def extract_output(self, accumulator: list[Any], more: int) -> list[Any]:
        return accumulator


def test_an_accumulator_is_compacted_with_the_side_inputs_of_the_combine() -> None:
    combined = CombineValuesDoFn(None, Recording(), False).process(("k", [1, 2]), 7)
    assert list(combined) == [("k", [1, 2, ("compact", 7)])]
