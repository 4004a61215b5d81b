"""What a transcript says, as plain values: scenarios, their parts, steps and expectations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.base.bounded_window import BoundedWindow
from penstock.machines.records import DropReason, Event
from penstock.utils.windowed_value import ValueKind

MODES = ("streaming", "micro_batch", "batch")


@dataclass(frozen=True, slots=True)
class ExpectedPane:
    """A pane that must come out; what is None is not compared.

    Attributes:
        text: As the transcript writes it.
        value: Its value; the order of a list does not count.
        key: The key it is of.
        window: The window it is of.
        is_retraction: Whether it takes its value back.
        kind: Which of the four kinds exactly.
        timing: A constant of `PaneInfoTiming`.
        is_first: Whether it is the first of its window.
        is_last: Whether it is the last of its window.
        index: Its number among the panes of its window.
        nonspeculative_index: Its number among those that are not early.
        timestamp_micros: Its event time.
        clock_micros: The processing time at which it comes.
        tolerance_micros: How far from that it may come.
    """

    text: str
    value: Any
    key: str | None
    window: BoundedWindow
    is_retraction: bool = False
    kind: ValueKind | None = None
    timing: int | None = None
    is_first: bool | None = None
    is_last: bool | None = None
    index: int | None = None
    nonspeculative_index: int | None = None
    timestamp_micros: int | None = None
    clock_micros: int | None = None
    tolerance_micros: int = 0


@dataclass(frozen=True, slots=True)
class ExpectedDrop:
    """An element that a window must refuse; what is None is not compared.

    Attributes:
        text: As the transcript writes it.
        value: The element's value.
        key: Its key.
        window: The window that refuses it.
        reason: Why.
        clock_micros: The processing time at which it is dropped.
        tolerance_micros: How far from that it may be.
    """

    text: str
    value: Any
    key: str | None
    window: BoundedWindow | None = None
    reason: DropReason | None = None
    clock_micros: int | None = None
    tolerance_micros: int = 0


Expected = ExpectedPane | ExpectedDrop


@dataclass(frozen=True, slots=True)
class ExpectedHold:
    """How far the output watermark may go after a step.

    Attributes:
        micros: The hold; None where nothing holds it.
    """

    micros: int | None


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happens, and everything that comes out of it.

    Attributes:
        text: As the transcript writes it.
        place: Its file and line.
        events: What happens; several where the expectations are given by processing time.
        ends_input: Whether the input ends here.
        expected: What comes out, and nothing else.
        hold: How far the output watermark may go afterwards; None where that is not compared.
    """

    text: str
    place: str
    events: tuple[Event, ...] = ()
    ends_input: bool = False
    expected: tuple[Expected, ...] = ()
    hold: ExpectedHold | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """The steps of a scenario in some engine modes.

    Attributes:
        modes: Those modes, of `MODES`.
        steps: In order of time.
    """

    modes: tuple[str, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One grouping, what arrives at it, and what comes out.

    Attributes:
        title: What it shows.
        place: The file, relative to the folder of transcripts, and the line.
        source: Where the expectation comes from.
        names: The figures and rules that it shows, as `citations` writes them: those that the source cites, and others.
        settings: The windows, trigger and so on, as text by name; `settings.program_of` builds them.
        parts: The steps, with different expectations for different modes.
        in_written_order: Whether all of a step's panes come in the written order; otherwise only those that
            replace each other do.
        fails: Where the settings must be refused, a text in the error.
        unmet: Where the expectations must not be met, a text in the report: so a harness is tested.
    """

    title: str
    place: str
    source: str
    names: tuple[str, ...]
    settings: Mapping[str, str]
    parts: tuple[Part, ...]
    in_written_order: bool = False
    fails: str | None = None
    unmet: str | None = None

    @property
    def modes(self) -> tuple[str, ...]:
        """The engine modes it can be played in; one of them where the grouping is refused anyway."""
        return tuple(mode for part in self.parts for mode in part.modes) or MODES[:1]

    def steps(self, mode: str) -> tuple[Step, ...]:
        """What happens in an engine mode, and what comes out."""
        return next((part.steps for part in self.parts if mode in part.modes), ())
