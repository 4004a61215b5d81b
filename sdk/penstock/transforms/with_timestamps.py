"""Giving elements the time that is in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.base.labels import label_from_callable
from penstock.base.where import here
from penstock.construction.applicable import T
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.error import three_parts
from penstock.functions.expressions import Field
from penstock.functions.field_functions import StampedBy
from penstock.transforms.pardo import Map


class WithTimestamps(PTransform[Any, Any]):
    """Gives each element a timestamp that is computed of it (the name is Beam Java's).

    Args:
        moment: The name of a field, an expression, or any function of an element. It gives seconds since the epoch, a
            Timestamp, or an aware ``datetime`` in UTC.

    Raises:
        TypeError: If `moment` is neither a text nor callable.
        ValueError: For an element of which it gives None, when the pipeline runs.

    >>> WithTimestamps("at").label
    'WithTimestamps(at)'
    """

    def __init__(self, moment: str | Callable[[Any], Any]) -> None:
        super().__init__()
        if not (isinstance(moment, str) or callable(moment)):
            raise TypeError(
                three_parts(
                    f"WithTimestamps takes the name of a field or a function, not {type(moment).__name__}",
                    where=here(),
                    hint="write WithTimestamps('at')",
                )
            )
        self._moment = Field(moment) if isinstance(moment, str) else moment

    def default_label(self) -> str:
        return f"WithTimestamps({label_from_callable(self._moment)})"

    def infer_output_type(self, input_type: Any) -> Any:
        """The input type: only the timestamp changes."""
        return input_type

    def expand(self, pcoll: PCollection[T]) -> PCollection[T]:
        return pcoll | "Stamp" >> Map(StampedBy(self._moment)).with_output_types(pcoll.element_type)
