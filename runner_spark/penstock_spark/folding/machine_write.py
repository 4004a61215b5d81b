"""The map side of a grouping's machine: elements as exchange rows, one by one, in the order they come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.coders.deterministic import encode_keys
from penstock.metrics.execution import MetricsContainer
from penstock_spark.reports.failure import call_guarded
from penstock_spark.worker.batch import Batch, Windows, dumps
from penstock_spark.worker.keys import find_keys_to_pickle, payloads
from penstock_spark.worker.pairs import make_retraction_error, split_pairs
from penstock_spark.worker.program import ElementWriterSpec
from penstock_spark.worker.pushing import Node, Records
from penstock_spark.worker.rows import exchange_records

if TYPE_CHECKING:
    import pyarrow as pa


class ElementWriter(Node):
    def __init__(
        self, spec: ElementWriterSpec, stage: int, partition: int, metrics: MetricsContainer
    ) -> None:
        self.spec = spec
        self.metrics = metrics
        self._stage = stage
        self._number = partition << 40

    def push(self, batch: Batch) -> Records:
        yield call_guarded(self.metrics, self.spec.where, self._rows, batch)

    def _rows(self, batch: Batch) -> pa.RecordBatch:
        if batch.retracts and not self.spec.may_retract:
            raise make_retraction_error()
        keys, values = split_pairs(batch, self.spec.where)
        names = encode_keys(keys)
        count, first = len(keys), self._number
        self._number += count
        timestamps, panes = batch.timestamps, batch.panes
        return exchange_records(
            self.spec.output,
            self.spec.tag,
            names,
            timestamps if isinstance(timestamps, list) else [timestamps] * count,
            list(range(first, first + count)),
            _encode_windows(batch.windows, count),
            [pane.kind for pane in panes] if isinstance(panes, list) else [panes.kind] * count,
            [self._stage] * count,
            payloads(names, find_keys_to_pickle(names, keys), values),
        )


def _encode_windows(windows: Windows | list[Windows], count: int) -> list[bytes]:
    """Returns the windows of each element as bytes; most elements share a tuple."""
    if not isinstance(windows, list):
        return [dumps(windows)] * count
    encoded: dict[int, bytes] = {}
    return [encoded.get(id(own)) or encoded.setdefault(id(own), dumps(own)) for own in windows]
