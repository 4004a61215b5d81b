"""Lists what waits for the machine's clock in a streaming query, so that micro-batches run when nothing arrives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.functions.signature import signature_of
from penstock.graph import Read, Reshuffle, StatefulParDo, Step
from penstock.io.streaming.stream_sources import Streamable, StreamSource
from penstock.machines.triggers import may_wait_for_clock
from penstock.windows.time_domain import TimeDomain
from penstock_spark.plan.splitting import keeps_restrictions
from penstock_spark.plan.stream_plan import Clock, Level, StreamPlan, WaitingParDo
from penstock_spark.plan.windowing import windowing_of


class ClockWait(NamedTuple):
    """Something that waits for the clock."""

    what: str  # As `explain()` shows it.
    outlasts_input: bool
    """True if it still waits when all input has ended: the end of the input fires triggers, and no timers."""


def clock_waits(plan: StreamPlan) -> tuple[ClockWait, ...]:
    """All that waits for the clock. Input with a recorded clock brings its own time, and nothing waits."""
    if plan.clock is not Clock.LIVE:
        return ()
    of_levels = (wait for level in plan.levels for step in level.roots for wait in _of_step(plan, step))
    return (*(wait for part in plan.readings for wait in _of_source(part)), *of_levels)


def _of_source(part: Level) -> Iterator[ClockWait]:
    [step] = part.roots
    assert isinstance(step.primitive, Read)
    stream = step.primitive.source
    if not isinstance(stream, StreamSource):
        return
    if stream.watermark.follows_clock and part.readers[step.label]:
        yield ClockWait(f"the watermark of '{step.label}', {type(stream.watermark).__name__}", False)
    if isinstance(stream.source, Streamable) and stream.source.acknowledges:
        yield ClockWait(f"the server of '{step.label}', for what the last micro-batch has read", False)


def _of_step(plan: StreamPlan, step: Step) -> Iterator[ClockWait]:
    primitive = step.primitive
    if keeps_restrictions(primitive):
        yield ClockWait(f"the restrictions of '{step.label}'", True)
    elif isinstance(primitive, StatefulParDo):
        timers = signature_of(primitive.dofn).timers
        if any(spec.time_domain == TimeDomain.REAL_TIME for spec, _ in timers):
            yield ClockWait(f"the timers of '{step.label}' by the clock", True)
    elif isinstance(primitive, Reshuffle | WaitingParDo):
        return
    elif may_wait_for_clock(windowing_of(plan.graph, step.inputs[0]).triggerfn):
        yield ClockWait(f"the trigger of '{step.label}'", False)


def show_clock_waits(plan: StreamPlan) -> str:
    """A line of `explain()`; nothing if the clock is not the machine's."""
    if plan.clock is not Clock.LIVE:
        return ""
    return f"\nwaits for the clock: {', '.join(wait.what for wait in clock_waits(plan)) or 'nothing'}"
