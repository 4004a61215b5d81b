"""Sums events of text files by team and window with Bytewax; run by the benchmark of peers, with a Python that has it.

Arguments: the folder of the files, and the file to write. It prints its seconds, without imports.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import bytewax.operators as op
from bytewax.connectors.files import FileSink
from bytewax.dataflow import Dataflow
from bytewax.operators import windowing
from bytewax.testing import TestingSource, run_main

KEPT_FROM = 20
WINDOW, DISORDER = timedelta(minutes=2), timedelta(minutes=2)
LINES_AT_ONCE = 10_000
BEGIN = datetime(2020, 1, 1, tzinfo=UTC)


def lines_of(folder: str) -> Iterator[str]:
    """The lines of all files, one file after the other."""
    for path in sorted(Path(folder).iterdir()):
        with path.open() as file:
            yield from file


def parsed(line: str) -> tuple[str, tuple[datetime, int]]:
    """The team of a line, and its time and amount."""
    _, team, amount, second = line.split(",")
    return team, (datetime.fromtimestamp(int(second), UTC), int(amount))


def sums(source: str, target: str) -> Dataflow:
    """The dataflow, as Bytewax's documentation writes such sums."""
    flow = Dataflow("sums")
    lines = op.input("read", flow, TestingSource(lines_of(source), batch_size=LINES_AT_ONCE))
    events = op.map("parse", lines, parsed)
    kept = op.filter("filter", events, lambda event: event[1][1] >= KEPT_FROM)
    summed = windowing.fold_window(
        "sum",
        kept,
        windowing.EventClock(lambda event: event[0], wait_for_system_duration=DISORDER),
        windowing.TumblingWindower(WINDOW, BEGIN),
        lambda: 0,
        lambda total, event: total + event[1] * 2 + 1,
        lambda one, other: one + other,
    )
    lines = op.map("text", summed.down, lambda found: (found[0], shown(*found)))
    op.output("write", lines, FileSink(Path(target)))
    return flow


def shown(team: str, found: tuple[int, int]) -> str:
    """A sum as a line: the team, the second at which its window starts, and the total."""
    start = BEGIN + found[0] * WINDOW
    return f"{team} {int(start.timestamp())}\t{found[1]}"


if __name__ == "__main__":
    began = time.perf_counter()
    run_main(sums(*sys.argv[1:]))
    print(time.perf_counter() - began)
