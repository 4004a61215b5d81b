"""Files of the windows of a stream: their names, what is in them, and who may read the names."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import penstock as beam
from penstock.io import WriteToCsv, WriteToText
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.test_stream import TestStream
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark
from penstock.transforms.window import FixedWindows, TimestampedValue
from penstock.utils.windowed_value import PaneInfo
from penstock_spark.formats.registry import window_files
from penstock_spark.sinks.window_files import AssignShards, WriteWindow


def of(folder: Path) -> dict[str, list[str]]:
    """The lines of each file of a folder, in the order of the alphabet."""
    return {file.name: sorted(file.read_text().splitlines()) for file in folder.iterdir()}


def test_the_names_of_files_are_elements_of_later_steps(tmp_path: Path) -> None:
    def told(name: str, window: Any = beam.DoFn.WindowParam) -> tuple[str, int, int]:
        with open(name, encoding="utf-8") as file:
            return os.path.basename(name), int(window.start), len(file.readlines())

    with TestPipeline(mode="streaming") as pipeline:
        texts = pipeline | TestStream().add_elements(
            [TimestampedValue(f"{second}", second) for second in (1, 2, 70)]
        )
        names = texts | WriteToText(f"{tmp_path}/o", ".txt", num_shards=2, triggering_frequency=60)
        counted = (
            names
            | beam.Map(told)
            | beam.MapTuple(lambda name, start, lines: (start, lines))
            | beam.GroupByKey()
        )
        # A grouping behind it goes by the windows of the files.
        sums = counted | "Sum" >> beam.MapTuple(lambda start, lines: (start, sum(lines), len(lines)))
        assert_that(sums, equal_to([(0, 2, 2), (60, 1, 2)]))
    shards = defaultdict(set)
    for name, lines in of(tmp_path).items():
        shards[name.partition(")")[0]].update(lines)
        assert name.endswith((")-00000-of-00002.txt", ")-00001-of-00002.txt"))
    assert shards == {"o-[0.0, 60.0": {"1", "2"}, "o-[60.0, 120.0": {"70"}}


def test_each_pane_has_files_of_its_own(tmp_path: Path) -> None:
    panes = AfterWatermark(early=AfterCount(1), late=AfterCount(1))
    windows = beam.WindowInto(FixedWindows(60), panes, AccumulationMode.DISCARDING, allowed_lateness=60)
    stream = TestStream().add_elements([TimestampedValue(beam.Row(a=1), 1)]).advance_watermark_to(10)
    stream = stream.add_elements([TimestampedValue(beam.Row(a=2), 2)]).advance_watermark_to(61)
    stream = stream.add_elements([TimestampedValue(beam.Row(a=3), 3)])
    with TestPipeline(mode="streaming") as pipeline:
        rows = pipeline | stream | windows
        _ = rows | beam.Map(lambda row: row.a) | WriteToText(f"{tmp_path}/text/o", shard_name_template="-V-S")
        written = rows | WriteToCsv(
            f"{tmp_path}/csv", file_naming=lambda window, pane, shard, *_: f"{int(window.start)}-{pane.index}"
        )
        names = written | "Name" >> beam.Map(lambda result: result.file_name)
        assert_that(names, equal_to(["0-0", "0-1", "0-2", "0-3"]))
    window = "o-[1970-01-01T00-00-00, 1970-01-01T00-01-00)"
    assert of(tmp_path / "text") == {
        f"{window}-0": ["1"],
        f"{window}-pane-1-0": ["2"],
        # The pane at the end of the window comes although nothing is new.
        f"{window}-pane-2-0": [],
        f"{window}-pane-3-0": ["3"],
    }
    assert of(tmp_path / "csv")["0-1"] == ["2", "a"]


def test_a_task_that_is_run_again_replaces_its_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    sink: Any = WriteToText(f"{tmp_path}/o", num_shards=2, header="h").sink
    dofn = WriteWindow(window_files(sink, "here"))
    window = FixedWindows(60).assign(beam.window.WindowFn.AssignContext(3))[0]
    pane = PaneInfo(True, True, 0, 0, 0)
    (tmp_path / "o-[0.0, 60.0)-00001-of-00002").write_text("half")
    for _ in range(2):
        assert list(dofn.process((1, [("a",), (), ("b",)]), window, pane)) == [
            f"{tmp_path}/o-[0.0, 60.0)-00001-of-00002"
        ]
    assert of(tmp_path) == {"o-[0.0, 60.0)-00001-of-00002": ["a", "b", "h"]}


def test_what_goes_to_which_shard_depends_on_the_bundle_alone() -> None:
    def dealt(dofn: AssignShards) -> list[Any]:
        dofn.start_bundle()
        return [list(dofn.process(each, "window", beam.utils.timestamp.Timestamp(7))) for each in range(5)]

    dofn = AssignShards(3)
    first = dealt(dofn)
    assert dealt(dofn) == dealt(AssignShards(3)) == first
    assert {shard for shard, _ in first[0]} == {0, 1, 2}, "every shard hears of the window"
    assert [len(pairs) for pairs in first] == [3, 1, 1, 1, 1]
