"""Joins of rows in a batch, over the real workers, and what is refused when they are built."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest

import penstock as beam
from penstock.coders import FastPrimitivesCoder
from penstock.construction.retractions import may_retract
from penstock.error import UnsupportedByRunner
from penstock.relations.joins import JoinRows
from penstock.relations.validity import ValidFrom, ValidityJoin
from penstock.transforms.trigger import AccumulationMode, AfterCount, Repeatedly
from penstock.transforms.userstate import ReadModifyWriteStateSpec
from penstock.transforms.window import FixedWindows, TimestampedValue
from penstock_spark.plan.retractions import retracting_edges
from penstock_spark.reports.failure import StepFailure, find_failure, to_exception
from tests.runner.plain_runner import Settings, collect, run_plain

SETTINGS = pytest.mark.parametrize("settings", [Settings(1, 1), Settings(3, 2), Settings(4, 1000, b"salt")])

LEFTS = [("1", "L1", 2), ("2", "L2", 6), ("3", "L3", 3)]
RIGHTS = [("2", "R2", 1), ("3", "R3", 4), ("4", "R4", 5)]
TABLES: dict[str, list[Any]] = {
    "full": [("L1", None), ("L2", "R2"), ("L3", "R3"), (None, "R4")],
    "left": [("L1", None), ("L2", "R2"), ("L3", "R3")],
    "right": [("L2", "R2"), ("L3", "R3"), (None, "R4")],
    "inner": [("L2", "R2"), ("L3", "R3")],
    "anti": [("L1", None), (None, "R4")],
    "left_anti": ["L1"],
    "semi": ["L2", "L3"],
}


def timed(pipeline: beam.Pipeline, label: str, rows: list[Any]) -> Any:
    pairs = pipeline | label >> beam.Create(rows)
    return pairs | f"{label} in time" >> beam.MapTuple(lambda key, row, at: TimestampedValue((key, row), at))


def sides(pipeline: beam.Pipeline, lefts: list[Any] = LEFTS, rights: list[Any] = RIGHTS) -> Any:
    return timed(pipeline, "Lefts", lefts), timed(pipeline, "Rights", rights)


def net(changes: list[Any]) -> list[Any]:
    left: Counter[Any] = Counter()
    for kind, (_, row) in changes:
        left[row] += -1 if kind.is_retraction else 1
    assert min(left.values(), default=0) >= 0
    return sorted(left.elements(), key=repr)


def failure_of(pipeline: beam.Pipeline) -> str:
    """The text of what a step raises when the pipeline runs."""
    with pytest.raises(StepFailure) as caught:
        run_plain(pipeline)
    failure = find_failure(str(caught.value))
    assert failure is not None
    error = to_exception(failure)
    return f"{error}{''.join(getattr(error, '__notes__', ()))}"


@SETTINGS
@pytest.mark.parametrize("kind", TABLES)
def test_what_is_not_undone_is_the_table(kind: str, settings: Settings) -> None:
    pipeline = beam.Pipeline()
    changes = collect(sides(pipeline) | JoinRows(kind) | beam.Changelog())
    run_plain(pipeline, settings)
    assert net(changes) == sorted(TABLES[kind], key=repr)


@SETTINGS
@pytest.mark.parametrize("kind", ["full", "left", "right", "anti", "left_anti"])
def test_rows_without_a_match_come_once_at_the_end_and_need_no_changelog(
    kind: str, settings: Settings
) -> None:
    pipeline = beam.Pipeline()
    found = collect(sides(pipeline) | JoinRows(kind, unjoined="at_end"))
    run_plain(pipeline, settings)
    assert sorted((row for _, row in found), key=repr) == sorted(TABLES[kind], key=repr)


def test_rows_that_all_have_one_key_are_joined_with_all_others() -> None:
    pipeline = beam.Pipeline()
    lefts, rights = (
        each | f"One key {n}" >> beam.MapTuple(lambda _, row: (None, row))
        for n, each in enumerate(sides(pipeline))
    )
    found = collect((lefts, rights) | JoinRows("inner"))
    run_plain(pipeline)
    assert len({row for _, row in found}) == len(found) == 9


@SETTINGS
def test_rows_match_in_their_windows(settings: Settings) -> None:
    pipeline = beam.Pipeline()
    lefts, rights = sides(pipeline)
    windowed = (
        lefts | "A" >> beam.WindowInto(FixedWindows(5)),
        rights | "B" >> beam.WindowInto(FixedWindows(5)),
    )
    found = collect(windowed | JoinRows("full", unjoined="at_end"))
    run_plain(pipeline, settings)
    expected = [("L1", None), (None, "R2"), ("L3", "R3"), ("L2", None), (None, "R4")]
    assert Counter(row for _, row in found) == Counter(expected)


@SETTINGS
def test_changing_results_of_a_grouping_are_joined_and_counted_on(settings: Settings) -> None:
    pipeline = beam.Pipeline()
    lefts, rights = sides(pipeline, [("k", 1, 1), ("k", 2, 3), ("k", 4, 5)], [("k", "R", 2), ("j", "Q", 4)])
    changing = beam.WindowInto(
        beam.window.GlobalWindows(),
        trigger=Repeatedly(AfterCount(1)),
        accumulation_mode=AccumulationMode.ACCUMULATING_AND_RETRACTING,
    )
    sums = lefts | changing | beam.CombinePerKey(sum)
    joined = (sums, rights) | JoinRows("full")
    changes = collect(joined | beam.Changelog(), "Changes")
    counts = collect(
        joined
        | "Key" >> beam.Map(lambda _: ("all", 1))
        | "Count" >> beam.CombinePerKey(sum)
        | "Log" >> beam.Changelog(),
        "Counts",
    )
    run_plain(pipeline, settings)
    assert net(changes) == [(7, "R"), (None, "Q")]
    assert net(counts) == [2]


@SETTINGS
def test_the_validity_join(settings: Settings) -> None:
    orders = [("Euro", 2, 120), ("Euro", 5, 300), ("Euro", 3, 480), ("Yen", 50, 420)]
    rates = [("Euro", 114, 30), ("Euro", 116, 180), ("Euro", 119, 360), ("Yen", 1, 60)]
    expected = [(2, 114), (3, 119), (5, 116), (50, 1)]
    pipeline = beam.Pipeline()
    both = sides(pipeline, orders, rates)
    changes = collect(both | "Per record" >> ValidityJoin() | beam.Changelog(), "Changes")
    final = collect(both | "Final" >> ValidityJoin(final=True), "Final rows")
    times = collect(both[1] | ValidFrom() | "Log" >> beam.Changelog(), "Times")
    run_plain(pipeline, settings)
    assert net(changes) == expected
    assert sorted(row for _, row in final) == expected
    ends = {(one.value, float(one.end)) for one in net(times) if one.value > 100}
    assert {(114, 180.0), (116, 360.0)} < ends


def test_it_is_known_which_joins_take_results_back() -> None:
    pipeline = beam.Pipeline()
    both = sides(pipeline)
    joins = {
        name: both | name >> transform
        for name, transform in {
            "full": JoinRows("full"),
            "left_anti": JoinRows("left_anti"),
            "inner": JoinRows("inner"),
            "semi": JoinRows("semi"),
            "at end": JoinRows("full", unjoined="at_end"),
            "validity": ValidityJoin(),
            "final": ValidityJoin(final=True),
        }.items()
    }
    retracting = {name for name, joined in joins.items() if may_retract(joined)}
    assert retracting == {"full", "left_anti", "validity"}
    graph = pipeline.to_graph()
    edges = retracting_edges(graph)
    found = {step.label for step in graph.steps if any(output.edge in edges for output in step.outputs)}
    assert {label.partition("/")[0] for label in found} == retracting


def test_a_sink_refuses_a_join_that_takes_results_back() -> None:
    pipeline = beam.Pipeline()
    collect(sides(pipeline) | JoinRows("full"))
    with pytest.raises(UnsupportedByRunner, match=r"cannot write retractions"):
        pipeline.explain()


def test_a_final_join_refuses_what_may_be_taken_back() -> None:
    pipeline = beam.Pipeline()
    lefts, rights = sides(pipeline)
    changing = (lefts, rights) | JoinRows("left")
    with pytest.raises(ValueError, match=r"(?s)final validity join emits no retractions.*leave final out"):
        (changing, rights) | ValidityJoin(final=True)


class Last(beam.DoFn):
    LAST = ReadModifyWriteStateSpec("last", FastPrimitivesCoder())

    def process(self, element, last=beam.DoFn.StateParam(LAST)):
        last.write(element[1])


def test_a_dofn_with_state_that_takes_nothing_back_is_told_which_join_does() -> None:
    pipeline = beam.Pipeline()
    changing = sides(pipeline) | JoinRows("left")
    with pytest.raises(ValueError, match=r"'JoinRows\(left\)/Join' retracts earlier results"):
        changing | beam.ParDo(Last())


@pytest.mark.parametrize("kind", ["full", "right", "anti"])
def test_a_left_row_that_is_none_is_refused_where_it_would_look_like_none(kind: str) -> None:
    pipeline = beam.Pipeline()
    collect(sides(pipeline, [("1", None, 1)]) | JoinRows(kind) | beam.Changelog())
    text = failure_of(pipeline)
    assert "a left row is None" in text
    assert "hint: make a tuple" in text
    assert f"while running 'JoinRows({kind})/Join' (test_row_joins_batch.py:" in text


def test_a_row_that_is_none_is_a_row_where_nothing_can_be_missing() -> None:
    pipeline = beam.Pipeline()
    found = collect(sides(pipeline, [("2", None, 1)]) | JoinRows("inner"))
    left = collect(sides_again(pipeline) | "Left" >> JoinRows("left", unjoined="at_end"), "Lefts joined")
    run_plain(pipeline)
    assert found == [("2", (None, "R2"))]
    assert left == [("2", (None, None))]


def sides_again(pipeline: beam.Pipeline) -> Any:
    return timed(pipeline, "More lefts", [("2", None, 1)]), timed(pipeline, "No rights", [])


def test_a_row_that_cannot_be_encoded_alike_is_refused_with_the_step_named() -> None:
    pipeline = beam.Pipeline()
    collect(sides(pipeline, [("2", object(), 1)]) | JoinRows("inner"))
    text = failure_of(pipeline)
    assert "no deterministic encoding" in text
    assert "step 'JoinRows(inner)/Join'" in text


def test_to_take_back_what_is_not_there_is_refused_with_the_step_named() -> None:
    pipeline = beam.Pipeline()
    lefts, rights = sides(pipeline)
    changing = (lefts, rights) | "First" >> JoinRows("full")
    # The result for a row must not depend on anything but the row.
    spoilt = changing | beam.MapTuple(lambda key, row: (key, time.perf_counter_ns()))
    collect((spoilt, rights) | "Second" >> JoinRows("inner") | beam.Changelog())
    text = failure_of(pipeline)
    assert "a row of type int is retracted, but it is not there" in text
    assert "while running 'Second/Join' (test_row_joins_batch.py:" in text


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: JoinRows("cross"), "no kind of join 'cross'"),
        (lambda: JoinRows(unjoined="later"), "unjoined is 'later'"),
        (lambda: JoinRows("semi", unjoined="at_end"), "emits no rows without a match"),
        (lambda: ValidityJoin("right"), "no kind of validity join 'right'"),
        (lambda: ValidityJoin("full", final=True), "never final"),
    ],
)
def test_bad_arguments_are_refused(make: Any, what: str) -> None:
    with pytest.raises(ValueError, match=rf"(?s){what}.*\n  hint: "):
        make()


@pytest.mark.parametrize("join", [JoinRows(), ValidityJoin()])
def test_other_inputs_than_two_of_the_same_windows_are_refused(join: Any) -> None:
    lefts, rights = sides(beam.Pipeline())
    with pytest.raises(TypeError, match="applied to two PCollections"):
        lefts | join
    with pytest.raises(TypeError, match=r"not to \(PCollection, PCollection, PCollection\)"):
        (lefts, rights, lefts) | join
    with pytest.raises(ValueError, match="different windows"):
        (lefts | beam.WindowInto(FixedWindows(5)), rights) | join
