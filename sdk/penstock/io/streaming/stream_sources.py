"""Sources that are read continuously: what ``as_stream`` makes of a source, and the check of its arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.checks.window_lengths import positive_micros
from penstock.error import make_value_error, refusal
from penstock.graph import InlineValues, Source
from penstock.io.rejects import REJECTED
from penstock.io.streaming.stream_times import MicrosOf, PartOf, Selector
from penstock.io.streaming.watermark_policy import WatermarkPolicy
from penstock.io.watermarks import IngressTime
from penstock.utils.timestamp import DurationTypes

__all__ = ["ACCEPTED", "REJECTED", "SourceWithRejects", "StreamSource", "Streamable"]

ACCEPTED = "accepted"
"""The name of the main output of a stream with two outputs."""

MAX_RECORDS = "maxRecordsPerBatch"
"""The option with the limit of records in a micro-batch."""

_POLICIES = "BoundedDisorder(60), EstimationBand(), OrderedPartitions() or your own CustomWatermark"


class Streamable(Source):
    """A source that may be read continuously."""

    reads_files: bool = True
    """True if it reads files, so that a micro-batch may be limited to some of them."""
    limits_records: bool = False
    """True if a micro-batch may be limited to some records."""
    has_times: bool = False
    """True if its elements have event times of their own."""
    has_partitions: bool = False
    """True if it names the partitions of its elements."""
    has_columns: bool = False
    """True if a stream of it has the fields of its elements as columns, with which Spark may compute."""
    acknowledges: bool = False
    """True if its server learns how far a stream has read, which happens when the next micro-batch begins."""

    def why_no_stream(self) -> tuple[str, str] | None:
        """Returns why it cannot be read as a stream, and what to do instead; None if it can."""
        return None

    def known_fields(self) -> tuple[str, ...] | None:
        """Returns the fields of the elements, if the description has them; None if only the data does."""
        return None


@dataclass(frozen=True)
class SourceWithRejects(Source):
    """A bounded source whose elements are its own, and a `penstock.io.rejects.Rejected` for each record that is not.

    >>> from penstock.io.formats.text_source import TextSource
    >>> SourceWithRejects(TextSource("/logs/*.txt")).describe()
    'text /logs/*.txt with rejects'
    """

    source: Source

    def describe(self) -> str:
        return f"{self.source.describe()} with rejects"


@dataclass(frozen=True, eq=False)
class StreamSource(Source):
    """A source that is read continuously: every addition arrives once. See `SourceTransform.as_stream`.

    >>> from penstock.io.formats.text_source import TextSource
    >>> StreamSource(TextSource("/logs/*.txt"), IngressTime()).describe()
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
    options: tuple[tuple[str, Any], ...] = ()  # More options for Spark's reader.
    existing_only: bool = False

    is_bounded = False

    def check(self) -> StreamSource:
        """Returns itself if the arguments fit together and the source can be read as a stream."""
        _check_streamable(self.source)
        for argument in ("event_time", "arrival_time", "partition"):
            _check_selector(self.source, argument, getattr(self, argument))
        has_times = isinstance(self.source, Streamable) and self.source.has_times
        _check_watermark(self.watermark, self.event_time, has_times)
        has_partitions = isinstance(self.source, Streamable) and self.source.has_partitions
        _check_partition(self.watermark, self.partition, has_partitions)
        return self

    def describe(self) -> str:
        return f"stream of {self.source.describe()}, {self.watermark.describe()}"

    def event_time_of(self) -> MicrosOf | None:
        """Returns a function from an element to its event time in microseconds; None without event
        times.
        """
        return None if self.event_time is None else MicrosOf("event_time", self.event_time)

    def arrival_time_of(self) -> MicrosOf | None:
        """Reads the recorded arrival time of an element; None without one."""
        return None if self.arrival_time is None else MicrosOf("arrival_time", self.arrival_time)

    def partition_of(self) -> PartOf | None:
        """Returns a function from an element to the name of its partition, which can be pickled; or None."""
        return None if self.partition is None else PartOf("partition", self.partition)


def watermark_of(source: Source, watermark: WatermarkPolicy | None, event_time: object) -> WatermarkPolicy:
    """Returns the policy, by default `IngressTime`; event times need one."""
    if watermark is not None:
        return watermark
    has_times = isinstance(source, Streamable) and source.has_times
    if event_time is None and not has_times:
        return IngressTime()
    what = "event_time is given, but no watermark"
    if event_time is None:
        what = f"the elements of {source.describe()} have event times, but no watermark is given"
    raise make_value_error(what, f"pass watermark={_POLICIES}; IdleTimeout and Percentiles wrap one of them")


def tick_micros_of(tick: DurationTypes, arrival_time: object) -> int:
    """Returns the length of a tick, which only recorded arrival times have."""
    tick_micros = positive_micros("tick parameter", tick)
    if arrival_time is None and tick_micros != 1_000_000:
        what = f"tick={tick!r} has no meaning without arrival_time: each micro-batch of a live stream is a logical time"
        raise make_value_error(what, "leave it out, or pass arrival_time, which says when elements arrived")
    return tick_micros


def max_ahead_micros_of(max_ahead: DurationTypes | None) -> int | None:
    """Returns how far ahead of the clock event times may be, in microseconds."""
    if max_ahead is None:
        return None
    return 0 if max_ahead == 0 else positive_micros("max_ahead parameter", max_ahead)


def reader_options(
    source: Source,
    max_files_per_batch: int | None,
    max_bytes_per_batch: int | None,
    max_records_per_batch: int | None,
) -> tuple[tuple[str, Any], ...]:
    """Returns the limits of a micro-batch, as options for Spark's reader."""
    reads_files = isinstance(source, Streamable) and source.reads_files
    limits_records = isinstance(source, Streamable) and source.limits_records
    limits = {
        "max_files_per_batch": ("maxFilesPerTrigger", max_files_per_batch, reads_files),
        "max_bytes_per_batch": ("maxBytesPerTrigger", max_bytes_per_batch, reads_files),
        "max_records_per_batch": (MAX_RECORDS, max_records_per_batch, limits_records),
    }
    options = []
    for argument, (option, limit, fits) in limits.items():
        if limit is None:
            continue
        if not isinstance(limit, int) or isinstance(limit, bool):
            what = f"{argument} must be an integer, but is {limit!r}"
            raise refusal(TypeError, what, hint=f"write {argument}=100, for example")
        if limit < 1:
            raise make_value_error(
                f"{argument} must be 1 or more, but is {limit}", "leave it out for no limit"
            )
        if not fits:
            limited = (
                "records, but {} does not count them" if option == MAX_RECORDS else "files, but {} reads none"
            )
            what = f"{argument} limits {limited.format(source.describe())}"
            own = "max_records_per_batch" if limits_records else "max_files_per_batch or max_bytes_per_batch"
            hint = "pass the format's own option to ReadFromSpark, such as maxOffsetsPerTrigger for kafka"
            raise make_value_error(what, f"pass {own}" if limits_records or reads_files else hint)
        options.append((option, limit))
    return tuple(options)


def _check_streamable(source: Source) -> None:
    if not source.is_bounded:
        raise make_value_error(f"{source.describe()} is already a stream", "apply it without as_stream")
    if isinstance(source, InlineValues):
        hint = "apply them without as_stream, and they arrive first; or use a TestStream for their times"
        raise make_value_error("values of the program cannot be read as a stream", hint)
    if not isinstance(source, Streamable):
        hint = "use ReadFromText, ReadFromCsv, ReadFromJson, ReadFromParquet or ReadFromSpark"
        raise make_value_error(f"the source {source.describe()} cannot be read as a stream", hint)
    why = source.why_no_stream()
    if why is not None:
        raise make_value_error(*why)


def _check_selector(source: Source, argument: str, selector: object) -> None:
    """Refuses everything but None, a function, and the name of a field that elements may have."""
    if selector is None or callable(selector):
        return
    if not isinstance(selector, str):
        what = f"{argument} must be the name of a field or a function of the element, but is {selector!r}"
        hint = f'write {argument}="time" or {argument}=lambda element: ...'
        raise refusal(TypeError, what, hint=hint)
    fields = source.known_fields() if isinstance(source, Streamable) else None
    if fields is not None and selector not in fields:
        known = f"; fields are {', '.join(fields)}" if fields else ""
        what = f"the elements of {source.describe()} have no field {selector!r}"
        raise make_value_error(what, f"make {argument} a function of the element{known}")


def _check_watermark(watermark: object, event_time: object, has_times: bool) -> None:
    """Refuses anything but a policy, and event times that do not fit it."""
    if not isinstance(watermark, WatermarkPolicy):
        what = f"the watermark parameter must be a policy, but is {watermark!r}"
        raise refusal(TypeError, what, hint=f"pass {_POLICIES}")
    name = watermark.innermost.describe()
    match watermark.innermost.needs_event_times:
        case None:
            hint = f"pass {_POLICIES}, and derive your own policies from CustomWatermark"
            raise refusal(TypeError, f"{name} does not say how to find the watermark", hint=hint)
        case False if event_time is not None:
            what = f"with {name} the event time is the arrival time, but event_time is given too"
            raise make_value_error(what, f"leave event_time out, or pass watermark={_POLICIES}")
        case True if event_time is None and not has_times:
            what = f"a source without event time: {watermark.describe()} needs one for each element"
            hint = 'pass event_time="field" or a function of the element; or leave the watermark out'
            raise make_value_error(what, hint)


def _check_partition(watermark: WatermarkPolicy, partition: object, has_partitions: bool) -> None:
    """Refuses partitions for a policy that does not use them, and a number of unknown partitions."""
    at_least = watermark.least_partitions
    if at_least is None and partition is not None:
        name = watermark.innermost.describe()
        what = f"partition has no meaning for {name}, which combines all partitions"
        raise make_value_error(what, "leave it out, or pass per_partition=True to BoundedDisorder")
    if at_least is not None and at_least > 1 and partition is None and not has_partitions:
        what = f"the watermark would wait for {at_least} partitions, but elements have no partition"
        raise make_value_error(what, 'pass partition="field" or a function, or leave at_least out')
