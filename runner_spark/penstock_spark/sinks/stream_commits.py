"""Commits of a stream to a table: the rows of a micro-batch and its number, in one commit, and that only once.

A table knows a stream by `digest_stream`, and has one number of it: the last micro-batch that is in the table, or
`BEFORE_ALL`. A stream that starts for the first time notes `BEFORE_ALL` before anything else (`has_begun`), so that a
table without a number is another table, with unknown contents. Each try of a commit begins with the newest
state of the table: `is_written` says whether the micro-batch, or a later one, is in it. If another commit has come in
between, the table refuses, and `retry_commits` lets the next try look again.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from typing import Any, TypeVar

from pyspark.sql import DataFrame, Row

from penstock.error import refusal
from penstock.utils import clock
from penstock_spark.reports.failure import fail_step
from penstock_spark.sinks.plan import MicroBatch

ATTEMPTS = 10
"""The number of tries of a commit, while others change the table or its server does not answer."""

BEFORE_ALL = -1
"""The number of a stream that has started, and of which the table has no micro-batch yet."""

_FIRST_PAUSE_SECONDS = 0.05
_DOUBLINGS_MAX = 5

_Result = TypeVar("_Result")
_Written = TypeVar("_Written")


def digest_stream(stream: str) -> str:
    """The name of a stream in a table; it shows neither paths nor labels.

    >>> digest_stream("a stream") == digest_stream("a stream") != digest_stream("another stream")
    True
    """
    return hashlib.sha256(stream.encode()).hexdigest()[:32]


def is_committed(last: int | None, number: int) -> bool:
    """True if a table has the micro-batch of a number; `last` is the last one that it has of the stream.

    >>> [is_committed(last, 4) for last in (None, BEFORE_ALL, 3, 4, 5)]
    [False, False, False, True, True]
    """
    return last is not None and last >= number


def is_written(last: int | None, number: int, table: str, why: str, where: str) -> bool:
    """True if a table has the micro-batch of a number, for a stream that is about to commit it.

    Args:
        last: The number that the table has of the stream; None if it has none.
        number: The number of the micro-batch.
        table: What errors call the table.
        why: Why it may have no number, after "does not know this stream".
        where: The step.

    Raises:
        LookupError: The table does not know the stream, although it has started before.
    """
    if last is None:
        what = f"{table} does not know this stream{why}, so it may lack what the stream has written"
        hint = "use a new checkpoint to write everything again, or give the write another label to continue from here"
        raise refusal(LookupError, what, where=where, hint=hint)
    return is_committed(last, number)


def has_begun(last: int | None, table: str, where: str) -> bool:
    """True if a table knows already that a stream begins, as after a start that was cut short.

    Raises:
        ValueError: The stream has written to the table before, and has lost its checkpoint since.
    """
    if last is None or last == BEFORE_ALL:
        return last == BEFORE_ALL
    what = f"{table} has micro-batches of this stream, whose checkpoint is gone"
    raise refusal(ValueError, what, where=where, hint="write to another table, or use another checkpoint")


class RetryCommit(Exception):
    """A try has certainly changed nothing, or the next one finds out what it has changed.

    Args:
        error: What to raise if there is no further try.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def retry_commits(work: Callable[[int], _Result]) -> _Result:
    """Returns the result of `work`, which is repeated while it raises `RetryCommit`; it gets the try, from 0.

    >>> def work(attempt: int) -> str:
    ...     if attempt == 0:
    ...         raise RetryCommit(ValueError("another program has changed the table"))
    ...     return "in the table"
    >>> retry_commits(work)
    'in the table'
    """
    for attempt in range(ATTEMPTS):
        if attempt:
            # Those who were refused at once should not come back at once.
            longest = _FIRST_PAUSE_SECONDS * 2 ** min(attempt - 1, _DOUBLINGS_MAX)
            clock.sleep(longest * random.uniform(0.5, 1))
        try:
            return work(attempt)
        except RetryCommit as again:
            error = again.error
    raise error


def make_commit_error(table: str, reason: str, where: str) -> RuntimeError:
    """The error of a commit that a table has refused at each try."""
    what = f"{table} rejects a commit: {reason}"
    hint = "start the pipeline again; other programs may be changing the table"
    return refusal(RuntimeError, what, where=where, hint=hint)


def commit_files(
    frame: DataFrame,
    batch: MicroBatch,
    where: str,
    *,
    written_of: Callable[[Row], _Written],
    commit: Callable[[list[_Written]], bool],
    delete: Callable[[list[_Written]], None],
    start: Callable[[], None] = lambda: None,
) -> list[Any]:
    """Lets tasks write files, and the driver commit them to a table; a write without elements of its own.

    Args:
        frame: The rows of the encoders, whose job writes the files.
        batch: What is committed.
        where: The step.
        written_of: Returns what a row says of the files of a task.
        commit: Commits what all tasks have written; False if the table certainly names none of the files.
        delete: Deletes files that no version of the table names.
        start: Called before any task runs.
    """
    try:
        start()
        # Even if the micro-batch is in the table, its tasks have to run: they also keep the state.
        written = [written_of(row) for row in frame.collect()]
        batch.check_or(lambda: delete(written))
        if not commit(written):
            delete(written)
    except (ValueError, TypeError, LookupError, RuntimeError) as error:
        # The runner knows what to say of errors of the system.
        if not batch.stream:
            raise
        fail_step(error, where)
    return []
