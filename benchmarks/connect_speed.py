"""Measures pipelines on a server of Spark Connect beside the same pipelines in a session of the program's own.

Run it with ``python benchmarks/connect_speed.py``. Two processes, each with Spark of its own, take turns; the server
that the one needs is a process below it, and so its processor time counts. A speed is the median of the ratios of
neighbours: 0.5 means that Connect is half as fast.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from options import parsed_settings
from outcome import write_numbers
from processes import Worker, running_workers
from stream_inputs import REPLAYS
from stream_inputs import check as check_stream
from stream_report import markdown
from targets import empty_target
from workload import check
from workloads import WORKLOADS

_CONTENDERS = ("classic", "connect")
_WARMING_TURNS = 3


@dataclass(frozen=True)
class _Work:
    job: str
    title: str
    size: int


WORK = (
    _Work("tiny", "ten tiny pipelines", 3),
    _Work("team_sums", "sums per team and two minutes, of lines", 2_000_000),
    _Work("user_sessions", "sums per user and session, of lines", 2_000_000),
    _Work("typed_sums", "the same sums, of columns", 20_000_000),
    _Work("stream", "a stream of 40 micro-batches of lines", 2_000_000),
)
_FILES = 40


def compare(work: _Work, settings: argparse.Namespace, workers: dict[str, Worker]) -> dict[str, Any]:
    """The seconds of both sides in turns, and the median of the ratios of neighbours."""
    source = _source(work, settings.folder)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in _CONTENDERS}
    for turn in range(-_WARMING_TURNS, settings.turns):
        for name in _CONTENDERS if turn % 2 else _CONTENDERS[::-1]:
            target = empty_target(settings.folder, f"{name}-{work.job}")
            answer = workers[name].run(work.job, source=str(source), target=str(target))
            _check(work, source, target)
            if turn >= 0:
                found[name].append((round(answer.wall_seconds, 3), round(answer.cpu_seconds, 3)))
    pairs = list(zip(found["classic"], found["connect"], strict=True))
    numbers: dict[str, Any] = {"title": work.title, "size": work.size, "seconds": found}
    for at, kind in enumerate(("wall", "cpu")):
        numbers[f"speed_by_{kind}"] = round(statistics.median(one[at] / other[at] for one, other in pairs), 3)
    return numbers


def _source(work: _Work, folder: Path) -> Path:
    if work.job == "tiny":
        return folder
    if work.job == "stream":
        replay = next(each for each in REPLAYS if each.name == "sums")
        return replay.make_files(folder, work.size, _FILES)
    workload = next(each for each in WORKLOADS if each.name == work.job)
    return workload.make_input(folder, work.size)


def _check(work: _Work, source: Path, target: Path) -> None:
    if work.job == "stream":
        check_stream(source, target, "on time")
    elif work.job != "tiny":
        check(source, target)


def main(given: Sequence[str] | None = None) -> None:
    """Prints a table, and writes every run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=7, help="how many turns count")
    parser.add_argument(
        "--work", nargs="+", choices=[each.job for each in WORK], default=[each.job for each in WORK]
    )
    settings = parsed_settings(parser, given, _CONTENDERS, "connect_speed.json")
    rows = []
    measured = {}
    with running_workers(_CONTENDERS, settings.cores, settings.folder, "connect_contender.py") as workers:
        for work in WORK:
            if work.job in settings.work:
                measured[work.job] = numbers = compare(work, settings, workers)
                rows.append((work.title, f"{numbers['speed_by_wall']:.2f}", f"{numbers['speed_by_cpu']:.2f}"))
                print(*rows[-1], flush=True)
    print(markdown(("", "speed by wall", "speed by CPU"), rows))
    write_numbers(settings.results, settings.cores, {"turns": settings.turns, "work": measured})


if __name__ == "__main__":
    main()
