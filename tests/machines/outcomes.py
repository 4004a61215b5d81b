"""What came out of a machine, summed up in the ways that laws ask for; and what should have, by a plain reckoning."""

from __future__ import annotations

import copy
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from penstock.elements.bounded_window import BoundedWindow, IntervalWindow
from penstock.machines.records import AddElement, Dropped, Event, EventOutput, Pane
from penstock.machines.reference_engine import ReferenceEngine, play
from penstock.transforms.trigger import AccumulationMode
from penstock.transforms.window import Sessions, WindowFn
from penstock.utils.timestamp import Timestamp
from tests.machines.generated import COMBINES, Case
from tests.machines.generated_events import only_arrivals

DISCARDING = AccumulationMode.DISCARDING
ACCUMULATING = AccumulationMode.ACCUMULATING
RETRACTING = AccumulationMode.ACCUMULATING_AND_RETRACTING
ENGINES = ("streaming", "micro_batch", "batch")

Place = tuple[Any, BoundedWindow]
"""A key and a window."""


def played(case: Case, mode: AccumulationMode | None = None, engine: str = "streaming") -> list[EventOutput]:
    """All that comes out of a case, to its end."""
    if engine == "batch":
        return play(case.machine(mode), case.events, engine)
    player = ReferenceEngine(case.machine(mode), engine)
    outcome = [kept for event in case.events for kept in as_it_is_now(player.play(event))]
    return outcome + as_it_is_now(player.finish())


def as_it_is_now(outcome: list[EventOutput]) -> list[EventOutput]:
    """A copy, which shows what came out then, even if the machine goes on changing it."""
    return [
        replace(one, emitted=replace(one.emitted, value=copy.copy(one.emitted.value)))
        if isinstance(one.emitted, Pane)
        else one
        for one in outcome
    ]


def settled(value: Any) -> Any:
    """A pane's value as something that can be counted; the order in a list does not matter."""
    return tuple(sorted(map(repr, value))) if isinstance(value, list) else value


def panes(outcome: Iterable[EventOutput]) -> Iterator[tuple[Any, Pane]]:
    """The panes, each with its key."""
    return ((one.key, one.emitted) for one in outcome if isinstance(one.emitted, Pane))


def dropped(outcome: Iterable[EventOutput]) -> Iterator[tuple[Any, Dropped]]:
    """The elements that were dropped, each with its key."""
    return ((one.key, one.emitted) for one in outcome if isinstance(one.emitted, Dropped))


def by_place(outcome: Iterable[EventOutput]) -> dict[Place, list[Any]]:
    """The values of the panes of each window, retractions left out."""
    values: defaultdict[Place, list[Any]] = defaultdict(list)
    for key, pane in panes(outcome):
        if not pane.kind.is_retraction:
            values[key, pane.window].append(pane.value)
    return dict(values)


def net(outcome: Iterable[EventOutput]) -> Counter[tuple[Any, BoundedWindow, Any]]:
    """What is left of a changelog: how often each value of each window stands."""
    counts: Counter[tuple[Any, BoundedWindow, Any]] = Counter()
    for key, pane in panes(outcome):
        counts[key, pane.window, settled(pane.value)] += -1 if pane.kind.is_retraction else 1
    return Counter({what: count for what, count in counts.items() if count})


def finals(outcome: Iterable[EventOutput]) -> dict[Place, Any]:
    """The one value of each window that a changelog leaves."""
    left = net(outcome)
    assert set(left.values()) <= {1}, f"something stands more or less than once: {left}"
    values = {(key, window): value for key, window, value in left}
    assert len(values) == len(left), f"a window has two values: {left}"
    return values


def latest(outcome: Iterable[EventOutput]) -> dict[Place, Any]:
    """The last value of each window, merged away or not."""
    return {place: settled(values[-1]) for place, values in by_place(outcome).items()}


def combined(case: Case, inputs: Iterable[Any]) -> Any:
    """What a pane of these inputs would hold."""
    combine = COMBINES[case.combine]
    return settled(list(inputs) if combine is None else combine.apply(list(inputs)))


def together(case: Case, values: Sequence[Any]) -> Any:
    """What one pane would hold instead of several."""
    match case.combine:
        case "values" | "listing":
            return settled([value for pane in values for value in pane])
        case "largest":
            return combined(case, values)
        case _:
            return sum(values)


def settled_together(case: Case, values: Iterable[Any]) -> Any:
    """The same for values that are settled already."""
    if case.combine in ("values", "listing"):
        return tuple(sorted(value for several in values for value in several))
    return combined(case, values)


def windows_of(case: Case, event: AddElement) -> tuple[BoundedWindow, ...]:
    """The windows that an element is put into."""
    context = WindowFn.AssignContext(
        Timestamp.from_micros(event.timestamp_micros), element=(event.key, event.value)
    )
    return tuple(case.windowing.windowfn.assign(context))


def reckoned(case: Case, losses: Iterable[tuple[Any, Dropped]] = ()) -> dict[Place, Any]:
    """The values of all windows, reckoned from the elements alone: of windows that never merge, and of sessions."""
    lost = Counter(
        (key, loss.element.windows[0], loss.element.timestamp_micros, loss.element.value)
        for key, loss in losses
    )
    inputs: defaultdict[Place, list[Any]] = defaultdict(list)
    for event in only_arrivals(case.events):
        for window in windows_of(case, event):
            what = (event.key, window, event.timestamp_micros, event.value)
            if lost[what]:
                lost[what] -= 1
            else:
                inputs[event.key, window].append(event.value)
    if isinstance(case.windowing.windowfn, Sessions):
        inputs = _in_sessions(inputs, case.windowing.windowfn.merge_touching)
    return {place: combined(case, values) for place, values in inputs.items()}


def _in_sessions(inputs: dict[Place, list[Any]], is_touching: bool) -> defaultdict[Place, list[Any]]:
    sessions: list[tuple[Any, int, int, list[Any]]] = []
    for (key, window), values in sorted(inputs.items(), key=lambda entry: (entry[0][0], entry[0][1])):
        before = sessions[-1] if sessions else None
        start_micros = window.start.micros
        if before and before[0] == key and start_micros < before[2] + is_touching:
            sessions[-1] = (key, before[1], window.end_micros, before[3] + values)
        else:
            sessions.append((key, start_micros, window.end_micros, values))
    return defaultdict(
        list,
        {(key, IntervalWindow.from_micros(start, end)): values for key, start, end, values in sessions},
    )


def contains(outer: BoundedWindow, inner: BoundedWindow) -> bool:
    """True if all of a window is in another one."""
    return outer.start.micros <= inner.start.micros and inner.end_micros <= outer.end_micros


def at_steps(outcome: Iterable[EventOutput], steps: int) -> list[list[EventOutput]]:
    """What came out at each step, and at the end of the input."""
    lists: list[list[EventOutput]] = [[] for _ in range(steps + 1)]
    for one in outcome:
        lists[one.step].append(one)
    return lists


def without_steps(outcome: Iterable[EventOutput]) -> list[tuple[Any, ...]]:
    """What came out, in order, whichever event of the record caused it."""
    return [(one.clock_micros, one.key, one.emitted) for one in outcome]


def sorted_by_time(events: Iterable[Event]) -> list[AddElement]:
    """The elements alone, in order of event time, with nothing said of processing time."""
    arrivals = sorted(only_arrivals(tuple(events)), key=lambda event: event.timestamp_micros)
    return [AddElement(one.value, one.timestamp_micros, None, one.key, one.kind) for one in arrivals]
