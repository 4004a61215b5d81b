"""Ctrl-C, SIGTERM and the death of Java, with real programs: what they say, their status, and what they leave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
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
    begun = {"batch": "begun", "both": "batch/begun"}.get(kind, "out/o-batch-*")
    return any(folder.glob(begun))


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


def _files(folder: Path) -> int:
    return len(list(folder.glob("out/o-batch-*")))


@dataclass(frozen=True)
class Signalled:
    """What became of two programs with streams, to which signals came."""

    checkpoint: Path
    # The first program's stream is cancelled.
    number: signal.Signals
    cancelled: str
    cancelled_status: int
    # The second program goes on with it, drains it, and runs another one.
    drained: str
    left: list[Path]
    ended_at_once: str
    last_status: int


@pytest.fixture(scope="module", params=[signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.soak)])
def signalled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Signalled:
    number, folder = request.param, tmp_path_factory.mktemp("signalled")
    checkpoint, log = folder / "a checkpoint", folder / "log"
    with _started("stream", folder, f"--checkpoint_location={checkpoint}") as process:
        os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
        cancelled, cancelled_status = _ended(process, folder), _status(process)
    before = _files(folder)
    options = (f"--checkpoint_location={checkpoint}", "--drain_on_signal")
    with _started("streams", folder, *options) as process:
        _wait(lambda: _files(folder) > before, process)
        process.send_signal(signal.SIGTERM if number == signal.SIGINT else signal.SIGINT)
        _wait(lambda: _is_at_work("stream", folder / "second"), process)
        drained, left = log.read_text(), list(folder.glob("out/_penstock*"))
        process.send_signal(signal.SIGINT)
        # A stream that drains says so, and goes on for a while.
        _wait(lambda: "draining" in log.read_text().removeprefix(drained), process)
        process.send_signal(signal.SIGINT)
        process.wait(2)
        ended_at_once = _ended(process, folder).removeprefix(drained)
    return Signalled(
        checkpoint, number, cancelled, cancelled_status, drained, left, ended_at_once, process.returncode
    )


def test_a_stream_is_cancelled_by_a_signal_and_says_how_to_go_on(signalled: Signalled) -> None:
    number, said, checkpoint = signalled.number, signalled.cancelled, signalled.checkpoint
    assert signalled.cancelled_status == 128 + number, said
    assert f"penstock: {NAMES[number]}: the stream was cancelled" in said
    assert f"is in the checkpoint {checkpoint}" in said
    assert f"to continue from there: {sys.executable}" in said or "interruptible.py stream" in said
    assert f"'--checkpoint_location={checkpoint}'" in said
    assert "PyGILState" not in said
    assert "went on" not in said


def test_a_stream_drains_on_a_signal_and_its_program_goes_on(signalled: Signalled) -> None:
    assert "penstock: draining" in signalled.drained
    assert "went on DRAINED" in signalled.drained
    assert signalled.left == []


def test_a_second_ctrl_c_ends_it_at_once(signalled: Signalled) -> None:
    assert signalled.last_status == 130, signalled.ended_at_once
    assert "ended at once" in signalled.ended_at_once
    assert "went on" not in signalled.ended_at_once


@dataclass(frozen=True)
class Survived:
    """What became of a program whose Java was killed, and which then ran a batch until a signal came."""

    kind: str
    died: str
    number: signal.Signals
    written: list[str]
    cancelled: str
    status: int
    left: list[Path]


@pytest.fixture(
    scope="module",
    params=[
        ("both", signal.SIGTERM, "file://"),
        pytest.param(("batch", signal.SIGINT, ""), marks=pytest.mark.soak),
        pytest.param(("stream", signal.SIGINT, "file://"), marks=pytest.mark.soak),
        pytest.param(("both", signal.SIGTERM, ""), marks=pytest.mark.soak),
    ],
)
def survived(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Survived:
    kind, number, scheme = request.param
    folder = tmp_path_factory.mktemp("survived")
    log, out = folder / "log", folder / "next" / "out"
    with _started(kind, folder, scheme=scheme) as process:
        # At first, what Java starts looks like Java itself.
        java = min(_family(process, "org.apache.spark.deploy.SparkSubmit"))
        os.kill(java, signal.SIGKILL)
        _wait(lambda: _is_at_work("batch", folder / "next"), process)
        died, written = log.read_text(), [path.name[:10] for path in out.iterdir()]
        process.send_signal(number)
        cancelled = _ended(process, folder, seconds=15).removeprefix(died)
    return Survived(kind, died, number, written, cancelled, _status(process), list(out.iterdir()))


def test_the_death_of_java_is_one_clear_error_of_each_run(survived: Survived) -> None:
    said = survived.died
    told = said.count("Spark's Java process has died, killed by SIGKILL")
    assert told >= (2 if survived.kind == "both" else 1), said
    assert "hint: " in said
    assert "Py4J" not in said, said
    # Another Java is started for what follows.
    assert "sum 3" in said


def test_a_batch_is_cancelled_and_leaves_no_temporary_files(survived: Survived) -> None:
    assert survived.written == ["_penstock-"]
    assert survived.status == 128 + survived.number, survived.cancelled
    assert f"penstock: {NAMES[survived.number]}: the run was cancelled" in survived.cancelled
    # Nothing is asked on a connection that waits for an answer.
    assert "while sending command" not in survived.cancelled
    assert survived.left == []
