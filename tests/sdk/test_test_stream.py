"""TestStream: events written down, checked as they are added."""

import pytest

from penstock import graph
from penstock.pipeline import Pipeline
from penstock.testing.test_stream import (
    ElementEvent,
    ProcessingTimeEvent,
    RecordedStream,
    SignalEvent,
    TestStream,
    TimingInfo,
    WatermarkEvent,
)
from penstock.transforms.core import Create
from penstock.transforms.window import TimestampedValue
from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Duration, Timestamp
from penstock.utils.windowed_value import WindowedValue


def read_of(pipeline):
    [step] = [step for step in pipeline.to_graph().steps if isinstance(step.primitive, graph.Read)]
    return step


def test_the_methods_record_events_and_elements_take_the_watermark_as_their_time():
    pipeline = Pipeline()
    stream = pipeline | (
        TestStream()
        .add_elements(["a"])
        .advance_watermark_to(10)
        .add_elements(["b", TimestampedValue("c", 3), WindowedValue("d", 4, ())])
        .add_elements(["e"], event_timestamp=5)
        .advance_processing_time(1.5)
        .advance_watermark_to_infinity()
    )
    assert not stream.is_bounded
    source = read_of(pipeline).primitive.source
    assert source.tags == (None,)
    assert source.events == (
        ElementEvent([TimestampedValue("a", MIN_TIMESTAMP)]),
        WatermarkEvent(10),
        ElementEvent([TimestampedValue("b", 10), TimestampedValue("c", 3), TimestampedValue("d", 4)]),
        ElementEvent([TimestampedValue("e", 5)]),
        ProcessingTimeEvent(Duration(1.5)),
        WatermarkEvent(MAX_TIMESTAMP),
    )


def test_each_output_has_its_tag_and_its_own_watermark():
    pipeline = Pipeline()
    stream = (
        TestStream(output_tags=["silent"])
        .advance_watermark_to(20, tag="letters")
        .advance_watermark_to(10, tag="digits")
        .add_elements(["a"], tag="letters")
        .add_elements([1], tag="digits")
    )
    outputs = pipeline | stream
    assert outputs.keys() == {"digits", "letters", "silent"}
    step = read_of(pipeline)
    assert sorted(output.tag for output in step.outputs) == ["digits", "letters", "silent"]
    times = [event.timestamped_values[0].timestamp for event in step.primitive.source.events[2:]]
    assert times == [Timestamp(20), Timestamp(10)]


def test_a_stream_without_events_has_the_main_output():
    assert not (Pipeline() | TestStream()).is_bounded
    assert TestStream().to_primitive().source.describe() == "RecordedStream(0 events)"


def test_percentiles_go_with_the_watermark_and_may_advance_where_it_stays():
    stream = (
        TestStream()
        .advance_watermark_to(MIN_TIMESTAMP, percentiles={0.9: 3, 0.5: Timestamp(4)})
        .advance_watermark_to(5, percentiles={0.5: 6})
        .advance_watermark_to(5, percentiles={0.5: 6, 0.9: 5.5})
        .advance_watermark_to(5, "other", {0.5: 5})
        .advance_watermark_to(7)
        .advance_watermark_to_infinity()
    )
    assert [event.percentiles for event in stream.to_primitive().source.events] == [
        ((0.5, Timestamp(4)), (0.9, Timestamp(3))),
        ((0.5, Timestamp(6)),),
        ((0.5, Timestamp(6)), (0.9, Timestamp(5.5))),
        ((0.5, Timestamp(5)),),
        (),
        (),
    ]
    assert WatermarkEvent(5, percentiles={0.9: 6, 0.5: 7}) == WatermarkEvent(5, percentiles={0.5: 7, 0.9: 6})
    assert len({WatermarkEvent(5), WatermarkEvent(5, percentiles={0.9: 6})}) == 2


@pytest.mark.parametrize(
    ("add", "error", "complaint"),
    [
        (
            lambda s: s.advance_watermark_to(5, percentiles={0.9: 6}).advance_watermark_to(
                5.5, None, {0.9: 5.5}
            ),
            AssertionError,
            r"of the percentile 0\.9 goes from Timestamp\(6\) to Timestamp\(5\.5\)",
        ),
        (
            lambda s: s.advance_watermark_to(5, percentiles={0.9: 6}).advance_watermark_to(5, None, {0.9: 6}),
            AssertionError,
            r"the watermark goes from Timestamp\(5\) to Timestamp\(5\)",
        ),
        (
            lambda s: s.advance_watermark_to(5).advance_watermark_to(5, percentiles={0.9: 5}),
            AssertionError,
            r"the watermark goes from Timestamp\(5\) to Timestamp\(5\)",
        ),
        (
            lambda s: s.advance_watermark_to(5).advance_watermark_to(4, percentiles={0.9: 9}),
            AssertionError,
            r"the watermark goes from Timestamp\(5\) to Timestamp\(4\)",
        ),
        (
            lambda s: s.advance_watermark_to(5, percentiles={0.9: 4}),
            ValueError,
            "behind the watermark itself",
        ),
        (lambda s: s.advance_watermark_to(5, percentiles={1: 6}), ValueError, "less than 1, but is 1"),
        (lambda s: s.advance_watermark_to(5, percentiles={0: 6}), ValueError, "more than 0 and less than 1"),
        (lambda s: s.advance_watermark_to(5, percentiles={"90%": 6}), ValueError, "but is '90%'"),
        (lambda s: s.send_signal(""), ValueError, "the name of the signal is empty"),
        (lambda s: s.send_signal(None), TypeError, "the name of a signal must be a string, not None"),
    ],
)
def test_percentiles_and_signals_that_cannot_be_are_refused_in_three_parts(add, error, complaint):
    with pytest.raises(error, match=f"(?s){complaint}.*hint: "):
        add(TestStream())


def test_a_signal_is_an_event_without_a_tag():
    stream = TestStream().send_signal("flush")
    assert stream.output_tags == set()
    assert stream.to_primitive().source.events == (SignalEvent("flush"),)


@pytest.mark.parametrize(
    ("add", "complaint"),
    [
        (lambda s: s.advance_watermark_to(5).advance_watermark_to(5), "the watermark goes from"),
        (lambda s: s.advance_watermark_to(MIN_TIMESTAMP), "the watermark goes from"),
        (lambda s: s.advance_processing_time(0), "processing time advances by"),
        (lambda s: s.advance_watermark_to_infinity().add_elements(["a"]), "MAX_TIMESTAMP or later"),
        (lambda s: TestStream(coder=None), "coder is None"),
        (lambda s: TestStream(events=[WatermarkEvent(1, "x")], output_tags=["y"]), "is not a subset of"),
        (lambda s: Pipeline() | Create([1]) | s, "applied to a PCollection"),
    ],
)
def test_what_cannot_happen_is_refused(add, complaint):
    with pytest.raises(AssertionError, match=complaint):
        add(TestStream())


def test_an_endpoint_is_refused():
    with pytest.raises(ValueError, match="does not support an endpoint"):
        TestStream(endpoint="localhost:1")


def test_given_events_bring_their_tags():
    stream = TestStream(events=[WatermarkEvent(1, "x"), ProcessingTimeEvent(2), ElementEvent([], None)])
    assert stream.output_tags == {"x", None}
    assert stream.to_primitive().source.tags == (None, "x")
    assert not RecordedStream(()).is_bounded


def test_events_compare_and_sort_within_their_kind():
    assert WatermarkEvent(1) < WatermarkEvent(2)
    assert ProcessingTimeEvent(1) < ProcessingTimeEvent(2)
    assert WatermarkEvent(1) != WatermarkEvent(1, "x")
    assert WatermarkEvent(1) != ProcessingTimeEvent(1)
    assert len({WatermarkEvent(1), WatermarkEvent(1)}) == 1
    with pytest.raises(TypeError):
        _ = WatermarkEvent(1) < ProcessingTimeEvent(1)


def test_timing_info_takes_seconds():
    assert TimingInfo(1, 2.5) == TimingInfo(Timestamp(1), Timestamp(2.5))
