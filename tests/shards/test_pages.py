"""Many keys in many pages: as if they were all at hand, and no page is read or written without need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from random import Random
from typing import Any

import pytest

from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import Element, Times
from penstock.transforms.trigger import (
    AccumulationMode,
    AfterCount,
    AfterProcessingTime,
    AfterSignal,
    AfterWatermark,
    AfterWatermarkPercentile,
    Repeatedly,
)
from penstock.transforms.window import FixedWindows, Sessions
from penstock.windows.windowing import Windowing
from penstock_spark.stream.shards.keys import Fired, KeyTable
from penstock_spark.stream.state import key_pages
from penstock_spark.stream.state.header import Header
from penstock_spark.stream.state.key_pages import KeyPages
from penstock_spark.stream.state.page_index import PageNotes
from penstock_spark.stream.state.pages import FIRST_PAGES
from tests.shards.shard_streams import DictStore

SECOND = 1_000_000
NAMES = [b"s" + str(number).encode() for number in range(300)]
TRIGGERS = {
    "early and late": AfterWatermark(early=AfterProcessingTime(7), late=AfterCount(1)),
    "percentile": Repeatedly(AfterWatermarkPercentile(0.5)),
    "signal": Repeatedly(AfterSignal("now")),
}


class CountingStore(DictStore):
    """Takes down what is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[int] = []
        self.written: list[int] = []

    def get_many(self, numbers: Sequence[int]) -> list[bytes | None]:
        self.read.append(len(numbers))
        return super().get_many(numbers)

    def put_many(self, items: Iterable[tuple[int, bytes | None]]) -> None:
        items = list(items)
        self.written.append(len(items))
        super().put_many(items)


def arrived(names: list[bytes], stamps: list[int], table: KeyTable, times: Times) -> Iterator[Fired]:
    for name, micros in zip(names, stamps, strict=True):
        yield table.element(name, None, element(table.machine, micros), times)


def signalled(name: str, table: KeyTable, times: Times) -> Iterator[Fired]:
    yield from table.signal(name, times)


def given(fired: Iterable[Fired]) -> list[Fired]:
    """The results; a machine may be asked in vain."""
    return [(key, emitted) for key, emitted in fired if emitted]


def element(machine: GroupingMachine, micros: int) -> Element:
    return Element(micros, micros, machine.assign(micros))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("trigger", TRIGGERS)
@pytest.mark.parametrize("windows", [FixedWindows(10), Sessions(5)], ids=["fixed", "sessions"])
def test_keys_in_pages_do_what_keys_do_that_are_never_put_away(
    windows: Any, trigger: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_pages, "PAGE_BYTES", 200)
    random = Random(seed)
    machine = GroupingMachine(
        Windowing(windows, TRIGGERS[trigger], AccumulationMode.ACCUMULATING, allowed_lateness=20)
    )
    store, notes = DictStore(), PageNotes()
    whole = KeyTable(machine, KeyPages(DictStore(), PageNotes(), 2))
    clock = watermark = 0
    for _ in range(40):
        paged = KeyTable(machine, KeyPages(store, notes, 2))
        for _ in range(random.choice((0, 1, 2))):
            clock += random.choice((0, 1, 5)) * SECOND
            watermark += random.choice((0, 0, 2, 9)) * SECOND
            times = Times(watermark, clock, percentile_micros={0.5: watermark + 3 * SECOND})
            arriving = random.sample(NAMES, random.choice((0, 3, 30)))
            stamps = [watermark + random.randrange(-25, 30) * SECOND for _ in arriving]
            paged.read(arriving)
            steps = [
                partial(arrived, arriving, stamps),
                KeyTable.advance_watermark,
                KeyTable.advance_clock,
            ]
            if random.random() < 0.1:
                steps.append(partial(signalled, "now"))
            for step in steps:
                assert given(step(paged, times)) == given(step(whole, times))
                assert paged.hold_micros() == whole.hold_micros()
        paged.save()
    assert len(notes) > FIRST_PAGES


def filled(machine: GroupingMachine, names: list[bytes] = NAMES) -> tuple[CountingStore, PageNotes]:
    """Keys with an element each, half of them of a later window; in several micro-batches."""
    store, notes = CountingStore(), PageNotes()
    for start in range(0, len(names), 100):
        table = KeyTable(machine, KeyPages(store, notes, 1))
        for number, name in enumerate(names[start : start + 100]):
            table.element(name, None, element(machine, number // 50 * 10 * SECOND), Times())
        table.save()
    # Sizes are only estimated before pages are written, and there may be a few to split.
    KeyTable(machine, KeyPages(store, notes, 1)).save()
    store.read.clear()
    store.written.clear()
    return store, notes


def test_what_comes_at_once_is_read_at_once_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_pages, "PAGE_BYTES", 500)
    machine = GroupingMachine(Windowing(FixedWindows(10)))
    store, notes = filled(machine)
    assert len(notes) > 60
    # New elements make pages larger, and none is to be split for that.
    monkeypatch.setattr(key_pages, "PAGE_BYTES", 600)
    table = KeyTable(machine, KeyPages(store, notes, 1))
    table.read(NAMES[:20])
    for name in NAMES[:20]:
        table.element(name, None, element(machine, 0), Times())
    assert table.hold_micros() == 10 * SECOND - 1
    assert list(table.advance_watermark(Times(9 * SECOND))) == []
    table.save()
    assert [len(store.read), len(store.written)] == [1, 1]
    assert max(store.read + store.written) <= 20 + 2


def test_what_is_due_at_once_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_pages, "PAGE_BYTES", 500)
    machine = GroupingMachine(Windowing(FixedWindows(10)))
    store, notes = filled(machine)
    table = KeyTable(machine, KeyPages(store, notes, 1))
    assert len(list(table.advance_watermark(Times(10 * SECOND)))) == len(NAMES) / 2
    table.save()
    assert [len(store.read), len(store.written)] == [1, 1]
    table = KeyTable(machine, KeyPages(store, notes, 1))
    assert table.hold_micros() == 20 * SECOND - 1
    assert len(list(table.advance_watermark(Times(20 * SECOND)))) == len(NAMES) / 2
    table.save()
    assert store.pages == {}
    assert [notes.keys, notes.size_bytes] == [0, 0]


def test_the_first_micro_batch_already_makes_as_many_pages_as_its_keys_need() -> None:
    machine = GroupingMachine(Windowing(FixedWindows(10)))
    store, notes = CountingStore(), PageNotes()
    table = KeyTable(machine, KeyPages(store, notes, 1))
    for number in range(2_000):
        table.element(b"s%d" % number, None, element(machine, 0), Times())
    table.save()
    assert sum(map(len, store.pages.values())) / len(notes) < 2 * key_pages.PAGE_BYTES
    assert len(notes) > 50


def test_a_large_state_of_one_key_does_not_make_pages() -> None:
    machine = GroupingMachine(Windowing(FixedWindows(10)))
    store, notes = CountingStore(), PageNotes()
    for _ in range(2):
        table = KeyTable(machine, KeyPages(store, notes, 1))
        table.element(b"sann", None, Element("x" * 1_000_000, 0, machine.assign(0)), Times())
        table.save()
    assert len(notes) == FIRST_PAGES


def test_a_header_costs_little_for_each_page() -> None:
    notes = PageNotes()
    notes.add_pages(10_000)
    for number in range(10_000):
        notes.note(number, 4_000, {"clock": number, 1.0: number}, number)
    encoded = Header(notes={"Sum": notes}).encoded()
    assert len(encoded) < 10_000 * 33
    assert Header.decoded(encoded).notes == {"Sum": notes}
