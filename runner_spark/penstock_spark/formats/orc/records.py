"""The records of one ORC file, a stripe at a time, with the columns that are wanted.

Pyarrow reads ORC and not Spark: Spark takes times without a zone for instants in the zone of its own Java, and dates
before 1582 for dates of the Julian calendar, unless it has written them itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, TypeVar

import pyarrow as pa
from pyarrow import orc

from penstock.error import refusal
from penstock_spark.columns.types import struct_of
from penstock_spark.columns.values import cast_to_python_types, check_names
from penstock_spark.files.kept_errors import FileToRead
from penstock_spark.sources.later_columns import LaterColumns
from penstock_spark.sources.partition_values import PartitionValues

_BATCH_ROWS = 10_000
_Result = TypeVar("_Result")
_OUT_OF_RANGE = "out of range for nanosecond"


@dataclass(frozen=True)
class OrcFile:
    """An open file."""

    file: FileToRead
    footer: orc.ORCFile
    name: str


@dataclass(frozen=True)
class OrcRecords:
    """Reads the records of files."""

    columns: tuple[str, ...] | None  # The wanted columns, in order; None for the columns of each file.
    values: PartitionValues  # The columns that are in the names of folders.
    where: str

    def open(self, file: BinaryIO, name: str) -> OrcFile:
        """Reads the footer of a file; ValueError if it is not ORC."""
        kept = FileToRead(file)
        return OrcFile(kept, self._tried(kept, name, lambda: orc.ORCFile(kept)), name)

    def all_of(
        self, file: BinaryIO, name: str, later_columns: LaterColumns | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The records of a file, many at a time; ValueError if columns of it have one name."""
        opened = self.open(file, name)
        check_names(struct_of(opened.footer.schema), name, self.where)
        if later_columns is not None:
            later_columns.look(name, lambda: opened.footer.schema.names)
        for number in range(opened.footer.nstripes):
            yield from self.stripe(opened, number)

    def stripe(self, file: OrcFile, number: int) -> Iterator[pa.RecordBatch]:
        """The records of a stripe, many at a time; ValueError if it is damaged."""
        there = file.footer.schema.names
        wanted = there if self.columns is None else [each for each in self.columns if each in there]

        def read() -> tuple[pa.Table, int]:
            found = file.footer.read_stripe(number, _to_read(wanted, there))
            own = found.select([each for each in wanted if each not in self.values.names])
            return cast_to_python_types(own), found.num_rows

        yield from self._whole(*self._tried(file.file, file.name, read), file.name)

    def _tried(self, file: FileToRead, name: str, call: Callable[[], _Result]) -> _Result:
        """Calls pyarrow; a failure is the file's own error, or a ValueError that names the file."""
        try:
            return call()
        except (pa.ArrowException, OSError) as error:
            if file.error is not None:
                raise file.error from None
            raise (self._out_of_range if _OUT_OF_RANGE in str(error) else self._damaged)(name) from None

    def _whole(self, rows: pa.Table, count: int, name: str) -> Iterator[pa.RecordBatch]:
        """The rows with all wanted columns, in order."""
        known = self.values.of_file(name) if self.values.names else {}
        columns = self.columns or (*rows.column_names, *known)
        for start in range(0, count, _BATCH_ROWS):
            part = rows.slice(start, _BATCH_ROWS).combine_chunks()
            size = min(_BATCH_ROWS, count - start)
            arrays = [
                _one_array(part.column(each))
                if each in rows.column_names
                else pa.repeat(known.get(each, pa.scalar(None)), size)
                for each in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def _damaged(self, name: str) -> ValueError:
        what = f"{name} is not an ORC file, or it is damaged"
        hint = "delete it, write it again, or give a pattern without it"
        return refusal(ValueError, what, where=self.where, hint=hint)

    def _out_of_range(self, name: str) -> ValueError:
        what = f"{name} has times before the year 1678 or after 2261, which pyarrow does not read"
        hint = "leave the column out with columns=[...], or read the file with ReadFromSpark('orc', ...)"
        return refusal(ValueError, what, where=self.where, hint=hint)


def _to_read(wanted: Sequence[str], there: Sequence[str]) -> list[str] | None:
    """The columns that pyarrow reads; None for all: it takes a dot in a name for a field of a record."""
    return None if any("." in name for name in there) else list(wanted) or list(there[:1])


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)
