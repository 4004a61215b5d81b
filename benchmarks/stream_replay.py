"""Measures how fast events are replayed from files as a stream, beside queries that are written by hand.

Run it with ``python benchmarks/stream_replay.py``, and ``--scale=0.1`` for a first look.

Each contender is a process of its own and runs each workload over and over, in turn with the others; the first turn is
not counted. What a run writes is compared, total by total, with what plain Python finds. Speeds are relative to the
first contender by hand: 0.5 means half as fast. With many keys all contenders get two fifths of the events.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from outcome import FOLDER, write_numbers
from processes import Times
from report import Measured
from stream_inputs import REPLAYS, Replay, check
from stream_processes import StreamWorker, stream_workers
from stream_report import markdown

ROOT = Path(__file__).parents[1]

TITLES = {
    "penstock": "penstock",
    "native_sql": "native, in SQL throughout",
    "native_python": "native, with the same Python parse",
    "rows": "`transformWithState` per key",
    "frames": "`transformWithStateInPandas` per key",
}

CONTENDERS = {
    "sums": ("native_sql", "native_python", "penstock"),
    "team_panes": ("rows", "frames", "penstock"),
    "user_panes": ("rows", "frames", "penstock"),
}
"""Who runs what; the first one is what the others are compared with."""

PARTS = {"sums": 1.0, "team_panes": 1.0, "user_panes": 0.4}
"""How much of the events a workload has."""


@dataclass(frozen=True)
class Setting:
    """What a run depends on.

    Attributes:
        events: How many there are.
        files: How many files they are in.
        files_per_batch: How many files make a micro-batch.
        runs: How many runs count.
        folder: For data, logs and what is written.
    """

    events: int
    files: int
    files_per_batch: int
    runs: int
    folder: Path

    def size(self, workload: str) -> tuple[int, int]:
        """How many events, in how many files, a workload has: smaller files would be another workload."""
        part = PARTS[workload]
        return int(self.events * part), max(1, round(self.files * part))


def measure(replay: Replay, setting: Setting, workers: dict[str, StreamWorker]) -> dict[str, Any]:
    """Runs a workload in turns, prints its table, and gives its numbers."""
    names = [name for name in CONTENDERS[replay.name] if name in workers]
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for turn in range(setting.runs + 1):
        for name in names:
            run = _run(replay, setting, workers[name])
            if turn:
                runs[name].append(run)
    contenders = {name: _summary(found) for name, found in runs.items()}
    numbers = {"title": replay.title, "contenders": contenders}
    print(_table(numbers), end="\n\n", flush=True)
    return numbers


def _run(replay: Replay, setting: Setting, worker: StreamWorker) -> dict[str, Any]:
    events, files = setting.size(replay.name)
    source = replay.make_files(setting.folder, events, files)
    target = setting.folder / "written" / f"{worker.name}-{source.name}"
    for folder in (target, target.with_name(f"{target.name}-checkpoint")):
        shutil.rmtree(folder, ignore_errors=True)
    target.parent.mkdir(exist_ok=True)
    answer = worker.run(
        "replay",
        workload=replay.name,
        source=str(source),
        target=str(target),
        files_per_batch=setting.files_per_batch,
    )
    times = Times(events, round(answer.wall_seconds, 3), round(answer.cpu_seconds, 3))
    return {**asdict(times), **answer.numbers, "panes": check(source, target)}


def _summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The medians of a contender's runs."""
    times = tuple(Times(run["size"], run["wall_seconds"], run["cpu_seconds"]) for run in runs)
    size, measured = times[0].size, Measured("", times)
    wall_seconds, cpu_seconds = (measured.seconds(kind, size) for kind in ("wall_seconds", "cpu_seconds"))
    return {
        "wall_seconds": round(wall_seconds, 3),
        "cpu_seconds": round(cpu_seconds, 3),
        "events_per_wall_second": round(size / wall_seconds),
        "events_per_cpu_second": round(size / cpu_seconds),
        "runs": runs,
    }


def _table(numbers: dict[str, Any]) -> str:
    contenders = numbers["contenders"]
    base = next(iter(contenders.values()))
    head = ("", "wall s", "CPU s", "events/s", "events/CPU s", "speed by wall", "speed by CPU", "panes")
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


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """The command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="the part of the full input to run over")
    parser.add_argument("--events", type=int, default=2_500_000, help="the full input")
    parser.add_argument("--files", type=int, default=50, help="how many files the full input is in")
    parser.add_argument("--files-per-batch", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3, help="how many runs count, after one that does not")
    parser.add_argument("--workloads", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--contenders", nargs="+", choices=TITLES, default=list(TITLES))
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)), help="default: all")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "build" / "benchmarks", help="for data and logs"
    )
    parser.add_argument("--results", type=Path, help="the file to write")
    settings = parser.parse_args(given)
    settings.folder = settings.folder.resolve()
    # What is kept in the repository are full runs of everybody only.
    sizes = ("scale", "events", "files", "files_per_batch", "workloads", "contenders")
    is_full = all(getattr(settings, name) == parser.get_default(name) for name in sizes)
    settings.results = settings.results or (FOLDER if is_full else settings.folder) / "stream_replay.json"
    return settings


def main(given: Sequence[str] | None = None) -> None:
    """Runs everything, prints the tables and writes the numbers."""
    settings = arguments(given)
    setting = Setting(
        int(settings.events * settings.scale),
        max(1, round(settings.files * settings.scale)),
        settings.files_per_batch,
        settings.runs,
        settings.folder,
    )
    replays = [replay for replay in REPLAYS if replay.name in settings.workloads]
    names = [
        name
        for name in settings.contenders
        if any(name in CONTENDERS[workload] for workload in settings.workloads)
    ]
    with stream_workers(names, settings.cores, settings.folder) as workers:
        workloads = {replay.name: measure(replay, setting, workers) for replay in replays}
    numbers = {
        **{name: value for name, value in asdict(setting).items() if name != "folder"},
        "workloads": workloads,
    }
    write_numbers(settings.results, settings.cores, numbers)


if __name__ == "__main__":
    main()
