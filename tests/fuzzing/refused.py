"""The law of all fuzzers: a right result, or an error that says what is wrong and what to do, and soon."""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.fuzzing.chance import Chance

SECONDS_MAX = 10
"""So long may one input take; it is a guard against hangs, and far above what any needs."""

MEGABYTES_MAX = 400
"""So much may the process grow in one fuzzer."""


def seeds(usual: int, soak: int) -> Any:
    """The numbers of seeds of a fuzzer: a few in each run of the tests, and many with ``-m soak``."""
    return pytest.mark.parametrize("count", [usual, pytest.param(soak, marks=pytest.mark.soak)])


def each_seed(count: int, law: Callable[[Chance], None]) -> None:
    """Asks for a law with each seed from 0 on; a failure names its seed."""
    before = _megabytes()
    for seed in range(count):
        try:
            with _at_most(SECONDS_MAX):
                law(Chance(seed))
        except BaseException as error:
            error.add_note(f"with the seed {seed}")
            raise
    assert _megabytes() - before < MEGABYTES_MAX


def result_or_refusal(call: Callable[[], Any]) -> tuple[Any] | None:
    """The result of a call in a 1-tuple; None for an error of ours, which says what to do; any other error leaves."""
    results = []
    return None if refusal_of(lambda: results.append(call())) is not None else (results[0],)


def refusal_of(call: Callable[[], Any]) -> Exception | None:
    """The error of ours that a call raises, which says what to do; None for a result; any other error leaves."""
    try:
        call()
    except Exception as error:
        if is_refusal(error):
            return error
        raise
    return None


def is_refusal(error: BaseException) -> bool:
    """True if an error has the form of ours: what, mostly where, and a hint."""
    what, *others = str(error).split("\n")
    return bool(what.strip()) and any(line.startswith("  hint: ") for line in others)


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raises a TimeoutError in the main thread if the block takes too long."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"it takes more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
