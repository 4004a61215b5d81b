"""A stream that is killed and started again on its checkpoint writes what one that is left alone writes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as beam
from penstock.error import RunnerError
from penstock.options.pipeline_options import PipelineOptions
from tests.spark.restartable import ENDLESS, PIPELINES, main

PROGRAM = Path(__file__).parent / "restartable.py"
FILES = 6
WAIT_SECONDS_MAX = 180


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of scores, in an order of event time that has some late ones."""
    folder = tmp_path_factory.mktemp("scores")
    random = Random(4)
    for number in range(FILES):
        lines = [
            f"team{random.randrange(5)},{random.randrange(9)},{max(0, second + random.randrange(-90, 30))},{number}"
            for second in [number * 60] * 120
        ]
        file = folder / f"{number:03d}.txt"
        file.write_text("\n".join(lines) + "\n")
        columns = {
            "team": [f"team{random.randrange(5)}" for _ in range(120)],
            "points": [random.randrange(9) for _ in range(120)],
            "at": [number * 60 + random.randrange(-9, 9) for _ in range(120)],
        }
        pq.write_table(pa.table(columns), file.with_suffix(".parquet"))
        # Streams read files in the order in which they have changed.
        for each in (file, file.with_suffix(".parquet")):
            os.utime(each, (1_700_000_000 + number, 1_700_000_000 + number))
    return folder


@pytest.fixture(scope="module")
def expected(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, list[str]]]:
    """What the sinks of a pipeline have after a run that was left alone, and read all files at once."""

    @cache
    def left_alone(name: str) -> dict[str, list[str]]:
        folder = tmp_path_factory.mktemp("alone")
        main(name, str(source), f"{folder}/out", f"{folder}/checkpoint", files=FILES)
        content = content_of(folder / "out" / name)
        match name:
            case "sums":
                assert len(content["sums"]) > 100
                assert {line.split()[-1] for line in content["sums"]} == {"0", "1", "2"}, (
                    "early, on time, late"
                )
            case "shares":
                assert {line.split()[2] for line in content["shares"]} == {"closed", "late"}
            case "columns":
                assert len(content["totals"]) == 5 * 7
            case "windows":
                assert len(content["names"]) == 2 * len({name[:-15] for name in content["names"]}) > 20
        return content

    return left_alone


def content_of(folder: Path) -> dict[str, list[str]]:
    """All lines of each sink, by the names of the files without their numbers."""
    found: dict[str, list[str]] = defaultdict(list)
    # What begins with an underscore is not finished, and may be deleted at any time.
    for file in folder.glob("[!_]*"):
        if not file.is_dir():
            found[file.name.partition("-")[0]] += lines_of(file)
    return {name: sorted(lines) for name, lines in found.items()}


def lines_of(file: Path) -> list[str]:
    """The lines of a text, or the rows of a Parquet file."""
    if file.suffix == ".parquet":
        return [f"{row['team']} {row['total']}" for row in pq.read_table(file).to_pylist()]
    return file.read_text().splitlines()


@contextmanager
def started(*arguments: str, log: Path, remote: str | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """The program in a process group of its own, which is killed in the end; it may run on a server."""
    flags, variables = ((), {"SPARK_REMOTE": remote}) if remote else (("--fast_start",), {})
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, str(PROGRAM), *arguments, *flags],
            stdout=output,
            stderr=output,
            env={**os.environ, **variables},
            start_new_session=True,
        )
        try:
            yield process
        finally:
            kill_all(process)


def kill_all(process: subprocess.Popen[bytes]) -> None:
    """Kills a process and all that it has started, as a power cut would."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> bool:
    """Waits until something is so, or the process has ended; whether it is so."""
    until = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        if process.poll() is not None:
            return condition()
        assert time.monotonic() < until, "nothing happens"
        time.sleep(0.02)
    return True


def begun(checkpoint: Path, batch: int) -> bool:
    """True if a micro-batch has been begun."""
    return (checkpoint / "spark" / "offsets" / str(batch)).exists()


def written(checkpoint: Path, batch: int) -> bool:
    """True if a micro-batch is done."""
    return (checkpoint / "spark" / "commits" / str(batch)).exists()


MOMENTS: dict[str, Callable[[Path, Path], bool]] = {
    "in the first micro-batch": lambda out, checkpoint: begun(checkpoint, 0),
    "between two": lambda out, checkpoint: written(checkpoint, 1),
    "while one is written": lambda out, checkpoint: begun(checkpoint, 3) and any(out.glob("*-batch-000003*")),
}


@pytest.mark.parametrize(
    ("names", "killed"),
    [
        pytest.param(["shares", "windows"], {"while one is written": "windows"}, id="together"),
        *[
            pytest.param([name], dict.fromkeys(MOMENTS, name), id=name, marks=pytest.mark.soak)
            for name in PIPELINES
        ],
    ],
)
def test_a_driver_that_is_killed_again_and_again_and_then_python_workers(
    names, killed, source, expected, tmp_path
):
    out, checkpoint, log = tmp_path / "out", tmp_path / "checkpoint", tmp_path / "log"
    # Tasks are tried again: if only workers are killed, the run goes on as if nothing had been.
    arguments = (",".join(names), str(source), str(out), str(checkpoint), "--master=local[2,4]")
    for moment, name in killed.items():
        with started(*arguments, log=log) as process:
            is_now = partial(MOMENTS[moment], out / name, checkpoint / name)
            assert wait_for(is_now, process), log.read_text()
            kill_all(process)
    for name in names:
        assert not written(checkpoint / name, FILES), "it was killed too late to tell anything"
    with started(*arguments, log=log) as process:
        for batch in (4, 5):
            is_written = partial(written, checkpoint / next(iter(names)), batch)
            assert wait_for(is_written, process), log.read_text()
            workers = python_workers(process.pid)
            assert workers or names == ["columns"]
            for worker in workers:
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
        assert process.wait(WAIT_SECONDS_MAX) == 0, log.read_text()
    for name in names:
        assert content_of(out / name) == expected(name)


def python_workers(session: int) -> list[int]:
    """The processes of a session that run Spark's Python workers, which are in process groups of their own."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                command = (entry / "cmdline").read_bytes()
                if os.getsid(int(entry.name)) == session and b"pyspark.daemon" in command:
                    found.append(int(entry.name))
            except (OSError, ProcessLookupError):
                continue
    return found


@pytest.mark.soak
def test_a_run_that_is_cancelled_goes_on_later(spark, source, expected, tmp_path):
    flags = [f"--checkpoint_location={tmp_path}/checkpoint", "--mode=streaming", "--shuffle_partitions=2"]
    states = []
    for last in (1, 4, None):
        pipeline = beam.Pipeline(options=PipelineOptions(flags))
        PIPELINES["sums"](pipeline, str(source), str(tmp_path / "out"))
        result = pipeline.run()
        while last is not None and not written(tmp_path / "checkpoint", last):
            assert result.wait_until_finish(duration=20) is None
        states.append(result.wait_until_finish() if last is None else result.cancel())
    assert states == ["CANCELLED", "CANCELLED", "DONE"]
    assert content_of(tmp_path / "out") == expected("sums")


@pytest.mark.soak
def test_of_two_drivers_on_one_checkpoint_one_is_refused_or_takes_over(spark, tmp_path):
    target, checkpoint, log = tmp_path / "out", tmp_path / "checkpoint", tmp_path / "log"
    flags = [f"--checkpoint_location={checkpoint}/lines", "--mode=streaming", "--shuffle_partitions=2"]

    def add(name: str) -> None:
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / f"{name}.txt").write_text(f"{name}\n")
        (tmp_path / f"{name}.txt").rename(tmp_path / "in" / f"{name}.txt")

    def lines() -> list[str]:
        return content_of(target / "lines").get("lines", [])

    def run(*further: str) -> Any:
        pipeline = beam.Pipeline(options=PipelineOptions([*flags, *further]))
        ENDLESS["lines"](pipeline, str(tmp_path / "in"), f"{target}/lines")
        return pipeline.run()

    add("a")
    with started("lines", str(tmp_path / "in"), str(target), str(checkpoint), log=log) as first:
        assert wait_for(lambda: lines() == ["a"], first), log.read_text()
        held = f"is held by the run {holder(checkpoint / 'lines')['run']} (process {first.pid} on"
        with pytest.raises(RunnerError, match=re.escape(held)):
            run()
        add("b")
        assert wait_for(lambda: lines() == ["a", "b"], first), log.read_text()
        other = run("--take_over")
        try:
            assert first.wait(WAIT_SECONDS_MAX) == 1
            assert "this run was displaced" in log.read_text()
            add("c")
            until = time.monotonic() + WAIT_SECONDS_MAX
            while lines() != ["a", "b", "c"]:
                assert time.monotonic() < until, other.state
                time.sleep(0.02)
        finally:
            other.cancel()


def holder(checkpoint: Path) -> dict[str, Any]:
    """The latest claim of a checkpoint."""
    claim = max((checkpoint / "holders").glob("*.json"))
    return dict(json.loads(claim.read_text()))
