"""Combining the values of each key, of groups, or of a whole PCollection."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Self, cast, overload

from typing_extensions import TypeVar

from penstock import graph
from penstock.base.display import DisplayDataItem
from penstock.base.labels import label_from_callable
from penstock.construction import pvalue
from penstock.construction.applicable import K, T, V
from penstock.construction.ptransform import PTransform, PTransformWithSideInputs
from penstock.construction.pvalue import PCollection
from penstock.construction.retractions import check_combine_fn
from penstock.elements.bounded_window import TimestampedValue
from penstock.elements.tagged_output import TaggedOutput
from penstock.error import refusal
from penstock.functions.combinefn import CombineFn, DefaultingCombineFn, NoValue, curry_combine_fn, delegate
from penstock.functions.dofn import DoFn
from penstock.transforms.elements.create import Create
from penstock.transforms.elements.pardo import Map, ParDo
from penstock.transforms.grouping.group_by_key import Flatten, GroupByKey, Grouping, key_value_types
from penstock.transforms.grouping.windowing import WindowInto
from penstock.transforms.grouping_checks import check_grouping
from penstock.typehints import typehints
from penstock.typehints.io_hints import IOTypeHints
from penstock.typehints.unions import without_none
from penstock.utils.timestamp import MIN_TIMESTAMP
from penstock.windows.triggers import AccumulationMode, can_fire_early
from penstock.windows.window_fn import GlobalWindows

if TYPE_CHECKING:
    from penstock.construction.typed_steps import Combines, MoreP

CombinerT_co = TypeVar("CombinerT_co", covariant=True, default=Any)
"""A CombineFn, or a function from an iterable to a value."""


class CombineValuesDoFn(DoFn):
    """Combines the values of one group (Beam's ``CombineValuesDoFn``)."""

    def __init__(self, input_pcoll_type: object, combinefn: CombineFn, runtime_type_check: bool) -> None:
        super().__init__()
        self.combinefn = combinefn

    def setup(self) -> None:
        self.combinefn.setup()

    def process(self, element: tuple[Any, Any], *args: object, **kwargs: object) -> Iterable[Any]:
        key, values = element
        fn = self.combinefn
        accumulator = fn.add_inputs(fn.create_accumulator(*args, **kwargs), values, *args, **kwargs)
        return [(key, fn.extract_output(fn.compact(accumulator, *args, **kwargs), *args, **kwargs))]

    def teardown(self) -> None:
        self.combinefn.teardown()

    def default_type_hints(self) -> IOTypeHints:
        """Returns hints from groups of the CombineFn's input to pairs of the key and its output."""
        hints = self.combinefn.get_type_hints()
        key: object = typehints.Any
        if hints.input_types:
            key = typehints.TypeVariable("K")
            args, kwargs = hints.input_types
            hints = hints.with_input_types(
                typehints.Tuple[key, typehints.Iterable[args[0]]], *args[1:], **kwargs
            )
        if hints.output_types:
            hints = hints.with_output_types(typehints.Tuple[key, hints.simple_output_type("")])
        return hints


def _facts_about(fn: object) -> dict[str, Any]:
    if not isinstance(fn, CombineFn):
        return {"combine_fn": DisplayDataItem(label_from_callable(fn), label="Combine Function")}
    return {"combine_fn": DisplayDataItem(type(fn), label="Combine Function"), "combine_fn_dd": fn}


class CombinePerKey(Grouping, PTransformWithSideInputs, Generic[CombinerT_co]):
    """Combines the values of each key and window, from ``(k, v)`` to ``(k, result)`` (Beam's name).

    Args:
        fn: A `CombineFn`, or a function from an iterable to a value such as ``sum``.
        args: Further arguments of the CombineFn, including side inputs.
        kwargs: Likewise, by name.

    Example: ``sales | CombinePerKey(sum)`` over ``("tea", 2)`` and ``("tea", 3)`` emits ``("tea", 5)``.

    >>> CombinePerKey(sum).label
    'CombinePerKey(sum)'
    """

    if TYPE_CHECKING:

        def __init__(self, fn: CombinerT_co, *args: object, **kwargs: object) -> None: ...

        @property
        def _own_function(self) -> CombinerT_co: ...  # type: ignore[override]

        @property
        def _combines_keys(self) -> CombinerT_co: ...

    def make_fn(self, fn: object, has_side_inputs: bool) -> CombineFn:
        return CombineFn.maybe_from_callable(fn, has_side_inputs)

    def default_label(self) -> str:
        return f"CombinePerKey({label_from_callable(self.fn)})"

    def display_data(self) -> dict[str, Any]:
        return _facts_about(self.fn)

    def with_hot_key_fanout(self, fanout: int | Callable[[Any], int] | None) -> PTransform[Any, Any]:
        """Combines in two rounds, so that the values of a hot key are spread over several machines.

        Args:
            fanout: The number of parts per key, or a function from the key to it; None for one round.
        """
        if fanout is None:
            return self
        return CombinePerKeyWithFanout(curry_combine_fn(self.fn, self.args, self.kwargs), fanout)

    def default_type_hints(self) -> Any:
        """Returns hints from pairs of a key and the CombineFn's input to pairs of the key and its output."""
        hints = self.fn.get_type_hints()
        key = typehints.TypeVariable("K")
        args, kwargs = hints.input_types or ((typehints.Any,), {})
        hints = hints.with_input_types(typehints.Tuple[key, args[0]], *args[1:], **kwargs)
        output = hints.simple_output_type("")
        return hints.with_output_types(typehints.Tuple[key, output]) if output is not None else hints

    def infer_output_type(self, input_type: object) -> object:
        """Returns pairs of the key's type and the CombineFn's output type, as far as that is known."""
        key_type, value_type = key_value_types(self, input_type)
        return typehints.KV[key_type, result_type(self.fn, value_type)]

    def to_primitive(self) -> graph.Primitive | None:
        """Returns a `penstock.graph.CombinePerKey`, unless there are side inputs."""
        if self.side_inputs:
            return None
        return graph.CombinePerKey(curry_combine_fn(self.fn, self.args, self.kwargs))

    @overload
    def expand(
        self: CombinePerKey[Combines[T, V]], pcoll: PCollection[tuple[K, T]]
    ) -> PCollection[tuple[K, V]]: ...

    @overload
    def expand(
        self: CombinePerKey[Callable[Concatenate[Iterable[T], MoreP], V]], pcoll: PCollection[tuple[K, T]]
    ) -> PCollection[tuple[K, V]]: ...

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        """Returns the results; with side inputs, by way of groups, since views are only there after the grouping."""
        check_combine_fn(self.fn, pcoll, self._where())
        if self.side_inputs:
            args, kwargs = self.raw_side_inputs
            return pcoll | GroupByKey() | "Combine" >> CombineValues(self.fn, *args, **kwargs)
        check_grouping(self, pcoll)
        return pvalue.PCollection.from_(pcoll)


def result_type(fn: object, value_type: object) -> Any:
    """Returns the type of a CombineFn's result for values of a type: known for some functions of Python."""
    function = getattr(fn, "fn", None)
    if isinstance(function, CombineFn):
        return result_type(function, value_type)
    if function in (any, all):
        return bool
    kept = without_none(value_type) if function is sum else value_type
    return kept if function in (min, max) or (function is sum and kept in (int, float)) else typehints.Any


class CombineValues(PTransformWithSideInputs, Generic[CombinerT_co]):
    """Combines the values of groups, from ``(k, iterable of v)`` to ``(k, result)``, like `CombinePerKey` (Beam's).

    Example: ``groups | CombineValues(sum)`` over ``("tea", [2, 3])`` emits ``("tea", 5)``.
    """

    if TYPE_CHECKING:

        def __init__(self, fn: CombinerT_co, *args: object, **kwargs: object) -> None: ...

    def make_fn(self, fn: object, has_side_inputs: bool) -> CombineFn:
        return CombineFn.maybe_from_callable(fn, has_side_inputs)

    def default_label(self) -> str:
        return f"CombineValues({label_from_callable(self.fn)})"

    def default_type_hints(self) -> IOTypeHints:
        return CombineValuesDoFn(None, self.fn, False).get_type_hints()

    @overload
    def expand(
        self: CombineValues[Combines[T, V]], pcoll: PCollection[tuple[K, Iterable[T]]]
    ) -> PCollection[tuple[K, V]]: ...

    @overload
    def expand(
        self: CombineValues[Callable[..., V]], pcoll: PCollection[tuple[K, Iterable[Any]]]
    ) -> PCollection[tuple[K, V]]: ...

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        args, kwargs = self.raw_side_inputs
        key_type, _ = key_value_types(self, pcoll.element_type)
        output = typehints.KV[key_type, self.fn.get_type_hints().simple_output_type("") or typehints.Any]
        pardo = ParDo(CombineValuesDoFn(key_type, self.fn, False), *args, **kwargs)
        return pcoll | pardo.with_output_types(output)


class CombineGlobally(PTransform[Any, Any], Generic[CombinerT_co]):
    """Combines all elements of each window into one result (Beam's ``CombineGlobally``).

    For an empty PCollection in the global window, it emits the result of no elements, unless `without_defaults`.

    Args:
        fn: A `CombineFn`, or a function from an iterable to a value.
        args: Further arguments of the CombineFn, including side inputs.
        kwargs: Likewise, by name.

    Raises:
        ValueError: When applied to windows other than the global one, with defaults.

    Example: ``amounts | CombineGlobally(sum)`` over ``2`` and ``3`` emits ``5``.

    >>> CombineGlobally(sum).label
    'CombineGlobally(sum)'
    """

    if TYPE_CHECKING:

        @property
        def _own_function(self) -> CombinerT_co: ...  # type: ignore[override]

        @property
        def _combines_all(self) -> CombinerT_co: ...

    has_defaults = True
    as_view = False
    fanout: int | None = None

    def __init__(self, fn: CombinerT_co, *args: object, **kwargs: object) -> None:
        super().__init__()
        self.fn = fn
        if not (isinstance(fn, CombineFn) or callable(fn)):
            what = f"CombineGlobally can be used only with combineFn objects. Received {fn!r} instead"
            raise refusal(TypeError, what, where=self._where(), hint="e.g. sum, or MeanCombineFn()")
        self.args = args
        self.kwargs = kwargs

    def display_data(self) -> dict[str, Any]:
        return _facts_about(self.fn)

    def default_label(self) -> str:
        fanout = "" if self.fanout is None else f", fanout={self.fanout}"
        return f"CombineGlobally({label_from_callable(self.fn)}{fanout})"

    def _with(self, **attributes: object) -> Self:
        clone = copy.copy(self)
        clone.__dict__.update(attributes)
        return clone

    def with_fanout(self, fanout: int) -> Self:
        """Returns this transform, combining in two rounds with `fanout` parts in the first."""
        return self._with(fanout=fanout)

    def with_defaults(self, has_defaults: bool = True) -> Self:
        """Returns this transform, with or without a result for an empty PCollection."""
        return self._with(has_defaults=has_defaults)

    def without_defaults(self) -> Self:
        """Returns this transform, with no result for an empty PCollection."""
        return self.with_defaults(False)

    def as_singleton_view(self) -> PTransform[Any, pvalue.AsSingleton]:
        """Returns this transform, which then returns a `penstock.pvalue.AsSingleton` for use as a side input."""
        return cast(PTransform[Any, pvalue.AsSingleton], self._with(as_view=True))

    @overload
    def expand(self: CombineGlobally[Combines[T, V]], pcoll: PCollection[T]) -> PCollection[V]: ...

    @overload
    def expand(
        self: CombineGlobally[Callable[Concatenate[Iterable[T], MoreP], V]], pcoll: PCollection[T]
    ) -> PCollection[V]: ...

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        self._check_pcollection(pcoll)
        combine_fn = CombineFn.maybe_from_callable(self.fn, bool(self.args or self.kwargs))
        if not self.has_defaults or self.as_view:
            combined = self._combined(pcoll, combine_fn)
            if not self.as_view:
                return combined
            default = (self._default_of(combine_fn),) if self.has_defaults else ()
            return pvalue.AsSingleton(combined, *default)  # type: ignore[return-value]
        if pcoll.windowing.windowfn != GlobalWindows():
            raise refusal(
                ValueError,
                "Default values are not yet supported in CombineGlobally() if the output PCollection "
                "is not windowed by GlobalWindows",
                where=self._where(),
                hint="use CombineGlobally().without_defaults() to emit nothing for an empty window, or "
                "CombineGlobally().as_singleton_view() to get the default as a side input",
            )
        if not pcoll.is_bounded or can_fire_early(pcoll.windowing.triggerfn):
            # Before a collection ends, it is not known whether it is empty, so it gets no default.
            return self._combined(pcoll, combine_fn)
        return self._combined(pcoll, DefaultingCombineFn(combine_fn), with_marker=True)

    def _combined(
        self, pcoll: PCollection[Any], combine_fn: CombineFn, with_marker: bool = False
    ) -> PCollection[Any]:
        """All elements combined under the key None; a marker makes sure that there is an element."""
        element_type = pcoll.element_type or typehints.Any
        key = ParDo(_KeyWithNone()).with_output_types(typehints.KV[None, element_type])
        input_types = self.get_type_hints().input_types or combine_fn.get_type_hints().input_types
        keyed = pcoll | "KeyWithVoid" >> (key.with_input_types(input_types[0][0]) if input_types else key)
        if with_marker:
            marker = (
                pcoll.pipeline
                | "DoOnce" >> Create([(None, NoValue.MARKER)]).with_output_types(typehints.Any)
                | "WindowDefault" >> WindowInto(pcoll.windowing)
            )
            # The CombineFn never sees the marker.
            flatten = Flatten().with_output_types(typehints.KV[None, element_type])
            keyed = (keyed, marker) | "WithDefault" >> flatten
        combine: PTransform[Any, Any] = CombinePerKey(combine_fn, *self.args, **self.kwargs)
        if self.fanout:
            combine = CombinePerKey(combine_fn, *self.args, **self.kwargs).with_hot_key_fanout(self.fanout)
        combined: PCollection[Any] = keyed | "CombinePerKey" >> combine
        declared = combine_fn.get_type_hints().simple_output_type("") or result_type(combine_fn, element_type)
        unkey = ParDo(_Unkey(at_start=with_marker)).with_output_types(declared)
        return combined | "UnKey" >> unkey

    def _default_of(self, combine_fn: CombineFn) -> object:
        """The result of no elements; computed here, since a view needs it for windows without elements."""
        try:
            combine_fn.setup(*self.args, **self.kwargs)
            return combine_fn.apply([], *self.args, **self.kwargs)
        finally:
            combine_fn.teardown(*self.args, **self.kwargs)


class _KeyWithNone(DoFn):
    def process(self, element: object) -> Iterable[Any]:
        return [(None, element)]


class _Unkey(DoFn):
    """Drops the key; the result of a whole bounded collection is at the start of time, as in Beam."""

    def __init__(self, at_start: bool = False) -> None:
        super().__init__()
        self._at_start = at_start

    def process(self, element: Sequence[Any]) -> Iterable[Any]:
        return [TimestampedValue(element[1], MIN_TIMESTAMP) if self._at_start else element[1]]


class CombinePerKeyWithFanout(PTransform[Any, Any]):
    """Combines parts of the values of a key first, then the parts' accumulators.

    `fanout` is as in `CombinePerKey.with_hot_key_fanout`; the values of a key with 1 part or less skip the first round.
    """

    def __init__(self, combine_fn: CombineFn, fanout: int | Callable[[Any], int]) -> None:
        super().__init__()
        self._combine_fn = combine_fn
        self._fanout = fanout

    def default_label(self) -> str:
        fanout = self._fanout if isinstance(self._fanout, int) else label_from_callable(self._fanout)
        return f"CombinePerKeyWithFanout({label_from_callable(self._combine_fn)}, fanout={fanout})"

    def expand(self, pcoll: Any) -> PCollection[Any]:
        key_type, _ = key_value_types(self, pcoll.element_type)
        output = self._combine_fn.get_type_hints().simple_output_type("") or typehints.Any
        cold, hot = pcoll | "Split" >> ParDo(_SplitHotKeys(self._fanout)).with_outputs("hot", main="cold")
        # If the first round accumulated, the second would count it again with every pane. The windows of the
        # elements do not change, so that sessions which the first round merged are merged further.
        hot.windowing = WindowInto(pcoll.windowing, accumulation_mode=AccumulationMode.DISCARDING).windowing
        parts = (
            hot
            | "PreCombine" >> CombinePerKey(_PreCombineFn(self._combine_fn))
            | "StripPart" >> Map(_without_part)
        )
        parts.windowing = pcoll.windowing
        combine = CombinePerKey(PostCombineFn(self._combine_fn)).with_output_types(
            typehints.KV[key_type, output]
        )
        return (cold, parts) | Flatten() | "PostCombine" >> combine


class _SplitHotKeys(DoFn):
    """Sends values of keys with a fan-out to a part of the key; one part per bundle, so that there are few."""

    def __init__(self, fanout: int | Callable[[Any], int]) -> None:
        super().__init__()
        self._fanout = fanout
        self._part = 0

    def start_bundle(self) -> None:
        self._part = random.getrandbits(31)

    def process(self, element: tuple[Any, Any]) -> Iterable[Any]:
        key, value = element
        fanout = self._fanout if isinstance(self._fanout, int) else self._fanout(key)
        if fanout <= 1:
            return [(key, (False, value))]
        return [TaggedOutput("hot", ((self._part % fanout, key), value))]


def _without_part(element: tuple[Any, Any]) -> tuple[Any, Any]:
    (_, key), accumulator = element
    return key, accumulator


class _PreCombineFn(CombineFn):
    """The first round: returns the accumulator, marked as one."""

    # A retraction may go to another part of its key than the element that it retracts.
    accepts_retractions = False

    def __init__(self, fn: CombineFn) -> None:
        super().__init__()
        self._label = f"{fn.default_label()} with fan-out"
        delegate(
            self, fn, "setup create_accumulator add_input add_inputs merge_accumulators compact teardown"
        )

    def default_label(self) -> str:
        return self._label

    def extract_output(self, accumulator: object, *args: object, **kwargs: object) -> object:
        return True, accumulator


class PostCombineFn(CombineFn):
    """The second round of `fn`: takes values and accumulators."""

    def __init__(self, fn: CombineFn) -> None:
        super().__init__()
        self.fn = fn
        delegate(self, fn, "setup create_accumulator merge_accumulators compact extract_output teardown")

    def add_input(
        self, mutable_accumulator: object, element: tuple[Any, Any], *args: object, **kwargs: object
    ) -> object:
        is_accumulator, value = element
        if is_accumulator:
            return self.fn.merge_accumulators([mutable_accumulator, value], *args, **kwargs)
        return self.fn.add_input(mutable_accumulator, value, *args, **kwargs)
