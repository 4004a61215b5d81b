"""How much state a stream has for each key, as it is written to the checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from processes import Worker
from stream_comparison import TITLES
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


def measured_bytes(
    workers: dict[str, Worker], contenders: Sequence[str], job: str, source: Path, keys: int
) -> dict[str, float]:
    """The bytes of a key of each contender, which are also printed as a table."""
    found = {name: bytes_per_key(workers[name], job, source, keys) for name in contenders if name in workers}
    rows = [(TITLES[name], f"{size:.0f}") for name, size in found.items()]
    print(markdown((f"state of {keys:,} keys", "bytes of a key"), rows), end="\n\n", flush=True)
    return found
