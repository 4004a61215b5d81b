"""Finds the pipeline of a program by letting the program run up to its first pipeline, which does not run."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from penstock.construction.pipeline import Pipeline
from penstock.error import refusal


class _Found(BaseException):
    """The exception that leaves a program once its pipeline is made; its ``except Exception`` does not catch it."""

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__()
        self.pipeline = pipeline


def pipeline_of_program(path: Path, arguments: Sequence[str] = ()) -> Pipeline:
    """The first pipeline that a program runs. Everything before that is done, and nothing after it.

    Of a job in SQL, it is the pipeline that inserts.

    Args:
        path: The file of the program, or of a job in SQL.
        arguments: The arguments of its command line.

    Raises:
        ValueError: The file does not exist, or the program ends without running a pipeline.
    """
    if not path.is_file():
        raise refusal(ValueError, f"there is no file {path}", hint="name the file of a program")
    with _stopped_at_run(), _as_program(path, arguments):
        try:
            if path.suffix == ".sql":
                from penstock.sql.jobs.running import make_job

                if (pipeline := make_job(str(path), arguments).pipeline) is not None:
                    pipeline.to_graph()  # As below.
                    return pipeline
            else:
                runpy.run_path(str(path), run_name="__main__")
        except _Found as found:
            return found.pipeline
        except SystemExit as left:
            if left.code not in (None, 0):
                what = (
                    f"the program {path.name} has ended with the status {left.code} before it ran a pipeline"
                )
                raise refusal(ValueError, what, hint="give its arguments after its name") from None
    what = f"the program {path.name} has run no pipeline"
    raise refusal(
        ValueError,
        what,
        hint="name a program that calls run(), or has `with beam.Pipeline()`; or a job with INSERT",
    )


@contextmanager
def _stopped_at_run() -> Iterator[None]:
    def found(self: Any, *_: object, **__: object) -> NoReturn:
        self.to_graph()  # What it refuses is the program's error.
        raise _Found(self)

    before = Pipeline.run
    Pipeline.run = found  # type: ignore[method-assign]
    try:
        yield
    finally:
        Pipeline.run = before  # type: ignore[method-assign]


@contextmanager
def _as_program(path: Path, arguments: Sequence[str]) -> Iterator[None]:
    """Lets the program see its own command line, and import what lies beside it."""
    argv, folders = sys.argv, list(sys.path)
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, folders
