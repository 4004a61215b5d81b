"""The descriptions of CSV and JSON sources and sinks, and the two transforms that carry them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, is_dataclass, replace
from dataclasses import fields as dataclass_fields
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.base.row import Row
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.error import refusal
from penstock.graph import Sink
from penstock.io.fileio import FileResult
from penstock.io.paths import check_path
from penstock.io.primitive import SinkTransform, SourceTransform
from penstock.io.streams import Streamable
from penstock.transforms.field_checks import check_field_names

if TYPE_CHECKING:
    from penstock.io.write_files import FileResult


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

    has_fields = True
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

    format: ClassVar[str]

    def describe(self) -> str:
        return f"{self.format} {self.path}"


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
      hint: use only these: sep
    """
    unknown = sorted(set(given) - known)
    if unknown:
        what = f"{transform} does not support the arguments {', '.join(unknown)}"
        raise refusal(TypeError, what, hint=f"use only these: {', '.join(sorted(known))}")


class ReadColumns(SourceTransform[Row]):
    """Reads a source of rows; made by `ReadFromCsv` and `ReadFromJson`."""

    source: CsvSource | JsonSource

    def __init__(self, source: CsvSource | JsonSource, label: str) -> None:
        super().__init__(source, label)
        check_path(source.file_pattern, "path")

    def element_type_in(self, pipeline: Any) -> Any:
        """The declared type, or the type found in the files, to which the data must then keep."""
        element_type = super().element_type_in(pipeline)
        if self.get_type_hints().simple_output_type(self.label) is None:
            self.source = replace(self.source, found=element_type)
        return element_type

    def infer_output_type(self, input_type: Any) -> Any:
        return Row


class WriteColumns(SinkTransform["FileResult"]):
    """Writes rows to a sink; made by `WriteToCsv` and `WriteToJson`."""

    sink: ColumnSink

    def __init__(self, sink: ColumnSink, label: str) -> None:
        super().__init__(sink, label)
        check_path(sink.path, "path")

    def expand(self, pcoll: Any) -> PCollection[FileResult]:
        element_type = getattr(pcoll, "element_type", None)
        check_field_names(dict(self.sink.options).get("columns") or (), element_type, self._where())
        self.sink = replace(self.sink, columns=field_names(element_type))
        result: PCollection[FileResult] = super().expand(pcoll)
        return result

    def infer_output_type(self, input_type: Any) -> Any:
        return FileResult


def field_names(element_type: Any) -> tuple[str, ...] | None:
    """The names of a record type's fields, in order; None for any other type.

    >>> from typing import NamedTuple
    >>> field_names(NamedTuple("Score", [("team", str), ("points", int)]))
    ('team', 'points')
    """
    fields = getattr(element_type, "_fields", None)
    if not fields and is_dataclass(element_type):
        fields = [each.name for each in dataclass_fields(element_type)]
    if not isinstance(fields, tuple | list):
        return None
    return tuple(each if isinstance(each, str) else each[0] for each in fields)


def type_of_records(transform: PTransform[Any, Any], pcoll: Any, what: str, schema: str) -> Any:
    """The type of the records that a step writes; ValueError with these words if the elements are none."""
    element_type = getattr(pcoll, "element_type", None)
    if field_names(element_type) is None:
        hint = f"pass {schema}, or give the elements a NamedTuple type"
        raise refusal(ValueError, what, where=transform._where(), hint=hint)
    return element_type
