"""Processes whose wall and processor time is taken from outside, with everything they start."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_LOG_LINES = 30
_END_SECONDS_MAX = 30

_PARENT, _TIMES, _BORN = 1, slice(11, 15), 19
"""The fields in a line of ``/proc/*/stat``, after the name: the parent, the ticks of the process and of its ended
children, and the tick of its start."""

_IGNORED = re.compile(r"^SigIgn:\s+([0-9a-f]+)", re.MULTILINE)
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB", re.MULTILINE)


@dataclass(frozen=True)
class Answer:
    """The result of a job, and its cost."""

    numbers: Any
    wall_seconds: float  # From the order to the answer.
    cpu_seconds: float  # Of all processes together: Python, Java, and Spark's Python workers.
    peak_megabytes: float  # The sum of the most memory that each of these processes had resident.


@dataclass(frozen=True)
class _Process:
    """A process at one moment."""

    parent: int
    ticks: int  # Its own, and the ticks of the children that it has waited for.
    born: int


_unwaited: dict[tuple[int, int, int], int] = {}
"""The last known ticks of processes without a parent that waits, by the root of their tree, number and birth."""


def tree_cpu_seconds(root: int) -> float:
    """The processor time that a process and all that descend from it have used so far; needs Linux.

    The daemon of Spark's Python workers ignores the ends of its children, and so Linux forgets their time when Spark
    ends children that had nothing to do for a minute. It is remembered here from the last call.
    """
    tree = _tree(root)
    for number, process in tree.items():
        if number != root and _ignores_ends(process.parent):
            _unwaited[root, number, process.born] = process.ticks
    gone = sum(
        ticks
        for (under, number, born), ticks in _unwaited.items()
        if under == root and (number not in tree or tree[number].born != born)
    )
    return (gone + sum(process.ticks for process in tree.values())) / os.sysconf("SC_CLK_TCK")


def _ignores_ends(number: int) -> bool:
    """True if a process ignores the ends of its children."""
    try:
        found = _IGNORED.search(Path(f"/proc/{number}/status").read_text())
    except OSError:
        return False
    return found is not None and bool(int(found[1], 16) >> (signal.SIGCHLD - 1) & 1)


def _tree(root: int) -> dict[int, _Process]:
    """A process and all that descend from it, by their numbers."""
    processes: dict[int, _Process] = {}
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            process = _Process(int(fields[_PARENT]), sum(map(int, fields[_TIMES])), int(fields[_BORN]))
            processes[int(entry.name)] = process
            children.setdefault(process.parent, []).append(int(entry.name))
    found = [root]
    for number in found:
        found += children.get(number, ())
    return {number: processes[number] for number in found if number in processes}


def forget_peaks(root: int) -> None:
    """Has the peaks of memory of a process, and of all that descend from it, begin with what they have now."""
    for process in _tree(root):
        # A process may have ended, and not every system lets peaks be forgotten: they are then those since its start.
        with suppress(OSError):
            Path(f"/proc/{process}/clear_refs").write_text("5")


def tree_peak_megabytes(root: int) -> float:
    """The sum of the most memory that each process had resident, of a process and all that descend from it."""
    kilobytes = 0
    for process in _tree(root):
        with suppress(OSError):
            found = _PEAK.search(Path(f"/proc/{process}/status").read_text())
            kilobytes += int(found[1]) if found else 0
    return kilobytes / 1024


@dataclass(frozen=True)
class Worker:
    """A contender's running process."""

    name: str
    process: subprocess.Popen[str]
    log: Path  # The file with its error output.

    def run(self, job: str, **arguments: Any) -> Answer:
        """Runs a job; if the process has ended, the error contains the end of its log."""
        assert self.process.stdin is not None
        forget_peaks(self.process.pid)
        cpu, wall = tree_cpu_seconds(self.process.pid), time.perf_counter()
        self.process.stdin.write(f"{json.dumps([job, arguments])}\n")
        self.process.stdin.flush()
        line = self.await_line()
        wall = time.perf_counter() - wall
        cpu = tree_cpu_seconds(self.process.pid) - cpu
        return Answer(json.loads(line), wall, cpu, tree_peak_megabytes(self.process.pid))

    def await_line(self) -> str:
        """The next line of the process."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            last = self.log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
            raise RuntimeError("\n".join([f"{self.name} ended early; its log ends with:", *last]))
        return line


@contextmanager
def running_workers(
    names: Iterable[str], cores: int, folder: Path, program: str = "stream_contender.py"
) -> Iterator[dict[str, Worker]]:
    """Starts contenders, all at once, and ends them with the block.

    They work in the folder, where their logs are too. `program` is the program beside this one that knows
    them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as running:
        workers = {name: running.enter_context(_started(program, name, cores, folder)) for name in names}
        for worker in workers.values():
            worker.await_line()
        yield workers


@contextmanager
def _started(program: str, name: str, cores: int, folder: Path) -> Iterator[Worker]:
    """A contender, which is not ready at once."""
    log = folder / f"{Path(program).stem}-{name}.log"
    command = [sys.executable, str(_HERE / program), name, str(cores)]
    with log.open("w") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder
        )
    try:
        yield Worker(name, process, log)
    finally:
        # When no more orders come, a contender ends, and its Java with it.
        try:
            process.communicate(timeout=_END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
