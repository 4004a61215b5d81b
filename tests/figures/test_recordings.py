"""Recordings of the bare machine and of TestStreams: what a drawing is given."""

from __future__ import annotations

import pytest

from penstock.coders.coders import Coder, PickleCoder
from penstock.elements.bounded_window import BoundedWindow
from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import (
    MAX_MICROS,
    MIN_MICROS,
    AddElement,
    AdvanceClock,
    AdvanceWatermark,
    EndMicroBatch,
    Event,
)
from penstock.machines.reference_engine import ReferenceEngine, play
from penstock.testing.test_stream import TestStream
from penstock.transforms.combiners import MeanCombineFn
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterProcessingTime, Repeatedly
from penstock.transforms.window import FixedWindows, GlobalWindows, NonMergingWindowFn, TimestampedValue
from penstock.utils.timestamp import Timestamp
from penstock.utils.windowed_value import PaneInfoTiming, ValueKind
from penstock.windows.windowing import Windowing
from penstock_figures import recording_of_played, recording_of_test_stream, value_text

SECOND = 1_000_000
TEN_SECONDS = Windowing(FixedWindows(10))


def at(seconds: float) -> int:
    return round(seconds * SECOND)


def test_elements_panes_and_the_watermark_are_recorded_at_their_own_times() -> None:
    events: list[Event] = [
        AddElement("a", at(3), at(20), key="k"),
        AdvanceWatermark(at(10), at(30)),
        AddElement("b", at(4), at(40), key="k"),
    ]
    recording = recording_of_played(events, play(GroupingMachine(TEN_SECONDS), events), title="A")
    first, late = recording.inputs
    assert (first.event_micros, first.clock_micros, first.key, first.value) == (at(3), at(20), "k", "a")
    assert (first.is_dropped, late.is_dropped) == (False, True)
    (pane,) = recording.panes
    assert (pane.start_micros, pane.end_micros, pane.clock_micros) == (0, at(10), at(30))
    assert (pane.key, pane.value, pane.timing, pane.index) == ("k", "[a]", PaneInfoTiming.ON_TIME, 0)
    assert recording.watermark == ((at(30), at(10)),)
    assert (recording.title, recording.mode, recording.counts_steps) == ("A", "streaming", False)


def test_a_pane_that_the_clock_brings_is_recorded_when_it_was_due() -> None:
    windowing = Windowing(
        FixedWindows(100), Repeatedly(AfterProcessingTime(5)), AccumulationMode.ACCUMULATING
    )
    events: list[Event] = [AddElement("a", at(3), at(20)), AdvanceClock(at(60))]
    recording = recording_of_played(events, play(GroupingMachine(windowing), events))
    assert [pane.clock_micros for pane in recording.panes] == [at(25)]


@pytest.mark.parametrize("clock_micros", [None, at(7)])
def test_where_the_clock_stands_still_each_event_is_a_step(clock_micros: int | None) -> None:
    events: list[Event] = [
        AddElement("a", at(3)),
        AdvanceWatermark(at(10), clock_micros),
        AddElement("b", at(4)),
    ]
    recording = recording_of_played(events, play(GroupingMachine(TEN_SECONDS), events))
    assert recording.counts_steps
    assert [each.clock_micros for each in recording.inputs] == [at(1), at(3)]
    assert [pane.clock_micros for pane in recording.panes] == [at(2)]
    assert recording.watermark == ((at(2), at(10)),)


def test_an_element_that_comes_after_the_watermark_at_one_instant_is_behind_it() -> None:
    events: list[Event] = [
        AdvanceClock(at(1)),
        AddElement("a", at(3), at(5)),
        AdvanceWatermark(at(10), at(5)),
        AddElement("b", at(4), at(5)),
    ]
    recording = recording_of_played(events, [])
    assert [each.clock_micros for each in recording.inputs] == [at(5), at(5) + 1]


def test_rounds_take_the_watermark_to_the_end_of_time_and_back() -> None:
    events: list[Event] = [
        AddElement("a", at(3), at(5)),
        AdvanceWatermark(at(10), at(6)),
        EndMicroBatch(at(60)),
        EndMicroBatch(at(120)),
    ]
    machine = GroupingMachine(TEN_SECONDS)
    recording = recording_of_played(events, play(machine, events, "micro_batch"), mode="micro_batch")
    assert recording.watermark == (
        (at(60), MAX_MICROS),
        (at(60), MIN_MICROS),
        (at(120), MAX_MICROS),
        (at(120), MIN_MICROS),
    )
    assert [pane.clock_micros for pane in recording.panes] == [at(60)]


def test_a_batch_gives_everything_after_its_last_event() -> None:
    events: list[Event] = [AddElement("b", at(14), at(1)), AddElement("a", at(3), at(9))]
    recording = recording_of_played(events, play(GroupingMachine(TEN_SECONDS), events, "batch"), mode="batch")
    assert [each.value for each in recording.inputs] == ["b", "a"]
    assert [(pane.value, pane.clock_micros) for pane in recording.panes] == [("[a]", at(9)), ("[b]", at(9))]
    assert recording.watermark == ((at(9), MAX_MICROS),)


@pytest.mark.parametrize("ends_input", [True, False])
def test_the_end_of_the_input_takes_the_watermark_to_the_end_of_time(ends_input: bool) -> None:
    events: list[Event] = [AddElement("a", at(3), at(4)), AdvanceWatermark(at(5), at(6))]
    player = ReferenceEngine(GroupingMachine(TEN_SECONDS))
    played = [one for event in events for one in player.play(event)]
    played += player.finish() if ends_input else []
    recording = recording_of_played(events, played)
    assert recording.watermark == ((at(6), at(5)), (at(6), MAX_MICROS))[: 1 + ends_input]
    assert len(recording.panes) == ends_input


def test_retractions_are_recorded_as_such() -> None:
    windowing = Windowing(
        GlobalWindows(), Repeatedly(AfterCount(1)), AccumulationMode.ACCUMULATING_AND_RETRACTING
    )
    events: list[Event] = [
        AddElement(1, at(3)),
        AddElement(1, at(3), kind=ValueKind.DELETE),
        AddElement(2, at(3)),
    ]
    machine = GroupingMachine(windowing, None, input_retracts=True)
    recording = recording_of_played(events, play(machine, events))
    assert [each.is_retraction for each in recording.inputs] == [False, True, False]
    assert [(pane.value, pane.is_retraction) for pane in recording.panes][:2] == [
        ("[1]", False),
        ("[1]", True),
    ]
    assert (recording.panes[0].start_micros, recording.panes[0].end_micros) == (MIN_MICROS, MAX_MICROS)


class EndOfTen(BoundedWindow):
    """A window of a user's that says only where it ends."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EndOfTen)

    def __hash__(self) -> int:
        return 10


class InOneWindow(NonMergingWindowFn):
    def assign(self, assign_context: object) -> list[BoundedWindow]:
        return [EndOfTen(10)]

    def get_window_coder(self) -> Coder:
        return PickleCoder()


def test_a_window_that_does_not_say_where_it_begins_begins_with_time_itself() -> None:
    events: list[Event] = [AddElement("a", at(3)), AdvanceWatermark(at(10))]
    recording = recording_of_played(events, play(GroupingMachine(Windowing(InOneWindow())), events))
    assert [(pane.start_micros, pane.end_micros) for pane in recording.panes] == [(MIN_MICROS, at(10))]


def test_a_test_stream_is_played_by_its_own_clock() -> None:
    stream = (
        TestStream()
        .advance_processing_time(100)
        .add_elements([TimestampedValue(("a", 5), 3), TimestampedValue(("b", 7), 4)])
        .advance_processing_time(20)
        .advance_watermark_to(10)
        .add_elements([("a", 1)], event_timestamp=2)
    )
    recording = recording_of_test_stream(stream, TEN_SECONDS, sum)
    assert [(each.key, each.value, each.clock_micros) for each in recording.inputs] == [
        ("a", "5", at(100)),
        ("b", "7", at(100)),
        ("a", "1", at(120) + 1),
    ]
    assert [each.is_dropped for each in recording.inputs] == [False, False, True]
    assert [(pane.key, pane.value, pane.clock_micros) for pane in recording.panes] == [
        ("a", "5", at(120)),
        ("b", "7", at(120)),
    ]
    assert recording.watermark == ((at(120), at(10)), (at(120), MAX_MICROS))


@pytest.mark.parametrize("mode", ["batch", "micro_batch", "streaming"])
def test_every_mode_takes_a_test_stream_to_its_end(mode: str) -> None:
    stream = TestStream().add_elements([4, 8], event_timestamp=3).end_micro_batch()
    recording = recording_of_test_stream(stream, TEN_SECONDS, MeanCombineFn(), mode, title="means", epoch=1)
    assert [(pane.key, pane.value) for pane in recording.panes] == [("", "6")]
    assert (recording.title, recording.mode) == ("means", mode)


def test_of_several_outputs_one_is_played() -> None:
    stream = TestStream().add_elements(["a"], tag="left").add_elements(["b"], tag="right")
    recording = recording_of_test_stream(stream, TEN_SECONDS, tag="right")
    assert [each.value for each in recording.inputs] == ["b"]
    with pytest.raises(ValueError, match=r"has no output None\n  at .*\n  hint: pass the tag"):
        recording_of_test_stream(stream, TEN_SECONDS)


def test_there_is_no_other_mode() -> None:
    with pytest.raises(ValueError, match="the mode 'daily' is unknown"):
        recording_of_test_stream(TestStream().add_elements(["a"]), TEN_SECONDS, mode="daily")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (51, "51"),
        (2.0, "2"),
        (1 / 3, "0.3333"),
        (123456.5, "123456"),
        (float("nan"), "nan"),
        (True, "True"),
        (Timestamp(5), "Timestamp(5)"),
        (["b", (1, 2.5)], "[b, (1, 2.5)]"),
        ([1] * 1000, "[" + "1, " * 12 + "1,…"),
        ("x" * 41, "x" * 39 + "…"),
    ],
)
def test_values_are_short_texts(value: object, text: str) -> None:
    assert value_text(value) == text
