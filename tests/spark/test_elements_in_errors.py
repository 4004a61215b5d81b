"""Errors keep the offending element to themselves unless the user asks for it."""

from __future__ import annotations

import pytest

import penstock as beam
from penstock.testing.test_pipeline import TestPipeline

pytestmark = pytest.mark.spark

SECRET = 271828182845


def refuse(value):
    if value == SECRET:
        raise ValueError("unfit")
    return [value]


class Refuse(beam.DoFn):
    def process(self, element, at=beam.DoFn.TimestampParam):
        yield from refuse(element)


STEPS = {
    "map": beam.Map(refuse),
    "filter": beam.Filter(refuse),
    "flat map": beam.FlatMap(refuse),
    "flat map of many times": beam.Map(lambda x: beam.window.TimestampedValue(x, x))
    | "FlatMap" >> beam.FlatMap(refuse),
    "with the timestamp": beam.FlatMap(lambda x, at=beam.DoFn.TimestampParam: refuse(x)),
}


def failure_of(step, **options):
    pipeline = TestPipeline(**options)
    _ = pipeline | beam.Create([1, 2, SECRET, 3]) | step
    with pytest.raises(ValueError, match="unfit") as failed:
        pipeline.run()
    return "\n".join([str(failed.value), *failed.value.__notes__])


@pytest.mark.parametrize("name", STEPS)
def test_the_failing_element_is_told_only_on_demand(name, capfd):
    hidden = failure_of(STEPS[name])
    assert str(SECRET) not in hidden + "".join(capfd.readouterr())
    assert "show_elements_in_errors" in hidden
    options = beam.options.pipeline_options.PipelineOptions(["--show_elements_in_errors"])
    assert f"the element is {SECRET}" in failure_of(STEPS[name], options=options)
