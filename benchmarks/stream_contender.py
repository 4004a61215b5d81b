"""One contender on streams at work: a process that runs the jobs it reads, and answers each of them with numbers.

A process that stays keeps its Spark warm; one for each contender keeps them out of each other's way.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from stream_session import start_session

Job = Callable[..., dict[str, Any]]
"""Runs something in a session, with arguments that JSON takes, and gives what JSON takes."""


def _penstock() -> Mapping[str, Job]:
    import stream_penstock

    return stream_penstock.JOBS


def _native_sql() -> Mapping[str, Job]:
    import stream_native

    return stream_native.SQL_JOBS


def _native_python() -> Mapping[str, Job]:
    import stream_native

    return stream_native.PYTHON_JOBS


def _rows() -> Mapping[str, Job]:
    import stream_per_key

    return stream_per_key.ROW_JOBS


def _frames() -> Mapping[str, Job]:
    import stream_per_key

    return stream_per_key.FRAME_JOBS


CONTENDERS = {
    "penstock": _penstock,
    "native_sql": _native_sql,
    "native_python": _native_python,
    "rows": _rows,
    "frames": _frames,
}


def main(name: str, cores: str) -> None:
    """Says when it is ready, and answers each order, which is the name of a job and its arguments."""
    answers, sys.stdout = sys.stdout, sys.stderr
    jobs = CONTENDERS[name]()
    spark = start_session(int(cores))
    print("ready", file=answers, flush=True)
    for order in sys.stdin:
        job, arguments = json.loads(order)
        print(json.dumps(jobs[job](spark, **arguments)), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
