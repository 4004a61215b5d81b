"""The body of a scenario: its steps, and their output in each engine mode."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.machines.records import EndMicroBatch, Event
from penstock_conformance.blocks import Line
from penstock_conformance.lines import event_of, expected_of, hold_of
from penstock_conformance.malformed import Malformed
from penstock_conformance.moments import TIME_PATTERN, micros_of
from penstock_conformance.scenario import MODES, Part, Step

_TIME = re.compile(rf"at ({TIME_PATTERN})(?: within ({TIME_PATTERN}))?")
_OTHER_MODES = re.compile(r"in (\w+(?:, \w+)*):")
_END = "end of input"


@dataclass
class _Unfinished:
    """A part while its lines are read."""

    place: str
    modes: tuple[str, ...]
    steps: list[Step]
    by_time: bool  # Whether its panes are below processing times, and not below the events that cause them.
    time: tuple[int, int] | None = (
        None  # The processing time of the next panes, with a tolerance, in microseconds.
    )

    def read(self, line: Line) -> None:
        if line.text.startswith("-> "):
            self._expect(line.text[3:].strip())
        elif hold := hold_of(line.text):
            self.steps[-1] = replace(self._last(), hold=hold)
        elif line.text == _END:
            self.time = None
            self.steps.append(Step(line.text, line.place, ends_input=True))
        elif match := _TIME.fullmatch(line.text):
            if not self.by_time:
                raise Malformed(f"{line.text!r} needs recorded input", hint="name it in the setting `input`")
            self.time = micros_of(match[1]), micros_of(match[2] or "0")
        elif self.by_time:
            hint = f"write panes of recorded input below `at TIME` or `{_END}`"
            raise Malformed(f"{line.text!r} is out of place", hint=hint)
        else:
            self.steps.append(Step(line.text, line.place, (event_of(line.text),)))

    def _expect(self, text: str) -> None:
        expected = expected_of(text)
        if self.time:
            clock_micros, tolerance_micros = self.time
            expected = replace(expected, clock_micros=clock_micros, tolerance_micros=tolerance_micros)
        elif self.by_time and not self._last().ends_input:
            raise Malformed(f"{text!r} has no time", hint=f"write `at TIME` or `{_END}` above it")
        self.steps[-1] = replace(self._last(), expected=(*self._last().expected, expected))

    def _last(self) -> Step:
        if not self.steps:
            raise Malformed("nothing has happened yet", hint="write a pane below the event that causes it")
        return self.steps[-1]

    def finished(self) -> Part:
        """The part, if each of its modes can be played."""
        events = [event for step in self.steps for event in step.events]
        if any(step.ends_input for step in self.steps[:-1]):
            what = f"the part has lines after `{_END}`"
            raise Malformed(what, hint=f"move them above `{_END}`", place=self.place)
        if "batch" in self.modes and not self.steps[-1].ends_input:
            raise Malformed("a batch must end", hint=f"write `{_END}`", place=self.place)
        if "batch" in self.modes and any(step.expected or step.hold for step in self.steps[:-1]):
            hint = f"move its panes below `{_END}`"
            raise Malformed("a batch emits everything at its end", hint=hint, place=self.place)
        if "micro_batch" in self.modes and not any(isinstance(event, EndMicroBatch) for event in events):
            raise Malformed("a micro-batch must end", hint="write `end of round`", place=self.place)
        return Part(self.modes, tuple(self.steps))


def parts_of(
    lines: Sequence[Line], modes: tuple[str, ...], recorded: tuple[Event, ...] | None, place: str
) -> tuple[Part, ...]:
    """The parts of a scenario, from its lines below the settings without blank ones.

    `modes` are the modes of the first part; `recorded` are the events of the recordings that it names, or None.
    """
    parts = [_Unfinished(place, modes, [], recorded is not None)]
    if recorded is not None:
        parts[0].steps.append(Step("the recorded input", place, recorded))
    for line in lines:
        try:
            if match := _OTHER_MODES.fullmatch(line.text):
                parts.append(_other_modes(line, modes_of(match[1]), parts[0].steps))
            else:
                parts[-1].read(line)
        except Malformed as error:
            raise error.at(line.place) from None
    if not parts[0].steps:
        raise Malformed("the scenario has no events", hint="write events, or name an `input`", place=place)
    all_modes = [mode for part in parts for mode in part.modes]
    if len(set(all_modes)) < len(all_modes):
        what = f"an engine mode occurs twice among {', '.join(all_modes)}"
        raise Malformed(what, hint="keep one part for each mode", place=place)
    return tuple(part.finished() for part in parts)


def _other_modes(line: Line, modes: tuple[str, ...], steps: Sequence[Step]) -> _Unfinished:
    """A part with the same events; a batch emits everything at its end."""
    same = Step("the same input", line.place, tuple(event for step in steps for event in step.events))
    part = _Unfinished(line.place, modes, [same], by_time=True)
    if "batch" in modes:
        part.steps.append(Step(_END, line.place, ends_input=True))
    return part


def modes_of(text: str) -> tuple[str, ...]:
    """The engine modes of a list of their names."""
    modes = tuple(mode.strip() for mode in text.split(","))
    for mode in modes:
        if mode not in MODES:
            raise Malformed(f"the engine mode {mode!r} is unknown", hint=f"use one of {', '.join(MODES)}")
    return modes
