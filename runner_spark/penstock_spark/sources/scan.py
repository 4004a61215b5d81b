"""What a source is once it is open: a DataFrame, and how its batches become elements."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.error import UnsupportedByRunner
from penstock.graph import Source
from penstock_spark.plan.column_bounds import UNBOUNDED, Bounds

Decoder = Callable[[pa.RecordBatch], list[Any]]
Reader = Callable[[pa.RecordBatch], Iterable[list[Any]]]


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


@functools.singledispatch
def open_source(source: Source, spark: SparkSession, where: str) -> Scan:
    """Opens a source. All elements are in the global window, at the minimum timestamp.

    Args:
        source: A description from `penstock.io`.
        spark: The session that reads it.
        where: The step, for errors.

    Raises:
        OSError: No file matches.
        ValueError: What is there cannot be read as described.
        UnsupportedByRunner: The runner knows no such source.
    """
    raise UnsupportedByRunner(
        f"the source {source.describe()} has no reader", where=where, hint="use a source from penstock.io"
    )
