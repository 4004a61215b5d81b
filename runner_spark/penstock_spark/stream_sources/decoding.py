"""Decoding a stream's batches file by file, and what becomes of rows that do not parse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock_spark.operators.failure import step_failed
from penstock_spark.stream_sources.files import Naming
from penstock_spark.stream_sources.scan import Rejected

PartDecoder = Callable[[pa.RecordBatch, str], list[Any]]
"""From rows of one file, and its name, to elements."""


class ByFile:
    """Decodes batches whose last column has the file of each row; a `StreamDecoder`.

    Args:
        decode: Decodes the other columns, for some rows of one file.
        naming: What is known of the files by their names; the rows of those that are not meant are left out.

    >>> decode = ByFile(lambda batch, file: batch.column(0).to_pylist(), Naming())
    >>> decode(pa.RecordBatch.from_pydict({"value": [1, 2, 3], "file": ["file:/a", "file:/a", "file:/b"]}))
    [('file:///a', [1, 2]), ('file:///b', [3])]
    """

    def __init__(self, decode: PartDecoder, naming: Naming) -> None:
        self._decode = decode
        self._naming = naming

    def __call__(self, batch: pa.RecordBatch) -> list[tuple[str, list[Any]]]:
        """The elements of each file in the batch."""
        if not batch.num_rows:
            return []
        last = batch.num_columns - 1
        rows, runs = batch.select(range(last)), pc.run_end_encode(batch.column(last))
        parts, start = [], 0
        for name, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            file = self._naming.name(name)
            if file is not None:
                parts.append((file, self._decode(rows.slice(start, end - start), file)))
            start = end
        return [part for part in parts if part[1]]


@dataclass(frozen=True)
class Careful:
    """Decodes rows, and gives a `Rejected` for each that cannot be decoded; a `PartDecoder`.

    Attributes:
        decode: Decodes many rows or one.
        raw: The column with what was there.
        has_rejects: Whether rows may be rejected; otherwise what `decode` raises is an error of the step.
        where: The step.
    """

    decode: PartDecoder
    raw: str
    has_rejects: bool
    where: str

    def __call__(self, batch: pa.RecordBatch, file: str) -> list[Any]:
        """The elements of some rows of a file."""
        try:
            return self.decode(batch, file)
        except Exception as error:
            if not self.has_rejects:
                step_failed(error, self.where)
        elements: list[Any] = []
        for place in range(batch.num_rows):
            row = batch.slice(place, 1)
            try:
                elements += self.decode(row, file)
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
