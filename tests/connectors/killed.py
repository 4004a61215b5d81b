"""Programs that tests kill and start again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

WAIT_SECONDS_MAX = 120


@contextmanager
def started(program: Path, *arguments: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program in a process group of its own, which is dead afterwards."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, str(program), *arguments],
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kills a program and all that it has started, if it has not ended."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_until(
    happens: Callable[[], bool], process: subprocess.Popen[bytes] | None = None, log: Path | None = None
) -> None:
    """Waits for something; the program that does it must not end before."""
    until = time.monotonic() + WAIT_SECONDS_MAX
    while not happens():
        told = "" if log is None else log.read_text()[-5000:]
        assert process is None or process.poll() is None, f"it has ended too early:\n{told}"
        assert time.monotonic() < until, f"nothing happens:\n{told}"
        time.sleep(0.01)


def micro_batches(checkpoint: Path) -> int:
    """The number of micro-batches that a stream has begun."""
    return 1 + max((int(file.name) for file in (checkpoint / "spark" / "offsets").glob("[0-9]*")), default=-1)
