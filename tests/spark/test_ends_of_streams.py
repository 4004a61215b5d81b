"""How streams end: none that has failed, was stopped or was displaced says that it is done, and nothing is lost."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import penstock as beam
from penstock.io import ForEachBatch, WriteToMemory
from penstock.io.watermarks import BoundedDisorder
from penstock.options.pipeline_options import PipelineOptions
from penstock.runners.runner import PipelineResult
from penstock.transforms.window import FixedWindows

WAIT_SECONDS_MAX = 90


def wait_for(condition: Any, result: PipelineResult) -> None:
    until = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert time.monotonic() < until, "nothing happens"
        assert result.wait_until_finish(duration=50) is None, "it has ended"


def add(folder: Path, name: str, *lines: str) -> None:
    """A new file, which appears when it is complete."""
    folder.mkdir(exist_ok=True)
    hidden = folder / f".{name}"
    hidden.write_text("".join(f"{line}\n" for line in lines))
    hidden.rename(folder / name)


def started(
    folder: Path, into: list[Any], *flags: str, parse: Any = str.split, grouped: bool = True, **arguments: Any
) -> PipelineResult:
    """A running pipeline over lines such as "red 1": counts per word and ten seconds, or the words as they are."""
    options = PipelineOptions(["--mode=streaming", "--shuffle_partitions=2", *flags])
    pipeline = beam.Pipeline(options=options)
    times = {"event_time": lambda line: int(line.split()[1]), "watermark": BoundedDisorder(0)}
    read = beam.io.ReadFromText(f"{folder}/*.txt", validate=False).as_stream(**(times | arguments))
    words = pipeline | "Read" >> read | "Parse" >> beam.Map(parse)
    if grouped:
        pairs = words | beam.Map(lambda word: (word[0], 1)) | beam.WindowInto(FixedWindows(10))
        words = pairs | "Sum" >> beam.CombinePerKey(sum)
    _ = words | WriteToMemory(into)
    return pipeline.run()


def failing(line: str) -> list[str]:
    word, number = line.split()
    if number == "13":
        raise LookupError("no thirteen")
    return [word, number]


def dying(line: str) -> list[str]:
    if line.endswith("13"):
        os._exit(3)
    return line.split()


def thirteen_files(folder: Path) -> None:
    for number in range(14):
        add(folder, f"{number:02}.txt", f"red {number}")


@pytest.mark.parametrize(
    ("parse", "grouped"),
    [
        (failing, True),
        (dying, False),
        pytest.param(failing, False, marks=pytest.mark.soak),
        pytest.param(dying, True, marks=pytest.mark.soak),
    ],
)
def test_a_finite_stream_that_fails_does_not_say_that_it_is_done(spark, tmp_path, parse, grouped) -> None:
    thirteen_files(tmp_path / "in")
    checkpoint = tmp_path / "checkpoint"
    flags = f"--checkpoint_location={checkpoint}"
    limits = {"grouped": grouped, "existing_only": True, "max_files_per_batch": 4}
    found: list[Any] = []
    result = started(tmp_path / "in", found, flags, parse=parse, **limits)
    with pytest.raises(Exception, match=r"(?i)thirteen|worker|exited"):
        result.wait_until_finish()
    assert result.state == "FAILED"
    # No source was said to have ended by then: the next run reads the rest, and nothing of it is late.
    assert os.listdir(checkpoint / "control") == []
    result = started(tmp_path / "in", found, flags, **limits)
    assert result.wait_until_finish() == "DONE"
    if grouped:
        assert sorted(found) == [("red", 4), ("red", 10)]
    else:
        assert sorted(int(number) for _, number in found) == list(range(14))


def test_a_sink_that_fails_is_an_error_of_a_finite_stream_and_not_in_the_log_too(
    spark, tmp_path, caplog
) -> None:
    def write(elements: list[Any], batch_id: int) -> None:
        raise ConnectionError("no database")

    add(tmp_path / "in", "a.txt", "red 1")
    pipeline = beam.Pipeline(options=PipelineOptions(["--mode=streaming"]))
    lines = pipeline | beam.io.ReadFromText(f"{tmp_path}/in/*.txt").as_stream(existing_only=True)
    _ = lines | ForEachBatch(write)
    result = pipeline.run()
    with pytest.raises(ConnectionError, match="no database"):
        result.wait_until_finish()
    assert result.state == "FAILED"
    # Who waits for the stream has the error. Py4J logs it with a traceback, but not as penstock's own.
    assert [each.name for each in caplog.records if each.levelno >= logging.ERROR] == []


def test_a_stream_that_somebody_else_stops_has_failed(spark, tmp_path) -> None:
    add(tmp_path / "in", "a.txt", "red 1")
    found: list[Any] = []
    result = started(tmp_path / "in", found, grouped=False)
    wait_for(lambda: found, result)
    result._running.started.stop()
    with pytest.raises(beam.error.RunnerError, match="stopped the stream before its end"):
        result.wait_until_finish()
    assert result.state == "FAILED"


def test_a_run_that_has_ended_is_not_gone_on_with(spark, tmp_path) -> None:
    folder, flags = tmp_path / "in", f"--checkpoint_location={tmp_path}/checkpoint"
    add(folder, "a.txt", "red 1", "red 2")
    found: list[Any] = []
    assert started(folder, found, flags, existing_only=True).wait_until_finish() == "DONE"
    add(folder, "b.txt", "red 3")
    with pytest.raises(ValueError, match=r"(?s)has ended: DONE at .*late.*hint: start again"):
        started(folder, found, flags, existing_only=True)
    assert found == [("red", 2)]
    # Without windows nothing can be late: the next run reads what is new.
    flags = f"--checkpoint_location={tmp_path}/other"
    words: list[Any] = []
    assert started(folder, words, flags, grouped=False, existing_only=True).wait_until_finish() == "DONE"
    add(folder, "c.txt", "blue 4")
    assert started(folder, words, flags, grouped=False, existing_only=True).wait_until_finish() == "DONE"
    assert [number for _, number in words] == ["1", "2", "3", "4"]


def test_a_drain_reads_what_was_there_and_only_then_ends_the_sources(spark, tmp_path) -> None:
    folder, flags = tmp_path / "in", f"--checkpoint_location={tmp_path}/checkpoint"
    for number in range(10):
        add(folder, f"{number:02}.txt", *(f"red {3 * number + second}" for second in range(3)))
    found: list[Any] = []
    result = started(folder, found, flags, max_files_per_batch=3)
    wait_for(lambda: result.metrics().query()["counters"] or result.watermarks(), result)
    assert result.drain() == "DRAINING"
    stop = threading.Event()

    def keep_adding() -> None:
        # More comes all the time: a drain that waited for a pause would never end.
        number = 30
        while not stop.wait(0.2):
            add(folder, f"{number:02}.txt", f"blue {number}")
            number += 1

    adding = threading.Thread(target=keep_adding)
    adding.start()
    try:
        assert result.wait_until_finish(WAIT_SECONDS_MAX * 1000) == "DRAINED"
    finally:
        stop.set()
        adding.join()
    assert [pair for pair in found if pair[0] == "red"] == [("red", 10)] * 3
    with pytest.raises(ValueError, match="has ended: DRAINED"):
        started(folder, found, flags)


@pytest.mark.every_spark
def test_a_drain_of_a_stream_without_groupings_ends_too(spark, tmp_path) -> None:
    folder = tmp_path / "in"
    for number in range(8):
        add(folder, f"{number}.txt", f"red {number}")
    found: list[Any] = []
    result = started(folder, found, grouped=False, max_files_per_batch=2)
    result.drain()
    assert result.wait_until_finish(WAIT_SECONDS_MAX * 1000) == "DRAINED"
    assert len(found) == 8


def test_a_drain_that_was_cut_short_is_finished_by_the_next_run(spark, tmp_path) -> None:
    folder, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    flags = f"--checkpoint_location={checkpoint}"
    add(folder, "a.txt", "red 1", "red 2")
    found: list[Any] = []
    result = started(folder, found, flags)
    wait_for(lambda: result.watermarks(), result)
    result.cancel()
    # As if the driver had died right after it had told the sources to end.
    line = json.dumps({"format": 1, "command": "drain", "name": None})
    (checkpoint / "control" / "00000000000000000001-drain-0.json").write_text(f"{line}\n")
    result = started(folder, found, flags)
    assert result.state == "DRAINING"
    assert result.wait_until_finish(WAIT_SECONDS_MAX * 1000) == "DRAINED"
    assert found == [("red", 2)]


def test_two_runs_do_not_share_a_checkpoint_and_one_may_take_it_over(spark, tmp_path) -> None:
    folder, flags = tmp_path / "in", f"--checkpoint_location={tmp_path}/checkpoint"
    add(folder, "a.txt", "red 1")
    found: list[Any] = []
    first = started(folder, found, flags)
    wait_for(lambda: first.watermarks(), first)
    with pytest.raises(beam.error.RunnerError, match=r"(?s)is held by the run .*--take_over"):
        started(folder, found, flags)
    assert first.state == "RUNNING"
    second = started(folder, found, flags, "--take_over")
    with pytest.raises(beam.error.RunnerError, match="this run was displaced"):
        first.wait_until_finish(WAIT_SECONDS_MAX * 1000)
    assert first.state == "FAILED"
    add(folder, "b.txt", "red 2", "red 30")
    wait_for(lambda: found == [("red", 2)], second)
    second.drain()
    assert second.wait_until_finish() == "DRAINED"
    assert found == [("red", 2), ("red", 1)]


def test_to_take_over_needs_a_checkpoint(spark) -> None:
    with pytest.raises(ValueError, match=r"(?s)take_over.*checkpoint_location"):
        started(Path("/none"), [], "--take_over")
