"""Measures how long micro-batches take in which nothing arrives, by the number of stateful operators in a row.

Run it with ``python benchmarks/stream_empty_batches.py``.

Micro-batches follow each other without a pause. The first half of them does not count: it warms up.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from options import parsed_settings
from outcome import write_numbers
from processes import Worker, running_workers
from stream_report import markdown
from targets import empty_target

TITLES = {
    "penstock": "penstock",
    "rows": "native, `transformWithState` in Python",
    "native_sql": "native, `dropDuplicates`",
}


def measure(worker: Worker, levels: int, batches: int, folder: Path) -> dict[str, Any]:
    """The milliseconds of a contender's micro-batches."""
    own = empty_target(folder, f"empty-{worker.name}")
    own.mkdir()
    numbers = worker.run("empty_batches", folder=str(own), levels=levels, batches=batches).numbers
    counted = numbers["seconds"]
    return {
        "levels": levels,
        "median_millis": round(statistics.median(counted) * 1_000),
        "cpu_millis": round(numbers["cpu_seconds"] / len(counted) * 1_000),
        "seconds": counted,
    }


def table(contenders: dict[str, list[dict[str, Any]]]) -> str:
    """The medians, a contender a row."""
    levels = [found["levels"] for found in next(iter(contenders.values()))]
    head = [
        "an empty micro-batch",
        *(f"{count} in a row: ms" for count in levels),
        *("CPU ms" for _ in levels),
    ]
    rows = [
        [
            TITLES[name],
            *(str(each["median_millis"]) for each in found),
            *(str(each["cpu_millis"]) for each in found),
        ]
        for name, found in contenders.items()
    ]
    return markdown(head, rows)


def main(given: Sequence[str] | None = None) -> None:
    """Prints the medians and writes all numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--levels", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--batches", type=int, default=100)
    settings = parsed_settings(parser, given, TITLES, "stream_empty_batches.json")
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in settings.contenders}
    with running_workers(settings.contenders, settings.cores, settings.folder) as workers:
        for levels in settings.levels:
            for name, worker in workers.items():
                found[name].append(measure(worker, levels, settings.batches, settings.folder))
    print(table(found), end="\n\n")
    write_numbers(settings.results, settings.cores, {"batches": settings.batches, "contenders": found})


if __name__ == "__main__":
    main()
