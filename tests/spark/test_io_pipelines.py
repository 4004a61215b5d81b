"""Reading and writing in whole pipelines, as users write them."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

import penstock as beam
from penstock.io import fileio, iobase
from penstock.io.range_trackers import OffsetRangeTracker
from penstock.options.value_provider import StaticValueProvider
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to


class Score(NamedTuple):
    team: str
    points: int


SCORES = [Score("a", 1), Score("b", 2), Score("a", 3)]


@pytest.mark.every_spark
def test_lines_go_through_a_pipeline_from_file_to_file(tmp_path: Path) -> None:
    (tmp_path / "in.txt.gz").write_bytes(gzip.compress(b"head\nb a\nc a\n"))
    with TestPipeline() as pipeline:
        lines = pipeline | beam.io.ReadFromText(f"{tmp_path}/in*", skip_header_lines=1)
        counts = lines | beam.FlatMap(str.split) | beam.combiners.Count.PerElement()
        names = (
            counts
            | beam.MapTuple(lambda word, count: f"{word}: {count}")
            | beam.io.WriteToText(f"{tmp_path}/out", ".txt", num_shards=1, header="counts")
        )
        assert_that(names, equal_to([f"{tmp_path}/out-00000-of-00001.txt"]))
    written = (tmp_path / "out-00000-of-00001.txt").read_text().splitlines()
    assert (written[0], sorted(written[1:])) == ("counts", ["a: 2", "b: 1", "c: 1"])


def test_file_names_of_a_write_are_in_the_global_window(tmp_path: Path) -> None:
    with TestPipeline() as pipeline:
        names = (
            pipeline
            | beam.Create(["a", "b"])
            | beam.Map(lambda value: beam.window.TimestampedValue(value, 5))
            | beam.WindowInto(beam.window.FixedWindows(10))
            | beam.io.WriteToText(StaticValueProvider(str, f"{tmp_path}/out"), shard_name_template="")
        )
        windows = names | beam.Map(lambda _, window=beam.DoFn.WindowParam: window)
        assert_that(windows, equal_to([beam.window.GlobalWindow()]))


@pytest.mark.every_spark
@pytest.mark.parametrize("fixed_shards", [{}, {"num_shards": 3}])
def test_an_empty_collection_writes_an_empty_file(tmp_path: Path, fixed_shards: dict[str, Any]) -> None:
    with TestPipeline() as pipeline:
        _ = pipeline | beam.Create([]) | beam.io.WriteToText(f"{tmp_path}/out", **fixed_shards)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b""] * fixed_shards.get("num_shards", 1)


def test_files_that_elements_name_are_read(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text(f"{name}1\n{name}2\n")
    with TestPipeline() as pipeline:
        patterns = pipeline | beam.Create([f"{tmp_path}/a", f"{tmp_path}/[b]"])
        lines = patterns | beam.io.ReadAllFromText(with_filename=True)
        assert_that(lines, equal_to([(f"{tmp_path}/{line[0]}", line) for line in ("a1", "a2", "b1", "b2")]))


@pytest.mark.every_spark
@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_rows_come_back_from_each_format_as_they_were_written(tmp_path: Path, format: str) -> None:
    path = f"{tmp_path}/scores"
    write, read = {
        "csv": (beam.io.WriteToCsv(path), lambda: beam.io.ReadFromCsv(f"{path}*")),
        "json": (beam.io.WriteToJson(path), lambda: beam.io.ReadFromJson(f"{path}*")),
        "parquet": (beam.io.WriteToParquet(path), lambda: beam.io.ReadFromParquet(f"{path}*", as_rows=True)),
    }[format]
    with TestPipeline() as pipeline:
        _ = pipeline | beam.Create(SCORES).with_output_types(Score) | write
    with TestPipeline() as pipeline:
        pairs = pipeline | read() | beam.Map(lambda row: (row.team, row.points))
        assert_that(pairs, equal_to([tuple(score) for score in SCORES]))


def test_parquet_files_that_elements_name_are_read(tmp_path: Path) -> None:
    with TestPipeline() as pipeline:
        _ = (
            pipeline
            | beam.Create(SCORES).with_output_types(Score)
            | beam.io.WriteToParquet(f"{tmp_path}/scores")
        )
    with TestPipeline() as pipeline:
        records = pipeline | beam.Create([f"{tmp_path}/*"]) | beam.io.ReadAllFromParquet()
        assert_that(records, equal_to([score._asdict() for score in SCORES]))


def test_sources_and_sinks_of_spark_are_used_by_name(tmp_path: Path, spark: SparkSession) -> None:
    with TestPipeline() as pipeline:
        scores = pipeline | beam.Create(SCORES).with_output_types(Score)
        _ = scores | beam.io.WriteToSpark("orc", f"{tmp_path}/orc", partition_by="team")
    assert sorted(map(tuple, spark.read.orc(f"{tmp_path}/orc").select("team", "points").collect())) == sorted(
        SCORES
    )
    with TestPipeline() as pipeline:
        points = pipeline | beam.io.ReadFromSpark("orc", f"{tmp_path}/orc") | beam.Map(lambda row: row.points)
        assert_that(points, equal_to([1, 2, 3]))


def test_whole_files_are_matched_read_and_written(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("text")
    with TestPipeline() as pipeline:
        files = pipeline | fileio.MatchFiles(f"{tmp_path}/in/*") | fileio.ReadMatches()
        texts = files | beam.Map(lambda file: file.read_utf8())
        assert_that(texts, equal_to(["text"]))
    with TestPipeline() as pipeline:
        results = (
            pipeline
            | beam.Create(SCORES)
            | fileio.WriteToFiles(
                f"{tmp_path}/out",
                file_naming=fileio.destination_prefix_naming(".txt"),
                destination=lambda score: score.team,
                sink=lambda _: _PointsSink(),
                shards=1,
                max_writers_per_bundle=0,
            )
        )
        names = results | beam.Map(lambda result: result.file_name)
        assert_that(names, equal_to(["a-00000-of-00001.txt", "b-00000-of-00001.txt"]))
    assert sorted((tmp_path / "out" / "a-00000-of-00001.txt").read_text().split()) == ["1", "3"]


class _PointsSink(fileio.TextSink):
    def write(self, record: Score) -> None:
        super().write(str(record.points))


class CountTo(iobase.BoundedSource):
    """The numbers below a limit, in pieces of three."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def estimate_size(self) -> int:
        return self.limit

    def split(
        self, desired_bundle_size: int, start_position: Any = None, stop_position: Any = None
    ) -> Iterator[iobase.SourceBundle]:
        for start in range(0, self.limit, 3):
            yield iobase.SourceBundle(3, self, start, min(start + 3, self.limit))

    def get_range_tracker(self, start_position: Any, stop_position: Any) -> OffsetRangeTracker:
        return OffsetRangeTracker(start_position or 0, self.limit if stop_position is None else stop_position)

    def read(self, range_tracker: Any) -> Iterator[int]:
        number = range_tracker.start_position()
        while range_tracker.try_claim(number):
            yield number
            number += 1


def test_a_source_of_the_users_own_is_read_in_pieces() -> None:
    with TestPipeline() as pipeline:
        assert_that(pipeline | beam.io.Read(CountTo(10)), equal_to(range(10)))


class FolderSink(iobase.Sink):
    """A file for each piece, in a folder that gets its name at the end."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def initialize_write(self) -> str:
        Path(self.folder + ".tmp").mkdir()
        return self.folder + ".tmp"

    def open_writer(self, init_result: str, uid: str) -> FolderWriter:
        return FolderWriter(f"{init_result}/{uid}")

    def finalize_write(self, init_result: str, writer_results: Any, pre_finalize_result: Any) -> list[str]:
        assert all(Path(path).exists() for path in writer_results)
        Path(init_result).rename(self.folder)
        return [self.folder]


class FolderWriter(iobase.Writer):
    def __init__(self, path: str) -> None:
        self.path = path
        self.lines: list[str] = []

    def write(self, value: Any) -> None:
        self.lines.append(f"{value}\n")

    def close(self) -> str:
        Path(self.path).write_text("".join(self.lines))
        return self.path


def test_a_sink_of_the_users_own_begins_and_ends_once(tmp_path: Path) -> None:
    with TestPipeline() as pipeline:
        done = pipeline | beam.Create([1, 2, 3]) | beam.io.Write(FolderSink(f"{tmp_path}/out"))
        assert_that(done, equal_to([f"{tmp_path}/out"]))
    assert sorted("".join(path.read_text() for path in (tmp_path / "out").iterdir()).split()) == [
        "1",
        "2",
        "3",
    ]


def test_a_sequence_that_follows_the_clock_does_not_make_a_batch_wait(spark):
    from penstock.io.external.generate_sequence import GenerateSequence

    with TestPipeline() as p:
        numbers = p | GenerateSequence(3, 8, elements_per_period=2)
        spans = numbers | beam.Map(lambda number, time=beam.DoFn.TimestampParam: (number, time))
        ordered = spans | beam.combiners.ToList() | beam.Map(sorted)
        gaps = ordered | beam.Map(lambda all: [(number, (time - all[0][1]).micros) for number, time in all])
        assert_that(gaps, equal_to([[(3 + each, each * 500_000) for each in range(5)]]))
