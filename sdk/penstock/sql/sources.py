"""Reads the tables of a catalog: a transform that reads, the path of a file, or rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from penstock.construction.ptransform import PTransform
from penstock.elements.row import Row
from penstock.error import noun_for, refusal
from penstock.io.avroio import ReadFromAvro
from penstock.io.csvio import ReadFromCsv
from penstock.io.jsonio import ReadFromJson
from penstock.io.orcio import ReadFromOrc
from penstock.io.parquetio import ReadFromParquet
from penstock.transforms.elements.create import Create

_READERS: Mapping[str, Callable[[str], PTransform[Any, Any]]] = {
    ".csv": ReadFromCsv,
    ".json": ReadFromJson,
    ".jsonl": ReadFromJson,
    ".parquet": lambda path: ReadFromParquet(path, as_rows=True),
    ".orc": lambda path: ReadFromOrc(path, as_rows=True),
    ".avro": lambda path: ReadFromAvro(path, as_rows=True),
}


def read_source(name: str, source: object) -> PTransform[Any, Any]:
    """Returns a transform that reads a table.

    Args:
        name: The name of the table, for errors.
        source: As in `Catalog.create_table`.

    Raises:
        TypeError: It is nothing that can be read.
        ValueError: The name of the file does not show its format, or the list is empty.

    >>> read_source("goals", "goals.txt")
    Traceback (most recent call last):
        ...
    ValueError: the table 'goals' is the file goals.txt, whose name does not show its format
      at ...
      hint: name a file of .csv, .json, .jsonl, .parquet, .orc or .avro, or pass a transform that reads it
    """
    if isinstance(source, PTransform):
        return source
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        read = _READERS.get(os.path.splitext(path)[1].lower())
        if read is None:
            what = f"the table {name!r} is the file {path}, whose name does not show its format"
            *suffixes, last = _READERS
            hint = f"name a file of {', '.join(suffixes)} or {last}, or pass a transform that reads it"
            raise refusal(ValueError, what, hint=hint)
        return read(path)
    records = getattr(source, "to_dict", None)
    rows = records("records") if records is not None and hasattr(source, "columns") else source
    if not isinstance(rows, list | tuple):
        what = f"the table {name!r} is {noun_for(source)}"
        raise refusal(
            TypeError, what, hint="pass a list of rows, the path of a file, or a transform that reads"
        )
    if not rows:
        what = f"the table {name!r} is an empty list, so its columns are unknown"
        raise refusal(ValueError, what, hint="pass Create([]).with_output_types(Goal)")
    if type(rows[0]) in (tuple, list):
        what = f"the rows of the table {name!r} are {type(rows[0]).__name__}s, so its columns are unknown"
        raise refusal(TypeError, what, hint="write dicts, Rows, or instances of a NamedTuple or a dataclass")
    return Create([Row(**row) if isinstance(row, Mapping) else row for row in rows])
