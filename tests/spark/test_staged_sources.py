"""Bounded sources and sources that follow the clock, in a stream: all elements once, and the end told last."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

from penstock.error import RunnerError
from penstock.io import ReadFromText
from penstock.io.external.generate_sequence import SequenceSource
from penstock.transforms.periodicsequence import PeriodicSource, RebaseMode
from penstock_spark.files.disk_files import DiskFiles
from penstock_spark.formats.registry import open_source
from penstock_spark.reports.failure import find_failure
from penstock_spark.sources import staging
from penstock_spark.sources.heartbeats import HeartbeatDecoder, open_heartbeats
from penstock_spark.sources.scan import Scan
from penstock_spark.sources.staging import open_staged, stage_bounded
from penstock_spark.worker.batch import decode_page
from tests.spark.called import read_all, start

WHERE = "at step 'Read' (game.py:41)"
SECOND = 1_000_000
END = "the end"


def read(frame: DataFrame, checkpoint: Path) -> list[list[Any]]:
    """The rows of each micro-batch."""
    batches: dict[int, list[Any]] = {}

    def keep(batch: DataFrame, number: int) -> None:
        batches[number] = batch.collect()

    read_all(frame, keep, checkpoint)
    return [batches[number] for number in sorted(batches)]


def pages(batches: list[list[Any]]) -> list[list[Any]]:
    """The elements of each micro-batch; the mark of the end stands for itself."""
    return [
        [value for row in batch for value in ([END] if row.last else decode_page(row.value).values)]
        for batch in batches
    ]


def numbers(spark: SparkSession, count: int, tasks: int, of: Callable[[int], Any] = int) -> Scan:
    """A source of numbers, or of what a function makes of them."""
    frame = spark.range(0, count, 1, tasks)
    return Scan(frame, lambda: lambda batch: [of(number) for number in batch.column(0).to_pylist()])


def test_a_bounded_source_is_staged_once_and_its_end_comes_after_everything(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = str(tmp_path / "inputs [1]")
    stage_bounded(numbers(spark, 30_000, 3), folder, WHERE)
    stage_bounded(numbers(spark, 7, 1), folder, WHERE)
    frame = open_staged(spark, folder, [("maxFilesPerTrigger", 1)])
    *batches, last = pages(read(frame, tmp_path / "slow"))
    assert len(batches) == 3
    assert last == [END]
    assert sorted(value for batch in batches for value in batch) == list(range(30_000))
    [whole] = pages(read(open_staged(spark, folder), tmp_path / "fast"))
    assert whole.count(END) == 1
    assert sorted(value for value in whole if value != END) == list(range(30_000))


def test_an_empty_source_has_only_its_end(spark: SparkSession, tmp_path: Path) -> None:
    for number, frame in enumerate([spark.range(0), spark.createDataFrame([], "id long")]):
        folder = str(tmp_path / f"{number}")
        stage_bounded(Scan(frame, lambda: lambda batch: [1] * batch.num_rows), folder, WHERE)
        assert pages(read(open_staged(spark, folder), tmp_path / f"{number}-checkpoint")) == [[END]]


def test_a_folder_may_have_a_scheme(spark: SparkSession, tmp_path: Path) -> None:
    folder = f"file://{tmp_path}/staged"
    stage_bounded(numbers(spark, 5, 1), folder, WHERE)
    assert pages(read(open_staged(spark, folder), tmp_path / "checkpoint")) == [[0, 1, 2, 3, 4, END]]


def test_staging_that_was_cut_off_begins_anew(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "staged"

    def cut_off(*arguments: Any) -> None:
        raise KeyboardInterrupt

    for step in ("rename", "write"):
        with monkeypatch.context() as patched:
            patched.setattr(DiskFiles, step, cut_off)
            with pytest.raises(KeyboardInterrupt):
                stage_bounded(numbers(spark, 9, 2), str(folder), WHERE)
        assert any(folder.iterdir())
    stage_bounded(numbers(spark, 5, 1), str(folder), WHERE)
    assert pages(read(open_staged(spark, str(folder)), tmp_path / "checkpoint")) == [[0, 1, 2, 3, 4, END]]


@pytest.mark.parametrize("ahead_seconds", [0.4, 3600])
def test_the_end_is_later_than_everything_by_the_clock_of_the_file_system_or_staging_fails(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead_seconds: float
) -> None:
    rename = DiskFiles.rename

    def rename_ahead(place: DiskFiles, source: str, target: str) -> None:
        rename(place, source, target)
        now = time.time() + ahead_seconds
        for file in (tmp_path / "staged/pages").iterdir():
            os.utime(file, (now, now))

    monkeypatch.setattr(DiskFiles, "rename", rename_ahead)
    monkeypatch.setattr(staging, "_CLOCK_TRIES", 20)
    if ahead_seconds > 60:
        with pytest.raises(RunnerError, match="has an older time"):
            stage_bounded(numbers(spark, 1, 1), str(tmp_path / "staged"), WHERE)
        return
    stage_bounded(numbers(spark, 1, 1), str(tmp_path / "staged"), WHERE)
    times = {file.name: file.stat().st_mtime for file in (tmp_path / "staged/pages").iterdir()}
    assert max(times, key=lambda name: times[name]) == "end.parquet"


def test_a_source_that_fails_is_an_error_of_the_step_and_not_staged(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = str(tmp_path / "staged")
    with pytest.raises(PythonException) as caught:
        stage_bounded(numbers(spark, 9, 1, lambda number: 1 // (number - 8)), folder, WHERE)
    failure = find_failure(str(caught.value))
    assert failure is not None
    assert (failure.kind, failure.where) == ("ZeroDivisionError", WHERE)
    stage_bounded(numbers(spark, 2, 1), folder, WHERE)
    assert pages(read(open_staged(spark, folder), tmp_path / "checkpoint")) == [[0, 1, END]]


def test_files_are_small_whatever_the_elements_are(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "staged"

    def large(number: int) -> bytes:
        # Hardly anything that compresses, in elements from a few bytes to a few megabytes.
        return number.to_bytes(8, "big") if number < 3_000 else os.urandom(400_000)

    stage_bounded(numbers(spark, 3_150, 1, large), str(folder), WHERE)
    files = sorted((folder / "pages").glob("part-*.parquet"))
    assert len(files) > 1
    assert max(file.stat().st_size for file in files) < 64 << 20
    groups = [pq.ParquetFile(file).metadata.row_group(0).num_rows for file in files]
    assert max(groups) <= 16
    pages = [page for file in files for page in pq.read_table(file).column("value").to_pylist()]
    assert max(map(len, pages)) < 3 << 20
    found = [len(value) for page in pages for value in decode_page(page).values]
    assert found == [8] * 3_000 + [400_000] * 150


def test_a_text_source_is_staged_like_any_other(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    scan = open_source(ReadFromText(f"{tmp_path}/*.txt").source, spark, WHERE)
    stage_bounded(scan, str(tmp_path / "staged"), WHERE)
    assert pages(read(open_staged(spark, str(tmp_path / "staged")), tmp_path / "checkpoint")) == [
        ["one", "two", END]
    ]


def decoded(source: Any, spark: SparkSession) -> DataFrame:
    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder = HeartbeatDecoder(source)
        for batch in batches:
            yield pa.RecordBatch.from_pydict(
                {"heartbeat": [cloudpickle.dumps(heartbeat) for heartbeat in decoder(batch)]}
            )

    return open_heartbeats(spark).mapInArrow(decode, "heartbeat binary")


def heartbeats_until(source: Any, spark: SparkSession, checkpoint: Path, count: int) -> list[Any]:
    """At least so many heartbeats, of micro-batches that are done."""
    batches: list[list[Any]] = []
    frame = decoded(source, spark)
    before = len(list(checkpoint.glob("commits/[0-9]*")))
    query = start(frame, lambda batch, number: batches.append(batch.collect()), checkpoint)

    def done() -> list[Any]:
        commits = len(list(checkpoint.glob("commits/[0-9]*"))) - before
        return [row for rows in batches[:commits] for row in rows]

    limit = time.monotonic() + 60
    while len(done()) < count and query.isActive and time.monotonic() < limit:
        query.awaitTermination(0.05)
    query.stop()
    return [cloudpickle.loads(row.heartbeat) for row in done()]


def test_a_source_that_follows_the_clock_goes_on_after_a_restart_and_makes_up_what_it_missed(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = SequenceSource(0, None, elements_per_period=4)
    started = int(time.time() * SECOND)
    first = heartbeats_until(source, spark, tmp_path / "checkpoint", 1)
    second = heartbeats_until(source, spark, tmp_path / "checkpoint", 3)
    heartbeats = first + second
    values = [each.value for heartbeat in heartbeats for each in heartbeat.elements]
    assert values == list(range(4 * len(heartbeats)))
    ends = [heartbeat.until_micros for heartbeat in heartbeats]
    assert ends == [ends[0] + SECOND * number for number in range(len(ends))]
    assert 0 <= ends[0] - SECOND - started < 30 * SECOND
    assert heartbeats[0].elements[0].timestamp.micros == ends[0] - SECOND
    assert ends[-1] <= time.time() * SECOND
    assert not any(heartbeat.is_over for heartbeat in heartbeats)


def test_what_is_due_before_the_start_comes_in_the_first_second_and_the_end_is_told(
    spark: SparkSession, tmp_path: Path
) -> None:
    past = PeriodicSource(0, 5 * SECOND, SECOND, data=tuple("abc"))
    rebased = PeriodicSource(0, 3 * SECOND // 2, SECOND, rebase=RebaseMode.REBASE_ALL)
    [first, *_] = heartbeats_until(past, spark, tmp_path / "past", 1)
    assert ([each.value for each in first.elements], first.is_over) == (list("abcab"), True)
    first, second, *_ = heartbeats_until(rebased, spark, tmp_path / "rebased", 2)
    assert [(len(heartbeat.elements), heartbeat.is_over) for heartbeat in (first, second)] == [
        (1, False),
        (1, True),
    ]
