"""The descriptions of CSV and JSON sources and sinks, and the two transforms that carry them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from penstock.base.row import Row
from penstock.construction.pvalue import PCollection
from penstock.error import refusal
from penstock.graph import Sink
from penstock.io.fileio import FileResult
from penstock.io.partition_folders import check_columns_of_sink, check_partition_columns, described
from penstock.io.paths import check_path
from penstock.io.primitive import SinkTransform, SourceTransform
from penstock.io.record_types import field_names
from penstock.io.streams import Streamable
from penstock.transforms.field_checks import check_field_names


@dataclass(frozen=True)
class CsvSource(Streamable):
    """CSV files as rows; see `ReadFromCsv`.

    `found` is the type of the rows that was found when the pipeline was built; the data must keep to it.
    """

    file_pattern: Any
    splittable: bool = True
    filename_column: str | None = None
    options: tuple[tuple[str, Any], ...] = ()  # Arguments of ``pandas.read_csv``, as sorted pairs.
    found: Any = None
    partition_by: tuple[str, ...] = ()  # The columns that are in the names of folders, which the pattern has.
    schema: Any = None  # What has the types of these columns; without it, they are text.

    has_fields = True
    has_columns = True
    rejects_text = True

    def describe(self) -> str:
        return f"csv {self.file_pattern}"

    def known_fields(self) -> tuple[str, ...] | None:
        match dict(self.options).get("usecols"):
            case list() | tuple() as names if all(isinstance(name, str) for name in names):
                return tuple(name for name in (*names, self.filename_column) if name is not None)
        return None


@dataclass(frozen=True)
class JsonSource(Streamable):
    """JSON files as rows; see `ReadFromJson`, and `CsvSource` for `found`."""

    file_pattern: Any
    lines: bool = True
    encoding: str = "utf-8"
    found: Any = None
    partition_by: tuple[str, ...] = ()  # As in `CsvSource`.
    schema: Any = None

    has_fields = True
    rejects_text = True

    def describe(self) -> str:
        return f"json {self.file_pattern}"

    def why_no_stream(self) -> tuple[str, str] | None:
        if self.lines:
            return None
        what = "JSON files that are one list or object each cannot be read as a stream"
        return what, "write an object a line, and leave out lines=False"


@dataclass(frozen=True)
class ColumnSink(Sink):
    """Rows in CSV or JSON files, as pandas writes them; see `WriteToCsv`."""

    path: Any
    num_shards: int | None = None
    file_naming: Any = None
    options: tuple[tuple[str, Any], ...] = ()
    columns: tuple[str, ...] | None = None  # From the element type: a file without rows still has its header.
    partition_by: tuple[str, ...] = ()
    element_type: Any = None  # What has the types of these columns.

    format: ClassVar[str]

    def describe(self) -> str:
        return f"{self.format} {self.path}" + described(self.partition_by)


class CsvSink(ColumnSink):
    """CSV files."""

    format = "csv"


class JsonSink(ColumnSink):
    """JSON files."""

    format = "json"


def check_options(transform: str, given: Iterable[str], known: frozenset[str]) -> None:
    """Raises a TypeError that names each unsupported argument.

    >>> check_options("ReadFromCsv", ["nrows"], frozenset({"sep"}))
    Traceback (most recent call last):
        ...
    TypeError: ReadFromCsv does not support the arguments nrows
      at ...
      hint: use only these: sep
    """
    unknown = sorted(set(given) - known)
    if unknown:
        what = f"{transform} does not support the arguments {', '.join(unknown)}"
        raise refusal(TypeError, what, hint=f"use only these: {', '.join(sorted(known))}")


class ReadColumns(SourceTransform[Row]):
    """Reads a source of rows; made by `ReadFromCsv` and `ReadFromJson`."""

    source: CsvSource | JsonSource

    def element_type_in(self, pipeline: Any) -> Any:
        """The declared type, or the type found in the files, to which the data must then keep."""
        element_type = super().element_type_in(pipeline)
        if self.get_type_hints().simple_output_type(self.label) is None:
            self.source = replace(self.source, found=element_type)
        return element_type

    def infer_output_type(self, input_type: Any) -> Any:
        return Row


class WriteColumns(SinkTransform[FileResult]):
    """Writes rows to a sink; made by `WriteToCsv` and `WriteToJson`."""

    sink: ColumnSink

    def __init__(self, sink: ColumnSink, label: str) -> None:
        super().__init__(sink, label)
        check_path(sink.path, "path")

    def expand(self, pcoll: Any) -> PCollection[FileResult]:
        element_type, parts = getattr(pcoll, "element_type", None), self.sink.partition_by
        written = dict(self.sink.options).get("columns") or ()
        check_field_names(written, element_type, self._where())
        names = field_names(element_type)
        hint = "give the elements a type of rows, such as a NamedTuple, with .with_output_types(...)"
        check_columns_of_sink(parts, names, self._where(), hint)
        if written:
            check_partition_columns(parts, tuple(dict.fromkeys([*parts, *written])), self._where())
        self.sink = replace(self.sink, columns=names, element_type=element_type if parts else None)
        return super().expand(pcoll)

    def infer_output_type(self, input_type: Any) -> Any:
        return FileResult
