"""Measures how long an event takes from the source to the sink at a steady rate, through one grouping.

Run it with ``python benchmarks/stream_latency.py``.

Each event is parsed in Python, added to its key's sum in a window of event time, and the new sum goes to a function on
the driver, which looks at the clock. Of a key's events in a micro-batch the newest counts, since Spark's own sums come
once for each key. Two sources: ``socket`` yields an event as soon as it is born; ``rate`` is Spark's own, which keeps
events back until their second is over and so adds half a second on average.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from options import parsed_settings
from outcome import write_numbers
from processes import Worker, running_workers
from stream_report import markdown
from targets import empty_target

TITLES = {
    "penstock": "penstock",
    "native_python": "native, with the same Python parse",
    "native_sql": "native, in SQL throughout",
}


def measure(worker: Worker, source: str, settings: argparse.Namespace) -> dict[str, Any]:
    """A contender's latencies in milliseconds."""
    own = empty_target(settings.folder, f"latency-{worker.name}")
    answer = worker.run(
        "latency",
        folder=str(own),
        source=source,
        rate=settings.rate,
        keys=settings.keys,
        warming_seconds=settings.warming_seconds,
        seconds=settings.seconds,
    )
    percentiles = answer.numbers.pop("percentiles_millis")
    return {
        "source": source,
        "median_millis": percentiles[49],
        "p99_millis": percentiles[98],
        "cpu_seconds": round(answer.cpu_seconds, 1),
        **answer.numbers,
        "percentiles_millis": percentiles,
    }


def table(contenders: dict[str, list[dict[str, Any]]]) -> str:
    """Medians and 99th percentiles, a contender a row for each source."""
    head = ("from source to sink", "source", "median ms", "99 % ms", "events", "micro-batches", "CPU s")
    rows = [
        (
            TITLES[name],
            found["source"],
            *(f"{found[kind]:.0f}" for kind in ("median_millis", "p99_millis")),
            *(f"{found[kind]:,}" for kind in ("events", "micro_batches", "cpu_seconds")),
        )
        for name, each in contenders.items()
        for found in each
    ]
    return markdown(head, rows)


def main(given: Sequence[str] | None = None) -> None:
    """Prints the table and writes all numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=1_000, help="events per second")
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=60, help="how long events count")
    parser.add_argument("--warming-seconds", type=float, default=30, help="how long they do not, before")
    parser.add_argument("--sources", nargs="+", choices=["socket", "rate"], default=["socket", "rate"])
    settings = parsed_settings(parser, given, TITLES, "stream_latency.json")
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in settings.contenders}
    with running_workers(settings.contenders, settings.cores, settings.folder) as workers:
        for source in settings.sources:
            for name, worker in workers.items():
                found[name].append(measure(worker, source, settings))
    print(table(found), end="\n\n")
    sizes = {name: getattr(settings, name) for name in ("rate", "keys", "seconds", "warming_seconds")}
    write_numbers(settings.results, settings.cores, {**sizes, "contenders": found})


if __name__ == "__main__":
    main()
