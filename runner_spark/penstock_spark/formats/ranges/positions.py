"""The positions of a Python source: the questions of the driver, and the check of the answers."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from penstock.error import noun_for, refusal
from penstock.io.custom.ranges import RangeSource, SourceRange
from penstock.utils import clock
from penstock_spark.reports.failure import fail_step

_LOGGER = logging.getLogger("penstock_spark.ranges")
_Answer = TypeVar("_Answer")
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.05, 0.5
"""The shortest and the longest wait before a source that cannot be reached is asked again; it doubles each time."""

AWAY = "away"
"""The key of the number that Spark keeps beside a position while the source cannot be reached, so that it changes.

The driver must not take such a source for one with nothing new: it would end the source before all is read.
"""

_BEFORE_FIRST = "before the first position"
"""The start of a stream whose source is asked only once for its first position."""


def ask_source(question: Callable[[], _Answer], where: str) -> _Answer:
    """The source's answer; whatever it raises is an error of the step."""
    try:
        return question()
    except (Exception, SystemExit) as error:
        fail_step(error, where)


def position_of(question: Callable[[], Any], where: str) -> object:
    """A position that the source answers, which JSON must be able to hold, because Spark's checkpoint is JSON."""
    position = ask_source(question, where)
    try:
        is_plain = json.loads(json.dumps(position)) == position
    except (TypeError, ValueError):
        is_plain = False
    if not is_plain:
        what = f"the position {position!r} changes when it is written as JSON and read again"
        hint = "use numbers, strings, lists, and dicts with strings as keys"
        fail_step(refusal(TypeError, what, where=where, hint=hint), where)
    return position


def ranges_between(
    source: RangeSource[Any], start: object, end: object, parallelism: int, where: str
) -> Sequence[SourceRange]:
    """The ranges between two positions, each with a name for its partition."""
    return check_ranges(ask_source(lambda: list(source.ranges(start, end, parallelism)), where), where)


def check_ranges(ranges: Sequence[SourceRange], where: str) -> Sequence[SourceRange]:
    for piece in ranges:
        if not isinstance(piece, SourceRange):
            what = f"ranges() has returned {noun_for(piece)}"
            error = refusal(TypeError, what, where=where, hint="return a list of SourceRange values")
            fail_step(error, where)
    return ranges


class RetryLimit:
    """Limits the wait for a source that cannot be reached, counted from the first error after the last success."""

    def __init__(self, source: RangeSource[Any], where: str) -> None:
        self._source = source
        self._where = where
        self._away_since: float | None = None

    def note_success(self) -> None:
        if self._away_since is not None:
            _LOGGER.warning("%s can be reached again %s", self._source.describe(), self._where)
        self._away_since = None

    def failed(self, error: Exception) -> None:
        """Raises the error if the patience has come to its end; says once that the source is away."""
        now = clock.monotonic_seconds()
        if self._away_since is None:
            _LOGGER.warning("%s cannot be reached %s: %s", self._source.describe(), self._where, error)
            self._away_since = now
        if now - self._away_since >= self._source.patience_seconds:
            raise error

    def wait_for(self, question: Callable[[], _Answer]) -> _Answer:
        """The answer to a question that is asked until the source can be reached."""
        wait_seconds = _FIRST_WAIT_SECONDS
        while True:
            try:
                answer = question()
            except self._source.connection_errors as error:
                self.failed(error)
                clock.sleep(wait_seconds)
                wait_seconds = min(2 * wait_seconds, _LONGEST_WAIT_SECONDS)
            else:
                self.note_success()
                return answer


class Positions:
    """Answers Spark's questions about a stream: its first position, its newest position, and the ranges between them.

    `limit` is the maximum number of records in a micro-batch.
    """

    def __init__(self, source: RangeSource[Any], limit: int | None, parallelism: int, where: str) -> None:
        self._source = source
        self._limit = limit
        self._parallelism = parallelism
        self._where = where
        self._patience = RetryLimit(source, where)
        self.is_away = False  # Whether the source could not be reached when it was last asked.
        # Until when it is useless to ask what lies beyond a position.
        self._rests_at: object = None
        self._rests_until = 0.0

    def first(self) -> object:
        # Spark asks for it several times, and again after a crash, until the first micro-batch is committed. It keeps
        # where that ends.
        return _BEFORE_FIRST if self._source.asks_first_position_once else self._first()

    def _first(self) -> object:
        return position_of(self._source.first_position, self._where)

    def last(self, start: object, is_limited: bool) -> object:
        """The end of the next micro-batch: `start` if there is nothing new, or if the source cannot be reached yet."""
        if start == _BEFORE_FIRST:
            return self._first()
        now = clock.monotonic_seconds()
        if self._rests_at == start and now < self._rests_until:
            return start
        end = self._end(start, self._limit if is_limited else None)
        if end == start:
            self._rests_at, self._rests_until = start, now + self._source.poll_seconds
        return end

    def newest(self, start: object) -> object:
        """The end of all that exists; None if it is unknown, or if every micro-batch reads up to it."""
        if self._limit is None:
            return None
        try:
            return self._source.last_position(start, None)
        except Exception:
            # This is only for reports: the same error is raised where the stream needs the answer.
            return None

    def _end(self, start: object, limit: int | None) -> object:
        def last_position() -> object:
            try:
                end = self._source.last_position(start, limit)
            except self._source.connection_errors as error:
                self._patience.failed(error)
                self.is_away = True
                return start
            self._patience.note_success()
            self.is_away = False
            return end

        return position_of(last_position, self._where)

    def ranges(self, start: object, end: object) -> Sequence[SourceRange]:
        if start == _BEFORE_FIRST:
            return []

        def cut() -> Sequence[SourceRange]:
            return list(self._source.ranges(start, end, self._parallelism))

        return check_ranges(ask_source(lambda: self._patience.wait_for(cut), self._where), self._where)

    def commit(self, position: object) -> None:
        """Acknowledges to the source; if it cannot be reached, the next micro-batch acknowledges more."""

        def commit() -> None:
            try:
                self._source.commit(position)
            except self._source.connection_errors as error:
                _LOGGER.warning(
                    "the position cannot be committed to %s %s: %s",
                    self._source.describe(),
                    self._where,
                    error,
                )

        ask_source(commit, self._where)

    def close(self) -> None:
        ask_source(self._source.close, self._where)
