"""Measures the cost of micro-batches as the state grows, and the memory of Spark's Python workers.

Run it with ``python benchmarks/stream_state.py``.

Each key gets one event first, in micro-batches of 100,000; then come micro-batches of 10,000 events of random keys, and
those count. Sums never end; penstock's trigger fires after 1,000 events of a key, and so hardly ever.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from options import parsed_settings
from outcome import write_numbers
from processes import Worker, running_workers
from stream_inputs import write_stream
from stream_report import markdown
from targets import empty_target

TITLES = {"penstock": "penstock", "native_python": "native sums, with the same Python parse"}

_FILLING_EVENTS = 100_000
_FIRST_SECOND = 1_600_000_000
_SEED = 11


def make_files(folder: Path, keys: int, batches: int, events: int) -> tuple[Path, int]:
    """Writes the files of a stream, first those that fill the state, unless they exist; returns the folder
    and their number.
    """
    chance = random.Random(_SEED)
    filling = -(-keys // _FILLING_EVENTS)
    target = folder / f"state-{keys}-{batches}-{events}"

    def contents() -> Iterator[list[int]]:
        for start in range(0, keys, _FILLING_EVENTS):
            yield list(range(start, min(start + _FILLING_EVENTS, keys)))
        for _ in range(batches):
            yield [int(chance.random() * keys) for _ in range(events)]

    if not target.exists():
        write_stream(
            target,
            (
                [f"user{key},team,1,{_FIRST_SECOND + number}" for key in found]
                for number, found in enumerate(contents())
            ),
        )
    return target, filling


def measure(worker: Worker, keys: int, settings: argparse.Namespace) -> dict[str, Any]:
    """A contender's numbers with `keys` keys."""
    source, filling = make_files(settings.folder, keys, settings.batches, settings.events)
    own = empty_target(settings.folder, f"state-{worker.name}")
    answer = worker.run(
        "state",
        folder=str(own),
        source=str(source),
        filling=filling,
        batches=settings.batches,
        rows=min(settings.events, keys % _FILLING_EVENTS or _FILLING_EVENTS),
    )
    seconds = answer.numbers["seconds"]
    return {
        "keys": keys,
        "median_millis": round(statistics.median(seconds) * 1_000),
        "cpu_millis": round(answer.numbers["cpu_seconds"] / len(seconds) * 1_000),
        **answer.numbers,
    }


def table(contenders: dict[str, list[dict[str, Any]]]) -> str:
    """A row for each contender and number of keys; growth is against the row with the fewest keys."""
    head = (
        *("sums of many keys", "keys", "fill s", "micro-batch ms", "growth", "CPU ms", "growth"),
        *("worker's RSS now MB", "at most MB", "growth"),
    )
    rows = [
        (
            TITLES[name],
            f"{found['keys']:,}",
            f"{found['fill_seconds']:.1f}",
            *(
                text
                for kind in ("median_millis", "cpu_millis")
                for text in (f"{found[kind]:,}", f"{found[kind] / each[0][kind]:.2f}")
            ),
            f"{found['resident_megabytes']:.0f}",
            f"{found['resident_megabytes_max']:.0f}",
            f"{found['resident_megabytes_max'] / each[0]['resident_megabytes_max']:.2f}",
        )
        for name, each in contenders.items()
        for found in each
    ]
    return markdown(head, rows)


def main(given: Sequence[str] | None = None) -> None:
    """Prints the table and writes all numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--batches", type=int, default=30, help="how many micro-batches count")
    parser.add_argument("--events", type=int, default=10_000, help="events of each of them")
    settings = parsed_settings(parser, given, TITLES, "stream_state.json")
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in settings.contenders}
    for keys in sorted(settings.keys):
        # New processes each time: what a worker has once used, it keeps.
        with running_workers(settings.contenders, settings.cores, settings.folder) as workers:
            for name, worker in workers.items():
                found[name].append(measure(worker, keys, settings))
    print(table(found), end="\n\n")
    sizes = {"batches": settings.batches, "events": settings.events}
    write_numbers(settings.results, settings.cores, {**sizes, "contenders": found})


if __name__ == "__main__":
    main()
