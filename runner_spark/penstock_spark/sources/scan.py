"""An open source: a DataFrame, streaming or not, and the function that turns its batches into elements."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from penstock_spark.plan.column_bounds import UNBOUNDED, Bounds
from penstock_spark.worker.batch import Batch
from penstock_spark.worker.messages import Place

Decoder = Callable[[pa.RecordBatch], list[Any]]
Reader = Callable[[pa.RecordBatch], Iterable[list[Any] | Batch]]


class Part(NamedTuple):
    """Some elements of a stream: of one file or partition, in its order, or of everything."""

    place: Place  # Their place among all elements of the source; empty if they come in the order of reading.
    values: list[Any]
    times_micros: Sequence[int] | None = None  # Their event times, if the source has them.
    partition: Hashable = ""  # The partition that they belong to, if the source has partitions.
    # The columns whose rows they are, without those that its files have in their names; None for other elements.
    columns: pa.RecordBatch | None = None
    source: str = ""  # The file, or the source, as people name it.
    numbers: Callable[[int], int | None] | None = None  # The numbers of their lines, by their places.


StreamDecoder = Callable[[pa.RecordBatch], Iterable[Part]]
"""A function from an Arrow batch to its elements; it may keep state between batches."""


def nothing_to_check() -> None:
    """Checks nothing, for sources that cannot shrink unnoticed."""


@dataclass(frozen=True)
class Scan:
    frame: DataFrame
    # Called once in each task. Gives a function from each Arrow batch, in the order of the partition, to the
    # list of its elements. It may keep state between batches.
    make_decoder: Callable[[], Callable[[pa.RecordBatch], Any]]
    # True if the function returns an iterator of lists, since a row may stand for very many elements.
    in_parts: bool = False
    # Called when all is read; raises OSError if a file has shrunk, because Spark takes it for a file with
    # fewer lines.
    check: Callable[[], None] = nothing_to_check
    # True if the columns of the frame are the fields of the elements.
    has_columns: bool = True
    # The number of rows, and the range of numbers in columns, as far as files show them.
    bounds: Bounds = UNBOUNDED
    # A frame with the text of values that columns would change, for the function; None if it takes the other frame.
    to_decode: DataFrame | None = None

    @property
    def decoded_frame(self) -> DataFrame:
        """The frame whose batches the function takes."""
        return self.frame if self.to_decode is None else self.to_decode

    @property
    def make_reader(self) -> Callable[[], Reader]:
        """A function that each task calls once: it returns a function from an Arrow batch to lists of elements."""
        return self.make_decoder if self.in_parts else partial(_whole, self.make_decoder)


def _whole(make_decoder: Callable[[], Decoder]) -> Reader:
    decode = make_decoder()
    return lambda batch: (decode(batch),)


@dataclass(frozen=True)
class StreamScan:
    frame: DataFrame  # Only the decoder knows its columns, whose names differ.
    # Called once in each task, which reads batches in the order of the partition.
    make_decoder: Callable[[], StreamDecoder]
    # The time for which it may answer, without looking again, that nothing is new.
    poll_seconds: float = 0.0
    # True if a micro-batch may only note that there is news, such as a new partition, which the next one reads.
    announces: bool = False
    # Returns the fields of the elements as columns, all or at least those with some names; None if it has none.
    make_columns: Callable[[Collection[str] | None], DataFrame] | None = None
    # Raises a step's failure if the columns would not have the elements of some files, as Spark writes their names. The
    # driver asks before a micro-batch reads them.
    check_files: Callable[[Sequence[str]], None] | None = None
    # True if Spark also reads what are not elements, such as lines with the names of columns.
    reads_more: bool = False

    @cached_property
    def columns(self) -> DataFrame | None:
        """The fields of the elements as columns; None if it has none."""
        return None if self.make_columns is None else self.make_columns(None)


def prune_schema(schema: T.StructType, names: Collection[str] | None) -> T.StructType:
    """Returns the columns with some names, or all; at least one, since Spark has no rows without columns.

    >>> schema = T.StructType().add("a", "long").add("b", "string")
    >>> [prune_schema(schema, names).names for names in (None, {"b"}, ())]
    [['a', 'b'], ['b'], ['a']]
    """
    wanted = [field for field in schema if names is None or field.name in names]
    return T.StructType(wanted or schema.fields[:1])


def with_plain_names(
    frame: DataFrame, make_decoder: Callable[[], Any]
) -> tuple[DataFrame, Callable[[], Any]]:
    """Renames columns with a dot or a backquote in their names, which PySpark does not pass to Python, and adapts
    the decoder.
    """
    names = frame.columns
    if frozenset("".join(names)).isdisjoint(".`"):
        return frame, make_decoder
    return frame.toDF(*(f"c{place}" for place in range(len(names)))), partial(
        _make_renaming_decoder, make_decoder, names
    )


def _make_renaming_decoder(
    make_decoder: Callable[[], Any], names: list[str]
) -> Callable[[pa.RecordBatch], Any]:
    decode = make_decoder()
    return lambda batch: decode(batch.rename_columns(names))
