"""Functions that are called again after an error, like calls of services (Beam's ``apache_beam.utils.retry``)."""

from __future__ import annotations

import functools
import logging
import random
import traceback
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from penstock.error import refusal
from penstock.utils import clock

__all__ = [
    "Clock",
    "FuzzedExponentialIntervals",
    "PermanentException",
    "no_retries",
    "with_exponential_backoff",
]

_LOGGER = logging.getLogger(__name__)
_RETRIES_MAX = 10_000
_HOUR = 60 * 60
_FunctionT = TypeVar("_FunctionT", bound=Callable[..., Any])


class PermanentException(Exception):
    """The base of errors that are not retried (Beam's name)."""


class Clock:
    """Waits between two calls (Beam's name)."""

    def sleep(self, value: float) -> None:
        """Waits for some seconds."""
        clock.sleep(value)


class FuzzedExponentialIntervals:
    """Yields seconds to wait: each delay is longer than the previous one, and randomly shortened (Beam's name).

    Args:
        initial_delay_secs: The first delay.
        num_retries: The maximum number of delays, at most 10 000.
        factor: How much longer each delay is than the previous one.
        fuzz: The largest share by which a delay is randomly shortened: from 0 to 1.
        max_delay_secs: The longest delay.
        stop_after_secs: The maximum sum of all delays; None for no limit.

    >>> list(FuzzedExponentialIntervals(5, 4, fuzz=0, max_delay_secs=15))
    [5.0, 10.0, 15.0, 15.0]
    """

    def __init__(
        self,
        initial_delay_secs: float,
        num_retries: int,
        factor: float = 2,
        fuzz: float = 0.5,
        max_delay_secs: float = _HOUR,
        stop_after_secs: float | None = None,
    ) -> None:
        if num_retries > _RETRIES_MAX:
            what = f"num_retries parameter cannot exceed {_RETRIES_MAX}"
            raise refusal(ValueError, what, hint="use max_delay_secs to wait for longer")
        if not 0 <= fuzz <= 1:
            raise refusal(ValueError, f"fuzz parameter expected to be in [0, 1] range, not {fuzz!r}")
        self._first = initial_delay_secs
        self._count = num_retries
        self._factor = factor
        self._fuzz = fuzz
        self._longest = max_delay_secs
        self._in_all = stop_after_secs

    def __iter__(self) -> Iterator[float]:
        delay, in_all = min(self._longest, self._first), 0.0
        for _ in range(self._count):
            fuzzed = delay * (1 - self._fuzz * random.random())
            in_all += fuzzed
            if self._in_all is not None and in_all > self._in_all:
                return
            yield fuzzed
            delay = min(self._longest, delay * self._factor)


def _may_succeed_later(exception: BaseException) -> bool:
    """True if a call may succeed after an error: after any but a `PermanentException`."""
    return not isinstance(exception, PermanentException)


def with_exponential_backoff(
    num_retries: int = 7,
    initial_delay_secs: float = 5.0,
    logger: Callable[..., Any] = _LOGGER.warning,
    retry_filter: Callable[[Exception], bool] = _may_succeed_later,
    clock: Any = Clock(),
    fuzz: bool = True,
    factor: float = 2,
    max_delay_secs: float = _HOUR,
    stop_after_secs: float | None = None,
) -> Callable[[_FunctionT], _FunctionT]:
    """Returns a decorator that retries a function after an error, and raises the last error unchanged (Beam's name).

    Args:
        num_retries: The maximum number of retries.
        initial_delay_secs: The seconds before the second call.
        logger: Reports an error, with the signature of ``logging.warning``.
        retry_filter: A function from an error to whether to try again.
        clock: Its ``sleep`` waits for some seconds.
        fuzz: Whether delays are randomly shortened, to half at most.
        factor: How much longer each delay is than the previous one.
        max_delay_secs: The longest delay.
        stop_after_secs: The maximum sum of all delays; None for no limit.

    >>> answers = iter([OSError("busy"), "done"])
    >>> @with_exponential_backoff(initial_delay_secs=0.01, logger=lambda *_: print("again"))
    ... def ask():
    ...     answer = next(answers)
    ...     if isinstance(answer, OSError):
    ...         raise answer
    ...     return answer
    >>> ask()
    again
    'done'
    """

    def decorate(function: _FunctionT) -> _FunctionT:
        @functools.wraps(function)
        def wrapper(*args: object, **kwargs: object) -> Any:
            delays = iter(
                FuzzedExponentialIntervals(
                    initial_delay_secs,
                    num_retries,
                    factor,
                    fuzz=0.5 if fuzz else 0,
                    max_delay_secs=max_delay_secs,
                    stop_after_secs=stop_after_secs,
                )
            )
            while True:
                try:
                    return function(*args, **kwargs)
                except Exception as error:
                    delay = next(delays, None) if retry_filter(error) else None
                    if delay is None:
                        raise
                    logger(
                        "Retry with exponential backoff: waiting for %s seconds before calling %s again, which raised "
                        "%s\nTraceback (most recent call last):\n%s",
                        delay,
                        getattr(function, "__name__", str(function)),
                        "".join(traceback.format_exception_only(error)),
                        "".join(traceback.format_tb(error.__traceback__)),
                    )
                # Outside of the handler, so that the error can be freed while this waits.
                clock.sleep(delay)

        return wrapper  # type: ignore[return-value]

    return decorate


def no_retries(fun: _FunctionT) -> _FunctionT:
    """Returns a decorator of functions that are called once (Beam's name)."""
    return with_exponential_backoff(retry_filter=lambda _: False)(fun)
