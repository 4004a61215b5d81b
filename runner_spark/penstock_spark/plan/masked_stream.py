"""A source with columns whose first filters and selections Spark does, before Python sees the elements, as a value."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.io.streaming.stream_sources import StreamSource
from penstock_spark.plan.column_plan import Columns, arguments_of


@dataclass(frozen=True, eq=False)
class MaskedStream(StreamSource):
    """A source that is read continuously, up to its first filters and selections.

    What a filter leaves out moves the watermark: it reaches Python as a time, and not as an element.
    """

    columns: Columns = field(kw_only=True)

    @staticmethod
    def of(stream: StreamSource, columns: Columns) -> MaskedStream:
        return MaskedStream(**arguments_of(stream), columns=columns)
