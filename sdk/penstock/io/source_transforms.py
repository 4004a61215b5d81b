"""The transforms that read a source: once, or continuously."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from penstock import graph
from penstock.construction.applicable import ResultT
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import DoOutputsTuple, PBegin, PCollection
from penstock.elements.tagged_output import TaggedOutput
from penstock.error import refusal
from penstock.functions.dofn import DoFn
from penstock.io.files.paths import require_files
from penstock.io.formats.file_formats import FileSource, RecordFileSource
from penstock.io.rejects import ELEMENTS_REJECTED, REJECTED, Rejected, RejectedRecord
from penstock.io.streaming.stream_sources import (
    ACCEPTED,
    SourceWithRejects,
    StreamSource,
    max_ahead_micros_of,
    reader_options,
    tick_micros_of,
    watermark_of,
)
from penstock.io.streaming.watermark_policy import WatermarkPolicy
from penstock.metrics.metric import Metrics
from penstock.options.standard import TypeOptions
from penstock.transforms.elements.field_checks import check_field_names
from penstock.transforms.elements.pardo import ParDo
from penstock.typehints import typehints
from penstock.typehints.row_type import RowTypeConstraint
from penstock.utils.timestamp import DurationTypes

if TYPE_CHECKING:
    from penstock.construction.pipeline import Pipeline


class SourceTransform(PTransform[Any, PCollection[ResultT]]):
    """A root of the pipeline that reads `source`; by default the class's name is its label.

    With `rejects`, it has a second output, tagged ``"rejected"``, of `penstock.io.rejects.RejectedRecord`.
    """

    def __init__(self, source: graph.Source, label: str | None = None, *, rejects: bool = False) -> None:
        super().__init__(label)
        self.source = source
        self._rejects = _flag("rejects", rejects)

    def expand(self, pbegin: PBegin) -> PCollection[ResultT]:
        """Returns the new PCollection; missing local files raise a FileNotFoundError."""
        _require_files(self.source, pbegin.pipeline.current_transform().where)
        element_type = self.element_type_in(pbegin.pipeline)
        if self._rejects:
            return cast(PCollection[ResultT], self._divided(pbegin, element_type))
        return PCollection(pbegin.pipeline, element_type=element_type, is_bounded=self.source.is_bounded)

    def _divided(self, pbegin: PBegin, element_type: object) -> object:
        """The elements and the rejected records, which one step reads and the next one divides."""
        if element_type is None:
            element_type = self.infer_output_type(typehints.Any)
        divide = ParDo(_Divide()).with_output_types(element_type, **{REJECTED: RejectedRecord})
        read: SourceTransform[Any] = SourceTransform(SourceWithRejects(self.source), "Read")
        return pbegin | read | "Divide" >> divide.with_outputs(REJECTED, main=ACCEPTED)

    def element_type_in(self, pipeline: Any) -> Any:
        """Returns the type that the user has declared, or that the runner finds in the source; otherwise None."""
        declared = self.get_type_hints().simple_output_type(self.label)
        if declared is not None:
            self.take_declared_type(declared, pipeline)
        if declared is not None or not self.source.has_fields:
            return declared
        if not pipeline.options.view_as(TypeOptions).pipeline_type_check:
            return None
        where = pipeline.current_transform().where
        return pipeline.runner.element_type_of(self.source, pipeline.options, where)

    def take_declared_type(self, element_type: object, pipeline: Pipeline) -> None:
        """Adapts the source to the type that the user has declared for its elements, if it has records of fields."""
        row = row_of(element_type)
        if row is not None and isinstance(self.source, RecordFileSource):
            self.source = self.source.with_declared_fields(row)

    def to_primitive(self) -> graph.Read:
        return graph.Read(self.source)

    def as_stream(
        self,
        event_time: str | Callable[[Any], Any] | None = None,
        watermark: WatermarkPolicy | None = None,
        *,
        arrival_time: str | Callable[[Any], Any] | None = None,
        tick: DurationTypes = 1,
        partition: str | Callable[[Any], Any] | None = None,
        max_ahead: DurationTypes | None = 86400,
        rejects: bool = False,
        max_files_per_batch: int | None = None,
        max_bytes_per_batch: int | None = None,
        max_records_per_batch: int | None = None,
        existing_only: bool = False,
    ) -> Any:
        """Returns this source as a stream: it reads the existing content, then every addition (penstock's own).

        Files must be complete when they appear, and are read once. `event_time`, `arrival_time` and `partition` are
        the name of a field or a function of the element. A time is a ``Timestamp``, a ``datetime`` (in UTC if it has
        no zone), or a number of seconds since 1970.

        Example: ``ReadFromText("/logs/*.txt").as_stream(event_time=parse_time, watermark=BoundedDisorder(60))``.

        Args:
            event_time: An element's event time; by default the source's own, if it has one, otherwise the arrival time.
            watermark: A policy of `penstock.io.watermarks`; required with an event time, and without effect otherwise.
            arrival_time: The arrival time in recorded logs, which replays them in their own processing time; by default
                an element arrives when it is read.
            tick: With `arrival_time`: elements that arrive within this number of seconds arrive at the same logical
                time.
            partition: The name of an element's partition, for policies that look at each partition; by default the
                source's own, if it has partitions; otherwise there is one for all elements: files are read one after
                the other.
            max_ahead: Event times more than this number of seconds ahead of the clock do not advance the watermark, and
                are counted; with None, all event times advance it.
            rejects: Whether there is a second output, tagged ``"rejected"``, for records that cannot be read and
                elements without a usable time, each as a `penstock.io.rejects.RejectedRecord`; otherwise they are
                errors.
            max_files_per_batch: The maximum number of files in a micro-batch; by default all.
            max_bytes_per_batch: The same for bytes.
            max_records_per_batch: The same for records, for sources that count them, such as Kafka.
            existing_only: Whether the stream ends after the existing content, as in a replay; otherwise it waits for
                more.

        Returns:
            A transform whose output is an unbounded PCollection; with `rejects`, it has two outputs.

        >>> from penstock.io.sparkio import ReadFromSpark
        >>> from penstock.io.watermarks import BoundedDisorder
        >>> clicks = ReadFromSpark("kafka", subscribe="clicks").as_stream("timestamp", BoundedDisorder(60))
        >>> clicks.source.describe()
        'stream of spark kafka, BoundedDisorder'
        """
        stream = StreamSource(
            self.source,
            watermark_of(self.source, watermark, event_time),
            event_time,
            arrival_time,
            tick_micros_of(tick, arrival_time),
            partition,
            max_ahead_micros_of(max_ahead),
            _flag("rejects", rejects) or self._rejects,
            reader_options(self.source, max_files_per_batch, max_bytes_per_batch, max_records_per_batch),
            _flag("existing_only", existing_only),
        )
        return ReadStream(stream.check(), self)


def row_of(element_type: object) -> RowTypeConstraint | None:
    """Returns the row hint of a type of elements; None if it has no named fields."""
    if isinstance(element_type, RowTypeConstraint):
        return element_type
    return RowTypeConstraint.from_user_type(element_type)


def _require_files(source: graph.Source, where: str, *, is_stream: bool = False) -> None:
    if isinstance(source, FileSource) and source.validate:
        hint = "check the path" + (", or pass validate=False" if source.takes_validate else "")
        require_files(source.file_pattern, where, hint, is_stream=is_stream)


def _flag(name: str, given: bool) -> bool:
    """A text such as "false" would be true."""
    if not isinstance(given, bool):
        what = f"{name} must be True or False, but is {given!r}"
        raise refusal(TypeError, what, hint=f"write {name}=True, or leave it out")
    return given


class _Divide(DoFn):
    """Divides what a source has read from what it has rejected."""

    def __init__(self) -> None:
        super().__init__()
        self._count = Metrics.counter(*ELEMENTS_REJECTED)

    def process(self, element: object) -> tuple[object, ...]:
        if type(element) is not Rejected:
            return (element,)
        self._count.inc()
        return (TaggedOutput(REJECTED, element.record),)


class ReadStream(SourceTransform):
    """A root of the pipeline that reads continuously; made by ``as_stream``.

    It has the label, element type and resource hints of `read`, the transform that would read the source once.
    """

    source: StreamSource

    def __init__(self, source: StreamSource, read: SourceTransform) -> None:
        super().__init__(source, read.label)
        self._read = read
        self.get_resource_hints().update(read.get_resource_hints())

    def expand(self, pbegin: PBegin) -> Any:
        where = pbegin.pipeline.current_transform().where
        _require_files(self.source.source, where, is_stream=True)
        if not self.source.has_rejects:
            return super().expand(pbegin)
        element_type = self.element_type_in(pbegin.pipeline)
        # Outputs that are made on first use would be bounded, like the beginning of the pipeline.
        made = {
            None: PCollection(pbegin.pipeline, element_type=element_type, is_bounded=False),
            REJECTED: PCollection(pbegin.pipeline, REJECTED, RejectedRecord, is_bounded=False),
        }
        return DoOutputsTuple(pbegin.pipeline, self, (REJECTED,), ACCEPTED, made=made)

    def infer_output_type(self, input_type: object) -> object:
        return self._read.infer_output_type(input_type)

    def element_type_in(self, pipeline: Any) -> Any:
        """Returns the element type of `read`, which must have the fields of times and partitions."""
        declared = self.get_type_hints().simple_output_type(self.label)
        element_type = declared
        if declared is None:
            element_type = self._read.element_type_in(pipeline)
        else:
            self._read.take_declared_type(declared, pipeline)
        self.source = replace(self.source, source=self._read.source)
        selectors = (self.source.event_time, self.source.arrival_time, self.source.partition)
        names = [selector for selector in selectors if isinstance(selector, str)]
        check_field_names(names, element_type, pipeline.current_transform().where)
        return element_type
