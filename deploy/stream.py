"""A stream to try a cluster with: counts one element a second in windows of ten seconds, and writes text files.

python deploy/stream.py --checkpoint_location=/tmp/checkpoint
"""

from __future__ import annotations

import os

import penstock as beam
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.periodicsequence import PeriodicImpulse
from penstock.transforms.window import FixedWindows

OUTPUT = os.environ.get("OUTPUT", "/data/counts")


def line(count, window=beam.DoFn.WindowParam):
    """Formats the count of a window."""
    return f"{window.start.to_utc_datetime():%H:%M:%S} {count}"


if __name__ == "__main__":
    with beam.Pipeline(options=PipelineOptions()) as pipeline:
        (
            pipeline
            | "Tick" >> PeriodicImpulse(fire_interval=1)
            | "TenSeconds" >> beam.WindowInto(FixedWindows(10))
            | "Count" >> beam.CombineGlobally(beam.combiners.CountCombineFn()).without_defaults()
            | "Line" >> beam.Map(line)
            | "Write" >> beam.io.WriteToText(OUTPUT)
        )
