"""Measures the queries of Nexmark: penstock's pipelines beside PySpark by hand, in batch and on streams.

Run it with ``python benchmarks/nexmark/run.py``, and ``--events=20000 --queries q1 q5`` for a first look.

All read the same events. penstock and "native, Python parse" read lines of JSON and parse them with the same function
in Python: the one in its pipelines, the other in ``mapInArrow``; all else of the second one is Spark's own. "native,
Parquet" reads the columns that it needs from Parquet, in batch, without any Python: it shows what parsing costs, and is
no match for who has lines to parse. On a stream the lines come in files, each a micro-batch; q6 has no answer by hand
there, since Spark has no aggregate over a number of rows of a stream.

With ``--sql`` the queries are in SQL: over the lines, beside the same pipelines, which they are compared with; and in
batch over Parquet beside Spark's own SQL.

Each contender is a process of its own and runs each query over and over, in turn with the others; the first turn is not
counted. Every answer is compared, row by row, with the plain reading of the query (``readings.py``; ``queries.py`` says
what is asked). Speeds are relative to "native, Python parse": 0.5 means half as fast.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from nexmark.answers import check
from nexmark.inputs import batch_files, stream_files
from nexmark.jobs import JOBS, UNANSWERED
from nexmark.queries import QUERIES
from nexmark.report import BASE, geometric_means, summary, table
from options import ROOT
from outcome import FOLDER, write_numbers
from processes import Worker, running_workers
from report import Times
from targets import empty_target

MODES = ("batch", "streaming")
SUITES = {
    "nexmark": ("penstock", "native_python", "native_parquet"),
    "nexmark_sql": ("penstock", "penstock_sql", "native_sql", "penstock_sql_parquet"),
}
"""The contenders that take turns, by the name of the files of their numbers."""
EVENTS = {
    "nexmark": {"batch": 200_000, "streaming": 40_000},
    "nexmark_sql": {"batch": 40_000, "streaming": 10_000},
}
RUNS = {"batch": 3, "streaming": 2}


def compared(
    mode: str, query: str, source: Path, settings: argparse.Namespace, workers: dict[str, Worker]
) -> dict[str, Any]:
    """Has a query answered in turns, of which the first does not count, and returns the numbers of each contender."""
    runs = settings.runs or RUNS[mode]
    times: dict[str, list[Times]] = {name: [] for name in _contenders(mode, query, workers)}
    told: dict[str, dict[str, Any]] = {}
    for turn in range(runs + 1):
        for name, runs_of in times.items():
            target = empty_target(settings.folder, f"{name}-{mode}-{query}")
            answer = workers[name].run(mode, query=query, source=str(source), target=str(target))
            check(source, query, target)
            told[name] = answer.numbers
            if turn:
                runs_of.append(
                    Times(
                        settings.events or EVENTS[settings.suite][mode],
                        answer.wall_seconds,
                        answer.cpu_seconds,
                    )
                )
    found = summary(query, times)
    for name, numbers in told.items():
        found["contenders"][name].update(numbers)
    return found


def _contenders(mode: str, query: str, workers: dict[str, Worker]) -> list[str]:
    return [
        name
        for name in workers
        if mode in JOBS[name] and not (mode == "streaming" and name == BASE and query in UNANSWERED)
    ]


def measure(mode: str, settings: argparse.Namespace, workers: dict[str, Worker]) -> None:
    """Measures all queries in a mode, prints the table and writes the numbers."""
    events = settings.events or EVENTS[settings.suite][mode]
    if mode == "batch":
        source = batch_files(settings.folder, events)
    else:
        source = stream_files(settings.folder, events, settings.files)
    queries = {}
    for query in settings.queries:
        queries[query] = compared(mode, query, source, settings, workers)
        print(f"{mode} {query}", flush=True, file=sys.stderr)
    print(table(mode, events, queries), end="\n\n", flush=True)
    kept = FOLDER if is_full(settings) else settings.folder
    path = settings.results or kept / f"{settings.suite}_{mode}.json"
    means = geometric_means(queries)
    numbers = {"mode": mode, "events": events, "geometric_means": means, "queries": queries}
    if mode == "streaming":
        numbers["files"] = settings.files
    write_numbers(path, settings.cores, numbers)


def is_full(settings: argparse.Namespace) -> bool:
    """True if everything is measured that there is, and so may be kept in the repository."""
    full = arguments(["--sql"] if settings.suite == "nexmark_sql" else [])
    return all(
        getattr(settings, name) == getattr(full, name)
        for name in ("events", "queries", "files", "contenders")
    )


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """The command line's arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mode", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--queries", nargs="+", choices=QUERIES, default=list(QUERIES))
    parser.add_argument("--events", type=int, help=f"how many; default {EVENTS}")
    parser.add_argument("--files", type=int, default=4, help="in how many files the events of a stream are")
    parser.add_argument("--runs", type=int, help=f"how many count, after one that does not; default {RUNS}")
    parser.add_argument(
        "--sql", dest="suite", action="store_const", const="nexmark_sql", default="nexmark", help="in SQL"
    )
    parser.add_argument("--contenders", nargs="+", choices=JOBS, help=f"default {SUITES}")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)), help="default: all")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "benchmarks", help="for data, logs")
    parser.add_argument("--results", type=Path, help="the file to write; for one mode")
    settings = parser.parse_args(given)
    if settings.results and len(settings.mode) > 1:
        parser.error("--results is the file of one mode; choose it with --mode")
    settings.contenders = settings.contenders or list(SUITES[settings.suite])
    settings.folder = settings.folder.resolve()
    return settings


def main(given: Sequence[str] | None = None) -> None:
    """Runs everything, prints the tables and writes the numbers."""
    settings = arguments(given)
    names = [name for name in settings.contenders if any(mode in JOBS[name] for mode in settings.mode)]
    with running_workers(names, settings.cores, settings.folder, "nexmark/contender.py") as workers:
        for mode in settings.mode:
            measure(mode, settings, workers)


if __name__ == "__main__":
    main()
