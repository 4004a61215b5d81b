"""Finds out when sources have been read up to the time at which a drain was requested."""

from __future__ import annotations

import ast
import contextlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.error import three_parts
from penstock.utils import clock
from penstock_spark.files.place import Place
from penstock_spark.formats.ranges.positions import AWAY
from penstock_spark.lowering.readings import OpenReading

_REST_SECONDS = 1.0
"""Spark asks its sources many times in this time: if it finds nothing new throughout, there is nothing new."""

_CLOCKS_MILLIS = 10_000
"""So far the clocks of the driver and of the machine that keeps the files may be apart."""


class Backlog:
    """The data that existed when a drain was requested, and that is not read yet.

    A source is read up to that time when one of these holds in a micro-batch that was planned later: the source had
    nothing new; it has no limit, and so returned everything, if need be in two micro-batches; it has reached the offset
    that it named as its latest; or it has returned a file that changed long after that time, because files are read in
    the order in which they changed.

    A source that looks only now and then may answer for a while what it has seen before that time. `begin` is called
    afterwards.

    Args:
        readings: The sources.
        first: The number of the first of them among the sources that Spark reports.
        logs: The folder in which Spark logs files, one for each source.
        asked_millis: When the drain was requested.
        is_any_away: Whether a source could not be reached at that time.
    """

    def __init__(
        self,
        readings: Sequence[OpenReading],
        first: int,
        logs: Place,
        asked_millis: int,
        is_any_away: bool = False,
    ) -> None:
        self._readings = readings
        self._first = first
        self._logs = logs
        self._asked_millis = asked_millis
        self._planned_before: int | None = None
        self._behind = set(range(len(readings)))
        self._goals: dict[int, Any] = {}
        self._seen: Counter[int] = Counter()  # How many micro-batches each has given something to.
        self._resting_since: float | None = None
        self._is_any_away = is_any_away

    @property
    def poll_seconds(self) -> float:
        """For how long the answers of sources may be from before the request."""
        return max((reading.poll_seconds for reading in self._readings), default=0.0)

    @property
    def has_begun(self) -> bool:
        return self._planned_before is not None

    def begin(self, planned_before: int) -> None:
        """Begins to follow what sources report; `planned_before` is the last micro-batch that may have been planned."""
        self._planned_before = planned_before

    def labels(self) -> list[str]:
        return sorted(self._readings[number].spec.origin for number in self._behind)

    def see_progress(self, progress: Mapping[str, Any]) -> None:
        """Takes Spark's report of a finished micro-batch."""
        self._resting_since = None
        self._is_any_away = any(is_away(source["endOffset"]) for source in progress["sources"])
        if self._planned_before is None or progress["batchId"] <= self._planned_before:
            return
        for number in sorted(self._behind):
            if self._is_read(number, progress["sources"][self._first + number]):
                self._behind.discard(number)

    def see_status(self, is_resting: bool, now: float | None = None) -> None:
        """Takes whether Spark waits for new data; called repeatedly."""
        now = clock.monotonic_seconds() if now is None else now
        if not is_resting or self._is_any_away or not self.has_begun:
            return
        if self._resting_since is None:
            self._resting_since = now
        elif now - self._resting_since >= _REST_SECONDS:
            self._behind.clear()

    def _is_read(self, number: int, source: Mapping[str, Any]) -> bool:
        end = source["endOffset"]
        if is_away(end):
            return False
        if source["startOffset"] == end:
            return True
        if not self._readings[number].is_limited:
            # Data that was only announced in the first is read in the second.
            self._seen[number] += 1
            return self._seen[number] > self._readings[number].announces
        if source["description"].startswith("FileStreamSource"):
            newest_millis = self._newest_millis(number, end)
            return newest_millis is not None and newest_millis > self._asked_millis + _CLOCKS_MILLIS
        if self._goals.get(number) is None:
            # A source that does not know it now may know it with the next micro-batch.
            self._goals[number] = _plain(source["latestOffset"])
        return reaches(_plain(end), self._goals[number])

    def _newest_millis(self, number: int, offset: dict[str, Any]) -> int | None:
        """Returns the time of the last change of the newest file in a source's micro-batch; None if it is unknown."""
        log = self._logs.inside(str(self._first + number))
        place = str(_plain(offset)["logOffset"])
        names = [name for name in (place, f"{place}.compact") if name in log.names()]
        if not names or self._readings[number].is_newest_first:
            return None
        lines = log.read(names[0]).decode().splitlines()[1:]
        return max((int(json.loads(line)["timestamp"]) for line in lines), default=None)


def is_away(offset: object) -> bool:
    """True if a source could not be reached when it was asked for its end.

    >>> is_away('{"format": 1, "position": 7, "away": 1}'), is_away({"away": {"0": 12}}), is_away(None)
    (True, False, False)
    """
    plain = _plain(offset)
    return isinstance(plain, Mapping) and isinstance(plain.get(AWAY), int)


def reaches(offset: Any, goal: Any) -> bool:
    """True if an offset is at least as far as another in each of its parts; False if they cannot be compared.

    >>> reaches({"clicks": {"0": 12, "1": 7}}, {"clicks": {"0": 12}}), reaches(7, 8), reaches("a", 8)
    (True, False, False)
    """
    if isinstance(goal, Mapping):
        return isinstance(offset, Mapping) and all(
            part in offset and reaches(offset[part], own) for part, own in goal.items()
        )
    is_number = isinstance(offset, int | float) and isinstance(goal, int | float)
    return bool(offset >= goal) if is_number else offset == goal and goal is not None


def _plain(offset: object) -> Any:
    """An offset as Spark reports it: JSON in a text, or before Spark 4.2 Python's text of a dict.

    >>> _plain('{"logOffset": 2}'), _plain("{'logOffset': 2}"), _plain("-"), _plain(None)
    ({'logOffset': 2}, {'logOffset': 2}, '-', None)
    """
    if not isinstance(offset, str):
        return offset
    for read in (json.loads, ast.literal_eval):
        with contextlib.suppress(ValueError, SyntaxError):
            return read(offset)
    return offset


def say_still_reading(is_drain: bool, places: Sequence[str]) -> str:
    """The word about a run that takes long to read what it has to.

    Args:
        is_drain: Whether it drains; otherwise it reads what was available at its start.
        places: The sources with data that may be unread, in the form of the second part of errors.

    >>> print(say_still_reading(False, ["at step 'Lines' (game.py:3)"]))
    the stream still reads what was available at its start
      at step 'Lines' (game.py:3)
      hint: wait until it ends; with a --checkpoint_location, you can also stop it, and the next run reads the rest
    """
    what = f"the stream still reads what was available {_since(is_drain)}"
    hint = "wait until it ends; with a --checkpoint_location, you can also stop it, and the next run reads the rest"
    return three_parts(what, where=", ".join(places), hint=hint)


def say_cancelled_early(is_drain: bool, places: Sequence[str], is_kept: bool) -> str | None:
    """The word about a run that was cancelled before its end; None if nothing is left to read and it did not drain.

    Args:
        is_drain: Whether it drained; otherwise it read what was available at its start.
        places: The sources with data that may be unread, in the form of the second part of errors.
        is_kept: Whether the next run can continue from its checkpoint.

    >>> print(say_cancelled_early(False, ["at step 'Lines' (game.py:3)"], True))
    the stream was cancelled, perhaps before it had read all that was available at its start
      at step 'Lines' (game.py:3)
      hint: run the program again with the same --checkpoint_location: it reads the rest
    """
    where = ", ".join(places) or "in the windows that were open"
    if places:
        what = (
            f"the stream was cancelled, perhaps before it had read all that was available {_since(is_drain)}"
        )
    elif is_drain:
        what = "the stream was cancelled before all windows of its drain had fired"
    else:
        return None
    rest = "reads the rest" if places else "fires them"
    hint = f"run the program again with the same --checkpoint_location: it {rest}"
    if not is_kept:
        hint = "pass --checkpoint_location, so that the next run continues; without one, it begins again"
    return three_parts(what, where=where, hint=hint)


def _since(is_drain: bool) -> str:
    return "when its drain began" if is_drain else "at its start"
