"""Changes of a table that another system has recorded, as changes of a relation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.functions.dofn import DoFn
from penstock.relations.changes import make_elements
from penstock.sql.plan.relations import Columns
from penstock.sql.tables.columns import row_hint
from penstock.transforms.elements.pardo import ParDo
from penstock.utils.windowed_value import ValueKind, WindowedValue


class ApplyChanges(PTransform[Any, Any]):
    """Makes of pairs of a `ValueKind` and a row the additions and retractions that they describe.

    Args:
        columns: The columns of the rows.
    """

    def __init__(self, columns: Columns) -> None:
        super().__init__()
        self._columns = columns

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        changes = ParDo(_ApplyChange()).with_output_types(row_hint(self._columns))
        rows: PCollection[Any] = pcoll | "Changes" >> changes
        return rows


class _ApplyChange(DoFn):
    """An element of the kind that a pair names."""

    emits_retractions = True

    def process(
        self, element: tuple[ValueKind, object], windowed: WindowedValue = DoFn.WindowedValueParam
    ) -> Iterable[WindowedValue]:
        kind, row = element
        return make_elements(windowed, [row], kind)
