"""The rows of a table whose records replace each other by key: each change retracts the row before it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.coders import PickleCoder
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.error import refusal
from penstock.functions.dofn import DoFn
from penstock.functions.userstate import ReadModifyWriteRuntimeState, ReadModifyWriteStateSpec
from penstock.io.kafka import KafkaRecord
from penstock.relations.changes import make_elements
from penstock.sql.plan.relations import Columns
from penstock.sql.tables.columns import row_hint
from penstock.sql.tables.records import RowOfRecord
from penstock.transforms.elements.pardo import Map, ParDo
from penstock.transforms.grouping.windowing import WindowInto
from penstock.typehints import KV
from penstock.utils.windowed_value import ValueKind, WindowedValue
from penstock.windows.window_fn import GlobalWindows


class LatestRows(PTransform[Any, Any]):
    """Makes of records the additions and retractions of rows: of each key, the newest record has the row.

    A record without a value retracts the row of its key. A record with a lower offset than one that was seen in the
    partition has no effect.

    Args:
        row_of: Makes a row of a record.
        columns: The columns of the rows.
    """

    def __init__(self, row_of: RowOfRecord, columns: Columns) -> None:
        super().__init__()
        self._row_of = row_of
        self._columns = columns

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        records = pcoll | "All time" >> WindowInto(GlobalWindows())
        keyed = records | "Key" >> Map(_with_key).with_output_types(KV[bytes, KafkaRecord])
        changes = ParDo(_Replace(self._row_of)).with_output_types(row_hint(self._columns))
        rows: PCollection[Any] = keyed | "Changes" >> changes
        return rows


def _with_key(record: KafkaRecord) -> tuple[bytes, KafkaRecord]:
    if record.key is None:
        what = "a record has no key, and the table replaces rows by their key"
        raise refusal(ValueError, what, where="", hint="declare the table without PRIMARY KEY")
    return record.key, record


class _Replace(DoFn):
    """Retracts the row of a key, and adds the new one.

    Attributes:
        emits_retractions: A record replaces the row of an earlier one.
    """

    emits_retractions = True

    LAST = ReadModifyWriteStateSpec("last", PickleCoder())

    def __init__(self, row_of: RowOfRecord) -> None:
        self._row_of = row_of

    def process(
        self,
        element: tuple[bytes, KafkaRecord],
        windowed: WindowedValue = DoFn.WindowedValueParam,
        last: ReadModifyWriteRuntimeState = DoFn.StateParam(LAST),
    ) -> Iterable[WindowedValue]:
        """Yields the change of a record."""
        _, record = element
        partition, offset, before = last.read() or (record.partition, -1, None)
        if record.partition == partition and record.offset <= offset:
            return
        now = self._row_of(record)
        last.write((record.partition, record.offset, now))
        if before is not None:
            kind = ValueKind.DELETE if now is None else ValueKind.UPDATE_BEFORE
            yield from make_elements(windowed, [before], kind)
        if now is not None:
            kind = ValueKind.INSERT if before is None else ValueKind.UPDATE_AFTER
            yield from make_elements(windowed, [now], kind)
