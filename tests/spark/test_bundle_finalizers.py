"""Bundle finalizers on Spark: what is registered runs once the bundle is done, and may fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import penstock as beam
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to


class Finalizing(beam.DoFn):
    def __init__(self, log: Path) -> None:
        super().__init__()
        self.log = log

    def process(self, element: int, finalizer: Any = beam.DoFn.BundleFinalizerParam) -> Iterator[int]:
        finalizer.register(self.fail)
        finalizer.register(lambda: self.log.write_text("finalized"))
        yield element

    def fail(self) -> None:
        raise RuntimeError("no acknowledgement")


def test_a_finalizer_that_raises_neither_fails_the_run_nor_keeps_the_others_from_running(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    with TestPipeline() as p:
        assert_that(p | beam.Create([1]) | beam.ParDo(Finalizing(log)), equal_to([1]))
    assert log.read_text() == "finalized"
