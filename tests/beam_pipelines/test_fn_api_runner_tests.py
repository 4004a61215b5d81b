"""The tests of Beam's in-process runner, unchanged, on Spark."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("apache_beam")
import apache_beam as beam
from apache_beam.runners.portability.fn_api_runner import fn_runner_test

from penstock_spark.beam import BeamRunner
from tests.beam_pipelines.beams_tests import case_of

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]

DRAIN = "a test cannot ask for a drain: penstock drains a running stream"
MISSES = {
    "test_error_traceback_includes_user_code": "lines in Beam's own modules are shown with full_trace only",
    "test_batch_rebatch_pardos": "elements are taken out of Beam's batches without a warning",
    "test_pack_combiners": "the steps of several CombineFns over one input stay apart, and so do their counters",
    "test_sdf_default_truncate_when_unbounded": DRAIN,
    "test_sdf_with_truncate": DRAIN,
}


def create_pipeline(self: Any, is_drain: bool = False) -> Any:
    # A batch calls bundle finalizers at its end; a stream does when the outputs of a part of the work are committed.
    mode = {"mode": "streaming"} if self._testMethodName == "test_register_finalizations" else {}
    return beam.Pipeline(runner=BeamRunner(shuffle_partitions=2, **mode))


TestOnSpark = case_of(
    fn_runner_test.FnApiRunnerTest,
    lambda test: True,
    {f"FnApiRunnerTest.{name}": reason for name, reason in MISSES.items()},
    create_pipeline=create_pipeline,
)
