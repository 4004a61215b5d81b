"""The harness without an engine, which plays scenarios on the machines of the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from penstock.machines.records import AddElement, Event, EventOutput
from penstock.machines.reference_engine import ReferenceEngine
from penstock_conformance.comparing import find_differences, hold_text, judge
from penstock_conformance.malformed import Malformed
from penstock_conformance.programs import program_of
from penstock_conformance.scenario import Scenario, Step


class Run(NamedTuple):
    """The outcome of a scenario that was played."""

    report: str | None  # What is wrong; None if everything is as written.
    events: tuple[
        Event, ...
    ] = ()  # What happened, in the order of playing; empty if the grouping is refused.
    played: tuple[EventOutput, ...] = ()
    ends_input: bool = False


def report(scenario: Scenario, mode: str, cut: bool = False) -> str | None:
    """Returns what is wrong when a scenario is played in a mode; None if everything is as written.

    >>> from penstock_conformance.parsing import parse
    >>> text = '''
    ... = A
    ... source:  us
    ... windows: FixedWindows(10)
    ...
    ... element 5 at 3
    ... watermark 10
    ...   -> [6] in [0, 10)
    ... '''
    >>> print(report(parse({"a": text})[0], "streaming"))
    a:2: A (streaming)
      at a:7: watermark 10
        missing:    -> [6] in [0, 10)
        unexpected: -> [5] in [0, 10) on-time first last #0 nonspeculative #0 insert at 9.999999 (clock: -inf)
    """
    return run(scenario, mode, cut).report


def run(scenario: Scenario, mode: str, cut: bool = False) -> Run:
    """Plays a scenario in a mode; with `cut`, stores and restores all state after each event, as a restarted engine
    does.
    """
    try:
        machine = program_of(scenario).machine()
    except Malformed:
        raise
    except (TypeError, ValueError) as error:
        if scenario.fails is not None and scenario.fails in str(error):
            return Run(judge(scenario, mode, []))
        return Run(judge(scenario, mode, [f"  the grouping is refused: {error}"]))
    if scenario.fails is not None:
        wrong = f"  the grouping is not refused, but should be, with {scenario.fails!r}"
        return Run(judge(scenario, mode, [wrong]))
    steps = scenario.steps(mode)
    steps = (_in_order_of_time(steps),) if mode == "batch" else steps
    played: list[EventOutput] = []
    wrong_lines = [*_played(ReferenceEngine(machine, mode), steps, cut, scenario.in_written_order, played)]
    events = tuple(event for step in steps for event in step.events)
    return Run(judge(scenario, mode, wrong_lines), events, tuple(played), steps[-1].ends_input)


def _played(
    player: ReferenceEngine, steps: Sequence[Step], cut: bool, in_written_order: bool, into: list[EventOutput]
) -> Iterator[str]:
    """Plays steps, adds their output to `into`, and yields lines about what is wrong with it."""
    for step in steps:
        played: list[EventOutput] = []
        for event in step.events:
            played += player.play(event)
            if cut:
                player.cut()
        if step.ends_input:
            played += player.finish()
        into += played
        found = find_differences(step, played, in_written_order)
        if step.hold is not None and step.hold.micros != player.hold_micros:
            held = hold_text(player.hold_micros)
            found.append(f"wrong hold: {hold_text(step.hold.micros)} is written, but the machine has {held}")
        if found:
            yield f"  at {step.place}: {step.text}"
            yield from (f"    {line}" for line in found)


def _in_order_of_time(steps: Sequence[Step]) -> Step:
    """Makes one step of all: a batch takes its elements in order of event time, and emits everything at its end."""
    events = [event for step in steps for event in step.events]
    elements = [event for event in events if isinstance(event, AddElement)]
    elements.sort(key=lambda element: element.timestamp_micros)
    return replace(steps[-1], events=tuple(elements))
