"""The streams with a state of each key that is written by hand, for ``transformWithState`` in either flavour."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from stream_inputs import LATENESS_SECONDS, window_start
from stream_native import empty_batches, key_of, lines_of, parsed_in_python, run_to_the_end, with_watermark
from workloads import WINDOW_SECONDS

_COLUMNS = ("key", "start", "sum", "timing")
_ROW = Row(*_COLUMNS)

PANES = "key string, start long, sum long, timing string"
EARLY_MILLIS = 1_000

Pane = tuple[str, int, int, str]
Windows = dict[int, list[int]]
"""For each open window, by its start: the sum of what has not fired, and when that fires early; 0 if there is none."""


def closes_millis(start: int) -> int:
    """When a window is over, by its start in seconds."""
    return (start + WINDOW_SECONDS) * 1_000


class Panes(StatefulProcessor):
    """Sums of a key's windows: early ones a second after the first event, one on time, and one for each late event.

    All windows of a key are one value, since each access to the state is a message to Java and back. What is due early
    fires with the key's next events, or on time. Spark's timers fire after a micro-batch's events, and late events are
    such that come after the pane on time: so windows that are over fire before events are looked at.
    """

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._state = handle.getValueState("windows", "pickled binary")

    def on_events(self, key: str, events: Iterable[tuple[int, int]], times: TimerValues) -> Iterator[Pane]:
        """The panes that events, as (second, score), bring about."""
        clock_millis, watermark_millis = times.getCurrentProcessingTimeInMs(), times.getCurrentWatermarkInMs()
        windows = self._windows()
        yield from self._due(key, windows, clock_millis, watermark_millis)
        for second, score in events:
            start = window_start(second)
            window = windows.get(start)
            if window is None:
                closes = closes_millis(start)
                if closes <= watermark_millis:
                    if watermark_millis < closes + LATENESS_SECONDS * 1_000:
                        yield key, start, score, "late"
                    continue
                windows[start] = window = [0, 0]
                self._handle.registerTimer(closes)
            window[0] += score
            window[1] = window[1] or clock_millis + EARLY_MILLIS
        self._save(windows)

    def on_time(self, key: str, closed_millis: int) -> Iterator[Pane]:
        """The pane at the end of a window of a key to which nothing has come in this micro-batch."""
        windows = self._windows()
        start = closed_millis // 1_000 - WINDOW_SECONDS
        pending, _ = windows.pop(start)
        self._save(windows)
        yield key, start, pending, "on time"

    def _due(self, key: str, windows: Windows, clock_millis: int, watermark_millis: int) -> Iterator[Pane]:
        """The panes that are due before events are looked at, on time and early."""
        for start, (pending, early_millis) in list(windows.items()):
            if closes_millis(start) <= watermark_millis:
                del windows[start]
                self._handle.deleteTimer(closes_millis(start))
                yield key, start, pending, "on time"
            elif 0 < early_millis <= clock_millis:
                windows[start] = [0, 0]
                yield key, start, pending, "early"

    def _windows(self) -> Windows:
        found = self._state.get()
        windows: Windows = pickle.loads(found[0]) if found else {}
        return windows

    def _save(self, windows: Windows) -> None:
        if windows:
            self._state.update((pickle.dumps(windows),))
        else:
            self._state.clear()


class RowPanes(Panes):
    """The flavour that gets and gives rows."""

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        events = ((row.second, row.score) for row in rows)
        return (_ROW(*pane) for pane in self.on_events(key[0], events, timerValues))

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        return (_ROW(*pane) for pane in self.on_time(key[0], expiredTimerInfo.getExpiryTimeInMs()))


class FramePanes(Panes):
    """The flavour that gets and gives frames of pandas."""

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: TimerValues
    ) -> Iterator[pd.DataFrame]:
        events = (
            event for frame in rows for event in zip(frame.second.tolist(), frame.score.tolist(), strict=True)
        )
        return _framed(self.on_events(key[0], events, timerValues))

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[pd.DataFrame]:
        return _framed(self.on_time(key[0], expiredTimerInfo.getExpiryTimeInMs()))


def _framed(panes: Iterator[Pane]) -> Iterator[pd.DataFrame]:
    found = list(panes)
    if found:
        yield pd.DataFrame(found, columns=list(_COLUMNS))


def _replay(
    flavour: str, processor: Callable[[], Panes], spark: SparkSession, workload: str, **files: Any
) -> dict[str, Any]:
    target = files.pop("target")
    events = with_watermark(parsed_in_python(lines_of(spark, **files), key_of(workload)))
    # Without the column of times, Spark leaves it to the processor what is too late.
    grouped = events.drop("time").groupBy("key")
    panes: DataFrame = getattr(grouped, flavour)(processor(), PANES, "Append", "EventTime")
    text = F.concat_ws("\t", F.concat_ws(" ", "key", "start"), "sum", "timing")
    return run_to_the_end(panes.select(text), target)


class Nothing(StatefulProcessor):
    """Has a state, and no use for it."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("state", "value long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        return iter(rows)


def _chain(frame: DataFrame, levels: int) -> DataFrame:
    for _ in range(levels):
        frame = frame.groupBy("key").transformWithState(Nothing(), "key long", "Append", "None")
    return frame


ROW_JOBS = {
    "replay": partial(_replay, "transformWithState", RowPanes),
    "empty_batches": partial(empty_batches, _chain),
}
FRAME_JOBS = {"replay": partial(_replay, "transformWithStateInPandas", FramePanes)}
