"""Measures how fast batch pipelines are, beside PySpark by hand, Spark alone, Beam's in-process runner, plain Python.

Run it with ``python benchmarks/run.py``, one workload with ``python benchmarks/run.py team_sums``, and ``--quick`` for
a first look.

Each entrant of a comparison has its turn, over and over, in a process that stays; the first turns are not counted. What
a run writes is compared, total by total, with what plain Python finds. Speeds are relative to the first entrant: 0.5
means half as fast.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from comparisons import COMPARISONS, Comparison, Entrant
from options import ROOT
from outcome import FOLDER, write_numbers
from processes import Worker, running_workers
from report import Measured, Numbers, Times, summary, table
from targets import empty_target
from workload import check


def measure(comparison: Comparison, settings: argparse.Namespace) -> Numbers:
    """Runs a comparison in turns, in processes of its own, and returns its numbers."""
    names = list(dict.fromkeys(entrant.worker for entrant in comparison.entrants))
    times: dict[str, list[Times]] = {entrant.name: [] for entrant in comparison.entrants}
    inputs = {
        (entrant.name, size): entrant.workload.make_input(settings.folder, size)
        for entrant in comparison.entrants
        for size in entrant.sizes(settings.scale)
    }
    with running_workers(names, settings.cores, settings.folder, "contender.py") as workers:
        for turn in range(-comparison.warming_turns, settings.runs):
            for entrant in comparison.entrants:
                sizes = entrant.sizes(settings.scale)
                for size in sizes if turn >= 0 else sizes[:1]:
                    took = _run(workers[entrant.worker], entrant, inputs[entrant.name, size], size)
                    if turn >= 0:
                        times[entrant.name].append(took)
    return summary(comparison, settings.scale, {name: Measured(tuple(each)) for name, each in times.items()})


def _run(worker: Worker, entrant: Entrant, source: Path, size: int) -> Times:
    """Runs an entrant's job and checks what it has written."""
    target = empty_target(source.parent, f"{worker.name}-{entrant.job}-{source.stem}")
    answer = worker.run(entrant.job, source=str(source), target=str(target))
    check(source, target)
    return Times(size, answer.wall_seconds, answer.cpu_seconds, answer.peak_megabytes)


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """The command line's arguments."""
    names = [comparison.name for comparison in COMPARISONS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("comparisons", nargs="*", metavar="comparison", help=f"of {', '.join(names)}")
    parser.add_argument("--quick", action="store_true", help="a tenth of the input")
    parser.add_argument("--scale", type=float, help="the part of the full input to run over; default 1")
    parser.add_argument("--runs", type=int, default=3, help="how many runs to count; default 3")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)), help="default: all")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "build" / "benchmarks", help="for data and logs"
    )
    parser.add_argument(
        "--results", type=Path, help="the folder of the files to write; default benchmarks/results"
    )
    settings = parser.parse_args(given)
    if unknown := set(settings.comparisons) - set(names):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; choose from {', '.join(names)}")
    settings.scale = settings.scale or (0.1 if settings.quick else 1.0)
    settings.folder = settings.folder.resolve()
    # The repository keeps only full runs.
    settings.results = settings.results or (FOLDER if settings.scale == 1 else settings.folder)
    return settings


def main(given: Sequence[str] | None = None) -> None:
    """Runs what is asked for, prints the tables and writes the numbers."""
    settings = arguments(given)
    for comparison in COMPARISONS:
        if not settings.comparisons or comparison.name in settings.comparisons:
            numbers = measure(comparison, settings)
            print(table(numbers), end="\n\n", flush=True)
            path = settings.results / f"{comparison.name}.json"
            write_numbers(path, settings.cores, {"counted_runs": settings.runs, **numbers})


if __name__ == "__main__":
    main()
