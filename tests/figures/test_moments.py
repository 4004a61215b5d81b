"""The labels of axes: round moments, in the unit that fits, with room between them."""

from __future__ import annotations

import datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.diagrams.markup import MINUS, measure_text
from penstock_figures.moments import (
    DAY_MICROS,
    HOUR_MICROS,
    LABEL_SIZE,
    MINUTE_MICROS,
    SECOND_MICROS,
    Style,
    format_moment,
    make_labels,
    style_of,
)


def date(*parts: int) -> int:
    moment = datetime.datetime(*parts, tzinfo=datetime.UTC)  # type: ignore[misc, arg-type]
    return round(moment.timestamp()) * SECOND_MICROS


NOON = 12 * HOUR_MICROS


@pytest.mark.parametrize(
    ("low", "high", "ticks", "unit"),
    [
        (0, 60 * SECOND_MICROS, "0 10 20 30 40 50 60", "s"),
        (0, 10 * MINUTE_MICROS, "0 2 4 6 8 10", "min"),
        (-SECOND_MICROS, SECOND_MICROS, f"{MINUS}1 {MINUS}0.5 0 0.5 1", "s"),
        (0, 20, "0 0.000005 0.00001 0.000015 0.00002", "s"),
        (NOON, NOON + 4 * MINUTE_MICROS, "12:00 12:01 12:02 12:03 12:04", ""),
        (NOON, NOON + 100 * SECOND_MICROS, "12:00:00 12:00:20 12:00:40 12:01:00 12:01:20 12:01:40", ""),
        (
            date(2024, 3, 31, 9),
            date(2024, 3, 31, 12),
            "09:00 09:30 10:00 10:30 11:00 11:30 12:00",
            "2024-03-31",
        ),
        (date(2024, 3, 31, 12), date(2024, 4, 1, 12), "12:00 18:00 2024-04-01 06:00 12:00", ""),
        (date(2024, 3, 31), date(2024, 4, 4), "2024-03-31 2024-04-01 2024-04-02 2024-04-03 2024-04-04", ""),
        (date(2024, 1, 15), date(2024, 7, 15), "2024-02 2024-03 2024-04 2024-05 2024-06 2024-07", ""),
        (date(2000, 1, 1), date(2025, 1, 1), "2000 2005 2010 2015 2020 2025", ""),
        (0, 10**7 * DAY_MICROS, "0 2000000 4000000 6000000 8000000 10000000", "days"),
    ],
)
def test_labels_are_round_moments_in_the_unit_that_fits(low: int, high: int, ticks: str, unit: str) -> None:
    found = make_labels(low, high, 400, style_of(low, high), is_upright=False)
    assert " ".join(label for _, label in found.ticks) == ticks
    assert found.unit == unit


def test_steps_are_whole() -> None:
    found = make_labels(0, 3 * SECOND_MICROS, 4000, Style.STEPS, is_upright=True)
    assert [label for _, label in found.ticks] == ["0", "1", "2", "3"]


@given(
    st.integers(-(10**18), 10**18),
    st.integers(0, 60).flatmap(lambda power: st.integers(2**power, 2 ** (power + 1))),
    st.sampled_from([100.0, 300.0, 580.0]),
    st.booleans(),
)
def test_labels_never_touch_and_there_are_never_many(
    low: int, length_micros: int, length: float, is_upright: bool
) -> None:
    high = low + length_micros
    found = make_labels(low, high, length, style_of(low, high), is_upright)
    assert len(found.ticks) <= 40
    for (before, label), (after, next_label) in pairwise(found.ticks):
        distance = (after - before) / length_micros * length
        widths = measure_text(label, LABEL_SIZE) + measure_text(next_label, LABEL_SIZE)
        assert distance > (LABEL_SIZE if is_upright else widths / 2)


@pytest.mark.parametrize(
    ("micros", "style", "text"),
    [
        (5_250_000, Style.LENGTH, "5.25 s"),
        (-1, Style.LENGTH, f"{MINUS}0.000001 s"),
        (12 * HOUR_MICROS + 1, Style.CLOCK, "12:00:00.000001"),
        (date(2024, 3, 31, 23, 59, 9), Style.CLOCK, "2024-03-31 23:59:09"),
        (-1, Style.CLOCK, "1969-12-31 23:59:59.999999"),
        (10**6 * DAY_MICROS, Style.CLOCK, "day 1000000"),
        (10**6 * DAY_MICROS, Style.DAYS, "day 1000000"),
        (7 * SECOND_MICROS, Style.STEPS, "step 7"),
    ],
)
def test_moments_are_told_exactly(micros: int, style: Style, text: str) -> None:
    assert format_moment(micros, style) == text
