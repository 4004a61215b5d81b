"""Measures a source written in Python: numbers that it makes, beside the same numbers in Parquet files.

Run it with ``python benchmarks/source_speed.py``. Both give rows with one field, and the same steps sum them by key.
The sides take turns in one session, and have to find the same sums.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

import penstock as beam
from options import ROOT
from outcome import FOLDER, write_numbers
from pairs import paired
from penstock.io import WriteToMemory
from penstock.io.custom.ranges import NumberedSource, ReadFromSource, SourceRange
from penstock.typehints import KV
from stream_session import start_session

KEYS, PARTITIONS, RECORDS_AT_ONCE = 100, 4, 10_000


class Numbers(NumberedSource[Any]):
    """The numbers from zero on, each partition its part of them."""

    range_records = 1_000_000

    def __init__(self, count: int) -> None:
        self._size = count // PARTITIONS

    def bounds(self) -> dict[str, tuple[int, int]]:
        return {str(part): (part * self._size, (part + 1) * self._size) for part in range(PARTITIONS)}

    def read(self, piece: SourceRange) -> Iterator[pa.RecordBatch]:
        for start in range(piece.start, piece.end, RECORDS_AT_ONCE):
            numbers = pa.array(range(start, min(start + RECORDS_AT_ONCE, piece.end)), pa.int64())
            yield pa.record_batch({"number": numbers})


def sums(spark: Any, read: Any, pair_of: Callable[[Any], tuple[int, int]]) -> dict[int, int]:
    """The sum of the numbers of each key."""
    found: list[tuple[int, int]] = []
    with beam.Pipeline(spark=spark) as pipeline:
        pairs = beam.Map(pair_of).with_output_types(KV[int, int])
        _ = pipeline | read | pairs | beam.CombinePerKey(sum) | WriteToMemory(found)
    return dict(found)


def of_row(row: Any) -> tuple[int, int]:
    """A key, and a row's number."""
    return row.number % KEYS, row.number


def parquet_files(folder: Path, count: int) -> Path:
    """Numbers in files, one for each partition."""
    target = folder / f"numbers-{count}"
    if not target.exists():
        unfinished = target.with_suffix(".unfinished")
        unfinished.mkdir(parents=True, exist_ok=True)
        source = Numbers(count)
        for piece in source.ranges(
            source.first_position(), source.last_position(source.first_position(), None), 1
        ):
            table = pa.table({"number": pa.array(range(piece.start, piece.end), pa.int64())})
            pyarrow.parquet.write_table(table, unfinished / f"{piece.partition}.parquet")
        unfinished.rename(target)
    return target


def main(given: Sequence[str] | None = None) -> None:
    """Prints the speed and writes every run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--turns", type=int, default=7, help="turns that count")
    parser.add_argument("--warming-turns", type=int, default=2, help="turns before them that do not")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)), help="default: all")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "benchmarks", help="for data")
    parser.add_argument("--results", type=Path, default=FOLDER / "source_speed.json")
    settings = parser.parse_args(given)
    files = parquet_files(settings.folder.resolve(), settings.records)
    spark = start_session(settings.cores)

    def from_parquet() -> dict[int, int]:
        return sums(spark, beam.io.ReadFromParquet(f"{files}/*.parquet", as_rows=True), of_row)

    def from_source() -> dict[int, int]:
        return sums(spark, ReadFromSource(Numbers(settings.records)), of_row)

    if from_parquet() != from_source():
        raise AssertionError("the sums differ")
    found = paired(from_parquet, from_source, settings.warming_turns, settings.turns)
    print(
        f"the source has {found['speed_by_wall']} of the speed of Parquet files, {found['speed_by_cpu']} by CPU"
    )
    write_numbers(settings.results, settings.cores, {"records": settings.records, "numbers": found})


if __name__ == "__main__":
    main()
