"""What errors that come from Spark have in common, for the tests that look at them."""

from __future__ import annotations

import penstock as beam
from penstock.options.pipeline_options import PipelineOptions

CHARACTERS_MAX = 1_500


def assert_readable(error, *parts):
    """The error has three parts, these among them, and no word of Java's."""
    text = str(error)
    for part in (*parts, "hint: "):
        assert part in text, text
    for word in ("py4j", "Py4J", "org.apache", "java.", "\tat "):
        assert word not in text
    assert len(text) < CHARACTERS_MAX
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    return text


def failure_of(build, **options):
    """What the run of a pipeline raises."""
    pipeline = beam.Pipeline(options=PipelineOptions([], **options))
    build(pipeline)
    try:
        pipeline.run().wait_until_finish()
    except Exception as error:
        return error
    raise AssertionError("nothing has failed")
