"""The laws of merging: the order of arrival and the order of merging do not show in what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from random import Random
from typing import Any

from penstock.functions.folds import Fold
from penstock.machines.composite_triggers import (
    AfterAllMachine,
    AfterAnyMachine,
    AfterEachMachine,
    AfterWatermarkMachine,
    RepeatedlyMachine,
)
from penstock.machines.folds import fold_for
from penstock.machines.records import MIN_MICROS, AddElement, Element, Times
from penstock.machines.simple_triggers import (
    AfterCountMachine,
    AfterDeltaMachine,
    AfterPatternMachine,
    AfterProcessingTimeMachine,
    AfterPunctuationMachine,
    AfterSignalMachine,
    AlwaysMachine,
    EndOfWindowMachine,
    NeverMachine,
)
from penstock.machines.trigger_machine import TriggerMachine, WindowStatus
from penstock.transforms.window import IntervalWindow
from tests.machines.generated import COMBINES, FOREVER, SESSIONS, Case
from tests.machines.generated_events import SECOND, only_arrivals, random_case, with_events
from tests.machines.generated_triggers import is_even, is_third, size_of
from tests.machines.law_book import law
from tests.machines.outcomes import ACCUMULATING, RETRACTING, finals, latest, played, reckoned, settled


def session_case(random: Random) -> Case:
    return random_case(random, windows=(SESSIONS,), is_endless=True, lateness=(FOREVER,))


@law(session_case, cases=300)
def sessions_are_the_same_in_any_order_of_arrival(case: Case) -> None:
    """Elements may come in any order within the lateness: the sessions in the end are the same, and what they hold.

    (Streaming Systems, chapter 4: results by event time do not depend on the order of arrival; paper, section 2.2.2.)
    """
    left = finals(played(case, RETRACTING))
    assert left == reckoned(case)
    random = Random(len(case.events))
    for _ in range(2):
        shuffled = with_events(case, in_another_order(case, random))
        assert finals(played(shuffled, RETRACTING)) == left
        last = latest(played(shuffled, ACCUMULATING))
        assert {place: last[place] for place in left} == left


def in_another_order(case: Case, random: Random) -> list[Any]:
    """The same input, where other elements come at the moments at which elements come."""
    arrivals = only_arrivals(case.events)
    others = iter(random.sample(arrivals, len(arrivals)))
    events: list[Any] = []
    for event in case.events:
        if isinstance(event, AddElement):
            other = next(others)
            event = AddElement(other.value, other.timestamp_micros, event.clock_micros, other.key)
        events.append(event)
    return events


class PlainSight(WindowStatus):
    """What a trigger sees when there is nothing but a window and the time."""

    def __init__(self, window: IntervalWindow, times: Times) -> None:
        self.window, self.times = window, times
        self.due_micros = times.clock_micros - 1
        self.fresh, self.keeps = 0, True


@dataclass(frozen=True)
class States:
    """States that one trigger may have come to, in windows that merge."""

    machine: TriggerMachine
    status: WindowStatus
    states: tuple[Any, ...]


SIMPLE: tuple[Callable[[Random], TriggerMachine], ...] = (
    lambda random: AfterCountMachine(random.randint(2, 6)),
    lambda random: AfterCountMachine(random.randint(4, 12), size_of),
    lambda random: AfterProcessingTimeMachine(random.randint(0, 5) * SECOND),
    lambda random: AfterProcessingTimeMachine(0, 3 * SECOND, SECOND),
    lambda random: AfterPunctuationMachine(is_third),
    lambda random: AfterPatternMachine((is_even, is_third, is_even)),
    lambda random: AfterPatternMachine((is_even, is_third), True),
    lambda random: AfterSignalMachine("flush"),
)
OTHERS: tuple[Callable[[Random], TriggerMachine], ...] = (
    lambda random: EndOfWindowMachine(random.choice((1.0, 0.5))),
    lambda random: NeverMachine(),
    lambda random: AlwaysMachine(),
    lambda random: AfterDeltaMachine(3, 0, lambda before, now: 0),
)


def random_machine(random: Random, depth: int = 2) -> TriggerMachine:
    if depth == 0 or random.random() < 0.4:
        return random.choice(SIMPLE + OTHERS)(random)
    parts = tuple(random_machine(random, depth - 1) for _ in range(2))
    match random.randrange(5):
        case 0:
            return RepeatedlyMachine(parts[0])
        case 1:
            return AfterWatermarkMachine(
                RepeatedlyMachine(parts[0]), RepeatedlyMachine(parts[1]) if random.random() < 0.7 else None
            )
        case 2:
            return AfterEachMachine(parts)
        case 3:
            return AfterAllMachine(parts)
        case _:
            return AfterAnyMachine(parts)


def random_states(random: Random) -> States:
    machine = random.choice(SIMPLE)(random) if random.random() < 0.5 else random_machine(random)
    watermark_micros = random.choice((MIN_MICROS, 20 * SECOND))
    times = Times(watermark_micros, random.randint(0, 20) * SECOND)
    status = PlainSight(IntervalWindow(0, 10), times)
    return States(machine, status, tuple(random_state(random, machine, status) for _ in range(3)))


def random_state(random: Random, machine: TriggerMachine, status: PlainSight) -> Any:
    """A state that elements, signals and firings have led to."""
    state = machine.start()
    for _ in range(random.randint(0, 6)):
        if machine.is_finished(state):
            return state
        moment_micros = status.times.clock_micros - random.randint(0, 10) * SECOND
        then = PlainSight(IntervalWindow(0, 10), status.times._replace(clock_micros=moment_micros))
        if random.random() < 0.2:
            state = machine.signal(state, "flush")
        else:
            state = machine.element(state, Element(random.randint(0, 9), 0, (status.window,)), then)
        if random.random() < 0.5 and machine.should_fire(state, then):
            state = machine.fire(state, then)
    return state


@law(random_states, cases=1500)
def trigger_states_merge_in_any_order(case: States) -> None:
    """Merging trigger states is associative and commutative: which windows merge first cannot matter.

    (Paper, section 2.2: windows merge at grouping time, whenever that is; patent, ``onMerge``.)
    """

    def merged(*states: Any) -> Any:
        return case.machine.merge(states, case.status)

    one, two, three = case.states
    whole = merged(one, two, three)
    for order in permutations(case.states):
        assert merged(*order) == whole
    assert merged(merged(one, two), three) == whole
    assert merged(one, merged(two, three)) == whole


@dataclass(frozen=True)
class Parts:
    """Values that come to several windows, before these merge."""

    combine: str
    input_retracts: bool
    inputs: tuple[tuple[tuple[int, bool], ...], ...]

    @property
    def fold(self) -> Fold:
        """The fold at hand."""
        return fold_for(COMBINES[self.combine], self.input_retracts)


def random_parts(random: Random) -> Parts:
    combine = random.choice(tuple(COMBINES))
    inputs: list[list[tuple[int, bool]]] = [[], [], []]
    input_retracts = random.random() < 0.5
    for number in range(random.randint(0, 12)):
        random.choice(inputs).append((number, False))
        if input_retracts and random.random() < 0.4:
            random.choice(inputs).append((number, True))
    return Parts(combine, input_retracts, tuple(tuple(random.sample(part, len(part))) for part in inputs))


@law(random_parts, cases=1000)
def what_windows_hold_merges_in_any_order(case: Parts) -> None:
    """What windows hold can be merged in any order, and is what one window would hold, without what was taken back.

    (Beam's CombineFn: merging must not depend on how values were divided; paper, section 2.3: retractions.)
    """
    fold = case.fold

    def held(part: tuple[tuple[int, bool], ...]) -> Any:
        holds = fold.empty()
        for value, is_taken_back in part:
            if is_taken_back:
                assert fold.inverse is not None
                holds = fold.inverse(holds, value)
            else:
                holds = fold.step(holds, value)
        return holds

    def result(holds: Any) -> Any:
        return settled(fold.result(holds, True))

    left = [value for part in case.inputs for value, is_taken_back in part if not is_taken_back]
    for value in (value for part in case.inputs for value, is_taken_back in part if is_taken_back):
        left.remove(value)
    fn = COMBINES[case.combine]
    whole = settled(left if fn is None else fn.apply(left))
    for order in permutations(case.inputs):
        assert result(fold.merged([held(part) for part in order])) == whole
    one, two, three = case.inputs
    first_two = fold.merged([held(one), held(two)])
    assert result(fold.merged([first_two, held(three)])) == whole
    last_two = fold.merged([held(two), held(three)])
    assert result(fold.merged([held(one), last_two])) == whole


@dataclass(frozen=True)
class Divided:
    """Elements of one window, as they come; and in which of several windows they would be, before these merge."""

    machine: TriggerMachine
    values: tuple[int, ...]
    places: tuple[int, ...]


def random_divided(random: Random) -> Divided:
    makers = SIMPLE[:5]
    values = tuple(random.randint(0, 9) for _ in range(random.randint(1, 8)))
    return Divided(random.choice(makers)(random), values, tuple(random.randrange(3) for _ in values))


@law(random_divided, cases=500)
def a_merged_trigger_knows_what_one_window_would(case: Divided) -> None:
    """Counts, bytes, delays and punctuations of windows that merge are those of one window with all the elements.

    (Patent, appendix A: ``onMerge`` of AfterCount sums; Streaming Systems, chapter 4: pending timers stay.)
    """
    states = [case.machine.start() for _ in range(3)]
    whole = case.machine.start()
    for number, (value, place) in enumerate(zip(case.values, case.places, strict=True)):
        status = PlainSight(IntervalWindow(0, 10), Times(clock_micros=number * SECOND))
        element = Element(value, 0, (status.window,))
        states[place] = case.machine.element(states[place], element, status)
        whole = case.machine.element(whole, element, status)
    assert case.machine.merge(states, status) == whole
