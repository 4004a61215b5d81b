"""Triggers of the model: a tree of small objects for each window, whose quirks are Beam's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.beam.beam_programs import SECOND, Make
from tests.beam.beam_quirks import Quirk

Span = tuple[int, int]


@dataclass
class Moment:
    """When and where a trigger is asked.

    Attributes:
        window: Where it begins and ends.
        watermark: As far as the trigger is told.
        now: Processing time.
        due: What waits for the clock until then is due.
        by_clock: Whether a timer of the clock is the reason.
        quirks: Those that are on.
        set_timer: Called with a name, whether it is of the clock, and a time.
        clear_timer: Called with the name of a timer of the watermark.
    """

    window: Span
    watermark: int
    now: int
    due: int
    by_clock: bool
    quirks: frozenset[Quirk]
    set_timer: Callable[[str, bool, int], None]
    clear_timer: Callable[[str], None]

    @property
    def is_past_end(self) -> bool:
        return self.watermark >= self.window[1]


class Trigger:
    """The state of a trigger in one window."""

    finished = False
    on_time = False

    def __init__(self, name: str) -> None:
        self.name = name

    def element(self, at: Moment) -> None:
        """An element has come."""

    def should_fire(self, at: Moment) -> bool:
        """True if it fires now."""
        raise NotImplementedError

    def fire(self, at: Moment) -> bool:
        """It fires; whether it has finished by that."""
        raise NotImplementedError

    def reset(self, at: Moment) -> None:
        """As if it were new."""
        self.finished = False

    def unite(self, others: Sequence[Any], at: Moment) -> None:
        """Several have become one: `others` and this one, which is among them."""

    def merged(self, at: Moment, sources: Sequence[Span]) -> None:
        """Its window is the result of a merge: Beam clears timers here."""

    def dues(self, quirks: frozenset[Quirk]) -> Iterator[int]:
        """What it waits for by the clock."""
        return iter(())


class Always(Trigger):
    def should_fire(self, at: Moment) -> bool:
        return True

    def fire(self, at: Moment) -> bool:
        return False


class Never(Trigger):
    def should_fire(self, at: Moment) -> bool:
        return False

    def fire(self, at: Moment) -> bool:
        return True


class Count(Trigger):
    def __init__(self, name: str, enough: int) -> None:
        super().__init__(name)
        self.enough, self.count = enough, 0

    def element(self, at: Moment) -> None:
        self.count += 1

    def should_fire(self, at: Moment) -> bool:
        return self.count >= self.enough

    def fire(self, at: Moment) -> bool:
        return True

    def reset(self, at: Moment) -> None:
        self.finished, self.count = False, 0

    def unite(self, others: Sequence[Count], at: Moment) -> None:
        waiting = (
            others if Quirk.MERGES_TRIGGERS in at.quirks else [one for one in others if not one.finished]
        )
        self.finished, self.count = not waiting, sum(one.count for one in waiting)


class Clock(Trigger):
    def __init__(self, name: str, delay: int) -> None:
        super().__init__(name)
        self.delay = delay * SECOND
        self.due: int | None = None

    def element(self, at: Moment) -> None:
        if self.due is None:
            self.due = at.now + self.delay
            at.set_timer(self.name, True, self.due)

    def should_fire(self, at: Moment) -> bool:
        if Quirk.CLOCK_UNREAD in at.quirks:
            return at.by_clock
        return self.due is not None and self.due <= at.due

    def fire(self, at: Moment) -> bool:
        return True

    def reset(self, at: Moment) -> None:
        self.finished, self.due = False, None

    def unite(self, others: Sequence[Clock], at: Moment) -> None:
        waiting = (
            others if Quirk.MERGES_TRIGGERS in at.quirks else [one for one in others if not one.finished]
        )
        self.finished = not waiting
        self.due = min((one.due for one in waiting if one.due is not None), default=None)

    def dues(self, quirks: frozenset[Quirk]) -> Iterator[int]:
        if self.due is not None:
            yield self.due


class Default(Trigger):
    on_time = True

    def element(self, at: Moment) -> None:
        at.set_timer(f"{self.name} {at.window}", False, at.window[1])

    def should_fire(self, at: Moment) -> bool:
        if at.is_past_end:
            at.clear_timer(f"{self.name} {at.window}")
        return at.is_past_end

    def fire(self, at: Moment) -> bool:
        return False

    def reset(self, at: Moment) -> None:
        at.clear_timer(f"{self.name} {at.window}")

    def merged(self, at: Moment, sources: Sequence[Span]) -> None:
        for window in sources:
            at.clear_timer(f"{self.name} {window}")


class EndOfWindow(Trigger):
    """With early and late firings, or without."""

    on_time = True

    def __init__(self, name: str, early: Trigger | None, late: Trigger | None) -> None:
        super().__init__(name)
        self.early, self.late = early, late
        self.is_late = False

    def _at_work(self) -> Trigger | None:
        return self.late if self.is_late else self.early

    def element(self, at: Moment) -> None:
        if not self.is_late:
            at.set_timer(self.name, False, at.window[1])
        if (part := self._at_work()) is not None:
            part.element(at)

    def should_fire(self, at: Moment) -> bool:
        if not self.is_late and at.is_past_end:
            at.clear_timer(self.name)
            return True
        part = self._at_work()
        return part is not None and part.should_fire(at)

    def fire(self, at: Moment) -> bool:
        if not self.is_late and at.is_past_end:
            self.is_late = self.late is not None
            return not self.is_late
        part = self._at_work()
        return part is not None and part.fire(at) and False

    def reset(self, at: Moment) -> None:
        self.finished = self.is_late = False
        for part in (self.early, self.late):
            if part is not None:
                part.reset(at)

    def unite(self, others: Sequence[EndOfWindow], at: Moment) -> None:
        late = [one.late for one in others if one.is_late]
        early = [one.early for one in others if not one.is_late and not one.finished]
        if Quirk.MERGES_TRIGGERS in at.quirks:
            self.is_late = bool(late)
            late, early = [one.late for one in others], [one.early for one in others]
        else:
            stays = at.is_past_end and not early
            self.is_late, self.finished = stays and bool(late), stays and not late
        _unite(self.early, early, at)
        _unite(self.late, late, at)

    def merged(self, at: Moment, sources: Sequence[Span]) -> None:
        if not self.is_late and any(end != at.window[1] for _, end in sources):
            at.clear_timer(self.name)
        if (part := self._at_work()) is not None:
            part.merged(at, sources)

    def dues(self, quirks: frozenset[Quirk]) -> Iterator[int]:
        part = self._at_work()
        return iter(()) if part is None else part.dues(quirks)


class Repeat(Trigger):
    def __init__(self, name: str, part: Trigger) -> None:
        super().__init__(name)
        self.part = part
        self.on_time = part.on_time

    def element(self, at: Moment) -> None:
        self.part.element(at)

    def should_fire(self, at: Moment) -> bool:
        return self.part.should_fire(at)

    def fire(self, at: Moment) -> bool:
        if self.part.fire(at):
            self.part.reset(at)
        return False

    def reset(self, at: Moment) -> None:
        self.part.reset(at)

    def unite(self, others: Sequence[Repeat], at: Moment) -> None:
        _unite(self.part, [one.part for one in others], at)

    def merged(self, at: Moment, sources: Sequence[Span]) -> None:
        self.part.merged(at, sources)

    def dues(self, quirks: frozenset[Quirk]) -> Iterator[int]:
        return self.part.dues(quirks)


class Parts(Trigger):
    """Of several at a time: any, or all."""

    def __init__(
        self, name: str, parts: Sequence[Trigger], of_parts: Callable[[Iterable[bool]], bool]
    ) -> None:
        super().__init__(name)
        self.parts, self.of_parts = parts, of_parts
        self.on_time = any(part.on_time for part in parts)

    def active(self, quirks: frozenset[Quirk]) -> Iterator[Trigger]:
        return (part for part in self.parts if Quirk.PARTS_FORGET in quirks or not part.finished)

    def element(self, at: Moment) -> None:
        for part in self.active(at.quirks):
            part.element(at)

    def should_fire(self, at: Moment) -> bool:
        return self.of_parts(part.should_fire(at) for part in self.active(at.quirks))

    def fire(self, at: Moment) -> bool:
        by_clock, at.by_clock = at.by_clock, False
        fired = [part for part in self.active(at.quirks) if part.should_fire(at)]
        for part in fired:
            part.finished = part.fire(at)
        at.by_clock = by_clock
        asked = fired if Quirk.PARTS_FORGET in at.quirks else self.parts
        return self.of_parts([part.finished for part in asked])

    def reset(self, at: Moment) -> None:
        self.finished = False
        for part in self.parts:
            part.reset(at)

    def unite(self, others: Sequence[Parts], at: Moment) -> None:
        for number, part in enumerate(self.parts):
            _unite(part, [one.parts[number] for one in others], at)
        self.finished = self.of_parts([part.finished for part in self.parts])

    def merged(self, at: Moment, sources: Sequence[Span]) -> None:
        for part in self.active(at.quirks):
            part.merged(at, sources)

    def dues(self, quirks: frozenset[Quirk]) -> Iterator[int]:
        for part in self.active(quirks):
            yield from part.dues(quirks)


class InTurn(Parts):
    """One after the other; `turn` is the number of the one whose turn it is."""

    def __init__(self, name: str, parts: Sequence[Trigger]) -> None:
        super().__init__(name, parts, all)
        self.turn = 0

    def active(self, quirks: frozenset[Quirk]) -> Iterator[Trigger]:
        return iter(self.parts[self.turn : self.turn + 1])

    def should_fire(self, at: Moment) -> bool:
        return any(part.should_fire(at) for part in self.active(at.quirks))

    def fire(self, at: Moment) -> bool:
        for part in self.active(at.quirks):
            part.finished = part.fire(at)
            self.turn += part.finished
        return self.turn == len(self.parts)

    def reset(self, at: Moment) -> None:
        super().reset(at)
        self.turn = 0

    def unite(self, others: Sequence[InTurn], at: Moment) -> None:
        super().unite(others, at)
        if Quirk.MERGES_TRIGGERS in at.quirks:
            self.turn = max(one.turn for one in others)
            return
        unfinished = (number for number, part in enumerate(self.parts) if not part.finished)
        self.turn = next(unfinished, len(self.parts))
        for part in self.parts[self.turn + 1 :]:
            part.reset(at)
        self.finished = self.turn == len(self.parts)


def _unite(part: Trigger | None, others: Sequence[Trigger | None], at: Moment) -> None:
    if part is None:
        return
    if others:
        part.unite(others, at)
    else:
        part.reset(at)


def trigger_of(make: Make, name: str = "") -> Trigger:
    """The trigger of a new window; names are those that its timers have in Beam, or as good."""
    parts = make.arguments
    nested = [
        trigger_of(part, f"{name}/{place}") for place, part in enumerate(parts) if isinstance(part, Make)
    ]
    match make.name:
        case "AfterCount":
            return Count(name, *parts)
        case "AfterProcessingTime":
            return Clock(name, *parts)
        case "AfterWatermark":
            early, late = parts or (None, None)
            return EndOfWindow(name, _repeated(early, f"{name}/e"), _repeated(late, f"{name}/l"))
        case "AfterAny" | "OrFinally":
            return Parts(name, nested, any)
        case "AfterAll":
            return Parts(name, nested, all)
        case "AfterEach":
            return InTurn(name, nested)
        case "Repeatedly":
            return Repeat(name, *nested)
        case "DefaultTrigger":
            return Default(name)
        case "Always":
            return Always(name)
        case "_Never":
            return Never(name)
    raise ValueError(f"the model has no trigger {make.name}")


def _repeated(make: Make | None, name: str) -> Trigger | None:
    return (
        None
        if make is None
        else trigger_of(make if make.name == "Repeatedly" else Make("Repeatedly", make), name)
    )
