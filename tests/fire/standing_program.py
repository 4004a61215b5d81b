"""A program that stands for hours: events of files, counted by key and minute, into files written exactly once.

Arguments: a folder with the folder ``in``; then further options. Every ten seconds it writes a line about Java's memory
and about the last micro-batch to the file ``inside.jsonl``. It ends, drained, when there is a file ``drain``.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

import penstock as beam
from penstock.io.watermarks import BoundedDisorder
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.timeutil import TimeDomain
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark
from penstock.transforms.userstate import CombiningValueStateSpec, TimerSpec, on_timer
from penstock.transforms.window import FixedWindows

EVENTS_PER_KEY = 4
SAMPLE_SECONDS = 10


def key_of(line: str) -> tuple[int, int]:
    """The key of an event, of which each has four, and a one to add up."""
    return int(line.partition(",")[0]) // EVENTS_PER_KEY, 1


def time_of(line: str) -> float:
    """When the event happened, in seconds."""
    return float(line.partition(",")[2])


class Total(beam.DoFn):
    """Adds up the panes of a key in state, and tells the sum when its minute is over."""

    TOTAL = CombiningValueStateSpec("total", sum)
    END = TimerSpec("end", TimeDomain.WATERMARK)

    def process(
        self,
        element: Any,
        window: Any = beam.DoFn.WindowParam,
        total: Any = beam.DoFn.StateParam(TOTAL),
        end: Any = beam.DoFn.TimerParam(END),
    ) -> Any:
        """Takes a pane."""
        total.add(element[1])
        end.set(window.end)
        return ()

    @on_timer(END)
    def close(self, key: Any = beam.DoFn.KeyParam, total: Any = beam.DoFn.StateParam(TOTAL)) -> Any:
        """The minute is over."""
        yield f"{key},{total.read()}"


def build(folder: str, *flags: str) -> beam.Pipeline:
    """The pipeline: two groupings, early panes, state and a timer for each key, and an exact sink."""
    options = [f"--checkpoint_location={folder}/checkpoint", "--mode=streaming", "--shuffle_partitions=2"]
    pipeline = beam.Pipeline(options=PipelineOptions([*options, *flags]))
    read = beam.io.ReadFromText(f"{folder}/in/*.txt")
    lines = pipeline | read.as_stream(time_of, BoundedDisorder(5), max_files_per_batch=30)
    panes = AfterWatermark(early=AfterCount(3))
    minutes = beam.WindowInto(FixedWindows(60), panes, AccumulationMode.DISCARDING)
    counts = lines | beam.Map(key_of) | minutes | beam.CombinePerKey(sum)
    _ = counts | beam.ParDo(Total()) | beam.io.WriteToText(f"{folder}/out/totals")
    return pipeline


def main(folder: str, *flags: str) -> None:
    """Runs until it is told to drain."""
    result: Any = build(folder, *flags).run()
    until = 0.0
    with Path(folder, "inside.jsonl").open("a") as samples:
        while result.wait_until_finish(duration=1_000) is None:
            if Path(folder, "drain").exists():
                result.drain()
            if time.monotonic() > until:
                until = time.monotonic() + SAMPLE_SECONDS
                samples.write(f"{json.dumps(sample(result))}\n")
                samples.flush()


def sample(result: Any) -> dict[str, float]:
    """The memory inside Java and Python, and the last micro-batch."""
    from pyspark import SparkContext

    java: Any = SparkContext._jvm
    management = java.java.lang.management.ManagementFactory
    found: dict[str, float] = {"seconds": time.time(), "python_objects": len(gc.get_objects())}
    for pool in management.getMemoryPoolMXBeans():
        name = str(pool.getName()).replace(" ", "_").lower()
        found[f"java.{name}"] = pool.getUsage().getUsed()
        after = pool.getCollectionUsage()
        if after is not None:
            found[f"java.{name}.after_collection"] = after.getUsed()
    found["java.heap_committed"] = management.getMemoryMXBean().getHeapMemoryUsage().getCommitted()
    found["java.classes"] = management.getClassLoadingMXBean().getLoadedClassCount()
    found["java.threads"] = management.getThreadMXBean().getThreadCount()
    progress = result._running.started.lastProgress
    if progress is not None:
        found["batch"] = progress["batchId"]
        found["batch_rows"] = progress["numInputRows"]
        found["batch_millis"] = progress["durationMs"]["triggerExecution"]
        for operator, told in enumerate(progress["stateOperators"]):
            found[f"state.{operator}.rows"] = told["numRowsTotal"]
            found[f"state.{operator}.bytes"] = told["memoryUsedBytes"]
    watermarks = result.watermarks().values()
    if watermarks:
        found["lag_seconds"] = max(float(each.processing_lag) for each in watermarks)
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
