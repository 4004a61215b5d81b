"""Combines numbers with a CombineFn of its own: the mean and the spread of measurements, in one pass."""

from __future__ import annotations

import math
from typing import NamedTuple

import penstock as beam
from penstock.options.pipeline_options import PipelineOptions

MEASURED = [("north", 2.0), ("north", 4.0), ("south", 5.0), ("north", 6.0), ("south", 5.0)]


class Moments(NamedTuple):
    """The number of values, their mean, and the sum of the squared distances from it."""

    size: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def plus(self, other: Moments) -> Moments:
        """Merges both (Chan's formula, which loses no digits)."""
        size = self.size + other.size
        if not size:
            return self
        step = other.mean - self.mean
        mean = self.mean + step * other.size / size
        return Moments(size, mean, self.squares + other.squares + step**2 * self.size * other.size / size)


class MeanAndSpread(beam.CombineFn):
    """Combines numbers into (mean, standard deviation); (nan, nan) if there are none."""

    def create_accumulator(self):
        return Moments()

    def add_input(self, accumulator, number):
        return accumulator.plus(Moments(1, number))

    def merge_accumulators(self, accumulators):
        total = Moments()
        for accumulator in accumulators:
            total = total.plus(accumulator)
        return total

    def extract_output(self, accumulator):
        count, mean, squares = accumulator
        return (mean, math.sqrt(squares / count)) if count else (math.nan, math.nan)


def run(argv=None):
    with beam.Pipeline(options=PipelineOptions(argv)) as pipeline:
        pipeline | beam.Create(MEASURED) | beam.CombinePerKey(MeanAndSpread()) | beam.Map(print)


if __name__ == "__main__":
    run()
