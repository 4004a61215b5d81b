"""Sources that tasks read on their own: Spark sends each task only its number, by which it finds its parts."""

from __future__ import annotations

import abc
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from penstock_spark.files.splits import items_of_tasks
from penstock_spark.session.backends import backend_of
from penstock_spark.sources.scan import Scan, nothing_to_check
from penstock_spark.worker.batch import Batch


class PartsReader(abc.ABC):
    """Reads the parts of the tasks whose numbers are in a batch; a `Reader`."""

    parts: Sequence[Sequence[Any]]  # The parts of each task.

    def __call__(self, batch: pa.RecordBatch) -> Iterator[list[Any] | Batch]:
        for part in items_of_tasks(batch, self.parts):
            yield from self.read(part)

    @abc.abstractmethod
    def read(self, part: Any) -> Iterable[list[Any] | Batch]:
        """Returns the elements of a part, many at a time."""


@dataclass(frozen=True)
class PackedParts(Sequence[Sequence[Any]]):
    """The parts of each task, objects of penstock, as bytes: a task unpickles only its own.

    >>> packed = PackedParts.of([["a", "b"], ["c"]])
    >>> len(packed), packed[1]
    (2, ['c'])
    """

    packed: tuple[bytes, ...]

    @classmethod
    def of(cls, parts: Iterable[Sequence[Any]]) -> PackedParts:
        return cls(tuple(pickle.dumps(each, pickle.HIGHEST_PROTOCOL) for each in parts))

    def __len__(self) -> int:
        return len(self.packed)

    def __getitem__(self, number: Any) -> Any:
        return pickle.loads(self.packed[number])


def scan_of_parts(
    spark: SparkSession, reader: PartsReader, check: Callable[[], None] = nothing_to_check
) -> Scan:
    """Returns the scan of a reader, with a task for each entry of its `parts`."""
    count = len(reader.parts)
    frame = spark.range(0, count, 1, max(1, count))
    return Scan(frame, lambda: reader, in_parts=True, check=check, has_columns=False)


def make_empty_scan(spark: SparkSession) -> Scan:
    """Returns the scan of a source without any files."""
    return Scan(
        backend_of(spark).empty_frame(StructType().add("nothing", "integer")), lambda: lambda batch: []
    )
