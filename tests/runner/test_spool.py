"""The values of large groups, and tables of accumulators."""

from __future__ import annotations

import gc
import pickle
import random
import weakref
from itertools import islice
from typing import Any

import pytest

import penstock as beam
from penstock.coders.deterministic import encode_key
from penstock.functions.folds import fold_of
from penstock.transforms.combiners import CountCombineFn, MeanCombineFn
from penstock.transforms.core import CombineFn
from penstock.transforms.window import GlobalWindows
from penstock_spark.folding.tables import FoldTable, LoopTable, table_for
from penstock_spark.plan.hosts import Loop
from penstock_spark.worker import spool
from penstock_spark.worker.batch import dumps
from penstock_spark.worker.spool import GroupedValues, Spool, drain_if_kept
from tests.runner.plain_runner import Settings, collect, run_plain

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
    drain_if_kept(weakref.ref(values))
    assert len(taken) == 4
    assert list(values) == expected
    values, _, taken = grouped()
    lent = weakref.ref(values)
    del values
    gc.collect()
    drain_if_kept(lent)
    assert taken == []


def test_a_large_group_that_a_step_keeps_over_the_next_ones_is_whole(monkeypatch):
    monkeypatch.setattr("penstock_spark.folding.group_read.BUFFER_BYTES", 1)
    monkeypatch.setattr("penstock_spark.worker.flush_limit.FIRST_ELEMENTS", 2)
    monkeypatch.setattr("penstock_spark.worker.flush_limit.FLUSH_BYTES", 1)

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
        (CountCombineFn(), LoopTable),
        (CombineFn.from_callable(sum), LoopTable),
        (CombineFn.from_callable(max), LoopTable),
        (CombineFn.from_callable(min), LoopTable),
        (MeanCombineFn(), FoldTable),
    ],
)
def test_a_table_equals_its_combine_fn_for_keys_that_python_finds_equal(fn, table, monkeypatch):
    monkeypatch.setattr("penstock_spark.folding.tables._WAITING_VALUES", 7)
    at = random.Random(5)
    keys = [1, 1.0, True, "1", 0, -0.0, 0.0, False, None, (1,), (True,)]
    elements = [(encode_key(at.choice(keys)), at.choice([1, 2.5, True, 3])) for _ in range(200)]
    fold = fold_of(fn)
    made = table_for(fold, Loop.CALLS if fold.source is None else Loop.VALUES)()
    assert isinstance(made, table)
    for first in range(0, len(elements), 9):
        names, values = zip(*elements[first : first + 9], strict=True)
        made.add(list(names), list(values))
    found = {name: fold.finish(held) for name, held in made.partials_by_name().items()}
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
    fn = CombineFn.from_callable(sum)
    fold = fold_of(fn)
    table = table_for(fold, Loop.VALUES)()
    table.add(["a", "a"], [first, Bag([2])])
    assert first.items == [1]
    assert table.partials_by_name()["a"].items == [1, 2]
