"""PCollections made of values that the program holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

from penstock import graph
from penstock.construction import pvalue
from penstock.construction.applicable import K, T, V
from penstock.construction.ptransform import PTransform, where_of
from penstock.construction.pvalue import PBegin, PCollection
from penstock.elements.row import Row
from penstock.error import noun_for, refusal
from penstock.typehints import trivial_inference, typehints
from penstock.typehints.row_type import RowTypeConstraint
from penstock.windows.windowing import Windowing, default_windowing

_PLAIN_TYPES = frozenset({bool, bytes, complex, float, int, str})


class Create(PTransform[Any, PCollection[T]]):
    """Creates a PCollection of values, in the global window at the minimum timestamp (Beam's ``Create``).

    Args:
        values: An iterable; a dict stands for its items.
        reshuffle: Has no effect: up to 1,000 values are one bundle, and more are always spread. To spread a few values
            that each need much work, apply a `Reshuffle` after this step.

    Raises:
        TypeError: If `values` is a string or bytes, or cannot be iterated.

    Example: ``pipeline | Create(["tea", "cake"])`` emits ``"tea"`` and ``"cake"``.
    """

    @overload
    def __init__(self: Create[tuple[K, V]], values: Mapping[K, V], reshuffle: bool = True) -> None: ...

    @overload
    def __init__(self, values: Iterable[T], reshuffle: bool = True) -> None: ...

    def __init__(self, values: Iterable[Any], reshuffle: bool = True) -> None:
        super().__init__()
        if isinstance(values, (str, bytes)):
            what = f"PTransform Create: Refusing to treat string as an iterable. (string={values!r})"
            raise refusal(TypeError, what, where=self._where(), hint="put it into a list")
        try:
            iter(values)
        except TypeError as error:
            what = f"Create needs an iterable of values, not {noun_for(values)}"
            hint = "put a single value into a list"
            raise refusal(TypeError, what, where=self._where(), hint=hint) from error
        self.values = tuple(values.items() if isinstance(values, Mapping) else values)
        self.reshuffle = reshuffle

    def to_primitive(self) -> graph.Primitive:
        return graph.Read(graph.InlineValues(self.values))

    def get_output_type(self) -> Any:
        """Returns the declared type of the elements, or the type of the values."""
        return self.get_type_hints().simple_output_type(self.label) or self.infer_output_type(None)

    def infer_output_type(self, input_type: object) -> object:
        """Returns the union of the values' types; rows are taken field by field."""
        if not self.values:
            return typehints.Any
        if all(type(value) is Row for value in self.values):
            return _row_type(self.values)
        return _union_of_types(self.values)

    def get_windowing(self, inputs: Sequence[Any]) -> Windowing:
        return default_windowing()

    def expand(self, pbegin: PBegin) -> PCollection[T]:
        return _from_begin(self, pbegin)


class Impulse(PTransform[Any, Any]):
    """Creates a PCollection of one element, the empty bytes (Beam's ``Impulse``).

    Example: ``pipeline | Impulse() | FlatMap(lambda _: list_files())`` calls `list_files` in a worker.
    """

    def to_primitive(self) -> graph.Primitive:
        return graph.Read(graph.InlineValues((b"",)))

    def infer_output_type(self, input_type: object) -> object:
        return bytes

    def get_windowing(self, inputs: Sequence[Any]) -> Windowing:
        return default_windowing()

    def expand(self, pbegin: PBegin) -> PCollection[bytes]:
        return _from_begin(self, pbegin)


def _from_begin(transform: PTransform[Any, Any], pbegin: PBegin) -> pvalue.PCollection[Any]:
    if not isinstance(pbegin, pvalue.PBegin):
        what = f"Input to {type(transform).__name__} transform must be a PBegin but found {pbegin}"
        raise refusal(TypeError, what, where=where_of(transform), hint="apply it to the pipeline itself")
    return pvalue.PCollection(pbegin.pipeline)


def _union_of_types(values: Iterable[Any]) -> object:
    plain: dict[Any, None] = {}
    others: list[Any] = []
    for value in values:
        kind = type(value)
        if kind in _PLAIN_TYPES:
            plain[kind] = None
        else:
            others.append(trivial_inference.instance_to_type(value))
    return typehints.Union[(*plain, *others)]


def _row_type(rows: Sequence[Row]) -> object:
    """The type of rows with the fields of all of them, as they come; a field that a row lacks may be None."""
    fields = [row.as_dict() for row in rows]
    names = dict.fromkeys(name for row in fields for name in row)
    return RowTypeConstraint.from_fields(
        [(name, _union_of_types(row.get(name) for row in fields)) for name in names]
    )
