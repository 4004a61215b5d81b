"""The four questions of a PCollection in one value, and the transform that answers them anew."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock import graph, pvalue
from penstock.error import three_parts
from penstock.transforms.dofn_base import DoFn
from penstock.transforms.ptransform import PTransform
from penstock.transforms.trigger import AccumulationMode, DefaultTrigger
from penstock.transforms.window import GlobalWindows, TimestampCombiner, WindowFn
from penstock.utils.timestamp import Duration
from penstock.utils.windowed_value import WindowedValue

__all__ = ["DEFAULT_WINDOWING", "WindowInto", "WindowIntoFn", "Windowing", "default_windowing"]


@dataclass(frozen=True, init=False)
class Windowing:
    """Where in event time results are computed, when they are given, and how they refine each other.

    Attributes:
        windowfn: Puts elements into windows.
        triggerfn: Says when results are given; by default when the watermark passes the window's end.
        accumulation_mode: What a later pane has to do with earlier ones; discarding for the default trigger.
        timestamp_combiner: The timestamp of a result; by default the end of its window.
        allowed_lateness: How long after its end a window takes elements, as a `Duration`; given in seconds.

    Raises:
        ValueError: If a trigger other than the default comes without an accumulation mode, or the lateness is
            negative.

    >>> default_windowing().is_default()
    True
    """

    windowfn: Any
    triggerfn: Any
    accumulation_mode: Any
    timestamp_combiner: Any
    allowed_lateness: Duration

    def __init__(
        self,
        windowfn: WindowFn,
        triggerfn: Any = None,
        accumulation_mode: Any = None,
        timestamp_combiner: Any = None,
        allowed_lateness: Any = 0,
        environment_id: str | None = None,
    ) -> None:
        triggerfn = DefaultTrigger() if triggerfn is None else triggerfn
        if accumulation_mode is None:
            if triggerfn != DefaultTrigger():
                raise ValueError(
                    three_parts(
                        "accumulation_mode must be provided for non-trivial triggers",
                        hint="AccumulationMode.DISCARDING or AccumulationMode.ACCUMULATING",
                    )
                )
            accumulation_mode = AccumulationMode.DISCARDING
        lateness = Duration.of(allowed_lateness)
        if lateness.micros < 0:
            raise ValueError(
                three_parts(f"the allowed lateness is {allowed_lateness!r} seconds", hint="use 0 or more")
            )
        set_field = functools.partial(object.__setattr__, self)
        set_field("windowfn", windowfn)
        set_field("triggerfn", triggerfn)
        set_field("accumulation_mode", accumulation_mode)
        set_field("timestamp_combiner", timestamp_combiner or TimestampCombiner.OUTPUT_AT_EOW)
        set_field("allowed_lateness", lateness)

    def is_default(self) -> bool:
        """Whether everything is at its default, the windows global."""
        return self == default_windowing()

    def after_grouping(self) -> Windowing:
        """The windowing of what a grouping gives: the same, with the trigger's continuation."""
        continuation = self.triggerfn.get_continuation_trigger()
        if continuation == self.triggerfn:
            return self
        return Windowing(
            self.windowfn,
            continuation,
            self.accumulation_mode,
            self.timestamp_combiner,
            self.allowed_lateness,
        )


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
        allowed_lateness: In seconds.

    Raises:
        ValueError: If a trigger other than the default comes without an accumulation mode.

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
    ) -> None:
        super().__init__()
        function: Any = windowfn
        if isinstance(windowfn, Windowing):
            base = windowfn
            function = base.windowfn
            trigger = trigger or base.triggerfn
            accumulation_mode = base.accumulation_mode if accumulation_mode is None else accumulation_mode
            timestamp_combiner = timestamp_combiner or base.timestamp_combiner
        elif not isinstance(windowfn, WindowFn):
            raise TypeError(
                three_parts(
                    f"WindowInto takes a WindowFn, not {windowfn!r}",
                    where=self._where(),
                    hint="e.g. FixedWindows(60)",
                )
            )
        self.windowing = Windowing(function, trigger, accumulation_mode, timestamp_combiner, allowed_lateness)

    def default_label(self) -> str:
        """Beam's label."""
        return "WindowInto(WindowIntoFn)"

    def display_data(self) -> dict[str, Any]:
        """The window function's name."""
        return {"window_fn": type(self.windowing.windowfn).__name__}

    def to_primitive(self) -> graph.Primitive:
        """An `AssignWindows`; the windowing itself is on the output edge."""
        return graph.AssignWindows()

    def expand(self, pcoll: Any) -> Any:
        """A PCollection with the new windowing."""
        self._check_pcollection(pcoll)
        return pvalue.PCollection.from_(pcoll)

    def infer_output_type(self, input_type: Any) -> Any:
        """The input type."""
        return self.get_type_hints().simple_output_type(self.label) or input_type

    def get_windowing(self, inputs: Sequence[Any]) -> Windowing:
        """The new windowing."""
        return self.windowing
