"""Whether sources have been read up to the moment at which a drain was asked for."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.base import clock
from penstock_spark.files.place import Place
from penstock_spark.lowering.readings import Opened

_REST_SECONDS = 1.0
"""Spark asks its sources many times in so long a time: if it found nothing new in all of it, nothing was there."""


class Backlog:
    """What was there when a drain was asked for, and is not read yet.

    A source is read up to that moment once one of these is seen in a micro-batch that was planned later: the source had
    nothing new; it has no limit, and so gave all that was there; it has reached the offset that it named as its latest;
    or it has given a file that changed after that moment, for files are read in the order in which they changed.

    Args:
        readings: The sources.
        first: The number of the first of them among those that Spark reports.
        logs: The folder of Spark's logs of files, one for each source.
        asked_millis: When the drain was asked for.
    """

    def __init__(self, readings: Sequence[Opened], first: int, logs: Place, asked_millis: int) -> None:
        self._readings = readings
        self._first = first
        self._logs = logs
        self._asked_millis = asked_millis
        self._behind = set(range(len(readings)))
        self._goals: dict[int, Any] = {}
        self._resting_since: float | None = None

    def labels(self) -> list[str]:
        """The sources of which something is not read yet."""
        return sorted(self._readings[number].spec.origin for number in self._behind)

    def see_progress(self, progress: Mapping[str, Any]) -> None:
        """Takes what Spark reports of a micro-batch that has ended."""
        self._resting_since = None
        if millis_of(progress["timestamp"]) <= self._asked_millis:
            return
        for number in sorted(self._behind):
            if self._is_read(number, progress["sources"][self._first + number]):
                self._behind.discard(number)

    def see_status(self, is_resting: bool, now: float | None = None) -> None:
        """Takes whether Spark waits for something new, as it is found a little later each time."""
        now = clock.monotonic_seconds() if now is None else now
        if not is_resting:
            return
        if self._resting_since is None:
            self._resting_since = now
        elif now - self._resting_since >= _REST_SECONDS:
            self._behind.clear()

    def _is_read(self, number: int, source: Mapping[str, Any]) -> bool:
        end = source["endOffset"]
        if not self._readings[number].is_limited or source["startOffset"] == end:
            return True
        if source["description"].startswith("FileStreamSource"):
            newest_millis = self._newest_millis(number, end)
            return newest_millis is not None and newest_millis > self._asked_millis
        goal = self._goals.setdefault(number, _plain(source["latestOffset"]))
        return reaches(_plain(end), goal)

    def _newest_millis(self, number: int, offset: Any) -> int | None:
        """When the newest file of the last micro-batch of a source had changed; None if that cannot be told."""
        log = self._logs.inside(str(self._first + number))
        place = str(_plain(offset)["logOffset"])
        names = [name for name in (place, f"{place}.compact") if name in log.names()]
        if not names or self._readings[number].is_newest_first:
            return None
        lines = log.read(names[0]).decode().splitlines()[1:]
        return max((int(json.loads(line)["timestamp"]) for line in lines), default=None)


def millis_of(timestamp: str) -> int:
    """A moment as Spark writes it, in milliseconds.

    >>> millis_of("1970-01-01T00:00:01.500Z")
    1500
    """
    return round(datetime.datetime.fromisoformat(timestamp).timestamp() * 1000)


def reaches(offset: Any, goal: Any) -> bool:
    """Whether an offset is as far as another, in each of its parts; not if they cannot be compared.

    >>> reaches({"clicks": {"0": 7, "1": 3}}, {"clicks": {"0": 7, "1": 2}}), reaches({"0": 7}, {"0": 7, "1": 2})
    (True, False)
    """
    if isinstance(goal, Mapping):
        return isinstance(offset, Mapping) and all(
            part in offset and reaches(offset[part], own) for part, own in goal.items()
        )
    is_number = isinstance(offset, int | float) and isinstance(goal, int | float)
    return bool(offset >= goal) if is_number else offset == goal and goal is not None


def _plain(offset: Any) -> Any:
    """An offset as Spark reports it, which may be JSON in a text."""
    if not isinstance(offset, str):
        return offset
    try:
        return json.loads(offset)
    except ValueError:
        return offset
