"""The timeline of recorded input: what happens when, at each source whose events the program lists."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any, NamedTuple

from penstock.graph import InlineValues, Read, Step
from penstock.io.streaming import recorded_stream
from penstock.machines.records import MAX_MICROS
from penstock.machines.trigger_machine import WATERMARK
from penstock_spark.passes.levels import origin_of
from penstock_spark.plan.stream_plan import StreamPlan
from penstock_spark.stream.program import RecordedSource, Timeline

_COMPLETE = {WATERMARK: MAX_MICROS}


class _Happening(NamedTuple):
    """An event of one TestStream, in the order of the events of all streams."""

    round: int  # How many micro-batches have ended in its stream before.
    clock_micros: int  # Processing time in its stream.
    stream: int  # The number of the stream.
    number: int  # The number of the event in its stream.
    event: recorded_stream.Event


def record_input(
    plan: StreamPlan, events_per_batch: int | None
) -> tuple[Timeline, tuple[RecordedSource, ...]]:
    """Returns the timeline of a plan's played sources, and the events of each.

    Values of the program come at the first step, and then their watermark goes to infinity. Each event of a TestStream
    has its own step, at whose end everything that is due in processing time fires, unless the clock has advanced to an
    instant whose other events come first; several streams share one clock. The last step ends all of them.
    """
    if plan.played is None:
        return Timeline(), ()
    streams = [
        step for step in plan.played.roots if isinstance(_source(step), recorded_stream.RecordedStream)
    ]
    happenings = sorted(
        happening for number, step in enumerate(streams) for happening in _happenings(number, step)
    )
    reached = (0, *accumulate((happening.clock_micros for happening in happenings), max))
    clocks = (*reached, reached[-1])
    firsts = _firsts(happenings, len(clocks), events_per_batch)
    timeline = Timeline(clocks, firsts, frozenset(_within(happenings, clocks)))
    sources = tuple(_record_sources(plan, streams, happenings, len(clocks) - 1))
    return timeline, sources


def _source(step: Step) -> Any:
    assert isinstance(step.primitive, Read)
    return step.primitive.source


def _happenings(number: int, step: Step) -> Iterator[_Happening]:
    """Yields the events of a TestStream, except the ends of micro-batches."""
    clock_micros, rounds = 0, 0
    for place, event in enumerate(_source(step).events):
        match event:
            case recorded_stream.MicroBatchEvent():
                rounds += 1
                continue
            case recorded_stream.ProcessingTimeEvent(advance_by, _):
                clock_micros += advance_by.micros
        yield _Happening(rounds, clock_micros, number, place, event)


def _within(happenings: list[_Happening], clocks: tuple[int, ...]) -> Iterator[int]:
    """Yields the steps that others of the same instant follow, for timers that fire at the end of an instant."""
    due_last = False
    for step, happening in enumerate(happenings, 1):
        if clocks[step] != clocks[step - 1]:
            due_last = False
        match happening.event:
            case recorded_stream.ProcessingTimeEvent(_, due_first):
                due_last = due_last or not due_first
        if due_last and step < len(happenings) and clocks[step + 1] == clocks[step]:
            yield step


def _firsts(happenings: list[_Happening], steps: int, events_per_batch: int | None) -> tuple[int, ...]:
    """Returns the first step of each micro-batch. Step 0 precedes all events, and the last step follows them."""
    size = events_per_batch or steps
    firsts, rounds = [0], 0
    for step in range(1, steps):
        # A round without events is a micro-batch too, but nothing can change in it.
        now = happenings[step - 1].round if step <= len(happenings) else rounds
        if now != rounds or step - firsts[-1] >= size:
            firsts.append(step)
        rounds = now
    return tuple(firsts)


def _record_sources(
    plan: StreamPlan, streams: list[Step], happenings: list[_Happening], last: int
) -> Iterator[RecordedSource]:
    assert plan.played is not None
    for step in plan.played.roots:
        source = _source(step)
        for output in step.outputs:
            if isinstance(source, InlineValues):
                found: dict[int, Any] = {0: source.values, 1: _COMPLETE}
            else:
                found = _at_output(happenings, streams.index(step), output.tag)
                found[last] = _COMPLETE
            origin = origin_of(step, output)
            readers = plan.played.readers[origin]
            if any(isinstance(happening, str) for happening in found.values()):
                readers = tuple(level.number for level in plan.levels)
            yield RecordedSource(origin, output.edge, found, readers)


def _at_output(happenings: list[_Happening], stream: int, tag: str | None) -> dict[int, Any]:
    """Returns the events at one output of a stream, by step; each output has the signals, which a shard takes once."""
    found: dict[int, Any] = {}
    for step, happening in enumerate(happenings, 1):
        if happening.stream != stream:
            continue
        match happening.event:
            case recorded_stream.ElementEvent(values, own) if own == tag:
                found[step] = values
            case recorded_stream.WatermarkEvent(watermark, own, percentiles) if (
                own == tag and happening.stream == stream
            ):
                times = ((WATERMARK, watermark), *percentiles)
                found[step] = {percentile: time.micros for percentile, time in times}
            case recorded_stream.SignalEvent(name):
                found[step] = name
    return found
