"""The transforms that every source and sink description is applied by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from penstock import graph
from penstock.construction.applicable import ResultT
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import DoOutputsTuple, PCollection
from penstock.io.paths import require_files
from penstock.io.streams import (
    ACCEPTED,
    REJECTED,
    Streamable,
    StreamSource,
    max_ahead_micros_of,
    reader_options,
    tick_micros_of,
    watermark_of,
)
from penstock.io.watermark_policy import WatermarkPolicy
from penstock.io.window_files import windowing_of_files
from penstock.transforms.dead_letters import DeadLetter
from penstock.transforms.field_checks import check_field_names
from penstock.typehints import typehints
from penstock.utils.timestamp import DurationTypes


class SourceTransform(PTransform[Any, PCollection[ResultT]]):
    """A root of the pipeline that reads `source`.

    Args:
        source: What is read.
        label: The step's name; by default the class's name.
    """

    def __init__(self, source: graph.Source, label: str | None = None) -> None:
        super().__init__(label)
        self.source = source

    def expand(self, pbegin: Any) -> PCollection[ResultT]:
        """The new PCollection; its element type is what the source itself tells, unless the user has declared one.

        Raises:
            FileNotFoundError: Local files that must be there are not.
        """
        require_files(self.source, pbegin.pipeline._current_transform().where)
        element_type = self.element_type_in(pbegin.pipeline)
        return PCollection(pbegin.pipeline, element_type=element_type, is_bounded=self.source.is_bounded)

    def element_type_in(self, pipeline: Any) -> Any:
        """The type that the user has declared, or that the runner finds in the source; None if neither does.

        Args:
            pipeline: The pipeline that reads.
        """
        declared = self.get_type_hints().simple_output_type(self.label)
        if declared is not None or not self.source.has_fields:
            return declared
        if not pipeline._type_options.pipeline_type_check:
            return None
        find = getattr(pipeline.runner, "element_type_of", None)
        return find and find(self.source, pipeline.options, pipeline._current_transform().where)

    def to_primitive(self) -> graph.Read:
        """The source as the compiler sees it."""
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
        ends: bool = False,
    ) -> Any:
        """The same source, read continuously: what is there first, then whatever is added to it (penstock's own).

        Files must be complete when they appear, and are read once. `event_time`, `arrival_time` and `partition` are the
        name of a field or a function of the element. A time is a ``Timestamp``, a ``datetime`` (in UTC if it has no
        zone), or a number of seconds since 1970.

        Example: ``ReadFromText("/logs/*.txt").as_stream(event_time=parse_time, watermark=BoundedDisorder(60))``.

        Args:
            event_time: Where an element's event time is; by default it is the moment of arrival.
            watermark: A policy of `penstock.io.watermarks`; it is needed, and takes effect, with an event time.
            arrival_time: For recorded logs, to be replayed in their own processing time: where the moment of arrival
                is; by default an element arrives when it is read.
            tick: With `arrival_time`: what arrives within so many seconds arrives at one moment.
            partition: Where the name of an element's partition is, for policies that take partitions one by one; by
                default it is the same for all: files are read one after the other.
            max_ahead: Event times more than so many seconds ahead of the clock do not move the watermark, and are
                counted; None: all do.
            rejects: Whether there is a second output, tagged ``"rejected"``, for elements whose times cannot be told
                and rows that cannot be parsed, each with its exception as ``with_exception_handling`` gives it;
                otherwise they are errors.
            max_files_per_batch: How many files a micro-batch reads at most; by default all that are there.
            max_bytes_per_batch: Likewise, how many bytes.
            ends: Whether the stream ends when all that is there has been read, as in a replay; otherwise it waits for
                more.

        Returns:
            A transform that gives an unbounded PCollection; with `rejects`, one that gives two.

        Raises:
            TypeError: An argument is of another type.
            ValueError: The source cannot be streamed, a number is out of range, or arguments do not fit together.

        >>> from penstock.io.sparkio import ReadFromSpark
        >>> from penstock.io.watermarks import BoundedDisorder
        >>> clicks = ReadFromSpark("kafka", subscribe="clicks").as_stream("timestamp", BoundedDisorder(60))
        >>> clicks.source.describe()
        'stream of spark kafka, BoundedDisorder'
        """
        stream = StreamSource(
            self.source,
            watermark_of(watermark, event_time),
            event_time,
            arrival_time,
            tick_micros_of(tick, arrival_time),
            partition,
            max_ahead_micros_of(max_ahead),
            bool(rejects),
            reader_options(self.source, max_files_per_batch, max_bytes_per_batch),
            bool(ends),
        )
        return ReadStream(stream.check(), self)


class ReadStream(SourceTransform):
    """A root of the pipeline that reads continuously; ``as_stream`` makes it.

    Args:
        source: What is read.
        read: The transform that would read it once; label, element type and resource hints are its own.
    """

    source: StreamSource

    def __init__(self, source: StreamSource, read: SourceTransform) -> None:
        super().__init__(source, read.label)
        self._read = read
        self.get_resource_hints().update(read.get_resource_hints())

    def expand(self, pbegin: Any) -> Any:
        """The new PCollection, or both.

        Raises:
            FileNotFoundError: The local folder that is to be watched is not there.
        """
        where = pbegin.pipeline._current_transform().where
        require_files(self.source.source, where, is_stream=True)
        if not self.source.has_rejects:
            return super().expand(pbegin)
        outputs = DoOutputsTuple(pbegin.pipeline, self, (REJECTED,), ACCEPTED)
        element_type = self.element_type_in(pbegin.pipeline)
        rejected_type = self._rejected_type(element_type)
        # Outputs that are made when first asked for would be bounded, as the beginning of the pipeline is.
        outputs._pcolls = {
            None: PCollection(pbegin.pipeline, element_type=element_type, is_bounded=False),
            REJECTED: PCollection(pbegin.pipeline, REJECTED, rejected_type, is_bounded=False),
        }
        return outputs

    def infer_output_type(self, input_type: Any) -> Any:
        """The element type of what is read."""
        return self._read.infer_output_type(input_type)

    def element_type_in(self, pipeline: Any) -> Any:
        """That of what is read; the fields that tell times and partitions must be in it.

        Raises:
            TypeCheckError: One is not.
        """
        declared = self.get_type_hints().simple_output_type(self.label)
        element_type = declared
        if declared is None:
            element_type = self._read.element_type_in(pipeline)
            self.source = replace(self.source, source=self._read.source)
        selectors = (self.source.event_time, self.source.arrival_time, self.source.partition)
        names = [selector for selector in selectors if isinstance(selector, str)]
        check_field_names(names, element_type, pipeline._current_transform().where)
        return element_type

    def _rejected_type(self, element_type: Any) -> Any:
        # What cannot be parsed is not of the element type.
        if isinstance(self.source.source, Streamable) and self.source.source.rejects_text:
            element_type = typehints.Any
        elif element_type is None:
            element_type = self.infer_output_type(typehints.Any)
        return DeadLetter.__class_getitem__(element_type)


class SinkTransform(PTransform[Any, PCollection[ResultT]]):
    """A step that writes its input to `sink`; its output is what was written.

    Args:
        sink: Where the elements go.
        label: The step's name; by default the class's name.
    """

    def __init__(self, sink: graph.Sink, label: str | None = None) -> None:
        super().__init__(label)
        self.sink = sink

    def expand(self, pcoll: Any) -> PCollection[ResultT]:
        """The new PCollection."""
        self._check_pcollection(pcoll)
        return PCollection.from_(pcoll)

    def to_primitive(self) -> graph.Write:
        """The sink as the compiler sees it."""
        return graph.Write(self.sink)

    def get_windowing(self, inputs: Any) -> Any:
        """The global window: names of files belong to no window of the input. Those of a stream do, as in Beam."""
        windowing = super().get_windowing(inputs)
        is_bounded = all(pcoll.is_bounded for pcoll in inputs if isinstance(pcoll, PCollection))
        return windowing_of_files(windowing, is_bounded, self.sink).after_grouping()
