"""Batches that are pandas DataFrames, with a row for each element, or Series."""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from typing import Any

import pandas as pd

from penstock.functions.batches import BatchConverter
from penstock.typehints.row_type import RowTypeConstraint
from penstock.values.types import BOOLEAN, FLOAT, FLOAT_GREATEST, INTEGER, TEXT
from penstock_spark.columns.elements import (
    LibraryBatches,
    RowBatches,
    are_kept,
    make_element_error,
    row_type,
    strip_none,
)
from penstock_spark.columns.losses import overflows

_WIDTHS = ("int8", "int16", "int32", "int64")
_BY_DTYPE = {
    **dict.fromkeys(_WIDTHS, INTEGER),
    **dict.fromkeys(("float32", "float64"), FLOAT),
    **dict.fromkeys(("bool", "boolean"), BOOLEAN),
    "string": TEXT,
}
"""The types of values, by the names of dtypes in small letters; a column of the dtype "object" changes no value."""


def converter(element_type: object, batch_type: object) -> BatchConverter[Any, Any]:
    if batch_type is pd.Series:
        return SeriesConverter(element_type)
    if batch_type is not pd.DataFrame:
        raise TypeError("batch type must be pd.Series or pd.DataFrame")
    row = row_type(element_type)
    if row is None:
        raise TypeError("Element type must have named fields for batch type pd.DataFrame")
    return FrameConverter(row)


def dtype_of(hint: object) -> str:
    """Returns the pandas dtype for a type of values (Beam's table); ``object`` if pandas has none.

    >>> from penstock.typehints import Optional
    >>> [dtype_of(hint) for hint in (int, Optional[int], str, list)]
    ['int64', 'Int64', 'string', 'object']
    """
    inner, nullable = strip_none(hint)
    name = inner.__name__.rstrip("_") if isinstance(inner, type) else ""
    if inner in (int, float):
        name = f"{name}64"
    if name in _WIDTHS:
        return name.capitalize() if nullable else name
    if name in ("float32", "float64"):
        return name
    if name == "bool":
        return "boolean" if nullable else "bool"
    return "string" if inner is str else "object"


def _series(values: Sequence[Any], hint: object, field: str = "") -> pd.Series[Any]:
    """Values as a column; raises TypeError, which names the field, if the column would change a value."""
    dtype, nullable = dtype_of(hint), strip_none(hint)[1]
    kinds = set(map(type, values)) - ({type(None)} if nullable else set())
    value = _BY_DTYPE.get(dtype.lower())
    if value is not None and not all(map(value.takes, kinds)):
        raise make_element_error(hint, field)
    if dtype == "float32" and overflows(values, FLOAT_GREATEST[32]):
        raise make_element_error(hint, field)
    try:
        made = pd.Series(list(values), dtype=dtype)
    except (TypeError, ValueError, OverflowError):
        raise make_element_error(hint, field) from None
    if made.dtype.kind == "f" and not are_kept(values, made.to_numpy()):
        raise make_element_error(hint, field)
    return made


def _values(series: pd.Series[Any], hint: object) -> list[Any]:
    """Returns the values of a column, as Python values where pandas knows their types."""
    values: list[Any] = series.tolist()
    if not strip_none(hint)[1]:
        return values
    # Pandas also counts the NaN of Decimals as missing.
    return [
        None if is_null and not isinstance(value, decimal.Decimal) else value
        for value, is_null in zip(values, series.isna().tolist(), strict=True)
    ]


class SeriesConverter(LibraryBatches):
    """Series of elements.

    >>> made = SeriesConverter(int)
    >>> made.explode_batch(made.produce_batch([1, 2]) * 2)
    [2, 4]
    """

    def __init__(self, element_type: object) -> None:
        super().__init__(pd.Series, element_type)

    def produce_batch(self, elements: Sequence[Any]) -> pd.Series:
        return _series(elements, self._element_type)

    def explode_batch(self, batch: object) -> Any:
        return _values(batch, self._element_type)

    def combine_batches(self, batches: Sequence[Any]) -> pd.Series:
        return pd.concat(batches)

    def estimate_byte_size(self, batch: pd.Series) -> int:
        return int(batch.memory_usage())


class FrameConverter(RowBatches):
    """DataFrames with a column for each field; the index has no meaning.

    A float that may be None has the dtype float64, as in Beam, whose one missing number is NaN: it arrives as None.

    >>> from penstock.pvalue import Row
    >>> from penstock.typehints import Optional
    >>> made = FrameConverter(RowTypeConstraint.from_fields([("a", int), ("b", Optional[str])]))
    >>> made.explode_batch(made.produce_batch([Row(a=1, b=None), Row(a=2, b="c")]))
    [Row(a=1, b=None), Row(a=2, b='c')]
    """

    def __init__(self, element_type: RowTypeConstraint) -> None:
        super().__init__(pd.DataFrame, element_type)

    def produce_batch(self, elements: Sequence[Any]) -> pd.DataFrame:
        columns = zip(self._element_type.fields, self._columns(elements), strict=True)
        return pd.DataFrame({name: _series(values, hint, name) for (name, hint), values in columns})

    def explode_batch(self, batch: pd.DataFrame) -> Any:
        return self._rows(batch.columns, lambda name, hint: _values(batch[name], hint))

    def combine_batches(self, batches: Sequence[Any]) -> pd.DataFrame:
        return pd.concat(batches)

    def estimate_byte_size(self, batch: pd.DataFrame) -> int:
        return int(batch.memory_usage().sum())
