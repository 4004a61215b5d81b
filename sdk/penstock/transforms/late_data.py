"""What a grouping does not take any more, as an output (penstock's own)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock import graph
from penstock.construction import pvalue
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import DoOutputsTuple, PCollection
from penstock.error import three_parts
from penstock.windows.windowing import Windowing

GROUPED = "grouped"
"""The name of the main output."""

LATE = "late"
"""The tag of the output for elements that come too late."""


class WithLateData(PTransform[Any, Any]):
    """A grouping with a second output: elements for windows whose time is over, or that have given their last pane.

    ``GroupByKey().with_late_data()`` and ``CombinePerKey(fn).with_late_data()`` make it. An element keeps its
    timestamp, and has those of its windows that did not take it. They are counted as well, as without this.

    Example: ``sums, late = pairs | CombinePerKey(sum).with_late_data()``.

    Args:
        grouping: The grouping.

    Raises:
        ValueError: It is a combine with side inputs, which is no grouping by itself.
    """

    def __init__(self, grouping: PTransform[Any, Any]) -> None:
        super().__init__(grouping.label)
        if grouping.to_primitive() is None:
            what = "a combine with side inputs is made of several steps, and cannot tell what comes too late"
            raise ValueError(three_parts(what, where=self._where(), hint="use GroupByKey().with_late_data()"))
        self._grouping = grouping

    def expand(self, pcoll: Any) -> pvalue.DoOutputsTuple:
        """Both outputs."""
        late: PCollection[Any] = PCollection(
            pcoll.pipeline, LATE, pcoll.element_type, pcoll.windowing, pcoll.is_bounded
        )
        outputs = DoOutputsTuple(pcoll.pipeline, self, (LATE,), GROUPED)
        outputs._pcolls = {None: self._grouping.expand(pcoll), LATE: late}
        return outputs

    def to_primitive(self) -> graph.Primitive | None:
        """That of the grouping."""
        return self._grouping.to_primitive()

    def type_check_inputs(self, pvalueish: Any) -> None:
        """That of the grouping."""
        self._grouping.type_check_inputs(pvalueish)

    def infer_output_type(self, input_type: Any) -> Any:
        """The type of the main output."""
        declared = self._grouping.get_type_hints().simple_output_type(self.label)
        return declared or self._grouping.infer_output_type(input_type)

    def get_windowing(self, inputs: Sequence[Any]) -> Windowing:
        """That of the main output."""
        return self._grouping.get_windowing(inputs)
