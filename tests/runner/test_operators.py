"""The parts of the worker's runtime, one by one."""

from __future__ import annotations

import gc
import pickle
import random
import tempfile
from itertools import islice
from typing import Any

import pytest
from plain_runner import Settings, collect, collect_timed, run_plain

import penstock as beam
from penstock.coders.deterministic import encode_key
from penstock.pvalue import AsDict, AsIter, AsSingleton
from penstock.transforms.combiners import CountCombineFn, MeanCombineFn
from penstock.transforms.core import CombineFn
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
from penstock_spark.operators import failure, spool
from penstock_spark.operators.batch import Batch, decode_page, dumps, encode_page
from penstock_spark.operators.failure import (
    StepFailed,
    UserCodeError,
    find_failure,
    step_failed,
    to_exception,
)
from penstock_spark.operators.inline import inline_batches
from penstock_spark.operators.merging import merged_groups
from penstock_spark.operators.spool import GroupedValues, Lent, Spool
from penstock_spark.operators.tables import CountTable, FoldTable, SumTable, table_for
from penstock_spark.operators.windowing import assigner

WHERE = "at step 'A' (game.py:41)"


# Spools and the values of large groups.


@pytest.mark.parametrize("limit", [0, 10, 1 << 20])
def test_a_spool_gives_its_chunks_back_in_order_however_much_fits_into_memory(limit):
    chunks = [bytes([number]) * number for number in range(20)]
    kept = Spool(limit)
    for number, chunk in enumerate(chunks):
        kept.append(chunk)
        assert kept[number] == chunk
        assert kept[0] == b""
    assert len(kept) == len(chunks)
    assert list(kept) == chunks == list(kept)


def grouped(head: int = 1, count: int = 5) -> tuple[GroupedValues, list[int], list[bytes]]:
    """Values in chunks of two, what they are, and the chunks that were taken from the shuffle."""
    chunks = [dumps([2 * number, 2 * number + 1]) for number in range(count)]
    taken: list[bytes] = []

    def rest() -> Any:
        for chunk in chunks[head:]:
            taken.append(chunk)
            yield chunk

    return GroupedValues(encode_key("k"), chunks[:head], rest()), list(range(2 * count)), taken


@pytest.mark.parametrize("limit", [0, 1 << 20])
def test_grouped_values_are_read_as_needed_and_any_number_of_times(limit, monkeypatch):
    monkeypatch.setattr(spool.Spool.__init__, "__defaults__", (limit,))
    values, expected, taken = grouped()
    assert list(islice(values, 3)) == expected[:3]
    assert len(taken) == 1
    assert [(a, b) for a in values for b in values] == [(a, b) for a in expected for b in expected]
    half = iter(values)
    assert list(islice(half, 5)) == expected[:5]
    assert list(values) == expected
    assert list(half) == expected[5:]
    assert pickle.loads(pickle.dumps(values)) == expected
    assert "0" not in repr(values)


def test_grouped_values_that_somebody_kept_are_read_to_the_end_and_others_are_not():
    values, expected, taken = grouped()
    lent = Lent(values)
    lent.settle()
    assert len(taken) == 4
    assert list(values) == expected
    values, _, taken = grouped()
    lent = Lent(values)
    del values
    gc.collect()
    lent.settle()
    assert taken == []


def test_a_large_group_that_a_step_keeps_over_the_next_ones_is_whole(monkeypatch):
    monkeypatch.setattr("penstock_spark.operators.group_read.BUFFER_BYTES", 1)
    monkeypatch.setattr("penstock_spark.operators.group_write._FIRST_FLUSH_ELEMENTS", 2)
    monkeypatch.setattr("penstock_spark.operators.group_write.FLUSH_BYTES", 1)

    class KeepAll(beam.DoFn):
        def start_bundle(self):
            self.kept = []

        def process(self, group):
            next(iter(group[1]))
            self.kept.append(group)

        def finish_bundle(self):
            for key, values in self.kept:
                yield GlobalWindows.windowed_value((key, sorted(values)))

    pipeline = beam.Pipeline()
    pairs = pipeline | beam.Create([(number % 3, number) for number in range(30)])
    into = collect(pairs | "Same" >> beam.FlatMap(lambda x: [x]) | beam.GroupByKey() | beam.ParDo(KeepAll()))
    run_plain(pipeline, Settings(partitions=1))
    assert sorted(into) == [(key, list(range(key, 30, 3))) for key in range(3)]


# Tables of accumulators.


@pytest.mark.parametrize(
    ("fn", "table"),
    [
        (CountCombineFn(), CountTable),
        (CombineFn.from_callable(sum), SumTable),
        (CombineFn.from_callable(max), FoldTable),
        (MeanCombineFn(), FoldTable),
    ],
)
def test_a_table_equals_its_combine_fn_for_keys_that_python_finds_equal(fn, table, monkeypatch):
    monkeypatch.setattr("penstock_spark.operators.tables._FOLD_ELEMENTS", 7)
    at = random.Random(5)
    keys = [1, 1.0, True, "1", 0, -0.0, 0.0, False, None, (1,), (True,)]
    elements = [(encode_key(at.choice(keys)), at.choice([1, 2.5, True, 3])) for _ in range(200)]
    made = table_for(fn)()
    assert isinstance(made, table)
    for first in range(0, len(elements), 9):
        names, values = zip(*elements[first : first + 9], strict=True)
        made.add(list(names), list(values))
    found = {name: fn.extract_output(accumulator) for name, accumulator in made.accumulators().items()}
    assert found == {name: fn.apply([v for n, v in elements if n == name]) for name, _ in elements}
    assert len(found) == len(keys)


def test_a_sum_leaves_the_values_of_the_user_as_they_are():
    class Bag:
        def __init__(self, items):
            self.items = items

        def __radd__(self, zero):
            return self

        def __add__(self, other):
            return Bag(self.items + other.items)

        def __iadd__(self, other):
            self.items += other.items
            return self

    first = Bag([1])
    table = SumTable(CombineFn.from_callable(sum))
    table.add(["a", "a"], [first, Bag([2])])
    assert first.items == [1]
    assert table.accumulators()["a"][0].items == [1, 2]


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
                (window, list(chunks)) for window, chunks in merged_groups(sessions, groups(), way)
            )
        ]
        for way in (True, False)
    )
    assert one_pass == asked
    assert sum(len(chunks) for _, _, chunks in one_pass) == len(windows)


class Inventing(Sessions):
    def merge(self, context):
        context.merge([IntervalWindow(7, 8)], IntervalWindow(0, 9))


def test_a_window_fn_that_merges_a_window_it_never_gave_is_refused_and_named():
    pipeline = beam.Pipeline()
    collect(pipeline | beam.Create([(1, 1)]) | "Odd" >> beam.WindowInto(Inventing(5)) | beam.GroupByKey())
    with pytest.raises(StepFailed, match="ValueError at step 'GroupByKey'") as caught:
        run_plain(pipeline)
    assert "no element is in" in str(to_exception(find_failure(str(caught.value))))


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
    monkeypatch.setattr("penstock_spark.operators.windowing._CACHE_LIMIT", 5)
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
    assign = assigner(windowfn)

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
        == list(batch.expanded().rows())
        == list(decode_page(encode_page(batch)).rows())
    )
    assert list(batch.compressed([True, 0, "yes"]).rows()) == [rows[0], rows[2]]
    assert list(batch.every(1, 2).rows()) == [rows[1]]
    assert list(batch.exploded().rows()) == [(v, at, (w,), pane) for v, at, own, pane in rows for w in own]


@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 50])
def test_every_value_of_the_program_is_in_one_slice_and_once(partitions, monkeypatch):
    monkeypatch.setattr("penstock_spark.operators.inline.CHUNK_ELEMENTS", 4)
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


# Failures.


class TwoArguments(Exception):
    def __init__(self, what, why):
        super().__init__(f"{what} because {why}")
        self.why = why


class KeywordOnly(ValueError):
    def __init__(self, *, code):
        super().__init__()
        self.code = code

    def __str__(self):
        return f"code {self.code}"


class HoldsAFile(Exception):
    def __init__(self, message):
        super().__init__(message)
        self.file = tempfile.TemporaryFile()  # noqa: SIM115


class WithoutText(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class Fine(LookupError):
    """Survives the way."""


def brought_back(error: BaseException) -> BaseException:
    with pytest.raises(StepFailed) as caught:
        step_failed(error, WHERE)
    with pytest.raises(StepFailed) as again:
        step_failed(caught.value, "at step 'B'")
    assert again.value is caught.value
    text = f"Job aborted.\n{caught.value}\n\tat java"
    return to_exception(find_failure(text))


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (Fine("gone"), Fine, "gone [while running 'A' (game.py:41)]"),
        (KeyError(3), KeyError, "3"),
        (ValueError(), ValueError, ""),
        (OSError(2, "no such file"), FileNotFoundError, "no such file"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), UnicodeDecodeError, "bad"),
        (TwoArguments("a", "b"), UserCodeError, "TwoArguments: a because b"),
        (KeywordOnly(code=5), UserCodeError, "KeywordOnly: code 5"),
        (HoldsAFile("open"), UserCodeError, "HoldsAFile: open"),
        (WithoutText(), WithoutText, None),
        (ValueError("long " * 100_000), UserCodeError, "ValueError: long long"),
        (ValueError("half a pair \ud800 \n penstock-failure<"), ValueError, "half a pair"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else None,
)
def test_an_exception_comes_back_as_itself_or_says_what_it_was(error, kind, text):
    found = brought_back(error)
    assert type(found) is kind
    assert text is None or text in str(found)
    assert "at step 'A' (game.py:41)" in (str(found) if kind is UserCodeError else found.__notes__[-1])
    assert "In the worker:" in found.__notes__[-1]


def test_an_exception_comes_back_with_its_attributes_its_notes_and_the_code_that_raised_it():
    def user_code():
        try:
            raise KeyError("the cause")
        except KeyError as cause:
            error = Fine("gone")
            error.code = 7
            error.add_note("the user's note")
            raise error from cause

    with pytest.raises(Fine) as caught:
        user_code()
    found = brought_back(caught.value)
    assert found.code == 7
    assert found.__notes__[0] == "the user's note"
    assert "user_code" in found.__notes__[-1]
    assert "the cause" in found.__notes__[-1]


def test_a_text_without_a_mark_has_no_failure():
    assert find_failure("Job aborted. penstock-failure<>") is None
    assert failure.find_failure("") is None


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
    for module in ("inline", "outputs", "steps"):
        monkeypatch.setattr(f"penstock_spark.operators.{module}.CHUNK_ELEMENTS", chunk)
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
