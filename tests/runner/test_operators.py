"""The parts of the worker's runtime, one by one."""

from __future__ import annotations

import random
from typing import Any

import pytest

import penstock as beam
from penstock.pvalue import AsDict, AsIter, AsSingleton
from penstock.transforms.window import (
    FixedWindows,
    GlobalWindows,
    IntervalWindow,
    Sessions,
    SlidingWindows,
    TimestampedValue,
    WindowFn,
)
from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Timestamp
from penstock.utils.windowed_value import WindowedValue
from penstock_spark.folding.merging import merge_groups
from penstock_spark.reports.failure import StepFailure, find_failure, to_exception
from penstock_spark.worker.batch import Batch, decode_page, encode_page
from penstock_spark.worker.inline import inline_batches
from penstock_spark.worker.windowing import make_assigner
from tests.runner.plain_runner import collect, collect_timed, run_plain

# Windows.


@pytest.mark.parametrize("seed", range(20))
def test_sessions_merged_by_looking_at_neighbours_are_those_of_asking_the_window_fn(seed):
    at = random.Random(seed)
    sessions = Sessions(5, merge_touching=bool(seed % 2))
    windows = sorted(
        {IntervalWindow(start, start + at.randint(5, 9)) for start in at.choices(range(60), k=12)},
        key=lambda window: (window.start, window.end),
    )

    def groups():
        return ((window, iter([(window.start.micros, repr(window).encode())])) for window in windows)

    one_pass, asked = (
        [
            (window, min(chunks)[0], sorted(chunk for _, chunk in chunks))
            for window, chunks in (
                (window, list(chunks)) for window, chunks in merge_groups(sessions, groups(), way)
            )
        ]
        for way in (True, False)
    )
    assert one_pass == asked
    assert sum(len(chunks) for _, _, chunks in one_pass) == len(windows)


class Inventing(Sessions):
    """Merges a window it never assigned, which shows only where elements are numbers."""

    def assign(self, context):
        return super().assign(context) if context.element[1] > 0 else []

    def merge(self, context):
        context.merge([IntervalWindow(7, 8)], IntervalWindow(0, 9))


def test_a_window_fn_that_merges_a_window_it_never_gave_is_refused_and_named():
    pipeline = beam.Pipeline()
    collect(pipeline | beam.Create([(1, 1)]) | "Odd" >> beam.WindowInto(Inventing(5)) | beam.GroupByKey())
    with pytest.raises(StepFailure, match="InventedWindowError at step 'GroupByKey'") as caught:
        run_plain(pipeline)
    assert "has no elements" in str(to_exception(find_failure(str(caught.value))))


class Odd(WindowFn):
    """Windows by value and by the window before."""

    def assign(self, context):
        return [IntervalWindow(context.element, context.element + 1), context.window]

    def merge(self, context):
        pass


@pytest.mark.parametrize(
    "windowfn",
    [
        GlobalWindows(),
        FixedWindows(10),
        FixedWindows(0.000007, offset=0.000003),
        SlidingWindows(10, 3, offset=1),
        SlidingWindows(2, 7),
        Sessions(5),
        Odd(),
    ],
)
def test_a_batch_gets_the_windows_that_the_window_fn_assigns_one_by_one(windowfn, monkeypatch):
    monkeypatch.setattr("penstock_spark.worker.windowing.CACHE_LIMIT", 5)
    monkeypatch.setattr("penstock_spark.worker.fixed_windows.CACHE_LIMIT", 5)
    at = random.Random(11)
    times = [
        MIN_TIMESTAMP.micros,
        MAX_TIMESTAMP.micros,
        -1,
        0,
        1,
        *(at.randrange(-(10**9), 10**9) for _ in range(50)),
    ]
    batch = Batch(list(range(len(times))), times, [(IntervalWindow(n, n + 5),) for n in range(len(times))])
    assign = make_assigner(windowfn)

    def one_by_one(value: int, micros: int) -> tuple[Any, ...]:
        before = IntervalWindow(value, value + 5)
        return tuple(windowfn.assign(WindowFn.AssignContext(Timestamp.from_micros(micros), value, before)))

    expected = [one_by_one(value, micros) for value, micros in enumerate(times)]
    for _ in range(2):
        made = assign(batch)
        assert (made if isinstance(made, list) else [made] * len(times)) == expected
    for value, micros in enumerate(times[:5]):
        alone = assign(Batch([value], micros, (IntervalWindow(value, value + 5),)))
        assert (alone[0] if isinstance(alone, list) else alone) == expected[value]


# Batches.


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_batch_in_shared_form_means_the_same_as_one_with_lists(is_shared):
    windows = (IntervalWindow(0, 1), IntervalWindow(0, 2))
    batch = (
        Batch([1, 2, 3], 7, windows, "pane")
        if is_shared
        else Batch([1, 2, 3], [7] * 3, [windows] * 3, ["pane"] * 3)
    )
    rows = [(value, 7, windows, "pane") for value in (1, 2, 3)]
    assert batch.shared == is_shared
    assert (
        list(batch.rows())
        == rows
        == list(batch.expand().rows())
        == list(decode_page(encode_page(batch)).rows())
    )
    assert list(batch.select([True, 0, "yes"]).rows()) == [rows[0], rows[2]]
    assert list(batch.every(1, 2).rows()) == [rows[1]]
    assert list(batch.explode().rows()) == [(v, at, (w,), pane) for v, at, own, pane in rows for w in own]


@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 50])
def test_every_value_of_the_program_is_in_one_slice_and_once(partitions, monkeypatch):
    monkeypatch.setattr("penstock_spark.worker.inline.CHUNK_ELEMENTS", 4)
    for count in range(12):
        values = tuple(
            [n, TimestampedValue(n, n), WindowedValue(n, n, (IntervalWindow(n, n + 1),))][n % 3]
            for n in range(count)
        )
        rows = [
            row
            for partition in range(partitions)
            for batch in inline_batches(values, partition, partitions)
            for row in batch.rows()
        ]
        assert [value for value, *_ in rows] == list(range(count))
        assert [at for _, at, *_ in rows] == [
            n * 1_000_000 if n % 3 else MIN_TIMESTAMP.micros for n in range(count)
        ]
        assert [w == (IntervalWindow(n, n + 1),) for n, (_, _, w, _) in enumerate(rows)] == [
            n % 3 == 2 for n in range(count)
        ]


# Arguments and outputs.


def tells_all(
    element,
    fixed,
    *more,
    key=beam.DoFn.KeyParam,
    at=beam.DoFn.TimestampParam,
    window=beam.DoFn.WindowParam,
    pane=beam.DoFn.PaneInfoParam,
    named=0,
    **others,
):
    yield element, fixed, more, key, at.micros, window, pane.index, named, sorted(others.items())


def test_a_dofn_gets_the_arguments_that_its_parameters_ask_for():
    pipeline = beam.Pipeline()
    side = pipeline | "Side" >> beam.Create([("x", 1)])
    pairs = pipeline | beam.Create([TimestampedValue(("k", 1), 3)]) | beam.WindowInto(FixedWindows(5))
    into = [
        collect(pairs | "All" >> beam.ParDo(tells_all, 7, named=AsDict(side), other=AsIter(side)), "A"),
        collect(pairs | "Few" >> beam.ParDo(tells_all, AsSingleton(side)), "B"),
        collect(pairs | "Default" >> beam.Map(lambda x, y=2, *z: (x, y, z)), "C"),
        collect(pairs | "Tuple" >> beam.MapTuple(lambda k, v, more=0: (k, v, more), more=3), "D"),
        collect(pairs | "By name" >> beam.Map(lambda x, *, y, z=4: (y, z), y=5), "E"),
        collect(
            pairs | "Only last" >> beam.Map(lambda w=beam.DoFn.WindowParam, x=beam.DoFn.ElementParam: (w, x)),
            "F",
        ),
    ]
    run_plain(pipeline)
    window = IntervalWindow(0, 5)
    rest = ("k", 3_000_000, window, 0)
    assert into == [
        [(("k", 1), 7, (), *rest, {"x": 1}, [("other", [("x", 1)])])],
        [(("k", 1), ("x", 1), (), *rest, 0, [])],
        [(("k", 1), 2, ())],
        [("k", 1, 3)],
        [(5, 4)],
        [(window, ("k", 1))],
    ]


def routed(x):
    yield x
    yield beam.pvalue.TaggedOutput("late", TimestampedValue(x, 11))
    yield beam.pvalue.TaggedOutput("nobody", x)
    yield TimestampedValue(-x, 21)
    yield beam.pvalue.TaggedOutput("late", WindowedValue(x, 5, (IntervalWindow(1, 9), IntervalWindow(2, 9))))


@pytest.mark.parametrize("chunk", [1, 3, 4096])
@pytest.mark.parametrize("count", [1, 5])
def test_each_output_goes_to_its_reader_with_its_own_time_and_windows(count, chunk, monkeypatch):
    for module in ("inline", "outputs"):
        monkeypatch.setattr(f"penstock_spark.worker.{module}.CHUNK_ELEMENTS", chunk)
    pipeline = beam.Pipeline()
    timed = (
        pipeline
        | beam.Create([TimestampedValue(n, n) for n in range(count)])
        | beam.WindowInto(FixedWindows(10))
    )
    outputs = timed | beam.FlatMap(routed).with_outputs("late", main="main")
    main, late = collect_timed(outputs.main, "Main"), collect_timed(outputs.late, "Late")
    metrics = run_plain(pipeline)
    key = repr
    expected = [(n, n * 10**6, IntervalWindow(0, 10)) for n in range(count)]
    expected += [(-n, 21 * 10**6, IntervalWindow(20, 30)) for n in range(count)]
    assert sorted(main, key=key) == sorted(expected, key=key)
    expected = [(n, 11 * 10**6, IntervalWindow(10, 20)) for n in range(count)]
    expected += [(n, 5 * 10**6, IntervalWindow(start, 9)) for n in range(count) for start in (1, 2)]
    assert sorted(late, key=key) == sorted(expected, key=key)
    assert metrics["counters", "FlatMap(routed)", "penstock", "outputs_without_reader"] == count
