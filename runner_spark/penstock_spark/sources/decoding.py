"""Decodes a stream's batches, and treats rows that cannot be parsed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from penstock.error import refusal
from penstock.io.rejects import Position, Rejected, Unreadable, reject, say_why
from penstock_spark.columns.values import to_rows
from penstock_spark.reports.failure import StepFailure, fail_step
from penstock_spark.sources.line_numbers import LineCounter, Lines, Numbers
from penstock_spark.sources.scan import Part
from penstock_spark.sources.stream_files import FILE, Naming


class Decoded(NamedTuple):
    """The elements of some rows, with the numbers of their lines."""

    values: list[Any]
    numbers: Numbers


PartDecoder: TypeAlias = Callable[[pa.RecordBatch, str, Lines], list[Any] | Decoded]
"""A function from rows of one file, its name and the lines that they are, to elements."""


class ByFile:
    """Decodes batches whose last columns contain the file of each row, and its place; a `StreamDecoder`.

    `decode` takes the other columns, for some rows of one file. Rows of files that `naming` excludes are
    dropped. With `makes_records`, it makes a record of each row, with a field for each column.

    >>> from penstock_spark.sources.stream_files import CHANGED, START
    >>> decode = ByFile(lambda batch, file, lines: batch.column(0).to_pylist(), Naming())
    >>> rows = {"value": [1, 2, 3], FILE: ["file:/a", "file:/a", "file:/b"], START: [0, 0, 0]}
    >>> [part[:2] for part in decode(pa.RecordBatch.from_pydict(rows))]
    [(('file:///a', 0), [1, 2]), (('file:///b', 0), [3])]
    >>> [part[:2] for part in decode(pa.RecordBatch.from_pydict({**rows, CHANGED: [7, 7, 5]}))]
    [((7, 'file:///a', 0), [1, 2]), ((5, 'file:///b', 0), [3])]
    """

    def __init__(
        self,
        decode: PartDecoder,
        naming: Naming,
        *,
        makes_records: bool = False,
        delimiter: bytes | None = None,
    ) -> None:
        self._decode = decode
        self._naming = naming
        self._makes_records = makes_records
        self._counter = LineCounter(delimiter)

    def __call__(self, batch: pa.RecordBatch) -> list[Part]:
        first = batch.schema.names.index(FILE)
        rows, parts = batch.select(range(first)), []
        for file, (name, offset, *changed), start, end in runs_of_files(batch.columns[first:], self._naming):
            own = rows.slice(start, end - start)
            decoded = self._decode(own, file, self._counter.rows(name, offset, end - start))
            values, numbers = decoded if isinstance(decoded, Decoded) else (decoded, None)
            columns = own if self._makes_records else None
            place = (*changed, file, offset)
            parts.append(Part(place, values, columns=columns, source=file, numbers=numbers))
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


def explain(error: Exception, file: str, line: int | None, where: str, hint: str) -> Exception:
    """Returns the error of a record that cannot be read, with its file and its line, and of the same type if possible.

    An error may have a hint of its own.

    >>> print(explain(ValueError("the record is not JSON"), "/a.json", 7, "at step 'Read'", "correct it"))
    line 7 of /a.json cannot be read: the record is not JSON
      at step 'Read'
      hint: correct it
    """
    reason = say_why(error)
    if line is None:
        what = reason if file in reason else f"{file} cannot be read: {reason}"
    else:
        what = f"line {line} of {file} cannot be read: {reason}"
    kind: type[Exception] = ValueError if isinstance(error, Unreadable | KeyError) else type(error)
    hint = getattr(error, "hint", None) or hint
    try:
        return refusal(kind, what, where=where, hint=hint)
    except TypeError:
        return refusal(ValueError, what, where=where, hint=hint)


@dataclass(frozen=True)
class RejectingDecoder:
    """Decodes rows, with a `Rejected` for each row that it cannot decode."""

    decode: Callable[[pa.RecordBatch, str], list[Any]]  # Decodes many rows of a file, or one.
    raw: (
        str | None
    )  # The column with the original text or bytes; None for whole files, which are still there.
    # True if rows may be rejected; otherwise, an exception of `decode` is an error of the step.
    has_rejects: bool
    where: str
    hint: str = "correct the record, or pass rejects=True, which keeps such records apart"
    explain: Callable[..., Exception] = explain  # Makes the error of a row.
    strips_returns: bool = True  # Whether a return at the end of a line belongs to its end.

    def __call__(self, batch: pa.RecordBatch, file: str, lines: Lines) -> list[Any] | Decoded:
        return self.of_rows(batch, file, None if self.raw is None else lines.number)

    def of_rows(self, batch: pa.RecordBatch, file: str, number: Numbers | None) -> list[Any] | Decoded:
        """The elements of rows; `number` returns the number of the line of a row."""
        try:
            values = self.decode(batch, file)
        except StepFailure:
            # A failure that is the step's already is not the fault of a row.
            raise
        except Exception:
            values = self._one_by_one(batch, file, number)
        is_same = number is not None and len(values) == batch.num_rows
        return Decoded(values, number) if is_same and number is not None else values

    def _one_by_one(self, batch: pa.RecordBatch, file: str, number: Numbers | None) -> list[Any]:
        elements: list[Any] = []
        for place in range(batch.num_rows):
            row = batch.slice(place, 1)
            try:
                elements += self.decode(row, file)
            except StepFailure:
                raise
            except Exception as error:
                line = None if number is None else number(place)
                if not self.has_rejects:
                    fail_step(self.explain(error, file, line, self.where, self.hint), self.where)
                raw: str | bytes = ""
                if self.raw is not None:
                    [found] = row.column(self.raw).cast(pa.binary()).to_pylist()
                    raw = found.removesuffix(b"\r") if self.strips_returns else found
                elements.append(Rejected(reject(file, Position(line), raw, error)))
        return elements
