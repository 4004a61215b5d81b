"""A Python worker before its first element: the work that it does, and the work that it leaves out."""

from __future__ import annotations

import contextlib
import gc
import socket
import subprocess
import sys
from types import ModuleType

import pytest

from penstock_spark.stages.stage import collect_less_often


def test_the_objects_of_modules_are_left_out_of_the_search_for_cycles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    thresholds = gc.get_threshold()
    try:
        gc.unfreeze()
        collect_less_often()
        before = gc.get_freeze_count()
        assert before > 0
        kept = [[] for _ in range(100_000)]  # type: ignore[var-annotated]
        collect_less_often()
        assert gc.get_freeze_count() <= before
        monkeypatch.setitem(sys.modules, "a_module_that_a_task_imports", ModuleType("a"))
        collect_less_often()
        # Of what was frozen before, a little may have died.
        assert gc.get_freeze_count() >= before + len(kept) // 2
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)


def test_what_spark_unpickles_before_a_query_imports_nothing_that_takes_long() -> None:
    # The processor of a level, which inherits from Spark's, and the accumulator that it has.
    program = (
        "import sys, pyspark.sql.streaming, pyspark.sql.types\n"
        "before = set(sys.modules)\n"
        "import penstock_spark.session.classic.accumulators, penstock_spark.stream.level_processor\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [
        "penstock_spark",
        "penstock_spark.session",
        "penstock_spark.session.backend",
        "penstock_spark.session.classic",
        "penstock_spark.session.classic.accumulators",
        "penstock_spark.session.spark_versions",
        "penstock_spark.session.worker_socket",
        "penstock_spark.stream",
        "penstock_spark.stream.level_processor",
        "penstock_spark.stream.state_server",
    ]


def test_workers_write_each_printed_line_at_once() -> None:
    # A datagram is what one write writes, so that lines of two workers cannot mix.
    written, read = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    program = (
        "from penstock_spark.session import worker_site\n"
        "from penstock_spark.stages.stage import tear_down\n"
        "worker_site._print_whole_lines()\n"
        "print('blue', 3)\n"
        "print('red', 5)\n"
        "print('no end', end='')\n"
        "tear_down([], failed=False)\n"
        "import os\n"
        "os._exit(0)"
    )
    with written, read:
        # Spark runs its workers in this way.
        subprocess.run([sys.executable, "-u", "-c", program], stdout=written, check=True)
        read.setblocking(False)
        writes = []
        with contextlib.suppress(BlockingIOError):
            while True:
                writes.append(read.recv(100))
    assert writes == [b"blue 3\n", b"red 5\n", b"no end"]
