"""The transforms that write to a sink: of any kind, of records, of files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from penstock import graph
from penstock.construction.applicable import ResultT
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.error import refusal
from penstock.io.files.window_files import windowing_of_files
from penstock.io.formats.file_formats import RecordFileSink
from penstock.io.formats.partition_folders import check_columns_of_sink
from penstock.io.formats.record_types import check_fields_have_columns, type_of_records
from penstock.transforms.elements.field_checks import check_field_names
from penstock.utils.timestamp import Duration


class SinkTransform(PTransform[Any, PCollection[ResultT]]):
    """A step that writes its input to `sink`, and returns what it wrote; by default the class's name is its label."""

    def __init__(self, sink: graph.Sink, label: str | None = None) -> None:
        super().__init__(label)
        self.sink = sink
        seconds = sink.triggering_frequency
        if seconds is not None and Duration.of(seconds).micros <= 0:
            what = f"triggering_frequency must be greater than 0, but is {seconds}"
            raise refusal(ValueError, what, hint="pass seconds, such as 60")

    def expand(self, pcoll: PCollection[Any]) -> PCollection[ResultT]:
        self._check_pcollection(pcoll)
        if not self.sink.key:
            # With a key, elements may be changes of rows, which are rows inside.
            check_fields_have_columns(self.sink.schema, pcoll.element_type, self._where())
        return PCollection.from_(pcoll)

    def to_primitive(self) -> graph.Write:
        return graph.Write(self.sink)

    def get_windowing(self, inputs: Any) -> Any:
        """The global window, because names of files have no window; a stream's files keep windows, as in Beam."""
        windowing = super().get_windowing(inputs)
        is_bounded = all(pcoll.is_bounded for pcoll in inputs if isinstance(pcoll, PCollection))
        return windowing_of_files(windowing, is_bounded, self.sink).after_grouping()


class TableSinkTransform(SinkTransform[Any]):
    """A step that writes records to a table; the element type has the columns, unless there is a schema or a key."""

    sink: Any
    _example_of_schema: ClassVar[str] = "schema=pyarrow.schema([...])"

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        self._check_pcollection(pcoll)
        if self.sink.schema is None and not self.sink.key:
            what = f"{type(self).__name__} does not know the columns"
            element_type = type_of_records(self, pcoll, what, self._example_of_schema)
            self.sink = replace(self.sink, element_type=element_type)
            check_field_names(self._partition_columns(), element_type, self._where())
        return super().expand(pcoll)

    def _partition_columns(self) -> Sequence[str]:
        return tuple(self.sink.partition_by)


class FileSinkTransform(SinkTransform[str]):
    """A step that writes its input to files, and returns their names."""

    def infer_output_type(self, input_type: object) -> object:
        return str


class RecordFileSinkTransform(FileSinkTransform):
    """A step that writes records to files; the element type has the columns, unless there is a schema."""

    sink: RecordFileSink
    _without_schema: ClassVar[str]
    """The first line of the error if neither the schema nor the element type has the columns."""
    _example_of_schema: ClassVar[str] = "schema=pyarrow.schema([...])"
    _hint_of_columns: ClassVar[str] = "pass schema=pyarrow.schema([...])"

    def expand(self, pcoll: PCollection[Any]) -> PCollection[str]:
        self._check_pcollection(pcoll)
        if self.sink.schema is None and self._takes_records():
            element_type = type_of_records(self, pcoll, self._without_schema, self._example_of_schema)
            self.sink = replace(self.sink, element_type=element_type)
        names = self.sink.column_names()
        check_columns_of_sink(self.sink.partition_by, names, self._where(), self._hint_of_columns)
        return super().expand(pcoll)

    def _takes_records(self) -> bool:
        """True if an element is a record, and not a table of many."""
        return True
