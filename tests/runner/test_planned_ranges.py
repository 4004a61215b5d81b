"""A source that is written in Python tells Spark its end, and the state of its connection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from penstock.io.custom.ranges import NumberedSource, SourceRange
from penstock_spark.formats.ranges.stream import Planner, _Planning
from penstock_spark.reports.reporting import Reporting
from penstock_spark.worker.batch import dumps_with_code

reachable: list[bool] = []
"""True if the log can be reached; the planner has a source of its own."""


class Log(NumberedSource[int]):
    poll_seconds = 0.0

    def bounds(self) -> Mapping[str, tuple[int, int]]:
        if not reachable[0]:
            raise ConnectionError("away")
        return {"a": (0, 5)}

    def read(self, piece: SourceRange) -> Iterator[Any]:
        raise NotImplementedError


def planner() -> Planner:
    return Planner(dumps_with_code(_Planning(Log(), None, 1, "at step 'Read'", Reporting())))


def test_a_source_that_cannot_be_reached_does_not_look_as_if_it_had_nothing_new() -> None:
    reachable[:] = [True]
    first = planner()
    read = first.latest(first.written({"a": 0}), False)
    assert read["position"] == {"a": 5}
    assert first.latest(read, False) == read
    reachable[:] = [False]
    away = first.latest(read, False)
    assert (away["position"], away != read) == ({"a": 5}, True)
    # Once is enough: an offset that differs starts a micro-batch.
    assert first.latest(away, False) == away
    # The driver of another run has not seen that micro-batch.
    other = planner()
    again = other.latest(away, False)
    assert again not in (away, read)
    assert other.latest(again, False) == again
    reachable[:] = [True]
    assert other.latest(again, False) == read
    reachable[:] = [False]
    assert other.latest(read, False) == away
