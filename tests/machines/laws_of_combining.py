"""The laws of combining: elements that arrive at one moment may be combined before the machine sees them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from penstock.elements.bounded_window import IntervalWindow
from penstock.machines.arrivals import unite_arrivals
from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import (
    MIN_MICROS,
    AddElement,
    AdvanceWatermark,
    Arrival,
    Dropped,
    Element,
    Event,
    EventOutput,
    Pane,
    Times,
)
from penstock.machines.reference_engine import ReferenceEngine
from penstock.machines.trigger_machine import TriggerMachine
from tests.machines.generated import Case
from tests.machines.generated_events import SECOND, random_case, with_events
from tests.machines.law_book import law
from tests.machines.laws_of_merging import PlainSight, random_machine, random_state
from tests.machines.outcomes import (
    ACCUMULATING,
    DISCARDING,
    RETRACTING,
    as_it_is_now,
    dropped,
    finals,
    latest,
    net,
    panes,
    settled,
    settled_together,
    windows_of,
)

PRODUCERS = 3


class Together(ReferenceEngine):
    """Plays the elements of each moment at once, combined; or one by one, in the order that loses the fewest.

    Which of the two it is, and who has combined which elements, `random` says.
    """

    def __init__(self, machine: GroupingMachine, mode: str, random: Random | None) -> None:
        super().__init__(machine, mode)
        self._random = random

    def play_moment(self, events: list[Event]) -> list[EventOutput]:
        """Plays one event, or several elements of one moment."""
        if not isinstance(events[0], AddElement):
            return as_it_is_now(self.play(events[0]))
        played: list[EventOutput] = []
        if events[0].clock_micros is not None:
            self._advance_clock(events[0].clock_micros, False, played)
        for key in dict.fromkeys(event.key for event in events):
            _, state = self._keys.setdefault(repr(key).encode(), (key, self.machine.new_key()))
            elements = [self._element(event) for event in events if event.key == key]
            emit = self._combined if self._random is not None else self._one_by_one
            self._add(played, key, emit(state, elements))
        self.step += len(events)
        return as_it_is_now(played)

    def _element(self, event: AddElement) -> Element:
        windows = self.machine.assign(event.timestamp_micros, (event.key, event.value))
        return Element(event.value, event.timestamp_micros, windows)

    def _one_by_one(self, state: Any, elements: list[Element]) -> list[Any]:
        emitted = []
        while elements:
            taken = next((one for one in elements if self._is_taken(state, one)), elements[0])
            elements.remove(taken)
            emitted += self.machine.element(state, taken, self._times)
        return emitted

    def _is_taken(self, state: Any, element: Element) -> bool:
        tried = self.machine.restore(self.machine.snapshot(state))
        return not any(isinstance(one, Dropped) for one in self.machine.element(tried, element, self._times))

    def _combined(self, state: Any, elements: list[Element]) -> list[Any]:
        arrivals = arrivals_of(self.machine, elements, self._random)
        return [one for arrival in arrivals for one in self.machine.arrival(state, arrival, self._times)]


def arrivals_of(machine: GroupingMachine, elements: list[Element], random: Random) -> list[Arrival]:
    """The elements of a key and a moment, combined by several producers, and then together."""
    parts: list[list[Element]] = [[] for _ in range(PRODUCERS)]
    for element in elements:
        random.choice(parts).append(element)
    program = machine.program
    return unite_arrivals(
        program, (one for part in parts for one in unite_arrivals(program, map_side(machine, part)))
    )


def map_side(machine: GroupingMachine, elements: Iterable[Element]) -> Iterator[Arrival]:
    """Each element by itself, in each of its windows."""
    fold = machine.program.fold
    for element in elements:
        for window in element.windows:
            held = fold.lift(element.value)
            yield Arrival(window, held, 1, machine.program.output_times.needed([element.timestamp_micros]))


def logical_times_of(events: Iterable[Event]) -> Iterator[list[Event]]:
    """The events, those elements together that arrive while the clock stands still and nothing else happens."""
    together: list[Event] = []
    for event in events:
        if isinstance(event, AddElement) and event.clock_micros is None:
            together.append(event)
            continue
        if together:
            yield together
        together = [event] if isinstance(event, AddElement) else []
        if not together:
            yield [event]
    if together:
        yield together


def outcome(
    case: Case, mode: Any = None, engine: str = "streaming", seed: int | None = None
) -> list[EventOutput]:
    """What comes out where the elements of each moment come together; one by one without a seed."""
    player = Together(case.machine(mode), engine, None if seed is None else Random(seed))
    played = [one for events in logical_times_of(case.events) for one in player.play_moment(events)]
    return played + as_it_is_now(player.finish())


def crowded_case(random: Random) -> Case:
    """One whose trigger cannot tell one from many, with several elements at most moments."""
    case = random_case(random)
    while not case.machine().program.takes_arrivals:
        case = random_case(random)
    events = [
        replace(event, clock_micros=None)
        if isinstance(event, AddElement) and random.random() < 0.7
        else event
        for event in case.events
    ]
    return with_events(case, events)


def punctual_case(random: Random) -> Case:
    """The same without an element whose window a watermark has passed, be it that of a percentile.

    Where windows merge, no element is behind the watermark at all: a window that is not passed may hold one that is.
    """
    case = crowded_case(random)
    merges = case.windowing.windowfn.is_merging()
    events: list[Event] = []
    furthest_micros = MIN_MICROS
    for event in case.events:
        if isinstance(event, AdvanceWatermark):
            furthest_micros = max(furthest_micros, event.watermark_micros, *event.percentile_micros.values())
        elif isinstance(event, AddElement):
            ends = [window.end_micros - 1 for window in windows_of(case, event)]
            if min(ends, default=MIN_MICROS) < furthest_micros:
                continue
            if merges and event.timestamp_micros < furthest_micros:
                continue
        events.append(event)
    return with_events(case, events)


def without_order(played: Iterable[EventOutput]) -> Counter[str]:
    """What came out, and at which time; the values of a list, and the windows of a key, may come in any order."""
    return Counter(
        repr((one.clock_micros, one.key, replace(one.emitted, value=settled(one.emitted.value))))
        for one in played
        if isinstance(one.emitted, Pane)
    )


@dataclass(frozen=True)
class Reached:
    """A trigger in a state that nothing waits in to fire, and the moment."""

    machine: TriggerMachine
    state: Any
    status: PlainSight


def random_reached(random: Random) -> Reached:
    while True:
        machine = random_machine(random)
        times = Times(random.choice((MIN_MICROS, 20 * SECOND)), random.randint(0, 20) * SECOND)
        status = PlainSight(IntervalWindow(0, 10), times)
        state = random_state(random, machine, status)
        waits = not machine.is_finished(state) and not machine.should_fire(state, status)
        if waits and not machine.tells_one_from_many:
            return Reached(machine, state, status)


@law(random_reached, cases=500)
def a_trigger_that_tells_no_one_from_many_is_told_all_by_one(case: Reached) -> None:
    """Several elements lead such a trigger to the state that one leads to, unless that one makes it fire.

    And before the end of the window, none does. (Design, section 5: what may be combined before the shuffle.)
    """
    element = Element(0, 0, (case.status.window,))
    after_one = case.machine.element(case.state, element, case.status)
    if case.machine.should_fire(after_one, case.status):
        assert case.status.is_past_end
    else:
        assert case.machine.element(after_one, element, case.status) == after_one


@law(punctual_case, cases=300)
def punctual_elements_may_come_together(case: Case) -> None:
    """Where nothing is late, it does not show in any pane whether elements of one moment come one by one or combined.

    (Design, section 5: elements whose trigger cannot tell one from many may be combined before the shuffle.)
    """
    for engine in ("streaming", "micro_batch"):
        one_by_one = without_order(outcome(case, engine=engine))
        assert without_order(outcome(case, engine=engine, seed=len(case.events))) == one_by_one


@law(crowded_case, cases=300)
def in_the_end_it_is_the_same_whether_elements_come_together(case: Case) -> None:
    """Late elements of one moment fire once and not one by one; what panes come to in the end is the same.

    That is the last value, the sum of what discarding panes hold, what retractions leave, and how many elements are
    dropped. (Beam: the elements of a bundle fire once; design, section 5.)
    """
    seed = len(case.events)
    assert net(outcome(case, RETRACTING, seed=seed)) == net(outcome(case, RETRACTING))
    left = finals(outcome(case, RETRACTING))
    last, expected = latest(outcome(case, ACCUMULATING, seed=seed)), latest(outcome(case, ACCUMULATING))
    assert {place: last[place] for place in left} == {place: expected[place] for place in left}
    one_by_one, together = outcome(case, DISCARDING), outcome(case, DISCARDING, seed=seed)
    assert sums(case, together) == sums(case, one_by_one)
    assert losses(together) == losses(one_by_one)


def sums(case: Case, played: Iterable[EventOutput]) -> dict[Any, Any]:
    """What discarding panes hold together: those of a window, or where windows merge, those of a key."""
    merges = case.windowing.windowfn.is_merging()
    values: defaultdict[Any, list[Any]] = defaultdict(list)
    for key, pane in panes(played):
        values[key if merges else (key, pane.window)].append(settled(pane.value))
    return {place: settled_together(case, several) for place, several in values.items()}


def losses(played: Iterable[EventOutput]) -> Counter[Any]:
    """How many elements of each key are dropped, and why."""
    counts: Counter[Any] = Counter()
    for key, loss in dropped(played):
        counts[key, loss.reason] += loss.count
    return counts
