"""Long lists whose segments are kept apart: results are the same, nothing is left over, nothing is written twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from random import Random
from typing import Any

import pytest

import penstock as beam
from penstock.coders import FastPrimitivesCoder
from penstock.io import WriteToMemory
from penstock.io.watermarks import BoundedDisorder
from penstock.machines.folds import LIST
from penstock.machines.long_lists import LongList
from penstock.machines.records import AddElement, AdvanceWatermark
from penstock.machines.states import KeyState
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark
from penstock.transforms.userstate import BagStateSpec, on_window_expiration
from penstock.transforms.window import FixedWindows, Sessions
from penstock.windows.windowing import Windowing
from penstock_spark.checkpoints.state_table import rows_of_page
from penstock_spark.stream.resharding import merged_headers
from penstock_spark.stream.shards.keys import state_of
from penstock_spark.stream.state import segments
from penstock_spark.stream.state.header import Header
from penstock_spark.stream.state.key_pages import keys_of
from penstock_spark.stream.state.page_index import PageNotes
from penstock_spark.stream.state.segments import Segments, sizes_of
from penstock_spark.stream.state.window_pages import is_by_window, page_of
from tests.machines.generated_events import random_case
from tests.shards.shard_streams import GROUPING, DictStore, Stream, machine_of
from tests.shards.test_other_shards import divided, law
from tests.shards.test_shards import cuts, of_machine, of_stream
from tests.shards.toy_query import ToyQuery

SECOND = 1_000_000
FEW_BYTES = 13
"""The size of the pickle of a list of three small numbers."""


@pytest.fixture
def few_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists are long from four values on."""
    monkeypatch.setattr(segments, "SEAL_BYTES", FEW_BYTES)


def helds_of(state: Any) -> Iterator[Any]:
    """The contents of the windows or the cells of a key."""
    for window in state.windows.values():
        yield from [window.held] if isinstance(state, KeyState) else window.values()


def noted_and_had(page: bytes) -> tuple[dict[int, int], dict[int, int]]:
    """The segments that a page notes, and those that the states in it have."""
    noted: dict[int, int] = {}
    had: dict[int, int] = {}
    if is_by_window(page):
        for stored in page_of(page).values():
            noted.update(stored.segments)
            had.update(sizes_of([held for held, *_ in stored.opened().cells.values()]))
    else:
        for _, kept in keys_of(page):
            noted.update(kept.segments)
            had.update(sizes_of([*helds_of(state_of(None, kept.state))]))
    return noted, had


def check_store(store: DictStore, notes: PageNotes) -> int:
    """Nothing is lost, and nothing is left over; returns how many segments there are."""
    kept = {number: len(content) for number, content in store.pages.items() if number < 0}
    noted: dict[int, int] = {}
    for number, page in store.pages.items():
        if number >= 0:
            own, had = noted_and_had(page)
            assert own == had
            assert not own.keys() & noted.keys(), "two keys have the same segment"
            noted |= own
    assert noted == kept
    assert notes.segment_bytes == sum(kept.values())
    assert all(~number < notes.next_segment for number in kept)
    return len(kept)


def check_stream(stream: Stream) -> int:
    notes = [Header.decoded(header).notes[GROUPING] for header in stream.headers]
    return sum(map(check_store, stream.stores, notes))


def check_query(query: ToyQuery) -> int:
    headers = {place: Header.decoded(header) for place, header in query._headers.items()}
    return sum(
        check_store(store, headers[level, shard].notes[label])
        for (level, shard, label), store in query._stores.items()
        if label in headers[level, shard].notes
    )


@pytest.mark.parametrize("mode", ["streaming", "micro_batch"])
def test_any_grouping_gives_what_it_gives_with_plain_lists(few_bytes: None, mode: str) -> None:
    seen = tried = 0
    for seed in range(400):
        random = Random(seed)
        case = random_case(random)
        machine = case.machine()
        if machine.program.fold is not LIST:
            continue
        tried += 1
        stream = Stream(machine, shards=random.choice((1, 2, 3)), micro_batch=mode == "micro_batch")
        if mode == "micro_batch":
            # A round is what stands before the event that ends it.
            batch: list[Any] = []
            for event in case.events:
                batch.append(event)
                if type(event).__name__ == "EndMicroBatch":
                    stream.batch(batch)
                    seen += check_stream(stream)
                    batch = []
            stream.batch(batch, ends=True)
        else:
            for events in cuts(random, case.events):
                stream.batch(events)
                seen += check_stream(stream)
            stream.batch([], ends=True)
        check_stream(stream)
        panes, dropped = of_stream(stream)
        expected, expected_dropped = of_machine(case, mode)
        assert panes == expected, case
        assert sorted(dropped, key=repr) == sorted(expected_dropped, key=repr)
    assert tried > 40
    assert seen > 40


def arriving(key: Any, value: Any, seconds: int) -> AddElement:
    return AddElement(value, seconds * SECOND, 0, key=key)


WINDOWINGS = {
    "at the end": Windowing(FixedWindows(10), allowed_lateness=20),
    "early, discarding": Windowing(
        FixedWindows(10),
        AfterWatermark(early=AfterCount(6), late=AfterCount(1)),
        AccumulationMode.DISCARDING,
        allowed_lateness=20,
    ),
    "early, accumulating": Windowing(
        FixedWindows(10),
        AfterWatermark(early=AfterCount(6), late=AfterCount(1)),
        AccumulationMode.ACCUMULATING,
        allowed_lateness=20,
    ),
}


@pytest.mark.parametrize("how", WINDOWINGS)
def test_windows_in_columns_give_what_they_give_with_plain_lists(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    windowing = WINDOWINGS[how]
    found, seen = [], 0
    for limit in (FEW_BYTES, segments.SEAL_BYTES):
        monkeypatch.setattr(segments, "SEAL_BYTES", limit)
        random, watermark, given = Random(3), 0, []
        columns: Any = machine_of(windowing, None, False)
        stream = Stream(beam_machine(windowing), shards=2, columns=columns)
        for number in range(60):
            watermark += random.choice((0, 0, 1, 9))
            events = [
                arriving(f"k{random.randrange(3)}", number, max(0, watermark + random.randrange(-15, 9)))
                for _ in range(random.randrange(8))
            ]
            stream.batch([*events, AdvanceWatermark(watermark * SECOND, 0)])
            seen += check_stream(stream)
        stream.batch([], ends=True)
        assert check_stream(stream) == 0
        given = [stream.panes, stream.dropped, stream.outputs]
        found.append(given)
    assert found[0] == found[1]
    assert len(found[0][0]) > 20
    assert seen > 50


def beam_machine(windowing: Windowing) -> Any:
    return machine_of(windowing, None, False, may_be_by_window=False)


class Drawer(beam.DoFn):
    """Keeps numbers in a bag, and yields them at each number that five divides, which is then alone in the bag."""

    BAG = BagStateSpec("bag", FastPrimitivesCoder())

    def process(self, element: Any, bag: Any = beam.DoFn.StateParam(BAG)) -> Iterator[Any]:
        key, number = element
        bag.add(number)
        if number % 5 == 0:
            # The values that were read stay the same, though the bag is another one then.
            yield key, bag.read()
            bag.clear()
            bag.add(number)
            bag.add(-number)

    @on_window_expiration
    def end(self, key: Any = beam.DoFn.KeyParam, bag: Any = beam.DoFn.StateParam(BAG)) -> Iterator[Any]:
        yield key, bag.read()


def lists_of(kind: str) -> Any:
    """A step that keeps lists, and then another one, so that elements go from level to level."""
    match kind:
        case "bag":
            return beam.WindowInto(FixedWindows(20)) | "Draw" >> beam.ParDo(Drawer())
        case "columns":
            return beam.WindowInto(FixedWindows(20)) | "Group" >> beam.GroupByKey()
        case "accumulating":
            early = AfterWatermark(early=AfterCount(4))
            mode = AccumulationMode.ACCUMULATING
            return beam.WindowInto(Sessions(9), early, mode) | "Group" >> beam.GroupByKey()
    return beam.WindowInto(Sessions(9)) | "Group" >> beam.GroupByKey()


def second_of(events: Random, batch: int) -> int:
    """Two sessions begin in a micro-batch, and the next one may join them."""
    return batch // 2 * 20 + (events.choice((0, 11)) if batch % 2 == 0 else events.choice((5, 14)))


def lists(kind: str, random: Random | None, check: Callable[[ToyQuery], int] = check_query) -> list[Any]:
    source = beam.io.ReadFromText("/in/*.txt", validate=False)
    read = "Read" >> source.as_stream(lambda score: score[2], BoundedDisorder(4))
    pipeline = beam.Pipeline()
    pairs = pipeline | read | beam.MapTuple(lambda name, points, second: (name, points))
    ends = beam.WindowInto(FixedWindows(15), accumulation_mode=AccumulationMode.DISCARDING)
    halves = pairs | lists_of(kind) | beam.MapTuple(lambda key, own: (key > "k3", own))
    again = halves | "Ends" >> ends | "Again" >> beam.GroupByKey()
    shown = again | beam.MapTuple(lambda key, own: repr((key, sorted(map(sorted, own)))))
    _ = shown | WriteToMemory([])
    query, found, events, seen = ToyQuery(pipeline), [], Random(7), 0
    [sink] = [step.label for step in query.plan.sinks]
    for batch in range(14):
        scores = [
            (f"k{events.randrange(6)}", events.randrange(9), second_of(events, batch))
            for _ in range(events.randrange(40))
        ]
        found += query.batch({"Read": [scores]})[sink]
        seen += check(query)
        query = divided(query, random)
        seen += check(query)
    found += query.batch(commands=[("drain", "")])[sink]
    found += query.batch(commands=[("drain", "")])[sink]
    assert check(query) == 0
    if segments.SEAL_BYTES == FEW_BYTES and check is check_query:
        assert seen > 50
    return sorted(found)


@cache
def plain_lists(kind: str) -> list[Any]:
    """What comes of short lists, which are written whole."""
    return lists(kind, None)


@pytest.mark.parametrize("kind", ["columns", "sessions", "accumulating", "bag"])
def test_lists_of_moved_keys_give_what_plain_lists_give(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = plain_lists(kind)
    monkeypatch.setattr(segments, "SEAL_BYTES", FEW_BYTES)
    assert lists(kind, None) == whole
    law(lambda random: lists(kind, random), 4)


MUTANTS: dict[str, tuple[type, str, Any]] = {
    "segments of another time have the same numbers": (
        merged_headers,  # type: ignore[dict-item]
        "_notes",
        lambda headers, division: {},
    ),
    "nothing is removed": (Segments, "replace", lambda self, before, after: None),
    "what was read of a bag is not kept": (Segments, "lend", lambda self, snapshot: None),
    "a list that was merged loses its segments": (
        LongList,
        "extend",
        lambda self, values: self.parts[-1].extend(
            values.parts[-1] if isinstance(values, LongList) else values
        ),
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_law_finds_a_mutant(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {kind: plain_lists(kind) for kind in ("sessions", "bag")}
    monkeypatch.setattr(segments, "SEAL_BYTES", FEW_BYTES)
    where, name, broken = MUTANTS[mutant]
    monkeypatch.setattr(where, name, broken)

    def is_found(kind: str, seed: int) -> bool:
        try:
            return lists(kind, Random(seed)) != whole[kind]
        except (AssertionError, ValueError, RuntimeError, TypeError):
            return True

    assert any(is_found(kind, seed) for kind in whole for seed in range(4))


class CountingStore(DictStore):
    """Takes down how much is written, and which segments are read."""

    def __init__(self) -> None:
        super().__init__()
        self.written_bytes = 0
        self.read: list[int] = []

    def get_many(self, numbers: Sequence[int]) -> list[bytes | None]:
        self.read += [number for number in numbers if number < 0]
        return super().get_many(numbers)

    def put_many(self, items: Iterable[tuple[int, bytes | None]]) -> None:
        items = list(items)
        self.written_bytes += sum(len(content or b"") for _, content in items)
        super().put_many(items)


@pytest.mark.parametrize("windows", [FixedWindows(60), Sessions(60)], ids=["columns", "machine"])
def test_a_micro_batch_writes_what_is_new_and_reads_no_value_before_a_pane_has_them(windows: Any) -> None:
    windowing = Windowing(windows)
    machine = machine_of(windowing, None, False)
    columns: Any = None if isinstance(windows, Sessions) else machine
    stream = Stream(beam_machine(windowing), shards=1, columns=columns)
    store = stream.stores[0] = CountingStore()
    written = []
    for number in range(30):
        before_bytes = store.written_bytes
        stream.batch([arriving("hot", f"{number}-{each:096d}", 5) for each in range(400)])
        written.append(store.written_bytes - before_bytes)
    # A micro-batch brings 40,000 bytes, and the list has 1,200,000 in the end.
    assert sum(written) < 3 * 30 * 400 * 100
    assert max(written[-4:]) < 110_000
    assert store.read == []
    stream.batch([AdvanceWatermark(200 * SECOND, 0)])
    [(_, _, values, *_)] = stream.panes
    assert values == [f"{number}-{each:096d}" for number in range(30) for each in range(400)]
    assert check_stream(stream) == 0


def test_a_long_list_is_whole_in_the_table_of_state(few_bytes: None) -> None:
    for windows in (FixedWindows(60), Sessions(60)):
        windowing = Windowing(windows)
        columns: Any = None if isinstance(windows, Sessions) else machine_of(windowing, None, False)
        stream = Stream(beam_machine(windowing), shards=1, columns=columns)
        stream.batch([arriving("hot", number, 5) for number in range(50)])
        [store] = stream.stores
        kept = {number: content for number, content in store.pages.items() if number < 0}
        assert len(kept) == 1
        pages = [page for number, page in store.pages.items() if number >= 0]
        [row] = [row for page in pages for row in rows_of_page(GROUPING, page, 1, False, segments=kept)]
        assert (row.key, row.value) == ("hot", [*range(50)])
        with pytest.raises(ValueError, match="lacks a part, of 50 values"):
            [*rows_of_page(GROUPING, pages[0], 1, False)]
