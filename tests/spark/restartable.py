"""A program that tests kill and start again: pipelines over recorded scores, read file by file, to text files.

Arguments: the name of the pipeline, the folder of the input, that of the output, and that of the checkpoint; then
further options.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

import penstock as beam
from penstock.coders import BooleanCoder
from penstock.io.watermarks import BoundedDisorder
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.timeutil import TimeDomain
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark
from penstock.transforms.userstate import (
    CombiningValueStateSpec,
    ReadModifyWriteStateSpec,
    TimerSpec,
    on_timer,
)
from penstock.transforms.window import FixedWindows


def parsed(line: str) -> tuple[str, int]:
    """Team and points."""
    team, points, _, _ = line.split(",")
    return team, int(points)


def time_of(line: str) -> int:
    """The event time, in seconds."""
    return int(line.split(",")[2])


def arrival_of(line: str) -> int:
    """When the line was recorded, in seconds: panes follow that, however Spark cuts the files into micro-batches."""
    return int(line.split(",")[3])


def shown(element: tuple[str, int], window=beam.DoFn.WindowParam, pane=beam.DoFn.PaneInfoParam) -> str:
    """A pane as a line."""
    return f"{element[0]} {element[1]} {window.start.seconds()} {pane.index} {pane.timing}"


def scores(pipeline: beam.Pipeline, source: str, files: int) -> beam.PCollection[tuple[str, int]]:
    """Team and points of each line; a micro-batch reads so many files."""
    lines = pipeline | beam.io.ReadFromText(f"{source}/*.txt").as_stream(
        time_of, BoundedDisorder(20), arrival_time=arrival_of, existing_only=True, max_files_per_batch=files
    )
    return lines | beam.Map(parsed)


def sums(pipeline: beam.Pipeline, source: str, target: str, files: int = 1) -> None:
    """Sums per team and minute, and how many sums there were of each size, in a second grouping."""
    panes = AfterWatermark(early=AfterCount(7), late=AfterCount(1))
    minutes = beam.WindowInto(FixedWindows(60), panes, AccumulationMode.ACCUMULATING, allowed_lateness=100)
    totals = scores(pipeline, source, files) | minutes | beam.CombinePerKey(sum)
    _ = totals | "Show" >> beam.Map(shown) | "WriteSums" >> beam.io.WriteToText(f"{target}/sums")
    sizes = totals | "BySize" >> beam.MapTuple(lambda team, total: (total % 5, team)) | beam.GroupByKey()
    lists = sizes | "Sort" >> beam.MapTuple(lambda size, teams: (f"{size}:{'+'.join(sorted(teams))}", 0))
    _ = lists | "ShowSizes" >> beam.Map(shown) | "WriteSizes" >> beam.io.WriteToText(f"{target}/sizes")


class Ledger(beam.DoFn):
    """Sums up the shares of a team in a minute, and tells them at its end; all later ones one by one."""

    TOTAL = CombiningValueStateSpec("total", sum)
    CLOSED = ReadModifyWriteStateSpec("closed", BooleanCoder())
    END = TimerSpec("end", TimeDomain.WATERMARK)

    def process(
        self,
        element: Any,
        best: int,
        window: Any = beam.DoFn.WindowParam,
        total: Any = beam.DoFn.StateParam(TOTAL),
        closed: Any = beam.DoFn.StateParam(CLOSED),
        end: Any = beam.DoFn.TimerParam(END),
    ) -> Any:
        """Takes the points of a team, and the best ones of their minute."""
        team, points = element
        total.add(points * 100 // best)
        if closed.read():
            yield f"{team} {window.start.seconds()} late {total.read()}"
        else:
            end.set(window.end)

    @on_timer(END)
    def close(
        self,
        team: Any = beam.DoFn.KeyParam,
        window: Any = beam.DoFn.WindowParam,
        total: Any = beam.DoFn.StateParam(TOTAL),
        closed: Any = beam.DoFn.StateParam(CLOSED),
    ) -> Any:
        """The minute is over."""
        closed.write(True)
        yield f"{team} {window.start.seconds()} closed {total.read()}"


def shares(pipeline: beam.Pipeline, source: str, target: str, files: int = 1) -> None:
    """The points of each team as shares of the best ones of their minute: state and a timer wait for a side input."""
    minutes = beam.WindowInto(FixedWindows(60), allowed_lateness=100)
    pairs = scores(pipeline, source, files) | minutes
    best = pairs | beam.Values() | beam.CombineGlobally(best_of).without_defaults()
    told = pairs | beam.ParDo(Ledger(), beam.pvalue.AsSingleton(best))
    _ = told | "WriteShares" >> beam.io.WriteToText(f"{target}/shares")


def best_of(points: Iterable[int]) -> int:
    """The most points, and at least one."""
    return max(1, *points)


def lines(pipeline: beam.Pipeline, source: str, target: str, files: int = 1) -> None:
    """All lines of files that go on coming."""
    read = beam.io.ReadFromText(f"{source}/*.txt").as_stream(max_files_per_batch=files)
    _ = pipeline | read | "WriteLines" >> beam.io.WriteToText(f"{target}/lines")


def windows(pipeline: beam.Pipeline, source: str, target: str, files: int = 1) -> None:
    """Files of windows, and their names in files of another sink."""
    team_lines = scores(pipeline, source, files) | "Line" >> beam.MapTuple(
        lambda team, points: f"{team} {points}"
    )
    write = beam.io.WriteToText(f"{target}/windows", num_shards=2, triggering_frequency=30)
    names = team_lines | "WriteWindows" >> write
    _ = names | "Name" >> beam.Map(os.path.basename) | "WriteNames" >> beam.io.WriteToText(f"{target}/names")


def columns(pipeline: beam.Pipeline, source: str, target: str, files: int = 1) -> None:
    """Sums per team and minute, which Spark computes and writes on its own."""
    read = beam.io.ReadFromParquet(f"{source}/*.parquet", as_rows=True)
    rows = pipeline | read.as_stream("at", BoundedDisorder(20), existing_only=True, max_files_per_batch=files)
    totals = beam.GroupBy("team").aggregate_field("points", sum, "total")
    schema = pa.schema([("team", pa.string()), ("total", pa.int64())])
    write = beam.io.WriteToParquet(f"{target}/totals", schema, file_name_suffix=".parquet")
    _ = rows | beam.WindowInto(FixedWindows(60)) | totals | "WriteTotals" >> write


PIPELINES = {"sums": sums, "shares": shares, "windows": windows, "columns": columns}
ENDLESS = {"lines": lines}


def main(names: str, source: str, target: str, checkpoint: str, *further: str, files: int = 1) -> None:
    """Runs pipelines to their ends, all at once; each has folders of its own."""
    results = []
    for name in names.split(","):
        place = f"--checkpoint_location={checkpoint}/{name}"
        options = PipelineOptions([place, "--mode=streaming", "--shuffle_partitions=2", *further])
        pipeline = beam.Pipeline(options=options)
        (PIPELINES | ENDLESS)[name](pipeline, source, f"{target}/{name}", files)
        results.append(pipeline.run())
    for result in results:
        result.wait_until_finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
