"""Sources that are read continuously: what ``as_stream`` makes of a transform that reads files or tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from penstock.construction.pvalue import DoOutputsTuple, PCollection
from penstock.graph import Source
from penstock.io.columnar import CsvSource, JsonSource
from penstock.io.paths import require_files
from penstock.io.primitive import SourceTransform, stream_of
from penstock.io.stream_arguments import (
    check_partition,
    check_selector,
    check_streamable,
    checked_watermark,
    max_ahead_micros_of,
    policy_name,
    reader_options,
    tick_micros_of,
)
from penstock.io.stream_times import MicrosOf, PartOf, Selector
from penstock.io.watermark_policy import WatermarkPolicy
from penstock.transforms.dead_letters import DeadLetter
from penstock.transforms.field_checks import check_field_names
from penstock.typehints import typehints
from penstock.utils.timestamp import DurationTypes

__all__ = ["ACCEPTED", "REJECTED", "ReadStream", "StreamSource", "stream_source"]

ACCEPTED = "accepted"
"""The name of a stream's main output, where it has two."""

REJECTED = "rejected"
"""The tag of the output for elements whose times cannot be told and for rows that cannot be parsed."""


@dataclass(frozen=True, eq=False)
class StreamSource(Source):
    """A source that is read continuously: whatever is added to it comes once.

    Attributes:
        source: The description of what is read.
        watermark: How it is found how far event time has come.
        event_time: Where an element's event time is; None: it is the moment of arrival.
        arrival_time: For recorded logs, which are replayed in their own processing time: where the moment of an
            element's arrival is; None: an element arrives when it is read.
        tick_micros: With an arrival time: what arrives within one tick arrives at one moment.
        partition: Where the name of an element's partition is, for policies that take partitions one by one; None: it
            is the same for all: files are read one after the other.
        max_ahead_micros: Event times that are further ahead of the clock do not move the watermark, and are counted;
            None: all do.
        has_rejects: Whether a second output, `REJECTED`, takes what is wrong; otherwise that is an error.
        options: Further options of Spark's reader, as pairs.
        ends: Whether it ends when all that is there has been read; otherwise it waits for more.

    >>> from penstock.io.text_source import TextSource
    >>> stream_source(TextSource("/logs/*.txt")).describe()
    'stream of text /logs/*.txt, IngressTime'
    """

    source: Source
    watermark: WatermarkPolicy
    event_time: Selector | None = None
    arrival_time: Selector | None = None
    tick_micros: int = 1_000_000
    partition: Selector | None = None
    max_ahead_micros: int | None = None
    has_rejects: bool = False
    options: tuple[tuple[str, Any], ...] = ()
    ends: bool = False

    is_bounded = False

    def describe(self) -> str:
        """One line for `explain`."""
        return f"stream of {self.source.describe()}, {policy_name(self.watermark)}"

    def event_time_of(self) -> MicrosOf | None:
        """A function from an element to its event time, in microseconds, that can be pickled; None if there is none."""
        return None if self.event_time is None else MicrosOf("event_time", self.event_time)

    def arrival_time_of(self) -> MicrosOf | None:
        """Likewise for its recorded arrival time."""
        return None if self.arrival_time is None else MicrosOf("arrival_time", self.arrival_time)

    def partition_of(self) -> PartOf | None:
        """A function from an element to the name of its partition, that can be pickled; None if there is none."""
        return None if self.partition is None else PartOf("partition", self.partition)


def stream_source(
    source: Source,
    event_time: Selector | None = None,
    watermark: WatermarkPolicy | None = None,
    *,
    arrival_time: Selector | None = None,
    tick: DurationTypes = 1,
    partition: Selector | None = None,
    max_ahead: DurationTypes | None = 86400,
    rejects: bool = False,
    max_files_per_batch: int | None = None,
    max_bytes_per_batch: int | None = None,
    ends: bool = False,
) -> StreamSource:
    """The description of a source that is read continuously.

    Args:
        source: What is read.
        event_time: This and all others are as in `penstock.io.primitive.SourceTransform.as_stream`.

    Raises:
        TypeError: As there.
        ValueError: As there.
    """
    check_streamable(source)
    selectors = {"event_time": event_time, "arrival_time": arrival_time, "partition": partition}
    for argument, selector in selectors.items():
        check_selector(source, argument, selector)
    policy = checked_watermark(watermark, event_time)
    check_partition(source, policy, partition)
    return StreamSource(
        source,
        policy,
        event_time,
        arrival_time,
        tick_micros_of(tick, arrival_time),
        partition,
        max_ahead_micros_of(max_ahead),
        bool(rejects),
        reader_options(source, max_files_per_batch, max_bytes_per_batch),
        bool(ends),
    )


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
        if isinstance(self.source.source, CsvSource | JsonSource):
            element_type = typehints.Any
        elif element_type is None:
            element_type = self.infer_output_type(typehints.Any)
        return DeadLetter.__class_getitem__(element_type)


@stream_of.bind
def _stream_of(read: SourceTransform, *arguments: Any, **keywords: Any) -> ReadStream:
    return ReadStream(stream_source(read.source, *arguments, **keywords), read)
