"""Compares contenders that keep a state for each key, also by the size of the state in the checkpoint."""

from __future__ import annotations

import argparse
from pathlib import Path

from processes import Worker, running_workers
from stream_comparison import TITLES, Work, compared, write_comparison
from stream_report import markdown
from targets import checkpoint_of, empty_target


def bytes_per_key(worker: Worker, job: str, source: Path, keys: int) -> float:
    """The bytes that Spark's state stores have written for a key, after one micro-batch in which all keys are
    new.

    They are compressed, by Spark's default for everybody, and include all that a contender keeps, its timers
    too. The job reads everything in one micro-batch and then stops, before anything expires.
    """
    target = empty_target(source.parent, f"{worker.name}-{source.name}")
    worker.run(job, source=str(source), target=str(target))
    files = (path for path in checkpoint_of(target).glob("**/state/**/*.changelog"))
    return round(sum(path.stat().st_size for path in files) / keys, 1)


def compare_keyed(settings: argparse.Namespace, work: Work, full: Path, keys: int) -> None:
    """Compares the speed and the state of contenders, prints tables and writes the numbers.

    From the folder `full`, their ``_fill`` job makes the state of all keys.
    """
    with running_workers(settings.contenders, settings.cores, settings.folder) as workers:
        numbers = compared(work, settings, workers)
        found = {
            name: bytes_per_key(workers[name], f"{work.job}_fill", full, keys)
            for name in work.contenders
            if name in workers
        }
    rows = [(TITLES[name], f"{size:.0f}") for name, size in found.items()]
    print(markdown((f"state of {keys:,} keys", "bytes of a key"), rows), end="\n\n", flush=True)
    write_comparison(settings, {work.job: {**numbers, "state_bytes_per_key": found}})
