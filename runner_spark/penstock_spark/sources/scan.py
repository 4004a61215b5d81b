"""What a source is once it is open: a DataFrame, streaming or not, and how its batches become elements."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock_spark.plan.column_bounds import UNBOUNDED, Bounds
from penstock_spark.worker.messages import Place

Decoder = Callable[[pa.RecordBatch], list[Any]]
Reader = Callable[[pa.RecordBatch], Iterable[list[Any]]]
StreamDecoder = Callable[[pa.RecordBatch], list[tuple[Place, list[Any]]]]
"""From an Arrow batch to its elements, in parts: rows of one file, in its order, with their place among all that the
source gives; or everything, with an empty place, if they come as they are read. It may keep state between batches."""


def _nothing_to_check() -> None:
    """What is read cannot become less unnoticed."""


@dataclass(frozen=True)
class Scan:
    """An open source.

    Attributes:
        frame: What Spark reads; its columns are the decoder's business.
        make_decoder: Called once in each task. Gives a function from each Arrow batch, which come in the
            order of the partition, to the list of its elements. It may keep state from batch to batch.
        in_parts: Whether the function gives an iterator of such lists, since a row may stand for very many elements.
        check: Raises OSError if what was found cannot have been read as a whole, since it is less now; called when all
            is read, because Spark takes a file that has become shorter for a file with fewer lines.
        bounds: How many rows the frame has, and how large the numbers in its columns are, as far as files tell.
    """

    frame: DataFrame
    make_decoder: Callable[[], Callable[[pa.RecordBatch], Any]]
    in_parts: bool = False
    check: Callable[[], None] = _nothing_to_check
    bounds: Bounds = UNBOUNDED

    @property
    def make_reader(self) -> Callable[[], Reader]:
        """Called once in each task: gives a function from each Arrow batch to lists of elements."""
        return self.make_decoder if self.in_parts else _Whole(self.make_decoder)


@dataclass(frozen=True)
class _Whole:
    """Makes a reader of a decoder, which gives one list for each batch."""

    make_decoder: Callable[[], Decoder]

    def __call__(self) -> Reader:
        decode = self.make_decoder()
        return lambda batch: (decode(batch),)


@dataclass(frozen=True)
class StreamScan:
    """An open unbounded source.

    Attributes:
        frame: What Spark reads; its columns, each with a name of its own, are the decoder's business.
        make_decoder: Called once in each task, which reads batches in the order of the partition.
    """

    frame: DataFrame
    make_decoder: Callable[[], StreamDecoder]


@dataclass(frozen=True)
class Rejected:
    """Stands among the elements for something that could not be parsed, if the source has an output for that.

    Attributes:
        raw: What was there: a line as text, or bytes where they are not even text.
        error: Why it is no element.
    """

    raw: Any
    error: Exception


def with_plain_names(
    frame: DataFrame, make_decoder: Callable[[], Any]
) -> tuple[DataFrame, Callable[[], Any]]:
    """The same for PySpark, which hands no column to Python that has a dot or a backquote in its name.

    Args:
        frame: What Spark reads.
        make_decoder: Makes a function of its batches.
    """
    names = tuple(frame.columns)
    if frozenset("".join(names)).isdisjoint(".`"):
        return frame, make_decoder
    return frame.toDF(*(f"c{place}" for place in range(len(names)))), _Renamed(make_decoder, names)


@dataclass(frozen=True)
class _Renamed:
    """Makes decoders that see the names that columns have in truth."""

    make_decoder: Callable[[], Any]
    names: tuple[str, ...]

    def __call__(self) -> Callable[[pa.RecordBatch], Any]:
        decode = self.make_decoder()
        return lambda batch: decode(batch.rename_columns(list(self.names)))
