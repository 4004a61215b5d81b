"""A run that records what happens at its groupings, and draws it: in every mode, on Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

import penstock as beam
from penstock.io import WriteToMemory
from penstock.testing.test_stream import TestStream
from penstock.transforms.window import FixedWindows, TimestampedValue
from penstock.windows.windowing import Windowing
from penstock_figures import recording_of_test_stream

SCORES = [("ann", 5, 2), ("ben", 7, 3), ("ann", 3, 8), ("ann", 1, 14)]


def timed(player, points, seconds):
    return TimestampedValue((player, points), seconds)


class Timed(beam.PTransform):
    """The same for a batch."""

    def expand(self, pbegin):
        return pbegin | beam.Create(SCORES) | beam.MapTuple(timed)


def scores() -> TestStream:
    stream = TestStream()
    for score in SCORES:
        stream = stream.add_elements([timed(*score)]).advance_processing_time(2)
    return stream.advance_watermark_to(10).advance_processing_time(3)


def in_order(recording):
    return replace(
        recording,
        inputs=tuple(sorted(recording.inputs, key=lambda one: (one.clock_micros, one.key))),
        panes=tuple(sorted(recording.panes, key=lambda one: (one.clock_micros, one.key, one.start_micros))),
    )


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_the_figure_of_a_run_is_that_of_the_bare_machine(spark, mode):
    pipeline = beam.Pipeline(spark=spark, mode=mode, record_events=100)
    pairs = pipeline | (Timed() if mode == "batch" else scores())
    sums = pairs | beam.WindowInto(FixedWindows(10)) | "Sum" >> beam.CombinePerKey(sum)
    _ = sums | WriteToMemory([])
    result = pipeline.run()
    result.wait_until_finish()
    found = in_order(result.recording(sums))
    expected = in_order(recording_of_test_stream(scores(), Windowing(FixedWindows(10)), sum, mode))
    # A batch gives all panes at once, a stream those of the first window when the watermark has passed it.
    order = ["8", "1", "7"] if mode == "batch" else ["8", "7", "1"]
    assert [one.value for one in found.panes] == [one.value for one in expected.panes] == order
    if mode == "streaming":
        assert found == replace(expected, title="Sum")
    else:
        assert [(one.event_micros, one.key, one.value) for one in found.inputs] == [
            (one.event_micros, one.key, one.value) for one in expected.inputs
        ]
    assert result.figure(sums).svg.startswith("<svg")


def test_a_run_that_was_not_asked_to_has_recorded_nothing(spark):
    pipeline = beam.Pipeline(spark=spark)
    sums = pipeline | beam.Create([("a", 1)]) | beam.CombinePerKey(sum)
    _ = sums | WriteToMemory([])
    result = pipeline.run()
    with pytest.raises(ValueError, match="record_events"):
        result.figure(sums)
