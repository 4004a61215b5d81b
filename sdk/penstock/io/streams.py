"""Sources that are read continuously: what ``as_stream`` makes of a source, and the one check of all that it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.base.where import here
from penstock.base.window_lengths import positive_micros
from penstock.error import three_parts
from penstock.graph import InlineValues, Source
from penstock.io.stream_times import MicrosOf, PartOf, Selector
from penstock.io.watermark_policy import Recorded, WatermarkPolicy
from penstock.io.watermarks import (
    BoundedDisorder,
    CustomWatermark,
    EstimationBand,
    IdleTimeout,
    IngressTime,
    OrderedPartitions,
    Percentiles,
)
from penstock.utils.timestamp import DurationTypes

__all__ = ["ACCEPTED", "REJECTED", "StreamSource", "Streamable"]

ACCEPTED = "accepted"
"""The name of a stream's main output, where it has two."""

REJECTED = "rejected"
"""The tag of the output for elements whose times cannot be told and for rows that cannot be parsed."""

_POLICIES = "BoundedDisorder(60), EstimationBand(), OrderedPartitions() or a CustomWatermark of your own"


class Streamable(Source):
    """A source that may be read continuously, and tells what of it can be.

    Attributes:
        reads_files: Whether it reads files, so that a micro-batch may be limited to some of them.
        rejects_text: Whether what cannot be parsed is text, and no element.
    """

    reads_files: bool = True
    rejects_text: bool = False

    def why_no_stream(self) -> tuple[str, str] | None:
        """Why it cannot be read as a stream after all, and what to do instead; None if it can be."""
        return None

    def known_fields(self) -> tuple[str, ...] | None:
        """The fields of the elements, where the description tells; None where only the data does."""
        return None


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
    options: tuple[tuple[str, Any], ...] = ()
    ends: bool = False

    is_bounded = False

    def check(self) -> StreamSource:
        """Itself, if the arguments fit together and the source can be read as a stream.

        Raises:
            TypeError: The watermark is no policy, or a selector is of another type.
            ValueError: Anything else does not fit.
        """
        _check_streamable(self.source)
        for argument in ("event_time", "arrival_time", "partition"):
            _check_selector(self.source, argument, getattr(self, argument))
        _check_watermark(self.watermark, self.event_time)
        _check_partition(self.watermark, self.partition)
        return self

    def describe(self) -> str:
        """One line for `explain`."""
        return f"stream of {self.source.describe()}, {_policy_name(self.watermark)}"

    def event_time_of(self) -> MicrosOf | None:
        """A function from an element to its event time, in microseconds, that can be pickled; None if there is none."""
        return None if self.event_time is None else MicrosOf("event_time", self.event_time)

    def arrival_time_of(self) -> MicrosOf | None:
        """Likewise for its recorded arrival time."""
        return None if self.arrival_time is None else MicrosOf("arrival_time", self.arrival_time)

    def partition_of(self) -> PartOf | None:
        """A function from an element to the name of its partition, that can be pickled; None if there is none."""
        return None if self.partition is None else PartOf("partition", self.partition)


def watermark_of(watermark: WatermarkPolicy | None, event_time: Any) -> WatermarkPolicy:
    """The policy, by default that of the moment of arrival.

    Raises:
        ValueError: There are event times but no policy for them.
    """
    if watermark is not None:
        return watermark
    if event_time is None:
        return IngressTime()
    what = "event_time is given, but not how far event time has come"
    raise _refused(what, f"pass watermark={_POLICIES}; IdleTimeout and Percentiles go around one of them")


def tick_micros_of(tick: DurationTypes, arrival_time: Any) -> int:
    """The length of a tick.

    Raises:
        TypeError: It is no length of time.
        ValueError: It is not positive and finite, or there are no recorded arrival times to be cut into ticks.
    """
    tick_micros = positive_micros("tick parameter", tick)
    if arrival_time is None and tick_micros != 1_000_000:
        what = f"tick={tick!r} has no meaning without arrival_time: a live stream's moments are its micro-batches"
        raise _refused(what, "leave it out, or say in arrival_time when elements arrived")
    return tick_micros


def max_ahead_micros_of(max_ahead: DurationTypes | None) -> int | None:
    """How far ahead of the clock event times may be.

    Raises:
        TypeError: It is no length of time.
        ValueError: It is negative or not finite.
    """
    if max_ahead is None:
        return None
    return 0 if max_ahead == 0 else positive_micros("max_ahead parameter", max_ahead)


def reader_options(
    source: Source, max_files_per_batch: int | None, max_bytes_per_batch: int | None
) -> tuple[tuple[str, Any], ...]:
    """How much a micro-batch may read, as options of Spark's reader of files.

    Raises:
        TypeError: One is no whole number.
        ValueError: One is not positive, or the source reads no files.
    """
    limits = {
        "max_files_per_batch": ("maxFilesPerTrigger", max_files_per_batch),
        "max_bytes_per_batch": ("maxBytesPerTrigger", max_bytes_per_batch),
    }
    options = []
    for argument, (option, limit) in limits.items():
        if limit is None:
            continue
        if not isinstance(limit, int) or isinstance(limit, bool):
            what = f"{argument} must be a whole number, but is {limit!r}"
            raise TypeError(three_parts(what, where=here(), hint=f"write {argument}=100, for example"))
        if limit < 1:
            raise _refused(f"{argument} must be 1 or more, but is {limit}", "leave it out for no limit")
        if not (isinstance(source, Streamable) and source.reads_files):
            hint = "pass the format's own option to ReadFromSpark, such as maxOffsetsPerTrigger for kafka"
            raise _refused(f"{argument} is for files, and {source.describe()} reads none", hint)
        options.append((option, limit))
    return tuple(options)


def _check_streamable(source: Source) -> None:
    if not source.is_bounded:
        raise _refused(f"{source.describe()} is a stream already", "apply it without as_stream")
    if isinstance(source, InlineValues):
        hint = "apply them without as_stream, and they come first; or say in a TestStream what comes when"
        raise _refused("values of the program cannot be read as a stream", hint)
    if not isinstance(source, Streamable):
        hint = "use ReadFromText, ReadFromCsv, ReadFromJson, ReadFromParquet or ReadFromSpark"
        raise _refused(f"the source {source.describe()} cannot be read as a stream", hint)
    why = source.why_no_stream()
    if why is not None:
        raise _refused(*why)


def _check_selector(source: Source, argument: str, selector: Any) -> None:
    """Refuses what is neither None, nor a function, nor the name of a field that elements may have."""
    if selector is None or callable(selector):
        return
    if not isinstance(selector, str):
        what = f"{argument} must be the name of a field or a function of the element, but is {selector!r}"
        hint = f'write {argument}="time" or {argument}=lambda element: ...'
        raise TypeError(three_parts(what, where=here(), hint=hint))
    fields = source.known_fields() if isinstance(source, Streamable) else None
    if fields is not None and selector not in fields:
        known = f"; fields are {', '.join(fields)}" if fields else ""
        what = f"the elements of {source.describe()} have no field {selector!r}"
        raise _refused(what, f"make {argument} a function of the element{known}")


def _check_watermark(watermark: Any, event_time: Any) -> None:
    """Refuses what is no policy, and event times that do not fit it."""
    if not isinstance(watermark, WatermarkPolicy):
        what = f"the watermark parameter must be a policy, but is {watermark!r}"
        raise TypeError(three_parts(what, where=here(), hint=f"pass {_POLICIES}"))
    match _innermost(watermark):
        case IngressTime():
            if event_time is not None:
                what = "with IngressTime the event time is the moment of arrival, but event_time is given too"
                raise _refused(what, f"leave event_time out, or pass watermark={_POLICIES}")
        case BoundedDisorder() | CustomWatermark() | EstimationBand() | OrderedPartitions():
            if event_time is None:
                what = f"a source without event time: {_policy_name(watermark)} needs one for each element"
                hint = 'pass event_time="field" or a function of the element; or leave the watermark out'
                raise _refused(what, hint)
        case Recorded():
            what = "the watermark is written down only where the whole stream is, in a TestStream"
            raise _refused(what, f"pass {_POLICIES}")
        case policy:
            what = f"{type(policy).__name__} does not say how the watermark is found"
            raise TypeError(
                three_parts(what, where=here(), hint="derive policies of your own from CustomWatermark")
            )


def _check_partition(watermark: WatermarkPolicy, partition: Any) -> None:
    """Refuses partitions where the policy takes all together, and a number of them where they are not known."""
    policy = _innermost(watermark)
    match policy:
        case OrderedPartitions(at_least=at_least) | BoundedDisorder(per_partition=True, at_least=at_least):
            if at_least > 1 and partition is None:
                what = (
                    f"there will never be {at_least} partitions: where they are in the elements is not said"
                )
                raise _refused(what, 'pass partition="field" or a function, or leave at_least out')
        case _ if partition is not None:
            what = f"partition has no meaning for {_policy_name(policy)}, which takes all partitions together"
            raise _refused(what, "leave it out, or pass per_partition=True to BoundedDisorder")


def _innermost(policy: WatermarkPolicy) -> WatermarkPolicy:
    """The policy inside of those that are about another one."""
    while isinstance(policy, IdleTimeout | Percentiles):
        policy = policy.policy
    return policy


def _policy_name(policy: WatermarkPolicy) -> str:
    """The classes of a policy and of those inside of it.

    >>> _policy_name(IdleTimeout(EstimationBand()))
    'IdleTimeout(EstimationBand)'
    """
    name = type(policy).__name__
    inner = policy.policy if isinstance(policy, IdleTimeout | Percentiles) else None
    return name if inner is None else f"{name}({_policy_name(inner)})"


def _refused(what: str, hint: str) -> ValueError:
    return ValueError(three_parts(what, where=here(), hint=hint))
