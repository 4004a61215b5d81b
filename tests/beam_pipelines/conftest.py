"""Beam's pipelines run on the session of all tests."""

from __future__ import annotations

import pytest

pytest.importorskip("apache_beam")


@pytest.fixture(autouse=True)
def _on_spark(spark: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beam's own tests make a ``TestPipeline``, which takes its runner from here."""
    from apache_beam.testing.test_pipeline import TestPipeline

    options = "--runner=penstock_spark.beam.BeamRunner --shuffle_partitions=2"
    monkeypatch.setattr(TestPipeline, "pytest_test_pipeline_options", options)
