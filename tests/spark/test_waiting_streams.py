"""Side inputs that do not end, on Spark: in both modes, from live sources, and across a restart."""

from __future__ import annotations

import pytest

import penstock as beam
from penstock.io import WriteToMemory
from penstock.io.watermarks import BoundedDisorder
from penstock.pvalue import AsDict, AsList, AsSingleton
from penstock.testing.test_stream import TestStream
from penstock.transforms.trigger import AccumulationMode, AfterCount, Repeatedly
from penstock.transforms.window import FixedWindows, GlobalWindows, TimestampedValue
from penstock_spark import read_state

MINUTES = FixedWindows(60)


def at(seconds, *values):
    return [TimestampedValue(value, seconds) for value in values]


@pytest.mark.parametrize("mode", ["streaming", "micro_batch"])
def test_amounts_wait_for_the_rates_of_their_minute(spark, mode):
    found = []
    stream = (
        TestStream(output_tags={"amounts", "rates"})
        .add_elements(at(10, ("EUR", 2), ("CHF", 3)), tag="amounts")
        .add_elements(at(5, ("EUR", 10), ("CHF", 11)), tag="rates")
        .advance_watermark_to(60, tag="rates")
        .add_elements(at(30, ("EUR", 5)), tag="amounts")
        .advance_watermark_to(120, tag="rates")
        .add_elements(at(70, ("EUR", 7)), tag="amounts")
        .advance_watermark_to_infinity("amounts")
        .advance_watermark_to_infinity("rates")
    )
    with beam.Pipeline(spark=spark, mode=mode) as pipeline:
        both = pipeline | stream
        amounts = both["amounts"] | "Amounts" >> beam.WindowInto(MINUTES)
        rates = both["rates"] | "Rates" >> beam.WindowInto(MINUTES)
        converted = amounts | beam.MapTuple(
            lambda currency, amount, rates=None: (currency, amount * rates.get(currency, 0)), AsDict(rates)
        )
        _ = converted | beam.CombinePerKey(sum) | WriteToMemory(found)
    assert sorted(found) == [("CHF", 33), ("EUR", 0), ("EUR", 70)]


def lines(pipeline, folder, seconds=lambda line: 5):
    """The lines of the files in a folder, as a stream."""
    reading = beam.io.ReadFromText(f"{folder}/*.txt", validate=False)
    return pipeline | folder.name >> reading.as_stream(seconds, BoundedDisorder(0), max_ahead=None)


def write(folder, *written):
    """A file that was not there before, with some lines."""
    folder.mkdir(exist_ok=True)
    number = len(list(folder.iterdir()))
    (folder.parent / "new").write_text("".join(f"{line}\n" for line in written))
    (folder.parent / "new").rename(folder / f"{number}.txt")


def wait_until(result, condition):
    """Cancels a query when something is so."""
    for _ in range(600):
        if condition():
            break
        assert result.wait_until_finish(100) is None
    else:
        pytest.fail("it has not come true in a minute")
    result.cancel()


def test_a_slowly_changing_side_input_of_the_present(spark, tmp_path):
    found = []
    pipeline = beam.Pipeline(spark=spark, mode="streaming")
    latest = beam.WindowInto(
        GlobalWindows(), trigger=Repeatedly(AfterCount(1)), accumulation_mode=AccumulationMode.DISCARDING
    )
    version = lines(pipeline, tmp_path / "versions") | latest
    main = lines(pipeline, tmp_path / "main")
    _ = main | "See" >> beam.Map(lambda line, version: version, AsSingleton(version)) | WriteToMemory(found)
    write(tmp_path / "main", "before there is one")
    write(tmp_path / "versions", "first")
    result = pipeline.run()

    def has_seen_the_second():
        if found == ["first"]:
            write(tmp_path / "versions", "second")
        if found:
            write(tmp_path / "main", "another")
        return "second" in found

    wait_until(result, has_seen_the_second)
    assert found[0] == "first"
    assert set(found) == {"first", "second"}
    assert found == sorted(found)


def test_what_waits_is_visible_outlives_a_restart_and_is_then_processed(spark, tmp_path):
    checkpoint, found = tmp_path / "checkpoint", []
    write(tmp_path / "main", "a", "b")

    def start():
        pipeline = beam.Pipeline(spark=spark, mode="streaming", checkpoint_location=str(checkpoint))
        main = lines(pipeline, tmp_path / "main") | "Main" >> beam.WindowInto(MINUTES)
        side = lines(pipeline, tmp_path / "side", int) | "Side" >> beam.WindowInto(MINUTES)
        _ = main | "See" >> beam.Map(lambda line, side: (line, side), AsList(side)) | WriteToMemory(found)
        return pipeline.run()

    def is_stored():
        """Elements were seen to wait, and the micro-batches that have begun are done."""
        told = result.watermarks().get("See")
        begun, done = (
            len(list((checkpoint / "spark" / name).glob("[0-9]*"))) for name in ("offsets", "commits")
        )
        return told is not None and told.waiting and begun == done

    result = start()
    wait_until(result, is_stored)
    assert result.watermarks()["See"].waiting == {"Side/view": 2}
    assert result.watermarks()["See"].output == 5
    rows = read_state(checkpoint, spark).where("grouping = 'See'").collect()
    assert [(row.key, row.new_elements) for row in rows] == [("None", 2)]
    write(tmp_path / "side", 7, 60)
    result = start()
    wait_until(result, lambda: len(found) == 2)
    assert sorted(found) == [("a", ["7"]), ("b", ["7"])]
