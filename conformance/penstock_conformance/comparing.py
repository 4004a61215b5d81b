"""Compares the actual output with the expected output, and describes the difference for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.elements.bounded_window import BoundedWindow
from penstock.machines.records import EventOutput, Pane
from penstock.utils.windowed_value import PaneInfoTiming
from penstock_conformance.moments import format_time, format_window
from penstock_conformance.scenario import Expected, ExpectedDrop, ExpectedPane, Scenario, Step

_TIMINGS = {
    PaneInfoTiming.EARLY: "early",
    PaneInfoTiming.ON_TIME: "on-time",
    PaneInfoTiming.LATE: "late",
    PaneInfoTiming.UNKNOWN: "unknown",
}

PANE_INFO = ("kind", "timing", "is_first", "is_last", "index", "nonspeculative_index")
"""The parts of a pane's information that an expectation may name, by the same names."""


def find_differences(step: Step, played: Sequence[EventOutput], in_written_order: bool = False) -> list[str]:
    """Returns what is wrong with the output of a step, one line for each thing.

    The written order counts only if `in_written_order` says so, except for panes that replace each other.
    """
    left = list(range(len(played)))
    found: list[int | None] = []
    for expected in step.expected:
        number = next((number for number in left if _is_met(expected, played[number])), None)
        found.append(number)
        if number is not None:
            left.remove(number)
    missing = [
        f"missing:    {_expected_text(one)}"
        for one, at in zip(step.expected, found, strict=True)
        if at is None
    ]
    unexpected = [f"unexpected: {format_played(played[number])}" for number in left]
    return missing + unexpected or list(_disorder(step.expected, found, in_written_order))


def judge(scenario: Scenario, mode: str, found: Sequence[str]) -> str | None:
    """Returns what is wrong when a scenario is played in a mode; None if everything is as written.

    `found` has a line for each thing that is not as expected. If the scenario says that something must be found,
    finding it is right.
    """
    if scenario.unmet is not None:
        if any(scenario.unmet in line for line in found):
            return None
        found = [f"  nothing is reported with {scenario.unmet!r}, but should be", *found]
    return "\n".join([f"{scenario.place}: {scenario.title} ({mode})", *found]) if found else None


def hold_text(hold_micros: int | None) -> str:
    """A hold, as a transcript would write it.

    >>> hold_text(9_999_999), hold_text(None)
    ('hold 9.999999', 'no hold')
    """
    return "no hold" if hold_micros is None else f"hold {format_time(hold_micros)}"


def format_played(played: EventOutput) -> str:
    """One output, as a transcript would write it, with all its details.

    >>> from penstock.machines.records import Dropped, DropReason, Element
    >>> from penstock_conformance.moments import window_of
    >>> dropped = Dropped(Element(9, 0, (window_of("[0, 10)"),)), DropReason.EXPIRED)
    >>> format_played(EventOutput(0, 5_000_000, None, dropped))
    '-> dropped 9 in [0, 10) expired (clock: 5)'
    """
    key = "" if played.key is None else f"{played.key}: "
    clock = f"(clock: {format_time(played.clock_micros)})"
    emitted = played.emitted
    if not isinstance(emitted, Pane):
        element = emitted.element
        windows = " ".join(map(format_window, element.windows))
        return f"-> dropped {key}{element.value!r} in {windows} {emitted.reason.name.lower()} {clock}"
    info = emitted.info
    words = [
        f"-> {'retract ' * info.kind.is_retraction}{key}{emitted.value!r} in {format_window(emitted.window)}",
        _TIMINGS[info.timing],
        *["first"] * info.is_first,
        *["last"] * info.is_last,
        f"#{info.index} nonspeculative #{info.nonspeculative_index}",
        info.kind.name.lower(),
        f"at {format_time(emitted.timestamp_micros)}",
        clock,
    ]
    return " ".join(words)


def _expected_text(expected: Expected) -> str:
    if expected.clock_micros is None:
        return f"-> {expected.text}"
    return f"-> {expected.text} (clock: {format_time(expected.clock_micros)})"


def _is_met(expected: Expected, played: EventOutput) -> bool:
    if expected.key != played.key:
        return False
    if expected.clock_micros is not None:
        distance_micros = abs(played.clock_micros - expected.clock_micros)
        if distance_micros > expected.tolerance_micros:
            return False
    emitted = played.emitted
    if isinstance(expected, ExpectedDrop):
        return not isinstance(emitted, Pane) and (
            _same_value(expected.value, emitted.element.value)
            and _agrees(None if expected.window is None else (expected.window,), emitted.element.windows)
            and _agrees(expected.reason, emitted.reason)
        )
    return isinstance(emitted, Pane) and _is_pane(expected, emitted)


def _is_pane(expected: ExpectedPane, pane: Pane) -> bool:
    info = pane.info
    return (
        expected.window == pane.window
        and expected.is_retraction == info.kind.is_retraction
        and _same_value(expected.value, pane.value)
        and all(_agrees(getattr(expected, name), getattr(info, name)) for name in PANE_INFO)
        and _agrees(expected.timestamp_micros, pane.timestamp_micros)
    )


def _agrees(stated: object, actual: object) -> bool:
    return stated is None or bool(stated == actual)


def _same_value(expected: object, actual: object) -> bool:
    """True if two values are equal; in the model, the values of a group have no order."""
    if isinstance(expected, list) and isinstance(actual, list):
        return sorted(map(repr, expected)) == sorted(map(repr, actual))
    return bool(expected == actual)


def _disorder(
    expected: Sequence[Expected], found: Sequence[int | None], in_written_order: bool
) -> Iterator[str]:
    """Each pair in a different order than written, if the order counts."""
    for later, at_later in enumerate(found):
        for earlier, at_earlier in enumerate(found[:later]):
            counts = in_written_order or _go_together(expected[earlier], expected[later])
            if counts and at_earlier is not None and at_later is not None and at_earlier > at_later:
                yield f"order:      {_expected_text(expected[later])} came before {_expected_text(expected[earlier])}"


def _go_together(one: Expected, other: Expected) -> bool:
    """True if two panes have an order: they have the same window, or one retracts a pane that merged into the other."""
    if isinstance(one, ExpectedDrop) or isinstance(other, ExpectedDrop) or one.key != other.key:
        return False
    if one.window == other.window:
        return True
    if one.is_retraction == other.is_retraction:
        return False
    taken_back, new = (one, other) if one.is_retraction else (other, one)
    return _contains(new.window, taken_back.window)


def _contains(whole: BoundedWindow, part: BoundedWindow) -> bool:
    return whole.start <= part.start and part.end <= whole.end
