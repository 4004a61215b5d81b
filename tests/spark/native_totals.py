"""A program of two streams that Spark computes whole, for tests that send it signals or take the place of one.

Arguments: the folder of their files, the folders in which each of them has its totals and its checkpoint, and further
options.
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


def main(source: str, one: str, other: str, *flags: str) -> None:
    """Runs both until they end; an error of the second one is the program's."""
    own = ("--master=local[2]", "--fast_start", *flags)
    first, second = (
        totals(source, f"{folder}/totals", f"{folder}/checkpoint", *own).run() for folder in (one, other)
    )
    first.wait_until_finish()
    print("went on", first.state, flush=True)
    second.wait_until_finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
