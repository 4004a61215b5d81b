"""Shortcuts of the workers change no result: sums and sessions with and without them, over the real exchange rows."""

from __future__ import annotations

import random
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple

import pytest

import penstock as beam
from penstock.functions.combinefn import CallableWrapperCombineFn
from penstock.functions.folds import SUM
from penstock.transforms.window import (
    FixedWindows,
    GlobalWindow,
    GlobalWindows,
    IntervalWindow,
    Sessions,
    SlidingWindows,
    TimestampCombiner,
    TimestampedValue,
)
from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP
from penstock_spark.folding import group_write, numbers
from penstock_spark.folding.loops import loop_of
from penstock_spark.reports.failure import StepFailure, find_failure
from penstock_spark.worker import batch_sizer, fixed_windows, flush_limit
from penstock_spark.worker import keys as worker_keys
from tests.runner.plain_runner import Settings, collect_timed, run_plain

WINDOWS = (
    GlobalWindows(),
    FixedWindows(10),
    SlidingWindows(20, 10),
    SlidingWindows(5, 10),
    Sessions(7),
    Sessions(7, merge_touching=True),
)


class Place(NamedTuple):
    """A key that only a pickle brings back."""

    row: int
    column: str


class Letter(StrEnum):
    """A text that equals a plain one and is another key."""

    A = "a"


KEYS: tuple[tuple[Any, ...], ...] = (
    ("a", "b", "\ud800", ""),
    (1, 1.0, True, "1", "a", b"a", None, ("a", 1), ("a", 1.0), -5, 2**70),
    (("a", ("b", 1)), ("a", "b")),
    (Place(1, "a"), (1, "a"), Place(2, "b")),
    (1, -5, 2**70, 0),
    ("a", Letter.A, "b", 1),
)
VALUES: tuple[tuple[Any, ...], ...] = (
    (1, 2, -3, 0),
    (1, True, 0.5, -0.25, 0),
    (1, 2**62, -(2**63), 2**80),
    (Decimal(1), Decimal("0.1"), 3),
)


@pytest.fixture
def _limits(request, monkeypatch):
    if request.param == "tiny limits":
        monkeypatch.setattr(group_write, "MOST_NAMES", 3)
        monkeypatch.setattr(numbers, "_MOST_GROUPS", 2)
        monkeypatch.setattr(worker_keys, "_MOST_WINDOWS", 1)


class Refusing:
    """A value that cannot be added."""

    def __radd__(self, other: Any) -> Any:
        raise ValueError("refused")


def _both(build) -> list[list[str]]:
    """What a pipeline gives with shortcuts and without, as text: equal numbers of other types are told apart."""
    found = []
    for shortcuts in (True, False):
        pipeline = beam.Pipeline()
        collected = [collect_timed(part, f"Part {n}") for n, part in enumerate(build(pipeline))]
        run_plain(pipeline, Settings(rows=7, without=set() if shortcuts else {"shortcuts"}))
        found.append([sorted(map(repr, part)) for part in collected])
    return found


def _timed(pipeline: beam.Pipeline, elements: list[tuple[Any, Any]]) -> Any:
    """Values at times."""
    return (
        pipeline | beam.Create(elements) | "Timed" >> beam.MapTuple(TimestampedValue).with_output_types(Any)
    )


@pytest.mark.usefixtures("_limits")
@pytest.mark.parametrize("windowfn", WINDOWS, ids=str)
@pytest.mark.parametrize(
    ("_limits", "seed"),
    [
        ("usual limits", 0),
        ("tiny limits", 1),
        pytest.param("usual limits", 1, marks=pytest.mark.soak),
        pytest.param("tiny limits", 0, marks=pytest.mark.soak),
    ],
    indirect=["_limits"],
)
def test_sums_are_the_same_with_shortcuts_and_without(windowfn, seed):
    chance = random.Random(seed)
    for place, keys in enumerate(KEYS):
        values = VALUES[(place + seed) % len(VALUES)]
        elements = [
            ((chance.choice(keys), chance.choice(values)), chance.randint(-30, 60) / 2)
            for _ in range(chance.randint(1, 60))
        ]

        def build(pipeline, elements=elements):
            windowed = _timed(pipeline, elements) | beam.WindowInto(windowfn)
            shared = windowed | "Again" >> beam.Map(lambda pair: pair)
            yield windowed | "Sum" >> beam.CombinePerKey(sum)
            yield windowed | "Count" >> beam.combiners.Count.PerKey()
            yield windowed | "Least" >> beam.CombinePerKey(min)
            yield shared | "Sum of others" >> beam.CombinePerKey(sum)
            yield shared | "Greatest" >> beam.CombinePerKey(max)

        with_shortcuts, without = _both(build)
        assert with_shortcuts == without


@pytest.mark.parametrize("windowfn", [GlobalWindows(), FixedWindows(10)], ids=str)
@pytest.mark.parametrize("of", [min, max, sum])
@pytest.mark.parametrize("seed", range(4))
def test_values_that_are_equal_or_not_ordered_give_what_python_gives_in_their_order(of, windowfn, seed):
    chance = random.Random(seed)
    odd = [0.0, -0.0, float("nan"), 1, True, 1.0, False, 0]
    elements = [((chance.choice("ab"), chance.choice(odd)), chance.randint(0, 30)) for _ in range(40)]

    def build(pipeline):
        windowed = _timed(pipeline, elements) | beam.WindowInto(windowfn)
        yield windowed | "Fused" >> beam.CombinePerKey(of)
        yield windowed | beam.Map(lambda pair: pair) | "Mapped" >> beam.CombinePerKey(of)
        yield windowed | beam.Map(lambda pair: ((pair[0],), pair[1])) | "Encoded" >> beam.CombinePerKey(of)

    with_shortcuts, without = _both(build)
    assert with_shortcuts == without


PAIRED = [GlobalWindows(), FixedWindows(10), FixedWindows(7, offset=3), Sessions(9)]


@pytest.mark.parametrize("windowfn", PAIRED, ids=str)
def test_pairs_that_are_no_tuples_are_added_up_beside_those_that_are(windowfn):
    pairs = [("a", 1), ("b", 2), ["a", 3], Pair("a", 4), ("a", 5), Pair("c", 6), (1, 7), ("b", 8)]

    def build(pipeline):
        timed = _timed(pipeline, [(pair, 4 * n - 9) for n, pair in enumerate(pairs)])
        yield timed | beam.WindowInto(windowfn) | beam.CombinePerKey(sum)

    with_shortcuts, without = _both(build)
    assert with_shortcuts == without


class Pair(NamedTuple):
    """A pair with names."""

    key: str
    value: int


@pytest.mark.parametrize("shortcuts", [True, False])
@pytest.mark.parametrize("windowfn", [GlobalWindows(), FixedWindows(10), Sessions(10)], ids=str)
@pytest.mark.parametrize(
    ("elements", "wanted"),
    [
        ([("a", 1), ("a", "b"), "ab"], "not (key, value) pairs: str"),
        ([("a", 1), ("a", 2, 3)], "not (key, value) pairs: tuple"),
        ([("a", 1), ("a", "b"), ("a",)], "not (key, value) pairs: tuple"),
        ([()], "not (key, value) pairs: tuple"),
        ([("a", 1), ("a", "b"), (1, 2)], "unsupported operand"),
        ([("a", 1), (object(), 2), ("a", "b")], "deterministic"),
        ([("a", Refusing()), ("a", 1)], "refused"),
    ],
    ids=["no pair last", "three", "one last", "none", "no number", "no key", "no addition"],
)
def test_what_cannot_be_summed_is_told_the_same_way(elements, wanted, windowfn, shortcuts):
    pipeline = beam.Pipeline()
    timed = _timed(pipeline, [(element, 1) for element in elements])
    collect_timed(timed | beam.WindowInto(windowfn) | "Sum" >> beam.CombinePerKey(sum))
    with pytest.raises(StepFailure) as caught:
        run_plain(pipeline, Settings(partitions=1, without=set() if shortcuts else {"shortcuts"}))
    failure = find_failure(str(caught.value))
    assert wanted in failure.message
    assert failure.where.startswith("at step 'Sum'")


@pytest.mark.parametrize("element", ["ab", {1, 2}, 3, ("a", 1, 2)], ids=str)
def test_a_join_says_of_what_is_no_pair_what_a_grouping_says(element):
    pipeline = beam.Pipeline()
    unknown = pipeline | beam.Create([element]).with_output_types(beam.typehints.Any)
    _ = {"left": unknown, "right": unknown} | "Join" >> beam.CoGroupByKey()
    with pytest.raises(StepFailure) as caught:
        run_plain(pipeline)
    failure = find_failure(str(caught.value))
    kind = type(element).__name__
    assert f"a grouping reads elements that are not (key, value) pairs: {kind}\n" in failure.message
    assert failure.where.startswith("at step 'Join/Tag[")


def test_sums_over_fixed_windows_ask_for_no_windows_of_elements(monkeypatch):
    monkeypatch.setattr(fixed_windows.FixedAssigner, "__call__", None)
    pipeline = beam.Pipeline()
    pairs = _timed(pipeline, [((name, 1), time) for time in range(50) for name in ("a", "b")])
    collected = collect_timed(pairs | beam.WindowInto(FixedWindows(10)) | beam.CombinePerKey(sum))
    run_plain(pipeline)
    assert len(collected) == 10
    assert {element for element, *_ in collected} == {("a", 10), ("b", 10)}


def test_names_are_counted_only_where_there_may_be_too_many(monkeypatch):
    counted: list[int] = []
    count = group_write.GroupWriter._names_held
    monkeypatch.setattr(group_write, "MOST_NAMES", 30)
    for limit in ("_FIRST_ELEMENTS", "_MOST_ELEMENTS"):
        monkeypatch.setattr(batch_sizer, limit, 10)
    monkeypatch.setattr(
        group_write.GroupWriter, "_names_held", lambda writer: counted.append(count(writer)) or counted[-1]
    )
    pipeline = beam.Pipeline()
    pairs = pipeline | beam.Create([(str(n % 10), 1) for n in range(100)])
    collected = collect_timed(pairs | beam.CombinePerKey(sum))
    run_plain(pipeline, Settings(partitions=1))
    assert {element for element, *_ in collected} == {(str(n), 10) for n in range(10)}
    assert 1 <= len(counted) <= 5
    assert set(counted) == {10}


def test_sessions_at_the_ends_of_time_are_the_same_with_shortcuts_and_without():
    times = (MIN_TIMESTAMP, MIN_TIMESTAMP + 1, MAX_TIMESTAMP, MAX_TIMESTAMP - 1, MAX_TIMESTAMP - 60)

    def build(pipeline):
        pairs = _timed(pipeline, [(("a", 1), time) for time in times])
        yield pairs | beam.WindowInto(Sessions(5)) | beam.CombinePerKey(sum)

    with_shortcuts, without = _both(build)
    assert with_shortcuts == without


def test_elements_that_bring_their_own_windows_are_in_the_same_sessions():
    own = [(IntervalWindow(0, 9),), (IntervalWindow(3, 4), IntervalWindow(8, 12)), (GlobalWindow(),)]

    def build(pipeline):
        windowed = pipeline | beam.Create([0, 1, 2]) | beam.WindowInto(Sessions(5))
        pairs = windowed | beam.Map(
            lambda n: beam.utils.windowed_value.WindowedValue(("a", n + 1), 0, own[n])
        )
        yield pairs | beam.CombinePerKey(sum)

    with_shortcuts, without = _both(build)
    assert with_shortcuts == without


@pytest.mark.parametrize(
    "combiner", [TimestampCombiner.OUTPUT_AT_EARLIEST, TimestampCombiner.OUTPUT_AT_LATEST]
)
def test_sums_that_come_at_the_time_of_an_input_are_the_same(combiner):
    def build(pipeline):
        pairs = _timed(pipeline, [(("a", n), n) for n in (5, 1, 30, 3)])
        for windowfn in (FixedWindows(10), Sessions(5)):
            windowed = pairs | str(windowfn) >> beam.WindowInto(windowfn, timestamp_combiner=combiner)
            yield windowed | f"Sum {windowfn}" >> beam.CombinePerKey(sum)

    with_shortcuts, without = _both(build)
    assert with_shortcuts == without


def _seen(
    element: Any,
    window: Any = beam.DoFn.WindowParam,
    time: Any = beam.DoFn.TimestampParam,
    pane: Any = beam.DoFn.PaneInfoParam,
) -> Any:
    return element, window, time, pane


def test_the_function_of_a_map_sees_window_time_and_pane_with_shortcuts_and_without():
    def build(pipeline):
        elements = _timed(pipeline, [(n, n) for n in range(9)])
        yield elements | "Alone" >> beam.Map(_seen)
        sliding = elements | beam.WindowInto(SlidingWindows(4, 2))
        yield sliding | "In two" >> beam.Map(_seen)
        yield sliding | "Constant" >> beam.Map(lambda x, more, w=beam.DoFn.WindowParam: (x, more, w), "more")
        yield sliding | "By name" >> beam.Map(lambda x, w=beam.DoFn.WindowParam, y=0: (x, w, y), y=3)
        yield sliding | "Timed anew" >> beam.Map(
            lambda x, w=beam.DoFn.WindowParam: TimestampedValue(x, w.start)
        )

    with_shortcuts, without = _both(build)
    assert with_shortcuts == without


@pytest.mark.parametrize("shortcuts", [True, False])
def test_an_error_of_a_map_with_a_window_and_of_a_sum_names_its_step(shortcuts):
    def first(element: Any, window: Any = beam.DoFn.WindowParam) -> Any:
        return element[1] // 0

    def run(build) -> str:
        pipeline = beam.Pipeline()
        pairs = _timed(pipeline, [(("a", 1), 0), (("a", "b"), 0)]) | beam.WindowInto(Sessions(1))
        build(pairs)
        with pytest.raises(StepFailure) as caught:
            run_plain(pipeline, Settings(without=set() if shortcuts else {"shortcuts"}))
        return str(caught.value)

    assert run(lambda pairs: pairs | "First" >> beam.Map(first)).startswith(
        "ZeroDivisionError at step 'First'"
    )
    assert run(lambda pairs: pairs | "Sum" >> beam.CombinePerKey(sum)).startswith("TypeError at step 'Sum'")


@pytest.fixture(name="written")
def _written(monkeypatch):
    """How many rows were written, flush by flush."""
    written: list[int] = []
    make = group_write.exchange_records

    def noting(output, tag, keys, *columns):
        written.append(len(keys))
        return make(output, tag, keys, *columns)

    monkeypatch.setattr(group_write, "exchange_records", noting)
    return written


def _sums_of_two(values: list[Any], keys: tuple[Any, Any] = ("a", "b")) -> None:
    """Adds values up for two keys."""
    pipeline = beam.Pipeline()
    pairs = pipeline | beam.Create([(keys[n % 2], value) for n, value in enumerate(values)])
    collect_timed(pairs | beam.CombinePerKey(sum))
    run_plain(pipeline, Settings(partitions=1))


@pytest.mark.parametrize("keys", [("a", "b"), (1, 2)], ids=str)
def test_sums_of_numbers_are_written_once_however_many_values_there_are(written, keys):
    _sums_of_two([1, 0.5] * 1000, keys)
    assert written == [2]


@pytest.mark.parametrize(
    ("values", "keys"),
    [
        ([Decimal(1)] * 2000, ("a", "b")),
        ([1] * 2000, (1.5, 2.5)),
        ([1] * 2000, ("a" * 5_000, "b" * 5_000)),
        ([1] * 1000 + [1 << 80_000] * 3000, ("a", "b")),
    ],
    ids=["values of any kind", "keys of any kind", "large keys", "large numbers"],
)
def test_sums_that_may_be_large_are_written_as_they_come(written, values, keys, monkeypatch):
    monkeypatch.setattr(flush_limit, "FLUSH_BYTES", 10_000)
    _sums_of_two(values, keys)
    assert len(written) > 1


def test_sums_over_sessions_are_written_once_a_session_where_they_are_whole_numbers(monkeypatch):
    written: list[int] = []
    make = group_write.exchange_records

    def noting(output, tag, keys, *columns):
        written.append(len(keys))
        assert set(columns[-1]) == {None}
        return make(output, tag, keys, *columns)

    monkeypatch.setattr(group_write, "exchange_records", noting)
    pipeline = beam.Pipeline()
    pairs = _timed(pipeline, [(("a", 1), time) for time in range(50)]) | beam.WindowInto(Sessions(5))
    collected = collect_timed(pairs | beam.CombinePerKey(sum))
    run_plain(pipeline, Settings(partitions=1))
    assert [element for element, *_ in collected] == [("a", 50)]
    assert written == [1]


def test_a_window_is_asked_for_its_sums_once_in_a_row():
    asked = []
    first, second = object(), object()
    windows = [first, first, second, first]
    assert SUM.source is not None
    for elements in (("abab", [1] * 4), ([("a", 1)] * 4, str)):
        add = loop_of(SUM.source, "window", from_pairs=elements[1] is str)
        add(lambda own: asked.append(own) or {}, windows, *elements)
    assert asked == [first, second] * 2


def test_a_subclass_of_a_sum_gives_its_own_output():
    class Shown(CallableWrapperCombineFn):
        def extract_output(self, accumulator, *args, **kwargs):
            return f"<{super().extract_output(accumulator)}>"

    for windowfn in (FixedWindows(10), Sessions(5)):
        pipeline = beam.Pipeline()
        windowed = _timed(pipeline, [(("a", 1), time) for time in range(3)]) | beam.WindowInto(windowfn)
        collected = collect_timed(windowed | beam.CombinePerKey(Shown(sum)))
        run_plain(pipeline)
        assert [element for element, *_ in collected] == [("a", "<3>")]
