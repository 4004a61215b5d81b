"""Follows a folder of measurements: the mean temperature at each place, minute by minute.

python pipeline.py --available_now
"""

from datetime import datetime
from pathlib import Path

import penstock as beam
from penstock.io import WriteToConsole
from penstock.io.watermarks import BoundedDisorder
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.combiners import Mean
from penstock.transforms.window import FixedWindows

HERE = Path(__file__).parent


def parse(line: str) -> tuple[str, float]:
    """Returns the place and the temperature of a measurement.

    >>> parse("harbour,2026-03-02T08:00:10Z,11.5")
    ('harbour', 11.5)
    """
    place, _, temperature = line.split(",")
    return place, float(temperature)


def time_of(line: str) -> datetime:
    """Returns the event time of a measurement.

    >>> time_of("harbour,2026-03-02T08:00:10Z,11.5").second
    10
    """
    return datetime.fromisoformat(line.split(",")[1])


def means_by_minute(lines: beam.PCollection[str]) -> beam.PCollection[tuple[str, float]]:
    """Returns the mean temperature at each place, in windows of one minute."""
    measured = lines | "Parse" >> beam.Map(parse)
    return measured | "Minutes" >> beam.WindowInto(FixedWindows(60)) | "Mean" >> Mean.PerKey()


def run() -> None:
    options = PipelineOptions(mode="streaming", checkpoint_location=str(HERE / "checkpoint"))
    with beam.Pipeline(options=options) as pipeline:
        source = beam.io.ReadFromText(f"{HERE}/data/*.csv").as_stream(time_of, BoundedDisorder(30))
        means_by_minute(pipeline | "Read" >> source) | "Print" >> WriteToConsole(windows=True)


if __name__ == "__main__":
    run()
