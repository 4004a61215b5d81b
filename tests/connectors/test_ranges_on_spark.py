"""Sources that are written in Python, on Spark: in batch mode, as streams, and what happens if they fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock as beam
from penstock.error import UnsupportedByRunner
from penstock.io import WriteToMemory
from penstock.io.custom.ranges import PartitionedSource, RangeSource, ReadFromSource
from penstock.io.watermarks import BoundedDisorder, OrderedPartitions
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.window import FixedWindows
from tests.connectors import numbered_files
from tests.connectors.numbered_files import Files, add, has_been_away, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def options(mode: str, *flags: str) -> PipelineOptions:
    return PipelineOptions([f"--mode={mode}", "--shuffle_partitions=2", *flags])


def read_all(transform: Any, mode: str = "batch", *flags: str) -> list[Any]:
    into: list[Any] = []
    with beam.Pipeline(options=options(mode, *flags)) as pipeline:
        _ = pipeline | transform | WriteToMemory(into)
    return into


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def test_a_batch_reads_all_that_is_there(folder: Path) -> None:
    add(folder, "a", *(f"{number} a" for number in range(20)))
    add(folder, "b", "7 b")
    add(folder, "c")
    expected = [(number, "a") for number in range(20)] + [(7, "b")]
    assert sorted(read_all(ReadFromSource(Files(folder)))) == sorted(expected)
    assert sorted(read_all(beam.io.Read(Files(folder)))) == sorted(expected)


def test_nothing_to_read(folder: Path) -> None:
    assert read_all(ReadFromSource(Files(folder))) == []
    assert read_all(ReadFromSource(Files(folder)).as_stream(existing_only=True), "streaming") == []


@pytest.mark.parametrize("mode", ["batch", "micro_batch", "streaming"])
def test_own_times_decide_the_windows(folder: Path, mode: str) -> None:
    add(folder, "a", "1 red", "2 red", "11 red", "12 blue")
    add(folder, "b", "3 red", "25 blue")
    source = ReadFromSource(Files(folder, has_times=True))
    read: Any = (
        source if mode == "batch" else source.as_stream(watermark=BoundedDisorder(100), existing_only=True)
    )
    into: list[Any] = []
    with beam.Pipeline(options=options(mode)) as pipeline:
        words = pipeline | read | beam.Map(lambda word: (word, 1)) | beam.WindowInto(FixedWindows(10))
        _ = (
            words
            | beam.CombinePerKey(sum)
            | beam.Map(lambda pair, window=beam.DoFn.WindowParam: (*pair, window.start.seconds()))
            | WriteToMemory(into)
        )
    assert sorted(into) == [("blue", 1, 10), ("blue", 1, 20), ("red", 1, 10), ("red", 3, 0)]


@pytest.mark.parametrize("mode", ["micro_batch", "streaming"])
def test_a_bounded_read_in_a_stream_keeps_its_times(folder: Path, mode: str) -> None:
    add(folder, "a", "1 red", "12 blue")
    times = beam.Map(lambda word, time=beam.DoFn.TimestampParam: (word, time.seconds()))
    into: list[Any] = []
    with beam.Pipeline(options=options(mode)) as pipeline:
        _ = pipeline | ReadFromSource(Files(folder, has_times=True)) | times | WriteToMemory(into)
    assert sorted(into) == [("blue", 12), ("red", 1)]


def test_a_stream_reads_what_is_added_and_new_partitions(folder: Path) -> None:
    add(folder, "a", "1 a")
    into: list[Any] = []
    pipeline = beam.Pipeline(options=options("streaming"))
    _ = pipeline | ReadFromSource(Files(folder)).as_stream(max_records_per_batch=2) | WriteToMemory(into)
    result = pipeline.run()
    wait_for(lambda: into == [(1, "a")], result)
    add(folder, "a", *(f"{number} a" for number in range(2, 8)))
    add(folder, "b", "9 b")
    wait_for(lambda: len(into) == 8, result)
    wait_for(lambda: (folder / "committed").exists(), result)
    add(folder, "b", "10 b")
    result.drain()
    assert result.wait_until_finish(duration=60_000) == "DRAINED"
    assert [time for time, word in into if word == "a"] == list(range(1, 8))
    assert [time for time, word in into if word == "b"] == [9, 10]


def test_a_limit_cuts_what_is_there_into_micro_batches(folder: Path) -> None:
    add(folder, "a", *(f"{number} a" for number in range(10)))
    batches: list[int] = []
    with beam.Pipeline(options=options("streaming")) as pipeline:
        read = ReadFromSource(Files(folder)).as_stream(max_records_per_batch=4, existing_only=True)
        _ = pipeline | read | beam.io.ForEachBatch(lambda elements, number: batches.append(len(elements)))
    assert batches == [4, 4, 2]


def test_the_watermark_waits_for_the_slowest_partition(folder: Path) -> None:
    add(folder, "a", "1 a", "50 a")
    add(folder, "b", "2 b")
    add(folder, "c")
    into: list[Any] = []
    pipeline = beam.Pipeline(options=options("streaming"))
    read = ReadFromSource(Files(folder, has_times=True)).as_stream(watermark=OrderedPartitions())
    words = pipeline | read | beam.Map(lambda word: (word, 1)) | beam.WindowInto(FixedWindows(10))
    _ = words | beam.CombinePerKey(sum) | WriteToMemory(into)
    result = pipeline.run()
    wait_for(lambda: (folder / "committed").exists(), result)
    for records in (4, 5):
        # Of these micro-batches, the second one has the watermark that the first one may have moved.
        add(folder, "b", "20 b")
        wait_for(lambda: (folder / "committed").read_text() == str(records), result)
    result.wait_until_finish(duration=500)
    assert into == [], "partition c may still have earlier elements"
    add(folder, "c", "15 c")
    wait_for(lambda: sorted(into) == [("a", 1), ("b", 1)], result)
    result.cancel()


def test_what_cannot_be_decoded_is_rejected_or_an_error(folder: Path) -> None:
    add(folder, "a", "1 a", "bad b", "3 c")
    for mode in ("batch", "micro_batch", "streaming"):
        good: list[Any] = []
        bad: list[Any] = []
        read: Any = ReadFromSource(Files(folder), rejects=True)
        with beam.Pipeline(options=options(mode)) as pipeline:
            accepted, rejected = pipeline | (
                read.as_stream(existing_only=True) if mode == "streaming" else read
            )
            _ = accepted | "Good" >> WriteToMemory(good)
            _ = rejected | "Bad" >> WriteToMemory(bad)
        assert good == [(1, "a"), (3, "c")]
        [record] = bad
        assert (record.source, record.record, record.error) == ("a.log", "bad b", "ValueError")
        assert "bad line" in record.reason
    for mode in ("batch", "streaming"):
        source = ReadFromSource(Files(folder))
        read = source if mode == "batch" else source.as_stream(existing_only=True)
        with pytest.raises(ValueError, match=r"bad line \[while running 'ReadFromSource' \(test_ranges"):
            read_all(read, mode)


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_an_error_of_reading_names_the_step(folder: Path, mode: str) -> None:
    add(folder, "a", "1 a", "stop")
    source = ReadFromSource(Files(folder))
    with pytest.raises(LookupError, match=r"no stop \[while running 'ReadFromSource' \(test_ranges"):
        read_all(source if mode == "batch" else source.as_stream(existing_only=True), mode)


class Failing(RangeSource[int]):
    """Fails in one of its methods."""

    def __init__(self, method: str, position: Any = 0) -> None:
        self.method = method
        self.position = position

    def _reach(self, method: str) -> None:
        if method == self.method:
            raise PermissionError(f"no {method}")

    def first_position(self) -> Any:
        self._reach("first_position")
        return self.position

    def last_position(self, start: Any, max_records: int | None) -> Any:
        self._reach("last_position")
        return 5

    def ranges(self, start: Any, end: Any, parallelism: int) -> Any:
        self._reach("ranges")
        return super().ranges(start, end, parallelism)

    def read(self, piece: Any) -> Any:
        yield [1]


@pytest.mark.parametrize("mode", ["batch", "streaming"])
@pytest.mark.parametrize("method", ["first_position", "last_position", "ranges"])
def test_an_error_of_planning_names_the_step(mode: str, method: str) -> None:
    source = ReadFromSource(Failing(method))
    with pytest.raises(PermissionError, match=rf"no {method} \[while running 'ReadFromSource' \(test_ranges"):
        read_all(source if mode == "batch" else source.as_stream(existing_only=True), mode)


def test_a_position_that_json_cannot_hold() -> None:
    source = ReadFromSource(Failing("", position=(1, 2)))
    with pytest.raises(
        TypeError, match=r"the position \(1, 2\) changes when it is written as JSON"
    ) as caught:
        read_all(source.as_stream(existing_only=True), "streaming")
    assert "test_ranges_on_spark.py" in str(caught.value)


def test_a_source_that_is_away_for_a_while(folder: Path) -> None:
    add(folder, "a", "1 a")
    into: list[Any] = []
    pipeline = beam.Pipeline(options=options("streaming"))
    _ = pipeline | ReadFromSource(Files(folder)).as_stream() | WriteToMemory(into)
    result = pipeline.run()
    wait_for(lambda: len(into) == 1, result)
    (folder / "away").touch()
    add(folder, "a", "2 a")
    wait_for(lambda: has_been_away(folder), result)
    (folder / "away").unlink()
    wait_for(lambda: len(into) == 2, result)
    result.cancel()


def test_a_finite_stream_does_not_end_while_its_source_is_away(folder: Path) -> None:
    """A simulated log found it: what was there and not read was lost."""
    add(folder, "a", "1 a", "2 a", "3 a")
    into: list[Any] = []

    def take(elements: list[Any], number: int) -> None:
        into.extend(elements)
        if elements == [(1, "a")]:
            (folder / "away").touch()

    pipeline = beam.Pipeline(options=options("streaming"))
    read = ReadFromSource(Files(folder)).as_stream(max_records_per_batch=1, existing_only=True)
    _ = pipeline | read | beam.io.ForEachBatch(take)
    result = pipeline.run()
    wait_for(lambda: has_been_away(folder), result)
    result.wait_until_finish(duration=500)
    assert result.state == "RUNNING"
    (folder / "away").unlink()
    assert result.wait_until_finish(duration=60_000) == "DONE"
    assert into == [(1, "a"), (2, "a"), (3, "a")]


def test_a_source_that_stays_away(folder: Path) -> None:
    add(folder, "a", "1 a")
    into: list[Any] = []
    pipeline = beam.Pipeline(options=options("streaming"))
    read = ReadFromSource(Files(folder, patience_seconds=0.5)).as_stream()
    _ = pipeline | read | WriteToMemory(into)
    result = pipeline.run()
    wait_for(lambda: len(into) == 1, result)
    (folder / "away").touch()
    with pytest.raises(ConnectionError, match=r"the folder is away \[while running 'ReadFromSource'"):
        result.wait_until_finish(duration=60_000)


def test_removed_records_are_an_error(folder: Path, tmp_path: Path) -> None:
    checkpoint = f"--checkpoint_location={tmp_path / 'checkpoint'}"
    add(folder, "a", "1 a", "2 a")
    read = ReadFromSource(Files(folder)).as_stream(existing_only=True)
    assert len(read_all(read, "streaming", checkpoint)) == 2
    add(folder, "a", "3 a", "4 a")
    (folder / "a.log.removed").write_text("3")
    with pytest.raises(
        ValueError, match="begins at record 3, but the stream has read it only up to record 2"
    ):
        read_all(ReadFromSource(Files(folder)).as_stream(existing_only=True), "streaming", checkpoint)


def test_a_stream_goes_on_where_it_ended(folder: Path, tmp_path: Path) -> None:
    checkpoint = f"--checkpoint_location={tmp_path / 'checkpoint'}"
    into: list[Any] = []

    def run() -> Any:
        pipeline = beam.Pipeline(options=options("streaming", checkpoint))
        _ = pipeline | ReadFromSource(Files(folder)).as_stream() | WriteToMemory(into)
        return pipeline.run()

    add(folder, "a", "1 a")
    first = run()
    wait_for(lambda: len(into) == 1, first)
    first.cancel()
    add(folder, "a", "2 a")
    second = run()
    wait_for(lambda: len(into) == 2, second)
    second.cancel()
    assert into == [(1, "a"), (2, "a")]


def test_an_old_spark_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock_spark.formats.ranges.stream._OLDEST", (9, 9))
    with pytest.raises(UnsupportedByRunner, match=r"files in in cannot be read as a stream on Spark 4\."):
        read_all(ReadFromSource(Files(folder)).as_stream(existing_only=True), "streaming")


def test_workers_can_import_the_source() -> None:
    assert numbered_files.Files.__module__ == "tests.connectors.numbered_files", (
        "its module is not sent by value"
    )


class Interrupted(RangeSource[int]):
    """Loses its connection in each method: `read` behind three elements, and then in parts of another size."""

    poll_seconds = 0.01
    connection_errors = (EOFError,)

    def __init__(self, folder: Path, *, patience_seconds: float = 60.0, lost: int = 0) -> None:
        self.folder, self.patience_seconds, self.lost = folder, patience_seconds, lost

    def _fail_once(self, method: str) -> None:
        mark = self.folder / method
        if not mark.exists():
            mark.touch()
            raise EOFError(f"{method} has lost its connection")

    def first_position(self) -> int:
        return 0

    def last_position(self, start: int, max_records: int | None) -> int:
        return 10

    def ranges(self, start: int, end: int, parallelism: int) -> Any:
        if start != end:
            self._fail_once("ranges")
        return super().ranges(start, end, parallelism)

    def read(self, piece: Any) -> Any:
        is_first = not (self.folder / "read").exists()
        step = 3 if is_first else 2
        for number in range(piece.start, piece.end - (0 if is_first else self.lost), step):
            yield list(range(number, min(number + step, piece.end)))
            self._fail_once("read")
            if self.patience_seconds < 1:
                raise EOFError("no more")

    def commit(self, position: int) -> None:
        raise EOFError("commit has lost its connection")


def test_a_range_is_read_on_where_the_connection_was_lost(folder: Path) -> None:
    assert read_all(ReadFromSource(Interrupted(folder)).as_stream(existing_only=True), "streaming") == list(
        range(10)
    )
    (folder / "read").unlink()
    assert read_all(ReadFromSource(Interrupted(folder))) == list(range(10))


@pytest.mark.parametrize(
    ("source", "error", "text"),
    [
        ({"patience_seconds": 0.1}, EOFError, "no more"),
        ({"lost": 9}, ValueError, "has yielded 3 elements, and fewer when the range was read again"),
    ],
)
def test_a_range_that_cannot_be_read_again(folder: Path, source: Any, error: Any, text: str) -> None:
    (folder / "ranges").touch()
    with pytest.raises(error, match=text):
        read_all(ReadFromSource(Interrupted(folder, **source)))


class Letters(PartitionedSource[str]):
    """Each partition begins with a letter of its own."""

    def __init__(self, **ends: str) -> None:
        self.ends = ends

    def first_positions(self) -> dict[str, str]:
        return {name: name for name in self.ends}

    def next_position(self, partition: str, start: str, max_records: int | None) -> str:
        end = self.ends[partition]
        return end if max_records is None else min(end, chr(ord(start) + max_records))

    def read(self, piece: Any) -> Any:
        yield [chr(code) for code in range(ord(piece.start), ord(piece.end))]


def test_partitions_with_positions_of_their_own(folder: Path) -> None:
    source = Letters(a="d", q="s")
    found: list[list[str]] = []
    with beam.Pipeline(options=options("streaming")) as pipeline:
        read = ReadFromSource(source).as_stream(max_records_per_batch=2, existing_only=True)
        _ = pipeline | read | beam.io.ForEachBatch(lambda letters, number: found.append(letters))
    assert list(map(sorted, found)) == [["a", "q"], ["b", "r"], ["c"]]
    assert sorted(read_all(ReadFromSource(source))) == list("abcqr")
    # A new partition is announced; one that is gone keeps its position.
    assert Letters(a="d", x="z").last_position({"a": "b", "q": "r"}, 8) == {"a": "d", "q": "r", "x": "x"}
