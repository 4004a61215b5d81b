"""Processes whose wall and processor time is taken from outside, with everything they start."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from workloads import check

_HERE = Path(__file__).parent
_LOG_LINES = 30
_END_SECONDS_MAX = 30

_PARENT, _TIMES = 1, slice(11, 15)
"""Where in a line of ``/proc/*/stat``, after the name, the parent is, and the ticks of the process and of its ended
children."""


@dataclass(frozen=True)
class Times:
    """What one run took.

    Attributes:
        size: Of its input, in the workload's unit.
        wall_seconds: From the order to the answer.
        cpu_seconds: Of all processes together: Python, Java, and Spark's Python workers.
    """

    size: int
    wall_seconds: float
    cpu_seconds: float


def tree_cpu_seconds(root: int) -> float:
    """The processor time that a process and all that descend from it have used so far; needs Linux."""
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            ticks[int(entry.name)] = sum(map(int, fields[_TIMES]))
            children.setdefault(int(fields[_PARENT]), []).append(int(entry.name))
    found = [root]
    for process in found:
        found += children.get(process, ())
    return sum(ticks.get(process, 0) for process in found) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Worker:
    """A contender's running process.

    Attributes:
        name: The contender's name.
        process: It.
        log: The file with its error output.
    """

    name: str
    process: subprocess.Popen[str]
    log: Path

    def run(self, workload: str, source: Path, size: int) -> Times:
        """Runs a workload and checks what it has written.

        Raises:
            RuntimeError: The process ended; its last words are in the message.
            AssertionError: A total is wrong.
        """
        target = source.parent / "written" / f"{self.name}-{source.stem}"
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(exist_ok=True)
        cpu, wall = tree_cpu_seconds(self.process.pid), time.perf_counter()
        self._say(json.dumps([workload, str(source), str(target)]))
        self.await_answer()
        wall = time.perf_counter() - wall
        times = Times(size, wall, tree_cpu_seconds(self.process.pid) - cpu)
        check(source, target)
        return times

    def _say(self, order: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{order}\n")
        self.process.stdin.flush()

    def await_answer(self) -> None:
        """Waits until the process is ready for the next order."""
        assert self.process.stdout is not None
        if not self.process.stdout.readline():
            last = self.log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
            raise RuntimeError("\n".join([f"{self.name} ended early; its log ends with:", *last]))


@contextmanager
def started(name: str, cores: int, folder: Path) -> Iterator[Worker]:
    """Starts a contender, which is not ready at once, and ends it with the block."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"{name}.log"
    with process_of("contender.py", name, cores, log) as process:
        yield Worker(name, process, log)


@contextmanager
def process_of(program: str, name: str, cores: int, log: Path) -> Iterator[subprocess.Popen[str]]:
    """The process of a contender, which is ended with the block.

    Args:
        program: The program beside this one that runs it.
        name: The contender's name.
        cores: How many cores it may use.
        log: The file for its error output; it works in that file's folder.
    """
    command = [sys.executable, str(_HERE / program), name, str(cores)]
    with log.open("w") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=log.parent
        )
    try:
        yield process
    finally:
        # A contender ends, and its Java with it, when there are no more orders.
        try:
            process.communicate(timeout=_END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
