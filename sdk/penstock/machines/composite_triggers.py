"""Triggers that consist of others, as state machines."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.machines.records import Element
from penstock.machines.simple_triggers import AfterCountMachine, AlwaysMachine
from penstock.machines.trigger_machine import Alarm, TriggerMachine, WindowStatus, select_unfinished
from penstock.windows.triggers import FINISHED


@dataclass(frozen=True)
class RepeatedlyMachine(TriggerMachine):
    """Starts a trigger again whenever it has finished (paper's ``Repeat``, Beam's ``Repeatedly``)."""

    part: TriggerMachine

    def __post_init__(self) -> None:
        _set_traits(
            self, self.part.heeds_elements, self.part.fires_on_elements, self.part.tells_one_from_many
        )
        for told in ("start", "element", "merge", "signal", "wake", "alarms"):
            object.__setattr__(self, told, getattr(self.part, told))

    def should_fire(self, state: object, status: WindowStatus) -> bool:
        return self.part.should_fire(state, status)

    def fire(self, state: object, status: WindowStatus) -> object:
        fired = self.part.fire(state, status)
        return self.part.start() if self.part.is_finished(fired) else fired

    def is_finished(self, state: object) -> bool:
        return False


@dataclass(frozen=True)
class AfterWatermarkMachine(TriggerMachine):
    """One trigger until the watermark passes the end of the window, one firing then, and another trigger after it.

    The state is a pair: whether the end has passed, and the state of the active trigger (Beam's ``AfterWatermark`` with
    ``early`` and ``late``; `NeverMachine` stands for a missing early one).
    """

    early: TriggerMachine
    late: TriggerMachine | None

    def __post_init__(self) -> None:
        heeds = self.early.heeds_elements or (self.late is not None and self.late.heeds_elements)
        tells = self.early.tells_one_from_many or _tells_one_from_many_late(self.late)
        _set_traits(self, heeds, self.early.fires_on_elements, tells)

    def _at_work(self, state: tuple[bool, Any]) -> TriggerMachine:
        return self.late if state[0] and self.late is not None else self.early

    def start(self) -> tuple[bool, Any]:
        return False, self.early.start()

    def element(self, state: tuple[bool, Any], element: Element, status: WindowStatus) -> tuple[bool, Any]:
        return state[0], self._at_work(state).element(state[1], element, status)

    def merge(self, states: Sequence[Any], status: WindowStatus) -> Any:
        """Returns a late state if all states are late and the merged window has also ended; otherwise an early one."""
        if all(state is FINISHED or state[0] for state in states) and status.is_past_end:
            late = [state[1] for state in select_unfinished(states)]
            return (True, self.late.merge(late, status)) if late and self.late is not None else FINISHED
        early = [state[1] for state in select_unfinished(states) if not state[0]]
        return False, self.early.merge(early, status) if early else self.early.start()

    def signal(self, state: tuple[bool, Any], name: str) -> tuple[bool, Any]:
        return state[0], self._at_work(state).signal(state[1], name)

    def wake(self, state: tuple[bool, Any], status: WindowStatus) -> tuple[bool, Any]:
        return state[0], self._at_work(state).wake(state[1], status)

    def should_fire(self, state: tuple[bool, Any], status: WindowStatus) -> bool:
        return (not state[0] and status.is_past_end) or self._at_work(state).should_fire(state[1], status)

    def fire(self, state: tuple[bool, Any], status: WindowStatus) -> object:
        """Starts the late trigger when the window fires at its end; without a late trigger, finishes."""
        is_late, part = state
        if not is_late and status.is_past_end:
            return FINISHED if self.late is None else (True, self.late.start())
        return is_late, self._at_work(state).fire(part, status)

    def alarms(self, state: tuple[bool, Any], status: WindowStatus) -> Iterable[Alarm]:
        return self._at_work(state).alarms(state[1], status)


@dataclass(frozen=True)
class _Parts(TriggerMachine):
    """A trigger of several parts. Its state is the tuple of the parts' states."""

    parts: tuple[TriggerMachine, ...]

    def __post_init__(self) -> None:
        heeds = any(part.heeds_elements for part in self.parts)
        fires = self._of_parts([part.fires_on_elements for part in self.parts])
        _set_traits(self, heeds, fires, any(part.tells_one_from_many for part in self.parts))

    @abstractmethod
    def _of_parts(self, answers: Iterable[bool]) -> bool:
        """Combines the answers of the parts."""

    def start(self) -> tuple[Any, ...]:
        return tuple(part.start() for part in self.parts)

    def _active(self, state: tuple[Any, ...]) -> Iterator[int]:
        """Yields the numbers of the parts that see elements and decide: here, the unfinished ones."""
        return (number for number, part in enumerate(self.parts) if not part.is_finished(state[number]))

    def element(self, state: tuple[Any, ...], element: Element, status: WindowStatus) -> tuple[Any, ...]:
        states = list(state)
        for number in self._active(state):
            states[number] = self.parts[number].element(state[number], element, status)
        return tuple(states)

    def merge(self, states: Sequence[Any], status: WindowStatus) -> tuple[Any, ...]:
        return tuple(
            part.merge([state[number] for state in states], status) for number, part in enumerate(self.parts)
        )

    def signal(self, state: tuple[Any, ...], name: str) -> tuple[Any, ...]:
        states = list(state)
        for number in self._active(state):
            states[number] = self.parts[number].signal(state[number], name)
        return tuple(states)

    def wake(self, state: tuple[Any, ...], status: WindowStatus) -> tuple[Any, ...]:
        states = list(state)
        for number in self._active(state):
            states[number] = self.parts[number].wake(state[number], status)
        return tuple(states)

    def should_fire(self, state: tuple[Any, ...], status: WindowStatus) -> bool:
        return self._of_parts(
            self.parts[number].should_fire(state[number], status) for number in self._active(state)
        )

    def is_finished(self, state: tuple[Any, ...]) -> bool:
        return self._of_parts(part.is_finished(one) for part, one in zip(self.parts, state, strict=True))

    def fire(self, state: tuple[Any, ...], status: WindowStatus) -> tuple[Any, ...]:
        """Fires every active part that would fire alone."""
        states = list(state)
        for number in self._active(state):
            if self.parts[number].should_fire(state[number], status):
                states[number] = self.parts[number].fire(state[number], status)
        return tuple(states)

    def alarms(self, state: tuple[Any, ...], status: WindowStatus) -> Iterable[Alarm]:
        for number in self._active(state):
            yield from self.parts[number].alarms(state[number], status)


@dataclass(frozen=True)
class AfterAnyMachine(_Parts):
    """Fires when any part does, and finishes when any has (Beam's ``AfterAny`` and ``OrFinally``)."""

    def _of_parts(self, answers: Iterable[bool]) -> bool:
        return any(answers)


@dataclass(frozen=True)
class AfterAllMachine(_Parts):
    """Fires when all parts would, or have finished before; finishes when all have (Beam's ``AfterAll``)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        # One part may wait only for elements of one window, and the others for elements of another: then the element
        # that merges the windows fires the trigger.
        _set_traits(self, self.heeds_elements, self.fires_on_elements, tells_one_from_many=True)

    def _of_parts(self, answers: Iterable[bool]) -> bool:
        return all(answers)


@dataclass(frozen=True)
class AfterEachMachine(AfterAllMachine):
    """Parts one after the other: only the first that is not finished is active (Beam's ``AfterEach``)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        # If an element fires one part, the next element belongs to the next part.
        _set_traits(self, self.heeds_elements, self.parts[0].fires_on_elements, tells_one_from_many=True)

    def _active(self, state: tuple[Any, ...]) -> Iterator[int]:
        for number, part in enumerate(self.parts):
            if not part.is_finished(state[number]):
                yield number
                return

    def merge(self, states: Sequence[Any], status: WindowStatus) -> tuple[Any, ...]:
        """Goes back to the first part that is not finished everywhere; those after it start again."""
        merged = super().merge(states, status)
        active = next(self._active(merged), len(merged))
        return merged[: active + 1] + tuple(part.start() for part in self.parts[active + 1 :])


def _tells_one_from_many_late(late: TriggerMachine | None) -> bool:
    """True if a trigger tells one late element from many: not if one is enough to fire it."""
    match late:
        case None | AlwaysMachine() | AfterCountMachine(0 | 1, None):
            return False
        case RepeatedlyMachine(part):
            return _tells_one_from_many_late(part)
    return late.tells_one_from_many


def _set_traits(
    machine: TriggerMachine, heeds_elements: bool, fires_on_elements: bool, tells_one_from_many: bool
) -> None:
    object.__setattr__(machine, "heeds_elements", heeds_elements)
    object.__setattr__(machine, "fires_on_elements", fires_on_elements)
    object.__setattr__(machine, "tells_one_from_many", tells_one_from_many)
