"""Stops a stream at a file with columns that it would leave out, because no file had them when it began."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

from pyspark.sql import types as T

from penstock.error import refusal
from penstock_spark.reports.failure import fail_step

_HINT = (
    "start the pipeline again, which then reads them too, or name the columns to read with columns=[...] to leave "
    "others out"
)


@dataclass
class LaterColumns:
    """Looks for columns that a stream did not find at the start; they would be lost, since a file is read once.

    The failed micro-batch is read again after a restart, which finds them.

    >>> later_columns = LaterColumns(("a", "b"), "at step 'Read' (game.py:41)")
    >>> later_columns.look("/in/2.parquet", lambda: ("b", "a"))
    """

    known: Collection[str]  # The columns of the files that the stream began with.
    where: str
    _seen: set[str] = field(default_factory=set, init=False)

    def look(self, file: str, names_of: Callable[[], Iterable[str]]) -> None:
        """Looks at a file once; `names_of` returns its columns."""
        if file in self._seen:
            return
        new = [name for name in names_of() if name not in self.known]
        if new:
            what = f"{file} has columns that no file had when the stream started: {', '.join(new)}"
            fail_step(refusal(ValueError, what, where=self.where, hint=_HINT), self.where)
        self._seen.add(file)


def list_nested_names(schema: T.StructType) -> Iterator[str]:
    """Yields the names of columns and of the fields in them, each prefixed with the names of its parents.

    >>> point = T.StructType().add("x", "long").add("y", "long")
    >>> list(list_nested_names(T.StructType().add("id", "long").add("path", T.ArrayType(point))))
    ['id', 'path', 'path.x', 'path.y']
    """
    for column in schema:
        yield column.name
        for name in _names_in(column.dataType):
            yield f"{column.name}.{name}"


def _names_in(kind: T.DataType) -> Iterator[str]:
    match kind:
        case T.StructType():
            yield from list_nested_names(kind)
        case T.ArrayType(elementType=item):
            yield from _names_in(item)
        case T.MapType(keyType=key, valueType=value):
            yield from _names_in(key)
            yield from _names_in(value)
