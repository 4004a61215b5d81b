"""DoFns with state and timers on Spark, in every mode; their state in a checkpoint."""

from __future__ import annotations

import pytest

import penstock as beam
from attribution import RECORDS, Attribute, recorded
from penstock.coders import FastPrimitivesCoder, VarIntCoder
from penstock.io import WriteToMemory
from penstock.io.external.generate_sequence import GenerateSequence
from penstock.io.watermarks import BoundedDisorder
from penstock.metrics.metric import Metrics, MetricsFilter
from penstock.transforms.deduplicate import Deduplicate
from penstock.transforms.timeutil import TimeDomain
from penstock.transforms.userstate import BagStateSpec, ReadModifyWriteStateSpec, TimerSpec, on_timer
from penstock.transforms.window import TimestampedValue
from penstock.utils.timestamp import Timestamp
from penstock_conformance import command
from penstock_spark import read_state, state_rows
from penstock_spark.checkpoints.state_table import SetTimer

ATTRIBUTED = [
    "imp=123 http://search.com?q=xyz → http://xyz.com/ → http://xyz.com/join-mailing-list",
    "imp=456 http://search.com?q=thing → http://xyz.com/thing → http://xyz.com/thing/add-to-cart "
    "→ http://xyz.com/thing/purchase → http://xyz.com/thing/receipt",
]


class AllAtOnce(beam.PTransform):
    """The book's records for a batch."""

    def expand(self, pbegin):
        pairs = [("UserX", record) for record in RECORDS.values()]
        return pbegin | beam.Create(pairs) | beam.MapTuple(_timed)


def _timed(user, record):
    return TimestampedValue((user, record), record.seconds)


@pytest.mark.parametrize("mode", ["streaming", "micro_batch", "batch"])
def test_the_book_s_attribution(spark, mode):
    found = []
    with beam.Pipeline(spark=spark, mode=mode) as pipeline:
        records = AllAtOnce() if mode == "batch" else recorded()
        _ = pipeline | records | beam.ParDo(Attribute()) | WriteToMemory(found)
    assert sorted(found) == ATTRIBUTED


NUMBERED = Metrics.counter("test", "numbered")


class Numbered(beam.DoFn):
    """Numbers the values of each key."""

    COUNT = ReadModifyWriteStateSpec("count", VarIntCoder())
    EXPIRY = TimerSpec("expiry", TimeDomain.WATERMARK)

    @on_timer(EXPIRY)
    def expire(self, count=beam.DoFn.StateParam(COUNT)):
        count.clear()

    def process(self, element, count=beam.DoFn.StateParam(COUNT), expiry=beam.DoFn.TimerParam(EXPIRY)):
        expiry.set(1_000)
        number = (count.read() or 0) + 1
        count.write(number)
        NUMBERED.inc()
        yield f"{element[0]} {number}"


class Gathered(beam.DoFn):
    """The same name, and another cell."""

    COUNT = BagStateSpec("count", FastPrimitivesCoder())

    def process(self, element, count=beam.DoFn.StateParam(COUNT)):
        count.add(1)


@pytest.mark.every_spark
def test_state_outlives_a_restart_is_a_table_and_is_not_read_as_something_else(spark, tmp_path, capsys):
    source, checkpoint, written = tmp_path / "in", tmp_path / "checkpoint", []
    source.mkdir()

    def run(dofn, *lines):
        (source / f"{len(list(source.iterdir()))}.txt").write_text("".join(f"{line}\n" for line in lines))
        pipeline = beam.Pipeline(spark=spark, mode="streaming", checkpoint_location=str(checkpoint))
        _ = (
            pipeline
            | beam.io.ReadFromText(f"{source}/*.txt").as_stream(
                event_time=lambda line: 5, watermark=BoundedDisorder(60)
            )
            | beam.Map(lambda line: (line, None))
            | "Number" >> beam.ParDo(dofn)
            | WriteToMemory(written)
        )
        return pipeline.run()

    def wait_for(count, result):
        # Metrics are those of micro-batches that are over: what is cut off would come again.
        for _ in range(600):
            counters = result.metrics().query(MetricsFilter().with_name("numbered"))["counters"]
            if sum(one.result for one in counters) >= count or result.wait_until_finish(100) is not None:
                break
        result.cancel()

    wait_for(3, run(Numbered(), "a", "b", "a"))
    assert sorted(written) == ["a 1", "a 2", "b 1"]
    wait_for(2, run(Numbered(), "a", "c"))
    assert sorted(written[3:]) == ["a 3", "c 1"]
    rows = {(row.key, row.value) for row in read_state(checkpoint, spark).collect()}
    assert rows == {
        (repr(key), repr({"count": number})) for key, number in zip("abc", (3, 1, 1), strict=True)
    }
    [row] = [row for row in state_rows(checkpoint, spark, "Number") if row.key == "a"]
    assert row.timers == (SetTimer("expiry", "", True, Timestamp(1_000)),)
    capsys.readouterr()
    assert command.main(["state", str(checkpoint), "--step", "Number", "--key", "a"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Number",
        "  key  window  state      timers",
        "  'a'  global  count = 3  expiry at 1970-01-01 00:16:40 (event time)",
    ]
    assert command.main(["state", str(checkpoint), "--step", "Numbr"]) == 2
    assert "no step with state has the label 'Numbr'" in (said := capsys.readouterr().err)
    assert "hint: did you mean 'Number'?" in said
    with pytest.raises(ValueError, match="BagStateSpec"):
        run(Gathered(), "d")


def test_batches_and_duplicates_of_a_stream(spark):
    batches, firsts = [], []
    with beam.Pipeline(spark=spark, mode="streaming") as pipeline:
        numbers = pipeline | GenerateSequence(0, 7) | beam.Map(lambda number: (number % 2, number))
        _ = numbers | beam.GroupIntoBatches(2) | "Batches" >> WriteToMemory(batches)
        keys = numbers | beam.Keys() | Deduplicate(event_time_duration=60)
        _ = keys | "Firsts" >> WriteToMemory(firsts)
    assert sorted(number for _, batch in batches for number in batch) == list(range(7))
    assert sorted(len(batch) for _, batch in batches) == [1, 2, 2, 2]
    assert sorted(firsts) == [0, 1]
