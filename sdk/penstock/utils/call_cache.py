"""Results of asynchronous calls that a worker keeps for a while: `CallCache`."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from penstock.error import refusal
from penstock.utils import clock
from penstock.utils.identifiers import identifier

__all__ = ["CallCache"]

_KeyT = TypeVar("_KeyT", bound=Hashable)
_ResultT = TypeVar("_ResultT")


class CallCache:
    """Keeps the results of calls by key, in each worker process, for the tasks that run there one after another.

    Copies of the cache, such as those that are sent with a DoFn, have the same entries. If there are several concurrent
    calls for one key, one is made, and the others wait for its result. A call that fails is not cached.

    Args:
        max_entries: The maximum number of results that a process keeps; the least recently used one is removed first.
        time_to_live_seconds: The seconds after which a result is no longer used; None for no limit.

    Raises:
        ValueError: If a number is not positive.

    >>> async def ask(question):
    ...     print("asking")
    ...     return question.upper()
    >>> cache = CallCache(max_entries=100, time_to_live_seconds=60)
    >>> async def ask_twice():
    ...     return [await cache.get("a", ask), await cache.get("a", ask)]
    >>> asyncio.run(ask_twice())
    asking
    ['A', 'A']
    """

    def __init__(self, max_entries: int, time_to_live_seconds: float | None = None) -> None:
        for name, value in (("max_entries", max_entries), ("time_to_live_seconds", time_to_live_seconds)):
            if value is not None and not value > 0:
                raise refusal(ValueError, f"{name} is {value}", hint="use more than 0")
        self._max_entries = max_entries
        self._time_to_live_seconds = time_to_live_seconds
        self._name = identifier()
        self._locks: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()

    def __getstate__(self) -> dict[str, Any]:
        # A lock belongs to the event loop of one task.
        return {name: value for name, value in self.__dict__.items() if name != "_locks"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _locks=WeakValueDictionary())

    async def get(self, key: _KeyT, call: Callable[[_KeyT], Awaitable[_ResultT]]) -> _ResultT:
        """Returns the result for a key: one that is kept, or the result of ``call(key)``, whose errors are raised."""
        entries = _entries.setdefault(self._name, OrderedDict())
        # A lock lives while some call holds it or waits for it.
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            kept = entries.get(key)
            if kept is not None and clock.monotonic_seconds() < kept[1]:
                entries.move_to_end(key)
                result: _ResultT = kept[0]
                return result
            result = await call(key)
            seconds = float("inf") if self._time_to_live_seconds is None else self._time_to_live_seconds
            entries[key] = result, clock.monotonic_seconds() + seconds
            entries.move_to_end(key)
            while len(entries) > self._max_entries:
                entries.popitem(last=False)
            return result


_entries: dict[str, OrderedDict[Any, tuple[Any, float]]] = {}
"""Results and when they end, by key, in each cache of this process."""
