"""The streams with a state of each key that is written by hand, for ``transformWithState`` in either flavour."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from flavours import InFrames, InRows, Key, Processor
from stream_inputs import LATENESS_SECONDS, window_start
from stream_native import empty_batches, key_of, lines_of, parsed_in_python, run_to_the_end, with_watermark
from workloads import WINDOW_SECONDS

PANES = "key string, start long, sum long, timing string"
EARLY_MILLIS = 1_000
EARLY_EVENTS = 2

Pane = tuple[str, int, int, str]
Windows = dict[int, list[int]]
"""For each open window, by its start: the sum of what has not fired, and when that fires early; 0 if there is none."""


def closes_millis(start: int) -> int:
    """When a window is over, by its start in seconds."""
    return (start + WINDOW_SECONDS) * 1_000


class Panes(Processor):
    """Sums of a key's windows: early ones a second after the first event, one on time, and one for each late event.

    All windows of a key are one value, since each access to the state is a message to Java and back. What is due early
    fires with the key's next events, or on time. Spark's timers fire after a micro-batch's events, and late events are
    such that come after the pane on time: so windows that are over fire before events are looked at.
    """

    fields = ("second", "score")
    columns = ("key", "start", "sum", "timing")

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._state = handle.getValueState("windows", "pickled binary")

    def on_events(self, key: Key, events: Iterable[tuple[int, int]], times: TimerValues) -> Iterator[Pane]:
        """The panes of events, and those that were due before them."""
        (name,) = key
        clock_millis, watermark_millis = times.getCurrentProcessingTimeInMs(), times.getCurrentWatermarkInMs()
        windows = self._windows()
        yield from self._due(name, windows, clock_millis, watermark_millis)
        for second, score in events:
            start = window_start(second)
            window = windows.get(start)
            if window is None:
                closes = closes_millis(start)
                if closes <= watermark_millis:
                    if watermark_millis < closes + LATENESS_SECONDS * 1_000:
                        yield name, start, score, "late"
                    continue
                windows[start] = window = [0, 0]
                self._handle.registerTimer(closes)
            yield from self._add(name, start, window, score, clock_millis)
        self._save(windows)

    def on_timer(self, key: Key, due_millis: int) -> Iterator[Pane]:
        """The pane at the end of a window of a key to which nothing has come in this micro-batch."""
        windows = self._windows()
        start = due_millis // 1_000 - WINDOW_SECONDS
        pending, _ = windows.pop(start)
        self._save(windows)
        yield key[0], start, pending, "on time"

    def _add(self, name: str, start: int, window: list[int], score: int, clock_millis: int) -> Iterable[Pane]:
        """Adds a score to a window that is open; the early panes that are due with it."""
        window[0] += score
        window[1] = window[1] or clock_millis + EARLY_MILLIS
        return ()

    def _due(self, name: str, windows: Windows, clock_millis: int, watermark_millis: int) -> Iterator[Pane]:
        """The panes that are due before events are looked at, on time and early."""
        for start, (pending, early_millis) in list(windows.items()):
            if closes_millis(start) <= watermark_millis:
                del windows[start]
                self._handle.deleteTimer(closes_millis(start))
                yield name, start, pending, "on time"
            elif 0 < early_millis <= clock_millis:
                windows[start] = [0, 0]
                yield name, start, pending, "early"

    def _windows(self) -> Windows:
        found = self._state.get()
        windows: Windows = pickle.loads(found[0]) if found else {}
        return windows

    def _save(self, windows: Windows) -> None:
        if windows:
            self._state.update((pickle.dumps(windows),))
        else:
            self._state.clear()


class RowPanes(Panes, InRows):
    pass


class FramePanes(Panes, InFrames):
    pass


class RowCountedPanes(RowPanes):
    """Panes with an early one after every second event; a window's second number is minus its count of events."""

    def _add(self, name: str, start: int, window: list[int], score: int, clock_millis: int) -> Iterable[Pane]:
        pending, count = window[0] + score, 1 - window[1]
        if count < EARLY_EVENTS:
            window[:] = pending, -count
            return ()
        window[:] = 0, 0
        return [(name, start, pending, "early")]


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


def chain(frame: DataFrame, levels: int) -> DataFrame:
    """Operators in a row that have a state, and no use for it."""
    frame = frame.select("key")
    for _ in range(levels):
        frame = frame.groupBy("key").transformWithState(Nothing(), "key long", "Append", "None")
    return frame


ROW_JOBS = {
    "replay": partial(_replay, "transformWithState", RowPanes),
    "empty_batches": partial(empty_batches, chain),
}
FRAME_JOBS = {"replay": partial(_replay, "transformWithStateInPandas", FramePanes)}
