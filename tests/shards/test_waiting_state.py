"""DoFns with state and timers whose elements wait for side inputs: in any cuts, without Spark."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

import penstock as beam
from penstock.io import WriteToMemory
from penstock.pvalue import AsList, AsSingleton
from penstock.transforms.timeutil import TimeDomain
from penstock.transforms.userstate import CombiningValueStateSpec, TimerSpec, on_timer
from penstock.transforms.window import GlobalWindows
from tests.shards.toy_query import ToyQuery
from tests.shards.waiting_streams import MINUTES, SECOND, at, streams

CUTS = pytest.mark.parametrize("events_per_batch", [None, 1, 2, 3])
MODES = pytest.mark.parametrize("mode", ["streaming", "micro_batch"])


class Player(NamedTuple):
    """A key whose class is not in its name."""

    name: str


class Weighed(beam.DoFn):
    """Sums up the weights of a key's elements, and tells the sum at the end of the window."""

    TOTAL = CombiningValueStateSpec("total", sum)
    END = TimerSpec("end", TimeDomain.WATERMARK)

    def process(
        self,
        element: Any,
        weight: Any,
        window: Any = beam.DoFn.WindowParam,
        total: Any = beam.DoFn.StateParam(TOTAL),
        end: Any = beam.DoFn.TimerParam(END),
    ) -> Any:
        key, value = element
        total.add(value * weight)
        end.set(min(window.end, 200))
        yield key, "so far", total.read()

    @on_timer(END)
    def close(self, key: Any = beam.DoFn.KeyParam, total: Any = beam.DoFn.StateParam(TOTAL)) -> Any:
        yield key, "in all", total.read()


def pipeline_of(stream: Any, windows: Any = MINUTES) -> Any:
    pipeline = beam.Pipeline()
    both = pipeline | stream
    main = both["main"] | "MainWindows" >> beam.WindowInto(windows)
    side = both["side"] | "SideWindows" >> beam.WindowInto(windows)
    _ = main | "Weigh" >> beam.ParDo(Weighed(), AsSingleton(side)) | WriteToMemory([])
    return pipeline


def found_in(query: ToyQuery) -> list[Any]:
    batches = [query.batch() for _ in range(query.timeline.batches)]
    return [element for batch in batches for elements in batch.values() for element in elements]


@CUTS
@pytest.mark.parametrize("shards", [1, 3])
def test_timers_do_not_fire_before_what_waits(events_per_batch, shards):
    stream = streams(
        ("main", at(10, ("a", 1), ("b", 2))),
        # The window is over for the main input, and yet nothing is lost.
        ("main", 60),
        ("main", at(70, ("a", 5))),
        ("main", 120),
        ("side", at(5, 10)),
        ("side", 60),
        ("side", at(65, 100)),
        ("side", 120),
    )
    found = found_in(ToyQuery(pipeline_of(stream), shards=shards, events_per_batch=events_per_batch))
    assert sorted(found) == [
        ("a", "in all", 10),
        ("a", "in all", 500),
        ("a", "so far", 10),
        ("a", "so far", 500),
        ("b", "in all", 20),
        ("b", "so far", 20),
    ]
    own = [element for element in found if element[0] == "a"]
    assert [told for _, told, _ in own] == ["so far", "in all", "so far", "in all"]


def test_what_waits_is_told_and_holds_the_watermark_of_input_and_output():
    stream = streams(
        ("main", at(10, (None, 1))), ("main", 500), None, ("side", at(5, 10)), ("side", 60), None
    )
    query = ToyQuery(pipeline_of(stream))
    assert not any(query.batch().values())
    assert query.waiting == {"Weigh": {"SideWindows/singleton": 1}}
    assert query.watermarks["Weigh"] == (10 * SECOND, 10 * SECOND)
    assert [*query.batch().values()] == [[(None, "so far", 10), (None, "in all", 10)]]
    assert query.watermarks["Weigh"] == (500 * SECOND, 500 * SECOND)


@CUTS
def test_keys_that_their_names_do_not_tell_wait_too(events_per_batch):
    key = Player("amy")
    stream = streams(
        ("main", at(10, (key, 1))), ("side", at(5, 10)), ("side", 60), ("main", at(20, (key, 2)))
    )
    found = found_in(ToyQuery(pipeline_of(stream), events_per_batch=events_per_batch))
    assert found == [(key, "so far", 10), (key, "so far", 30), (key, "in all", 30)]


@CUTS
@MODES
def test_both_sides_in_the_global_window(events_per_batch, mode):
    stream = streams(("side", at(5, 10)), ("main", at(10, ("a", 1))), None, ("main", at(11, ("a", 2))), None)
    query = ToyQuery(pipeline_of(stream, GlobalWindows()), mode, events_per_batch=events_per_batch)
    assert sorted(found_in(query)) == [("a", "in all", 30), ("a", "so far", 10), ("a", "so far", 30)]


@CUTS
def test_late_elements_are_dropped_as_by_any_state(events_per_batch):
    stream = streams(
        ("side", at(5, 10)),
        ("side", 60),
        ("main", at(10, ("a", 1))),
        ("main", 60),
        ("main", at(20, ("a", 2))),
    )
    query = ToyQuery(pipeline_of(stream), events_per_batch=events_per_batch)
    assert found_in(query) == [("a", "so far", 10), ("a", "in all", 10)]
    assert query.counted("elements_dropped_as_late") == 1


def test_two_steps_of_one_level_wait_each_for_itself():
    pipeline = beam.Pipeline()
    both = pipeline | streams(
        ("main", at(10, ("a", 1))),
        ("side", at(5, 10)),
        ("side", 60),
        ("main", at(20, ("b", 2))),
        ("main", 60),
    )
    main = both["main"] | "MainWindows" >> beam.WindowInto(MINUTES)
    side = both["side"] | "SideWindows" >> beam.WindowInto(MINUTES)
    _ = main | "Weigh" >> beam.ParDo(Weighed(), AsSingleton(side)) | "First" >> WriteToMemory([])
    seen = main | "See" >> beam.Map(lambda pair, side: (pair[0], side), AsList(side))
    _ = seen | "Second" >> WriteToMemory([])
    query = ToyQuery(pipeline, events_per_batch=1)
    batches = [query.batch() for _ in range(query.timeline.batches)]
    assert sorted(pair for batch in batches for pair in batch["Second"]) == [("a", [10]), ("b", [10])]
    assert sorted(told for batch in batches for told in batch["First"]) == [
        *(("a", "in all", 10), ("a", "so far", 10), ("b", "in all", 20), ("b", "so far", 20))
    ]
