"""The positions of a Python source: what the driver asks of it, and the check of what it answers."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from penstock.base import clock
from penstock.error import refusal
from penstock.io.ranges import RangeSource, SourceRange
from penstock_spark.reports.failure import step_failed

_LOGGER = logging.getLogger("penstock_spark.ranges")
_Answer = TypeVar("_Answer")


def asked(question: Callable[[], _Answer], where: str) -> _Answer:
    """The source's answer; whatever it raises is an error of the step."""
    try:
        return question()
    except (Exception, SystemExit) as error:
        step_failed(error, where)


def position_of(question: Callable[[], Any], where: str) -> Any:
    """A position that the source answers, which JSON must be able to hold, because Spark's checkpoint is JSON."""
    position = asked(question, where)
    try:
        is_plain = json.loads(json.dumps(position)) == position
    except (TypeError, ValueError):
        is_plain = False
    if not is_plain:
        what = f"the position {position!r} does not come back from JSON as it is"
        hint = "use numbers, texts, lists, and dicts with texts as keys"
        step_failed(refusal(TypeError, what, where=where, hint=hint), where)
    return position


def ranges_between(
    source: RangeSource[Any], start: Any, end: Any, parallelism: int, where: str
) -> Sequence[SourceRange]:
    """The ranges between two positions, each with a name for its partition."""
    ranges = asked(lambda: list(source.ranges(start, end, parallelism)), where)
    for piece in ranges:
        if not isinstance(piece, SourceRange):
            what = f"ranges() has returned a {type(piece).__name__}"
            error = refusal(TypeError, what, where=where, hint="return a list of SourceRange values")
            step_failed(error, where)
    return ranges


class Positions:
    """What Spark asks a stream: where it begins, how far it goes now, and which ranges lie between.

    `limit` is the maximum number of records in a micro-batch.
    """

    def __init__(self, source: RangeSource[Any], limit: int | None, parallelism: int, where: str) -> None:
        self._source = source
        self._limit = limit
        self._parallelism = parallelism
        self._where = where
        self._fails_since: float | None = None  # When the source could not be reached for the first time.
        # Until when there is no use in asking what lies beyond a position.
        self._rests_at: Any = None
        self._rests_until = 0.0

    def first(self) -> Any:
        return position_of(self._source.first_position, self._where)

    def last(self, start: Any, is_limited: bool) -> Any:
        """The end of the next micro-batch: `start` if there is nothing new, or if the source cannot be reached yet."""
        now = clock.monotonic_seconds()
        if self._rests_at == start and now < self._rests_until:
            return start
        end = self._end(start, self._limit if is_limited else None, now)
        if end == start:
            self._rests_at, self._rests_until = start, now + self._source.poll_seconds
        return end

    def newest(self, start: Any) -> Any:
        """The end of all that exists; None if it is unknown, or if every micro-batch reads up to it."""
        if self._limit is None:
            return None
        try:
            return self._source.last_position(start, None)
        except Exception:
            # This is only for reports: the same error is raised where the stream needs the answer.
            return None

    def _end(self, start: Any, limit: int | None, now: float) -> Any:
        def last_position() -> Any:
            try:
                end = self._source.last_position(start, limit)
            except (ConnectionError, TimeoutError) as error:
                self._fails_since = now if self._fails_since is None else self._fails_since
                if now - self._fails_since >= self._source.patience_seconds:
                    raise
                _LOGGER.warning("%s cannot be reached %s: %s", self._source.describe(), self._where, error)
                return start
            self._fails_since = None
            return end

        return position_of(last_position, self._where)

    def ranges(self, start: Any, end: Any) -> Sequence[SourceRange]:
        return ranges_between(self._source, start, end, self._parallelism, self._where)

    def commit(self, position: Any) -> None:
        asked(lambda: self._source.commit(position), self._where)

    def close(self) -> None:
        asked(self._source.close, self._where)
