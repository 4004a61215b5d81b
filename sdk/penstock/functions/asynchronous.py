"""Asynchronous DoFns: a ``process`` that is defined with ``async def``, and how its calls are made."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.error import noun_for, refusal
from penstock.functions.dofn import DoFn, FilterDoFn, MapDoFn, MapTupleDoFn
from penstock.functions.results import check_result
from penstock.functions.wrapping import WrappingDoFn
from penstock.utils.retry import FuzzedExponentialIntervals

_Exceptions = type[Exception] | tuple[type[Exception], ...]


@dataclass(frozen=True)
class Concurrency:
    """Limits the calls of an asynchronous DoFn: the arguments of ``ParDo.with_concurrency``.

    Raises:
        ValueError: If a number is out of range.
        TypeError: If an argument has the wrong type.

    >>> Concurrency(max_concurrency=0)
    Traceback (most recent call last):
    ValueError: max_concurrency is 0
      ...
    """

    max_concurrency: int
    timeout_seconds: float | None = None
    retries: int = 0
    retry_on: _Exceptions = OSError
    retry_delay_seconds: float = 0.1
    max_retry_delay_seconds: float = 60.0
    calls_per_second: float | None = None

    def __post_init__(self) -> None:
        _check_number("max_concurrency", self.max_concurrency, int, least=1)
        _check_number("retries", self.retries, int, least=0)
        for name in ("timeout_seconds", "calls_per_second"):
            if getattr(self, name) is not None:
                _check_number(name, getattr(self, name), int | float, above=0)
        for name in ("retry_delay_seconds", "max_retry_delay_seconds"):
            _check_number(name, getattr(self, name), int | float, above=0)
        kinds = self.retry_on if isinstance(self.retry_on, tuple) else (self.retry_on,)
        if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
            what = "retry_on has something that is not a class of exceptions"
            raise refusal(TypeError, what, hint="for example retry_on=(OSError, TimeoutError)")

    def delays_seconds(self) -> Iterator[float]:
        """Returns the seconds to wait before each further try: each twice as long, and randomly shortened."""
        first, longest = self.retry_delay_seconds, self.max_retry_delay_seconds
        return iter(FuzzedExponentialIntervals(first, self.retries, max_delay_secs=longest))


def _check_number(name: str, value: Any, kind: Any, least: float | None = None, above: float = 0) -> None:
    if isinstance(value, bool) or not isinstance(value, kind):
        wanted = "an integer" if kind is int else "a number"
        what = f"{name} is {noun_for(value)}, and not {wanted}"
        raise refusal(TypeError, what, hint=f"pass {wanted}")
    if value < least if least is not None else not value > above:
        needed = f"{least} or more" if least is not None else f"more than {above}"
        raise refusal(ValueError, f"{name} is {value}", hint=f"use {needed}")


class RateLimit:
    """Spaces calls out evenly, so that at most a given number of them begin in a second; None for no limit."""

    def __init__(self, calls_per_second: float | None) -> None:
        self._interval_seconds = 0.0 if calls_per_second is None else 1 / calls_per_second
        self._next_seconds = 0.0

    async def wait(self) -> None:
        """Returns when the next call may begin."""
        if not self._interval_seconds:
            return
        now = asyncio.get_running_loop().time()
        start = max(now, self._next_seconds)
        self._next_seconds = start + self._interval_seconds
        if start > now:
            await asyncio.sleep(start - now)


class ConcurrentDoFn(WrappingDoFn):
    """An asynchronous DoFn whose calls have a limit of time and rate, and are repeated after errors."""

    def __init__(self, dofn: DoFn, concurrency: Concurrency) -> None:
        super().__init__(dofn)
        self._concurrency = concurrency
        self._rate_limit = RateLimit(concurrency.calls_per_second)

    def describe(self) -> str:
        """Returns the name of the DoFn inside, for people."""
        return f"with_concurrency({type(self.dofn).__name__})"

    @property
    def concurrency_max(self) -> int:
        return self._concurrency.max_concurrency

    async def process(self, *args: object, **kwargs: object) -> Any:
        """Returns the result of the inner DoFn from the first try that succeeds."""
        delays = self._concurrency.delays_seconds()
        while True:
            await self._rate_limit.wait()
            try:
                return await await_outputs(
                    lambda: self.dofn.process(*args, **kwargs), self._concurrency.timeout_seconds
                )
            except self._concurrency.retry_on:
                delay = next(delays, None)
                if delay is None:
                    raise
            # Outside of the handler, so that the error can be freed while this waits.
            await asyncio.sleep(delay)


async def await_outputs(call: Callable[[], Any], timeout_seconds: float | None) -> Any:
    """Returns the outputs of an asynchronous call; TimeoutError if they take too long."""
    try:
        async with asyncio.timeout(timeout_seconds) as limit:
            return await outputs_of(call())
    except TimeoutError as error:
        if not limit.expired():
            raise
        what = f"a call took longer than {timeout_seconds} seconds"
        hint = "allow more seconds or retries, or send what fails to an output with with_exception_handling"
        raise refusal(TimeoutError, what, hint=hint) from error


async def outputs_of(result: object) -> Any:
    """Returns the outputs of an asynchronous function: an iterable, or None for nothing.

    >>> async def words(text):
    ...     for word in text.split():
    ...         yield word
    >>> asyncio.run(outputs_of(words("to be")))
    ['to', 'be']
    """
    if inspect.isawaitable(result):
        result = await result
    if isinstance(result, AsyncIterable):
        return [output async for output in result]
    # Outputs that are made later also belong to the call: to its time, and to its retries.
    return list(result) if isinstance(result, Iterator) else result


def check_outputs(outputs: object) -> Any:
    """Returns the outputs of an asynchronous call, none for None; TypeError if they are not an iterable of outputs."""
    if outputs is None:
        return ()
    check_result(outputs)
    return outputs


class AsyncMapDoFn(MapDoFn):
    """Emits what the asynchronous function `fn` returns."""

    async def process(self, element: object, *args: object, **kwargs: object) -> Any:  # type: ignore[override]
        return [await self.fn(element, *args, **kwargs)]


class AsyncMapTupleDoFn(MapTupleDoFn):
    """Calls the asynchronous function `fn` with the parts of each tuple, and emits what it returns."""

    async def process(  # type: ignore[override]
        self, element: Iterable[Any], *args: object, **kwargs: object
    ) -> Any:
        return [await self.fn(*element, *args, **kwargs)]


class AsyncFilterDoFn(FilterDoFn):
    """Keeps the elements for which the asynchronous function `fn` returns true."""

    async def process(self, element: object, *args: object, **kwargs: object) -> Any:  # type: ignore[override]
        return [element] if await self.fn(element, *args, **kwargs) else []


ASYNCHRONOUS_FORMS: dict[type, type] = {
    MapDoFn: AsyncMapDoFn,
    MapTupleDoFn: AsyncMapTupleDoFn,
    FilterDoFn: AsyncFilterDoFn,
}
"""The DoFns of asynchronous functions, by those of plain ones; the others pass on what the function returns."""
