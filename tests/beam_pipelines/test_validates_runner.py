"""The tests by which Beam validates a runner, unchanged."""

from __future__ import annotations

import pytest

pytest.importorskip("apache_beam")
from tests.beam_pipelines.beams_tests import cases_of, is_marked

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]

MODULES = [
    "metrics.metric_test",
    "ml.inference.base_test",
    "pipeline_test",
    "transforms.combinefn_lifecycle_test",
    "transforms.combiners_test",
    "transforms.deduplicate_test",
    "transforms.dofn_lifecycle_test",
    "transforms.ptransform_test",
    "transforms.sideinputs_test",
    "transforms.util_test",
]

MISSES = {
    "SideInputsTest.test_multi_triggered_gbk_side_input": (
        "an element waits for the first pane of its side input, as the model says; the test expects the last one"
    ),
}

globals().update(cases_of(MODULES, lambda test: is_marked(test, "it_validatesrunner"), MISSES))
