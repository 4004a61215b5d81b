"""The content of a transcript as plain values: scenarios, their parts, steps and expectations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.elements.bounded_window import BoundedWindow
from penstock.machines.records import DropReason, Event
from penstock.utils.windowed_value import ValueKind

MODES = ("streaming", "micro_batch", "batch")


@dataclass(frozen=True, slots=True)
class ExpectedPane:
    """An expected pane; fields that are None are not compared."""

    text: str
    value: object
    key: str | None
    window: BoundedWindow
    is_retraction: bool = False
    kind: ValueKind | None = None
    timing: int | None = None  # A constant of `PaneInfoTiming`.
    is_first: bool | None = None
    is_last: bool | None = None
    index: int | None = None
    nonspeculative_index: int | None = None
    timestamp_micros: int | None = None
    clock_micros: int | None = None
    tolerance_micros: int = 0


@dataclass(frozen=True, slots=True)
class ExpectedDrop:
    """An element that a window must refuse; fields that are None are not compared."""

    text: str
    value: object
    key: str | None
    window: BoundedWindow | None = None
    reason: DropReason | None = None
    clock_micros: int | None = None
    tolerance_micros: int = 0


Expected = ExpectedPane | ExpectedDrop


@dataclass(frozen=True, slots=True)
class ExpectedHold:
    """The expected hold of the output watermark after a step; None for no hold."""

    micros: int | None


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happens, and all of its output."""

    text: str
    place: str
    events: tuple[Event, ...] = ()
    ends_input: bool = False
    expected: tuple[Expected, ...] = ()
    hold: ExpectedHold | None = None  # None if it is not compared.


@dataclass(frozen=True, slots=True)
class Part:
    """The steps of a scenario, in order of time, in some of the engine modes."""

    modes: tuple[str, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One grouping, its input and its output."""

    title: str
    place: str  # The file, relative to the folder of transcripts, and the line.
    source: str  # Where the expectation comes from.
    names: tuple[str, ...]  # The figures and rules that it shows, in the form of `citations`.
    settings: Mapping[str, str]  # As text by name; `programs.program_of` interprets them.
    parts: tuple[Part, ...]  # The steps, with different expectations for different modes.
    in_written_order: bool = False  # Whether the order of a step's panes counts, not only of replaced ones.
    fails: str | None = None  # A text in the error, if the settings must be refused.
    unmet: str | None = None  # A text in the report, if the expectations must not be met: tests the harness.

    @property
    def modes(self) -> tuple[str, ...]:
        """The engine modes in which it can be played; one mode if the grouping is refused anyway."""
        return tuple(mode for part in self.parts for mode in part.modes) or MODES[:1]

    def steps(self, mode: str) -> tuple[Step, ...]:
        return next((part.steps for part in self.parts if mode in part.modes), ())
