"""What the pages tell users to run works in a process of its own, where no test has started a session before."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cold.cold_starts import (
    COMMANDS,
    ELSEWHERE,
    NEED_A_SERVICE,
    OF_A_CHECKPOINT,
    QUICK,
    RUN_PAGE,
    STREAM,
    ColdStart,
    documented_commands,
    documented_sessions,
    example_programs,
)

SECONDS_MAX = 240
ALWAYS = [*QUICK, max(COMMANDS, key=len)]


def output_of(command: Sequence[str | Path], folder: Path, typed: str = "") -> str:
    """What a process prints; AssertionError if it fails, or shows a traceback."""
    done = subprocess.run(
        [str(word) for word in command],
        input=typed,
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def test_every_documented_command_is_run() -> None:
    assert {*COMMANDS, *OF_A_CHECKPOINT, *ELSEWHERE} == set(documented_commands())


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(
            command,
            marks=[
                *([] if command in QUICK else [pytest.mark.spark]),
                *([] if command in ALWAYS else [pytest.mark.soak]),
            ],
        )
        for command in COMMANDS
    ],
)
def test_a_documented_command_runs_by_itself(command: str, tmp_path: Path) -> None:
    start = COMMANDS[command]
    start.prepare(tmp_path)
    words = [sys.executable, "-m", "penstock", *start.arguments(command)]
    assert start.prints in output_of(words, tmp_path, start.typed)


@pytest.mark.spark
@pytest.mark.soak
def test_the_commands_that_read_a_checkpoint_run_by_themselves(tmp_path: Path) -> None:
    output_of([sys.executable, "-c", STREAM], tmp_path)
    for command, start in OF_A_CHECKPOINT.items():
        words = [sys.executable, "-m", "penstock", *start.arguments(command)]
        printed = first_line_of(words, tmp_path) if "live" in command else output_of(words, tmp_path)
        assert start.prints in printed


def first_line_of(command: Sequence[str], folder: Path) -> str:
    """The first line of a process that runs until its user presses Ctrl-C."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.send_signal(signal.SIGINT)
    return line


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.parametrize("page", documented_sessions(), ids=lambda page: page.name)
def test_the_lines_of_a_page_run_by_themselves(page: Path, tmp_path: Path) -> None:
    output_of([sys.executable, "-c", RUN_PAGE, page], tmp_path)


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.parametrize("program", example_programs(), ids=lambda program: program.name)
def test_an_example_runs_by_itself(program: Path, tmp_path: Path) -> None:
    if program.name in NEED_A_SERVICE:
        assert "usage:" in output_of([sys.executable, program, "--help"], tmp_path)
    else:
        output_of([sys.executable, program], tmp_path)


def test_a_command_that_fails_is_found(tmp_path: Path) -> None:
    start = ColdStart("")
    with pytest.raises(AssertionError, match="'sqll' is not a command"):
        output_of([sys.executable, "-m", "penstock", *start.arguments("penstock sqll")], tmp_path)
