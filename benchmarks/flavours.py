"""The two flavours of Spark's stateful processors: one takes and returns rows, the other one pandas frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

import pandas as pd
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessor, TimerValues

Key = tuple[Any, ...]


class Processor(StatefulProcessor):
    """The common part of both flavours of a processor: events come as tuples, and results go as tuples."""

    fields: tuple[str, ...]  # The columns of an event.
    columns: tuple[str, ...]  # The columns of a result.

    def on_events(self, key: Key, events: Iterable[Any], times: TimerValues) -> Iterable[Key]:
        """The results of a key's events in a micro-batch."""
        raise NotImplementedError

    def on_timer(self, key: Key, due_millis: int) -> Iterable[Key]:
        """The results of a key's timer."""
        raise NotImplementedError


class InRows(Processor):
    """The flavour that takes and returns rows."""

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        return self._rows(self.on_events(key, map(attrgetter(*self.fields), rows), timerValues))

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        return self._rows(self.on_timer(key, expiredTimerInfo.getExpiryTimeInMs()))

    def _rows(self, results: Iterable[Key]) -> Iterator[Row]:
        make_row = Row(*self.columns)
        return (make_row(*result) for result in results)


class InFrames(Processor):
    """The flavour that takes and returns pandas frames."""

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: TimerValues
    ) -> Iterator[pd.DataFrame]:
        events = (
            event
            for frame in rows
            for event in zip(*(frame[field].tolist() for field in self.fields), strict=True)
        )
        return self._frames(self.on_events(key, events, timerValues))

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[pd.DataFrame]:
        return self._frames(self.on_timer(key, expiredTimerInfo.getExpiryTimeInMs()))

    def _frames(self, results: Iterable[Key]) -> Iterator[pd.DataFrame]:
        found = list(results)
        if found:
            yield pd.DataFrame(found, columns=list(self.columns))
