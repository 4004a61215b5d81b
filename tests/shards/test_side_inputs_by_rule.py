"""Random streams with a side input: every element sees what a plain reading of the rule says, in any cuts."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.machines.side_inputs import SideInputMachine
from penstock.pvalue import AsList
from penstock.testing.test_stream import TestStream
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark
from tests.shards.waiting_streams import at, run, streams

EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("main"), st.integers(0, 199)),
        st.tuples(st.just("side"), st.integers(0, 199)),
        st.tuples(st.just("watermark"), st.integers(1, 40)),
    ),
    max_size=25,
)


def what_is_seen(events: list[tuple[str, int]]) -> list[Any]:
    """By the rule: an element sees what is there as soon as there is anything, or nothing more is expected."""
    found, waiting = [], []
    contents: dict[int, list[int]] = {}
    watermark = 0
    for number, (kind, seconds) in enumerate([*events, ("watermark", 1000)]):
        window = seconds // 60
        if kind == "main":
            waiting.append((number, window))
        elif kind == "watermark":
            watermark += seconds
        elif (window + 1) * 60 > watermark:
            contents.setdefault(window, []).append(number)
        for element in [one for one in waiting if one[1] in contents or (one[1] + 1) * 60 <= watermark]:
            waiting.remove(element)
            found.append((element[0], list(contents.get(element[1], ()))))
    assert not waiting
    return sorted(found)


def as_stream(events: list[tuple[str, int]]) -> TestStream:
    told, watermark = [], 0
    for number, (kind, seconds) in enumerate(events):
        if kind == "watermark":
            watermark += seconds
            told.append(("side", watermark))
        else:
            told.append((kind, at(seconds, number)))
    return streams(*told)


@settings(max_examples=60, deadline=None)
@given(EVENTS, st.sampled_from([None, 1, 2, 5]), st.sampled_from([1, 2, 3]))
def test_any_stream_sees_what_the_rule_says(events, events_per_batch, shards):
    found = run(
        as_stream(events),
        AsList,
        events_per_batch=events_per_batch,
        shards=shards,
        trigger=AfterWatermark(early=AfterCount(1)),
        accumulation_mode=AccumulationMode.ACCUMULATING,
    )
    assert sorted(found) == what_is_seen(events)


@pytest.mark.parametrize(
    "mutant",
    [
        {"missing": lambda self, state, window, times: ()},
        {"released": lambda self, state, times, is_end=False: []},
        {"put_away": lambda self, state, window: 7},
        {"replace": lambda self, state, place, window, times: (None, None)},
    ],
    ids=lambda mutant: next(iter(mutant)),
)
def test_the_rule_finds_a_mutant(mutant, monkeypatch):
    for name, method in mutant.items():
        monkeypatch.setattr(SideInputMachine, name, method)
    events = [
        ("main", 5),
        ("side", 10),
        ("main", 20),
        ("side", 30),
        ("main", 40),
        ("main", 70),
        ("watermark", 99),
    ]
    found = None
    # Some mutants end in an error, which tells as much.
    with suppress(Exception):
        found = run(
            as_stream(events),
            AsList,
            events_per_batch=1,
            trigger=AfterWatermark(early=AfterCount(1)),
            accumulation_mode=AccumulationMode.ACCUMULATING,
        )
    assert found is None or sorted(found) != what_is_seen(events)
