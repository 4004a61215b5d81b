"""Measures streams cell by cell of a table, source by step by grouping by sink, each beside its native twin.

Run it with ``python benchmarks/stream_table.py``, some cells with ``--only 'parquet/*/teams/*'`` or ``--only users``,
and see their names with ``--list``. ``--quick`` takes some cells with less input, compares their speeds with the last
record, and fails if one has lost 15 %; ``--quick --record`` makes that record.

Both sides take turns in one session: two cores, two partitions, RocksDB. What they write is compared, total by total,
with what comes out without Spark. A speed is the median of the ratios of neighbouring turns, so that it depends little
on the machine; CPU seconds are those of Java and of all Python processes together.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import cells
from options import ROOT
from outcome import FOLDER, write_numbers
from stream_report import markdown
from stream_session import start_session

Numbers = dict[str, Any]

LOSS_MAX = 0.15
"""The part of a recorded speed that may be lost before it is an error."""

_KINDS = ("wall", "cpu")


class Size(NamedTuple):
    """The size of the measurements: in full, and by ``--quick``."""

    full: int
    quick: int
    meaning: str


SIZES = {
    "events": Size(2_500_000, 400_000, "of a stream that is read to its end"),
    "files": Size(10, 4, "in which they are"),
    "warming_seconds": Size(20, 6, "for so long a side's turns do not count at first"),
    "keys": Size(1_000_000, 100_000, "of counts"),
    "fill_files": Size(10, 4, "micro-batches in which keys come first"),
    "batches": Size(20, 10, "micro-batches after them, which count"),
    "empty_batches": Size(80, 40, "micro-batches without events, of which the second half counts"),
    "idle_seconds": Size(30, 15, "for so long nothing comes"),
}


def find_losses(found: dict[str, Numbers], recorded: dict[str, Numbers]) -> dict[str, str]:
    """The rows that have lost more than is allowed of their recorded speed, in words.

    >>> now = {"a": {"speed_by_wall": 0.8, "speed_by_cpu": 0.9}}
    >>> find_losses(now, {"a": {"speed_by_wall": 1.0, "speed_by_cpu": 1.0}})
    {'a': '0.80 by wall, and 1.00 in the record'}
    """
    lost = {}
    for row in found.keys() & recorded.keys():
        words = [
            f"{now:.2f} by {'CPU' if kind == 'cpu' else kind}, and {before:.2f} in the record"
            for kind in _KINDS
            if (now := found[row][f"speed_by_{kind}"]) is not None
            and (before := recorded[row][f"speed_by_{kind}"]) is not None
            and now < before * (1 - LOSS_MAX)
        ]
        if words:
            lost[row] = "; ".join(words)
    return lost


def merge_better(one: dict[str, Numbers], other: dict[str, Numbers]) -> dict[str, Numbers]:
    """Of two measurements of a cell, each row with the greater of its speeds: what was lost twice is lost."""
    rows = {}
    for row, numbers in one.items():
        speeds = {
            f"speed_by_{kind}": max(
                filter(None, (each[row][f"speed_by_{kind}"] for each in (one, other))), default=None
            )
            for kind in _KINDS
        }
        rows[row] = {**numbers, **speeds}
    return rows


def table(rows: dict[str, Numbers]) -> str:
    """A row for each cell, or part of one."""
    head = (
        "source/step/grouping/sink",
        "beside",
        "its wall s",
        "wall s",
        "its CPU s",
        "CPU s",
        "speed by wall",
        "by CPU",
    )
    return markdown(
        head,
        [
            (
                row,
                found["twin"],
                *(
                    f"{found[side][f'{kind}_seconds']:.2f}"
                    for kind in _KINDS
                    for side in ("native", "penstock")
                ),
                *(
                    "" if found[f"speed_by_{kind}"] is None else f"{found[f'speed_by_{kind}']:.2f}"
                    for kind in _KINDS
                ),
            )
            for row, found in rows.items()
        ],
    )


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """The command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="CELL", help="names, patterns or parts of names"
    )
    parser.add_argument(
        "--list", action="store_true", help="print the names of the cells, and measure nothing"
    )
    parser.add_argument("--quick", action="store_true", help="less input, and a comparison with the record")
    parser.add_argument(
        "--record", action="store_true", help="keep the numbers of the cells that are measured"
    )
    for name, size in SIZES.items():
        words = f"{size.meaning}; default {size.full:,}, and {size.quick:,} if quick"
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, help=words)
    parser.add_argument("--files-per-batch", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3, help="how many turns count")
    parser.add_argument("--rows-per-batch", type=int, default=10_000, help="of those that count")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "benchmarks", help="for data")
    parser.add_argument("--results", type=Path, help="the file to write")
    parser.add_argument(
        "--compared-with", type=Path, help="the record of --quick; default the one that is kept"
    )
    settings = parser.parse_args(given)
    is_full = not settings.only and all(getattr(settings, name) is None for name in SIZES)
    for name, size in SIZES.items():
        if getattr(settings, name) is None:
            setattr(settings, name, size.quick if settings.quick else size.full)
    settings.folder = settings.folder.resolve() / "cells"
    name = "stream_table_quick.json" if settings.quick else "stream_table.json"
    is_kept = settings.record or (is_full and not settings.quick)
    settings.results = settings.results or (FOLDER if is_kept else settings.folder.parent) / name
    settings.compared_with = settings.compared_with or FOLDER / name
    try:
        settings.cells = cells.choose(settings.only, settings.quick)
    except ValueError as error:
        parser.error(str(error))
    return settings


def main(given: Sequence[str] | None = None) -> None:
    """Measures, prints a row after each cell and the table at the end, and writes the numbers."""
    settings = arguments(given)
    if settings.list:
        print("\n".join(cell.name for cell in settings.cells))
        return
    import cell_measures

    spark = start_session(settings.cores)
    record = _rows_of(settings.compared_with) if settings.quick and not settings.record else {}
    found: dict[str, Numbers] = {}
    for cell in settings.cells:
        rows = cell_measures.measure(spark, cell, settings)
        if find_losses(rows, record):
            print(f"{cell.name} seems to have lost; once more", file=sys.stderr, flush=True)
            rows = merge_better(rows, cell_measures.measure(spark, cell, settings))
        found |= rows
        for row, numbers in rows.items():
            print(
                f"{row}: {numbers['speed_by_wall']} by wall, {numbers['speed_by_cpu']} by CPU",
                file=sys.stderr,
                flush=True,
            )
        _write(settings, found)
    print(table(found), end="\n\n")
    print(f"numbers: {settings.results}")
    if lost := find_losses(found, record):
        sys.exit("\n".join(f"{row} has lost speed: {words}" for row, words in sorted(lost.items())))


def _rows_of(path: Path) -> dict[str, Numbers]:
    return json.loads(path.read_text())["rows"] if path.exists() else {}  # type: ignore[no-any-return]


def _write(settings: argparse.Namespace, found: dict[str, Numbers]) -> None:
    """Writes what is measured so far; a record keeps the numbers of other cells."""
    numbers = {
        name: getattr(settings, name) for name in (*SIZES, "files_per_batch", "rows_per_batch", "turns")
    }
    kept = _rows_of(settings.results) if settings.record else {}
    write_numbers(settings.results, settings.cores, {**numbers, "rows": {**kept, **found}})


if __name__ == "__main__":
    main()
