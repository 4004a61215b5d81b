"""Retractions on Spark: counts of sessions by their length, and the total, are right at the end, in every mode."""

from __future__ import annotations

from collections import Counter

import pytest

import penstock as beam
from penstock.io import WriteToMemory
from penstock.relations.changelog import Changelog
from penstock.testing.test_stream import TestStream
from penstock.transforms.combiners import Count
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark, Repeatedly
from penstock.transforms.window import GlobalWindows, Sessions, TimestampedValue

RETRACTING = AccumulationMode.ACCUMULATING_AND_RETRACTING

# The fourth visit makes one session of two, and so does the last one, which is late.
VISITS = [("amy", 0), ("bob", 2), ("amy", 15), ("amy", 8), ("bob", 40), ("cem", 43), ("cem", 60), ("cem", 52)]


class Visits(beam.PTransform):
    """Pairs of a user and 1, each at its second: as a stream that tells them one by one, or all at once."""

    def __init__(self, is_batch):
        super().__init__()
        self._is_batch = is_batch

    def expand(self, pbegin):
        if self._is_batch:
            return pbegin | beam.Create(VISITS) | beam.MapTuple(_timed)
        stream = TestStream()
        for number, visit in enumerate(VISITS):
            stream = stream.add_elements([_timed(*visit)]).advance_watermark_to(10 * number)
        return pbegin | stream.advance_watermark_to_infinity()


def _timed(user, seconds):
    return TimestampedValue((user, 1), seconds)


def _length(session, window=beam.DoFn.WindowParam):
    return int(window.end - window.start), session[0]


def net(changes):
    """What is left when what is undone is taken out."""
    left = Counter()
    for kind, value in changes:
        left[value] += -1 if kind.is_retraction else 1
    assert min(left.values(), default=0) >= 0
    return sorted((+left).elements())


@pytest.mark.parametrize("mode", ["streaming", "micro_batch", "batch"])
def test_counts_of_sessions_by_length(spark, mode):
    counts, totals = [], []
    sessions = beam.WindowInto(
        Sessions(10),
        trigger=AfterWatermark(early=AfterCount(1), late=AfterCount(1)),
        accumulation_mode=RETRACTING,
        allowed_lateness=1_000,
    )
    at_once = beam.WindowInto(
        GlobalWindows(), trigger=Repeatedly(AfterCount(1)), accumulation_mode=RETRACTING
    )
    with beam.Pipeline(spark=spark, mode=mode) as pipeline:
        visits = pipeline | Visits(mode == "batch") | sessions | "Sessions" >> beam.GroupByKey()
        by_length = visits | beam.Map(_length) | "At once" >> at_once | "Per length" >> Count.PerKey()
        total = by_length | beam.MapTuple(lambda _, count: ("all", count)) | beam.CombinePerKey(sum)
        _ = by_length | "Counts" >> Changelog() | "Write counts" >> WriteToMemory(counts)
        _ = total | "Totals" >> Changelog() | "Write totals" >> WriteToMemory(totals)
    assert net(counts) == [(10, 2), (25, 1), (27, 1)]
    assert net(totals) == [("all", 4)]
