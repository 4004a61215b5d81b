"""Makes elements of the rows that pass the filters of Spark's, and keeps the times of the others for the watermark."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from penstock_spark.arrow.values import to_dicts, to_rows
from penstock_spark.sources.decoding import Placing
from penstock_spark.sources.scan import Part


class MaskedRows:
    """Reads the rows of a source with the mask ``m``; a `StreamDecoder`.

    Args:
        names: The names of the fields, whose columns come first.
        records: ``"dict"`` or ``"row"``, what an element is.
        has_times: Whether the column ``t`` has event times.
        placing: How rows tell their places.
        places: How many columns ``p0``, ``p1`` and up that takes.

    >>> rows = {"c0": ["a", "b"], "m": [True, False], "t": [1, 2]}
    >>> MaskedRows(("key",), "dict", True, Placing(()), 0)(pa.RecordBatch.from_pydict(rows)).__next__()[:3]
    ((), [{'key': 'a'}], [1])
    """

    def __init__(
        self, names: tuple[str, ...], records: str, has_times: bool, placing: Placing, places: int
    ) -> None:
        self._names = names
        self._to_elements = to_dicts if records == "dict" else to_rows
        self._has_times = has_times
        self._placing = placing
        self._places = [f"p{place}" for place in range(places)]

    def __call__(self, batch: pa.RecordBatch) -> Iterator[Part]:
        fields = [f"c{place}" for place in range(len(self._names))]
        for place, start, end in self._placing.places([batch.column(name) for name in self._places], batch):
            rows = batch.slice(start, end - start)
            mask = rows.column("m")
            kept = rows.filter(mask)
            own = pa.RecordBatch.from_arrays([kept.column(name) for name in fields], names=list(self._names))
            if not self._has_times:
                # What is left out arrives now, and that is no news where times are those of arrival.
                yield Part(place, self._to_elements(own), others_micros=None)
                continue
            others = rows.filter(pc.invert(mask)).column("t")
            yield Part(
                place,
                self._to_elements(own),
                kept.column("t").to_pylist(),
                others_micros=others.to_pylist(),
            )
