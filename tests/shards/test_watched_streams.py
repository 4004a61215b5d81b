"""Shards count for the view of a run: the elements of each edge, and the windows that are open."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import penstock as beam
from penstock.coders import VarIntCoder
from penstock.io.each_batch import WriteToMemory
from penstock.io.watermarks import BoundedDisorder
from penstock.pvalue import AsDict, TaggedOutput
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark, Repeatedly
from penstock.transforms.userstate import BagStateSpec, TimerSpec, on_timer
from penstock.transforms.window import FixedWindows, GlobalWindows, Sessions, SlidingWindows
from penstock.windows.time_domain import TimeDomain
from penstock_spark.stream.shards.keys import state_of
from penstock_spark.stream.state.header import Header
from penstock_spark.stream.state.key_pages import keys_of
from penstock_spark.stream.state.page_index import PageNotes
from penstock_spark.stream.state.window_pages import is_by_window, page_of
from tests.shards.toy_query import ToyQuery

SECOND = 1_000_000
Score = tuple[str, int, int]


def read(pipeline: Any, label: str = "Read") -> Any:
    """Scores as (team, points, second); the toy query uses its own values for the lines."""
    stream = beam.io.ReadFromText(f"/{label}/*.txt", validate=False).as_stream(
        event_time=lambda score: score[2], watermark=BoundedDisorder(2)
    )
    return pipeline | label >> stream


def pair(score: Any) -> tuple[str, int]:
    return score[0], score[1]


def by_step(query: ToyQuery) -> dict[str, int]:
    """The number of elements of each output of a step, by label, and by tag if it has one."""
    return {
        step.label if output.tag is None else f"{step.label}.{output.tag}": query.elements[output.edge]
        for step in query.plan.graph.steps
        for output in step.outputs
        if output.edge in query.elements
    }


def test_steps_before_and_behind_groupings_are_counted_and_those_of_two_sources_together() -> None:
    pipeline = beam.Pipeline()
    both = (read(pipeline), read(pipeline, "Other")) | "Both" >> beam.Flatten()
    split = both | "Split" >> beam.FlatMap(
        lambda score: [TaggedOutput("bad", score)] if score[1] < 0 else [score, score]
    ).with_outputs("bad", main="good")
    pairs = split.good | "Pair" >> beam.Map(pair) | "In" >> beam.WindowInto(FixedWindows(10))
    sums, late = pairs | "Sum" >> beam.CombinePerKey(sum).with_late_data()
    _ = sums | "Show" >> beam.Map(str) | "Sums" >> WriteToMemory([])
    _ = late | "Late" >> WriteToMemory([])
    _ = split.bad | "Bad" >> WriteToMemory([])
    query = ToyQuery(pipeline, watched=True)
    assert by_step(query) == {}
    query.batch({"Read": [[("a", 1, 1), ("a", -1, 1)], [("b", 2, 1)]], "Other": [[("a", 3, 2)]]})
    query.batch({"Read": [[("a", 1, 31)]], "Other": [[("a", 1, 31)]]})
    query.batch({"Read": [[("a", 1, 3)]], "Other": [[]]})
    assert by_step(query) == {
        "Read": 5,
        "Other": 2,
        "Both": 7,
        "Split": 12,
        "Split.bad": 1,
        "Pair": 12,
        "In": 12,
        # Two keys in the first window; both copies of the last score come too late.
        "Sum": 2,
        "Sum.late": 2,
        "Show": 2,
    }


def test_a_stream_without_a_view_counts_only_what_its_sinks_get() -> None:
    pipeline = beam.Pipeline()
    pairs = read(pipeline) | beam.Map(pair)
    _ = pairs | beam.Map(str) | beam.Filter(bool) | WriteToMemory([])
    query = ToyQuery(pipeline)
    query.batch({"Read": [[("a", 1, 1), ("b", 1, 1)]]})
    assert [*query.elements.values()] == [2]


def test_elements_that_wait_for_a_side_input_are_counted_when_they_come_and_when_they_leave() -> None:
    pipeline = beam.Pipeline()
    windows = beam.WindowInto(FixedWindows(10))
    scores = read(pipeline) | "Pair" >> beam.Map(pair) | windows
    names = read(pipeline, "Names") | "Name" >> beam.Map(pair) | "In" >> windows
    named = scores | "Join" >> beam.Map(lambda one, of: (one, of.get(one[0])), of=AsDict(names))
    _ = named | "Write" >> WriteToMemory([])
    query = ToyQuery(pipeline, watched=True)
    query.batch({"Read": [[("a", 1, 1), ("b", 2, 2)]], "Names": [[("a", 7, 1)]]})
    assert (by_step(query)["Pair"], by_step(query)["Join"]) == (2, 0)
    query.batch({"Read": [[("a", 1, 25)]], "Names": [[("a", 8, 25)]]})
    assert (by_step(query)["Pair"], by_step(query)["Join"]) == (3, 2)


class Held(beam.DoFn):
    """Holds the values of a key until the end of their window."""

    HELD = BagStateSpec("held", VarIntCoder())
    END = TimerSpec("end", TimeDomain.WATERMARK)

    def process(
        self,
        element,
        window=beam.DoFn.WindowParam,
        held=beam.DoFn.StateParam(HELD),
        end=beam.DoFn.TimerParam(END),
    ):
        held.add(element[1])
        end.set(window.end)

    @on_timer(END)
    def give(self, held=beam.DoFn.StateParam(HELD)):
        yield sum(held.read())
        held.clear()


EARLY_AND_LATE = AfterWatermark(early=AfterCount(2), late=AfterCount(1))
GROUPINGS: dict[str, Any] = {
    "columns": (beam.WindowInto(FixedWindows(10)), beam.CombinePerKey(sum)),
    "late columns": (
        beam.WindowInto(FixedWindows(10), EARLY_AND_LATE, AccumulationMode.DISCARDING, allowed_lateness=30),
        beam.CombinePerKey(sum),
    ),
    "several windows": (beam.WindowInto(SlidingWindows(20, 5)), beam.GroupByKey()),
    "sessions": (beam.WindowInto(Sessions(4)), beam.CombinePerKey(sum)),
    "one window": (
        beam.WindowInto(GlobalWindows(), Repeatedly(AfterCount(3)), AccumulationMode.ACCUMULATING),
        beam.GroupByKey(),
    ),
    "a DoFn": (beam.WindowInto(FixedWindows(10)), beam.ParDo(Held())),
}


def stream_of(name: str) -> beam.Pipeline:
    pipeline = beam.Pipeline()
    windows, grouping = GROUPINGS[name]
    pairs = read(pipeline) | beam.Map(pair) | windows
    _ = pairs | "Group" >> grouping | WriteToMemory([])
    return pipeline


def scores(seed: int, batches: int) -> Iterator[list[Score]]:
    """Scores for each micro-batch: most in order, and some that come late."""
    chance = random.Random(seed)
    for number in range(batches):
        second = 3 * number
        yield [
            (
                f"team {chance.randrange(40)}",
                1,
                max(0, second - chance.choice((0, 1, 2, 9, 40)) * (chance.random() < 0.3)),
            )
            for _ in range(chance.randrange(12))
        ]


def windows_in(pages: list[bytes]) -> int:
    """The windows in pages, counted for each key, found by a walk through all keys."""
    found = 0
    for page in pages:
        if is_by_window(page):
            found += sum(column.size for column in page_of(page).values())
        else:
            found += sum(len(state_of(None, key.state).windows) for _, key in keys_of(page))
    return found


@pytest.mark.parametrize("name", GROUPINGS)
@pytest.mark.parametrize("mode", ["streaming", "micro_batch"])
def test_the_open_windows_that_are_told_are_those_that_a_walk_through_all_pages_finds(
    name: str, mode: str
) -> None:
    query = ToyQuery(stream_of(name), mode)
    told = []
    for batch in scores(3, 30):
        query.batch({"Read": [batch]})
        told.append(query.open_windows["Group"])
        assert told[-1] == windows_in(query.pages.get("Group", []))
    assert max(count or 0 for count in told) > 10
    query.batch({"Read": [[("team 1", 1, 10_000)]]})
    query.batch(commands=[("drain", "")])
    assert query.open_windows["Group"] == windows_in(query.pages["Group"])


@pytest.mark.parametrize("name", GROUPINGS)
def test_after_a_move_to_other_shards_open_windows_are_right_or_unknown_and_right_once_all_have_gone(
    name: str,
) -> None:
    query = ToyQuery(stream_of(name))
    batches = list(scores(5, 12))
    for batch in batches[:8]:
        query.batch({"Read": [batch]})
    moved = query.divided(3)
    for batch in batches[8:]:
        moved.batch({"Read": [batch]})
        told = moved.open_windows["Group"]
        assert told in (None, windows_in(moved.pages["Group"]))
    # Pages of columns say themselves how many windows they have.
    assert (moved.open_windows["Group"] is None) is not is_by_window(moved.pages["Group"][0])
    moved.batch(commands=[("drain", "")])
    if name != "one window":
        assert moved.open_windows["Group"] == windows_in(moved.pages["Group"]) == 0


def test_notes_of_a_version_that_did_not_count_windows_say_that_they_are_unknown() -> None:
    header = Header(notes={"Group": PageNotes()})
    header.notes["Group"].add_pages(4)
    header.notes["Group"].keys = 3
    assert Header.decoded(header.encoded()).notes["Group"].windows == 0
    del header.notes["Group"].__dict__["windows"]
    before = Header.decoded(header.encoded()).notes["Group"]
    assert "windows" not in vars(before)
    assert before.windows is None
    before.count_windows(2)
    assert before.windows is None


def test_the_walk_of_these_tests_counts_a_window_for_each_of_its_keys() -> None:
    query = ToyQuery(stream_of("columns"))
    query.batch({"Read": [[("a", 1, 1), ("b", 1, 1), ("b", 1, 11)]]})
    assert all(map(is_by_window, query.pages["Group"]))
    assert windows_in(query.pages["Group"]) == query.open_windows["Group"] == 3
