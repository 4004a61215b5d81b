"""Values that are valid until the next one, and joins with them: the listings of Streaming Systems, chapter 9."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import penstock as beam
from penstock.relations import validity
from penstock.relations.validity import Valid, ValidFrom, ValidityJoin
from penstock.utils.timestamp import MAX_TIMESTAMP, Timestamp
from tests.shards.row_streams import DELETE, Come, batches_of, net_of, seconds, sides

RATES = {
    "12:04:13": ("USD", 102, "12:00"),
    "12:05:18": ("Yen", 1, "12:01"),
    # The book has 12:00:30 in the input, and 12:00 in all results.
    "12:06:23": ("Euro", 114, "12:00"),
    "12:07:33": ("Euro", 119, "12:06"),
    "12:09:07": ("Euro", 116, "12:03"),
}
ORDERS = {
    "12:03:44": ("USD", 1, "12:03"),
    "12:05:07": ("Euro", 2, "12:02"),
    "12:08:00": ("Euro", 5, "12:05"),
    "12:09:33": ("Euro", 3, "12:08"),
    "12:10:11": ("Yen", 50, "12:07"),
    "12:10:59": ("USD", 5, "12:10"),
}


def arrivals(*currencies: str) -> dict[str, Come]:
    """Orders and rates of some currencies by the moment of their arrival."""
    both = [(at, "left", row) for at, row in ORDERS.items()] + [
        (at, "right", row) for at, row in RATES.items()
    ]
    return {
        at: Come(side, key, value, seconds(when))
        for at, side, (key, value, when) in sorted(both)
        if key in currencies
    }


def clock(moment: Timestamp) -> str:
    if moment == MAX_TIMESTAMP:
        return "inf"
    minutes = int(float(moment)) // 60
    return f"{minutes // 60}:{minutes % 60:02}"


def shown(change: Any) -> str:
    """A change as the book has it: order, rate and product, then the time of the rate."""
    kind, (_, row) = change
    order, rate = (None, row) if isinstance(row, Valid) else row
    window = f" [{clock(rate.start)},{clock(rate.end)})" if isinstance(rate, Valid) else ""
    rate = rate.value if isinstance(rate, Valid) else rate
    product = order * rate if order and rate else "-"
    return f"{order or '-'},{rate or '-'},{product}{window}{' undo' if kind.is_retraction else ''}"


def listing(result: Any, moments: list[str]) -> list[str]:
    # The first event of a recorded stream is that it begins.
    [_, *batches] = batches_of(result)
    return [
        f"{shown(change)} {moment}"
        for moment, changes in zip([*moments, "end", "end"], batches, strict=False)
        for change in changes
    ]


def test_the_time_of_a_value_shrinks_and_splits():
    # S9-11.
    events = {at: come for at, come in arrivals("Euro").items() if come.side == "right"}
    _, rates = sides(beam.Pipeline(), events.values())
    assert listing(rates | ValidFrom(), list(events)) == [
        "-,114,- [12:00,inf) 12:06:23",
        "-,114,- [12:00,inf) undo 12:07:33",
        "-,114,- [12:00,12:06) 12:07:33",
        "-,119,- [12:06,inf) 12:07:33",
        "-,114,- [12:00,12:06) undo 12:09:07",
        "-,114,- [12:00,12:03) 12:09:07",
        "-,116,- [12:03,12:06) 12:09:07",
    ]


def test_a_full_validity_join_with_the_times_of_the_values():
    # S9-13.
    events = arrivals("Euro")
    joined = sides(beam.Pipeline(), events.values()) | ValidityJoin("full", with_validity=True)
    assert listing(joined, list(events)) == [
        "2,-,- 12:05:07",
        "2,-,- undo 12:06:23",
        "2,114,228 [12:00,inf) 12:06:23",
        "2,114,228 [12:00,inf) undo 12:07:33",
        "2,114,228 [12:00,12:06) 12:07:33",
        "-,119,- [12:06,inf) 12:07:33",
        "5,114,570 [12:00,12:06) 12:08:00",
        "2,114,228 [12:00,12:06) undo 12:09:07",
        "5,114,570 [12:00,12:06) undo 12:09:07",
        "2,114,228 [12:00,12:03) 12:09:07",
        "5,116,580 [12:03,12:06) 12:09:07",
        "-,119,- [12:06,inf) undo 12:09:33",
        "3,119,357 [12:06,inf) 12:09:33",
    ]


def test_nothing_is_given_for_what_does_not_change():
    # S9-14.
    events = arrivals("Euro")
    joined = sides(beam.Pipeline(), events.values()) | ValidityJoin()
    assert listing(joined, list(events)) == [
        "2,114,228 12:06:23",
        "5,114,570 12:08:00",
        "5,114,570 undo 12:09:07",
        "5,116,580 12:09:07",
        "3,119,357 12:09:33",
    ]


def test_each_row_comes_once_when_the_watermark_has_passed_it():
    # S9-15; the watermark passes the time of each order when the book has its row.
    marks = {"12:08:52": "12:02:01", "12:10:04": "12:05:01", "12:10:13": "12:08:01"}
    events: dict[str, Any] = arrivals("Euro") | {at: seconds(mark) for at, mark in marks.items()}
    events = dict(sorted(events.items()))
    joined = sides(beam.Pipeline(), events.values()) | ValidityJoin(final=True)
    assert listing(joined, list(events)) == ["2,114,228 12:08:52", "5,116,580 12:10:04", "3,119,357 12:10:13"]


def test_a_row_waits_for_values_of_its_very_moment():
    events = [Come("left", "k", "row", 10), 10, Come("right", "k", "value", 10)]
    joined = sides(beam.Pipeline(), events) | ValidityJoin("left", final=True)
    changes = [change for batch in batches_of(joined) for change in batch]
    assert [row for _, (_, row) in changes] == [("row", "value")]


@pytest.mark.parametrize("mode", ["streaming", "micro_batch"])
@pytest.mark.parametrize("events_per_batch", [None, 1, 2, 5])
@pytest.mark.parametrize("final", [False, True])
def test_what_is_not_undone_is_the_table(final, events_per_batch, mode):
    # S9-12, of all currencies.
    events = arrivals("Euro", "USD", "Yen").values()
    joined = sides(beam.Pipeline(), events) | ValidityJoin(final=final)
    batches = batches_of(joined, events_per_batch, mode)
    net = net_of(change for batch in batches for change in batch)
    rows = [("Euro", (2, 114)), ("Euro", (5, 116)), ("Euro", (3, 119))]
    rows += [("USD", (1, 102)), ("USD", (5, 102)), ("Yen", (50, 1))]
    assert net == Counter(rows)


@st.composite
def scripts(draw: Any) -> list[Come]:
    """Rows and values that are inserted and retracted; values of one key have times of their own."""
    standing: list[Come] = []
    events = []
    for number in range(draw(st.integers(0, 12))):
        if standing and draw(st.integers(0, 2)) == 0:
            gone = standing.pop(draw(st.integers(0, len(standing) - 1)))
            events.append(gone._replace(kind=DELETE))
            continue
        side, at = draw(st.sampled_from(["left", "right"])), draw(st.integers(0, 6))
        if side == "right" and any((one.side, one.at) == (side, at) for one in standing):
            continue
        standing.append(Come(side, "k", number % 3, at))
        events.append(standing[-1])
    return events


def law(events: list[Come], kind: str, with_validity: bool, events_per_batch: int) -> None:
    bags: dict[str, Counter[Any]] = {"left": Counter(), "right": Counter()}
    for event in events:
        bags[event.side][event.at, event.row] += -1 if event.kind.is_retraction else 1
    rows, values = sorted((+bags["left"]).elements()), sorted((+bags["right"]).elements())
    expected: Counter[Any] = Counter()
    ends = [Timestamp(at) for at, _ in values[1:]] + [MAX_TIMESTAMP]
    valid = [Valid(value, Timestamp(at), end) for (at, value), end in zip(values, ends, strict=False)]
    for at, row in rows:
        matches = [one for one in valid if one.start <= Timestamp(at) < one.end]
        for one in matches:
            expected["k", (row, one if with_validity else one.value)] += 1
        if not matches and kind != "inner":
            expected["k", (row, None)] += 1
    for one in valid:
        if kind == "full" and not any(one.start <= Timestamp(at) < one.end for at, _ in rows):
            expected["k", (None, one if with_validity else one.value)] += 1
    joined = sides(beam.Pipeline(), events) | ValidityJoin(kind, with_validity)
    batches = batches_of(joined, events_per_batch)
    assert net_of(change for batch in batches for change in batch) == expected


CASES = (scripts(), st.sampled_from(["inner", "left", "full"]), st.booleans(), st.sampled_from([1, 3, 100]))


@pytest.mark.parametrize("cases", [60, pytest.param(150, marks=pytest.mark.soak)])
def test_what_is_left_of_the_result_is_the_join_of_what_is_left(cases):
    settings(max_examples=cases)(given(*CASES)(law))()


MUTANTS = {
    "the value before is not touched": (
        "_around",
        lambda real: lambda values, at: (at, real(values, at)[1]),
    ),
    "nothing is retracted": (
        "compute_difference",
        lambda real: lambda before, after: ((), real(before, after)[1]),
    ),
    "copies are one row": (
        "compute_difference",
        lambda real: (
            lambda before, after: (
                [row for row in before if row not in after],
                [row for row in after if row not in before],
            )
        ),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_law_finds_what_is_wrong(name, monkeypatch):
    attribute, make = MUTANTS[name]
    monkeypatch.setattr(validity, attribute, make(getattr(validity, attribute)))
    find = settings(max_examples=150, database=None, phases=[Phase.generate], report_multiple_bugs=False)(
        given(*CASES)(law)
    )
    with pytest.raises(AssertionError):
        find()
