"""Upserts in a batch, over the real workers, and what is refused when they are built."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as beam
from penstock.construction.retractions import may_retract
from penstock.error import UnsupportedByRunner
from penstock.relations.upserts import Upsert, Upserts
from penstock.transforms.trigger import AccumulationMode, AfterCount, Repeatedly
from penstock.transforms.window import (
    FixedWindows,
    GlobalWindow,
    GlobalWindows,
    IntervalWindow,
    Sessions,
    TimestampedValue,
)
from penstock.typehints.decorators import TypeCheckError
from penstock_spark.reports.failure import StepFailure, find_failure, to_exception
from tests.runner.plain_runner import Settings, collect, run_plain

SETTINGS = pytest.mark.parametrize("settings", [Settings(1, 1), Settings(3, 2), Settings(4, 1000, b"salt")])
RETRACTING = AccumulationMode.ACCUMULATING_AND_RETRACTING
ACCUMULATING = AccumulationMode.ACCUMULATING


def timed(pipeline: beam.Pipeline, rows: list[Any], label: str = "Rows") -> Any:
    pairs = pipeline | label >> beam.Create(rows)
    return pairs | f"{label} in time" >> beam.MapTuple(lambda key, row, at: TimestampedValue((key, row), at))


def sums(pipeline: beam.Pipeline, windowfn: Any, mode: Any, trigger: Any = Repeatedly(AfterCount(1))) -> Any:
    """Sums with a pane for each element."""
    ones = timed(pipeline, [("k", 1, 0), ("k", 1, 50), ("j", 1, 3), ("k", 1, 5), ("k", 1, 9)])
    return ones | beam.WindowInto(windowfn, trigger, mode) | beam.CombinePerKey(sum)


def in_order(upserts: list[Upsert]) -> list[Upsert]:
    return sorted(upserts, key=repr)


@SETTINGS
@pytest.mark.parametrize("mode", [RETRACTING, ACCUMULATING])
def test_a_key_gives_one_upsert_with_its_last_value(settings: Settings, mode: Any) -> None:
    pipeline = beam.Pipeline()
    found = collect(sums(pipeline, GlobalWindows(), mode) | Upserts())
    run_plain(pipeline, settings)
    assert in_order(found) == [Upsert("j", 1), Upsert("k", 4)]


FIXED = [("j", IntervalWindow(0, 30), 1), ("k", IntervalWindow(0, 30), 3), ("k", IntervalWindow(30, 60), 1)]
SESSIONS = [
    ("j", IntervalWindow(3, 13), 1),
    ("k", IntervalWindow(0, 19), 3),
    ("k", IntervalWindow(50, 60), 1),
]
GLOBAL = [("j", GlobalWindow(), 1), ("k", GlobalWindow(), 4)]


@SETTINGS
@pytest.mark.parametrize(
    ("mode", "windowfn", "rows"),
    [
        *((mode, FixedWindows(30), FIXED) for mode in (RETRACTING, ACCUMULATING)),
        *((mode, GlobalWindows(), GLOBAL) for mode in (RETRACTING, ACCUMULATING)),
        (RETRACTING, Sessions(10), SESSIONS),
    ],
    ids=str,
)
def test_each_window_has_a_row_of_its_own(settings: Settings, mode: Any, windowfn: Any, rows: Any) -> None:
    pipeline = beam.Pipeline()
    found = collect(sums(pipeline, windowfn, mode) | Upserts(by_window=True))
    run_plain(pipeline, settings)
    assert in_order(found) == in_order([Upsert((key, window), total) for key, window, total in rows])


@SETTINGS
def test_of_rows_that_never_fire_again_a_table_has_the_latest_by_event_time(settings: Settings) -> None:
    pipeline = beam.Pipeline()
    found = collect(timed(pipeline, [("k", "new", 2), ("k", "old", 1), ("j", None, 0)]) | Upserts())
    run_plain(pipeline, settings)
    assert in_order(found) == [Upsert("j", None), Upsert("k", "new")]


def test_what_is_deleted_is_told_by_value_so_any_sink_takes_it() -> None:
    pipeline = beam.Pipeline()
    changing = sums(pipeline, Sessions(10), RETRACTING)
    rows = changing | Upserts(by_window=True)
    assert may_retract(changing)
    assert not may_retract(rows)
    collect(rows)
    pipeline.explain()
    collect(changing, "Without")
    with pytest.raises(UnsupportedByRunner, match=r"cannot write retractions"):
        pipeline.explain()


def test_windows_without_rows_of_their_own_are_refused() -> None:
    with pytest.raises(ValueError, match=r"(?s)a key has a value for each of its windows.*by_window=True"):
        sums(beam.Pipeline(), FixedWindows(30), RETRACTING) | Upserts()


def test_windows_that_merge_and_take_nothing_back_are_refused() -> None:
    with pytest.raises(ValueError, match=r"(?s)no step retracts the rows.*ACCUMULATING_AND_RETRACTING"):
        sums(beam.Pipeline(), Sessions(10), ACCUMULATING) | Upserts(by_window=True)


def failure_of(pipeline: beam.Pipeline) -> str:
    """The text of what a step raises when the pipeline runs."""
    with pytest.raises(StepFailure) as caught:
        run_plain(pipeline)
    failure = find_failure(str(caught.value))
    assert failure is not None
    error = to_exception(failure)
    return f"{error}{''.join(getattr(error, '__notes__', ()))}"


def test_a_key_that_cannot_be_encoded_alike_is_refused_with_the_step_named() -> None:
    pipeline = beam.Pipeline()
    collect(timed(pipeline, [(object(), 1, 0)]) | "Table" >> Upserts())
    text = failure_of(pipeline)
    assert "no deterministic encoding" in text
    assert "Table/Gather" in text


def test_a_value_that_is_taken_back_must_be_such_that_it_can_be_told() -> None:
    pipeline = beam.Pipeline()
    opaque = sums(pipeline, Sessions(10), RETRACTING) | "Opaque" >> beam.MapTuple(lambda k, n: (k, object()))
    collect(opaque | "Table" >> Upserts(by_window=True))
    text = failure_of(pipeline)
    assert "no deterministic encoding" in text
    assert "Table/Gather" in text


def test_elements_that_are_no_pairs_are_refused() -> None:
    with pytest.raises(
        TypeCheckError, match=r"(?s)Input type hint violation at Upserts.*\n  hint: make pairs first"
    ):
        beam.Pipeline() | beam.Create([1, 2]) | Upserts()
