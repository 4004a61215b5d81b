"""Many elements have the same times together as alone, and give the same errors."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.elements.row import Row
from penstock.io.streaming.stream_times import MicrosOf
from penstock.utils.timestamp import Timestamp

AWARE = datetime.datetime(2026, 1, 1, 0, 0, 0, 7, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
NAIVE = AWARE.replace(tzinfo=None)
TIMES = [7, 1.5, Timestamp(7), AWARE, NAIVE]
BAD = [None, float("nan"), True, "now", 1 << 62, [1]]


def ways(name: str) -> list[Callable[[Any], Any]]:
    return [
        lambda time: {name: time},
        lambda time: SimpleNamespace(**{name: time}),
        lambda time: Row(**{name: time}),
    ]


@pytest.mark.parametrize("name", ["at", "at.most", "items"])
def test_the_times_of_several_elements_are_those_of_each(name: str) -> None:
    micros_of = MicrosOf("event_time", name)
    for times in ([], *([time, time] for time in TIMES), TIMES):
        for way in ways(name):
            elements = list(map(way, times))
            assert micros_of.of_all(elements) == list(map(micros_of, elements))
    mixed = [way(time) for way in ways(name) for time in TIMES]
    assert micros_of.of_all(mixed) == list(map(micros_of, mixed))


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_what_is_not_a_time_is_refused_as_it_is_alone(bad: Any) -> None:
    micros_of = MicrosOf("event_time", "at")
    for way in ways("at"):
        for good in TIMES:
            with pytest.raises((TypeError, ValueError)) as alone:
                micros_of(way(bad))
            with pytest.raises((TypeError, ValueError)) as together:
                micros_of.of_all([way(good), way(bad)])
            assert together.type == alone.type
            # The second line is the place, of which each has its own.
            texts = [str(each.value).split("\n") for each in (together, alone)]
            assert [text[:1] + text[2:] for text in texts] == 2 * [texts[0][:1] + texts[0][2:]]


@pytest.mark.parametrize("element", [{"on": 7}, Row(on=7), 7])
def test_an_element_without_the_field_is_refused(element: Any) -> None:
    with pytest.raises(ValueError, match="has no field 'at'"):
        MicrosOf("event_time", "at").of_all([Row(at=7), element])


def test_an_error_of_the_users_own_function_stays() -> None:
    with pytest.raises(AttributeError, match="own"):
        MicrosOf("event_time", lambda element: element.own).of_all([7])
