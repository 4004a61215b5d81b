"""Transforms over named fields: GroupBy and Select; and Partition, which divides a PCollection."""

from __future__ import annotations

import copy
import keyword
import numbers
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, overload

from typing_extensions import TypeVar

from penstock.construction import pvalue
from penstock.construction.applicable import K, T
from penstock.construction.ptransform import PTransform, PTransformWithSideInputs
from penstock.construction.pvalue import PCollection
from penstock.elements.row import Row
from penstock.elements.tagged_output import TaggedOutput
from penstock.error import refusal
from penstock.functions.combinefn import CombineFn
from penstock.functions.dofn import DoFn
from penstock.scalars.expressions import Expression, field
from penstock.scalars.field_functions import (
    KeyAndValues,
    KeyedBy,
    KeyOf,
    ResultOf,
    RowInWindow,
    RowOf,
    reads_window,
)
from penstock.transforms.combining.combine import CombinePerKey, result_type
from penstock.transforms.combining.ready_combiners import CountCombineFn, MeanCombineFn, TupleCombineFn
from penstock.transforms.elements.pardo import Map, ParDo
from penstock.transforms.grouping.group_by_key import GroupByKey
from penstock.typehints import row_type, trivial_inference, typehints
from penstock.typehints.decorators import WithTypeHints, get_type_hints

KeyFunctionT_co = TypeVar(
    "KeyFunctionT_co", bound=Callable[[Any], Any], covariant=True, default=Callable[[Any], Any]
)

Given = str | Callable[[Any], Any]
"""A field's name, or any function of an element; one that is an `Expression` can be read."""


def _expression(given: Given, position: int | str) -> Callable[[Any], Any]:
    if isinstance(given, str):
        return field(given)
    if callable(given):
        return given
    what = f"Field expression {given!r} at {position} must be a callable or a string"
    hint = "give the name of an attribute, or a function of the element"
    raise refusal(TypeError, what, hint=hint)


def _type_of(expression: Callable[[Any], Any], input_type: object) -> object:
    if isinstance(expression, Expression):
        return expression.type_of(input_type)
    hints = get_type_hints(expression)
    declared = hints.simple_output_type("") if hints else None
    if declared is not None and declared != typehints.Any:
        return declared
    return trivial_inference.infer_return_type(expression, [input_type])


def _named(
    positional: Iterable[Given], keyword: Mapping[str, Given], default_name: str
) -> list[tuple[str, Callable[[Any], Any]]]:
    fields = [
        (_name_of(given) or default_name.format(index), _expression(given, index))
        for index, given in enumerate(positional)
    ]
    return fields + [(name, _expression(given, name)) for name, given in keyword.items()]


def _name_of(given: Given) -> str | None:
    if isinstance(given, Expression):
        return given.field_name
    return given if isinstance(given, str) else None


class GroupBy(PTransform[Any, Any], Generic[KeyFunctionT_co]):
    """Groups elements by fields or expressions, into ``(key, iterable of elements)`` (Beam's ``GroupBy``).

    Args:
        fields: Names of attributes, or functions of the element. A single one is the key itself; several form a named
            tuple.
        kwargs: Names for parts of the key, with attributes or functions.

    Example: ``words | GroupBy(len)`` over ``"to"`` and ``"be"`` emits ``(2, ["to", "be"])``.

    >>> GroupBy("team", size=len).label
    'GroupBy(team, size)'
    """

    if TYPE_CHECKING:

        @property
        def _own_function(self) -> KeyFunctionT_co: ...  # type: ignore[override]

        @property
        def _groups(self) -> KeyFunctionT_co: ...

    @overload
    def __init__(self: GroupBy[Callable[[Any], Any]], field: str, /) -> None: ...

    @overload
    def __init__(self, field: KeyFunctionT_co, /) -> None: ...

    @overload
    def __init__(self: GroupBy[Callable[[Any], Any]], *fields: Given, **kwargs: Given) -> None: ...

    def __init__(self, *fields: Given, **kwargs: Given) -> None:
        super().__init__()
        self._force_tuple_keys = len(fields) != 1 or bool(kwargs)
        self._key_fields = _named(fields, kwargs, "key{}" if self._force_tuple_keys else "key")

    def aggregate_field(
        self, field: Given, combine_fn: CombineFn | Callable[..., Any], dest: str
    ) -> _GroupAndAggregate:
        """Combines a field of each group's elements, instead of emitting the elements.

        Args:
            field: The name of an attribute, or a function of the element.
            combine_fn: A CombineFn, or a function such as ``sum``.
            dest: The name of the result's field.

        Returns:
            A transform to named tuples of key fields and results; more fields can be added to it.
        """
        return _GroupAndAggregate(self, ()).aggregate_field(field, combine_fn, dest)

    def force_tuple_keys(self, value: bool = True) -> GroupBy[Callable[[Any], Any]]:
        """Returns this transform, with a named tuple as the key even if there is one field."""
        clone: GroupBy[Any] = copy.copy(self)
        clone._force_tuple_keys = value
        return clone

    def default_label(self) -> str:
        return f"GroupBy({', '.join(name for name, _ in self._key_fields)})"

    def key_function(self) -> Callable[[Any], Any]:
        """Returns the function from an element to its key."""
        if not self._force_tuple_keys:
            return self._key_fields[0][1]
        self._check_names([name for name, _ in self._key_fields])
        return KeyOf(tuple(self._key_fields))

    def _check_names(self, names: list[str]) -> None:
        for at, name in enumerate(names):
            if name in names[:at]:
                what = f"two fields of the result have the name {name!r}"
                raise refusal(ValueError, what, where=self._where(), hint="rename one of them")
            if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
                hint = f"give it another one, as in GroupBy(name={name!r})"
                what = f"{name!r} cannot be the name of a field of the result"
                raise refusal(ValueError, what, where=self._where(), hint=hint)

    def key_type(self, input_type: object) -> Any:
        """Returns the type of the keys of elements of a type."""
        if not self._force_tuple_keys:
            return _type_of(self._key_fields[0][1], input_type)
        return row_type.RowTypeConstraint.from_fields(
            [(name, _type_of(expression, input_type)) for name, expression in self._key_fields]
        )

    def expand(self: GroupBy[Callable[[T], K]], pcoll: PCollection[T]) -> PCollection[tuple[K, Iterable[T]]]:
        input_type = pcoll.element_type or typehints.Any
        keyed = Map(KeyedBy(self.key_function())).with_output_types(
            typehints.Tuple[self.key_type(input_type), input_type]
        )
        result: PCollection[tuple[K, Iterable[T]]] = pcoll | "Key" >> keyed | GroupByKey()
        return result


class _GroupAndAggregate(PTransform[Any, Any]):
    def __init__(self, grouping: GroupBy[Any], aggregations: tuple[tuple[Any, Any, str], ...]) -> None:
        super().__init__()
        self._grouping = grouping.force_tuple_keys(True)
        self._aggregations = aggregations

    def aggregate_field(
        self, field: Given, combine_fn: CombineFn | Callable[..., Any], dest: str
    ) -> _GroupAndAggregate:
        more = (*self._aggregations, (_expression(field, 0), combine_fn, dest))
        return _GroupAndAggregate(self._grouping, more)

    def default_label(self) -> str:
        return self._grouping.default_label()

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        key_fields = tuple(self._grouping._key_fields)
        names = (*(name for name, _ in key_fields), *(dest for _, _, dest in self._aggregations))
        self._grouping._check_names(list(names))
        keyed = Map(KeyAndValues(KeyOf(key_fields), tuple(each for each, _, _ in self._aggregations)))
        input_type = pcoll.element_type or typehints.Any
        key_type = self._grouping.key_type(input_type)
        combine_fn = TupleCombineFn.of_lists(combine_fn for _, combine_fn, _ in self._aggregations)
        result: PCollection[Any] = (
            pcoll
            | "Key" >> keyed.with_output_types(typehints.Tuple[key_type, typehints.Any])
            | CombinePerKey(combine_fn)
            | "Result" >> Map(ResultOf(names)).with_output_types(self._result_type(names, input_type))
        )
        return result

    def _result_type(self, names: tuple[str, ...], input_type: object) -> object:
        kinds = [_type_of(each, input_type) for _, each in self._grouping._key_fields]
        kinds += [_combined_type(fn, _type_of(each, input_type)) for each, fn, _ in self._aggregations]
        return row_type.RowTypeConstraint.from_fields(list(zip(names, kinds, strict=True)))


def _combined_type(combine_fn: CombineFn | Callable[..., Any], input_type: object) -> object:
    """The type of the result of a well-known combiner for values of a type; Any for all others."""
    if isinstance(combine_fn, CountCombineFn | MeanCombineFn):
        return combine_fn.get_type_hints().simple_output_type("")
    return result_type(CombineFn.maybe_from_callable(combine_fn), input_type)


class Select(PTransform[Any, Any]):
    """Emits a `penstock.pvalue.Row` of fields or expressions of each element (Beam's ``Select``).

    Args:
        args: Names of attributes, or functions of the element.
        kwargs: Names for the row's fields, with attributes or functions.

    Example: ``words | Select(word=str.lower, size=len)`` over ``"To"`` emits ``Row(word="to", size=2)``.

    >>> Select("team", size=len).label
    'ToRows(team, size)'
    """

    def __init__(self, *args: Given, **kwargs: Given) -> None:
        super().__init__()
        self._fields = _named(args, kwargs, "arg{:02d}")
        self._exception_handling: dict[str, Any] | None = None

    def with_exception_handling(self, **kwargs: object) -> PTransform[Any, dict[str, PCollection[Any]]]:
        """Adds an output for elements that fail, in a dict of outputs; see `ParDo.with_exception_handling`."""
        self._exception_handling = kwargs
        return self

    def default_label(self) -> str:
        return f"ToRows({', '.join(name for name, _ in self._fields)})"

    def infer_output_type(self, input_type: object) -> object:
        return row_type.RowTypeConstraint.from_fields(
            [(name, _type_of(each, input_type)) for name, each in self._fields]
        )

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Row]:
        result: PCollection[Row] = self._rows(pcoll)
        return result

    def _rows(self, pcoll: PCollection[Any]) -> Any:
        """The rows; with exception handling, a dict of the rows and the failed elements."""
        fields = tuple(self._fields)
        in_window = any(reads_window(each) for _, each in fields)
        make_row = Map(RowInWindow(fields) if in_window else RowOf(fields))
        rows = make_row.with_output_types(self.infer_output_type(pcoll.element_type or typehints.Any))
        if self._exception_handling is None:
            return pcoll | "Row" >> rows
        result = pcoll | "Row" >> rows.with_exception_handling(**self._exception_handling)
        main_tag = self._exception_handling.get("main_tag", "good")
        dead_letter_tag = self._exception_handling.get("dead_letter_tag", "bad")
        return {main_tag: result[main_tag], dead_letter_tag: result[dead_letter_tag]}


class PartitionFn(WithTypeHints):
    """Chooses the part that an element belongs to (Beam's ``PartitionFn``)."""

    def default_label(self) -> str:
        """Returns the name of the class, for labels."""
        return type(self).__name__

    def partition_for(self, element: Any, num_partitions: int, *args: Any, **kwargs: Any) -> int:
        """Returns the part's number, from 0 to `num_partitions` - 1."""
        raise NotImplementedError


class CallableWrapperPartitionFn(PartitionFn):
    """A PartitionFn of a function from an element and the number of parts to the part's number."""

    def __init__(self, fn: Callable[..., int]) -> None:
        super().__init__()
        if not callable(fn):
            what = f"Expected a callable object instead of: {fn!r}"
            hint = "pass a function of the element and the number of parts, or a PartitionFn"
            raise refusal(TypeError, what, hint=hint)
        self.fn = fn

    def partition_for(self, element: object, num_partitions: int, *args: object, **kwargs: object) -> int:
        return self.fn(element, num_partitions, *args, **kwargs)


class _ApplyPartitionFn(DoFn):
    def process(
        self, element: object, partitionfn: PartitionFn, n: int, *args: object, **kwargs: object
    ) -> Iterable[Any]:
        partition = partitionfn.partition_for(element, n, *args, **kwargs)
        if isinstance(partition, bool) or not isinstance(partition, numbers.Integral):
            what = f"PartitionFn yielded a '{type(partition).__name__}' when it should only yield integers"
            raise refusal(ValueError, what, hint="return a number, 0 or more")
        if not 0 <= int(partition) < n:
            what = f"PartitionFn specified out-of-bounds partition index: {partition} not in [0, {n})"
            raise refusal(ValueError, what, hint="return a number below the number of parts")
        return [TaggedOutput(str(int(partition)), element)]


class Partition(PTransformWithSideInputs):
    """Divides a PCollection into a fixed number of parts (Beam's ``Partition``).

    Args:
        fn: A `PartitionFn`, or a function from element and number of parts to the part's number.
        args: The number of parts, then further arguments, including side inputs.
        kwargs: Likewise, by name.
    """

    ApplyPartitionFnFn = _ApplyPartitionFn

    def make_fn(self, fn: Any, has_side_inputs: bool) -> PartitionFn:
        return fn if isinstance(fn, PartitionFn) else CallableWrapperPartitionFn(fn)

    def expand(self, pcoll: PCollection[T]) -> pvalue.DoOutputsTuple[T]:
        """Returns the parts, to unpack in order; ValueError if the number of parts is missing, or below 1."""
        args, kwargs = self.raw_side_inputs
        if not args or not isinstance(args[0], int) or args[0] < 1:
            what = f"Partition needs the number of parts, 1 or more, after the function, not {args[:1]}"
            raise refusal(ValueError, what, where=self._where(), hint="Partition(fn, 2)")
        tags = [str(index) for index in range(args[0])]
        pardo = ParDo(_ApplyPartitionFn(), self.fn, *args, **kwargs)
        outputs: pvalue.DoOutputsTuple[T] = pcoll | "Part" >> pardo.with_output_types(
            pcoll.element_type or typehints.Any, **dict.fromkeys(tags, pcoll.element_type or typehints.Any)
        ).with_outputs(*tags)
        return outputs
