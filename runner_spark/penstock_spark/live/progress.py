"""The progress of a batch: a bar on a terminal, and a line now and then where there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from penstock.runners.runner import PipelineState
from penstock_spark.live.formatting import (
    escape_control_characters,
    format_count,
    format_seconds,
    shorten_start,
)
from penstock_spark.live.snapshot import RunSnapshot, Stages

SILENT_SECONDS = 1.0
"""A run that is over sooner shows nothing."""

LINE_SECONDS = (10.0, 30.0, 60.0)
"""The times at which a run that is not on a terminal prints a line; the last one repeats."""

_SINKS_SHOWN = 5
_BAR_WIDTH = 24
_DOING_WIDTH = 40


def render_bar(now: RunSnapshot, columns: int) -> str:
    """Returns a bar with the work that a batch does, in at most `columns` columns.

    >>> stages = Stages("Read > Sum", 1, 1, done=1, known=2, tasks_done=4, tasks=8, seconds_left=3.0)
    >>> now = RunSnapshot("", "", "batch", "RUNNING", 0, 9_000_000, rows_in=12_000, stages=stages)
    >>> render_bar(now, 200)
    '━━━━━━━━━━━━━━━━━━────── Read > Sum · stage 2 of 2 · 4 of 8 tasks · 12.0 k rows · about 3.0 s left'
    >>> render_bar(now, 36)
    '━━━━━━━━━━━━━━━━━━────── Read > Sum'
    """
    stages = now.stages or Stages()
    full = round(_BAR_WIDTH * stages.share)
    drawn = "━" * full + "─" * (_BAR_WIDTH - full)
    if columns <= _BAR_WIDTH + 1:
        return drawn[: max(columns, 0)]
    doing = shorten_start(
        escape_control_characters(stages.doing), min(_DOING_WIDTH, max(columns - _BAR_WIDTH - 1, 0))
    )
    text, between = drawn, " "
    for each in filter(None, [doing, *_details(now, stages)]):
        longer = f"{text}{between}{each}"
        if len(longer) > columns:
            break
        text, between = longer, " · "
    return text


def render_line(now: RunSnapshot) -> str:
    """Returns the progress in one line, for a log.

    >>> stages = Stages("Read > Sum", 1, 1, done=1, known=2)
    >>> render_line(RunSnapshot("", "", "batch", "RUNNING", 0, 9_000_000, stages=stages))
    'running for 9.0 s: Read > Sum · stage 2 of 2'
    >>> render_line(RunSnapshot("", "", "batch", "RUNNING", 0, 9_000_000, stages=Stages("", 1, 1, done=1, known=2)))
    'running for 9.0 s: stage 2 of 2'
    >>> render_line(RunSnapshot("", "", "batch", "RUNNING", 0, 9_000_000))
    'running for 9.0 s'
    """
    stages = now.stages or Stages()
    doing = shorten_start(escape_control_characters(stages.doing), 2 * _DOING_WIDTH)
    told = " · ".join(filter(None, [doing, *_details(now, stages)]))
    return f"running for {format_seconds(now.seconds)}{': ' if told else ''}{told}"


def render_last_line(now: RunSnapshot) -> str:
    """Says in one line how a run ended, what it has read, and what each of its sinks has taken, as far as is known.

    >>> from dataclasses import replace
    >>> from penstock.diagrams.steps import StepView
    >>> from penstock_spark.live.snapshot import GroupingNow, SinkNow
    >>> done = RunSnapshot("", "", "batch", "DONE", 0, 9_000_000, rows_in=12_000)
    >>> render_last_line(done)
    'done in 9.0 s, 12.0 k rows read'
    >>> render_last_line(replace(done, rows_in=1, sinks=(SinkNow("Sums", 3), SinkNow("Other"), SinkNow("Totals", 2))))
    "done in 9.0 s, 1 row read, 3 written by 'Sums', 2 written by 'Totals'"
    >>> sums, totals = GroupingNow("Sum", 1, open_windows=2, dropped=1), GroupingNow("Total", 1, open_windows=9)
    >>> steps = (StepView("Sum", "CombinePerKey", windowing="FixedWindows"), StepView("Total", "GroupByKey"))
    >>> render_last_line(replace(done, mode="streaming", steps=steps, groupings=(sums, totals)))
    'done in 9.0 s, 12.0 k rows read, 1 dropped as late, 2 windows still open'
    """
    parts = [f"{now.state.lower()} in {format_seconds(now.seconds)}"]
    if now.rows_in is not None:
        parts.append(f"{_count_of(now.rows_in, 'row')} read")
    known = [(sink.label, sink.elements_in) for sink in now.sinks if sink.elements_in is not None]
    if not known and len(now.sinks) == 1 and now.rows_out is not None:
        known = [(now.sinks[0].label, now.rows_out)]
    parts += [
        f"{format_count(count)} written by {escape_control_characters(label.removesuffix('/Write'))!r}"
        for label, count in known[:_SINKS_SHOWN]
    ]
    if len(known) > _SINKS_SHOWN:
        rest = sum(count for _, count in known[_SINKS_SHOWN:])
        parts.append(f"{format_count(rest)} by {len(known) - _SINKS_SHOWN} more")
    if rejected := sum(source.rejected for source in now.sources):
        parts.append(f"{format_count(rejected)} rejected")
    if dropped := sum(grouping.dropped for grouping in now.groupings):
        parts.append(f"{format_count(dropped)} dropped as late")
    ending = {step.label for step in now.steps if step.windowing not in ("", "GlobalWindows")}
    if still_open := sum(each.open_windows or 0 for each in now.groupings if each.label in ending):
        parts.append(f"{_count_of(still_open, 'window')} still open")
    return ", ".join(parts)


def _count_of(count: float, noun: str) -> str:
    return f"{format_count(count)} {noun}{'' if count == 1 else 's'}"


def _details(now: RunSnapshot, stages: Stages) -> list[str]:
    found = []
    if stages.parts > 1:
        found.append(f"part {stages.part} of {stages.parts}")
    if stages.known:
        found.append(f"stage {min(stages.done + 1, stages.known)} of {stages.known}")
    if stages.tasks:
        found.append(f"{stages.tasks_done} of {stages.tasks} tasks")
    if now.rows_in is not None:
        found.append(f"{format_count(now.rows_in)} rows")
    if stages.seconds_left is not None:
        # The time that later parts take is unknown.
        found.append(
            f"about {format_seconds(stages.seconds_left)} left{' in this part' * (stages.part < stages.parts)}"
        )
    return found


class Bar:
    """Shows snapshots of a batch as a bar that stays in one line of a terminal.

    Args:
        out: The terminal.
        columns: Returns its width.
        tells_end: Whether it speaks of the good end of a run that was over before the bar was drawn.
    """

    def __init__(self, out: TextIO, columns: int, tells_end: bool = False) -> None:
        self._out = out
        self._columns = columns
        self._tells_end = tells_end
        self._is_drawn = False

    def show(self, now: RunSnapshot) -> None:
        """Draws the bar over the last one; at the end, a line takes its place."""
        if now.is_over:
            if self._is_drawn or (self._tells_end and now.state == PipelineState.DONE):
                self._out.write(f"\r\x1b[2Kpenstock: {render_last_line(now)}\n")
                self._is_drawn = self._tells_end = False  # The end may be shown twice.
        elif now.seconds >= SILENT_SECONDS:
            prefix = "penstock: "
            self._out.write(f"\r\x1b[2K{prefix}{render_bar(now, self._columns - len(prefix) - 1)}")
            self._is_drawn = True
        self._out.flush()

    def close(self) -> None:
        """Does nothing: the last snapshot has ended the line."""


class Lines:
    """Prints snapshots as lines, the first after ten seconds, and then less and less often.

    Args:
        out: Where the lines go.
        told: Makes the line of a snapshot.
        seconds: The times at which to print a line; the last is the interval from then on.
        tells_end: Whether it speaks of the good end of a run that was over before the first line.
    """

    def __init__(
        self,
        out: TextIO,
        told: Callable[[RunSnapshot], str] = render_line,
        seconds: tuple[float, ...] = LINE_SECONDS,
        tells_end: bool = False,
    ) -> None:
        self._out = out
        self._told = told
        self._seconds = seconds
        self._tells_end = tells_end
        self._next = seconds[0]
        self._number = 0

    def show(self, now: RunSnapshot) -> None:
        """Prints a line if it is time for one."""
        if now.is_over:
            if self._number or (self._tells_end and now.state == PipelineState.DONE):
                self._write(render_last_line(now))
                self._number, self._tells_end = 0, False  # The end may be shown twice.
        elif now.seconds >= self._next:
            self._write(self._told(now))
            self._number += 1
            later = self._seconds[self._number :]
            self._next = later[0] if later else now.seconds + self._seconds[-1]

    def close(self) -> None:
        """Does nothing."""

    def _write(self, text: str) -> None:
        self._out.write(f"penstock: {text}\n")
        self._out.flush()
