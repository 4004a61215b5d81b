"""The processor time of a tree of processes never shrinks, even when a process ends for which nobody waits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.benchmarks.benchmark_programs import Load

_DAEMON = """
import os, signal, sys, time
signal.signal(signal.SIGCHLD, getattr(signal, sys.argv[1]))
worker = os.fork()
if worker == 0:
    while time.process_time() < 0.4:
        pass
    print(os.getpid(), flush=True)
    time.sleep(600)
sys.stdin.readline()
try:
    os.waitpid(worker, 0)
except ChildProcessError:
    pass
print("waited", flush=True)
time.sleep(600)
"""


@pytest.fixture(params=["SIG_IGN", "SIG_DFL"])
def daemon(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """A process that has a busy child, and either ignores its end, as that of Spark's workers, or waits for it."""
    command = [sys.executable, "-c", _DAEMON, request.param]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def test_what_an_ended_child_has_used_is_counted_once(load: Load, daemon: subprocess.Popen[str]) -> None:
    processes = load("processes")
    assert daemon.stdin is not None
    assert daemon.stdout is not None
    worker = int(daemon.stdout.readline())
    before = processes.tree_cpu_seconds(daemon.pid)
    assert before > 0.3
    os.kill(worker, signal.SIGKILL)
    daemon.stdin.write("\n")
    daemon.stdin.flush()
    assert daemon.stdout.readline() == "waited\n"
    deadline = time.monotonic() + 10
    while os.path.exists(f"/proc/{worker}") and time.monotonic() < deadline:
        time.sleep(0.01)
    after = processes.tree_cpu_seconds(daemon.pid)
    assert before <= after < before + 0.3
