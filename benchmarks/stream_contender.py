"""One contender on streams at work: a process that runs the jobs it reads, and answers each of them with numbers.

A process that stays keeps its Spark warm; one for each contender keeps them out of each other's way.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from answering import CarryOut, answer_orders
from stream_session import start_session

Job = Callable[..., dict[str, Any]]
"""A function that runs something in a session, with arguments that JSON takes, and returns a result that JSON takes."""


def _penstock() -> Mapping[str, Job]:
    import keyed_penstock
    import stream_penstock
    import stream_shards
    import tiny_progress

    wide = {"wide_batches": stream_shards.by_penstock}
    return {**stream_penstock.JOBS, **keyed_penstock.JOBS, **tiny_progress.JOBS, **wide}


def _native_sql() -> Mapping[str, Job]:
    import keyed_native
    import stream_native
    import stream_shards

    wide = {"wide_batches": partial(stream_shards.natively, stream_shards.sums_by_window)}
    return {**stream_native.SQL_JOBS, **keyed_native.SQL_JOBS, **wide}


def _native_python() -> Mapping[str, Job]:
    import keyed_native
    import stream_native

    return {**stream_native.PYTHON_JOBS, **keyed_native.PYTHON_JOBS}


def _rows() -> Mapping[str, Job]:
    import keyed_per_key
    import stream_per_key
    import stream_shards

    wide = {"wide_batches": partial(stream_shards.natively, stream_per_key.chain)}
    return {**stream_per_key.ROW_JOBS, **keyed_per_key.ROW_JOBS, **wide}


def _frames() -> Mapping[str, Job]:
    import keyed_per_key
    import stream_per_key

    return {**stream_per_key.FRAME_JOBS, **keyed_per_key.FRAME_JOBS}


CONTENDERS = {
    "penstock": _penstock,
    "native_sql": _native_sql,
    "native_python": _native_python,
    "rows": _rows,
    "frames": _frames,
}


def start(name: str, cores: int) -> CarryOut:
    """A contender with its session."""
    jobs = CONTENDERS[name]()
    spark = start_session(cores)
    return lambda job, **arguments: jobs[job](spark, **arguments)


if __name__ == "__main__":
    answer_orders(lambda: start(sys.argv[1], int(sys.argv[2])))
