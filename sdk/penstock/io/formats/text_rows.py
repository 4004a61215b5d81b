"""Rows in text files: what CSV and JSON share, which is their sink and the transforms that read and write them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.checks.similar_names import hint_at_name
from penstock.construction.pvalue import PCollection
from penstock.elements.row import Row
from penstock.error import refusal
from penstock.graph import Sink
from penstock.io.fileio import FileResult
from penstock.io.files.paths import check_path
from penstock.io.formats.partition_folders import (
    check_columns_of_sink,
    check_partition_columns,
    describe_partitions,
)
from penstock.io.formats.record_types import field_names
from penstock.io.sink_transforms import SinkTransform
from penstock.io.source_transforms import SourceTransform, row_of
from penstock.options.standard import TypeOptions
from penstock.transforms.elements.field_checks import check_field_names

if TYPE_CHECKING:
    from penstock.construction.pipeline import Pipeline
    from penstock.construction.pvalue import MainAndTagged, PBegin
    from penstock.io.rejects import RejectedRecord


@dataclass(frozen=True)
class TextRowsSink(Sink):
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
        return f"{self.format} {self.path}" + describe_partitions(self.partition_by)


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
        hint = hint_at_name(unknown[0], known, f"use only these: {', '.join(sorted(known))}", 0.75)
        raise refusal(TypeError, what, hint=hint)


class ReadTextRows(SourceTransform[Row]):
    """Reads a source of rows; made by `ReadFromCsv` and `ReadFromJson`."""

    source: Any

    def element_type_in(self, pipeline: object) -> Any:
        """Returns the declared type, or the type found in the files, to which the data must then keep."""
        element_type = super().element_type_in(pipeline)
        if self.get_type_hints().simple_output_type(self.label) is None:
            self.source = replace(self.source, found=element_type)
        return element_type

    def take_declared_type(self, element_type: object, pipeline: Pipeline) -> None:
        """Passes the declared fields to the source, which reads them or refuses them."""
        row = row_of(element_type)
        if row is None:
            return
        where, found = pipeline.current_transform().where, None
        if pipeline.options.view_as(TypeOptions).pipeline_type_check:
            found = pipeline.runner.element_type_of(self.source, pipeline.options, where)
        self.source = self.source.with_declared_type(row, found, where)

    def infer_output_type(self, input_type: object) -> object:
        return Row


if TYPE_CHECKING:

    class ReadWithRejects(ReadTextRows):
        """Shows the two outputs of ``rejects=True`` to type checkers."""

        def expand(  # type: ignore[override]
            self, pbegin: PBegin
        ) -> MainAndTagged[Row, PCollection[RejectedRecord]]: ...


class WriteTextRows(SinkTransform[FileResult]):
    """Writes rows to a sink; made by `WriteToCsv` and `WriteToJson`."""

    sink: TextRowsSink

    def __init__(self, sink: TextRowsSink, label: str) -> None:
        super().__init__(sink, label)
        check_path(sink.path, "path")

    def expand(self, pcoll: PCollection[Any]) -> PCollection[FileResult]:
        self._check_pcollection(pcoll)
        element_type, parts = pcoll.element_type, self.sink.partition_by
        written = dict(self.sink.options).get("columns") or ()
        check_field_names(written, element_type, self._where())
        names = field_names(element_type)
        hint = "give the elements a type of rows, such as a NamedTuple, with .with_output_types(...)"
        check_columns_of_sink(parts, names, self._where(), hint)
        if written:
            check_partition_columns(parts, tuple(dict.fromkeys([*parts, *written])), self._where())
        self.sink = replace(self.sink, columns=names, element_type=element_type if parts else None)
        return super().expand(pcoll)

    def infer_output_type(self, input_type: object) -> object:
        return FileResult
