"""What a user sees, and what stays behind, when the process is killed that starts Spark's Python workers."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = """
import os
import signal
import sys
import time

import penstock as beam
from penstock.options.pipeline_options import PipelineOptions

BEGUN = sys.argv[1]


def take_long(element):
    with open(BEGUN, "a") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(300)
    return element


def parent_of(process):
    with open(f"/proc/{process}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])


if __name__ == "__main__":
    pipeline = beam.Pipeline(options=PipelineOptions(["--mode=streaming", "--master=local[2]", "--progress=off"]))
    _ = pipeline | beam.Create(["a"]) | beam.Map(lambda x: (x, 1)) | beam.GroupByKey() | "Long" >> beam.Map(take_long)
    result = pipeline.run()
    while not os.path.exists(BEGUN) or not open(BEGUN).read().endswith("\\n"):
        time.sleep(0.1)
    os.kill(parent_of(int(open(BEGUN).read().split()[0])), signal.SIGKILL)
    result.cancel()
    # Spark waits two seconds for a worker, and then tries to kill it.
    time.sleep(5)
    print(result.state)
"""


@pytest.mark.soak
@pytest.mark.skipif(sys.platform != "linux", reason="it looks for processes in /proc")
def test_a_run_that_is_cancelled_after_its_daemon_was_killed_says_nothing_and_leaves_no_worker(
    tmp_path: Path,
) -> None:
    program, begun = tmp_path / "program.py", tmp_path / "begun"
    program.write_text(PROGRAM)
    ended = subprocess.run(
        [sys.executable, str(program), str(begun)], capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.stdout == "CANCELLED\n", ended.stderr
    assert "java" not in ended.stderr
    until = time.monotonic() + 30
    for worker in begun.read_text().split():
        while Path(f"/proc/{worker}").exists():
            assert time.monotonic() < until, "a worker stays"
            time.sleep(0.1)
