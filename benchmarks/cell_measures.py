"""Measures the cells of the table of streams: both sides do the same work in one session."""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from pyarrow import parquet

import cell_inputs
import cell_native
import cell_penstock
from cell_inputs import Events
from cells import Cell
from pairs import paired
from targets import empty_target

Numbers = dict[str, Any]

SIDES = {"native": cell_native, "penstock": cell_penstock}
"""The modules that do the work of a cell, by names as in the numbers."""

_KINDS = ("wall", "cpu")
_STATEFUL_USERS = 100_000
_CHECKED_KEYS = 500


def measure(spark: Any, cell: Cell, settings: argparse.Namespace) -> dict[str, Numbers]:
    """A cell's numbers, by the rows of the table that it makes."""
    return {
        f"{cell.name}{part}": {"twin": cell.twin, **numbers}
        for part, numbers in _MEASURES[cell.measure](spark, cell, settings).items()
    }


def _replay(spark: Any, cell: Cell, settings: argparse.Namespace) -> dict[str, Numbers]:
    """Runs over all files, in turns; what a turn has written is looked at before the next one of that side."""
    events = _events_of(cell, settings)
    if cell.grouping == "join":
        source = cell_inputs.side_files(settings.folder, events, settings.files)
    else:
        source = events.make_files(settings.folder, cell.source, settings.files)
    rows: dict[str, int] = {}
    unchecked: list[tuple[str, Path]] = []

    def check() -> None:
        for side, target in unchecked:
            rows[side] = cell_inputs.check(events, cell.grouping, target)
        unchecked.clear()

    def prepare(side: str) -> tuple[Path]:
        check()
        return (_target(settings, side),)

    def run(side: str, sink: str, target: Path) -> None:
        SIDES[side].replay(spark, cell, sink, str(source), str(target), settings.files_per_batch)
        if sink == "parquet":
            unchecked.append((side, target))

    for side in SIDES:
        end = time.monotonic() + settings.warming_seconds
        # A sink that keeps nothing shows no totals.
        run(side, "parquet", *prepare(side))
        while time.monotonic() < end:
            run(side, cell.sink, *prepare(side))
    native, ours = (partial(run, side, cell.sink) for side in SIDES)
    prepare_native, prepare_ours = (partial(prepare, side) for side in SIDES)
    found = paired(native, ours, 0, settings.turns, (prepare_native, prepare_ours))
    check()
    return {"": {"events": events.count, "rows": rows, **found}}


def _target(settings: argparse.Namespace, side: str) -> Path:
    return empty_target(settings.folder, f"cell-{side}")


def _events_of(cell: Cell, settings: argparse.Namespace) -> Events:
    count = max(2_000, int(settings.events * cell.part))
    if cell.grouping == "stateful":
        return Events(count, users=min(_STATEFUL_USERS, count // 2))
    return Events(count, is_late=cell.grouping.startswith("panes"))


def _growth(spark: Any, cell: Cell, settings: argparse.Namespace) -> dict[str, Numbers]:
    """Fills the state of all keys, and then measures micro-batches of some."""
    _check_counts(spark, cell, settings)
    sizes = (settings.keys, settings.fill_files, settings.batches, settings.rows_per_batch)
    source = cell_inputs.filling_files(settings.folder, *sizes)
    each = {
        side: module.measure_growth(
            spark, cell, str(_target(settings, side)), str(source), settings.fill_files, settings.batches
        )
        for side, module in SIDES.items()
    }
    filled = {side: found["fill"] for side, found in each.items()}
    counted = {
        side: {
            **{kind: seconds / settings.batches for kind, seconds in found["counted"].items()},
            "wall_seconds_of_batches": found["seconds"],
        }
        for side, found in each.items()
    }
    size = {"keys": settings.keys, "rows": settings.rows_per_batch}
    return {": filling": {**size, **_speeds(filled)}, ": a micro-batch": {**size, **_speeds(counted)}}


def _check_counts(spark: Any, cell: Cell, settings: argparse.Namespace) -> None:
    """Compares the counts of few users with the expected ones."""
    source = cell_inputs.filling_files(settings.folder, _CHECKED_KEYS, 1, 3, 200)
    wanted: Counter[str] = Counter()
    for path in sorted(source.glob("*.parquet")):
        wanted.update(parquet.read_table(path)["user"].to_pylist())
    for side, module in SIDES.items():
        if module.count_users(spark, cell, str(_target(settings, side)), str(source)) != wanted:
            raise AssertionError(f"{side}: counts of {cell.name} are wrong")


def _empty(spark: Any, cell: Cell, settings: argparse.Namespace) -> dict[str, Numbers]:
    """Measures micro-batches of files without events."""
    batches = settings.empty_batches
    source = cell_inputs.empty_files(settings.folder, batches + 1)
    each = {
        side: module.measure_empty_batches(spark, cell, str(_target(settings, side)), str(source), batches)
        for side, module in SIDES.items()
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


def _idle(spark: Any, cell: Cell, settings: argparse.Namespace) -> dict[str, Numbers]:
    """Measures a stream to which nothing comes: by CPU only, since the clock is the same for both."""
    source = cell_inputs.empty_files(settings.folder, 0)
    each = {
        side: module.measure_idleness(
            spark, cell, str(_target(settings, side)), str(source), settings.idle_seconds
        )
        for side, module in SIDES.items()
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
