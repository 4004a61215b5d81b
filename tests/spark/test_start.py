"""Starting Spark: what is told of it, what other users of the machine can read, and what a start that is cut short
leaves.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

_PROGRAM = """
import sys
import penstock as beam
print("begins", flush=True)
argv = ["--master=local[1]", "--fast_start", "--mode=streaming", *sys.argv[1:]]
with beam.Pipeline(argv=argv, app_name="scores") as pipeline:
    pairs = pipeline | beam.Create([1, 2, 3]) | beam.Map(lambda number: (number % 2, number))
    _ = pairs | beam.CombinePerKey(sum)
from pyspark import SparkContext
context = SparkContext._active_spark_context
print(context.getConf().get("spark.hadoop.my.password"), context._jsc.hadoopConfiguration().get("my.password"))
print("runs", context._gateway.proc.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    """A command that runs a pipeline, and then waits until its input ends."""
    script = tmp_path / "program.py"
    script.write_text(_PROGRAM)
    return [sys.executable, str(script)]


def _family(process: subprocess.Popen[str]) -> list[str]:
    """The command lines of the processes of a session."""
    listed = subprocess.run(
        ["ps", "-ww", "-eo", "sid=,args="], capture_output=True, text=True, check=True
    ).stdout
    found = [line.strip().partition(" ") for line in listed.splitlines()]
    return [args for session, _, args in found if session == str(process.pid) and "<defunct>" not in args]


def _begun(command: list[str], folder: Path) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_VERSION"}
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # A shell has what it runs in the background ignore Ctrl-C, also these tests.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        env=environment | {"TMPDIR": str(folder), "PENSTOCK_CLASS_ARCHIVE": "read"},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begins\n"
    return process


@pytest.fixture
def temporary(tmp_path: Path) -> Iterator[Path]:
    """Where a program has its temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


def test_a_stream_tells_that_spark_starts_and_no_property_is_in_the_list_of_processes(
    program: list[str], tmp_path: Path, temporary: Path
) -> None:
    secrets = tmp_path / "secrets.conf"
    secrets.write_text("spark.hadoop.my.password = hunter2 = \\\\é\n")
    secrets.chmod(0o600)
    command = [*program, f"--spark_conf_file={secrets}", "--spark_conf=spark.my.token=hunter2"]
    with _begun(command, temporary) as process:
        said, seen = _watched(process)
    told, ended, passwords, runs = said.splitlines()
    assert told == "penstock: starting Spark"
    assert ended.startswith("penstock: done in ")
    assert passwords == "hunter2 = \\é hunter2 = \\é"
    assert runs.startswith("runs ")
    assert len([line for line in seen if "org.apache.spark" in line]) >= 1
    # The program's own command line is its user's business.
    assert [line for line in seen if "hunter2" in line and "program.py" not in line] == []
    assert list(temporary.glob("**/spark.properties")) == []


def _watched(process: subprocess.Popen[str]) -> tuple[str, set[str]]:
    """What a program says until it runs, and all command lines of its processes until it ends."""
    assert process.stdout is not None
    assert process.stdin is not None
    seen: set[str] = set()

    def watch() -> None:
        while process.poll() is None:
            seen.update(_family(process))
            time.sleep(0.1)

    watching = threading.Thread(target=watch)
    watching.start()
    said = ""
    for line in process.stdout:
        said += line
        if line.startswith("runs"):
            break
    process.stdin.close()
    said += process.stdout.read()
    process.wait()
    watching.join()
    return said, seen


@pytest.mark.parametrize(
    ("number", "wait_for"),
    [
        (signal.SIGINT, "spark-submit|launcher.Main"),
        (signal.SIGTERM, "SparkSubmit"),
        (signal.SIGINT, "a second of it"),
        pytest.param(signal.SIGTERM, "spark-submit|launcher.Main", marks=pytest.mark.soak),
        pytest.param(signal.SIGINT, "SparkSubmit", marks=pytest.mark.soak),
        pytest.param(signal.SIGTERM, "a second of it", marks=pytest.mark.soak),
    ],
)
def test_a_start_that_is_cut_short_leaves_no_java(
    program: list[str], temporary: Path, number: signal.Signals, wait_for: str
) -> None:
    process = _begun(program, temporary)
    deadline = time.monotonic() + 60
    pattern = re.compile("SparkSubmit" if "second" in wait_for else wait_for)
    while not any(map(pattern.search, _family(process))) and time.monotonic() < deadline:
        time.sleep(0.01)
    if "second" in wait_for:
        time.sleep(2)
    assert process.poll() is None
    os.kill(process.pid, number)
    said, _ = process.communicate(timeout=30)
    assert process.returncode in (128 + number, -number), said
    deadline = time.monotonic() + 10
    while (left := _family(process)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []
