"""Beam's own sources without an end, on Spark: splittable DoFns over unbounded work."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("apache_beam")
import apache_beam as beam
from apache_beam.coders import StrUtf8Coder
from apache_beam.io import fileio
from apache_beam.io.unbounded_source import (
    CheckpointMark,
    UnboundedCountingSource,
    _CountingCheckpointMark,
)
from apache_beam.io.watch import PollResult, Watch
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.periodicsequence import PeriodicImpulse, PeriodicSequence
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import Timestamp

from penstock_spark.beam import BeamRunner
from penstock_spark.beam.graph_of import graph_of
from penstock_spark.supported import check, default_mode

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]


def acknowledged(folder: str) -> list[int]:
    return sorted(int(path.name) for path in Path(folder).iterdir())


class Acknowledging(_CountingCheckpointMark):  # type: ignore[misc]
    """A position whose acknowledgement is a file."""

    folder = ""

    def finalize_checkpoint(self) -> None:
        Path(self.folder, str(self.last_index)).touch()


class Counting(UnboundedCountingSource):  # type: ignore[misc]
    """Numbers from 0, with each call acknowledged in a folder."""

    def __init__(self, count: int, folder: str) -> None:
        super().__init__(count)
        self._folder = folder

    def split(self, desired_num_splits: int, options: Any = None) -> Any:
        return [self]

    def create_reader(self, options: Any, checkpoint_mark: CheckpointMark | None) -> Any:
        reader = super().create_reader(options, checkpoint_mark)
        inner, folder = reader.get_checkpoint_mark, self._folder

        def acknowledging() -> Acknowledging:
            made = Acknowledging(inner().last_index)
            made.folder = folder
            return made

        reader.get_checkpoint_mark = acknowledging
        return reader

    def get_checkpoint_mark_coder(self) -> Any:
        return beam.coders.PickleCoder()


def lines_of(path: str) -> Any:
    """The lines of a file so far; the last one is an end."""
    lines = Path(path).read_text().split()
    found = [TimestampedValue(line, number) for number, line in enumerate(lines) if line != "end"]
    if "end" in lines:
        return PollResult.complete(found)
    with Path(path).open("a") as file:
        file.write(f"line{len(lines)}\n" if len(lines) < 3 else "end\n")
    return PollResult.incomplete(found).with_watermark(len(found))


def test_beams_sources_without_an_end(tmp_path: Path) -> None:
    log, files, marks = tmp_path / "log", tmp_path / "files", tmp_path / "marks"
    log.write_text("line0\n")
    files.mkdir()
    marks.mkdir()
    (files / "a").touch()
    now = Timestamp(int(time.time()))
    with beam.Pipeline(runner=BeamRunner(shuffle_partitions=1)) as p:
        polled = Watch(lines_of, 1, output_coder=StrUtf8Coder())
        # Beam's default for the start is the time at which it was imported, and each second since would be a poll.
        polls = {"start_timestamp": now, "stop_timestamp": now + 3}
        matched = fileio.MatchContinuously(f"{files}/*", interval=1, **polls)
        found = (
            p | "Sequence" >> beam.Create([(now, now + 3, 1)]) | PeriodicSequence(),
            p | "Log" >> beam.Create([str(log)]) | polled | beam.Values(),
            p | matched | beam.Map(lambda match: Path(match.path).name),
            p | beam.io.Read(Counting(40, str(marks))),
        ) | beam.Flatten()
        assert_that(found, equal_to([now, now + 1, now + 2, "line0", "line1", "line2", "a", *range(40)]))
    assert acknowledged(str(marks))[-1] == 39


def test_a_periodic_impulse_that_was_written_as_a_proto_is_work_without_an_end() -> None:
    p = beam.Pipeline()
    _ = p | PeriodicImpulse(0, 10, 1) | beam.Map(print)
    again = beam.Pipeline.from_runner_api(p.to_runner_api(), BeamRunner(), p._options)
    graph = graph_of(again)
    assert default_mode(graph) == "streaming"
    check(graph, "streaming")
