"""A limit for the time for which a worker waits for an answer from Spark's state.

For each task with state, Spark listens on a port and takes one connection. If another program connects first, such as
a client that looks for a server that has stopped, Spark never accepts the worker's connection, and the worker would
wait forever.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

FIRST_ANSWER_SECONDS = 120.0
"""The limit for the first answer, which only shows that Spark has accepted the worker's connection."""

ANSWER_SECONDS = 900.0
"""The limit for a later answer: Spark may read from a slow disk, and Java may collect garbage."""


@contextmanager
def answers_in_time(handle: object) -> Iterator[None]:
    """Within the block, a worker asks for its first answer; from then on, an answer that does not come is an error.

    Nothing changes if PySpark is not built as expected.
    """
    client = next((each for each in vars(handle).values() if hasattr(each, "_client_socket")), None)
    if client is None:
        yield
        return
    client.sockfile = answers = _Answers(client.sockfile, FIRST_ANSWER_SECONDS)
    client._client_socket.settimeout(FIRST_ANSWER_SECONDS)
    yield
    answers.seconds = ANSWER_SECONDS
    client._client_socket.settimeout(ANSWER_SECONDS)


class _Answers:
    """The file of a connection to Spark's state; it raises a RunnerError if the other side is silent for too long."""

    def __init__(self, file: BinaryIO, seconds: float) -> None:
        self._file = file
        self.seconds = seconds

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)

    def read(self, size: int = -1) -> bytes:
        try:
            return self._file.read(size)
        except TimeoutError:
            raise self._silence() from None

    def write(self, data: bytes) -> int:
        try:
            return self._file.write(data)
        except TimeoutError:
            raise self._silence() from None

    def flush(self) -> None:
        try:
            self._file.flush()
        except TimeoutError:
            raise self._silence() from None

    def _silence(self) -> Exception:
        from penstock.error import RunnerError

        what = f"Spark's state has not answered a task for {self.seconds:g} seconds"
        hint = (
            "run the program again, which continues from the checkpoint; if this happens often, check Java's memory, "
            "and look for programs on the worker's machine that connect to ports of servers that have stopped"
        )
        return RunnerError(what, hint=hint)
