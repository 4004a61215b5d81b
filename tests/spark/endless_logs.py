"""A program that tests kill and start again: splittable DoFns over logs that grow, into two sinks.

Arguments: the folder of the logs, that of the output, and the checkpoint; then further options.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import penstock as beam
from penstock.io.restriction_trackers import OffsetRange, OffsetRestrictionTracker
from penstock.io.watermark_estimators import ManualWatermarkEstimator
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.core import RestrictionProvider
from penstock.transforms.window import FixedWindows, TimestampedValue
from penstock.utils.timestamp import Duration, Timestamp

NO_END = 1 << 60


class Bytes(RestrictionProvider):
    """Positions in a file that grows."""

    def initial_restriction(self, element: Any) -> Any:
        return OffsetRange(0, NO_END)

    def create_tracker(self, restriction: Any) -> Any:
        return OffsetRestrictionTracker(restriction)

    def restriction_size(self, element: Any, restriction: Any) -> float:
        return 1.0

    def truncate(self, element: Any, restriction: Any) -> Any:
        return None


class Tail(beam.DoFn):
    """Gives the lines of a log, each with the time at which it was read; the line `end` ends the log."""

    @beam.DoFn.unbounded_per_element()
    def process(
        self,
        log: Any,
        tracker: Any = beam.DoFn.RestrictionParam(Bytes()),
        estimator: Any = beam.DoFn.WatermarkEstimatorParam(ManualWatermarkEstimator.default_provider()),
    ) -> Any:
        position = tracker.current_restriction().start
        with open(log, "rb") as file:
            file.seek(position)
            while (line := file.readline()).endswith(b"\n"):
                position += len(line)
                # The last byte of the line: what remains begins behind it.
                if not tracker.try_claim(position - 1):
                    return
                text = line.decode().strip()
                if text == "end":
                    tracker.try_claim(NO_END)
                    return
                number = int(text.split()[1])
                estimator.set_watermark(Timestamp(number))
                yield TimestampedValue(f"{text} {time.time_ns()}", number)
        tracker.defer_remainder(Duration(0.2))


def counted(count: tuple[str, int], window: Any = beam.DoFn.WindowParam) -> str:
    """The number of lines of a log in a window, as a line."""
    return f"{count[0]} {window.start.seconds()} {count[1]}"


def start(logs: str, target: str, checkpoint: str, *further: str) -> Any:
    """The pipeline, which runs until all logs have ended."""
    place = f"--checkpoint_location={checkpoint}"
    options = PipelineOptions([place, "--shuffle_partitions=2", "--master=local[2]", *further])
    pipeline = beam.Pipeline(options=options)
    found = [str(path) for path in sorted(Path(logs).iterdir())]
    lines = pipeline | beam.Create(found) | "Tail" >> beam.ParDo(Tail())
    for sink in ("one", "two"):
        _ = lines | f"Write {sink}" >> beam.io.WriteToText(f"{target}/{sink}")
    pairs = lines | "Log" >> beam.Map(lambda line: (line.split()[0], 1))
    counts = pairs | beam.WindowInto(FixedWindows(10)) | beam.CombinePerKey(sum)
    _ = counts | beam.Map(counted) | "Write counts" >> beam.io.WriteToText(f"{target}/counts")
    return pipeline.run()


if __name__ == "__main__":
    start(*sys.argv[1:]).wait_until_finish()
