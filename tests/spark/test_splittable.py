"""Splittable DoFns on Spark: bounded and endless work, drains, and programs that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import penstock as beam
from penstock.io import WriteToMemory
from penstock.io.restriction_trackers import OffsetRange, OffsetRestrictionTracker
from penstock.options.pipeline_options import PipelineOptions
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.core import RestrictionProvider
from tests.spark.endless_logs import Bytes, Tail, start

PROGRAM = Path(__file__).parent / "endless_logs.py"
WAIT_SECONDS_MAX = 240
LOGS = ("a", "b", "c")


class Ranges(RestrictionProvider):
    def initial_restriction(self, element: Any) -> Any:
        return OffsetRange(0, element)

    def create_tracker(self, restriction: Any) -> Any:
        return OffsetRestrictionTracker(restriction)

    def split(self, element: Any, restriction: Any) -> Any:
        return restriction.split(30)


class Count(beam.DoFn):
    def process(self, element: Any, tracker: Any = beam.DoFn.RestrictionParam(Ranges())) -> Any:
        position = tracker.current_restriction().start
        while tracker.try_claim(position):
            yield element, position
            position += 1


@pytest.mark.parametrize("mode", ["batch", "streaming", "micro_batch"])
def test_bounded_work_is_done_once_in_every_mode(spark: Any, mode: str) -> None:
    flags = [f"--mode={mode}", "--shuffle_partitions=2"]
    with beam.Pipeline(options=PipelineOptions(flags)) as pipeline:
        numbers = pipeline | beam.Create([4, 4, 100]) | beam.ParDo(Count())
        assert_that(numbers, equal_to([(last, number) for last in (4, 4, 100) for number in range(last)]))


def add(log: Path, *lines: str) -> None:
    with log.open("a") as file:
        file.write("".join(f"{line}\n" for line in lines))


def wait_for(condition: Callable[[], bool], told: Callable[[], str] = str) -> None:
    until = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert time.monotonic() < until, told()
        time.sleep(0.05)


def test_a_drain_ends_work_without_an_end_and_gives_all_that_was_read(spark: Any, tmp_path: Path) -> None:
    log = tmp_path / "log"
    add(log, "log 1", "log 2")
    found: list[str] = []
    pipeline = beam.Pipeline(options=PipelineOptions(["--shuffle_partitions=2"]))
    _ = pipeline | beam.Create([str(log)]) | beam.ParDo(Tail()) | WriteToMemory(found)
    result = pipeline.run()
    wait_for(lambda: len(found) == 2)
    add(log, "log 3")
    wait_for(lambda: len(found) == 3)
    result.drain()
    assert result.wait_until_finish() == "DRAINED"
    assert [line.rpartition(" ")[0] for line in found] == ["log 1", "log 2", "log 3"]


def test_a_mistake_of_a_splittable_dofn_is_told_in_the_terms_of_the_pipeline(spark: Any) -> None:
    class Skips(beam.DoFn):
        @beam.DoFn.unbounded_per_element()
        def process(self, element: Any, tracker: Any = beam.DoFn.RestrictionParam(Bytes())) -> Any:
            tracker.try_claim(5)
            yield element

    pipeline = beam.Pipeline(options=PipelineOptions(["--shuffle_partitions=2"]))
    _ = pipeline | beam.Create(["secret"]) | "Skip" >> beam.ParDo(Skips())
    with pytest.raises(ValueError, match="has not been claimed") as caught:
        pipeline.run().wait_until_finish()
    told = str(caught.value)
    assert "at step 'Skip' (test_splittable.py:" in told
    assert "hint: claim offsets until try_claim returns False" in told
    assert not any(word in told for word in ("secret", "org.apache", "Py4J"))


class Growing:
    """Logs that grow while programs read them and die."""

    def __init__(self, folder: Path, random: Random) -> None:
        self.folder = folder
        self.random = random
        self.written = dict.fromkeys(LOGS, 0)
        folder.mkdir()
        for name in LOGS:
            self.grow(name)

    def grow(self, name: str) -> None:
        first, self.written[name] = self.written[name], self.written[name] + self.random.randrange(1, 6)
        add(self.folder / name, *(f"{name} {number}" for number in range(first, self.written[name])))

    def lines(self) -> list[str]:
        return sorted(f"{name} {number}" for name, last in self.written.items() for number in range(last))


def lines_of(target: Path, sink: str) -> list[str]:
    return sorted(
        line for file in target.glob(f"{sink}-*") if file.is_file() for line in file.read_text().splitlines()
    )


def check_output(target: Path, world: Growing) -> None:
    """Asserts that each line is in each sink once."""
    one, two = lines_of(target, "one"), lines_of(target, "two")
    # With the time at which each was read: both sinks have seen the same call.
    assert one == two
    assert sorted(line.rpartition(" ")[0] for line in one) == world.lines()
    counts = Counter((line.split()[0], int(line.split()[1]) // 10 * 10) for line in world.lines())
    assert lines_of(target, "counts") == sorted(
        f"{name} {start} {count}" for (name, start), count in counts.items()
    )


def last_commit(checkpoint: Path) -> int:
    """The number of the last micro-batch that is done."""
    commits = (checkpoint / "spark" / "commits").glob("[0-9]*")
    return max((int(file.name) for file in commits), default=-1)


def test_each_line_of_growing_logs_is_written_once_although_the_run_is_cancelled(
    spark: Any, tmp_path: Path
) -> None:
    world, checkpoint = Growing(tmp_path / "logs", Random(1)), tmp_path / "checkpoint"
    for is_last in (False, True):
        before = last_commit(checkpoint)
        result = start(str(tmp_path / "logs"), str(tmp_path / "out"), str(checkpoint))
        # The first micro-batch of a run repeats what the last run has not committed.
        wait_for(lambda before=before: last_commit(checkpoint) > before)
        for name in LOGS:
            world.grow(name)
        wait_for(lambda seen=last_commit(checkpoint): last_commit(checkpoint) > seen)
        if not is_last:
            assert result.cancel() == "CANCELLED"
            world.grow("b")
    for name in LOGS:
        add(world.folder / name, "end")
    assert result.wait_until_finish() == "DONE"
    check_output(tmp_path / "out", world)


@pytest.mark.soak
@pytest.mark.parametrize("kills", [1, 30])
def test_each_line_of_growing_logs_is_written_once_however_often_the_program_is_killed(
    kills: int, tmp_path: Path
) -> None:
    random = Random(kills)
    world, target, log = Growing(tmp_path / "logs", random), tmp_path / "out", tmp_path / "told"
    checkpoint = tmp_path / "checkpoint"
    command = [
        sys.executable,
        str(PROGRAM),
        str(tmp_path / "logs"),
        str(target),
        str(checkpoint),
    ]
    for kill in range(kills + 1):
        is_last = kill == kills
        with log.open("ab") as output:
            process = subprocess.Popen(
                [*command, "--fast_start"], stdout=output, stderr=output, start_new_session=True
            )
        try:
            before, until = last_commit(checkpoint), None
            while process.poll() is None:
                if random.random() < 0.2:
                    world.grow(random.choice(LOGS))
                time.sleep(0.1)
                # The first micro-batch of a run repeats what the last run has not committed.
                if until is None and last_commit(checkpoint) > before:
                    until = time.monotonic() + random.random() * 3
                if until is not None and time.monotonic() > until:
                    break
            assert process.poll() is None, log.read_text()
            if is_last:
                for name in LOGS:
                    add(world.folder / name, "end")
                assert process.wait(WAIT_SECONDS_MAX) == 0, log.read_text()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    check_output(target, world)
