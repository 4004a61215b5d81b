"""DoFns with state and timers in a batch: elements by event time, then the end of all input, with the real workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import penstock as beam
from attribution import RECORDS, Attribute
from penstock.coders import FastPrimitivesCoder, StrUtf8Coder
from penstock.error import UnsupportedByRunner
from penstock.options.pipeline_options import PipelineOptions
from penstock.pvalue import AsDict
from penstock.runners.runner import create_runner
from penstock.transforms.timeutil import TimeDomain
from penstock.transforms.userstate import (
    BagStateSpec,
    ReadModifyWriteStateSpec,
    TimerSpec,
    on_timer,
    on_window_expiration,
)
from penstock.transforms.window import FixedWindows, Sessions, TimestampedValue
from tests.runner.plain_runner import Settings, collect, run_plain

SETTINGS = pytest.mark.parametrize("settings", [Settings(1, 1), Settings(3, 2), Settings(4, 1000, b"salt")])


def timed(key: str, value: Any, seconds: float) -> Any:
    return TimestampedValue((key, value), seconds)


def elements(pipeline: beam.Pipeline, *given: tuple[str, Any, float]) -> Any:
    return pipeline | beam.Create(list(given)) | beam.MapTuple(timed)


@SETTINGS
def test_the_book_s_attribution(settings: Settings) -> None:
    pipeline = beam.Pipeline()
    records = [("UserX", record, record.seconds) for record in RECORDS.values()]
    found = collect(elements(pipeline, *records) | beam.ParDo(Attribute()))
    run_plain(pipeline, settings)
    assert [line.split(" ")[0] for line in found] == ["imp=123", "imp=456"]


class Previous(beam.DoFn):
    """Gives each element with the one before it, and counts, on the side, what had none."""

    LAST = ReadModifyWriteStateSpec("last", FastPrimitivesCoder())

    def setup(self) -> None:
        self.is_set_up = True

    def process(
        self, element: Any, factor: int, names: Any, last: Any = beam.DoFn.StateParam(LAST)
    ) -> Iterator[Any]:
        assert self.is_set_up
        key, value = element
        before = last.read()
        if before is None:
            yield beam.pvalue.TaggedOutput("first", names[key])
        yield key, before, value * factor
        last.write(value)


@SETTINGS
def test_elements_come_by_event_time_and_state_is_of_the_window(settings: Settings) -> None:
    pipeline = beam.Pipeline()
    names = pipeline | "Names" >> beam.Create([("a", "Ann"), ("b", "Ben")])
    given = elements(pipeline, ("a", 3, 13), ("a", 2, 2), ("b", 5, 1), ("a", 1, 1), ("a", 4, 14))
    main, first = (
        given
        | beam.WindowInto(FixedWindows(10))
        | beam.ParDo(Previous(), 10, names=AsDict(names)).with_outputs("first", main="main")
    )
    found, firsts = collect(main), collect(first, "Firsts")
    summed = collect(
        main | beam.MapTuple(lambda key, _, value: (key, value)) | beam.CombinePerKey(sum), "Sums"
    )
    run_plain(pipeline, settings)
    assert sorted(found, key=repr) == [
        ("a", 1, 20),
        ("a", 3, 40),
        ("a", None, 10),
        ("a", None, 30),
        ("b", None, 50),
    ]
    assert sorted(firsts) == ["Ann", "Ann", "Ben"]
    assert sorted(summed) == [("a", 30), ("a", 70), ("b", 50)]


class Late(beam.DoFn):
    """Says when its timers fire."""

    SEEN = BagStateSpec("seen", StrUtf8Coder())
    BY_WATERMARK = TimerSpec("by watermark", TimeDomain.WATERMARK)
    BY_CLOCK = TimerSpec("by clock", TimeDomain.REAL_TIME)

    def process(
        self,
        element: Any,
        timestamp: Any = beam.DoFn.TimestampParam,
        seen: Any = beam.DoFn.StateParam(SEEN),
        by_watermark: Any = beam.DoFn.TimerParam(BY_WATERMARK),
        by_clock: Any = beam.DoFn.TimerParam(BY_CLOCK),
    ) -> None:
        seen.add(element[1])
        by_watermark.set(timestamp + 2, dynamic_timer_tag=element[1])
        by_clock.set(timestamp + 100)

    @on_timer(BY_WATERMARK)
    def one(
        self,
        tag: Any = beam.DoFn.DynamicTimerTagParam,
        timestamp: Any = beam.DoFn.TimestampParam,
        seen: Any = beam.DoFn.StateParam(SEEN),
    ) -> Iterator[Any]:
        yield tag, float(timestamp), sorted(seen.read())

    @on_timer(BY_CLOCK)
    def other(self, key: Any = beam.DoFn.KeyParam) -> Iterator[Any]:
        yield "clock", key

    @on_window_expiration
    def end(
        self, window: Any = beam.DoFn.WindowParam, seen: Any = beam.DoFn.StateParam(SEEN)
    ) -> Iterator[Any]:
        yield "end", float(window.start), sorted(seen.read())


@SETTINGS
def test_timers_fire_in_their_order_when_all_input_is_read(settings: Settings) -> None:
    pipeline = beam.Pipeline()
    given = elements(pipeline, ("a", "z", 8), ("a", "x", 1), ("a", "w", 12), ("a", "y", 6))
    found = collect(given | beam.WindowInto(FixedWindows(10)) | beam.ParDo(Late()))
    run_plain(pipeline, settings)
    assert found == [
        ("clock", "a"),
        ("clock", "a"),
        ("x", 3.0, ["x", "y", "z"]),
        ("y", 8.0, ["x", "y", "z"]),
        ("z", 10.0, ["x", "y", "z"]),
        ("end", 0.0, ["x", "y", "z"]),
        ("w", 14.0, ["w"]),
        ("end", 10.0, ["w"]),
    ]


class Due(beam.DoFn):
    """Its timer by the clock says when it was due."""

    BY_CLOCK = TimerSpec("by clock", TimeDomain.REAL_TIME)

    def process(self, element: Any, by_clock: Any = beam.DoFn.TimerParam(BY_CLOCK)) -> None:
        by_clock.set(element[1])

    @on_timer(BY_CLOCK)
    def tell(self, at: Any = beam.DoFn.TimestampParam) -> Iterator[Any]:
        yield float(at)


@SETTINGS
def test_a_timer_by_the_clock_knows_when_it_was_due_and_its_outputs_have_an_event_time(
    settings: Settings,
) -> None:
    pipeline = beam.Pipeline()
    due = elements(pipeline, ("a", 40, 3), ("b", 50, 5)) | beam.ParDo(Due())
    found = collect(due | beam.Map(lambda at, event_time=beam.DoFn.TimestampParam: (at, float(event_time))))
    run_plain(pipeline, settings)
    assert sorted(found) == [(40.0, 3.0), (50.0, 5.0)]


class Ticking(beam.DoFn):
    """Its timer sets itself anew, for ever."""

    TICK = TimerSpec("tick", TimeDomain.REAL_TIME)

    def process(self, element: Any, tick: Any = beam.DoFn.TimerParam(TICK)) -> None:
        tick.set_relative(10)

    @on_timer(TICK)
    def again(self, key: Any = beam.DoFn.KeyParam, tick: Any = beam.DoFn.TimerParam(TICK)) -> Iterator[Any]:
        tick.set_relative(10)
        yield key


def test_a_batch_does_not_wait_for_a_timer_that_sets_itself_anew() -> None:
    pipeline = beam.Pipeline()
    found = collect(elements(pipeline, ("a", 1, 1), ("a", 2, 2), ("b", 1, 1)) | beam.ParDo(Ticking()))
    run_plain(pipeline)
    assert sorted(found) == ["a", "b"]


def test_a_timer_beyond_the_end_of_its_window_is_refused_with_the_step_named() -> None:
    pipeline = beam.Pipeline()
    given = elements(pipeline, ("a", "z", 9))
    collect(given | beam.WindowInto(FixedWindows(10)) | "Late" >> beam.ParDo(Late()))
    with pytest.raises(Exception, match=r"at step 'Late'"):
        run_plain(pipeline)


def test_state_in_windows_that_merge_is_refused() -> None:
    pipeline = beam.Pipeline()
    given = elements(pipeline, ("a", "z", 9)) | beam.WindowInto(Sessions(10))
    collect(given | "Late" >> beam.ParDo(Late()))
    with pytest.raises(UnsupportedByRunner, match=r"the windows of Sessions\(.*\) merge\n  at step 'Late'"):
        create_runner("SparkRunner").compiled(pipeline.to_graph(), PipelineOptions().view_as(_options()))


def _options() -> Any:
    from penstock.options.spark import SparkOptions

    return SparkOptions
