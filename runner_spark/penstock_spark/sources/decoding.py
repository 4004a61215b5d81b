"""Decoding a stream's batches place by place, and what becomes of rows that do not parse."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock_spark.columns.values import to_rows
from penstock_spark.reports.failure import StepFailure, fail_step
from penstock_spark.sources.scan import Part, Rejected
from penstock_spark.sources.stream_files import FILE, Naming

PartDecoder = Callable[[pa.RecordBatch, str], list[Any]]
"""A function from rows of one file, and its name, to elements."""


class ByFile:
    """Decodes batches whose last columns contain the file of each row, and its place; a `StreamDecoder`.

    `decode` takes the other columns, for some rows of one file. Rows of files that `naming` excludes are
    dropped. With `makes_records`, it makes a record of each row, with a field for each column.

    >>> from penstock_spark.sources.stream_files import CHANGED, START
    >>> decode = ByFile(lambda batch, file: batch.column(0).to_pylist(), Naming())
    >>> rows = {"value": [1, 2, 3], FILE: ["file:/a", "file:/a", "file:/b"], START: [0, 0, 0]}
    >>> [part[:2] for part in decode(pa.RecordBatch.from_pydict(rows))]
    [(('file:///a', 0), [1, 2]), (('file:///b', 0), [3])]
    >>> [part[:2] for part in decode(pa.RecordBatch.from_pydict({**rows, CHANGED: [7, 7, 5]}))]
    [((7, 'file:///a', 0), [1, 2]), ((5, 'file:///b', 0), [3])]
    """

    def __init__(self, decode: PartDecoder, naming: Naming, *, makes_records: bool = False) -> None:
        self._decode = decode
        self._naming = naming
        self._makes_records = makes_records

    def __call__(self, batch: pa.RecordBatch) -> list[Part]:
        first = batch.schema.names.index(FILE)
        rows, parts = batch.select(range(first)), []
        for file, (_, offset, *changed), start, end in runs_of_files(batch.columns[first:], self._naming):
            own = rows.slice(start, end - start)
            columns = own if self._makes_records else None
            parts.append(Part((*changed, file, offset), self._decode(own, file), columns=columns))
        return [part for part in parts if part.values]


OFFSET_COLUMNS = {"topic": "string", "partition": "int", "offset": "bigint"}
"""The columns, with their types, by which the rows of a queue say where they stand."""


def by_offset(batch: pa.RecordBatch) -> list[Part]:
    """The Rows of a batch of a queue, by topic, partition and offset; a `StreamDecoder`.

    >>> rows = {"topic": ["t"] * 3, "partition": [0, 0, 1], "offset": [7, 8, 3], "value": ["a", "b", "c"]}
    >>> [(part.place, len(part.values)) for part in by_offset(pa.RecordBatch.from_pydict(rows))]
    [(('t', 0, 7), 2), (('t', 1, 3), 1)]
    """
    columns = [batch.column(name) for name in OFFSET_COLUMNS]
    parts = []
    *partition, offsets = columns
    for known, start, end in find_runs(partition):
        rows = batch.slice(start, end - start)
        parts.append(Part((*known, offsets[start].as_py()), to_rows(rows), columns=rows))
    return parts


def runs_of_files(
    columns: Sequence[pa.Array], naming: Naming
) -> Iterator[tuple[str, tuple[Any, ...], int, int]]:
    """The runs of rows with one place in a file, as (file, place, first row, last row + 1), by columns such as `PLACE`.

    Rows of files that `naming` excludes are left out.
    """
    for place, start, end in find_runs(columns):
        file = naming.name(place[0])
        if file is not None:
            yield file, place, start, end


def find_runs(columns: Sequence[pa.Array]) -> Iterator[tuple[tuple[Any, ...], int, int]]:
    """Yields the runs of rows with equal values in all of these columns, as (values, first row, last row + 1).

    >>> list(find_runs([pa.array(["a", "a", "a", "b"]), pa.array([1, 2, 2, 2])]))
    [(('a', 1), 0, 1), (('a', 2), 1, 3), (('b', 2), 3, 4)]
    """
    ends = {end for column in columns for end in pc.run_end_encode(column).run_ends.to_pylist()}
    start = 0
    for end in sorted(ends):
        yield tuple(column[start].as_py() for column in columns), start, end
        start = end


@dataclass(frozen=True)
class RejectingDecoder:
    """Decodes rows, with a `Rejected` for each row that it cannot decode; a `PartDecoder`."""

    decode: PartDecoder  # Decodes many rows or one.
    raw: str  # The column with the original text or bytes.
    # True if rows may be rejected; otherwise, an exception of `decode` is an error of the step.
    has_rejects: bool
    where: str

    def __call__(self, batch: pa.RecordBatch, file: str) -> list[Any]:
        try:
            return self.decode(batch, file)
        except Exception as error:
            # A failure that is the step's already is not the fault of a row.
            if isinstance(error, StepFailure) or not self.has_rejects:
                fail_step(error, self.where)
        elements: list[Any] = []
        for place in range(batch.num_rows):
            row = batch.slice(place, 1)
            try:
                elements += self.decode(row, file)
            except StepFailure:
                raise
            except Exception as error:
                [raw] = row.column(self.raw).cast(pa.binary()).to_pylist()
                elements.append(Rejected(text_or_bytes(raw), error))
        return elements


def text_or_bytes(raw: bytes) -> str | bytes:
    r"""The text, if it is UTF-8.

    >>> text_or_bytes(b"caf\xc3\xa9"), text_or_bytes(b"caf\xe9")
    ('café', b'caf\xe9')
    """
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw
