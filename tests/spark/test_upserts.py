"""Upserts on Spark: a table is the same in every mode, and after a run that was cancelled and went on."""

from __future__ import annotations

from collections import Counter

import pytest

import ledger
import penstock as beam
from penstock.io import WriteToMemory
from penstock.options.pipeline_options import PipelineOptions
from penstock.relations.upserts import Upsert, keep_last_upserts
from penstock.testing.test_stream import TestStream
from penstock.transforms.trigger import AccumulationMode, AfterCount, Repeatedly
from penstock.transforms.window import IntervalWindow, Sessions, TimestampedValue

FILES = 5


def visit(second):
    return TimestampedValue(("amy", 1), second)


def visits(pipeline, is_batch):
    seconds = (0, 20, 12, 50)
    if is_batch:
        return pipeline | beam.Create(seconds) | beam.Map(visit)
    stream = TestStream()
    for second in seconds:
        stream = stream.add_elements([visit(second)]).advance_processing_time(1)
    return pipeline | stream.advance_watermark_to_infinity()


@pytest.mark.parametrize("mode", ["streaming", "micro_batch", "batch"])
def test_sessions_that_merge_are_one_row(spark, mode):
    found = []
    retracting = AccumulationMode.ACCUMULATING_AND_RETRACTING
    sessions = beam.WindowInto(Sessions(10), Repeatedly(AfterCount(1)), accumulation_mode=retracting)
    with beam.Pipeline(spark=spark, mode=mode) as pipeline:
        counts = visits(pipeline, mode == "batch") | sessions | beam.CombinePerKey(sum)
        _ = counts | beam.Upserts(by_window=True) | WriteToMemory(found)
    rows = {upsert for upsert in keep_last_upserts(found) if not upsert.is_deleted}
    windows = {IntervalWindow(0, 10): 1, IntervalWindow(12, 30): 2, IntervalWindow(50, 60): 1}
    assert rows == {Upsert(("amy", window), count) for window, count in windows.items()}


def test_a_database_is_right_after_a_run_that_was_cancelled_and_went_on(spark, tmp_path):
    ledger.deal_out(tmp_path / "transfers", FILES, count=10)
    flags = [f"--checkpoint_location={tmp_path}/checkpoint", "--mode=streaming", "--shuffle_partitions=2"]
    balances, standings = (ledger.Table(tmp_path / "ledger.db", name) for name in ledger.TABLES)
    states = []
    for last in (1, None):
        pipeline = beam.Pipeline(options=PipelineOptions(flags))
        ledger.keep(pipeline, tmp_path)
        result = pipeline.run()
        while last is not None and not (tmp_path / "checkpoint" / "spark" / "commits" / str(last)).exists():
            assert result.wait_until_finish(duration=20) is None
        states.append(result.wait_until_finish() if last is None else result.cancel())
        # Whenever it stops, the table is that of whole micro-batches.
        assert sum(balances.rows().values()) == 0
    assert states == ["CANCELLED", "DONE"]
    expected = Counter()
    for file in (tmp_path / "transfers").iterdir():
        for line in file.read_text().splitlines():
            for account, amount in ledger.entries(line):
                expected[account] += amount
    assert balances.rows() == expected
    assert standings.rows() == Counter(ledger.standing(*account)[0] for account in expected.items())
