"""The recordings of the transcripts, and others made by hand, for tests of drawings."""

from __future__ import annotations

from functools import cache

from penstock.machines.grouping import GroupingMachine
from penstock.machines.reference_engine import play
from penstock_conformance.parsing import load
from penstock_conformance.programs import program_of
from penstock_figures import RecordedInput, Recording, recording_of_played

SECOND = 1_000_000


@cache
def transcripts() -> dict[tuple[str, str], Recording]:
    """The recordings of all transcripts that can be played, by title and mode."""
    found = {}
    for scenario in load():
        if not scenario.place.startswith("must_fail"):
            program = program_of(scenario)
            for mode in scenario.modes:
                steps = scenario.steps(mode)
                events = [event for step in steps for event in step.events]
                ends = any(step.ends_input for step in steps)
                machine = GroupingMachine(program.windowing, program.combine, program.input_retracts)
                played = play(machine, events, mode, finish=ends)
                found[scenario.title, mode] = recording_of_played(
                    events, played, title=scenario.title, mode=mode, ends_input=ends
                )
    return found


def figure(number: int, mode: str = "streaming") -> Recording:
    """A figure of the paper."""
    return next(
        recording
        for (title, of_mode), recording in transcripts().items()
        if title.startswith(f"Paper, figure {number}:") and of_mode == mode
    )


def of_inputs(*inputs: tuple[float, float, str]) -> Recording:
    """A recording of elements: event times and processing times in seconds, and values."""
    elements = [
        RecordedInput(round(event * SECOND), round(clock * SECOND), "", value)
        for event, clock, value in inputs
    ]
    return Recording("elements", tuple(elements), (), ())
