"""Triggers: rules for when a grouping emits results.

These are descriptions, which the runner interprets. `docs/triggers.md` shows all triggers in use.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum, Flag, IntEnum
from numbers import Integral, Real
from typing import Any, Final, Protocol

from penstock.error import refusal
from penstock.utils.timestamp import Duration, DurationTypes, Timestamp, TimestampDurationTypes


class AccumulationMode(IntEnum):
    """The relation of a later pane of a window to the earlier ones (Beam's names; the paper's section 2.3).

    `DISCARDING` panes hold what is new, `ACCUMULATING` panes hold everything so far, and `ACCUMULATING_AND_RETRACTING`
    panes also retract the previous pane (in the paper, but not in Beam).

    >>> AccumulationMode.ACCUMULATING == 2
    True
    """

    DISCARDING = 1
    ACCUMULATING = 2
    ACCUMULATING_AND_RETRACTING = 3


class OnTimeBehavior(Enum):
    """The rule for a window without new elements when the watermark passes its end: a pane or none (Beam's names)."""

    FIRE_ALWAYS = 1
    FIRE_IF_NON_EMPTY = 2


class ClosingBehavior(Enum):
    """The rule for a window without new elements when it closes: a last pane or none (Beam's names).

    It closes when the watermark passes its end and the allowed lateness.
    """

    FIRE_ALWAYS = 1
    FIRE_IF_NON_EMPTY = 2


class DataLossReason(Flag):
    """The reason why a trigger may lose data (Beam's names).

    `MAY_FINISH`: the trigger may fire for the last time while data can still arrive. No trigger has the reason
        `CONDITION_NOT_GUARANTEED` any longer.
    """

    NO_POTENTIAL_LOSS = 0
    MAY_FINISH = 1
    CONDITION_NOT_GUARANTEED = 2


class Finished(Enum):
    """The state of a trigger that no longer fires: `FINISHED`, the only member."""

    FINISHED = "finished"


FINISHED: Final = Finished.FINISHED


class HasLateness(Protocol):
    """A windowing, of which triggers need only the time for which a window takes late elements."""

    @property
    def allowed_lateness(self) -> Duration:
        """The time after the window's end for which late elements are accepted."""


class TriggerFn(ABC):
    """A trigger: an immutable description, which equals another one with the same parts (Beam's ``TriggerFn``)."""

    def may_lose_data(self, windowing: HasLateness) -> DataLossReason:
        """Returns whether this trigger may stop firing in `windowing` while data arrives; by default it does not.

        >>> from penstock.transforms.trigger import AfterCount, Repeatedly
        >>> AfterCount(1).may_lose_data(None), Repeatedly(AfterCount(1)).may_lose_data(None)
        (<DataLossReason.MAY_FINISH: 1>, <DataLossReason.NO_POTENTIAL_LOSS: 0>)
        """
        return DataLossReason.NO_POTENTIAL_LOSS

    def has_ontime_pane(self) -> bool:
        """True if every window, even without elements, emits a pane at its end; by default it does not."""
        return False

    @abstractmethod
    def get_continuation_trigger(self) -> TriggerFn:
        """Returns the trigger of the output of a grouping whose input has this trigger.

        >>> from penstock.transforms.trigger import AfterCount, AfterWatermark
        >>> AfterWatermark(early=AfterCount(100)).get_continuation_trigger()
        AfterWatermark(early=AfterCount(1))
        """

    def __repr__(self) -> str:
        return f"{type(self).__name__.lstrip('_')}({', '.join(_arguments(self))})"


class ContinuesItself(TriggerFn):
    """A trigger that the outputs of groupings keep."""

    def get_continuation_trigger(self) -> TriggerFn:
        return self


class FiresOnce(TriggerFn):
    """A trigger that fires once and is then finished; `penstock.transforms.trigger.Repeatedly` restarts it."""

    def may_lose_data(self, windowing: HasLateness) -> DataLossReason:
        return DataLossReason.MAY_FINISH


def check_triggers(owner: str, triggers: tuple[Any, ...]) -> None:
    """Refuses parts of a trigger, named `owner`, that are not triggers."""
    for trigger in triggers:
        if not isinstance(trigger, TriggerFn):
            what = f"{owner} needs a trigger, but got {trigger!r}"
            raise refusal(TypeError, what, hint="pass a trigger such as AfterCount(1), not its class")


def _arguments(trigger: TriggerFn) -> Iterator[str]:
    """Yields the arguments of the constructor call, except for defaults."""
    if not is_dataclass(trigger):
        yield from (f"{name}={show_argument(value)}" for name, value in vars(trigger).items())
        return
    by_name = False
    for each in fields(trigger):
        value = getattr(trigger, each.name)
        if not each.init:
            continue
        if value == each.default:
            by_name = True
        else:
            yield f"{each.name}={show_argument(value)}" if by_name else show_argument(value)


def show_argument(value: object) -> str:
    """Returns an argument as descriptions show it: functions by their names.

    >>> show_argument(len), show_argument("a")
    ('len', "'a'")
    """
    return str(getattr(value, "__name__", None) or repr(value))


@dataclass(frozen=True, repr=False)
class Repeatedly(TriggerFn):
    """A trigger that repeats another one forever (Beam's ``Repeatedly``)."""

    underlying: TriggerFn

    def __post_init__(self) -> None:
        check_triggers("Repeatedly", (self.underlying,))

    def has_ontime_pane(self) -> bool:
        return self.underlying.has_ontime_pane()

    def get_continuation_trigger(self) -> TriggerFn:
        return Repeatedly(self.underlying.get_continuation_trigger())


@dataclass(frozen=True, init=False, repr=False)
class _Composite(TriggerFn):
    triggers: tuple[TriggerFn, ...]

    def __init__(self, *triggers: TriggerFn) -> None:
        name = type(self).__name__
        if not triggers:
            hint = f"write it like {name}(AfterCount(100), AfterProcessingTime(60))"
            raise refusal(ValueError, f"{name} has no triggers", hint=hint)
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
        return type(self)(*self._continuations())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.triggers))})"


@dataclass(frozen=True, init=False, repr=False)
class AfterAny(_Composite):
    """A trigger that fires when any of its parts fires, and finishes when any does (Beam's ``AfterAny``).

    >>> from penstock.transforms.trigger import AfterCount, AfterProcessingTime
    >>> AfterAny(AfterCount(5), AfterProcessingTime(60))
    AfterAny(AfterCount(5), AfterProcessingTime(60))
    """

    def may_lose_data(self, windowing: HasLateness) -> DataLossReason:
        return _finishes(any(self._may_finish(windowing)))


@dataclass(frozen=True, init=False, repr=False)
class AfterAll(_Composite):
    """A trigger that fires when all of its parts have fired, and finishes when all have (Beam's ``AfterAll``)."""

    def may_lose_data(self, windowing: HasLateness) -> DataLossReason:
        return _finishes(all(self._may_finish(windowing)))


@dataclass(frozen=True, init=False, repr=False)
class AfterEach(_Composite):
    """A trigger that runs its parts in turn, each after the previous part has finished (Beam's ``AfterEach``)."""

    def may_lose_data(self, windowing: HasLateness) -> DataLossReason:
        return _finishes(all(self._may_finish(windowing)))

    def get_continuation_trigger(self) -> TriggerFn:
        """Returns any continuation of its parts, repeatedly: later steps do not know which part fired."""
        return Repeatedly(AfterAny(*self._continuations()))


@dataclass(frozen=True, init=False, repr=False)
class OrFinally(AfterAny):
    """A main trigger, until a final one fires and ends it (Beam's ``OrFinally``).

    >>> from penstock.transforms.trigger import AfterCount, AfterProcessingTime
    >>> OrFinally(Repeatedly(AfterCount(5)), AfterProcessingTime(3600)).has_ontime_pane()
    False
    """

    def __init__(self, *triggers: TriggerFn) -> None:
        if len(triggers) != 2:
            what = f"OrFinally has {len(triggers)} triggers instead of 2"
            raise refusal(ValueError, what, hint="write it like OrFinally(main, final)")
        super().__init__(*triggers)


def _finishes(may_finish: bool) -> DataLossReason:
    return DataLossReason.MAY_FINISH if may_finish else DataLossReason.NO_POTENTIAL_LOSS


@dataclass(frozen=True, repr=False)
class DefaultTrigger(ContinuesItself):
    """Fires at the end of the window, and again whenever late data has arrived (Beam's ``DefaultTrigger``).

    Example: ``WindowInto(FixedWindows(60), trigger=DefaultTrigger())`` is the same as no trigger.
    """

    def has_ontime_pane(self) -> bool:
        return True


@dataclass(frozen=True, repr=False)
class Always(ContinuesItself):
    """Fires at every element, forever (Beam's ``Always``).

    Example: ``WindowInto(GlobalWindows(), trigger=Always(), accumulation_mode=AccumulationMode.ACCUMULATING)``.
    """


@dataclass(frozen=True, repr=False)
class Never(ContinuesItself):
    """Fires only when the window closes (Beam's ``_Never``)."""


_Never = Never


@dataclass(frozen=True, repr=False)
class AfterWatermark(TriggerFn):
    """A trigger that fires when the watermark passes the end of the window (Beam's ``AfterWatermark``).

    Args:
        early: The trigger of early panes, repeated until then; None for no early panes.
        late: The trigger for late panes, repeated after that; None for no late panes.

    >>> from penstock.transforms.trigger import AfterCount
    >>> AfterWatermark(late=AfterCount(1)) == AfterWatermark(late=Repeatedly(AfterCount(1)))
    True
    """

    early: TriggerFn | None = None
    late: TriggerFn | None = None

    def __post_init__(self) -> None:
        for name in ("early", "late"):
            trigger = getattr(self, name)
            if trigger is not None and not isinstance(trigger, Repeatedly):
                check_triggers(f"AfterWatermark ({name})", (trigger,))
                object.__setattr__(self, name, Repeatedly(trigger))

    def may_lose_data(self, windowing: HasLateness) -> DataLossReason:
        """Returns `MAY_FINISH` if late data is allowed and there is no `late` trigger."""
        if windowing.allowed_lateness == 0:
            return DataLossReason.NO_POTENTIAL_LOSS
        return DataLossReason.MAY_FINISH if self.late is None else self.late.may_lose_data(windowing)

    def has_ontime_pane(self) -> bool:
        return True

    def get_continuation_trigger(self) -> TriggerFn:
        return AfterWatermark(
            self.early and self.early.get_continuation_trigger(),
            self.late and self.late.get_continuation_trigger(),
        )

    def __repr__(self) -> str:
        parts = [
            f"{name}={trigger.underlying}"
            for name, trigger in (("early", self.early), ("late", self.late))
            if isinstance(trigger, Repeatedly)
        ]
        return f"AfterWatermark({', '.join(parts)})"


@dataclass(frozen=True, repr=False)
class AfterArrival(ContinuesItself, FiresOnce):
    """Fires once for all elements that arrive at one logical time, such as a whole micro-batch (penstock's own).

    `AfterCount(1)` also fires for each of them.

    >>> Repeatedly(AfterArrival())
    Repeatedly(AfterArrival())
    """


@dataclass(frozen=True, repr=False)
class AfterProcessingTime(FiresOnce):
    """Fires once, `delay` seconds of the machine's clock after a pane's first element (Beam's ``AfterProcessingTime``).

    >>> AfterProcessingTime(1.5).delay_micros
    1500000
    """

    # Equal seconds as a number and as a Duration have different hashes, and so the microseconds are compared.
    delay: DurationTypes = field(default=0, compare=False)
    _delay_micros: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_delay_micros", Duration.of(self.delay).micros)
        if self._delay_micros < 0:
            what = f"the delay of AfterProcessingTime is negative: {self.delay!r}"
            raise refusal(ValueError, what, hint="pass seconds, 0 or more")

    @staticmethod
    def aligned_to(period: DurationTypes, offset: TimestampDurationTypes = 0) -> AfterAlignedProcessingTime:
        """Returns an `AfterAlignedProcessingTime` (a name from Beam's Java SDK).

        >>> AfterProcessingTime.aligned_to(3600)
        AfterAlignedProcessingTime(3600)
        """
        return AfterAlignedProcessingTime(period, offset)

    @property
    def delay_micros(self) -> int:
        """The delay."""
        return self._delay_micros

    def get_continuation_trigger(self) -> TriggerFn:
        return AfterSynchronizedProcessingTime()


@dataclass(frozen=True, repr=False)
class AfterAlignedProcessingTime(FiresOnce):
    """Fires once, at the next full period of the clock, such as the next full hour (the paper's ``AtPeriod``).

    An element that arrives at exactly that time is still in the pane.

    Args:
        period: The time from one full period to the next, in seconds.
        offset: Seconds from the epoch to some full period; 8 * 3600 with a period of a day means at 08:00 UTC.

    >>> daily_at_eight = AfterAlignedProcessingTime(86400, offset=8 * 3600)
    >>> daily_at_eight.period_micros, daily_at_eight.offset_micros
    (86400000000, 28800000000)
    """

    period: DurationTypes = field(compare=False)
    offset: TimestampDurationTypes = field(default=0, compare=False)
    _period_micros: int = field(init=False)
    _offset_micros: int = field(init=False)

    def __post_init__(self) -> None:
        period_micros = Duration.of(self.period).micros
        if period_micros <= 0:
            what = f"the period of AfterAlignedProcessingTime must be positive, but is {self.period!r}"
            raise refusal(ValueError, what, hint="pass seconds, such as 60 for every full minute")
        offset = self.offset if isinstance(self.offset, Timestamp) else Duration.of(self.offset)
        object.__setattr__(self, "_period_micros", period_micros)
        object.__setattr__(self, "_offset_micros", offset.micros % period_micros)

    @property
    def period_micros(self) -> int:
        """The period."""
        return self._period_micros

    @property
    def offset_micros(self) -> int:
        """The time from the epoch to the first full period after it."""
        return self._offset_micros

    def get_continuation_trigger(self) -> TriggerFn:
        return AfterSynchronizedProcessingTime()


@dataclass(frozen=True, repr=False)
class _AfterSynchronizedProcessingTime(ContinuesItself):
    """A trigger that fires when the steps before have fired by processing time: their continuation (Beam's name)."""


AfterSynchronizedProcessingTime = _AfterSynchronizedProcessingTime


@dataclass(frozen=True, repr=False)
class AfterWatermarkPercentile(ContinuesItself, FiresOnce):
    """Fires once, when the watermark of a percentile passes the end of the window (the paper's section 2.3).

    That watermark shows how far a share of the input has advanced, so that a few stragglers do not delay results.

    Args:
        percentile: The share, more than 0 and at most 1; 1 means the watermark itself.

    >>> AfterWatermarkPercentile(0.95).get_continuation_trigger()
    AfterWatermarkPercentile(0.95)
    """

    percentile: float

    def __post_init__(self) -> None:
        is_number = isinstance(self.percentile, Real) and not isinstance(self.percentile, bool)
        if not (is_number and 0 < self.percentile <= 1):
            what = f"the percentile must be more than 0 and at most 1, but is {self.percentile!r}"
            raise refusal(ValueError, what, hint="write 0.95 for 95 percent")


class _FiresOnceOnArrival(FiresOnce):
    """Fires once, when something has arrived."""

    def get_continuation_trigger(self) -> TriggerFn:
        """Returns a trigger that fires for each element: this trigger has already selected what arrives."""
        return AfterCount(1)


@dataclass(frozen=True, repr=False)
class AfterCount(_FiresOnceOnArrival):
    """Fires once, when a pane has `count` elements, 1 or more (Beam's ``AfterCount``).

    It counts in every mode: within a batch, and within a round of the mode ``micro_batch``, it may fire several times.

    Example: ``Repeatedly(AfterCount(100))`` emits a pane for each hundred elements.
    """

    count: int

    def __post_init__(self) -> None:
        if not isinstance(self.count, Integral) or self.count < 1:
            what = f"the count of AfterCount must be a positive integer, but is {self.count!r}"
            raise refusal(ValueError, what, hint="pass an integer, 1 or more")


@dataclass(frozen=True, repr=False)
class AfterBytes(_FiresOnceOnArrival):
    """Fires once, when the values of a pane reach a total size in bytes (the paper's section 2.3).

    Args:
        size_bytes: An integer, 1 or more.
        size_of: Returns the size of a value in bytes; by default the size of its pickled form.

    >>> AfterBytes(1_000_000, len)
    AfterBytes(1000000, len)
    """

    size_bytes: int
    size_of: Callable[[Any], int] | None = None

    def __post_init__(self) -> None:
        is_whole = isinstance(self.size_bytes, Integral) and not isinstance(self.size_bytes, bool)
        if not is_whole or self.size_bytes < 1:
            what = f"the size of AfterBytes must be a positive integer, but is {self.size_bytes!r}"
            raise refusal(ValueError, what, hint="pass a number of bytes, 1 or more")
        if self.size_of is not None:
            _check_callable("AfterBytes", self.size_of)


@dataclass(frozen=True, repr=False)
class AfterPunctuation(_FiresOnceOnArrival):
    """Fires once, when a value arrives that satisfies a predicate, such as an end mark (the paper's section 2.3).

    Args:
        predicate: A function of a value; in a collection of pairs, of the second part.

    >>> AfterPunctuation(str.isspace)
    AfterPunctuation(isspace)
    """

    predicate: Callable[[Any], Any]

    def __post_init__(self) -> None:
        _check_callable("AfterPunctuation", self.predicate)


@dataclass(frozen=True, init=False, repr=False)
class AfterPattern(_FiresOnceOnArrival):
    """Fires once, when values have satisfied all predicates in turn (a pattern, in the paper's section 2.3).

    Each value counts for one predicate.

    Args:
        predicates: Functions of a value; in a collection of pairs, of the second part.
        contiguous: Whether no other value may arrive between matching ones.

    >>> AfterPattern(str.isalpha, str.isdigit, contiguous=True)
    AfterPattern(isalpha, isdigit, contiguous=True)
    """

    predicates: tuple[Callable[[Any], Any], ...]
    contiguous: bool

    def __init__(self, *predicates: Callable[[Any], Any], contiguous: bool = False) -> None:
        if not predicates:
            hint = "write it like AfterPattern(is_opened, is_closed)"
            raise refusal(ValueError, "AfterPattern has no predicates", hint=hint)
        for predicate in predicates:
            _check_callable("AfterPattern", predicate)
        if not isinstance(contiguous, bool):
            what = f"contiguous must be True or False, not {contiguous!r}"
            raise refusal(TypeError, what, hint="pass the predicates one by one, before it")
        object.__setattr__(self, "predicates", predicates)
        object.__setattr__(self, "contiguous", contiguous)

    def __repr__(self) -> str:
        arguments = [*map(show_argument, self.predicates), *["contiguous=True"] * self.contiguous]
        return f"AfterPattern({', '.join(arguments)})"


@dataclass(frozen=True, repr=False)
class AfterDelta(TriggerFn):
    """Fires whenever the result has changed enough since the last pane (Flink's ``DeltaTrigger``).

    Args:
        threshold: A distance, 0 or more; a pane fires when the result has moved by more.
        initial: The value with which the first pane's result is compared.
        distance: The distance between two results; by default the absolute value of their difference.

    >>> AfterDelta(10).measure(3, -4)
    7
    >>> AfterDelta(10, initial=100).get_continuation_trigger()
    Repeatedly(AfterCount(1))
    """

    threshold: float
    initial: Any = 0
    distance: Callable[[Any, Any], Any] | None = None

    def __post_init__(self) -> None:
        is_number = isinstance(self.threshold, Real) and not isinstance(self.threshold, bool)
        # Comparisons with nan are false.
        if not (is_number and self.threshold >= 0):
            what = f"the threshold of AfterDelta must be a number, 0 or more, but is {self.threshold!r}"
            hint = "pass the distance that a result may move without a pane"
            raise refusal(ValueError, what, hint=hint)
        if self.distance is not None:
            _check_callable("AfterDelta", self.distance)

    @property
    def measure(self) -> Callable[[Any, Any], Any]:
        """The given distance, or the default."""
        return _absolute_difference if self.distance is None else self.distance

    def get_continuation_trigger(self) -> TriggerFn:
        """Returns a trigger that fires for each element: this trigger has already selected what arrives."""
        return Repeatedly(AfterCount(1))


@dataclass(frozen=True, repr=False)
class AfterSignal(_FiresOnceOnArrival):
    """Fires once, when a signal of that name arrives from outside the pipeline (the paper's section 2.3).

    >>> AfterSignal("the auditors are here")
    AfterSignal('the auditors are here')
    """

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            what = f"the name of a signal must be a string, not {self.name!r}"
            raise refusal(TypeError, what, hint="write AfterSignal('flush')")
        if not self.name:
            what = "the name of the signal is empty"
            raise refusal(ValueError, what, hint="write AfterSignal('flush')")


def _check_callable(owner: str, function: object) -> None:
    if not callable(function):
        what = f"{owner} needs a function, but got {function!r}"
        raise refusal(TypeError, what, hint="pass a function of a value, such as lambda value: value > 3")


def _absolute_difference(one: Any, other: Any) -> object:
    return abs(one - other)


def walk_parts(trigger: TriggerFn) -> Iterator[TriggerFn]:
    """Yields a trigger and all of its parts.

    >>> from penstock.transforms.trigger import AfterCount
    >>> [type(part).__name__ for part in walk_parts(AfterWatermark(early=AfterCount(5)))]
    ['AfterWatermark', 'Repeatedly', 'AfterCount']
    """
    yield trigger
    match trigger:
        case Repeatedly(underlying):
            yield from walk_parts(underlying)
        case AfterWatermark(early, late):
            for part in (early, late):
                if part is not None:
                    yield from walk_parts(part)
        case AfterAny(parts) | AfterAll(parts) | AfterEach(parts):
            for part in parts:
                yield from walk_parts(part)


def can_fire_early(trigger: TriggerFn) -> bool:
    """True if a trigger can fire before the watermark reaches the end of the window.

    In the global window, that end is the end of time.

    >>> from penstock.transforms.trigger import AfterCount
    >>> can_fire_early(AfterWatermark(early=AfterCount(5))), can_fire_early(AfterWatermark(late=AfterCount(5)))
    (True, False)
    """
    match trigger:
        case DefaultTrigger() | Never() | AfterWatermarkPercentile():
            return False
        case AfterWatermark(early):
            return early is not None and can_fire_early(early)
        case Repeatedly(underlying):
            return can_fire_early(underlying)
        case AfterAny(parts):
            return any(map(can_fire_early, parts))
        case AfterAll(parts):
            return all(map(can_fire_early, parts))
        case AfterEach(parts):
            return can_fire_early(parts[0])
    return True
