"""Measures how fast penstock is, beside PySpark written by hand and Beam's in-process runner.

Run it with ``python benchmarks/run.py``, and ``--quick`` for a first look.

Each contender is a process of its own and runs each workload over and over, in turn with the others; the first turn
is not counted. What a run writes is compared, total by total, with what plain Python finds. Speeds are relative to
the handwritten PySpark: 0.5 means half as fast.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outcome import FOLDER, write_numbers
from processes import Worker, running_workers
from report import Measured, Times, summary, table
from targets import empty_target
from workloads import WORKLOADS, Workload, check

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Contender:
    """Who is measured.

    Attributes:
        name: As `contender` knows it.
        title: For people.
        fractions: How much of the input it gets, run by run; one so slow that all of it would take too long gets two
            small parts, and the rate between them counts.
    """

    name: str
    title: str
    fractions: tuple[float, ...] = (1.0,)


CONTENDERS = (
    Contender("penstock", "penstock"),
    Contender("handwritten", "PySpark by hand"),
    Contender("beam", "Beam's in-process runner", (0.05, 0.1)),
)


def measure(
    workload: Workload, size: int, runs: int, workers: dict[str, Worker], folder: Path
) -> dict[str, Any]:
    """Runs a workload in turns, prints its table, and gives its numbers."""
    inputs = {
        part: workload.make_input(folder, part)
        for contender in CONTENDERS
        for part in _parts(contender, size)
    }
    times: dict[str, list[Times]] = {contender.name: [] for contender in CONTENDERS}
    for turn in range(runs + 1):
        for contender in CONTENDERS:
            parts = _parts(contender, size)
            for part in parts if turn else parts[:1]:
                took = _run(workers[contender.name], workload.name, inputs[part], part)
                if turn:
                    times[contender.name].append(took)
    measured = {
        contender.name: Measured(contender.title, tuple(times[contender.name])) for contender in CONTENDERS
    }
    summed = summary(workload, size, measured)
    print(table(summed, measured), end="\n\n", flush=True)
    return summed


def _run(worker: Worker, workload: str, source: Path, size: int) -> Times:
    """Runs a workload and checks what it has written."""
    target = empty_target(source.parent, f"{worker.name}-{source.stem}")
    answer = worker.run(workload, source=str(source), target=str(target))
    check(source, target)
    return Times(size, answer.wall_seconds, answer.cpu_seconds)


def _parts(contender: Contender, size: int) -> tuple[int, ...]:
    return tuple(int(size * fraction) for fraction in contender.fractions)


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """The command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the input, and 3 counted runs")
    parser.add_argument("--scale", type=float, help="the part of the full input to run over; default 1")
    parser.add_argument("--runs", type=int, help="how many runs to count; default 5")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)), help="default: all")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "build" / "benchmarks", help="for data and logs"
    )
    parser.add_argument(
        "--results", type=Path, help="the file to write; default benchmarks/results/throughput.json"
    )
    settings = parser.parse_args(given)
    scale, runs = (0.1, 3) if settings.quick else (1.0, 5)
    settings.scale = settings.scale or scale
    settings.runs = settings.runs or runs
    settings.folder = settings.folder.resolve()
    # What is kept in the repository are full runs only.
    kept = FOLDER if settings.scale == 1 else settings.folder
    settings.results = settings.results or kept / "throughput.json"
    return settings


def main(given: Sequence[str] | None = None) -> None:
    """Runs everything, prints the tables and writes the numbers."""
    settings = arguments(given)
    names = [contender.name for contender in CONTENDERS]
    with running_workers(names, settings.cores, settings.folder, "contender.py") as workers:
        results = {
            workload.name: measure(
                workload, int(workload.size * settings.scale), settings.runs, workers, settings.folder
            )
            for workload in WORKLOADS
        }
    numbers = {"counted_runs": settings.runs, "workloads": results}
    write_numbers(settings.results, settings.cores, numbers)


if __name__ == "__main__":
    main()
