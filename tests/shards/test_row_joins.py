"""Joins of rows in a stream: the listings of Streaming Systems, chapter 9, change by change and in any cuts."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import penstock as beam
from penstock.relations import joins
from penstock.relations.joins import JoinRows
from penstock.transforms.trigger import AccumulationMode, AfterCount, Repeatedly
from penstock.transforms.window import FixedWindows
from penstock.utils.windowed_value import ValueKind
from tests.shards.row_streams import DELETE, Come, batches_of, net_of, seconds, sides

CUTS = pytest.mark.parametrize("events_per_batch", [None, 1, 2, 5])
MODES = pytest.mark.parametrize("mode", ["streaming", "micro_batch"])


def script(text: str) -> list[Any]:
    """Lines of an arrival time, a key and a row; rows beginning with L are of the left side, a minus retracts."""
    events = []
    for line in text.strip().splitlines():
        at, key, row = line.split()
        kind = DELETE if row.startswith("-") else ValueKind.INSERT
        row = row.lstrip("-")
        events.append(Come("left" if row.startswith("L") else "right", key, row, seconds(at), kind))
    return events


ONE_TO_ONE = script("""
    12:01 2 R2
    12:02 1 L1
    12:03 3 L3
    12:04 3 R3
    12:05 4 R4
    12:06 2 L2
""")
UPDATED = [*ONE_TO_ONE, *script("12:07 3 -L3\n12:07 3 L3v2")]
MANY_TO_MANY = script("""
    12:01 1:1 L3
    12:02 0:1 R1
    12:03 1:2 R4A
    12:04 1:2 R4B
    12:05 1:2 L4
    12:06 2:1 R5
    12:07 1:0 L2
    12:08 2:1 L5B
    12:09 2:1 L5A
    12:10 2:2 L6B
    12:11 2:2 R6A
    12:12 2:2 L6A
    12:13 2:2 R6B
    12:14 1:1 R3
""")


def shown(change: Any) -> str:
    """A change as the book has it, on one line."""
    kind, (_, row) = change
    text = row if isinstance(row, str) else ",".join(part or "-" for part in row)
    return f"{text} undo" if kind.is_retraction else text


def listing(events: list[Any], kind: str, windowfn: Any = None, **options: Any) -> list[str]:
    """The changes of a join with an event a micro-batch, each with its minute."""
    pipeline = beam.Pipeline()
    both = sides(pipeline, events, *([] if windowfn is None else [windowfn]))
    # The first event of a recorded stream is that it begins.
    [_, *batches] = batches_of(both | JoinRows(kind, **options))
    found = [
        f"{shown(change)} {_minute(event)}"
        for event, changes in zip(events, batches, strict=False)
        for change in changes
    ]
    return found + [f"{shown(change)} end" for changes in batches[len(events) :] for change in changes]


def _minute(event: Any) -> str:
    at = int(event.at if isinstance(event, Come) else event)
    return f"{at // 3_600}:{at // 60 % 60:02}"


@pytest.mark.parametrize(
    ("scenario", "kind", "events", "expected"),
    [
        (
            "S9-01",
            "full",
            ONE_TO_ONE,
            "-,R2 12:01|L1,- 12:02|L3,- 12:03|L3,- undo 12:04|L3,R3 12:04|-,R4 12:05|-,R2 undo 12:06|L2,R2 12:06",
        ),
        ("S9-02", "left", ONE_TO_ONE, "L1,- 12:02|L3,- 12:03|L3,- undo 12:04|L3,R3 12:04|L2,R2 12:06"),
        ("S9-03", "right", ONE_TO_ONE, "-,R2 12:01|L3,R3 12:04|-,R4 12:05|-,R2 undo 12:06|L2,R2 12:06"),
        ("S9-04", "inner", ONE_TO_ONE, "L3,R3 12:04|L2,R2 12:06"),
        ("S9-05", "inner", UPDATED, "L3,R3 12:04|L2,R2 12:06|L3,R3 undo 12:07|L3v2,R3 12:07"),
        (
            "S9-06",
            "anti",
            ONE_TO_ONE,
            "-,R2 12:01|L1,- 12:02|L3,- 12:03|L3,- undo 12:04|-,R4 12:05|-,R2 undo 12:06",
        ),
        ("the left half of S9-06", "left_anti", ONE_TO_ONE, "L1 12:02|L3 12:03|L3 undo 12:04"),
        ("S9-06b", "semi", ONE_TO_ONE, "L3 12:04|L2 12:06"),
        (
            "S9-07",
            "full",
            MANY_TO_MANY,
            "L3,- 12:01|-,R1 12:02|-,R4A 12:03|-,R4B 12:04|-,R4A undo 12:05|-,R4B undo 12:05|L4,R4A 12:05|L4,R4B 12:05|"
            "-,R5 12:06|L2,- 12:07|-,R5 undo 12:08|L5B,R5 12:08|L5A,R5 12:09|L6B,- 12:10|L6B,- undo 12:11|"
            # The order of the two rows at 12:13 is free; the left rows come in the order of their arrival.
            "L6B,R6A 12:11|L6A,R6A 12:12|L6B,R6B 12:13|L6A,R6B 12:13|L3,- undo 12:14|L3,R3 12:14",
        ),
        ("S9-09", "semi", MANY_TO_MANY, "L4 12:05|L5B 12:08|L5A 12:09|L6B 12:11|L6A 12:12|L3 12:14"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("S9") else "",
)
def test_the_listings_of_the_book(scenario, kind, events, expected):
    assert listing(events, kind) == expected.split("|")


def test_an_inner_join_projected_to_its_left_side_undoes_nothing():
    # S9-08.
    pipeline = beam.Pipeline()
    joined = sides(pipeline, MANY_TO_MANY) | JoinRows("inner") | beam.MapTuple(lambda key, row: (key, row[0]))
    changes = [change for batch in batches_of(joined) for change in batch]
    assert [shown(change) for change in changes] == [
        "L4",
        "L4",
        "L5B",
        "L5A",
        "L6B",
        "L6A",
        "L6B",
        "L6A",
        "L3",
    ]


WINDOWS = FixedWindows(300)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("full", "-,R2 12:01|L1,- 12:02|L3,- 12:03|L3,- undo 12:04|L3,R3 12:04|-,R4 12:05|L2,- 12:06"),
        ("left", "L1,- 12:02|L3,- 12:03|L3,- undo 12:04|L3,R3 12:04|L2,- 12:06"),
        ("right", "-,R2 12:01|L3,R3 12:04|-,R4 12:05"),
        ("inner", "L3,R3 12:04"),
        ("anti", "-,R2 12:01|L1,- 12:02|L3,- 12:03|L3,- undo 12:04|-,R4 12:05|L2,- 12:06"),
        ("semi", "L3 12:04"),
    ],
)
def test_rows_of_different_windows_do_not_match(kind, expected):
    # S9-10.
    assert listing(ONE_TO_ONE, kind, WINDOWS) == expected.split("|")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("full", "L3,R3 12:04|L1,- 12:05|-,R2 12:05|-,R4 12:10|L2,- 12:10"),
        ("left", "L3,R3 12:04|L1,- 12:05|L2,- 12:10"),
        ("anti", "L1,- 12:05|-,R2 12:05|-,R4 12:10|L2,- 12:10"),
        ("left_anti", "L1 12:05|L2 12:10"),
    ],
)
def test_rows_without_a_match_may_wait_for_the_end_of_their_window(kind, expected):
    # S9-10, with the watermark between the two windows and after them.
    events = [*ONE_TO_ONE[:4], seconds("12:05"), *ONE_TO_ONE[4:], seconds("12:10")]
    found = listing(events, kind, WINDOWS, unjoined="at_end")
    # Several keys end at one moment, in no order.
    assert sorted(found) == sorted(expected.split("|"))


def test_a_row_that_is_taken_back_takes_one_copy_of_its_own_time_out():
    events = [Come("left", "k", "L", 1), Come("left", "k", "L", 2), Come("right", "k", "R", 0)]
    events.append(Come("left", "k", "L", 1, DELETE))
    pipeline = beam.Pipeline()
    timed = (
        sides(pipeline, events)
        | JoinRows("inner")
        | beam.Map(lambda row, at=beam.DoFn.TimestampParam: (row, float(at)))
    )
    [*_, last] = [change for batch in batches_of(timed) for change in batch]
    assert last == (DELETE, (("k", ("L", "R")), 1.0))


def test_a_row_is_taken_back_even_if_its_time_is_another_now():
    events = [Come("left", "k", "L", 1), Come("right", "k", "R", 0), Come("left", "k", "L", 5, DELETE)]
    [*_, last] = [batch for batch in batches_of(sides(beam.Pipeline(), events) | JoinRows("full")) if batch]
    assert [shown(change) for change in last] == ["L,R undo", "-,R"]


def test_a_row_that_replaces_another_says_so():
    pipeline = beam.Pipeline()
    [_, *changes] = batches_of(sides(pipeline, UPDATED) | JoinRows("full"))
    kinds = [[kind.name for kind, _ in batch] for batch in changes]
    update = ["UPDATE_BEFORE", "UPDATE_AFTER"]
    assert kinds[3] == kinds[5] == kinds[6] == kinds[7] == update
    assert kinds[0] == ["INSERT"]
    [_, *changes] = batches_of(sides(beam.Pipeline(), UPDATED) | JoinRows("inner"))
    assert [kind.name for kind, _ in changes[6]] == ["DELETE"]


def test_a_count_of_the_result_is_right_after_every_micro_batch():
    changing = beam.SetTrigger(Repeatedly(AfterCount(1)), AccumulationMode.ACCUMULATING_AND_RETRACTING)
    counts = (
        sides(beam.Pipeline(), UPDATED)
        | JoinRows("full")
        | beam.Map(lambda _: ("all", 1))
        | changing
        | beam.CombinePerKey(sum)
    )
    changes: list[Any] = []
    found = []
    for batch in batches_of(counts, 1, "micro_batch"):
        changes += batch
        found.append(next((total for _, total in net_of(changes)), 0))
    assert found[: len(UPDATED) + 1] == [0, 1, 2, 3, 3, 4, 4, 4, 4]


def sql(kind: str, lefts: Counter[Any], rights: Counter[Any]) -> Counter[Any]:
    """The join as SQL has it, of bags of (key, row)."""
    joined: Counter[Any] = Counter()
    for (key, left), count in lefts.items():
        matches = {row: times for (other, row), times in rights.items() if other == key}
        for right, times in matches.items():
            if kind in ("full", "left", "right", "inner"):
                joined[key, (left, right)] += count * times
        if (matches and kind == "semi") or (not matches and kind == "left_anti"):
            joined[key, left] += count
        if not matches and kind in ("full", "left", "anti"):
            joined[key, (left, None)] += count
    for (key, right), count in rights.items():
        if kind in ("full", "right", "anti") and all(other != key for other, _ in lefts):
            joined[key, (None, right)] += count
    return joined


def check_net(
    kind: str, events: list[Any], events_per_batch: int | None, mode: str, unjoined: str = "at_once"
) -> None:
    bags: dict[str, Counter[Any]] = {"left": Counter(), "right": Counter()}
    for event in events:
        bags[event.side][event.key, event.row] += -1 if event.kind.is_retraction else 1
    batches = batches_of(sides(beam.Pipeline(), events) | JoinRows(kind, unjoined), events_per_batch, mode)
    net = net_of(change for batch in batches for change in batch)
    assert net == sql(kind, +bags["left"], +bags["right"])


@CUTS
@MODES
@pytest.mark.parametrize("kind", joins._KINDS)
def test_what_is_not_undone_is_the_table_in_any_cuts(kind, mode, events_per_batch):
    check_net(kind, [*MANY_TO_MANY, *UPDATED], events_per_batch, mode)


@st.composite
def scripts(draw: Any) -> list[Any]:
    """Rows that are inserted and retracted, in any order in which there is something to retract."""
    standing: list[Come] = []
    events = []
    for number in range(draw(st.integers(0, 12))):
        if standing and draw(st.booleans()):
            gone = standing.pop(draw(st.integers(0, len(standing) - 1)))
            events.append(gone._replace(kind=DELETE))
            continue
        side, key = draw(st.sampled_from(["left", "right"])), draw(st.sampled_from("ab"))
        come = Come(side, key, draw(st.integers(1, 2)), number)
        standing.append(come)
        events.append(come)
    return events


def law(events: list[Any], kind: str, events_per_batch: int) -> None:
    check_net(kind, events, events_per_batch, "streaming")
    if any(joins._KINDS[kind].unmatched):
        check_net(kind, events, events_per_batch, "streaming", unjoined="at_end")


CASES = (scripts(), st.sampled_from(list(joins._KINDS)), st.sampled_from([1, 3, 100]))


@pytest.mark.parametrize("cases", [60, pytest.param(150, marks=pytest.mark.soak)])
def test_what_is_left_of_the_result_is_the_join_of_what_is_left(cases):
    settings(max_examples=cases)(given(*CASES)(law))()


class NotAlone:
    """A side on which there are rows."""

    @staticmethod
    def is_empty():
        return False


MUTANTS = {
    "a row that is alone is not noticed": (
        joins,
        "_effect",
        lambda real: lambda kind, side, timed, own, other: real(kind, side, timed, NotAlone, other),
    ),
    "copies are one row": (
        joins,
        "_rows_in",
        lambda real: lambda counts: iter({timed[0]: timed for timed in real(counts)}.values()),
    ),
    "a retracted row stays": (joins, "_take", lambda real: lambda counts, timed, form: timed),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_law_finds_what_is_wrong(name, monkeypatch):
    owner, attribute, make = MUTANTS[name]
    monkeypatch.setattr(owner, attribute, make(getattr(owner, attribute)))
    find = settings(max_examples=150, database=None, phases=[Phase.generate], report_multiple_bugs=False)(
        given(*CASES)(law)
    )
    with pytest.raises(AssertionError):
        find()
