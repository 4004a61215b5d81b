"""Groups, merges and redistributes elements: GroupByKey, Flatten, FlattenWith, and the step that spreads elements."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from penstock import graph
from penstock.construction import pvalue
from penstock.construction.applicable import K, T, V
from penstock.construction.ptransform import PTransform, where_of
from penstock.construction.pvalue import DoOutputsTuple, PCollection
from penstock.error import refusal
from penstock.transforms.grouping_checks import check_grouping
from penstock.typehints import typehints
from penstock.typehints.decorators import TypeCheckError
from penstock.windows.windowing import Windowing, default_windowing

GROUPED = "grouped"
"""The name of the main output."""

LATE = "late"
"""The tag of the output for elements that arrive too late."""


class WithLateData(PTransform[Any, Any]):
    """A grouping with a second output: elements for windows that have closed, or that have emitted their last pane.

    ``GroupByKey().with_late_data()`` and ``CombinePerKey(fn).with_late_data()`` make it. A late element keeps its
    timestamp, and has the windows that did not accept it. The metrics of late elements also count it.

    Example: ``sums, late = pairs | CombinePerKey(sum).with_late_data()``.

    Raises:
        ValueError: A combine with side inputs is not a grouping.
    """

    def __init__(self, grouping: PTransform[Any, Any]) -> None:
        super().__init__(grouping.label)
        if grouping.to_primitive() is None:
            what = "a combine with side inputs is made of several steps, and cannot recognize late elements"
            raise refusal(ValueError, what, where=self._where(), hint="use GroupByKey().with_late_data()")
        self._grouping = grouping

    def expand(self, pcoll: PCollection[Any]) -> pvalue.DoOutputsTuple:
        late: PCollection[Any] = PCollection(
            pcoll.pipeline, LATE, pcoll.element_type, pcoll.windowing, pcoll.is_bounded
        )
        made = {None: self._grouping.expand(pcoll), LATE: late}
        return DoOutputsTuple(pcoll.pipeline, self, (LATE,), GROUPED, made=made)

    def to_primitive(self) -> graph.Primitive | None:
        return self._grouping.to_primitive()

    def type_check_inputs(self, pvalueish: PCollection[Any]) -> None:
        self._grouping.type_check_inputs(pvalueish)

    def infer_output_type(self, input_type: object) -> object:
        """Returns the type of the main output."""
        declared = self._grouping.get_type_hints().simple_output_type(self.label)
        return declared or self._grouping.infer_output_type(input_type)

    def get_windowing(self, inputs: Sequence[Any]) -> Windowing:
        return self._grouping.get_windowing(inputs)


_LOGGER = logging.getLogger(__name__)


def key_value_types(transform: PTransform[Any, Any], input_type: object) -> tuple[Any, Any]:
    """Returns the key and value type of a key-value type; TypeCheckError for any other type."""
    try:
        key_type, value_type = typehints.coerce_to_kv_type(
            input_type or typehints.Any, transform.label
        ).tuple_types
    except ValueError as error:
        raise TypeCheckError(
            f"Input type hint violation at {transform.label}: expected Tuple[TypeVariable[K], TypeVariable[V]], "
            f"got {typehints.show_type(input_type)}",
            where=where_of(transform),
            hint="make pairs first, e.g. with Map(lambda x: (key_of(x), x)) or WithKeys",
        ) from error
    return key_type, value_type


def grouped_type(transform: PTransform[Any, Any], input_type: object) -> Any:
    """Returns the type of groups of pairs of a type."""
    key_type, value_type = key_value_types(transform, input_type)
    return typehints.KV[key_type, typehints.Iterable[value_type]]


class Grouping(PTransform[Any, Any]):
    """The base of `GroupByKey` and `CombinePerKey`: inputs are pairs, and outputs have continuation triggers."""

    def type_check_inputs(self, pvalueish: PCollection[Any]) -> None:
        """Checks that the elements are pairs, of a type that the transform takes."""
        self._check_pcollection(pvalueish)
        key_value_types(self, pvalueish.element_type)
        super().type_check_inputs(pvalueish)

    def get_windowing(self, inputs: Sequence[Any]) -> Windowing:
        """Returns the input's windowing, with the trigger's continuation."""
        return super().get_windowing(inputs).after_grouping()

    def with_late_data(self) -> PTransform[Any, Any]:
        """Adds a second output for elements that are dropped as late; returns a `WithLateData` (penstock's own).

        Raises:
            ValueError: A CombineFn has side inputs.
        """
        return WithLateData(self)


class GroupByKey(Grouping):
    """Groups the values of each key and window, from ``(k, v)`` to ``(k, iterable of v)`` (Beam's name).

    Raises:
        ValueError: When applied to an unbounded PCollection in the global window with a trigger that never fires
            before the end of all time, or with a trigger that may lose data.
        TypeCheckError: When applied to elements that are not pairs.

    Example: ``goals | GroupByKey()`` over ``("red", 2)`` and ``("red", 3)`` emits ``("red", [2, 3])``.
    """

    def to_primitive(self) -> graph.Primitive:
        return graph.GroupByKey()

    def infer_output_type(self, input_type: object) -> object:
        return self.get_type_hints().simple_output_type(self.label) or grouped_type(self, input_type)

    def expand(self, pcoll: PCollection[tuple[K, V]]) -> PCollection[tuple[K, Iterable[V]]]:
        check_grouping(self, pcoll, gives_lists=True)
        return pvalue.PCollection.from_(pcoll)


class SpreadElements(PTransform[Any, Any]):
    """Spreads elements evenly over the machines, and keeps their windows and timestamps; a primitive.

    ``Reshuffle`` and ``ReshufflePerKey`` use it. If `partitions` is None, the runner chooses their number.
    """

    def __init__(self, partitions: int | None = None, by_key: bool = False) -> None:
        super().__init__()
        self._partitions = partitions
        self._by_key = by_key

    def to_primitive(self) -> graph.Primitive:
        return graph.Reshuffle(self._partitions, self._by_key)

    def infer_output_type(self, input_type: object) -> object:
        return input_type

    def expand(self, pcoll: PCollection[T]) -> PCollection[T]:
        self._check_pcollection(pcoll)
        return pvalue.PCollection.from_(pcoll)


class Flatten(PTransform[Any, Any]):
    """Merges several PCollections into one (Beam's ``Flatten``).

    Args:
        kwargs: ``pipeline``, which is needed if there may be no input.

    Example: ``(monday, tuesday) | Flatten()`` emits the elements of both days.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        self.pipeline = kwargs.pop("pipeline", None)
        if kwargs:
            what = f"Unexpected keyword arguments: {list(kwargs)}"
            raise refusal(ValueError, what, hint="only pipeline is known")

    def _extract_input_pvalues(self, pvalueish: Any) -> tuple[Any, Sequence[Any]]:
        try:
            values = tuple(pvalueish)
        except TypeError as error:
            what = f"Input to Flatten must be an iterable. Got a value of type {type(pvalueish).__name__}"
            hint = "write (first, second) | Flatten()"
            raise refusal(ValueError, what, where=self._where(), hint=hint) from error
        for index, value in enumerate(values):
            if isinstance(value, (list, tuple)) and any(
                isinstance(each, pvalue.PCollection) for each in value
            ):
                what = f"Inputs to Flatten cannot include an iterable of PCollections. There is one at index {index}"
                hint = "put all PCollections into one tuple"
                raise refusal(TypeError, what, where=self._where(), hint=hint)
        return values, values

    def to_primitive(self) -> graph.Primitive:
        return graph.Flatten()

    def infer_output_type(self, input_type: object) -> object:
        return input_type

    def get_windowing(self, inputs: Sequence[Any]) -> Windowing:
        """Returns the windowing of the first input, or the default."""
        return inputs[0].windowing if inputs else default_windowing()

    if TYPE_CHECKING:

        def __ror__(  # type: ignore[override]
            self, left: Iterable[PCollection[T]], label: str | None = None
        ) -> PCollection[T]: ...

    def expand(self, pcolls: Sequence[PCollection[T]]) -> PCollection[T]:
        for pcoll in pcolls:
            self._check_pcollection(pcoll)
        windowing = self.get_windowing(pcolls)
        for pcoll in pcolls:
            if pcoll.windowing != windowing:
                _LOGGER.warning(
                    "%s: the inputs have different windowings; the first input's counts: %s, not %s",
                    self.label,
                    windowing,
                    pcoll.windowing,
                )
        pipeline: Any = pcolls[0].pipeline if pcolls else self.pipeline
        return pvalue.PCollection(pipeline, is_bounded=all(pcoll.is_bounded for pcoll in pcolls))


class FlattenWith(PTransform[Any, Any]):
    """Merges its input with other PCollections (Beam's ``FlattenWith``).

    Args:
        others: PCollections, or transforms at a pipeline's start such as ``Create``.

    Example: ``monday | FlattenWith(tuesday)`` emits the elements of both days.
    """

    def __init__(self, *others: object) -> None:
        super().__init__()
        self._others = others

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        pcolls = [pcoll]
        for other in self._others:
            if isinstance(other, pvalue.PCollection):
                pcolls.append(other)
            elif isinstance(other, PTransform):
                pcolls.append(pcoll.pipeline | other)
            else:
                what = f"FlattenWith only takes other PCollections and PTransforms, got {other!r}"
                hint = "pass PCollections, or transforms that begin at the pipeline"
                raise refusal(TypeError, what, where=self._where(), hint=hint)
        return tuple(pcolls) | Flatten()
