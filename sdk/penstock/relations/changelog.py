"""A collection's changes as its elements, so that they can be printed, tested and written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.functions.dofn import DoFn
from penstock.relations.changes import make_elements
from penstock.transforms.elements.pardo import ParDo
from penstock.typehints import typehints
from penstock.utils.windowed_value import ValueKind, WindowedValue


class Changelog(PTransform[Any, Any]):
    """Turns each element into a pair of its kind of change and its value; the result has only insertions.

    A grouping that accumulates and retracts emits elements that retract earlier ones. Sinks refuse such elements; they
    take pairs of a `ValueKind` and an element. (Penstock's own.)

    Example: ``totals | Changelog() | WriteToJson("/changes")``.
    """

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        self._check_pcollection(pcoll)
        pairs = typehints.Tuple[ValueKind, pcoll.element_type or typehints.Any]
        return pcoll | ParDo(_PairWithKind()).with_output_types(pairs)


class _PairWithKind(DoFn):
    """Pairs each element with its kind, in a pane that adds."""

    # The search for retractions ends here.
    emits_insertions_only = True

    def process(
        self, element: object, windowed: WindowedValue = DoFn.WindowedValueParam
    ) -> Iterable[WindowedValue]:
        return make_elements(windowed, [(windowed.pane_info.kind, element)], ValueKind.INSERT)
