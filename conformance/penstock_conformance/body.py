"""The body of a scenario: its steps, and what comes out of them in each engine mode."""

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

_MOMENT = re.compile(rf"at ({TIME_PATTERN})(?: within ({TIME_PATTERN}))?")
_OTHER_MODES = re.compile(r"in (\w+(?:, \w+)*):")
_END = "end of input"


@dataclass
class _Unfinished:
    """A part while its lines are read.

    Attributes:
        place: Where it begins.
        modes: Its engine modes.
        steps: Its steps until now.
        by_moment: Whether its panes are given by processing time, and not below the event that causes them.
        moment: The processing time, with a tolerance, of the panes that follow, in microseconds.
    """

    place: str
    modes: tuple[str, ...]
    steps: list[Step]
    by_moment: bool
    moment: tuple[int, int] | None = None

    def read(self, line: Line) -> None:
        """Understands one line."""
        if line.text.startswith("-> "):
            self._expect(line.text[3:].strip())
        elif hold := hold_of(line.text):
            self.steps[-1] = replace(self._last(), hold=hold)
        elif line.text == _END:
            self.moment = None
            self.steps.append(Step(line.text, line.place, ends_input=True))
        elif match := _MOMENT.fullmatch(line.text):
            if not self.by_moment:
                raise Malformed(f"{line.text!r} needs recorded input", hint="name it in the setting `input`")
            self.moment = micros_of(match[1]), micros_of(match[2] or "0")
        elif self.by_moment:
            hint = f"panes of recorded input are given below `at TIME` or `{_END}`"
            raise Malformed(f"{line.text!r} is out of place", hint=hint)
        else:
            self.steps.append(Step(line.text, line.place, (event_of(line.text),)))

    def _expect(self, text: str) -> None:
        expected = expected_of(text)
        if self.moment:
            clock_micros, tolerance_micros = self.moment
            expected = replace(expected, clock_micros=clock_micros, tolerance_micros=tolerance_micros)
        elif self.by_moment and not self._last().ends_input:
            raise Malformed(
                f"it is not said when {text!r} comes", hint=f"write `at TIME` or `{_END}` above it"
            )
        self.steps[-1] = replace(self._last(), expected=(*self._last().expected, expected))

    def _last(self) -> Step:
        if not self.steps:
            raise Malformed("nothing has happened yet", hint="a pane stands below the event that causes it")
        return self.steps[-1]

    def finished(self) -> Part:
        """The part, if each of its modes can be played."""
        events = [event for step in self.steps for event in step.events]
        if any(step.ends_input for step in self.steps[:-1]):
            raise Malformed(f"something stands after `{_END}`", hint="nothing comes then", place=self.place)
        if "batch" in self.modes and not self.steps[-1].ends_input:
            raise Malformed("a batch must end", hint=f"write `{_END}`", place=self.place)
        if "batch" in self.modes and any(step.expected or step.hold for step in self.steps[:-1]):
            hint = f"move its panes below `{_END}`"
            raise Malformed("a batch gives everything at its end", hint=hint, place=self.place)
        if "micro_batch" in self.modes and not any(isinstance(event, EndMicroBatch) for event in events):
            raise Malformed("a micro-batch must end", hint="write `end of round`", place=self.place)
        return Part(self.modes, tuple(self.steps))


def parts_of(
    lines: Sequence[Line], modes: tuple[str, ...], recorded: tuple[Event, ...] | None, place: str
) -> tuple[Part, ...]:
    """The parts of a scenario.

    Args:
        lines: Its lines below the settings, without blank ones.
        modes: The engine modes of the first part.
        recorded: The events of the recordings it names; None where its own lines tell what happens.
        place: Where it begins.

    Raises:
        Malformed: A line cannot be understood, or a mode cannot be played.
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
        raise Malformed("nothing happens", hint="write what arrives, or name an `input`", place=place)
    all_modes = [mode for part in parts for mode in part.modes]
    if len(set(all_modes)) < len(all_modes):
        raise Malformed(
            "an engine mode is there twice", hint=f"there are {', '.join(all_modes)}", place=place
        )
    return tuple(part.finished() for part in parts)


def _other_modes(line: Line, modes: tuple[str, ...], steps: Sequence[Step]) -> _Unfinished:
    """A part in which the same happens; a batch gives everything at its end."""
    same = Step("the same input", line.place, tuple(event for step in steps for event in step.events))
    part = _Unfinished(line.place, modes, [same], by_moment=True)
    if "batch" in modes:
        part.steps.append(Step(_END, line.place, ends_input=True))
    return part


def modes_of(text: str) -> tuple[str, ...]:
    """The engine modes of a list of their names.

    Raises:
        Malformed: There is no such mode.

    >>> modes_of("batch, streaming")
    ('batch', 'streaming')
    """
    modes = tuple(mode.strip() for mode in text.split(","))
    for mode in modes:
        if mode not in MODES:
            raise Malformed(f"there is no engine mode {mode!r}", hint=f"there are: {', '.join(MODES)}")
    return modes
