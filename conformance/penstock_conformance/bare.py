"""The harness without an engine: plays scenarios on the machines of the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from penstock.machines.playing import Player
from penstock.machines.records import Arrive, Event, Played
from penstock_conformance.comparing import differences, hold_text, verdict
from penstock_conformance.malformed import Malformed
from penstock_conformance.programs import program_of
from penstock_conformance.scenario import Scenario, Step


class Run(NamedTuple):
    """What happened when a scenario was played.

    Attributes:
        report: What is wrong; None if all is as written.
        events: What happened, in the order in which it was played; nothing where the grouping is refused.
        played: What came out.
        ends_input: Whether the input was ended.
    """

    report: str | None
    events: tuple[Event, ...] = ()
    played: tuple[Played, ...] = ()
    ends_input: bool = False


def report(scenario: Scenario, mode: str, cut: bool = False) -> str | None:
    """What is wrong when a scenario is played in a mode; None if all is as written.

    Args:
        scenario: The scenario.
        mode: One of its modes.
        cut: Whether all state is stored and restored after each event, as where an engine stops and goes on.

    Raises:
        Malformed: A setting cannot be understood.

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
    """Plays a scenario in a mode; see `report`.

    Args:
        scenario: The scenario.
        mode: One of its modes.
        cut: Whether all state is stored and restored after each event.

    Raises:
        Malformed: A setting cannot be understood.
    """
    try:
        machine = program_of(scenario).machine()
    except Malformed:
        raise
    except (TypeError, ValueError) as error:
        if scenario.fails is not None and scenario.fails in str(error):
            return Run(verdict(scenario, mode, []))
        return Run(verdict(scenario, mode, [f"  the grouping is refused: {error}"]))
    if scenario.fails is not None:
        wrong = f"  the grouping is not refused, but should be, with {scenario.fails!r}"
        return Run(verdict(scenario, mode, [wrong]))
    steps = scenario.steps(mode)
    steps = (_in_order_of_time(steps),) if mode == "batch" else steps
    played: list[Played] = []
    wrong_lines = [*_played(Player(machine, mode), steps, cut, scenario.in_written_order, played)]
    events = tuple(event for step in steps for event in step.events)
    return Run(verdict(scenario, mode, wrong_lines), events, tuple(played), steps[-1].ends_input)


def _played(
    player: Player, steps: Sequence[Step], cut: bool, in_written_order: bool, into: list[Played]
) -> Iterator[str]:
    """Plays steps, adds what comes out, and gives lines that tell what is wrong with it."""
    for step in steps:
        played: list[Played] = []
        for event in step.events:
            played += player.play(event)
            if cut:
                player.cut()
        if step.ends_input:
            played += player.finish()
        into += played
        found = differences(step, played, in_written_order)
        if step.hold is not None and step.hold.micros != player.hold_micros:
            held = hold_text(player.hold_micros)
            found.append(f"wrong hold: {hold_text(step.hold.micros)} is written, but there is {held}")
        if found:
            yield f"  at {step.place}: {step.text}"
            yield from (f"    {line}" for line in found)


def _in_order_of_time(steps: Sequence[Step]) -> Step:
    """One step for all: a batch takes its elements in order of event time, and gives everything at its end."""
    events = [event for step in steps for event in step.events]
    elements = [event for event in events if isinstance(event, Arrive)]
    elements.sort(key=lambda element: element.timestamp_micros)
    return replace(steps[-1], events=tuple(elements))
