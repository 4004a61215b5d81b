"""Reads the micro-batches of a running query."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from processes import tree_cpu_seconds

_POLL_SECONDS = 0.1
_WAIT_SECONDS_MAX = 3_600
_SETTLING_SECONDS = 5.0


def await_micro_batches(query: Any, count: int, rows: int = 0) -> None:
    """Waits until `count` micro-batches had at least `rows` rows each; fails after an hour, or if the query
    ends.
    """
    deadline = time.monotonic() + _WAIT_SECONDS_MAX
    # All of the progress is asked for only when there may be enough of it: Java takes long to write it down.
    while _last_batch(query) < count - 1 or len(micro_batch_seconds(query, rows)) < count:
        if not query.isActive or time.monotonic() > deadline:
            raise RuntimeError(f"the query came to {query.lastProgress}") from query.exception()
        time.sleep(_POLL_SECONDS)


def micro_batch_seconds(query: Any, rows: int = 0) -> list[float]:
    """The seconds of each micro-batch with at least `rows` rows; of the last thousand."""
    return [
        progress["durationMs"]["triggerExecution"] / 1_000
        for progress in query.recentProgress
        if progress["numInputRows"] >= rows
    ]


def _last_batch(query: Any) -> int:
    progress = query._jsq.lastProgress()
    return -1 if progress is None else int(progress.batchId())


@contextmanager
def started(writer: Any) -> Iterator[Any]:
    """A query that runs for a block."""
    query = writer.start()
    try:
        yield query
    finally:
        query.stop()


@contextmanager
def own_cpu_seconds() -> Iterator[list[float]]:
    """A list that gets the processor seconds that this process and all that it has started use in the block."""
    used: list[float] = []
    before = tree_cpu_seconds(os.getpid())
    yield used
    used.append(tree_cpu_seconds(os.getpid()) - before)


def measured_batches(query: Any, batches: int) -> dict[str, Any]:
    """Runs a query for `batches` micro-batches, of which the second half counts."""
    warming = batches // 2
    await_micro_batches(query, warming)
    with own_cpu_seconds() as cpu_seconds:
        await_micro_batches(query, batches)
    seconds = micro_batch_seconds(query)[warming:batches]
    return {"seconds": seconds, "cpu_seconds": cpu_seconds[0]}


def measured_state(query: Any, filling: int, batches: int, rows: int) -> dict[str, Any]:
    """Runs a query until its state is full, and then for the micro-batches that count.

    If a micro-batch has rows of the input, it has at least `rows`.
    """
    start = time.perf_counter()
    await_micro_batches(query, filling, rows)
    fill_seconds = time.perf_counter() - start
    with own_cpu_seconds() as cpu_seconds:
        await_micro_batches(query, filling + batches, rows)
    resident_megabytes, resident_megabytes_max = worker_megabytes()
    seconds = micro_batch_seconds(query, rows)[filling:]
    return {
        "fill_seconds": fill_seconds,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds[0],
        "resident_megabytes": resident_megabytes,
        "resident_megabytes_max": resident_megabytes_max,
    }


def measured_growth(query: Any, folder: str, filling: int, batches: int) -> dict[str, Any]:
    """Runs a query for `filling` micro-batches with files of a folder, and then for `batches` that count.

    A query may run other micro-batches in between, which cost what they cost.
    """
    parts = {}
    for part, count in (("fill", filling), ("counted", filling + batches)):
        start = time.perf_counter()
        with own_cpu_seconds() as cpu_seconds:
            _await_files(query, folder, count)
        parts[part] = {"wall_seconds": time.perf_counter() - start, "cpu_seconds": cpu_seconds[0]}
    return {**parts, "seconds": file_batch_seconds(query, folder)[filling:]}


def _await_files(query: Any, folder: str, count: int) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS_MAX
    while _last_batch(query) < count - 1 or len(file_batch_seconds(query, folder)) < count:
        if not query.isActive or time.monotonic() > deadline:
            raise RuntimeError(f"the query came to {query.lastProgress}") from query.exception()
        time.sleep(_POLL_SECONDS)


def file_batch_seconds(query: Any, folder: str) -> list[float]:
    """The seconds of each micro-batch that read new files of a folder; of the last thousand.

    The number of rows would not tell: it counts what Spark reads, and a task may read the file itself.
    """
    return [
        progress["durationMs"]["triggerExecution"] / 1_000
        for progress in query.recentProgress
        if any(
            folder in source["description"] and source["startOffset"] != source["endOffset"]
            for source in progress["sources"]
        )
    ]


def measured_idleness(query: Any, seconds: float) -> dict[str, Any]:
    """The processor time and the micro-batches of a query to which nothing comes, after its first micro-batch."""
    await_micro_batches(query, 1)
    time.sleep(_SETTLING_SECONDS)
    first = _last_batch(query)
    with own_cpu_seconds() as cpu_seconds:
        time.sleep(seconds)
    return {"seconds": seconds, "cpu_seconds": cpu_seconds[0], "micro_batches": _last_batch(query) - first}


def worker_megabytes() -> tuple[float, float]:
    """The resident memory of the largest Python process of Spark below this one: now, and at most so far."""
    statuses = dict(_statuses())
    below = [os.getpid()]
    for process in below:
        below += [other for other, status in statuses.items() if status["PPid"] == str(process)]
    sizes = [
        (_megabytes(statuses[process]["VmRSS"]), _megabytes(statuses[process]["VmHWM"]))
        for process in below[1:]
        if statuses[process]["Name"].startswith("python") and "VmHWM" in statuses[process]
    ]
    return max(sizes, key=lambda size: size[1])


def _statuses() -> Iterator[tuple[int, dict[str, str]]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                lines = (entry / "status").read_text().splitlines()
            except OSError:
                continue
            pairs = (line.partition(":") for line in lines)
            yield int(entry.name), {name: value.strip() for name, _, value in pairs}


def _megabytes(size: str) -> float:
    return int(size.removesuffix("kB")) / 1_024
