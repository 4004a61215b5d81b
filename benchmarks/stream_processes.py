"""Processes that run jobs on streams, one for each contender, timed from outside with everything they start."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from processes import process_of, tree_cpu_seconds

_LOG_LINES = 30


@dataclass(frozen=True)
class Answer:
    """What a job gave, and what it took.

    Attributes:
        numbers: What it gave.
        wall_seconds: From the order to the answer.
        cpu_seconds: Of all processes together: Python, Java, and Spark's Python workers.
    """

    numbers: dict[str, Any]
    wall_seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class StreamWorker:
    """A contender's running process.

    Attributes:
        name: The contender's name.
        process: It.
        log: The file with its error output.
    """

    name: str
    process: subprocess.Popen[str]
    log: Path

    def run(self, job: str, **arguments: Any) -> Answer:
        """Runs a job.

        Raises:
            RuntimeError: The process ended; its last words are in the message.
        """
        assert self.process.stdin is not None
        cpu, wall = tree_cpu_seconds(self.process.pid), time.perf_counter()
        self.process.stdin.write(f"{json.dumps([job, arguments])}\n")
        self.process.stdin.flush()
        line = self.await_line()
        wall = time.perf_counter() - wall
        return Answer(json.loads(line), wall, tree_cpu_seconds(self.process.pid) - cpu)

    def await_line(self) -> str:
        """What the process says next."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            last = self.log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
            raise RuntimeError("\n".join([f"{self.name} ended early; its log ends with:", *last]))
        return line


@contextmanager
def stream_workers(names: Iterable[str], cores: int, folder: Path) -> Iterator[dict[str, StreamWorker]]:
    """Starts contenders, all at once, and ends them with the block."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as running:
        workers = {name: running.enter_context(_started(name, cores, folder)) for name in names}
        for worker in workers.values():
            worker.await_line()
        yield workers


@contextmanager
def _started(name: str, cores: int, folder: Path) -> Iterator[StreamWorker]:
    log = folder / f"stream-{name}.log"
    with process_of("stream_contender.py", name, cores, log) as process:
        yield StreamWorker(name, process, log)
