"""A return value of ``start_bundle`` is an error, and not lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import penstock as beam
from penstock_spark.reports.spark_errors import translate
from tests.runner.plain_runner import run_plain


class Returning(beam.DoFn):
    def start_bundle(self) -> list[int]:
        return [1]

    def process(self, element: int) -> None:
        pass


class Yielding(Returning):
    def start_bundle(self) -> Iterator[int]:  # type: ignore[override]
        yield 1


@pytest.mark.parametrize("dofn", [Returning(), Yielding()])
def test_a_start_bundle_that_gives_outputs_is_an_error_that_names_the_step(dofn: beam.DoFn) -> None:
    pipeline = beam.Pipeline()
    _ = pipeline | beam.Create([1]) | "Do" >> beam.ParDo(dofn)
    with pytest.raises(Exception, match="penstock-failure") as caught:
        run_plain(pipeline)
    error = translate(caught.value)
    assert isinstance(error, RuntimeError)
    assert "start_bundle should not output any elements" in str(error)
    assert "'Do'" in str(error)
