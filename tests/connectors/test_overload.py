"""Streams that get more than they can do: limits hold, the lag can be seen, memory is bounded, and nothing is lost."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock as beam
from penstock.io import ForEachBatch, ReadFromSource, WriteToMemory
from penstock.io.watermarks import BoundedDisorder
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.window import FixedWindows
from tests.connectors.numbered_files import Files, add, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

LIMIT = 100
BACKLOG = 400
HOT_ELEMENTS = 1_000_000
HOT_BYTES_MAX = 128 << 20


class Wide(Files):
    """Records that are read a hundred at a time."""

    range_records = LIMIT


def pipeline_on(checkpoint: Path, *flags: str) -> beam.Pipeline:
    options = ["--mode=streaming", "--shuffle_partitions=2", f"--checkpoint_location={checkpoint}", *flags]
    return beam.Pipeline(options=PipelineOptions(options))


def test_a_backlog_is_read_by_the_limit_as_fast_as_a_slow_sink_takes_it_and_its_lag_is_seen(
    tmp_path: Path,
) -> None:
    """The records of a source beyond the limit stay in the source: nothing piles up before the sink."""
    read, sizes, seen = tmp_path / "read", [], []
    result: Any = None

    def note(record: tuple[int, str]) -> tuple[int, str]:
        with read.open("a") as file:
            file.write("x")
        return record

    def write(elements: list[Any], batch: int) -> None:
        time.sleep(0.2)
        # Elements that were read and not written: one micro-batch at most, since no other begins before this one ends.
        sizes.append(len(elements))
        assert read.stat().st_size - sum(sizes) == 0
        if result is not None and (found := result.watermarks()):
            seen.append((float(found["Sum"].lag), float(found["Sum"].output)))

    now = int(time.time())
    # A minute of events, the last of which happens now.
    add(tmp_path, "a", *(f"{now - 60 + number * 60 // BACKLOG} word" for number in range(BACKLOG)))
    pipeline = pipeline_on(tmp_path / "checkpoint")
    stream = ReadFromSource(Wide(tmp_path)).as_stream(
        lambda record: record[0], BoundedDisorder(0), max_records_per_batch=LIMIT
    )
    records = pipeline | stream | beam.Map(note)
    _ = records | ForEachBatch(write)
    ones = records | beam.Map(lambda record: ("all", 1)) | beam.WindowInto(FixedWindows(1))
    sums: list[Any] = []
    _ = ones | "Sum" >> beam.CombinePerKey(sum) | WriteToMemory(sums)
    result = pipeline.run()
    wait_for(lambda: sum(sizes) == BACKLOG, result, 180)
    assert set(sizes) == {LIMIT}
    result.drain()
    result.wait_until_finish()
    assert sum(count for _, count in sums) == BACKLOG
    # Each micro-batch catches up with fifteen seconds of events, and the lag says what is missing.
    lags, watermarks = zip(*seen, strict=True)
    assert max(lags) > 35
    assert watermarks == tuple(sorted(watermarks))
    assert watermarks[0] < now - 35 < now - 20 < watermarks[-1]


def grown_while(values: Iterable[Any]) -> Iterator[tuple[int, int]]:
    """The number of values, and how much more memory the worker has after reading them than before."""
    before, most, count = resident_bytes(), 0, 0
    for count, _ in enumerate(values, 1):
        if count % 50_000 == 0:
            most = max(most, resident_bytes())
    yield count, most - before


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_nine_tenths_of_a_million_elements_of_one_key_do_not_need_the_memory_for_them() -> None:
    """All elements together have more bytes than the worker may grow by."""
    found: list[tuple[int, tuple[int, int]]] = []

    def element(number: int) -> tuple[int, str]:
        return (0 if number % 10 else number % 1_000), f"{number:0300}"

    with beam.Pipeline() as pipeline:
        seeds = pipeline | beam.Create(range(10)) | beam.Reshuffle()
        tenth = HOT_ELEMENTS // 10
        numbers = seeds | beam.FlatMap(lambda seed: range(seed * tenth, (seed + 1) * tenth))
        groups = numbers | beam.Map(element).with_output_types(tuple[int, str]) | beam.GroupByKey()
        sizes = groups | beam.FlatMapTuple(lambda key, values: [(key, each) for each in grown_while(values)])
        _ = sizes | WriteToMemory(found)
    counts = {key: count for key, (count, _) in found}
    assert sum(counts.values()) == HOT_ELEMENTS
    assert counts[0] >= HOT_ELEMENTS * 9 // 10
    assert max(grown for _, (_, grown) in found) < HOT_BYTES_MAX < 300 * HOT_ELEMENTS // 2


def inverse(record: tuple[int, str]) -> float:
    return 1 / record[0]


def test_a_poison_element_goes_to_the_dead_letters_or_stops_the_stream_by_name_until_it_does(
    tmp_path: Path,
) -> None:
    """The stream that has failed continues with the same element, and nothing around it is lost or comes twice."""

    def start(handles: bool) -> Any:
        pipeline = pipeline_on(tmp_path / "checkpoint")
        records = pipeline | ReadFromSource(Files(tmp_path)).as_stream(max_records_per_batch=2)
        if handles:
            good, bad = records | "Invert" >> beam.Map(inverse).with_exception_handling()
            letters = bad | beam.MapTuple(lambda record, error: f"{record[1]} {error[0].__name__}")
            _ = letters | "Letters" >> beam.io.WriteToText(f"{tmp_path}/bad/letters")
        else:
            good = records | "Invert" >> beam.Map(inverse)
        _ = good | beam.Map(str) | "Inverses" >> beam.io.WriteToText(f"{tmp_path}/good/inverses")
        return pipeline.run()

    def lines(name: str) -> list[str]:
        return sorted(
            line for file in (tmp_path / name).glob("[!_]*") for line in file.read_text().splitlines()
        )

    add(tmp_path, "a", "1 one", "2 two", "0 none", "4 four")
    with pytest.raises(ZeroDivisionError, match="while running 'Invert'"):
        start(False).wait_until_finish(duration=60_000)
    assert lines("good") == ["0.5", "1.0"]
    with pytest.raises(ZeroDivisionError, match="while running 'Invert'"):
        start(False).wait_until_finish(duration=60_000)
    result = start(True)
    add(tmp_path, "a", "0 zero", "8 eight")
    wait_for(lambda: lines("good") == ["0.125", "0.25", "0.5", "1.0"], result)
    result.cancel()
    assert lines("bad") == ["none ZeroDivisionError", "zero ZeroDivisionError"]
