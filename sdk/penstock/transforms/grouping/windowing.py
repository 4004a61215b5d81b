"""The transforms that change where, when and how results are emitted: `WindowInto` and `SetTrigger`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from penstock import graph
from penstock.base.labels import label_from_callable
from penstock.construction import pvalue
from penstock.construction.applicable import T
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.error import noun_for, refusal
from penstock.functions.dofn import DoFn, MapDoFn, identity
from penstock.scalars.expressions import field
from penstock.scalars.field_functions import StampedBy
from penstock.transforms.elements.pardo import Map
from penstock.utils.timestamp import Timestamp
from penstock.utils.window import BoundedWindow
from penstock.utils.windowed_value import WindowedValue
from penstock.windows.triggers import ClosingBehavior, OnTimeBehavior, TriggerFn
from penstock.windows.window_fn import WindowFn
from penstock.windows.windowing import Windowing, default_windowing


class WindowIntoFn(DoFn):
    """Assigns windows to one element, for callers without a runner (Beam's ``WindowIntoFn``)."""

    def __init__(self, windowing: Windowing) -> None:
        self.windowing = windowing

    def process(
        self,
        element: object,
        timestamp: Timestamp = DoFn.TimestampParam,
        window: BoundedWindow = DoFn.WindowParam,
    ) -> Any:
        context = WindowFn.AssignContext(timestamp, element=element, window=window)
        yield WindowedValue(element, context.timestamp, tuple(self.windowing.windowfn.assign(context)))

    def infer_output_type(self, input_type: object) -> object:
        return input_type


class _SameElements(PTransform[Any, Any]):
    def expand(self, pcoll: PCollection[T]) -> PCollection[T]:
        self._check_pcollection(pcoll)
        return pvalue.PCollection.from_(pcoll)

    def infer_output_type(self, input_type: object) -> object:
        return self.get_type_hints().simple_output_type(self.label) or input_type


class WindowInto(_SameElements):
    """Assigns each element to windows, and sets the trigger and accumulation of later groupings (Beam's name).

    Args:
        windowfn: A ``WindowFn``, or a `Windowing` whose parts the other arguments replace.
        trigger: When results are emitted.
        accumulation_mode: Whether a later pane contains, retracts, or leaves out earlier ones.
        timestamp_combiner: The timestamp of a result.
        allowed_lateness: How late an element may be, in seconds; after a `Windowing`, 0 keeps its lateness.
        on_time_behavior: Whether a pane is emitted at the window's end even without new elements; by default it is.
        closing_behavior: Whether a pane is emitted when the window closes even without new elements; by default it is
            not.

    Raises:
        ValueError: If a trigger other than the default has no accumulation mode.

    Example: ``goals | WindowInto(FixedWindows(60)) | CombinePerKey(sum)`` emits a sum for each minute.
    """

    WindowIntoFn = WindowIntoFn

    def __init__(
        self,
        windowfn: WindowFn | Windowing,
        trigger: TriggerFn | None = None,
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
            what = f"WindowInto takes a WindowFn, not {windowfn!r}"
            raise refusal(TypeError, what, where=self._where(), hint="e.g. FixedWindows(60)")
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
        return "WindowInto(WindowIntoFn)"

    def display_data(self) -> dict[str, Any]:
        return {"window_fn": type(self.windowing.windowfn).__name__}

    def to_primitive(self) -> graph.Primitive:
        """Returns an `AssignWindows`; the windowing itself is on the output edge."""
        return graph.AssignWindows()

    def get_windowing(self, inputs: Sequence[Any]) -> Windowing:
        return self.windowing


class SetTrigger(_SameElements):
    """Sets when later groupings emit results, and keeps the windows (the paper's ``Window.trigger``).

    Elements keep their windows, also merged ones. The arguments are as in `WindowInto`; one that is left out changes
    nothing.

    Raises:
        ValueError: If no argument is passed, or one is wrong.

    Example: ``minutes | SetTrigger(Repeatedly(AfterCount(10)), AccumulationMode.DISCARDING)``.
    """

    def __init__(
        self,
        trigger: TriggerFn | None = None,
        accumulation_mode: Any = None,
        allowed_lateness: object = None,
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
            what = "SetTrigger has nothing to set"
            raise refusal(ValueError, what, where=self._where(), hint="e.g. SetTrigger(AfterWatermark())")
        # Arguments that make no sense in this windowing make none in any.
        replace(default_windowing(), **self._changes)

    def display_data(self) -> dict[str, Any]:
        return {name: str(value) for name, value in self._changes.items()}

    def to_primitive(self) -> graph.Primitive:
        """Returns a `penstock.graph.ParDo` that changes no element; the windowing itself is on the output edge."""
        return graph.ParDo(MapDoFn(identity))

    def get_windowing(self, inputs: Sequence[Any]) -> Windowing:
        return replace(super().get_windowing(inputs), **self._changes)


class WithTimestamps(PTransform[Any, Any]):
    """Sets the timestamp of each element, which is computed from the element (the name is Beam Java's).

    Args:
        moment: The name of a field, an expression, or any function of an element. It returns seconds since the epoch, a
            Timestamp, or an aware ``datetime`` in UTC.

    Raises:
        ValueError: If it returns None for an element, when the pipeline runs.

    Example: ``orders | WithTimestamps("at")``, or ``orders | WithTimestamps(lambda order: order.at)``.
    """

    def __init__(self, moment: str | Callable[[Any], Any]) -> None:
        super().__init__()
        if not (isinstance(moment, str) or callable(moment)):
            what = f"WithTimestamps takes the name of a field or a function, not {noun_for(moment)}"
            raise refusal(TypeError, what, hint="write WithTimestamps('at')")
        self._moment = field(moment) if isinstance(moment, str) else moment

    def default_label(self) -> str:
        return f"WithTimestamps({label_from_callable(self._moment)})"

    def infer_output_type(self, input_type: object) -> object:
        return input_type

    def expand(self, pcoll: PCollection[T]) -> PCollection[T]:
        return pcoll | "Stamp" >> Map(StampedBy(self._moment)).with_output_types(pcoll.element_type)
