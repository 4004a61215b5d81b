"""What a Python worker does before its first element, and what it leaves out."""

from __future__ import annotations

import gc
import subprocess
import sys
from types import ModuleType

import pytest

from penstock_spark.worker.stage import collect_less_often


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
        "import penstock_spark.reports.accumulators, penstock_spark.stream.level_processor\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [
        "penstock_spark",
        "penstock_spark.reports",
        "penstock_spark.reports.accumulators",
        "penstock_spark.session",
        "penstock_spark.session.spark_versions",
        "penstock_spark.session.worker_socket",
        "penstock_spark.stream",
        "penstock_spark.stream.level_processor",
    ]
