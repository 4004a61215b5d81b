"""A program that tests kill and start again: sums of recorded scores, read file by file, to text files.

Arguments: the folder of the input, that of the output, and that of the checkpoint; then further options.
"""

from __future__ import annotations

import sys

import penstock as beam
from penstock.io.watermarks import BoundedDisorder
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark
from penstock.transforms.window import FixedWindows


def parsed(line: str) -> tuple[str, int]:
    """Team and points."""
    team, points, _, _ = line.split(",")
    return team, int(points)


def time_of(line: str) -> int:
    """The event time, in seconds."""
    return int(line.split(",")[2])


def arrival_of(line: str) -> int:
    """When the line was recorded, in seconds: panes follow these moments, however Spark cuts the files into micro-batches."""
    return int(line.split(",")[3])


def shown(element: tuple[str, int], window=beam.DoFn.WindowParam, pane=beam.DoFn.PaneInfoParam) -> str:
    """A pane as a line."""
    return f"{element[0]} {element[1]} {window.start.seconds()} {pane.index} {pane.timing}"


def build(pipeline: beam.Pipeline, source: str, target: str) -> None:
    """Sums per team and minute, and how many sums there were of each size, in a second grouping."""
    lines = pipeline | beam.io.ReadFromText(f"{source}/*.txt").as_stream(
        time_of, BoundedDisorder(20), arrival_time=arrival_of, ends=True, max_files_per_batch=1
    )
    panes = AfterWatermark(early=AfterCount(7), late=AfterCount(1))
    minutes = beam.WindowInto(FixedWindows(60), panes, AccumulationMode.ACCUMULATING, allowed_lateness=100)
    sums = lines | beam.Map(parsed) | minutes | beam.CombinePerKey(sum)
    _ = sums | "Show" >> beam.Map(shown) | "WriteSums" >> beam.io.WriteToText(f"{target}/sums")
    sizes = sums | "BySize" >> beam.MapTuple(lambda team, total: (total % 5, team)) | beam.GroupByKey()
    lists = sizes | "Sort" >> beam.MapTuple(lambda size, teams: (f"{size}:{'+'.join(sorted(teams))}", 0))
    _ = lists | "ShowSizes" >> beam.Map(shown) | "WriteSizes" >> beam.io.WriteToText(f"{target}/sizes")


def main(source: str, target: str, checkpoint: str, *further: str) -> None:
    """Runs the pipeline to its end."""
    flags = [f"--checkpoint_location={checkpoint}", "--mode=streaming", "--shuffle_partitions=2", *further]
    with beam.Pipeline(options=PipelineOptions(flags)) as pipeline:
        build(pipeline, source, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
