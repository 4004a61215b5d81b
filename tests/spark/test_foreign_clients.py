"""A program that takes the only connection of a task to Spark's state: the task is tried again."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PROGRAM = """
import socket
import sys
import time

import penstock as beam
from penstock.options.pipeline_options import PipelineOptions


def disturb(element):
    '''Has this worker come second: the first bytes of Kafka's client come before it, as long as this process lives.'''
    from penstock_spark.stream import state_server
    from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorApiClient as Client

    if not hasattr(Client, "connect"):
        Client.connect = Client.__init__
        state_server.FIRST_ANSWER_SECONDS = 3.0

        def connect_second(self, port, *arguments, **keywords):
            self.foreign = socket.create_connection(("localhost", port))
            self.foreign.sendall(b"\\0\\0\\0@" + b"x" * 64)
            time.sleep(0.5)
            self.connect(port, *arguments, **keywords)

        Client.__init__ = connect_second
    return element


if __name__ == "__main__":
    options = PipelineOptions(["--mode=streaming", "--shuffle_partitions=2", "--progress=off"], master=sys.argv[1])
    pipeline = beam.Pipeline(options=options)
    ones = pipeline | beam.Create(list("abab")) | beam.Map(disturb) | "Pair" >> beam.Map(lambda x: (x, 1))
    _ = ones | beam.CombinePerKey(sum) | "Show" >> beam.Map(print)
    result = pipeline.run()
    result.wait_until_finish()
    print(result.state)
"""


@pytest.mark.soak
@pytest.mark.parametrize(("master", "is_tried_again"), [("local[2,4]", True), ("local[2]", False)])
def test_a_task_whose_connection_another_program_has_taken_is_tried_again(
    tmp_path: Path, master: str, is_tried_again: bool
) -> None:
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    # Without a limit, it would never end.
    ended = subprocess.run(
        [sys.executable, str(program), master], capture_output=True, text=True, timeout=600, check=False
    )
    if is_tried_again:
        assert ended.stdout == "DONE\n", ended.stderr
        # Workers print to the standard error.
        shown = [line for line in ended.stderr.splitlines() if line.startswith("(")]
        assert sorted(shown) == ["('a', 2)", "('b', 2)"]
    else:
        assert "RunnerError: Spark's state has not answered a task for 3 seconds\n" in ended.stderr
        assert "hint: run the program again" in ended.stderr
