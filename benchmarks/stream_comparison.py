"""Contenders that do the same work on a stream of files, in turns: their times, and a table of them."""

from __future__ import annotations

import argparse
import dataclasses
import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from outcome import write_numbers
from processes import Worker
from report import Measured, Times
from stream_inputs import check
from stream_report import markdown
from targets import empty_target

_IDLE_SECONDS_MAX = 45

TITLES = {
    "penstock": "penstock",
    "native_sql": "native, in SQL throughout",
    "native_python": "native, with the same Python parse",
    "rows": "`transformWithState` per key",
    "frames": "`transformWithStateInPandas` per key",
}


@dataclass(frozen=True)
class Work:
    """The work of all contenders."""

    title: str  # For people.
    contenders: tuple[str, ...]  # The others are compared with the first one.
    job: str  # As the contenders know it.
    arguments: dict[str, Any]  # The job's arguments beside the source and the target.
    events: int  # The number of events in the source.
    source: Path
    untimed: str = "on time"  # The timing of results that do not contain one.


def add_turns(parser: argparse.ArgumentParser, runs: int) -> None:
    """Adds the options that say how often contenders run, with how many of the runs count unless it is said."""
    parser.add_argument(
        "--warming-seconds", type=int, default=60, help="for so long runs do not count at first"
    )
    parser.add_argument("--runs", type=int, default=runs, help="how many runs count")


def compared(work: Work, settings: argparse.Namespace, workers: dict[str, Worker]) -> dict[str, Any]:
    """Has work done in turns, prints a table, and returns the numbers.

    At first each contender works for a minute that does not count: so long Java compiles what micro-batches run, and a
    stream runs for days. A contender that the others have kept waiting has a run more that does not count: Spark ends
    Python workers that have nothing to do for a minute, and a stream is not paused for a minute.
    """
    names = [name for name in work.contenders if name in workers]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for name in names:
        _warm_up(work, settings, workers[name])
    ended = dict.fromkeys(names, -math.inf)
    for _ in range(settings.runs):
        for name in names:
            if time.monotonic() - ended[name] > _IDLE_SECONDS_MAX:
                _run(work, settings.folder, workers[name])
            found[name].append(_run(work, settings.folder, workers[name]))
            ended[name] = time.monotonic()
    numbers = {"title": work.title, "contenders": {name: _summary(each) for name, each in found.items()}}
    print(table(numbers), end="\n\n", flush=True)
    return numbers


def _warm_up(work: Work, settings: argparse.Namespace, worker: Worker) -> None:
    start = time.monotonic()
    _run(work, settings.folder, worker)
    while time.monotonic() - start < settings.warming_seconds:
        _run(work, settings.folder, worker)


def _run(work: Work, folder: Path, worker: Worker) -> dict[str, Any]:
    target = empty_target(folder, f"{worker.name}-{work.source.name}")
    answer = worker.run(work.job, source=str(work.source), target=str(target), **work.arguments)
    times = Times(
        work.events,
        round(answer.wall_seconds, 3),
        round(answer.cpu_seconds, 3),
        round(answer.peak_megabytes),
    )
    return {**asdict(times), **answer.numbers, "panes": check(work.source, target, work.untimed)}


def _summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The medians of a contender's runs."""
    fields = [field.name for field in dataclasses.fields(Times)]
    times = tuple(Times(**{name: run[name] for name in fields}) for run in runs)
    size, measured = times[0].size, Measured(times)
    wall_seconds, cpu_seconds = (measured.seconds(kind, size) for kind in ("wall_seconds", "cpu_seconds"))
    return {
        "wall_seconds": round(wall_seconds, 3),
        "cpu_seconds": round(cpu_seconds, 3),
        "events_per_wall_second": round(size / wall_seconds),
        "events_per_cpu_second": round(size / cpu_seconds),
        "peak_megabytes": max(each.peak_megabytes for each in times),
        "runs": runs,
    }


def table(numbers: dict[str, Any]) -> str:
    """The table of a workload, with its title."""
    contenders = numbers["contenders"]
    base = next(iter(contenders.values()))
    head = ("", "wall s", "CPU s", "events/s", "events/CPU s", "speed by wall", "speed by CPU", "results")
    rows = [
        (
            TITLES[name],
            f"{found['wall_seconds']:.1f}",
            f"{found['cpu_seconds']:.1f}",
            f"{found['events_per_wall_second']:,}",
            f"{found['events_per_cpu_second']:,}",
            f"{base['wall_seconds'] / found['wall_seconds']:.2f}",
            f"{base['cpu_seconds'] / found['cpu_seconds']:.2f}",
            ", ".join(f"{count:,} {timing}" for timing, count in found["runs"][-1]["panes"].items()),
        )
        for name, found in contenders.items()
    ]
    return "\n".join([f"{numbers['title']}:", "", markdown(head, rows)])


def write_comparison(settings: argparse.Namespace, workloads: dict[str, Any]) -> None:
    """Writes the numbers, with the program's settings that they depend on."""
    elsewhere = ("cores", "folder", "results", "contenders", "workloads")
    sizes = {name: value for name, value in vars(settings).items() if name not in elsewhere}
    write_numbers(settings.results, settings.cores, {**sizes, "workloads": workloads})
