"""Handles many elements at once: temperatures as NumPy arrays, and the readings of stations as DataFrames."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

import penstock as beam
from penstock.options.pipeline_options import PipelineOptions


class Reading(NamedTuple):
    """A station's measurement, in degrees Fahrenheit."""

    station: str
    fahrenheit: float


READINGS = [Reading("north", 14.0), Reading("south", 50.0), Reading("west", 23.0), Reading("east", 212.0)]


class Celsius(beam.DoFn):
    """Converts temperatures from Fahrenheit to Celsius, one array at a time."""

    def process_batch(self, batch: np.ndarray) -> Iterator[np.ndarray]:
        yield (batch - 32) / 1.8

    def infer_output_type(self, input_type):
        # An array does not say the type of its elements: it is the input's type.
        return input_type


class Frost(beam.DoFn):
    """Keeps the readings below the freezing point; each batch is a table with a column for each field."""

    def process_batch(self, batch: pd.DataFrame) -> Iterator[pd.DataFrame]:
        yield batch[batch.fahrenheit < 32]

    def infer_output_type(self, input_type):
        return input_type


def in_celsius(readings):
    """Gives the temperatures of readings in degrees Celsius, rounded."""
    return (
        readings
        | "Degrees" >> beam.Map(lambda reading: reading.fahrenheit).with_output_types(float)
        | "Celsius" >> beam.ParDo(Celsius())
        | "Round" >> beam.Map(round, 1)
    )


def frosty(readings):
    """Gives the readings below the freezing point."""
    return readings | "Frost" >> beam.ParDo(Frost())


def run(argv=None):
    with beam.Pipeline(options=PipelineOptions(argv)) as pipeline:
        readings = pipeline | beam.Create(READINGS).with_output_types(Reading)
        in_celsius(readings) | "PrintDegrees" >> beam.Map(print)
        frosty(readings) | "PrintFrost" >> beam.Map(print)


if __name__ == "__main__":
    run()
