"""Makes elements of the rows that pass Spark's filters, and keeps the times of the others for the watermark."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from penstock_spark.columns.values import to_dicts, to_rows
from penstock_spark.sources.placing import Placing
from penstock_spark.sources.scan import Part


class MaskedRows:
    """Reads the rows of a source with the mask ``m`` and the event time ``t``; a `StreamDecoder`.

    `names` are the names of the fields, whose columns come first, and `records` the type of an element, ``"dict"`` or
    ``"row"``. The columns ``p0``, ``p1`` and up tell the places of rows.

    >>> rows = {"c0": ["a", "b"], "m": [True, False], "t": [1, 2]}
    >>> [part] = MaskedRows(("key",), "dict", Placing(()))(pa.RecordBatch.from_pydict(rows))
    >>> part.values, part.times_micros, part.others_micros
    ([{'key': 'a'}], [1], [2])
    """

    def __init__(self, names: tuple[str, ...], records: str, placing: Placing) -> None:
        self._names = list(names)
        self._to_elements = to_dicts if records == "dict" else to_rows
        self._placing = placing

    def __call__(self, batch: pa.RecordBatch) -> Iterator[Part]:
        fields = [batch.column(f"c{number}") for number in range(len(self._names))]
        times, mask = batch.column("t"), batch.column("m")
        places = [batch.column(f"p{number}") for number in range(len(self._placing.columns))]
        whole = pa.RecordBatch.from_arrays([*fields, times], names=[*self._names, ""])
        for place, start, end in self._placing.places(places, batch):
            passes, rows = mask.slice(start, end - start), whole.slice(start, end - start)
            kept, others = rows.filter(passes), rows.columns[-1].filter(pc.invert(passes))
            own = kept.select(range(len(self._names)))
            times_micros = kept.columns[-1].to_pylist()
            yield Part(place, self._to_elements(own), times_micros, others_micros=others.to_pylist())
