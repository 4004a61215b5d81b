"""A program that Spark computes whole, for tests that send it signals or take its place.

Arguments: the folder of its files, the path of what it writes, its checkpoint, and further options.
"""

from __future__ import annotations

import sys

import penstock as beam
from penstock.io import ReadFromParquet
from penstock.io.watermarks import BoundedDisorder
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.window import FixedWindows


def totals(source: str, target: str, checkpoint: str, *flags: str) -> beam.Pipeline:
    """Totals of each key and minute, as lines."""
    options = ["--mode=streaming", "--shuffle_partitions=2", f"--checkpoint_location={checkpoint}", *flags]
    pipeline = beam.Pipeline(options=PipelineOptions(options))
    read = ReadFromParquet(f"{source}/*.parquet", as_rows=True)
    rows = pipeline | "Read" >> read.as_stream("at", BoundedDisorder(0), max_files_per_batch=1)
    grouped = beam.GroupBy("key").aggregate_field("number", sum, "total")
    sums = rows | "Windows" >> beam.WindowInto(FixedWindows(60)) | "Sum" >> grouped
    _ = sums | "Show" >> beam.MapTuple("{} {}".format) | "Write" >> beam.io.WriteToText(target)
    assert "by Spark" in pipeline.explain()
    return pipeline


if __name__ == "__main__":
    with totals(*sys.argv[1:], "--master=local[2]", "--fast_start") as running:
        pass
    print("went on", running.result.state, flush=True)
