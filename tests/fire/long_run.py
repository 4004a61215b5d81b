"""Runs a job for long, at 1,000 events a second with 250 new keys a second, and says what grows.

    python -m tests.fire.long_run --minutes 60

Every ten seconds it notes the memory of Java, of the driver and of Python's workers, the files of the checkpoint and of
Spark's local folder, and the time of the last micro-batch. In the end it verifies that no event was lost or counted
twice, prints how each number has changed in the second half, and keeps all numbers as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.fire import program_processes
from tests.fire.standing_program import EVENTS_PER_KEY, SAMPLE_SECONDS
from tests.fire.trends import Trend, trend_of

# What keeps the numbers of benchmarks keeps these too.
sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
PROGRAM = Path(__file__).with_name("standing_program.py")
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "long_run.json"
EVENTS_PER_SECOND = 1_000
KEPT_FILES = 600
"""Files of the input that stay after they were read, as logs do that somebody rotates."""


class Ticker(threading.Thread):
    """Puts a file with a second's events into a folder each second, until it is stopped."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder = folder
        self.events = 0
        self.stopped = threading.Event()

    def run(self) -> None:
        """Catches up with what a pause was too long for."""
        start, second = time.monotonic(), 0
        while not self.stopped.wait(max(0.0, start + second - time.monotonic())):
            self._put(second)
            second += 1

    def _put(self, second: int) -> None:
        now = time.time()
        first = self.events
        lines = [f"{number},{now:.3f}\n" for number in range(first, first + EVENTS_PER_SECOND)]
        hidden = self.folder / f"_{second}"
        hidden.write_text("".join(lines))
        hidden.rename(self.folder / f"{second:08d}.txt")
        self.events += EVENTS_PER_SECOND
        with suppress(FileNotFoundError):
            (self.folder / f"{second - KEPT_FILES:08d}.txt").unlink()


@contextmanager
def standing(folder: Path, *flags: str) -> Iterator[subprocess.Popen[bytes]]:
    """The program in a session of its own, all of whose processes are dead afterwards."""
    for name in ("in", "tmp", "local"):
        (folder / name).mkdir()
    command = [sys.executable, str(PROGRAM), str(folder), f"--spark_conf=spark.local.dir={folder}/local"]
    environment = {**os.environ, "TMPDIR": f"{folder}/tmp"}
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [*command, *flags], stdout=log, stderr=log, start_new_session=True, env=environment
        )
    try:
        yield process
    finally:
        program_processes.kill_session(process.pid)
        process.wait()


def memory(session: int) -> dict[str, float]:
    """The resident memory of all processes of each kind, and how many there are."""
    found: Counter[str] = Counter()
    for each in program_processes.processes_of(session):
        kind = each.kind.replace(" ", "_")
        found[f"memory.{kind}"] += each.resident_bytes
        found[f"processes.{kind}"] += 1
    return dict(found)


def files_in(folder: Path) -> dict[str, float]:
    """The number and the bytes of the files in each folder of the checkpoint, and in Spark's local folder."""
    found: Counter[str] = Counter()
    for top, depth in ((folder / "checkpoint", 2), (folder / "local", 0), (folder / "tmp", 0)):
        for path, _, names in os.walk(top):
            inside = Path(path).relative_to(folder).parts[: depth + 1]
            for name in names:
                with suppress(FileNotFoundError):
                    found[f"bytes.{'/'.join(inside)}"] += os.stat(f"{path}/{name}").st_size
                    found[f"files.{'/'.join(inside)}"] += 1
    return dict(found)


def watch(folder: Path, process: subprocess.Popen[bytes], seconds: float) -> list[dict[str, float]]:
    """The samples of a run from outside."""
    samples = []
    start = time.monotonic()
    while time.monotonic() < start + seconds:
        assert process.poll() is None, (folder / "log").read_text()[-5000:]
        samples.append({"seconds": time.time(), **memory(process.pid), **files_in(folder)})
        time.sleep(SAMPLE_SECONDS)
    return samples


def verdict(folder: Path, events: int) -> dict[str, int]:
    """What the output holds against what was put in: each key has four events, in one or two minutes."""
    counts: Counter[int] = Counter()
    for file in (folder / "out").glob("totals*"):
        for line in file.read_text().splitlines():
            key, _, count = line.partition(",")
            counts[int(key)] += int(count)
    keys = range(events // EVENTS_PER_KEY)
    return {
        "events": events,
        "lost": sum(max(0, EVENTS_PER_KEY - counts[key]) for key in keys),
        "doubled": sum(max(0, counts[key] - EVENTS_PER_KEY) for key in keys),
        "unknown": sum(key not in keys for key in counts),
    }


def main() -> None:
    """Runs the job, and prints what grows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--results", type=Path, default=RESULTS)
    known, flags = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="penstock-long-run-") as name:
        folder = Path(name)
        with standing(folder, *flags) as process:
            ticker = Ticker(folder / "in")
            ticker.start()
            samples = watch(folder, process, known.minutes * 60)
            ticker.stopped.set()
            ticker.join()
            (folder / "drain").touch()
            process.wait(300)
        assert process.returncode == 0, (folder / "log").read_text()[-5000:]
        inside = [json.loads(line) for line in (folder / "inside.jsonl").read_text().splitlines()]
        verified = verdict(folder, ticker.events)
    trends = [trend_of(name, each) for each in (samples, inside) for name in numbers_of(each)]
    report(trends, verified)
    kept = {"minutes": known.minutes, "flags": flags, "verified": verified}
    kept["samples"], kept["inside"] = table_of(samples), table_of(inside)
    write_numbers(known.results, len(os.sched_getaffinity(0)), kept)


def write_numbers(path: Path, cores: int, numbers: dict[str, Any]) -> None:
    """Keeps numbers with the machine that they are from."""
    from outcome import write_numbers as write

    write(path, cores, numbers)


def numbers_of(samples: list[dict[str, float]]) -> list[str]:
    """The names of all numbers in the samples but their times."""
    return sorted({name for sample in samples for name in sample} - {"seconds", "batch"})


def table_of(samples: list[dict[str, float]]) -> dict[str, Any]:
    """The samples by number, each as one line of text: thousands of lines would hide the rest."""
    names = ["seconds", *numbers_of(samples)]
    return {name: " ".join(f"{sample.get(name, 0):.10g}" for sample in samples) for name in names}


def report(trends: list[Trend], verified: dict[str, int]) -> None:
    """Prints a line for each number, and what was verified."""
    print(f"{'':52}{'after 1/4':>12}{'middle':>12}{'end':>12}{'an hour':>12}")
    for each in trends:
        print(each.line())
    print(verified)


if __name__ == "__main__":
    main()
