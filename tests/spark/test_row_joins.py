"""Joins of rows on Spark: what is not undone at the end is the table, in every mode."""

from __future__ import annotations

from collections import Counter

import pytest

import penstock as beam
from penstock.io import WriteToMemory
from penstock.relations.changelog import Changelog
from penstock.relations.joins import JoinRows
from penstock.relations.validity import ValidityJoin
from penstock.testing.test_stream import TestStream
from penstock.transforms.window import TimestampedValue

MODES = pytest.mark.parametrize("mode", ["streaming", "micro_batch", "batch"])


class Rows(beam.PTransform):
    """Rows of a key, each at its second: as a stream that tells them one by one, or all at once."""

    def __init__(self, rows, is_batch):
        super().__init__()
        self._rows = rows
        self._is_batch = is_batch

    def expand(self, pbegin):
        if self._is_batch:
            return pbegin | beam.Create(self._rows) | beam.MapTuple(_timed)
        stream = TestStream()
        for row in self._rows:
            stream = stream.add_elements([_timed(*row)])
        return pbegin | stream.advance_watermark_to_infinity()


def _timed(key, row, seconds):
    return TimestampedValue((key, row), seconds)


def net(changes):
    """What is left when what is undone is taken out."""
    left = Counter()
    for kind, row in changes:
        left[row] += -1 if kind.is_retraction else 1
    assert min(left.values(), default=0) >= 0
    return sorted((+left).elements(), key=repr)


@MODES
def test_a_full_outer_join(spark, mode):
    lefts = [(1, "L1", 2), (3, "L3", 3), (2, "L2", 6)]
    rights = [(2, "R2", 1), (3, "R3", 4), (4, "R4", 5)]
    found = []
    with beam.Pipeline(spark=spark, mode=mode) as pipeline:
        sides = [
            pipeline | label >> Rows(rows, mode == "batch")
            for label, rows in (("Lefts", lefts), ("Rights", rights))
        ]
        _ = sides | JoinRows("full") | Changelog() | WriteToMemory(found)
    assert net(found) == [(1, ("L1", None)), (2, ("L2", "R2")), (3, ("L3", "R3")), (4, (None, "R4"))]


@MODES
def test_orders_and_rates(spark, mode):
    orders = [("Euro", 2, 120), ("Euro", 5, 300), ("Euro", 3, 480)]
    rates = [("Euro", 114, 0), ("Euro", 119, 360), ("Euro", 116, 180)]
    found = []
    with beam.Pipeline(spark=spark, mode=mode) as pipeline:
        sides = [
            pipeline | label >> Rows(rows, mode == "batch")
            for label, rows in (("Orders", orders), ("Rates", rates))
        ]
        joined = sides | ValidityJoin(final=True)
        products = joined | beam.MapTuple(lambda currency, pair: pair[0] * pair[1])
        _ = products | WriteToMemory(found)
    assert sorted(found) == [228, 357, 580]
