"""A query whose state is divided again between two micro-batches has the same results as undivided; without Spark."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pytest

import penstock as beam
from penstock.io import WriteToMemory
from penstock.io.watermarks import BoundedDisorder
from penstock.pvalue import AsList, AsSingleton
from penstock.relations.changelog import Changelog
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterProcessingTime, AfterWatermark
from penstock.transforms.window import FixedWindows, IntervalWindow, Sessions
from penstock_spark.stream.resharding import merged_headers, moved_pages
from penstock_spark.stream.resharding.moved_pages import Assembly, Piece
from penstock_spark.stream.state.header import Header
from penstock_spark.stream.state.window_pages import WindowPage, page_of, store_window
from penstock_spark.worker.batch import Batch
from penstock_spark.worker.messages import LogicalTime, Message, Part
from tests.shards import test_order_in_ticks as ticks
from tests.shards import test_splittable_streams as restrictions
from tests.shards import test_waiting_state as waiting_state
from tests.shards import toy_query
from tests.shards.shard_streams import DictStore
from tests.shards.toy_query import ToyQuery
from tests.shards.waiting_streams import MINUTES, SECOND, at, built, streams

COUNTS = (1, 2, 3, 5)


def divided(query: ToyQuery, random: Random | None) -> ToyQuery:
    """Divides the state again, before some micro-batches."""
    return query if random is None or random.random() < 0.4 else query.divided(random.choice(COUNTS))


def played(query: ToyQuery, random: Random | None) -> list[Any]:
    """The results for a recorded input."""
    found = []
    for _ in range(query.timeline.batches):
        found += [element for own in query.batch().values() for element in own]
        query = divided(query, random)
    return sorted(map(repr, found))


@pytest.fixture(params=[3, pytest.param(60, marks=pytest.mark.soak)], ids=["few", "many"])
def seeds(request: pytest.FixtureRequest) -> int:
    """In how many ways the state is divided."""
    return int(request.param)


def law(given: Callable[[Random | None], list[Any]], seeds: int) -> None:
    whole = given(None)
    assert len(whole) > 4
    for seed in range(seeds):
        assert given(Random(seed)) == whole, seed


@pytest.mark.parametrize(
    "without", [(), ("early_combining", "window_columns")], ids=["as it is", "one by one"]
)
@pytest.mark.parametrize("how", [how for how in ticks.WAYS if not how.startswith("late")])
def test_a_recorded_log_whose_last_tick_waits_in_the_headers(
    seeds: int, how: str, without: tuple[str, ...]
) -> None:
    law(lambda random: ticked(how, random, without), seeds)


def ticked(how: str, random: Random | None, without: tuple[str, ...]) -> list[Any]:
    pipeline = beam.Pipeline()
    _ = ticks.windowed(pipeline, how) | beam.Map(repr) | WriteToMemory([])
    query, found = ToyQuery(pipeline, without=without), []
    [sink] = [step.label for step in query.plan.sinks]
    for file in ticks.FILES:
        read: dict[str, Any] = {"Read": [[piece] for piece in ticks.pieces() if piece.place[0] == file]}
        if how == "waiting" and file == ticks.FILES[2]:
            read["Sides"] = [[ticks.Placed((ticks.FILES[0], 0), [("side", "", 3, 4)])]]
        found += query.batch(read)[sink]
        query = divided(query, random)
    return sorted(found + query.batch(commands=[("drain", "")])[sink])


def test_what_waits_from_two_micro_batches_of_one_task_is_divided() -> None:
    """A tick that continues waits twice, and a task has the same name and numbers in each micro-batch."""
    tick = LogicalTime(5, 5)
    header = Header(
        pending=[
            Message((0, 1), timeline=[tick], parts={"Group": [Part(tick, [b"k"], Batch([value]))]})
            for value in (1, 2)
        ]
    )
    nothing: frozenset[str] = frozenset()
    group = frozenset({"Group"})
    division = merged_headers.Resharding(1, 2, group, nothing, nothing, group, nothing, nothing)
    found = [
        value
        for new in merged_headers.merged_headers([header], division)
        for message in new.pending
        for part in message.parts.get("Group", ())
        for value in part.batch.values
    ]
    assert found == [1, 2]


def windows_of(kind: str) -> Any:
    early = AfterWatermark(early=AfterCount(3), late=AfterCount(1))
    match kind:
        case "columns":
            return beam.WindowInto(FixedWindows(20), allowed_lateness=30)
        case "panes":
            return beam.WindowInto(
                FixedWindows(20), early, AccumulationMode.ACCUMULATING, allowed_lateness=30
            )
        case "retractions":
            mode = AccumulationMode.ACCUMULATING_AND_RETRACTING
            return beam.WindowInto(FixedWindows(20), early, mode, allowed_lateness=30)
        case "clock":
            trigger = AfterWatermark(early=AfterProcessingTime(2), late=AfterCount(1))
            return beam.WindowInto(
                FixedWindows(20), trigger, AccumulationMode.DISCARDING, allowed_lateness=30
            )
    return beam.WindowInto(Sessions(9), allowed_lateness=30)


def live(kind: str, mode: str, random: Random | None) -> list[Any]:
    """Two groupings in a row over a live stream, whose second one no order of keys can change."""
    source = beam.io.ReadFromText("/in/*.txt", validate=False)
    read = "Read" >> source.as_stream(lambda score: score[2], BoundedDisorder(4))
    pipeline = beam.Pipeline()
    pairs = pipeline | read | beam.MapTuple(lambda name, points, second: (Key(name), points))
    sums = pairs | windows_of(kind) | "Sums" >> beam.CombinePerKey(sum)
    parity = sums | beam.MapTuple(lambda key, total: (key.name < "k3", total))
    ends = beam.WindowInto(FixedWindows(40), allowed_lateness=60)
    # With retractions, a retracted value is subtracted.
    again = parity | "Ends" >> ends | "Again" >> beam.CombinePerKey(sum)
    _ = again | Changelog() | beam.Map(repr) | WriteToMemory([])
    query, found, events = ToyQuery(pipeline, mode), [], Random(7)
    [sink] = [step.label for step in query.plan.sinks]
    for batch in range(12):
        scores = [
            (f"k{events.randrange(6)}", events.randrange(9), max(0, batch * 8 + events.randrange(-20, 8)))
            for _ in range(events.randrange(9))
        ]
        found += query.batch({"Read": [scores[:4], scores[4:]]}, batch * SECOND)[sink]
        query = divided(query, random)
    # Elements that no window takes any more are counted the same.
    dropped = query.counted("elements_dropped_as_late")
    return [*sorted(found + query.batch(commands=[("drain", "")], clock_micros=13 * SECOND)[sink]), dropped]


class Key(NamedTuple):
    """A key whose class is not in its name."""

    name: str


@pytest.mark.parametrize("mode", ["streaming", "micro_batch"])
@pytest.mark.parametrize("kind", ["columns", "panes", "retractions", "clock", "sessions"])
def test_two_groupings_in_a_row_of_a_live_stream(seeds: int, kind: str, mode: str) -> None:
    law(lambda random: live(kind, mode, random), seeds)


def waited() -> Any:
    events: list[Any] = []
    for number in range(12):
        events += [("main", at(number * 11, *(f"{number}-{each}" for each in range(5)))), None]
        if number % 4 == 2:
            events += [("side", at(number * 11, number)), None, ("side", number * 11), ("main", number * 9)]
    return streams(*events)


@pytest.mark.parametrize("mode", ["streaming", "micro_batch"])
def test_elements_that_wait_for_a_side_input(seeds: int, mode: str) -> None:
    law(lambda random: played(ToyQuery(built(waited(), AsList, MINUTES, MINUTES), mode), random), seeds)


@pytest.mark.parametrize("mode", ["streaming", "micro_batch"])
def test_elements_with_keys_that_wait_for_a_side_input(seeds: int, mode: str) -> None:
    def given(random: Random | None) -> list[Any]:
        pipeline = beam.Pipeline()
        both = pipeline | waited()
        keyed = both["main"] | beam.Map(lambda text: (Key(text[-1]), int(text.partition("-")[0])))
        main = keyed | "MainWindows" >> beam.WindowInto(MINUTES)
        side = both["side"] | "SideWindows" >> beam.WindowInto(MINUTES)
        best = side | beam.CombineGlobally(sum).without_defaults()
        weighed = beam.ParDo(waiting_state.Weighed(), AsSingleton(best, 1))
        _ = main | "Weigh" >> weighed | WriteToMemory([])
        return played(ToyQuery(pipeline, mode), random)

    law(given, seeds)


def test_restrictions_in_work(seeds: int) -> None:
    def given(random: Random | None) -> list[Any]:
        restrictions.LOGS.clear()
        query, found = restrictions.query_of(beam.ParDo(restrictions.ReadLog())), []
        names = [f"log{number}" for number in range(5)]
        for batch in range(8):
            for number, name in enumerate(names):
                restrictions.LOGS.setdefault(name, []).append(batch * 10 + number + 1)
            read = {"Read": [names]} if batch == 0 else {}
            found += query.batch(read, batch * SECOND)["Write"]
            query = divided(query, random)
        return sorted(found)

    law(given, seeds)


def lossy(cut: Callable[..., Any]) -> Callable[..., Any]:
    """Cuts pages, and loses the first piece of each."""
    return lambda *arguments: list(cut(*arguments))[1:]


def test_a_piece_that_is_lost_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toy_query, "pieces", lossy(toy_query.pieces))
    with pytest.raises(AssertionError, match="keys are lost"):
        live("panes", "streaming", Random(0))


def key_of(key: tuple[str, int]) -> Callable[[Any], int]:
    return lambda header: header.sent.get(key, 0) + 10 * SECOND


MUTANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "the keys of a page stay together": lambda patch: patch.setattr(
        moved_pages, "shard_of", lambda name, shards: 0
    ),
    "elements that wait for their tick stay where they are": lambda patch: patch.setattr(
        merged_headers, "shard_of", lambda name, shards: 0
    ),
    "a new shard has told what one old shard has told": lambda patch: patch.setattr(
        merged_headers,
        "_merge_sent",
        lambda headers, _: {key: max(map(key_of(key), headers)) for key in headers[0].sent},
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_law_finds_a_mutant(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [live("panes", "streaming", None), ticked("each", None, ())]
    MUTANTS[mutant](monkeypatch)

    def is_found(seed: int) -> bool:
        try:
            given = [live("panes", "streaming", Random(seed)), ticked("each", Random(seed), ())]
        except AssertionError as error:
            # Two shards have had the same key, of which one is left.
            return str(error) == "keys are lost"
        return given != whole

    assert any(map(is_found, range(5)))


def test_a_window_that_is_open_again_has_still_ended_for_the_keys_of_pages_for_which_nothing_came() -> None:
    """Their page says that the window has ended, and the other page that it has not."""
    window, cell = IntervalWindow(0, 10), (1, 0, None, 1, 1)
    expires_micros = 17_000_000
    ended, again, new = ({f"s{name}{number}".encode() for number in range(20)} for name in "abc")
    untouched = WindowPage({window: store_window(dict.fromkeys(ended, cell), {}, expires_micros)})
    cells = dict.fromkeys(again | new, cell)
    touched = WindowPage({window: store_window(cells, {}, window.end_micros, again)})
    for pages in ((untouched, touched), (touched, untouched)):
        store = DictStore()
        assembly = Assembly(lambda _, store=store: store, 1)  # type: ignore[misc]
        for page in pages:
            assembly.add(Piece("Sums", page.encoded()[0]))
        assembly.finish({}, {})
        found = [page_of(encoded)[window] for encoded in store.pages.values()]
        opened = [stored.opened() for stored in found]
        assert {name for content in opened for name in content.cells} == ended | again | new
        assert {
            name
            for stored, content in zip(found, opened, strict=True)
            for name in (content.cells if stored.has_ended(window) else content.ended)
        } == ended | again
        assert any(content.ended & ended and content.cells.keys() & new for content in opened)
