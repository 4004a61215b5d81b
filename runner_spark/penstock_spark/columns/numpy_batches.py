"""Batches that are NumPy arrays: one dimension runs over the elements, the others are the shape of an element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.functions.batches import BatchConverter, N
from penstock.typehints import typehints
from penstock.values.types import BINARY, BOOLEAN, FLOAT, INTEGER, TEXT, UNSIGNED_INTEGER
from penstock_spark.columns.elements import are_kept, length_of, make_element_error

if TYPE_CHECKING:
    import numpy.typing as npt

_OF_PYTHON = (bool, int, float, complex, str, bytes)
_VALUES = {
    "b": BOOLEAN,
    "i": INTEGER,
    "u": UNSIGNED_INTEGER,
    "f": FLOAT,
    "U": TEXT,
    "S": BINARY,
}
"""The types of values, by the kinds of arrays that have them."""

_WIDER = {"b": "b", "i": "biu", "u": "biu", "f": "biuf", "c": "biufc", "U": "U", "S": "S"}
"""For each kind of array, the kinds of elements that it holds without a change of meaning."""


class NumpyTypeHint:
    """The class of `NumpyArray`: ``NumpyArray[dtype]``, or ``NumpyArray[dtype, shape]`` (Beam's name).

    >>> NumpyTypeHint()[np.int64, (N, 3)]
    NumpyArray[dtype('int64'), ('ARBITRARY LENGTH DIMENSION', 3)]
    """

    class NumpyTypeConstraint(typehints.TypeConstraint):
        """The hint for arrays of one dtype and shape (Beam's name).

        Args:
            dtype: Anything that NumPy accepts as a dtype.
            shape: The length of each dimension; `N` for the dimension that runs over the elements.
        """

        def __init__(self, dtype: npt.DTypeLike, shape: tuple[Any, ...] = ()) -> None:
            self.dtype = np.dtype(dtype)
            self.shape = tuple(shape)

        def type_check(self, batch: object) -> None:
            """Raises TypeError, without the array's values, for any other array."""
            if not isinstance(batch, np.ndarray):
                raise TypeError(f"{type(batch).__name__} is not an instance of ndarray")
            if not np.issubdtype(batch.dtype, self.dtype):
                raise TypeError(f"an array of {batch.dtype} does not have expected dtype: {self.dtype!r}")
            if len(batch.shape) != len(self.shape) or any(
                wanted not in (N, found) for wanted, found in zip(self.shape, batch.shape, strict=True)
            ):
                raise TypeError(f"an array of shape {batch.shape} does not have expected shape: {self.shape}")

        def _consistent_with_check_(self, sub: object) -> bool:
            return True

        def __eq__(self, other: object) -> bool:
            if not isinstance(other, NumpyTypeHint.NumpyTypeConstraint):
                return NotImplemented
            return bool(self.dtype == other.dtype) and self.shape == other.shape

        def __hash__(self) -> int:
            return hash((self.dtype, self.shape))

        def __repr__(self) -> str:
            return f"NumpyArray[{self.dtype!r}{'' if self.shape == (N,) else f', {self.shape!r}'}]"

    def __getitem__(self, value: object) -> NumpyTypeConstraint:
        dtype, shape = value if isinstance(value, tuple) else (value, (N,))
        return self.NumpyTypeConstraint(dtype, shape=shape)


NumpyArray = NumpyTypeHint()
_Constraint = NumpyTypeHint.NumpyTypeConstraint


def converter(element_type: object, batch_type: object) -> NumpyBatchConverter:
    """Returns the converter for a dtype of elements and arrays of it.

    >>> converter(int, np.ndarray).explode_batch(np.array([1, 2]))
    [1, 2]
    """
    element = element_type
    if not isinstance(element, _Constraint):
        try:
            element = NumpyArray[element_type, ()]
        except TypeError as error:
            raise TypeError("Element type is not a dtype") from error
    batch = batch_type if isinstance(batch_type, _Constraint) else NumpyArray[element.dtype, (N,)]
    if batch_type is not np.ndarray and batch is not batch_type:
        raise TypeError("batch type must be np.ndarray or beam.typehints.batch.NumpyArray[..]")
    if batch.dtype != element.dtype:
        raise TypeError(
            f"batch type and element type must have equivalent dtypes (batch={batch.dtype}, element={element.dtype})"
        )
    if batch.shape.count(N) != 1:
        raise TypeError(
            f"exactly one dimension of the batch must be N, which counts the elements: {batch.shape}"
        )
    place = batch.shape.index(N)
    if batch.shape[:place] + batch.shape[place + 1 :] != element.shape:
        raise TypeError(
            "Failed to align batch type's batch dimension with element type "
            f"(batch type dimensions: {batch.shape}, element type dimensions: {element.shape})"
        )
    return NumpyBatchConverter(
        batch, element, batch.dtype, element.shape, place, as_python=element_type in _OF_PYTHON
    )


class NumpyBatchConverter(BatchConverter[Any, Any]):
    """Arrays of elements (Beam's name).

    Args:
        batch_type: A `NumpyArray`.
        element_type: A `NumpyArray`.
        dtype: The dtype of both.
        partition_dimension: The dimension of the batch that runs over the elements.
        as_python: Whether elements are Python's numbers and strings, as their type hint says, instead of NumPy's.
    """

    def __init__(
        self,
        batch_type: object,
        element_type: object,
        dtype: npt.DTypeLike,
        element_shape: tuple[int, ...] = (),
        partition_dimension: int = 0,
        as_python: bool = False,
    ) -> None:
        super().__init__(batch_type, element_type)
        self.dtype = np.dtype(dtype)
        self.element_shape = element_shape
        self.partition_dimension = partition_dimension
        self.as_python = as_python

    def produce_batch(self, elements: Sequence[Any]) -> object:
        if self.dtype.kind == "O" and not self.element_shape:
            return np.fromiter(elements, dtype=object, count=len(elements))
        try:
            if self.element_shape:
                made = np.stack(list(elements), axis=self.partition_dimension)
            else:
                made = np.asarray(elements)
        except (TypeError, ValueError):
            raise make_element_error(self._element_type) from None
        # NumPy turns a number among strings into a string, and cuts NUL characters off the end of a string.
        if self.dtype.kind in "US" and made.tolist() != list(elements):
            raise make_element_error(self._element_type)
        value = _VALUES.get(self.dtype.kind)
        if (
            value is not None
            and not self.element_shape
            and not all(map(value.takes, set(map(type, elements))))
        ):
            raise make_element_error(self._element_type)
        place = self.partition_dimension
        if made.shape[:place] + made.shape[place + 1 :] != self.element_shape:
            raise make_element_error(self._element_type)
        cast = made if made.dtype == self.dtype else self._as_declared(made)
        if self.dtype.kind == "f" and not are_kept(
            made.ravel() if self.element_shape else elements, cast.ravel()
        ):
            raise make_element_error(self._element_type)
        return cast

    def _as_declared(self, made: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        kind = self.dtype.kind
        if made.dtype.kind not in _WIDER.get(kind, kind):
            raise make_element_error(self._element_type)
        if kind in "US" and self.dtype.itemsize == 0:
            return made
        with np.errstate(all="ignore"):
            cast = made.astype(self.dtype)
        # Integers that do not fit would wrap around.
        if kind not in "fc" and (cast != made).any():
            raise make_element_error(self._element_type)
        return cast

    def explode_batch(self, batch: np.ndarray[Any, Any]) -> Any:
        """Returns the elements: Python numbers if the element's type hint is a Python type."""
        if self.as_python and not self.element_shape:
            return batch.tolist()
        return list(batch.swapaxes(self.partition_dimension, 0) if self.partition_dimension else batch)

    def combine_batches(self, batches: Sequence[Any]) -> object:
        """Returns one array.

        >>> converter(int, np.ndarray).combine_batches([np.array([1]), np.array([2])])
        array([1, 2])
        """
        return np.concatenate(batches, axis=self.partition_dimension)

    def get_length(self, batch: np.ndarray[Any, Any]) -> int:
        length_of(batch, np.ndarray)
        return int(np.size(batch, axis=self.partition_dimension))

    def estimate_byte_size(self, batch: np.ndarray[Any, Any]) -> int:
        return int(batch.nbytes)
