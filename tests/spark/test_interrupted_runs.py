"""Ctrl-C, SIGTERM and the death of Java, with real programs: what they say, their status, and what they leave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "interruptible.py"
NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}


@contextmanager
def _started(kind: str, folder: Path, *options: str, scheme: str = "") -> Iterator[subprocess.Popen[str]]:
    """The program at work, in a session of its own, of which nothing is left in the end."""
    command = [sys.executable, str(PROGRAM), kind, f"{scheme}{folder}", *options]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            command, stdout=log, stderr=log, text=True, start_new_session=True, preexec_fn=_hear_interrupts
        ) as process,
    ):
        try:
            _wait(lambda: _is_at_work(kind, folder), process)
            yield process
        finally:
            process.kill()
            for number in _family(process):
                # One that was there a moment ago may have ended by itself.
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)


def _hear_interrupts() -> None:
    """A shell has what it runs in the background ignore Ctrl-C, also these tests."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _is_at_work(kind: str, folder: Path) -> bool:
    begun = {"batch": "begun", "stream": "out/o-batch-*", "both": "batch/begun"}
    return any(folder.glob(begun[kind]))


def _wait(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, "it has ended"
        assert time.monotonic() < until, "nothing happens"
        time.sleep(0.05)


def _family(process: subprocess.Popen[str], word: str = "") -> list[int]:
    """The processes of a session, but for its first."""
    command = ["ps", "-ww", "-eo", "sid=,pid=,stat=,args="]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = [line.split(None, 3) for line in listed.splitlines() if word in line]
    return [
        int(pid)
        for session, pid, state, *_ in found
        if session == str(process.pid) != pid and not state.startswith("Z")
    ]


def _ended(process: subprocess.Popen[str], folder: Path, seconds: float = 60) -> str:
    """Waits until nothing is left; what was said."""
    process.wait(seconds)
    until = time.monotonic() + 60
    while (left := _family(process)) and time.monotonic() < until:
        time.sleep(0.1)
    assert left == []
    return (folder / "log").read_text()


def _status(process: subprocess.Popen[str]) -> int:
    """The status as a shell tells it."""
    code = process.returncode
    return code if code >= 0 else 128 - code


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.soak)])
def test_a_stream_is_cancelled_says_how_to_go_on_and_drains_on_a_signal(
    tmp_path: Path, number: signal.Signals
) -> None:
    checkpoint = tmp_path / "a checkpoint"
    with _started("stream", tmp_path, f"--checkpoint_location={checkpoint}") as process:
        os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
        said = _ended(process, tmp_path)
    assert _status(process) == 128 + number, said
    assert f"penstock: {NAMES[number]}: the stream was cancelled" in said
    assert f"is in the checkpoint {checkpoint}" in said
    assert f"to continue from there: {sys.executable}" in said or "interruptible.py stream" in said
    assert f"'--checkpoint_location={checkpoint}'" in said
    assert "PyGILState" not in said
    assert "went on" not in said
    before = _files(tmp_path)
    other = signal.SIGTERM if number == signal.SIGINT else signal.SIGINT
    options = (f"--checkpoint_location={checkpoint}", "--drain_on_signal")
    with _started("stream", tmp_path, *options) as process:
        _wait(lambda: _files(tmp_path) > before, process)
        process.send_signal(other)
        said = _ended(process, tmp_path)
    assert "penstock: draining" in said
    assert "went on DRAINED" in said
    assert process.returncode == 0
    assert list(tmp_path.glob("out/_penstock*")) == []


def _files(folder: Path) -> int:
    return len(list(folder.glob("out/o-batch-*")))


@pytest.mark.parametrize(
    ("number", "scheme"),
    [
        (signal.SIGTERM, "file://"),
        pytest.param(signal.SIGINT, "", marks=pytest.mark.soak),
        pytest.param(signal.SIGINT, "file://", marks=pytest.mark.soak),
        pytest.param(signal.SIGTERM, "", marks=pytest.mark.soak),
    ],
)
def test_a_batch_is_cancelled_and_leaves_no_temporary_files(
    tmp_path: Path, number: signal.Signals, scheme: str
) -> None:
    with _started("batch", tmp_path, scheme=scheme) as process:
        assert [path.name[:10] for path in (tmp_path / "out").iterdir()] == ["_penstock-"]
        process.send_signal(number)
        said = _ended(process, tmp_path, seconds=15)
    assert _status(process) == 128 + number, said
    assert f"penstock: {NAMES[number]}: the run was cancelled" in said
    assert list((tmp_path / "out").iterdir()) == []


def test_a_second_ctrl_c_ends_it_at_once(tmp_path: Path) -> None:
    with _started("stream", tmp_path, "--drain_on_signal") as process:
        # A stream that drains says so, and goes on for a while.
        process.send_signal(signal.SIGINT)
        _wait(lambda: "draining" in (tmp_path / "log").read_text(), process)
        process.send_signal(signal.SIGINT)
        process.wait(2)
        said = _ended(process, tmp_path)
    assert process.returncode == 130
    assert "ended at once" in said


@pytest.mark.parametrize(
    "kind", ["both", *(pytest.param(kind, marks=pytest.mark.soak) for kind in ("batch", "stream"))]
)
def test_the_death_of_java_is_one_clear_error_of_each_run(tmp_path: Path, kind: str) -> None:
    with _started(kind, tmp_path) as process:
        # At first, what Java starts looks like Java itself.
        java = min(_family(process, "org.apache.spark.deploy.SparkSubmit"))
        os.kill(java, signal.SIGKILL)
        said = _ended(process, tmp_path)
    assert process.returncode == 1, said
    assert said.count("Spark's Java process has died, killed by SIGKILL") >= (2 if kind == "both" else 1)
    assert "hint: " in said
    assert "Py4J" not in said, said
    # Another Java is started for what follows.
    assert "sum 3" in said
