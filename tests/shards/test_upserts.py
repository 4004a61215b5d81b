"""Upserts in a stream, in any cuts: applied to a table, they make it what is left of the collection."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import ledger
import penstock as beam
from penstock.io import WriteToMemory
from penstock.io.watermarks import BoundedDisorder
from penstock.relations import upserts
from penstock.relations.upserts import Upsert, Upserts, keep_last_upserts, settle_newest
from penstock.testing.test_stream import TestStream
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark
from penstock.transforms.window import FixedWindows, IntervalWindow, Sessions, TimestampedValue
from penstock.utils.windowed_value import PaneInfo, PaneInfoTiming, WindowedValue
from penstock_spark.reports.failure import StepFailure, find_failure, to_exception
from tests.shards.row_streams import DELETE, Come, TakeBack
from tests.shards.toy_query import ToyQuery

CUTS = pytest.mark.parametrize("events_per_batch", [None, 1, 2, 5])
MODES = pytest.mark.parametrize("mode", ["streaming", "micro_batch"])
RETRACTING = AccumulationMode.ACCUMULATING_AND_RETRACTING


def come(key: Any, value: Any) -> Come:
    return Come("", key, value, 0)


def gone(key: Any, value: Any) -> Come:
    return Come("", key, value, 0, DELETE)


def pairs(pipeline: Any, moments: list[list[Come]], retracts: bool = True) -> Any:
    """Insertions and retractions, moment by moment."""
    stream = TestStream()
    for moment in moments:
        values = [TimestampedValue(one, one.at) for one in moment]
        stream = (stream.add_elements(values) if values else stream).advance_processing_time(1)
    taken = pipeline | stream.advance_watermark_to_infinity() | beam.ParDo(TakeBack(retracts))
    return taken | "Pairs" >> beam.Map(lambda pair: pair).with_output_types(beam.typehints.KV[Any, Any])


def batches_of(result: Any, events_per_batch: int | None = 1, mode: str = "streaming") -> list[list[Upsert]]:
    """The upserts of each micro-batch."""
    _ = result | "Into the table" >> WriteToMemory([])
    query = ToyQuery(result.pipeline, mode, shards=2, events_per_batch=events_per_batch)
    return [[one for given in query.batch().values() for one in given] for _ in range(query.timeline.batches)]


def in_moments(moments: list[list[Come]], **options: Any) -> list[list[Upsert]]:
    """The upserts of each moment."""
    batches = batches_of(pairs(beam.Pipeline(), moments, **options) | Upserts())
    # A micro-batch for the beginning, and for each moment one with what comes and one with the clock.
    found, place = [], 1
    for moment in moments:
        size = 1 + bool(moment)
        found.append([one for batch in batches[place : place + size] for one in batch])
        place += size
    assert not any(batches[place:])
    return found


def write(table: dict[Any, Any], changes: list[Upsert]) -> dict[Any, Any]:
    """Writes upserts into a table, in their order."""
    for key, value, is_deleted in changes:
        if is_deleted:
            del table[key]
        else:
            table[key] = value
    return table


@pytest.mark.parametrize(
    "moment", [[gone("k", 1), come("k", 2)], [come("k", 2), gone("k", 1)]], ids=["old first", "new first"]
)
def test_a_value_that_is_replaced_within_a_moment_is_one_upsert(moment):
    assert in_moments([[come("k", 1)], moment]) == [[Upsert("k", 1)], [Upsert("k", 2)]]


def test_what_comes_and_goes_within_a_moment_changes_no_row():
    there_and_away = [come("k", 2), gone("k", 2)]
    away_and_there = [gone("k", 1), come("k", 1)]
    assert in_moments([there_and_away, [come("k", 1)], away_and_there, there_and_away]) == [
        *([], [Upsert("k", 1)], [], [])
    ]


def test_a_key_that_has_nothing_left_is_deleted_and_may_come_again():
    found = in_moments([[come("k", None)], [gone("k", None)], [], [come("k", 3)]])
    assert found == [[Upsert("k", None)], [Upsert("k", None, is_deleted=True)], [], [Upsert("k", 3)]]


def test_without_retractions_each_value_replaces_the_one_before_by_event_time():
    early, late = come("k", "early")._replace(at=1), come("k", "late")._replace(at=2)
    again = come("k", "again")._replace(at=2)
    found = in_moments([[late, early], [early], [again], [late, again]], retracts=False)
    assert found == [[Upsert("k", "late")], [], [Upsert("k", "again")], [Upsert("k", "again")]]


def failure_of(result: Any) -> str:
    with pytest.raises(StepFailure) as caught:
        batches_of(result)
    failure = find_failure(str(caught.value))
    assert failure is not None
    error = to_exception(failure)
    return f"{error}{''.join(getattr(error, '__notes__', ()))}"


@pytest.mark.parametrize("moments", [[[come("k", 1), come("k", 2)]], [[come("k", 1)], [come("k", 1)]]])
def test_a_key_with_two_values_at_once_is_refused_with_the_step_named(moments):
    text = failure_of(pairs(beam.Pipeline(), moments) | "Rows" >> Upserts())
    assert "a key of type str has 2 values at once, but a table has one row for each key" in text
    assert "while running 'Rows/Gather' (test_upserts.py:" in text
    assert "hint: add what distinguishes the values to the key" in text


def moves(draw: Any) -> list[list[Come]]:
    """Random moments, after each of which a key has one value at most."""
    table: dict[str, Any] = {}
    moments = []
    for _ in range(draw(st.integers(1, 5))):
        moment: list[Come] = []
        for key in draw(st.lists(st.sampled_from("abc"), max_size=4)):
            value = draw(st.sampled_from([None, 1, 2, "x"]))
            steps = [gone(key, table.pop(key))] if key in table else []
            if draw(st.booleans()):
                table[key] = value
                steps.append(come(key, value))
            moment += draw(st.permutations(steps))
        moments.append(moment)
    return moments


@settings(max_examples=40, phases=[Phase.generate, Phase.shrink])
@given(st.composite(moves)(), st.sampled_from([None, 2, 3]))
def test_after_each_moment_the_table_is_what_is_left(moments, events_per_batch):
    table: dict[Any, Any] = {}
    left: Counter[Any] = Counter()
    for moment, changes in zip(moments, in_moments(moments), strict=True):
        for one in moment:
            left[one.key, one.row] += -1 if one.kind.is_retraction else 1
        write(table, changes)
        assert set(table.items()) == {row for row, count in left.items() if count}
        assert len(changes) == len({change.key for change in changes})
    cut = batches_of(pairs(beam.Pipeline(), moments) | Upserts(), events_per_batch)
    assert write({}, [change for batch in cut for change in batch]) == table


def sessions_table(
    events_per_batch: int | None, mode: str, moving: bool, windowfn: Any, accumulation: AccumulationMode
) -> dict[Any, Any]:
    """The table of sums of ones by window, of which some come late."""
    stream = TestStream()
    for second, watermark in [(0, 1), (1, 2), (50, 3), (20, 8), (9, 25), (70, 58), (60, 60), (85, 77)]:
        stream = stream.add_elements([TimestampedValue(("k", 1), second)]).advance_watermark_to(watermark)
        stream = stream.advance_processing_time(1) if moving else stream
    windows = beam.WindowInto(
        windowfn,
        AfterWatermark(early=AfterCount(1), late=AfterCount(1)),
        accumulation,
        allowed_lateness=30,
    )
    sums = beam.Pipeline() | stream.advance_watermark_to_infinity() | windows | beam.CombinePerKey(sum)
    batches = batches_of(sums | Upserts(by_window=True), events_per_batch, mode)
    return write({}, [change for batch in batches for change in batch])


def rows(*sums: tuple[float, float, int]) -> dict[Any, Any]:
    return {("k", IntervalWindow(start, end)): total for start, end, total in sums}


@CUTS
@MODES
@pytest.mark.parametrize("moving", [True, False], ids=["clock moves", "clock stands"])
def test_sessions_that_merge_leave_one_row(events_per_batch, mode, moving):
    found = sessions_table(events_per_batch, mode, moving, Sessions(12), RETRACTING)
    assert found == rows((0, 32, 4), (50, 82, 3), (85, 97, 1))


@CUTS
@MODES
@pytest.mark.parametrize("accumulation", [RETRACTING, AccumulationMode.ACCUMULATING])
def test_panes_of_a_window_replace_each_other_late_ones_too(events_per_batch, mode, accumulation):
    found = sessions_table(events_per_batch, mode, True, FixedWindows(30), accumulation)
    assert found == rows((0, 30, 4), (30, 60, 1), (60, 90, 3))


class Swapped(beam.DoFn):
    """Two panes of a window, the later one first; its event time is the earlier one."""

    def process(self, key, window=beam.DoFn.WindowParam):
        for index, at in ((1, 3), (0, 4)):
            pane = PaneInfo(False, False, PaneInfoTiming.EARLY, index, -1)
            yield WindowedValue((key, index), at, (window,), pane)


@pytest.mark.parametrize(("by_window", "expected"), [(True, [1]), (False, [0])])
def test_panes_of_a_window_go_by_their_numbers_and_other_values_by_event_time(by_window, expected):
    stream = TestStream().add_elements([TimestampedValue("k", 1)]).advance_watermark_to_infinity()
    panes = beam.Pipeline() | stream | beam.ParDo(Swapped()).with_output_types(beam.typehints.KV[str, int])
    changes = [one for batch in batches_of(panes | Upserts(by_window)) for one in batch]
    assert [one.value for one in changes] == expected


def test_of_one_event_time_the_later_pane_counts():
    table = settle_newest("k", (5, 2), [(1, (5, 1), "earlier"), (1, (5, 3), "later")])
    assert table == ((5, 3), Upsert("k", "later"))


def test_a_row_is_deleted_that_was_forgotten_with_its_window():
    # A session may be retracted long after its own end, when the one that it has merged into fires.
    stream = TestStream()
    for second in (0, 0, 5):
        stream = stream.add_elements([TimestampedValue(("k", 1), second)]).advance_processing_time(1)
    for watermark in (13, 14, 40):
        stream = stream.advance_watermark_to(watermark).advance_processing_time(1)
    windows = beam.WindowInto(Sessions(10), AfterWatermark(early=AfterCount(2)), RETRACTING)
    pipeline = beam.Pipeline()
    sums = pipeline | stream.advance_watermark_to_infinity() | windows | beam.CombinePerKey(sum)
    changes = [one for batch in batches_of(sums | Upserts(by_window=True)) for one in batch]
    old, new = ("k", IntervalWindow(0, 10)), ("k", IntervalWindow(0, 15))
    assert [one for one in changes if one.key == old] == [Upsert(old, 2), Upsert(old, None, is_deleted=True)]
    assert [one for one in changes if one.key == new] == [Upsert(new, 3)]


def test_the_last_of_each_key_makes_the_same_table():
    changes = [Upsert("a", 1), Upsert(["b"], 2), Upsert("a", None, is_deleted=True), Upsert(["b"], 3)]
    assert keep_last_upserts(changes) == [Upsert("a", None, is_deleted=True), Upsert(["b"], 3)]


def test_a_database_is_what_a_batch_gives_after_every_micro_batch(tmp_path):
    ledger.deal_out(tmp_path / "transfers", files=8, count=10)
    files = [file.read_text().splitlines() for file in sorted((tmp_path / "transfers").iterdir())]
    lines = beam.io.ReadFromText("/in/*.csv", validate=False).as_stream(ledger.second_of, BoundedDisorder(0))
    pipeline = beam.Pipeline()
    both = ledger.tables_of(pipeline | "Read" >> lines)
    tables = [ledger.Table(tmp_path / "ledger.db", name) for name in ledger.TABLES]
    for table, changes in zip(tables, both, strict=True):
        _ = changes | table.name >> WriteToMemory([])
    query = ToyQuery(pipeline, shards=2)
    expected: Counter[str] = Counter()
    for number, some in enumerate(files):
        for line in some:
            for account, amount in ledger.entries(line):
                expected[account] += amount
        found = query.batch({"Read": [some[:5], some[5:]]}, clock_micros=1_000_000 * (number + 1))
        for table in tables:
            [changes] = [given for label, given in found.items() if label.startswith(table.name)]
            assert len(changes) == len(keep_last_upserts(changes)), "a row is written once"
            # A micro-batch that is written again changes nothing.
            table.write(changes, number)
            table.write([Upsert("nobody", 1)], number)
        balances, standings = (table.rows() for table in tables)
        assert balances == expected
        assert sum(balances.values()) == 0
        assert standings == Counter(ledger.standing(*account)[0] for account in expected.items())


MUTANTS = {
    "deletes nothing": lambda settle: lambda key, known, told: (settle(key, known, told)[0], None),
    "takes all for new": lambda settle: (
        lambda key, known, told: settle(key, known, [(1, *one[1:]) for one in told])
    ),
    "takes the first": lambda settle: lambda key, known, told: settle(key, known, list(told)[:1]),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_balance_is_found(name, monkeypatch):
    monkeypatch.setattr(upserts, "settle_balance", MUTANTS[name](upserts.settle_balance))
    with pytest.raises((AssertionError, StepFailure, KeyError, BaseExceptionGroup)):
        test_after_each_moment_the_table_is_what_is_left()
