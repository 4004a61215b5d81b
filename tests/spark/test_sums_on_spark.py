"""Sums in rounds: what Spark adds up of the parts that Python has made is what Python adds up alone."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as beam
from penstock.io import ReadFromParquet
from penstock.io.watermarks import BoundedDisorder, EstimationBand, IdleTimeout
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.combiners import CountCombineFn
from penstock.transforms.trigger import (
    AccumulationMode,
    AfterProcessingTime,
    AfterWatermark,
    DefaultTrigger,
    Repeatedly,
)
from penstock.transforms.window import FixedWindows, GlobalWindows, SlidingWindows

pytestmark = pytest.mark.spark

DISORDER_SECONDS = 200
SCHEMA = pa.schema([("at", pa.timestamp("us", "UTC")), ("key", pa.string()), ("number", pa.int64())])
WINDOWS = (FixedWindows(60), FixedWindows(60, offset=7), SlidingWindows(120, 60), GlobalWindows())
TRIGGERS = (
    Repeatedly(AfterProcessingTime(0)),
    AfterWatermark(early=AfterProcessingTime(5), late=AfterProcessingTime(1)),
    DefaultTrigger(),
)


def pair(row: dict[str, Any]) -> tuple[str, int]:
    """A key and a number."""
    return row["key"], row["number"]


def shown(result: Any, window: Any = beam.DoFn.WindowParam, moment: Any = beam.DoFn.TimestampParam) -> str:
    """A result with its window and time."""
    return repr((result, window, moment))


def add_file(folder: Path, number: int, rows: list[dict[str, Any]]) -> None:
    """A file that is complete when it appears; streams read files in the order in which they have changed."""
    folder.mkdir(exist_ok=True)
    hidden = folder / f".{number}"
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), hidden)
    os.utime(hidden, (1_700_000_000 + number,) * 2)
    hidden.rename(folder / f"{number}.parquet")


def read(folder: Path, **more: Any) -> Any:
    given = {"event_time": "at", "max_files_per_batch": 1, "existing_only": True} | more
    policy = given.pop("watermark", BoundedDisorder(DISORDER_SECONDS))
    return ReadFromParquet(f"{folder}/*.parquet").as_stream(watermark=policy, **given)


def before_the_year_1(row: dict[str, Any]) -> int:
    """A time, in seconds since 1970."""
    return -63_000_000_000


def panes(
    folder: Path, windowing: Any, combine: Any, *flags: str, **source: Any
) -> tuple[bool, Counter[str]]:
    """Returns whether Spark adds up, and all panes of a run."""
    into: list[str] = []
    options = PipelineOptions(["--mode=micro_batch", "--shuffle_partitions=2", *flags])
    pipeline = beam.Pipeline(options=options)
    sums = pipeline | read(folder, **source) | beam.Map(pair) | windowing | beam.CombinePerKey(combine)
    sums | beam.Map(shown) | beam.io.WriteToMemory(into)
    is_native = "then by Spark" in pipeline.explain()
    assert pipeline.run().wait_until_finish() == "DONE"
    return is_native, Counter(into)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 200))])
def test_rounds_give_the_panes_of_python(spark, tmp_path, seed):
    chance = Random(seed)
    beginning = chance.choice([0, 1_700_000_000, -30 * 365 * 86_400])
    for file in range(chance.randint(2, 4)):
        rows = [
            {
                "at": (beginning + file * 50 + chance.randint(0, 70)) * 1_000_000,
                "key": chance.choice(["a", "b", "ü", ""]),
                "number": chance.choice([1, -5, 1 << 62, -(1 << 62)]),
            }
            for _ in range(chance.randint(1, 30))
        ]
        add_file(tmp_path / "in", file, rows)
    windowfn = chance.choice(WINDOWS)
    trigger = chance.choice(TRIGGERS[:2] if isinstance(windowfn, GlobalWindows) else TRIGGERS)
    windowing = beam.WindowInto(
        windowfn, trigger, AccumulationMode.ACCUMULATING, allowed_lateness=chance.choice([0, 30])
    )
    combine = chance.choice([sum, CountCombineFn()])
    native, by_spark = panes(tmp_path / "in", windowing, combine)
    other, by_python = panes(tmp_path / "in", windowing, combine, "--without=native_streams")
    assert (native, other) == (True, False)
    assert by_spark == by_python


def test_the_global_window_takes_any_watermark(spark, tmp_path):
    add_file(tmp_path / "in", 0, [{"at": 0, "key": "a", "number": 1}, {"at": 5, "key": "a", "number": 2}])
    forever = beam.WindowInto(GlobalWindows(), TRIGGERS[0], AccumulationMode.ACCUMULATING)
    native, found = panes(tmp_path / "in", forever, sum, watermark=IdleTimeout(EstimationBand(), 60))
    assert native
    assert [text.startswith("(('a', 3), ") for text in found] == [True]


def test_sums_continue_from_their_checkpoint(spark, tmp_path):
    flags = ["--mode=micro_batch", "--shuffle_partitions=2", f"--checkpoint_location={tmp_path}/state"]

    def begun(*more: str, **source: Any) -> Any:
        pipeline = beam.Pipeline(options=PipelineOptions([*flags, *more]))
        forever = beam.WindowInto(GlobalWindows(), TRIGGERS[0], AccumulationMode.ACCUMULATING)
        sums = pipeline | read(tmp_path / "in", **source) | beam.Map(pair) | forever
        texts = sums | "Sum" >> beam.CombinePerKey(sum) | beam.MapTuple("{}={}".format)
        texts | beam.io.WriteToText(f"{tmp_path}/out")
        return pipeline.run()

    def written() -> list[str]:
        paths = sorted(tmp_path.glob("out*"))
        return [line for path in paths for line in path.read_text().splitlines()]

    add_file(tmp_path / "in", 0, [{"at": 0, "key": "a", "number": 1}, {"at": 0, "key": "b", "number": 2}])
    first = begun(existing_only=False)
    while len(written()) < 2:
        assert first.state == "RUNNING"
        time.sleep(0.05)
    first.cancel()
    add_file(tmp_path / "in", 1, [{"at": 0, "key": "a", "number": 10}])
    with pytest.raises(ValueError, match="Spark's own aggregate has the state of 'Sum'"):
        begun("--without=native_streams")
    assert begun().wait_until_finish() == "DONE"
    assert written() == ["a=1", "b=2", "a=11"] or written() == ["b=2", "a=1", "a=11"]
    with pytest.raises(ValueError, match="has ended"):
        begun()


def test_a_number_that_is_not_one_and_a_time_that_spark_does_not_know_are_errors(spark, tmp_path):
    add_file(tmp_path / "in", 0, [{"at": 0, "key": "a", "number": None}])
    windowing = beam.WindowInto(FixedWindows(60), accumulation_mode=AccumulationMode.ACCUMULATING)
    with pytest.raises(ValueError, match="is before the year 1"):
        panes(tmp_path / "in", windowing, CountCombineFn(), event_time=before_the_year_1)
    with pytest.raises(TypeError, match="unsupported operand"):
        panes(tmp_path / "in", windowing, sum)
