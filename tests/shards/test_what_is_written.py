"""A micro-batch reads and writes no page of keys twice, and writes none in which nothing has changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from penstock.coders import StrUtf8Coder
from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import Element, Times
from penstock.machines.stateful import StatefulMachine
from penstock.transforms.userstate import SetStateSpec
from penstock.transforms.window import FixedWindows, GlobalWindow
from penstock.windows.windowing import Windowing
from penstock_spark.stream.shards.keys import KeyTable
from penstock_spark.stream.state import key_pages as module
from penstock_spark.stream.state.key_pages import PAGE_BYTES, KeyPages
from penstock_spark.stream.state.page_index import PageNotes
from penstock_spark.stream.state.pages import FIRST_PAGES
from tests.shards.shard_streams import DictStore

NAMES = [b"s" + str(number).encode() for number in range(300)]
SEEN = SetStateSpec("seen", StrUtf8Coder())


class Once:
    """Gives what a key has not been given before."""

    has_expiration = False

    def process(self, key: Any, element: Element, window: Any, state: Any) -> list[Any]:
        return [element.value] if state.get_state(SEEN).add_if_absent(element.value) else []

    def on_timer(self, *arguments: Any) -> list[Any]:
        raise AssertionError

    on_window_expiration = on_timer


class CountingStore(DictStore):
    """Counts the pages that are written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[int] = []

    def put_many(self, items: Iterable[tuple[int, bytes | None]]) -> None:
        items = list(items)
        self.written += [number for number, _ in items]
        super().put_many(items)


def batch(machine: Any, store: DictStore, notes: PageNotes, elements: Sequence[tuple[bytes, Element]]) -> int:
    """Plays one micro-batch; returns the number of results."""
    keys = KeyTable(machine, KeyPages(store, notes, 1))
    keys.read(name for name, _ in elements)
    given = sum(len(keys.element(name, None, element, Times())[1]) for name, element in elements)
    for _ in keys.signal("nobody hears it", Times()):
        pass
    keys.save()
    return given


def seen(value: str) -> list[tuple[bytes, Element]]:
    return [(name, Element(value, 0, (GlobalWindow(),))) for name in NAMES]


@pytest.mark.parametrize("value", ["few bytes", "m" * 2 * PAGE_BYTES])
def test_a_page_whose_keys_are_only_looked_at_is_not_written(value: str) -> None:
    machine, store, notes = StatefulMachine(Once()), CountingStore(), PageNotes()
    assert batch(machine, store, notes, seen(value)) == len(NAMES)
    assert len(set(store.written)) > FIRST_PAGES
    # A key that takes as much as a page is not held in memory twice, only to see whether it has changed.
    expected = set(store.written) if len(value) > PAGE_BYTES else set()
    store.written.clear()
    assert batch(machine, store, notes, seen(value)) == 0
    assert set(store.written) == expected
    store.written.clear()
    assert batch(machine, store, notes, seen(value)[:1] + [(NAMES[0], seen("new")[0][1])]) == 1
    assert len(store.written) == 1
    assert notes.keys == len(NAMES)
    assert notes.size_bytes == sum(map(len, store.pages.values()))


def test_a_signal_that_fires_nothing_writes_nothing() -> None:
    machine, store, notes = GroupingMachine(Windowing(FixedWindows(10))), CountingStore(), PageNotes()
    batch(machine, store, notes, [(name, Element(1, 0, machine.assign(0))) for name in NAMES])
    store.written.clear()
    batch(machine, store, notes, [])
    assert store.written == []


def test_each_page_is_taken_apart_once_for_all_keys_that_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, store, notes = StatefulMachine(Once()), CountingStore(), PageNotes()
    batch(machine, store, notes, seen("a"))
    decoded: list[bytes] = []
    real = module._load_content
    monkeypatch.setattr(module, "_load_content", lambda stored: decoded.append(stored) or real(stored))
    keys = KeyTable(machine, KeyPages(store, notes, 1))
    keys.read(NAMES)
    for name, element in seen("b"):
        keys.element(name, None, element, Times())
    assert len(decoded) == len(store.pages)


def test_of_the_pages_that_are_read_only_the_keys_that_are_asked_for_are_held() -> None:
    machine, store, notes = StatefulMachine(Once()), CountingStore(), PageNotes()
    batch(machine, store, notes, seen("a"))
    keys = KeyTable(machine, KeyPages(store, notes, 1))
    keys.read(NAMES[:3])
    assert set(map(type, keys.pages.loaded.values())) == {bytes}
    assert len(keys._found) == 3
    for name, element in seen("b")[:3]:
        keys.element(name, None, element, Times())
    assert not keys._found
