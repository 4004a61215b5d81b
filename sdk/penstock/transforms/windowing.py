"""The four questions of a PCollection in one value, and the transforms that answer them anew."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock import graph, pvalue
from penstock.applicable import T
from penstock.error import three_parts
from penstock.pvalue import PCollection
from penstock.transforms.dofn import DoFn, MapDoFn, identity
from penstock.transforms.ptransform import PTransform
from penstock.transforms.trigger import (
    AccumulationMode,
    ClosingBehavior,
    DefaultTrigger,
    OnTimeBehavior,
    TriggerFn,
)
from penstock.transforms.window import GlobalWindows, TimestampCombiner, WindowFn
from penstock.utils.timestamp import Duration
from penstock.utils.windowed_value import WindowedValue
from penstock.where import here

__all__ = [
    "DEFAULT_WINDOWING",
    "SetTrigger",
    "WindowInto",
    "WindowIntoFn",
    "Windowing",
    "default_windowing",
]


@dataclass(frozen=True, init=False)
class Windowing:
    """Where in event time results are computed, when they are given, and how they refine each other.

    Attributes:
        windowfn: Puts elements into windows.
        triggerfn: Says when results are given; by default when the watermark passes the window's end.
        accumulation_mode: What a later pane has to do with earlier ones; discarding for the default trigger.
        timestamp_combiner: The timestamp of a result; by default the end of its window.
        allowed_lateness: How long after its end a window takes elements, as a `Duration`; given in seconds.
        on_time_behavior: Whether there is a pane at the window's end although nothing is new; by default there is.
        closing_behavior: The same for the moment at which the window closes; by default there is none.

    Raises:
        ValueError: If a trigger other than the default comes without an accumulation mode, there is no such mode, or
            the lateness is negative.
        TypeError: If the trigger is none, or a behavior is none of its enumeration.

    >>> default_windowing().is_default()
    True
    """

    windowfn: Any
    triggerfn: Any
    accumulation_mode: Any
    timestamp_combiner: Any
    allowed_lateness: Duration
    on_time_behavior: OnTimeBehavior
    closing_behavior: ClosingBehavior

    def __init__(
        self,
        windowfn: WindowFn,
        triggerfn: Any = None,
        accumulation_mode: Any = None,
        timestamp_combiner: Any = None,
        allowed_lateness: Any = 0,
        environment_id: str | None = None,
        *,
        on_time_behavior: OnTimeBehavior | None = None,
        closing_behavior: ClosingBehavior | None = None,
    ) -> None:
        triggerfn = DefaultTrigger() if triggerfn is None else triggerfn
        _check_is(triggerfn, TriggerFn, "the trigger", "AfterCount(100)")
        lateness = Duration.of(allowed_lateness)
        if lateness.micros < 0:
            raise ValueError(
                three_parts(f"the allowed lateness is {allowed_lateness!r} seconds", hint="use 0 or more")
            )
        on_time_behavior = on_time_behavior or OnTimeBehavior.FIRE_ALWAYS
        _check_is(
            on_time_behavior, OnTimeBehavior, "the on-time behavior", "OnTimeBehavior.FIRE_IF_NON_EMPTY"
        )
        closing_behavior = closing_behavior or ClosingBehavior.FIRE_IF_NON_EMPTY
        _check_is(closing_behavior, ClosingBehavior, "the closing behavior", "ClosingBehavior.FIRE_ALWAYS")
        set_field = functools.partial(object.__setattr__, self)
        set_field("windowfn", windowfn)
        set_field("triggerfn", triggerfn)
        set_field("accumulation_mode", _accumulation_mode(accumulation_mode, triggerfn))
        set_field("timestamp_combiner", timestamp_combiner or TimestampCombiner.OUTPUT_AT_EOW)
        set_field("allowed_lateness", lateness)
        set_field("on_time_behavior", on_time_behavior)
        set_field("closing_behavior", closing_behavior)

    def is_default(self) -> bool:
        """Whether everything is at its default, the windows global."""
        return self == default_windowing()

    def after_grouping(self) -> Windowing:
        """The windowing of what a grouping gives: the same, with the trigger's continuation."""
        continuation = self.triggerfn.get_continuation_trigger()
        if continuation == self.triggerfn:
            return self
        return replace(self, triggerfn=continuation)


def _check_is(value: Any, expected: type, name: str, example: str) -> None:
    if not isinstance(value, expected):
        raise TypeError(
            three_parts(f"{name} is no {expected.__name__}: {value!r}", where=here(), hint=f"write {example}")
        )


def _accumulation_mode(mode: Any, trigger: TriggerFn) -> AccumulationMode:
    """The mode as it was given, or the default, which only the default trigger has."""
    if mode is None and trigger == DefaultTrigger():
        return AccumulationMode.DISCARDING
    if mode not in tuple(AccumulationMode):
        what = "accumulation_mode must be provided for non-trivial triggers"
        what = what if mode is None else f"there is no accumulation mode {mode!r}"
        raise ValueError(
            three_parts(
                what, where=here(), hint="AccumulationMode.DISCARDING or AccumulationMode.ACCUMULATING"
            )
        )
    return AccumulationMode(mode)


@functools.cache
def default_windowing() -> Windowing:
    """The global window, the default trigger, discarding, results at the window's end, no lateness."""
    return Windowing(GlobalWindows())


DEFAULT_WINDOWING = default_windowing


class WindowIntoFn(DoFn):
    """Assigns windows to one element, for callers without a runner (Beam's ``WindowIntoFn``)."""

    def __init__(self, windowing: Windowing) -> None:
        self.windowing = windowing

    def process(
        self, element: Any, timestamp: Any = DoFn.TimestampParam, window: Any = DoFn.WindowParam
    ) -> Any:
        """The element in its new windows."""
        context = WindowFn.AssignContext(timestamp, element=element, window=window)
        yield WindowedValue(element, context.timestamp, tuple(self.windowing.windowfn.assign(context)))

    def infer_output_type(self, input_type: Any) -> Any:
        """The input type."""
        return input_type


class WindowInto(PTransform[Any, Any]):
    """Puts each element into windows, and sets trigger and accumulation for what follows (Beam's name).

    Args:
        windowfn: A ``WindowFn``, or a `Windowing` whose parts the other arguments replace.
        trigger: When results are given.
        accumulation_mode: What a later pane has to do with earlier ones.
        timestamp_combiner: The timestamp of a result.
        allowed_lateness: In seconds; after a `Windowing`, 0 leaves its own.
        on_time_behavior: Whether there is a pane at the window's end although nothing is new; by default there is.
        closing_behavior: The same for the moment at which the window closes; by default there is none.

    Raises:
        ValueError: If a trigger other than the default comes without an accumulation mode.
        TypeError: If an argument is of another type.

    >>> WindowInto(GlobalWindows()).label
    'WindowInto(WindowIntoFn)'
    """

    WindowIntoFn = WindowIntoFn

    def __init__(
        self,
        windowfn: WindowFn | Windowing,
        trigger: Any = None,
        accumulation_mode: Any = None,
        timestamp_combiner: Any = None,
        allowed_lateness: Any = 0,
        *,
        on_time_behavior: OnTimeBehavior | None = None,
        closing_behavior: ClosingBehavior | None = None,
    ) -> None:
        super().__init__()
        function: Any = windowfn
        if isinstance(windowfn, Windowing):
            base = windowfn
            function = base.windowfn
            trigger = trigger or base.triggerfn
            accumulation_mode = base.accumulation_mode if accumulation_mode is None else accumulation_mode
            timestamp_combiner = timestamp_combiner or base.timestamp_combiner
            allowed_lateness = allowed_lateness or base.allowed_lateness
            on_time_behavior = on_time_behavior or base.on_time_behavior
            closing_behavior = closing_behavior or base.closing_behavior
        elif not isinstance(windowfn, WindowFn):
            raise TypeError(
                three_parts(
                    f"WindowInto takes a WindowFn, not {windowfn!r}",
                    where=self._where(),
                    hint="e.g. FixedWindows(60)",
                )
            )
        self.windowing = Windowing(
            function,
            trigger,
            accumulation_mode,
            timestamp_combiner,
            allowed_lateness,
            on_time_behavior=on_time_behavior,
            closing_behavior=closing_behavior,
        )

    def default_label(self) -> str:
        """Beam's label."""
        return "WindowInto(WindowIntoFn)"

    def display_data(self) -> dict[str, Any]:
        """The window function's name."""
        return {"window_fn": type(self.windowing.windowfn).__name__}

    def to_primitive(self) -> graph.Primitive:
        """An `AssignWindows`; the windowing itself is on the output edge."""
        return graph.AssignWindows()

    def expand(self, pcoll: PCollection[T]) -> PCollection[T]:
        """A PCollection with the new windowing."""
        self._check_pcollection(pcoll)
        return pvalue.PCollection.from_(pcoll)

    def infer_output_type(self, input_type: Any) -> Any:
        """The input type."""
        return self.get_type_hints().simple_output_type(self.label) or input_type

    def get_windowing(self, inputs: Sequence[Any]) -> Windowing:
        """The new windowing."""
        return self.windowing


class SetTrigger(PTransform[Any, Any]):
    """Sets when results are given in what follows, and leaves the windows as they are (the paper's ``Window.trigger``).

    Elements keep their windows, those that have merged too. Each argument that is left out keeps what there is.

    Args:
        trigger: When results are given.
        accumulation_mode: What a later pane has to do with earlier ones.
        allowed_lateness: In seconds.
        timestamp_combiner: The timestamp of a result.
        on_time_behavior: Whether there is a pane at the window's end although nothing is new.
        closing_behavior: The same for the moment at which the window closes.

    Raises:
        ValueError: If there is no argument, or one makes no sense.
        TypeError: If an argument is of another type.

    >>> from penstock.transforms.trigger import AfterCount, Repeatedly
    >>> SetTrigger(Repeatedly(AfterCount(100))).label
    'SetTrigger'
    """

    def __init__(
        self,
        trigger: TriggerFn | None = None,
        accumulation_mode: Any = None,
        allowed_lateness: Any = None,
        timestamp_combiner: Any = None,
        on_time_behavior: OnTimeBehavior | None = None,
        closing_behavior: ClosingBehavior | None = None,
    ) -> None:
        super().__init__()
        arguments = {
            "triggerfn": trigger,
            "accumulation_mode": accumulation_mode,
            "allowed_lateness": allowed_lateness,
            "timestamp_combiner": timestamp_combiner,
            "on_time_behavior": on_time_behavior,
            "closing_behavior": closing_behavior,
        }
        self._changes = {name: value for name, value in arguments.items() if value is not None}
        if not self._changes:
            what = "SetTrigger is given nothing to set"
            raise ValueError(three_parts(what, where=self._where(), hint="e.g. SetTrigger(AfterWatermark())"))
        # What makes no sense in this windowing makes none in any.
        replace(Windowing(GlobalWindows()), **self._changes)

    def display_data(self) -> dict[str, Any]:
        """What is set."""
        return {name: str(value) for name, value in self._changes.items()}

    def to_primitive(self) -> graph.Primitive:
        """A `penstock.graph.ParDo` that changes no element; the windowing itself is on the output edge."""
        return graph.ParDo(MapDoFn(identity))

    def expand(self, pcoll: Any) -> Any:
        """A PCollection with the changed windowing."""
        self._check_pcollection(pcoll)
        return pvalue.PCollection.from_(pcoll)

    def infer_output_type(self, input_type: Any) -> Any:
        """The input type."""
        return self.get_type_hints().simple_output_type(self.label) or input_type

    def get_windowing(self, inputs: Sequence[Any]) -> Windowing:
        """The input's, with the changes."""
        return replace(super().get_windowing(inputs), **self._changes)
