"""Batches of NumPy, pandas and Arrow for DoFns with a ``process_batch``: importing this registers their converters.

A library is imported only when a type hint names one of its classes.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from penstock.functions.batches import BatchConverter


def load_numpy_batches() -> ModuleType:
    """The module of NumPy's batches; raises ImportError if NumPy is not installed."""
    from penstock_spark.columns import numpy_batches

    return numpy_batches


def _is_of(library: str, *hints: object) -> bool:
    kinds = [hint if isinstance(hint, type) else type(hint) for hint in hints]
    return any(kind.__module__.partition(".")[0] == library for kind in kinds)


@BatchConverter.register(name="numpy")
def numpy_converter(element_type: object, batch_type: object) -> BatchConverter[Any, Any]:
    named = getattr(type(batch_type), "__name__", "") == "NumpyTypeConstraint"
    if not (named or _is_of("numpy", batch_type)):
        raise TypeError("batch type must be np.ndarray or beam.typehints.batch.NumpyArray[..]")
    converter: BatchConverter[Any, Any] = load_numpy_batches().converter(element_type, batch_type)
    return converter


@BatchConverter.register(name="pandas")
def pandas_converter(element_type: object, batch_type: object) -> BatchConverter[Any, Any]:
    if not _is_of("pandas", batch_type):
        raise TypeError("batch type must be pd.Series or pd.DataFrame")
    from penstock_spark.columns import pandas_batches

    return pandas_batches.converter(element_type, batch_type)


@BatchConverter.register(name="pyarrow")
def arrow_converter(element_type: object, batch_type: object) -> BatchConverter[Any, Any]:
    if not _is_of("pyarrow", batch_type):
        raise TypeError("batch type must be pa.Table, pa.RecordBatch or pa.Array")
    from penstock_spark.columns import arrow_batches

    return arrow_batches.converter(element_type, batch_type)
