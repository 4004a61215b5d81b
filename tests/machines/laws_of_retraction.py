"""The laws of retractions: a grouping that takes them ends as if what was taken back had never been there."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from penstock.machines.records import AddElement, Event, EventOutput
from penstock.machines.reference_engine import play
from penstock.utils.windowed_value import ValueKind
from tests.machines.generated import COMBINES, FOREVER, OF_SECONDS, SESSIONS, Case, random_windowing
from tests.machines.generated_events import only_arrivals, random_case, with_events
from tests.machines.law_book import law
from tests.machines.outcomes import (
    ACCUMULATING,
    DISCARDING,
    ENGINES,
    RETRACTING,
    Place,
    combined,
    finals,
    latest,
    panes,
    played,
    reckoned,
    windows_of,
)


def numbers_case(random: Random) -> Case:
    """One whose panes hold numbers, so that a second grouping can combine them."""
    while True:
        case = random_case(random, most=25, is_endless=True)
        if case.combine not in ("values", "listing"):
            return case


@law(numbers_case, cases=200)
def a_second_grouping_undoes_what_the_first_takes_back(case: Case) -> None:
    """A grouping of the panes of a retracting grouping ends as if it had only seen the values that are left.

    With and without ``subtract_input``, in all modes and engines, whatever triggers fire in between; and also if the
    panes come in another order, so that some are taken back before they come. (Paper, section 2.3: what retractions are
    for.)
    """
    random = Random(str(case.windowing))
    first = [pane for _, pane in panes(played(case, RETRACTING))]
    changelog = [AddElement(pane.value, pane.timestamp_micros, None, "all", pane.kind) for pane in first]
    windowing = random_windowing(random, windows=(OF_SECONDS,), is_endless=True, lateness=(FOREVER,))
    combine = random.choice(tuple(COMBINES))
    for arrivals in (changelog, random.sample(changelog, len(changelog))):
        second = Case(windowing, combine, tuple(among(arrivals, case.events, random)))
        expected = of_what_is_left(second, changelog)
        for engine in ENGINES:
            outcome = {
                mode: play(second.machine(mode, input_retracts=True), second.events, engine, finish=True)
                for mode in (DISCARDING, ACCUMULATING, RETRACTING)
            }
            assert finals(outcome[RETRACTING]) == expected
            nothing = combined(second, [])
            last = latest(outcome[ACCUMULATING])
            assert {
                place: value for place, value in last.items() if value != nothing or place in expected
            } == expected
            if combine != "largest":
                check_sums(outcome[DISCARDING], expected)


def among(arrivals: list[AddElement], events: tuple[Event, ...], random: Random) -> Iterator[Event]:
    """Elements, and between them what else happens in an input."""
    others = [event for event in events if not isinstance(event, AddElement)]
    for event in arrivals:
        while others and random.random() < 0.3:
            yield others.pop(0)
        yield event


def of_what_is_left(case: Case, changelog: list[AddElement]) -> dict[Place, Any]:
    """What a grouping of the values that are left holds."""
    counts: Counter[tuple[Any, int]] = Counter()
    for event in changelog:
        counts[event.value, event.timestamp_micros] += -1 if event.kind.is_retraction else 1
    assert min(counts.values(), default=0) >= 0
    inputs: defaultdict[Place, list[Any]] = defaultdict(list)
    for value, timestamp_micros in counts.elements():
        event = AddElement(value, timestamp_micros, None, "all")
        for window in windows_of(case, event):
            inputs["all", window].append(value)
    return {place: combined(case, values) for place, values in inputs.items()}


def check_sums(outcome: list[EventOutput], expected: dict[Place, Any]) -> None:
    """Checks that discarding panes, less those that are retractions, come to what is expected."""
    sums: defaultdict[Place, int] = defaultdict(int)
    bags: defaultdict[Place, Counter[str]] = defaultdict(Counter)
    for key, pane in panes(outcome):
        sign = -1 if pane.kind.is_retraction else 1
        if isinstance(pane.value, list):
            for value in pane.value:
                bags[key, pane.window][repr(value)] += sign
        else:
            sums[key, pane.window] += sign * pane.value
    for place, bag in bags.items():
        assert min(bag.values(), default=0) >= 0
        assert tuple(sorted(bag.elements())) == expected.get(place, ())
    for place, total in sums.items():
        assert total == expected.get(place, 0)
    assert {place for place, value in expected.items() if value} <= {*bags, *sums}


def taking_case(random: Random) -> Case:
    """Sessions of elements many of which are taken back, some before they come."""
    case = random_case(random, most=25, windows=(SESSIONS,), is_endless=True, lateness=(FOREVER,))
    events = list(case.events)
    for event in only_arrivals(case.events):
        if random.random() < 0.6:
            place = random.randint(0, len(events)) if random.random() < 0.3 else len(events)
            events.insert(place, replace(event, clock_micros=None, kind=ValueKind.DELETE))
    return with_events(case, events)


@law(taking_case, cases=600)
def sessions_hold_what_is_not_taken_back(case: Case) -> None:
    """Sessions are those of the elements that are not taken back, whichever have merged in between.

    What has merged comes apart again where what was between is gone. (Paper, section 2.3, and its figure 14.)
    """
    balance = Counter[AddElement]()
    for event in only_arrivals(case.events):
        balance[replace(event, clock_micros=None, kind=ValueKind.INSERT)] += (
            -1 if event.kind.is_retraction else 1
        )
    if min(balance.values(), default=0) < 0:
        return
    outcome = play(case.machine(RETRACTING, input_retracts=True), case.events, finish=True)
    assert finals(outcome) == reckoned(with_events(case, [*balance.elements()]))
