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
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pyarrow import parquet

import cell_inputs
import cells
from cell_inputs import Events
from cells import Cell
from options import ROOT
from outcome import FOLDER, write_numbers
from pairs import paired
from stream_report import markdown
from stream_session import start_session
from targets import empty_target

Numbers = dict[str, Any]
Sides = dict[str, Any]

LOSS_MAX = 0.15
"""The part of a recorded speed that may be lost before it is an error."""

_KINDS = ("wall", "cpu")
_STATEFUL_USERS = 100_000
_CHECKED_KEYS = 500


class Size(NamedTuple):
    """How much is measured: in full, and by ``--quick``."""

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


def measure(spark: Any, sides: Sides, cell: Cell, settings: argparse.Namespace) -> dict[str, Numbers]:
    """A cell's numbers, by the rows of the table that it makes."""
    return {
        f"{cell.name}{part}": {"twin": cell.twin, **numbers}
        for part, numbers in _MEASURES[cell.measure](spark, sides, cell, settings).items()
    }


def _replay(spark: Any, sides: Sides, cell: Cell, settings: argparse.Namespace) -> dict[str, Numbers]:
    """Runs over all files, in turns."""
    events = _events_of(cell, settings)
    if cell.grouping == "join":
        source = cell_inputs.side_files(settings.folder, events, settings.files)
    else:
        source = events.make_files(settings.folder, cell.source, settings.files)
    rows = {}

    def target_of(side: str) -> Path:
        return empty_target(settings.folder, f"cell-{side}")

    def run(side: str, target: Path, sink: str) -> None:
        files_per_batch = settings.files_per_batch
        sides[side].replay(spark, cell, sink, str(source), str(target), files_per_batch=files_per_batch)
        if sink == "parquet":
            checks.append((side, target))

    def checked() -> None:
        for side, target in checks:
            rows[side] = cell_inputs.check(events, cell.grouping, target)
        checks.clear()

    checks: list[tuple[str, Path]] = []
    for side in sides:
        start = time.monotonic()
        run(side, target_of(side), "parquet")
        checked()
        while time.monotonic() - start < settings.warming_seconds:
            run(side, target_of(side), cell.sink)
            checked()
    found = paired(
        *(partial(_and_check, partial(run, side), cell.sink) for side in sides),
        warming_turns=0,
        turns=settings.turns,
        prepare=tuple(partial(_prepared, checked, target_of, side) for side in sides),  # type: ignore[arg-type]
    )
    checked()
    return {"": {"events": events.count, "rows": rows, **found}}


def _and_check(run: Callable[[Path, str], None], sink: str, target: Path) -> None:
    run(target, sink)


def _prepared(checked: Callable[[], None], target_of: Callable[[str], Path], side: str) -> tuple[Path]:
    """Looks at what the turn before has written, since a new one of that side removes it."""
    checked()
    return (target_of(side),)


def _events_of(cell: Cell, settings: argparse.Namespace) -> Events:
    count = max(2_000, int(settings.events * cell.part))
    if cell.grouping == "stateful":
        return Events(count, users=min(_STATEFUL_USERS, count // 2))
    return Events(count, is_late=cell.grouping.startswith("panes"))


def _growth(spark: Any, sides: Sides, cell: Cell, settings: argparse.Namespace) -> dict[str, Numbers]:
    """Fills the state of all keys, and then measures micro-batches of some."""
    _check_counts(spark, sides, cell, settings)
    sizes = (settings.keys, settings.fill_files, settings.batches, settings.rows)
    source = cell_inputs.filling_files(settings.folder, *sizes)
    each = {}
    for side, module in sides.items():
        each[side] = module.growth(
            spark,
            cell,
            str(empty_target(settings.folder, f"cell-{side}")),
            str(source),
            filling=settings.fill_files,
            batches=settings.batches,
        )
    filled = {side: found["fill"] for side, found in each.items()}
    counted = {
        side: {
            **{kind: seconds / settings.batches for kind, seconds in found["counted"].items()},
            "wall_seconds_of_batches": found["seconds"],
        }
        for side, found in each.items()
    }
    size = {"keys": settings.keys, "rows": settings.rows}
    return {": filling": {**size, **_speeds(filled)}, ": a micro-batch": {**size, **_speeds(counted)}}


def _check_counts(spark: Any, sides: Sides, cell: Cell, settings: argparse.Namespace) -> None:
    """Compares the counts of few users with the expected ones."""
    source = cell_inputs.filling_files(settings.folder, _CHECKED_KEYS, 1, 3, 200)
    wanted: Counter[str] = Counter()
    for path in sorted(source.glob("*.parquet")):
        wanted.update(parquet.read_table(path)["user"].to_pylist())
    for side, module in sides.items():
        folder = str(empty_target(settings.folder, f"cell-{side}"))
        if module.counted(spark, cell, folder, str(source)) != wanted:
            raise AssertionError(f"{side}: counts of {cell.name} are wrong")


def _empty(spark: Any, sides: Sides, cell: Cell, settings: argparse.Namespace) -> dict[str, Numbers]:
    """Measures micro-batches of files without events."""
    batches = settings.empty_batches
    source = cell_inputs.empty_files(settings.folder, batches + 1)
    each = {
        side: module.empty(
            spark, cell, str(empty_target(settings.folder, f"cell-{side}")), str(source), batches=batches
        )
        for side, module in sides.items()
    }
    times = {
        side: {
            "wall_seconds": statistics.median(found["seconds"]),
            "cpu_seconds": found["cpu_seconds"] / len(found["seconds"]),
            "wall_seconds_of_batches": found["seconds"],
        }
        for side, found in each.items()
    }
    return {"": {"batches": batches, **_speeds(times)}}


def _idle(spark: Any, sides: Sides, cell: Cell, settings: argparse.Namespace) -> dict[str, Numbers]:
    """Measures a stream to which nothing comes: by CPU only, since the clock is the same for both."""
    source = cell_inputs.empty_files(settings.folder, 0)
    each = {
        side: module.idle(
            spark,
            cell,
            str(empty_target(settings.folder, f"cell-{side}")),
            str(source),
            seconds=settings.idle_seconds,
        )
        for side, module in sides.items()
    }
    times = {side: {"wall_seconds": found["seconds"], **found} for side, found in each.items()}
    return {"": {**_speeds(times), "speed_by_wall": None}}


def _speeds(times: dict[str, Numbers]) -> Numbers:
    native, ours = times["native"], times["penstock"]
    speeds = {
        f"speed_by_{kind}": round(native[f"{kind}_seconds"] / max(ours[f"{kind}_seconds"], 0.001), 3)
        for kind in _KINDS
    }
    return {**speeds, **times}


_MEASURES = {"replay": _replay, "growth": _growth, "empty": _empty, "idle": _idle}


def losses(found: dict[str, Numbers], recorded: dict[str, Numbers]) -> dict[str, str]:
    """What has lost more than is allowed of its recorded speed, by row, in words.

    >>> now = {"a": {"speed_by_wall": 0.8, "speed_by_cpu": 0.9}}
    >>> losses(now, {"a": {"speed_by_wall": 1.0, "speed_by_cpu": 1.0}})
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


def better(one: dict[str, Numbers], other: dict[str, Numbers]) -> dict[str, Numbers]:
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
    parser.add_argument("--rows", type=int, default=10_000, help="of a micro-batch that counts")
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
        settings.cells = cells.chosen(settings.only, settings.quick)
    except ValueError as error:
        parser.error(str(error))
    return settings


def main(given: Sequence[str] | None = None) -> None:
    """Measures, prints a row after each cell and the table at the end, and writes the numbers."""
    settings = arguments(given)
    if settings.list:
        print("\n".join(cell.name for cell in settings.cells))
        return
    import cell_native
    import cell_penstock

    spark = start_session(settings.cores)
    sides = {"native": cell_native, "penstock": cell_penstock}
    record = _rows_of(settings.compared_with) if settings.quick and not settings.record else {}
    found: dict[str, Numbers] = {}
    for cell in settings.cells:
        rows = measure(spark, sides, cell, settings)
        if losses(rows, record):
            print(f"{cell.name} seems to have lost; once more", file=sys.stderr, flush=True)
            rows = better(rows, measure(spark, sides, cell, settings))
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
    if lost := losses(found, record):
        sys.exit("\n".join(f"{row} has lost speed: {words}" for row, words in sorted(lost.items())))


def _rows_of(path: Path) -> dict[str, Numbers]:
    return json.loads(path.read_text())["rows"] if path.exists() else {}  # type: ignore[no-any-return]


def _write(settings: argparse.Namespace, found: dict[str, Numbers]) -> None:
    """Writes what is measured so far; a record keeps the numbers of other cells."""
    numbers = {name: getattr(settings, name) for name in (*SIZES, "files_per_batch", "rows", "turns")}
    kept = _rows_of(settings.results) if settings.record else {}
    write_numbers(settings.results, settings.cores, {**numbers, "rows": {**kept, **found}})


if __name__ == "__main__":
    main()
