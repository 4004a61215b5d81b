"""A run that is looked at while it goes on: its page, its snapshot beside the checkpoint, and its state as a table."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import penstock as beam
from penstock import field
from penstock.testing.test_pipeline import TestPipeline
from penstock_conformance import command
from penstock_spark.live import views as live_views
from penstock_spark.live.snapshot import RunSnapshot
from penstock_spark.live.snapshot_files import read_snapshot
from tests.spark.test_stream_runs import add, sums, wait_for


@pytest.fixture(autouse=True)
def no_pages() -> Any:
    yield
    for page in live_views._pages.by_place.values():
        page.server.close()
    live_views._pages.by_place.clear()


def asked(url: str | None, path: str = "snapshot.json") -> str:
    with urllib.request.urlopen(f"{url}{path}", timeout=60) as answer:
        text: str = answer.read().decode()
    return text


def test_a_stream_shows_itself_on_its_page_and_beside_its_checkpoint(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, checkpoint, found = tmp_path / "in", tmp_path / "checkpoint", []
    add(folder, "a.txt", "red,1,1", "blue,2,8", "red,4,13")
    token = "a-token-that-is-long-enough"
    flags = ["--live_port=0", f"--live_token={token}", f"--checkpoint_location={checkpoint}"]
    result: Any = sums(folder, found, *flags)

    def now() -> RunSnapshot:
        return RunSnapshot.from_json(asked(result.live_url))

    wait_for(lambda: len(found) == 2 and now().groupings[0].on_time == 2, result)
    add(folder, "b.txt", "red,8,14", "red,16,3")
    wait_for(lambda: now().groupings[0].dropped == 1, result)
    seen = now()
    [grouping], [source] = seen.groupings, seen.sources
    assert (seen.state, seen.mode, seen.rows_in, source.rows) == ("RUNNING", "streaming", 5, 5)
    assert (grouping.label, grouping.output_micros, grouping.open_keys) == ("Sum", 12_000_000, 1)
    assert grouping.open_windows == 1
    # The windows of two teams have fired; the last score came too late.
    assert flows(seen) == {
        source.label: (None, 5),
        "Parse": (5, 5),
        "WindowInto(WindowIntoFn)": (5, 5),
        "Sum": (5, 2),
    } | {label: flow for label, flow in flows(seen).items() if label.startswith("WriteToMemory")}
    assert all(one.in_per_second or one.out_per_second for one in seen.elements)
    assert grouping.held_by == f"the source {source.label!r}"
    assert grouping.event_lag_micros == seen.clock_micros - 12_000_000  # type: ignore[operator]
    assert source.watermark_micros == 12_000_000
    assert {"triggerExecution", "addBatch"} <= seen.micro_batches[-1].millis.keys()
    assert [(one.end_micros, one.timing, one.count) for one in seen.history.firings] == [
        (10_000_000, "dropped", 1),
        (10_000_000, "on_time", 2),
    ] or [(one.timing, one.count) for one in seen.history.firings] == [("on_time", 1)] * 2 + [("dropped", 1)]
    metrics = asked(result.live_url, "metrics")
    assert 'timing="on_time"} 2' in metrics
    assert 'step="Sum",tag=""} 2' in metrics
    assert (seen.pace and seen.pace.doing) in ("keeping up", "idle", "busy all the time")
    assert sum(span.rows for span in seen.throughput.spans) == pytest.approx(5, abs=0.01)
    assert [(sink.label, sink.elements_in) for sink in seen.sinks] == [("WriteToMemory", 2)]
    assert seen.checkpoint
    assert (seen.checkpoint.bytes or 0) > (seen.checkpoint.state_bytes or 0) >= 0
    assert (seen.settings["live_token"], seen.settings["mode"]) == ("set, but not shown", "streaming")
    assert "long-enough" not in seen.to_json()
    # The page cancels it, as the command does.
    request = urllib.request.Request(
        f"{result.live_url}cancel", method="POST", headers={"Penstock-Token": token}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert b"the run stops at its current position" in answer.read()
    assert result.wait_until_finish() == "CANCELLED"
    kept = read_snapshot(checkpoint)
    assert kept == result.snapshot()
    assert (kept.state, kept.run) == ("CANCELLED", seen.run)
    # Teams and points are elements; labels are not.
    assert "red" not in kept.to_json().replace("Recovered", "")
    capsys.readouterr()
    assert command.main(["state", str(checkpoint), "--step", "Sum", "--to", "json"]) == 0
    [row] = map(json.loads, capsys.readouterr().out.splitlines())
    assert "red" in str(row)
    assert "12" in str(row)
    assert command.main(["state", str(checkpoint)]) == 0
    assert "'red'" in capsys.readouterr().out


def flows(now: RunSnapshot) -> dict[str, tuple[int | None, int | None]]:
    """The elements in and out of each step."""
    return {one.label: (one.elements_in, one.elements_out) for one in now.elements}


def slow(value: Any) -> Any:
    time.sleep(0.02)
    return value


def test_a_batch_tells_how_far_it_has_come(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a\n" * 50, encoding="utf-8")
    pipeline = TestPipeline(live_port=0)
    lines = pipeline | "Read" >> beam.io.ReadFromText(str(tmp_path / "in.txt")) | "Slow" >> beam.Map(slow)
    _ = lines | "Count" >> beam.combiners.Count.PerElement() | beam.io.WriteToText(str(tmp_path / "out"))
    result: Any = pipeline.run()
    seen = result.snapshot()
    assert (seen.state, seen.mode) == ("DONE", "batch")
    assert seen.stages.done == seen.stages.known > 0
    assert "Read" in seen.stages.doing
    assert RunSnapshot.from_json(asked(result.live_url)) == seen
    assert "Spark" not in seen.name
    found = flows(seen)
    assert (found["Read"], found["Slow"]) == ((None, 50), (50, 50))
    [count] = [one for one in seen.composites if one.label == "Count"]
    assert (count.elements_in, count.elements_out) == (50, 1)


READS: dict[str, Callable[[str], Any]] = {
    "tasks read lines": lambda folder: beam.io.ReadFromText(f"{folder}/*.txt"),
    "tasks read whole files": lambda folder: beam.io.ReadFromText(
        f"{folder}/*.txt", strip_trailing_newlines=False
    ),
    "Spark reads lines": lambda folder: beam.io.ReadFromText(f"file://{folder}/*.txt"),
    "Spark reads columns": lambda folder: beam.io.ReadFromParquet(f"{folder}/in/*.parquet"),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("readers", [1, 2])
def test_a_batch_tells_how_many_rows_it_has_read(
    spark: Any, tmp_path: Path, read: Callable[[str], Any], readers: int
) -> None:
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text("a line\n" * 50, encoding="utf-8")
    spark.range(150).write.parquet(f"{tmp_path}/in")
    pipeline = TestPipeline()
    rows = pipeline | read(str(tmp_path)) | beam.Map(str)
    for number in range(readers):
        counts = rows | f"Count {number}" >> beam.combiners.Count.PerElement()
        _ = counts | f"Write {number}" >> beam.io.WriteToText(f"{tmp_path}/out/{number}")
    result: Any = pipeline.run()
    assert result.snapshot().rows_in == 150


def test_rows_that_spark_may_have_counted_twice_are_unknown(spark: Any, tmp_path: Path) -> None:
    spark.range(100).write.parquet(f"{tmp_path}/in")
    pipeline = TestPipeline(live_port=0)
    rows = pipeline | "Read" >> beam.io.ReadFromParquet(f"{tmp_path}/in/*.parquet")
    small = rows | "Small" >> beam.Filter(field("id") < 7) | beam.Map(str)
    for number in range(2):
        counts = small | f"Count {number}" >> beam.combiners.Count.PerElement()
        _ = counts | f"Write {number}" >> beam.io.WriteToText(f"{tmp_path}/out/{number}")
    result: Any = pipeline.run()
    assert result.snapshot().rows_in is None


def split(number: int) -> Any:
    yield number
    if number % 2:
        yield beam.pvalue.TaggedOutput("odd", number)


def test_a_batch_counts_the_elements_of_outputs_side_inputs_and_empty_inputs(spark: Any) -> None:
    pipeline = TestPipeline(live_port=0)
    numbers = pipeline | "Read" >> beam.Create(range(10))
    nothing = pipeline | "Nothing" >> beam.Create([]) | "Same" >> beam.Map(str)
    both = numbers | "Split" >> beam.FlatMap(split).with_outputs("odd", main="all")
    odd = beam.pvalue.AsList(both.odd | "Thirds" >> beam.Filter(lambda number: number % 3 == 0))
    joined = both["all"] | "Join" >> beam.FlatMap(lambda number, side: [str(number)] * len(side), odd)
    lines = (joined, nothing) | "All" >> beam.Flatten() | "Pair" >> beam.Map(lambda line: (line, 1))
    _ = lines | "Spread" >> beam.Reshuffle() | "Sum" >> beam.CombinePerKey(sum) | "See" >> beam.Map(print)
    result: Any = pipeline.run()
    found = flows(result.snapshot())
    assert found["Split"] == (10, 15)
    [splits] = [one for one in result.snapshot().elements if one.label == "Split"]
    assert splits.tagged == {"odd": 5}
    assert (found["Nothing"], found["Same"]) == ((None, 0), (0, 0))
    # What Join sees as a side input it has not taken.
    assert (found["Thirds"], found["Join"]) == ((5, 2), (10, 20))
    assert (found["All"], found["Pair"], found["Spread/SpreadElements"]) == ((20, 20), (20, 20), (20, 20))
    # Spark adds these up; what reaches it and what comes out of it passes workers.
    assert (found["Sum"], found["See"]) == ((20, 10), (10, 10))
    assert RunSnapshot.from_json(asked(result.live_url)).elements == result.snapshot().elements


def test_what_spark_computes_in_columns_is_unknown_and_not_zero(spark: Any, tmp_path: Path) -> None:
    spark.range(100, numPartitions=2).write.parquet(f"{tmp_path}/in")
    pipeline = TestPipeline(live_port=0)
    rows = pipeline | "Read" >> beam.io.ReadFromParquet(f"{tmp_path}/in/*.parquet")
    small = rows | "Small" >> beam.Filter(field("id") < 50)
    _ = small | "Python" >> beam.Map(lambda row: slow(row["id"]))
    result: Any = pipeline.run()
    # Spark leaves out the file that has no such row.
    assert result.snapshot().rows_in == 50
    # Spark filters the rows that it reads: what it takes for that, no worker sees.
    assert flows(result.snapshot()) == {"Read": (None, 50), "Python": (50, 50)}


def stumble(line: str, flag: str) -> tuple[str, int]:
    if not Path(flag).exists():
        raise ValueError("not yet")
    return line, 1


def test_a_stream_without_groupings_counts_its_elements_too(spark: Any, tmp_path: Path) -> None:
    add(tmp_path / "in", "a.txt", "a", "b", "c")
    pipeline = TestPipeline(mode="streaming", live_port=0)
    lines = pipeline | "Read" >> beam.io.ReadFromText(f"{tmp_path}/in/*.txt").as_stream(existing_only=True)
    _ = lines | "Two" >> beam.FlatMap(lambda line: [line, line]) | "Write" >> beam.io.WriteToMemory([])
    result: Any = pipeline.run()
    assert result.wait_until_finish() == "DONE"
    found = flows(result.snapshot())
    assert (found["Read"], found["Two"]) == ((None, 3), (3, 6))


def test_a_micro_batch_that_runs_again_is_counted_once_by_the_run_that_ends_it(
    spark: Any, tmp_path: Path
) -> None:
    folder, flag = tmp_path / "in", tmp_path / "flag"
    add(folder, "a.txt", "a", "b", "c")

    def run() -> Any:
        options = ["--mode=streaming", "--shuffle_partitions=2", "--live_port=0"]
        pipeline = beam.Pipeline(
            options=beam.options.pipeline_options.PipelineOptions(
                [*options, f"--checkpoint_location={tmp_path / 'checkpoint'}"]
            )
        )
        lines = pipeline | "Read" >> beam.io.ReadFromText(f"{folder}/*.txt").as_stream(existing_only=True)
        pairs = lines | "Stumble" >> beam.Map(stumble, str(flag))
        windowed = pairs | "In" >> beam.WindowInto(beam.window.FixedWindows(10))
        _ = windowed | "Sum" >> beam.CombinePerKey(sum) | beam.io.WriteToMemory([])
        return pipeline.run()

    failed = run()
    with pytest.raises(ValueError, match="not yet"):
        failed.wait_until_finish()
    flag.touch()
    result = run()
    assert result.wait_until_finish() == "DONE"
    found = flows(result.snapshot())
    assert (found["Read"], found["Stumble"], found["Sum"]) == ((None, 3), (3, 3), (3, 3))
    assert result.snapshot().groupings[0].open_windows == 0
    [before, own] = result.snapshot().runs
    assert (before.state, before.run, before.last_batch) == ("FAILED", failed.snapshot().run, None)
    assert before.error.startswith("ValueError at step 'Stumble' (test_live_views.py:")
    assert (own.state, own.rows, own.first_batch, own.claim) == ("DONE", 3, 0, before.claim + 1)


def test_a_failed_batch_shows_the_step_and_not_the_element(spark: Any) -> None:
    secret = "4111-1111"
    pipeline = TestPipeline(live_port=0)
    _ = pipeline | beam.Create([secret]) | "Parse" >> beam.Map(int)
    with pytest.raises(ValueError, match=secret):
        pipeline.run()
    [page] = live_views._pages.by_place.values()
    text = asked(page.server.url)
    now = RunSnapshot.from_json(text)
    assert (now.state, secret in text) == ("FAILED", False)
    [error] = now.errors
    assert (error.kind, error.step) == ("ValueError", "Parse")
    assert error.where.startswith("at step 'Parse' (test_live_views.py:")


def test_a_run_that_nobody_looks_at_counts_no_panes(spark: Any) -> None:
    pipeline = TestPipeline(mode="streaming")
    _ = pipeline | beam.Create([("a", 1)]) | "Sum" >> beam.CombinePerKey(sum)
    result: Any = pipeline.run()
    result.wait_until_finish()
    [grouping] = result.snapshot().groupings
    assert (grouping.on_time, grouping.panes, result.live_url) == (None, None, None)
    assert (result.snapshot().elements, result.snapshot().composites) == ((), ())
