"""The cache of asynchronous calls."""

from __future__ import annotations

import asyncio
import pickle
import time
from typing import Any

import pytest

from penstock.utils.call_cache import CallCache


class Service:
    def __init__(self, *errors: Exception) -> None:
        self.calls: list[Any] = []
        self.errors = list(errors)

    async def ask(self, key: Any) -> Any:
        self.calls.append(key)
        await asyncio.sleep(0.001)
        if self.errors:
            raise self.errors.pop()
        return None if key == "none" else [key]


def ask_all(cache: CallCache, service: Service, *keys: Any) -> list[Any]:
    async def ask() -> list[Any]:
        return await asyncio.gather(*(cache.get(key, service.ask) for key in keys), return_exceptions=True)

    return asyncio.run(ask())


def test_calls_for_one_key_share_a_result_across_event_loops_and_copies() -> None:
    cache, service = CallCache(10), Service()
    assert ask_all(cache, service, "a", "a", "b", "none", "none") == [["a"], ["a"], ["b"], None, None]
    assert ask_all(pickle.loads(pickle.dumps(cache)), service, "b", "a", "none") == [["b"], ["a"], None]
    assert service.calls == ["a", "b", "none"]
    assert ask_all(CallCache(10), service, "a") == [["a"]]
    assert len(service.calls) == 4, "another cache has entries of its own"


def test_a_call_that_fails_is_not_kept_and_those_that_wait_try_again() -> None:
    cache, service = CallCache(10), Service(ConnectionError())
    failed, found = ask_all(cache, service, "a", "a")
    assert isinstance(failed, ConnectionError)
    assert found == ["a"]
    assert service.calls == ["a", "a"]


def test_the_first_caller_may_be_cancelled() -> None:
    cache, service = CallCache(10), Service()

    async def ask() -> Any:
        first = asyncio.create_task(cache.get("a", service.ask))
        second = asyncio.create_task(cache.get("a", service.ask))
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert asyncio.run(ask()) == ["a"]


def test_results_end_and_make_room() -> None:
    short, service = CallCache(10, time_to_live_seconds=0.01), Service()
    ask_all(short, service, "a")
    time.sleep(0.02)
    ask_all(short, service, "a")
    assert service.calls == ["a", "a"]
    small, service = CallCache(2), Service()
    for key in "abac":
        ask_all(small, service, key)
    ask_all(small, service, "a")
    ask_all(small, service, "b")
    assert service.calls == ["a", "b", "c", "b"]


@pytest.mark.parametrize("arguments", [(0,), (10, 0), (10, -1)])
def test_a_cache_needs_room_and_time(arguments: Any) -> None:
    with pytest.raises(ValueError, match=r"is (0|-1)"):
        CallCache(*arguments)
