"""Beam's pipelines run on the session of all tests."""

from __future__ import annotations

import pytest

pytest.importorskip("apache_beam")


@pytest.fixture(autouse=True)
def _on_spark(spark: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beam's own tests run here, whether they name no runner, or one of Beam's local ones by its short name."""
    from apache_beam import pipeline
    from apache_beam.testing.test_pipeline import TestPipeline

    from penstock_spark.beam import BeamRunner

    create_runner = pipeline.create_runner

    def on_spark(name: str) -> object:
        local = ("DirectRunner", "FnApiRunner")
        return BeamRunner(shuffle_partitions=2) if name in local else create_runner(name)

    monkeypatch.setattr(pipeline, "create_runner", on_spark)
    options = "--runner=penstock_spark.beam.BeamRunner --shuffle_partitions=2"
    monkeypatch.setattr(TestPipeline, "pytest_test_pipeline_options", options)


@pytest.fixture(autouse=True)
def _own_coders(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers, in either registry, is forgotten when it ends."""
    from apache_beam.coders import registry as beams

    from penstock.coders import registry

    for each in (beams, registry):
        monkeypatch.setattr(each, "custom_types", [*each.custom_types])
