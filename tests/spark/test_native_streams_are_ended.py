"""Programs that Spark computes whole: a signal drains one, and another run takes its place."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark import native_totals

pytestmark = pytest.mark.spark

WAIT_SECONDS_MAX = 120
_SECOND_MICROS = 1_000_000


def add_file(folder: Path, number: int) -> None:
    """A file of one row for each of two keys, in the minute with its number."""
    folder.mkdir(exist_ok=True)
    at = pa.array([number * 60 * _SECOND_MICROS] * 2, pa.timestamp("us", "UTC"))
    hidden = folder / f".{number:03d}"
    pq.write_table(pa.table({"key": ["a", "b"], "number": [number, 10 * number], "at": at}), hidden)
    os.utime(hidden, (1_700_000_000 + number,) * 2)
    hidden.rename(folder / f"{number:03d}.parquet")


def lines(folder: Path) -> list[str]:
    """What is written."""
    return sorted(line for file in folder.glob("totals-*") for line in file.read_text().splitlines())


def of_minutes(*numbers: int) -> list[str]:
    return sorted(line for number in numbers for line in (f"a {number}", f"b {10 * number}"))


@contextmanager
def started(folder: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """The program in a process group of its own, which is killed in the end."""
    arguments = [f"{folder}/{name}" for name in ("in", "one", "other")]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, native_totals.__file__, *arguments, *options],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes], folder: Path) -> None:
    until = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert process.poll() is None, (folder / "log").read_text()
        assert time.monotonic() < until, "nothing happens"
        time.sleep(0.05)


def test_a_signal_drains_one_and_another_run_takes_the_place_of_the_other_with_its_windows(spark, tmp_path):
    one, other, log = tmp_path / "one", tmp_path / "other", tmp_path / "log"
    for number in range(3):
        add_file(tmp_path / "in", number)
    with started(tmp_path, "--drain_on_signal") as process:
        # The window of the last file waits for what comes.
        for folder in (one, other):
            wait_for(partial(lambda where: lines(where) == of_minutes(0, 1), folder), process, tmp_path)
        places = (f"{tmp_path}/in", f"{other}/totals", f"{other}/checkpoint")
        taking = native_totals.totals(*places, "--take_over").run()
        try:
            wait_for(lambda: "this run was displaced" in log.read_text(), process, tmp_path)
            process.send_signal(signal.SIGTERM)
            # The program ends with the error of the stream that was displaced.
            assert process.wait(WAIT_SECONDS_MAX) == 1, log.read_text()
            assert "penstock: draining" in log.read_text()
            assert "went on DRAINED" in log.read_text()
            assert lines(one) == of_minutes(0, 1, 2)
            add_file(tmp_path / "in", 3)
            until = time.monotonic() + WAIT_SECONDS_MAX
            while lines(other) != of_minutes(0, 1, 2):
                assert time.monotonic() < until, taking.state
                time.sleep(0.05)
            taking.drain()
            assert taking.wait_until_finish(duration=WAIT_SECONDS_MAX * 1_000) == "DRAINED"
        finally:
            taking.cancel()
    assert lines(other) == of_minutes(0, 1, 2, 3)
    assert lines(one) == of_minutes(0, 1, 2)
