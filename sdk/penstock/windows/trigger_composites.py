"""Triggers made of other triggers: loops, choices, conjunctions and sequences."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.error import three_parts
from penstock.windows.trigger_base import DataLossReason, HasLateness, TriggerFn, check_triggers


@dataclass(frozen=True, repr=False)
class Repeatedly(TriggerFn):
    """Another trigger over and over, without end (Beam's ``Repeatedly``).

    Raises:
        TypeError: `underlying` is not a trigger.
    """

    underlying: TriggerFn

    def __post_init__(self) -> None:
        check_triggers("Repeatedly", (self.underlying,))

    def has_ontime_pane(self) -> bool:
        """As the trigger that is repeated."""
        return self.underlying.has_ontime_pane()

    def get_continuation_trigger(self) -> TriggerFn:
        """The continuation of the trigger that is repeated, repeated."""
        return Repeatedly(self.underlying.get_continuation_trigger())


@dataclass(frozen=True, init=False, repr=False)
class _Composite(TriggerFn):
    triggers: tuple[TriggerFn, ...]

    def __init__(self, *triggers: TriggerFn) -> None:
        name = type(self).__name__
        if not triggers:
            hint = f"write it like {name}(AfterCount(100), AfterProcessingTime(60))"
            raise ValueError(three_parts(f"{name} has no triggers", hint=hint))
        check_triggers(name, triggers)
        object.__setattr__(self, "triggers", triggers)

    def _may_finish(self, windowing: HasLateness) -> list[bool]:
        reasons = (trigger.may_lose_data(windowing) for trigger in self.triggers)
        return [DataLossReason.MAY_FINISH in reason for reason in reasons]

    def has_ontime_pane(self) -> bool:
        return any(trigger.has_ontime_pane() for trigger in self.triggers)

    def _continuations(self) -> list[TriggerFn]:
        return [trigger.get_continuation_trigger() for trigger in self.triggers]

    def get_continuation_trigger(self) -> TriggerFn:
        """The same with the continuations of its parts."""
        return type(self)(*self._continuations())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.triggers))})"


@dataclass(frozen=True, init=False, repr=False)
class AfterAny(_Composite):
    """When any of its parts fires; finishes when any does (Beam's ``AfterAny``).

    Raises:
        ValueError: It has no parts.
        TypeError: A part is not a trigger.

    >>> from penstock.transforms.trigger import AfterCount, AfterProcessingTime
    >>> AfterAny(AfterCount(5), AfterProcessingTime(60))
    AfterAny(AfterCount(5), AfterProcessingTime(60))
    """

    def may_lose_data(self, windowing: HasLateness) -> DataLossReason:
        """It finishes if any part does."""
        return _finishes(any(self._may_finish(windowing)))


@dataclass(frozen=True, init=False, repr=False)
class AfterAll(_Composite):
    """When all of its parts have fired; finishes when all have (Beam's ``AfterAll``).

    Raises:
        ValueError: It has no parts.
        TypeError: A part is not a trigger.
    """

    def may_lose_data(self, windowing: HasLateness) -> DataLossReason:
        """It finishes if all parts do."""
        return _finishes(all(self._may_finish(windowing)))


@dataclass(frozen=True, init=False, repr=False)
class AfterEach(_Composite):
    """Each of its parts in turn, the next one once the one before has finished (Beam's ``AfterEach``).

    Raises:
        ValueError: It has no parts.
        TypeError: A part is not a trigger.
    """

    def may_lose_data(self, windowing: HasLateness) -> DataLossReason:
        """It finishes if all parts do."""
        return _finishes(all(self._may_finish(windowing)))

    def get_continuation_trigger(self) -> TriggerFn:
        """Any continuation of its parts, repeatedly: which part has fired is not known downstream."""
        return Repeatedly(AfterAny(*self._continuations()))


@dataclass(frozen=True, init=False, repr=False)
class OrFinally(AfterAny):
    """A main trigger, until a final one fires and ends it (Beam's ``OrFinally``).

    Raises:
        ValueError: There are not exactly two parts.
        TypeError: A part is not a trigger.

    >>> from penstock.transforms.trigger import AfterCount, AfterProcessingTime
    >>> OrFinally(Repeatedly(AfterCount(5)), AfterProcessingTime(3600)).has_ontime_pane()
    False
    """

    def __init__(self, *triggers: TriggerFn) -> None:
        if len(triggers) != 2:
            what = f"OrFinally has {len(triggers)} triggers instead of 2"
            raise ValueError(three_parts(what, hint="write it like OrFinally(main, final)"))
        super().__init__(*triggers)


def _finishes(may_finish: bool) -> DataLossReason:
    return DataLossReason.MAY_FINISH if may_finish else DataLossReason.NO_POTENTIAL_LOSS
