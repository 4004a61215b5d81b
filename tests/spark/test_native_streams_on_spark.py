"""What Spark does with whole streams of columns is what Python does with their elements, and what a toy of it says."""

from __future__ import annotations

import datetime
import glob
import os
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as beam
from penstock import field
from penstock.io import ReadFromParquet, WriteToParquet
from penstock.io.watermarks import BoundedDisorder
from penstock.transforms import ptransform_fn
from penstock.transforms.combiners import CountCombineFn, MeanCombineFn
from penstock.transforms.trigger import AccumulationMode, AfterProcessingTime, AfterWatermark
from penstock.transforms.window import FixedWindows, GlobalWindows, SlidingWindows
from penstock_spark import read_state
from penstock_spark.lowering.batch_writer import BatchWriter
from tests.runner.native_host import NativeHost, Row
from tests.runner.native_runs import INSTANT, WAIT_SECONDS_MAX, counted, ended, instants, pipeline_of, until

pytestmark = pytest.mark.spark

DISORDER_SECONDS = 20
ACCUMULATING = AccumulationMode.ACCUMULATING
MINUTES = beam.WindowInto(FixedWindows(60))
ROUNDS = beam.WindowInto(FixedWindows(60), accumulation_mode=ACCUMULATING, allowed_lateness=100)
GLOBAL = beam.WindowInto(GlobalWindows(), AfterWatermark(early=AfterProcessingTime(10)), ACCUMULATING)
TOTAL = "Sum" >> beam.GroupBy("key").aggregate_field("number", sum, "total")


def add_file(folder: Path, number: int, table: pa.Table) -> None:
    """A file that is complete when it appears; streams read files in the order in which they have changed."""
    folder.mkdir(exist_ok=True)
    hidden = folder / f".{number:03d}"
    pq.write_table(table, hidden)
    os.utime(hidden, (1_700_000_000 + number,) * 2)
    hidden.rename(folder / f"{number:03d}.parquet")


def scores(chance: Random, file: int, disorder: int = DISORDER_SECONDS) -> pa.Table:
    """Rows at random of half a minute, which arrive out of order within the bound."""
    rows = range(30)
    seconds = [file * 30 - 100 + chance.randrange(-disorder // 2, disorder // 2) for _ in rows]
    return pa.table(
        {
            "key": pa.array([chance.choice(["a", "b", "c", None]) for _ in rows], pa.string()),
            "small": pa.array([chance.choice([-1, 7, None]) for _ in rows], pa.int8()),
            "yes": pa.array([chance.choice([True, False, None]) for _ in rows], pa.bool_()),
            "raw": pa.array([chance.choice([b"", b"\x00\xff", None]) for _ in rows], pa.binary()),
            "number": pa.array([chance.choice([-3, 0, 5, 1 << 62, -(1 << 62)]) for _ in rows], pa.int64()),
            "at": instants(seconds),
        }
    )


def stream(source: Path, event_time: str = "at", **more: Any) -> Any:
    """The files of a folder, one in a micro-batch."""
    read = ReadFromParquet(f"{source}/*.parquet", as_rows=True)
    limits = {"max_files_per_batch": 1, "existing_only": True} | more
    return "Read" >> read.as_stream(event_time, BoundedDisorder(DISORDER_SECONDS), **limits)


def shown(row: Any, window: Any = beam.DoFn.WindowParam, time: Any = beam.DoFn.TimestampParam) -> str:
    """A result with its window and time."""
    return repr((row, window, time))


def shown_with_pane(
    row: Any,
    window: Any = beam.DoFn.WindowParam,
    time: Any = beam.DoFn.TimestampParam,
    pane: Any = beam.DoFn.PaneInfoParam,
) -> str:
    """The same with its pane."""
    return repr((row, window, time, pane))


def many_aggregates(rows: Any, windows: Any) -> Any:
    """Filters before and behind a grouping of all that Spark has, and a selection."""
    small = field("number") // 7 % 1_000
    kept = rows | beam.Filter((field("number") != 0) | (field("key") == "b"))
    names = ("key", "small", "yes", "raw", "number", "at")
    chosen = kept | beam.Select(*names, rest=small)
    grouped = (
        beam.GroupBy("key", "small", "yes", "raw", odd=small % 2 == 1)
        .aggregate_field("rest", sum, "total")
        .aggregate_field("key", CountCombineFn(), "count")
        .aggregate_field("number", MeanCombineFn(), "mean")
        .aggregate_field("number", min, "least")
        .aggregate_field("at", max, "last")
        .aggregate_field("rest", max, "most")
    )
    # A selection behind the windows keeps these, and the watermark.
    results = chosen | windows | "Again" >> beam.Select(*names, "rest") | grouped
    return results | beam.Filter(field("key") != "c") | beam.Filter(field("count") < 4)


FIXED, SLIDING = FixedWindows(60, offset=7), SlidingWindows(60, 25, offset=7)


@pytest.mark.parametrize(
    ("mode", "windowfn"),
    [
        pytest.param("streaming", FIXED, id="streaming-fixed"),
        pytest.param("micro_batch", SLIDING, id="micro_batch-sliding"),
        pytest.param("streaming", SLIDING, id="streaming-sliding", marks=pytest.mark.soak),
        pytest.param("micro_batch", FIXED, id="micro_batch-fixed", marks=pytest.mark.soak),
    ],
)
def test_results_are_those_of_python(spark, tmp_path, mode, windowfn):
    chance = Random(5)
    for number in range(4):
        add_file(tmp_path / "in", number, scores(chance, number))
    is_append = mode == "streaming"
    accumulating = {} if is_append else {"accumulation_mode": ACCUMULATING}
    windows = beam.WindowInto(windowfn, **accumulating)
    found: list[Counter[str]] = []
    for number, flags in enumerate(([], ["--without=native_streams"])):
        pipeline = pipeline_of(mode, *flags)
        results = many_aggregates(pipeline | stream(tmp_path / "in"), windows)
        lines = results | "Show" >> beam.Map(shown_with_pane if is_append else shown)
        _ = lines | beam.io.WriteToText(f"{tmp_path}/{number}/out")
        assert ("# by Spark" in pipeline.explain()) is not bool(flags)
        result = ended(pipeline)
        assert counted(result) == {}
        files = glob.glob(f"{tmp_path}/{number}/out*")
        found.append(Counter(line for file in files for line in Path(file).read_text().splitlines()))
    assert found[0] == found[1]
    assert len(found[0]) > 40


# Fixed windows behind others are also those of the grouping below that continues on its checkpoint.
@pytest.mark.parametrize(
    "windowfn",
    [
        pytest.param(None, id="the same"),
        pytest.param(FixedWindows(150), id="fixed", marks=pytest.mark.soak),
        pytest.param(SlidingWindows(200, 70), id="sliding"),
    ],
)
def test_groupings_of_results_are_those_of_python(spark, tmp_path, windowfn):
    chance = Random(5)
    for number in range(6):
        add_file(tmp_path / "in", number, scores(chance, number))
    found: list[Counter[str]] = []
    for number, flags in enumerate(([], ["--without=native_streams"])):
        pipeline = pipeline_of("streaming", *flags)
        few = field("number") // 7 % 1_000
        chosen = pipeline | stream(tmp_path / "in") | beam.Select("key", "small", number=few)
        totals = chosen | MINUTES | beam.GroupBy("key", "small").aggregate_field("number", sum, "total")
        kept = totals | "Few" >> beam.Filter(field("total") > 100)
        again = kept if windowfn is None else kept | "Again" >> beam.WindowInto(windowfn)
        maxima = again | "Max" >> beam.GroupBy("key").aggregate_field("total", max, "most")
        _ = maxima | "Show" >> beam.Map(shown_with_pane) | beam.io.WriteToText(f"{tmp_path}/{number}/out")
        assert pipeline.explain().count("# by Spark") == (0 if flags else 9 + (windowfn is not None))
        assert counted(ended(pipeline)) == {}
        files = glob.glob(f"{tmp_path}/{number}/out*")
        found.append(Counter(line for file in files for line in Path(file).read_text().splitlines()))
    assert found[0] == found[1]
    assert len(found[0]) > 5


SIZE_MICROS = 60_000_000
PERIODS = {"sliding": 25, "gaps": 90}
FAR_AHEAD = datetime.datetime(2200, 1, 1, tzinfo=datetime.UTC).timestamp()
FIRST_SECOND = datetime.datetime(1, 1, 1, tzinfo=datetime.UTC).timestamp()


def rows_with_late_ones(chance: Random) -> list[list[Row]]:
    """Rows in micro-batches, before 1970: some are late, filtered out, or far ahead of the clock."""
    batches = [[Row("a", 1, round(FIRST_SECOND) * 1_000_000)]]
    for second in range(-350, 0, 50):
        batches.append([])
        for _ in range(8):
            at = FAR_AHEAD if chance.random() < 0.05 else second + chance.choice([0, -1, -30, -120, -300, 40])
            key, is_wanted = chance.choice(["a", "b", None]), chance.random() < 0.5
            batches[-1].append(Row(key, chance.randrange(9), round(at) * 1_000_000, is_wanted))
    return batches


@pytest.mark.every_spark
@pytest.mark.parametrize("kind", ["append", "update", "sliding", "gaps"])
def test_what_is_late_or_ahead_is_what_the_toy_says_and_no_filter_moves_in_front_of_the_watermark(
    spark, tmp_path, kind
):
    batches = rows_with_late_ones(Random(8))
    if kind == "gaps":
        # A filter would keep Spark from leaving elements out in front of the watermark.
        batches = [[row._replace(is_wanted=True) for row in rows] for rows in batches]
    for number, rows in enumerate(batches):
        columns = {
            "key": pa.array([row.key for row in rows], pa.string()),
            "number": pa.array([row.number for row in rows], pa.int32()),
            "wanted": pa.array([row.is_wanted for row in rows]),
            "second": pa.array([row.time_micros // 1_000_000 for row in rows], pa.int64()),
        }
        add_file(tmp_path / "in", number, pa.table(columns))
    updates = kind == "update"
    # The end of the source needs a micro-batch without data.
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
    toy = NativeHost(
        SIZE_MICROS,
        DISORDER_SECONDS * 1_000_000,
        100_000_000 * updates,
        updates,
        86_400_000_000,
        period_micros=PERIODS.get(kind, 60) * 1_000_000,
    )
    windows = beam.WindowInto(SlidingWindows(60, PERIODS[kind])) if kind in PERIODS else MINUTES
    clock_micros = round(time.time() * 1_000_000)
    expected = [result for rows in batches for result in toy.step(rows, clock_micros)] + toy.end()
    # An interval has the query read a heartbeat, too.
    pipeline = pipeline_of(*(("micro_batch", "--trigger_interval=0.1") if updates else ("streaming",)))
    wanted = pipeline | stream(tmp_path / "in", "second")
    if kind != "gaps":
        wanted = wanted | beam.Filter(field("wanted"))
    totals = wanted | (ROUNDS if updates else windows) | TOTAL | beam.Filter(~field("key").is_null())
    schema = pa.schema([("key", pa.string()), ("total", pa.int64()), ("start", INSTANT)])
    chosen = totals | "Start" >> beam.Select("key", "total", start=beam.window_start())
    _ = chosen | WriteToParquet(f"{tmp_path}/out", schema)
    assert "takes the columns unchanged" in pipeline.explain()
    result = ended(pipeline)
    written = pa.concat_tables([pq.read_table(file) for file in glob.glob(f"{tmp_path}/out*")])
    written = written.set_column(2, "start", written["start"].cast(pa.int64()))
    assert Counter(tuple(row.values()) for row in written.to_pylist()) == Counter(
        (each.key, each.total, each.start_micros) for each in expected if each.key is not None
    )
    ahead = sum(row.time_micros > clock_micros for rows in batches for row in rows)
    dropped = len(set(toy.dropped))
    assert ahead
    assert dropped
    assert counted(result) == {"elements_dropped_as_late": dropped, "elements_ahead_of_the_clock": ahead}


ERRORS: dict[str, tuple[dict[str, list[Any]], str]] = {
    "no time": ({"number": [1, 2], "at": [0, None]}, "of type Row has no event time: it is None"),
    "large": ({"number": [1 << 62, 1 << 62], "at": [0, 0]}, "more than 64 bits"),
    "None": ({"number": [1, None], "at": [0, 0]}, r"unsupported operand type\(s\) for \+"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_what_has_no_result_is_an_error_of_its_step(spark, tmp_path, case):
    columns, reason = ERRORS[case]
    made = {
        "key": ["a", "a"],
        "number": pa.array(columns["number"], pa.int64()),
        "at": instants(columns["at"]),
    }
    add_file(tmp_path / "in", 0, pa.table(made))
    pipeline = pipeline_of("streaming")
    _ = (
        pipeline
        | stream(tmp_path / "in")
        | MINUTES
        | TOTAL
        | beam.Map(str)
        | beam.io.WriteToText(f"{tmp_path}/out")
    )
    with pytest.raises(Exception, match=reason) as caught:
        ended(pipeline)
    label = "Read" if case == "no time" else "Sum/CombinePerKey(TupleCombineFn)"
    assert f"'{label}' (test_native_streams_on_spark.py:" in str(caught.value)
    assert str(caught.value).count(".py:") == 1


class Lasting:
    """A stream that is started several times on its checkpoint."""

    def __init__(self, folder: Path, mode: str, windows: Any, again: Any = None) -> None:
        self.folder, self.mode, self.windows = folder, mode, windows
        self.again = again  # What is done to the totals.

    def run(self, *flags: str) -> Any:
        pipeline = pipeline_of(self.mode, f"--checkpoint_location={self.folder}/checkpoint", *flags)
        totals = pipeline | stream(self.folder / "in", existing_only=False) | self.windows | TOTAL
        totals = totals if self.again is None else totals | self.again
        schema = pa.schema([("key", pa.string()), ("total", pa.int64())])
        _ = totals | WriteToParquet(f"{self.folder}/out/totals", schema)
        return pipeline.run()

    def commits(self) -> int:
        return len(glob.glob(f"{self.folder}/checkpoint/spark/commits/[0-9]*"))

    def written(self) -> Counter[tuple[str, int]]:
        tables = map(pq.read_table, glob.glob(f"{self.folder}/out/totals*"))
        return Counter((row["key"], row["total"]) for table in tables for row in table.to_pylist())


def numbers(file: int) -> pa.Table:
    """Small numbers of half a minute."""
    chance = Random(file)
    seconds = [file * 30 + chance.randrange(-10, 10) for _ in range(20)]
    return pa.table(
        {"key": [chance.choice("ab") for _ in seconds], "number": seconds, "at": instants(seconds)}
    )


def totals_of(tables: Iterable[pa.Table], size_seconds: int | None) -> Counter[tuple[str, int]]:
    """The totals of each key and window; without a size, all totals of a key after each table."""
    sums: Counter[Any] = Counter()
    after: list[tuple[str, int]] = []
    for table in tables:
        for row in table.to_pylist():
            sums[row["key"], row["at"].timestamp() // size_seconds if size_seconds else 0] += row["number"]
        after += [(key, total) for (key, _), total in sums.items() if size_seconds is None]
    return Counter(after if size_seconds is None else [(key, total) for (key, _), total in sums.items()])


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(
    ("mode", "windows", "size_seconds"),
    [("streaming", MINUTES, 60), pytest.param("micro_batch", GLOBAL, None, marks=pytest.mark.soak)],
    ids=["append", "update"],
)
def test_a_run_that_dies_while_a_sink_commits_loses_and_doubles_nothing(
    spark, tmp_path, monkeypatch, mode, windows, size_seconds, moment
):
    lasting = Lasting(tmp_path, mode, windows)
    for number in range(4):
        add_file(tmp_path / "in", number, numbers(number))
    commit = BatchWriter._commit

    def die(writer: BatchWriter, sink: Any, batch: Any, rows: Any) -> None:
        if batch.number != 2 or moment == "after":
            commit(writer, sink, batch, rows)
        if batch.number == 2:
            raise SystemError("the power is gone")

    with monkeypatch.context() as context:
        context.setattr(BatchWriter, "_commit", die)
        result = lasting.run()
        with pytest.raises(Exception, match="the power is gone"):
            result.wait_until_finish(duration=WAIT_SECONDS_MAX * 1_000)
    assert lasting.commits() == 2
    result = lasting.run()
    until(lambda: lasting.commits() >= 4, result)
    result.drain()
    assert result.wait_until_finish(duration=WAIT_SECONDS_MAX * 1_000) == "DRAINED"
    assert lasting.written() == totals_of(map(numbers, range(4)), size_seconds)


def test_windows_fire_that_were_due_when_a_run_died_although_nothing_arrives(spark, tmp_path, monkeypatch):
    lasting = Lasting(tmp_path, "streaming", MINUTES)
    seconds = [0, 1_000]
    add_file(tmp_path / "in", 0, pa.table({"key": ["a", "b"], "number": seconds, "at": instants(seconds)}))
    commit = BatchWriter._commit

    def die(writer: BatchWriter, sink: Any, batch: Any, rows: Any) -> None:
        if batch.number == 1:
            raise SystemError("the power is gone")
        commit(writer, sink, batch, rows)

    with monkeypatch.context() as context:
        context.setattr(BatchWriter, "_commit", die)
        with pytest.raises(Exception, match="the power is gone"):
            lasting.run().wait_until_finish(duration=WAIT_SECONDS_MAX * 1_000)
    # It died before Spark planned the micro-batch in which the window fires.
    for file in (tmp_path / "checkpoint" / "spark" / "offsets").glob("*1*"):
        file.unlink()
    result = lasting.run()
    until(lambda: lasting.written() == Counter([("a", 0)]), result)
    result.cancel()


@pytest.mark.parametrize("kind", ["append", "global rounds"])
def test_a_stream_continues_on_its_checkpoint_and_drains(spark, tmp_path, kind):
    is_append = kind == "append"
    lasting = Lasting(tmp_path, *(("streaming", MINUTES) if is_append else ("micro_batch", GLOBAL)))
    for number in range(3):
        add_file(tmp_path / "in", number, numbers(number))
    result = lasting.run()
    until(lambda: lasting.commits() >= 3, result)
    assert result.snapshot().state == "RUNNING"
    assert len(result.watermarks()) == is_append
    result.cancel()
    for number in range(3, 6):
        add_file(tmp_path / "in", number, numbers(number))
    if is_append:
        with pytest.raises(ValueError, match="pass a trigger_interval only if"):
            lasting.run("--trigger_interval=1")
        with pytest.raises(ValueError, match=r"'Sum/CombinePerKey.*' belongs to Spark's own aggregate"):
            read_state(tmp_path / "checkpoint")
    result = lasting.run()
    until(lambda: lasting.commits() >= 6, result)
    result.drain()
    assert result.wait_until_finish(duration=WAIT_SECONDS_MAX * 1_000) == "DRAINED"
    assert lasting.written() == totals_of(map(numbers, range(6)), 60 if is_append else None)
    if is_append:
        with pytest.raises(ValueError, match="has ended: DRAINED"):
            lasting.run()


@ptransform_fn
def greatest(totals: Any) -> Any:
    """The greatest total of each key in two minutes."""
    windows = totals | "Again" >> beam.WindowInto(FixedWindows(120))
    return windows | "Max" >> beam.GroupBy("key").aggregate_field("total", max, "total")


def test_a_grouping_of_results_continues_on_its_checkpoint_and_drains(spark, tmp_path):
    lasting = Lasting(tmp_path, "streaming", MINUTES, "Greatest" >> greatest())
    for number in range(5):
        add_file(tmp_path / "in", number, numbers(number))
    result = lasting.run()
    until(lambda: lasting.commits() >= 5, result)
    result.cancel()
    for number in range(5, 9):
        add_file(tmp_path / "in", number, numbers(number))
    with pytest.raises(ValueError, match="Spark's own aggregate has the state of 'Greatest/Max/"):
        Lasting(tmp_path, "streaming", MINUTES).run()
    result = lasting.run()
    until(lambda: lasting.commits() >= 9, result)
    result.drain()
    assert result.wait_until_finish(duration=WAIT_SECONDS_MAX * 1_000) == "DRAINED"
    sums: Counter[tuple[str, float]] = Counter()
    for row in pa.concat_tables(map(numbers, range(9))).to_pylist():
        sums[row["key"], row["at"].timestamp() // 60] += row["number"]
    expected: dict[tuple[str, float], int] = {}
    for (key, minute), total in sums.items():
        place = key, minute // 2
        expected[place] = max(expected.get(place, total), total)
    assert lasting.written() == Counter((key, total) for (key, _), total in expected.items())


def test_a_stream_without_a_grouping_and_names_that_sql_would_read_otherwise(spark, tmp_path):
    names = ["a.b", "A b", "key`x", "t", "c0"]
    for number in range(2):
        columns = {name: pa.array([number * 10 + place], pa.int64()) for place, name in enumerate(names)}
        add_file(tmp_path / "in", number, pa.table(columns))
    pipeline = pipeline_of("streaming")
    kept = pipeline | stream(tmp_path / "in", "A b") | beam.Filter(field("a.b") < field("key`x"))
    chosen = kept | beam.Select("a.b", "key`x", "t", c0=field("c0") + 1)
    schema = pa.schema([(name, pa.int64()) for name in ("a.b", "key`x", "t", "c0")])
    _ = chosen | WriteToParquet(f"{tmp_path}/out", schema)
    assert "takes the columns unchanged" in pipeline.explain()
    result = ended(pipeline)
    rows = pa.concat_tables([pq.read_table(file) for file in glob.glob(f"{tmp_path}/out*")]).to_pylist()
    assert sorted(tuple(row.values()) for row in rows) == [(0, 2, 3, 5), (10, 12, 13, 15)]
    assert counted(result) == {}


def test_a_later_file_of_another_type_is_read_by_the_next_run_and_its_state_is_the_same(spark, tmp_path):
    lasting = Lasting(tmp_path, "streaming", MINUTES)
    small = numbers(0)
    add_file(tmp_path / "in", 0, small.set_column(1, "number", small["number"].cast(pa.int8())))
    result = lasting.run()
    until(lambda: lasting.commits() >= 1, result)
    add_file(tmp_path / "in", 1, numbers(1))
    with pytest.raises(ValueError, match="columns of different types than the first files"):
        result.wait_until_finish(duration=WAIT_SECONDS_MAX * 1_000)
    result = lasting.run()
    until(lambda: lasting.commits() >= 2, result)
    result.drain()
    assert result.wait_until_finish(duration=WAIT_SECONDS_MAX * 1_000) == "DRAINED"
    assert lasting.written() == totals_of(map(numbers, range(2)), 60)
