"""Measures the cost of looking at a run: a stream with a page, and a tiny batch with its progress.

Run it with ``python benchmarks/live_view.py``; ``--only page`` and ``--only progress`` measure a part.

The same streams as in ``stream_replay.py`` and ``stream_latency.py``, with a page and without one, in turns. A thread
plays the part of a browser: it asks for the snapshot once a second. The goals: 2 % of throughput, and 20 ms.

A tiny pipeline runs in pairs in one session, once with progress as on a terminal, and once with ``--progress=off``; the
first of a pair is each of them in turn. The goal: 5 ms, as the median of the differences.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from options import parsed_settings
from outcome import write_numbers
from processes import Worker, running_workers
from stream_inputs import REPLAYS
from stream_report import markdown
from targets import empty_target

TITLES = {"penstock": "penstock"}
ARMS: Mapping[str, dict[str, Any]] = {"without a page": {}, "with a page": {"live_port": 0}}
WORKLOAD = "team_panes"


def replayed(worker: Worker, arm: str, source: str, settings: argparse.Namespace) -> dict[str, float]:
    """One replay of the files, in seconds."""
    target = empty_target(settings.folder, "live-view")
    answer = worker.run(
        "replay",
        workload=WORKLOAD,
        source=source,
        target=str(target),
        files_per_batch=2,
        **ARMS[arm],
    )
    return {"wall_seconds": answer.wall_seconds, "cpu_seconds": answer.cpu_seconds}


def delayed(worker: Worker, arm: str, settings: argparse.Namespace) -> float:
    """The median of the milliseconds from source to sink."""
    answer = worker.run(
        "latency",
        folder=str(empty_target(settings.folder, "live-view-latency")),
        source="socket",
        rate=settings.rate,
        keys=1_000,
        warming_seconds=settings.warming_seconds,
        seconds=settings.seconds,
        **ARMS[arm],
    )
    return float(answer.numbers["percentiles_millis"][49])


def progress_table(found: Mapping[str, Sequence[Sequence[float]]]) -> str:
    """The medians of a tiny pipeline, and what progress costs it; of wall time, and of the driver's Python."""
    titles = ("without progress", "with progress", "the difference of a pair")
    columns = [
        [*zip(*pairs, strict=True), [after - before for before, after in pairs]] for pairs in found.values()
    ]
    rows = [
        [title, *(f"{statistics.median(column[place]):.1f}" for column in columns)]
        for place, title in enumerate(titles)
    ]
    return markdown(("a tiny batch", "median wall ms", "median CPU ms of the driver's Python"), rows)


def table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """The medians, and what a page costs."""
    head = ("a stream", "wall s", "CPU s", "median ms from source to sink")
    rows = [
        [
            arm,
            *(
                f"{statistics.median(run[kind] for run in numbers['runs']):.1f}"
                for kind in ("wall_seconds", "cpu_seconds")
            ),
            f"{statistics.median(numbers['median_millis']):.0f}",
        ]
        for arm, numbers in found.items()
    ]
    return markdown(head, rows)


def main(given: Sequence[str] | None = None) -> None:
    """Prints the table and writes all numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--runs", type=int, default=5, help="how often each, in turns; one more warms up")
    parser.add_argument("--rate", type=int, default=1_000, help="events per second, for the latency")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--warming-seconds", type=float, default=10)
    parser.add_argument("--pairs", type=int, default=100, help="of tiny batches; ten more warm up")
    parser.add_argument("--only", choices=("page", "progress"), help="default: both")
    settings = parsed_settings(parser, given, TITLES, "live_view.json")
    numbers: dict[str, Any] = {}
    with running_workers(["penstock"], settings.cores, settings.folder) as workers:
        worker = workers["penstock"]
        if settings.only != "page":
            numbers["progress_pairs"] = worker.run("progress", pairs=settings.pairs).numbers
            print(progress_table(numbers["progress_pairs"]), end="\n\n")
        if settings.only != "progress":
            numbers |= {"events": settings.events, "contenders": streams(worker, settings)}
            print(table(numbers["contenders"]), end="\n\n")
    write_numbers(settings.results, settings.cores, numbers)


def streams(worker: Worker, settings: argparse.Namespace) -> dict[str, dict[str, list[Any]]]:
    """All runs of streams, with a page and without one."""
    replay = next(each for each in REPLAYS if each.name == WORKLOAD)
    source = str(replay.make_files(settings.folder, settings.events, settings.files))
    found: dict[str, dict[str, list[Any]]] = {arm: {"runs": [], "median_millis": []} for arm in ARMS}
    for number in range(settings.runs + 1):
        for arm in ARMS:
            run = replayed(worker, arm, source, settings)
            if number:
                found[arm]["runs"].append(run)
    for _ in range(settings.runs):
        for arm in ARMS:
            found[arm]["median_millis"].append(delayed(worker, arm, settings))
    return found


if __name__ == "__main__":
    main()
