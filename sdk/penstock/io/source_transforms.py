"""The transforms that read a source: once, or continuously."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from penstock import graph
from penstock.construction.applicable import ResultT
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import DoOutputsTuple, PBegin, PCollection
from penstock.error import refusal
from penstock.io.files.paths import require_files
from penstock.io.formats.file_formats import FileSource
from penstock.io.streaming.stream_sources import (
    ACCEPTED,
    REJECTED,
    Streamable,
    StreamSource,
    max_ahead_micros_of,
    reader_options,
    tick_micros_of,
    watermark_of,
)
from penstock.io.streaming.watermark_policy import WatermarkPolicy
from penstock.options.standard import TypeOptions
from penstock.transforms.dead_letters import DeadLetter
from penstock.transforms.elements.field_checks import check_field_names
from penstock.typehints import typehints
from penstock.utils.timestamp import DurationTypes


class SourceTransform(PTransform[Any, PCollection[ResultT]]):
    """A root of the pipeline that reads `source`; by default the class's name is its label."""

    def __init__(self, source: graph.Source, label: str | None = None) -> None:
        super().__init__(label)
        self.source = source

    def expand(self, pbegin: PBegin) -> PCollection[ResultT]:
        """Returns the new PCollection; missing local files raise a FileNotFoundError."""
        _require_files(self.source, pbegin.pipeline.current_transform().where)
        element_type = self.element_type_in(pbegin.pipeline)
        return PCollection(pbegin.pipeline, element_type=element_type, is_bounded=self.source.is_bounded)

    def element_type_in(self, pipeline: Any) -> Any:
        """Returns the type that the user has declared, or that the runner finds in the source; otherwise None."""
        declared = self.get_type_hints().simple_output_type(self.label)
        if declared is not None or not self.source.has_fields:
            return declared
        if not pipeline.options.view_as(TypeOptions).pipeline_type_check:
            return None
        where = pipeline.current_transform().where
        return pipeline.runner.element_type_of(self.source, pipeline.options, where)

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
        ends: bool = False,
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
                are counted; by default, all event times advance it.
            rejects: Whether there is a second output, tagged ``"rejected"``, for elements without a usable time and
                rows that cannot be parsed, each with its exception as in ``with_exception_handling``; otherwise
                they are errors.
            max_files_per_batch: The maximum number of files in a micro-batch; by default all.
            max_bytes_per_batch: The same for bytes.
            max_records_per_batch: The same for records, for sources that count them, such as Kafka.
            ends: Whether the stream ends after the existing content, as in a replay; otherwise it waits for more.

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
            _flag("rejects", rejects),
            reader_options(self.source, max_files_per_batch, max_bytes_per_batch, max_records_per_batch),
            _flag("ends", ends),
        )
        return ReadStream(stream.check(), self)


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
        rejected_type = self._rejected_type(element_type)
        # Outputs that are made on first use would be bounded, like the beginning of the pipeline.
        made = {
            None: PCollection(pbegin.pipeline, element_type=element_type, is_bounded=False),
            REJECTED: PCollection(pbegin.pipeline, REJECTED, rejected_type, is_bounded=False),
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
            self.source = replace(self.source, source=self._read.source)
        selectors = (self.source.event_time, self.source.arrival_time, self.source.partition)
        names = [selector for selector in selectors if isinstance(selector, str)]
        check_field_names(names, element_type, pipeline.current_transform().where)
        return element_type

    def _rejected_type(self, element_type: object) -> object:
        # A row that cannot be parsed does not have the element type.
        if isinstance(self.source.source, Streamable) and self.source.source.rejects_text:
            element_type = typehints.Any
        elif element_type is None:
            element_type = self.infer_output_type(typehints.Any)
        return DeadLetter.__class_getitem__(element_type)
