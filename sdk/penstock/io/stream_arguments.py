"""What ``as_stream`` takes: each argument checked when the transform is built, as far as it can be known then."""

from __future__ import annotations

from typing import Any

from penstock.base.where import here
from penstock.base.window_lengths import positive_micros
from penstock.error import three_parts
from penstock.graph import InlineValues, Source
from penstock.io.columnar import CsvSource, JsonSource
from penstock.io.parquetio import ParquetSource
from penstock.io.sparkio import FILE_FORMATS, DataFrameSource, SparkSource
from penstock.io.text_source import TextSource
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

__all__ = [
    "check_partition",
    "check_selector",
    "check_streamable",
    "checked_watermark",
    "max_ahead_micros_of",
    "policy_name",
    "reader_options",
    "tick_micros_of",
]

_BATCH_FORMATS = frozenset({"jdbc"})
_DEFAULT_TICK_MICROS = 1_000_000
_POLICIES = "BoundedDisorder(60), EstimationBand(), OrderedPartitions() or a CustomWatermark of your own"


def check_streamable(source: Source) -> None:
    """Refuses a source that cannot be read as a stream.

    Raises:
        ValueError: With what to do instead.
    """
    match source:
        case _ if not source.is_bounded:
            raise _refused(f"{source.describe()} is a stream already", "apply it without as_stream")
        case InlineValues():
            hint = "apply them without as_stream, and they come first; or say in a TestStream what comes when"
            raise _refused("values of the program cannot be read as a stream", hint)
        case DataFrameSource():
            hint = "read what it is made of, with ReadFromSpark(format, path).as_stream(...)"
            raise _refused("a DataFrame that the program has cannot be read as a stream", hint)
        case JsonSource(lines=False):
            what = "JSON files that are one list or object each cannot be read as a stream"
            raise _refused(what, "write an object a line, and leave out lines=False")
        case ParquetSource(elements="table"):
            what = "tables of records cannot be streamed: what is in one would depend on when it is read"
            raise _refused(what, "use ReadFromParquet, which gives the records")
        case SparkSource(format=name) if name.lower() in _BATCH_FORMATS:
            hint = "read a log of its changes, such as a Kafka topic, or files that are added to a folder"
            raise _refused(f"Spark does not stream the format {name!r}", hint)
        case SparkSource(path=list() | tuple() as paths):
            hint = "write one path with wildcards, or Flatten several streams"
            raise _refused(f"a stream reads one path, but {len(paths)} are given", hint)
        case TextSource() | CsvSource() | JsonSource() | ParquetSource() | SparkSource():
            return
    hint = "use ReadFromText, ReadFromCsv, ReadFromJson, ReadFromParquet or ReadFromSpark"
    raise _refused(f"the source {source.describe()} cannot be read as a stream", hint)


def checked_watermark(watermark: Any, event_time: Any) -> WatermarkPolicy:
    """The watermark policy, by default that of the moment of arrival; whether there are event times must fit it.

    Raises:
        TypeError: `watermark` is no policy.
        ValueError: There are event times but no policy for them, or the other way round.
    """
    if watermark is None:
        if event_time is None:
            return IngressTime()
        what = "event_time is given, but not how far event time has come"
        raise _refused(what, f"pass watermark={_POLICIES}; IdleTimeout and Percentiles go around one of them")
    if not isinstance(watermark, WatermarkPolicy):
        what = f"the watermark parameter must be a policy, but is {watermark!r}"
        raise TypeError(three_parts(what, where=here(), hint=f"pass {_POLICIES}"))
    match innermost(watermark):
        case IngressTime():
            if event_time is not None:
                what = "with IngressTime the event time is the moment of arrival, but event_time is given too"
                raise _refused(what, f"leave event_time out, or pass watermark={_POLICIES}")
        case BoundedDisorder() | CustomWatermark() | EstimationBand() | OrderedPartitions():
            if event_time is None:
                what = f"a source without event time: {policy_name(watermark)} needs one for each element"
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
    return watermark


def check_selector(source: Source, argument: str, selector: Any) -> None:
    """Refuses what is neither None, nor a function, nor the name of a field that elements may have.

    Raises:
        TypeError: It is of another type.
        ValueError: The elements are known not to have such a field.
    """
    if selector is None or callable(selector):
        return
    if not isinstance(selector, str):
        what = f"{argument} must be the name of a field or a function of the element, but is {selector!r}"
        hint = f'write {argument}="time" or {argument}=lambda element: ...'
        raise TypeError(three_parts(what, where=here(), hint=hint))
    fields = _fields(source)
    if fields is not None and selector not in fields:
        known = f"; fields are {', '.join(fields)}" if fields else ""
        what = f"the elements of {source.describe()} have no field {selector!r}"
        raise _refused(what, f"make {argument} a function of the element{known}")


def check_partition(source: Source, watermark: WatermarkPolicy, partition: Any) -> None:
    """Refuses partitions where the policy takes all together, and a number of them where they are not known.

    Raises:
        ValueError: In these cases.
    """
    policy = innermost(watermark)
    match policy:
        case OrderedPartitions(at_least=at_least) | BoundedDisorder(per_partition=True, at_least=at_least):
            if at_least > 1 and partition is None:
                what = (
                    f"there will never be {at_least} partitions: where they are in the elements is not said"
                )
                raise _refused(what, 'pass partition="field" or a function, or leave at_least out')
        case _ if partition is not None:
            what = f"partition has no meaning for {policy_name(policy)}, which takes all partitions together"
            raise _refused(what, "leave it out, or pass per_partition=True to BoundedDisorder")


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
        if not _reads_files(source):
            hint = "pass the format's own option to ReadFromSpark, such as maxOffsetsPerTrigger for kafka"
            raise _refused(f"{argument} is for files, and {source.describe()} reads none", hint)
        options.append((option, limit))
    return tuple(options)


def tick_micros_of(tick: DurationTypes, arrival_time: Any) -> int:
    """The length of a tick.

    Raises:
        TypeError: It is no length of time.
        ValueError: It is not positive and finite, or there are no recorded arrival times to be cut into ticks.
    """
    tick_micros = positive_micros("tick parameter", tick)
    if arrival_time is None and tick_micros != _DEFAULT_TICK_MICROS:
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


def innermost(policy: WatermarkPolicy) -> WatermarkPolicy:
    """The policy inside of those that are about another one."""
    while isinstance(policy, IdleTimeout | Percentiles):
        policy = policy.policy
    return policy


def policy_name(policy: WatermarkPolicy) -> str:
    """The classes of a policy and of those inside of it.

    >>> policy_name(IdleTimeout(EstimationBand()))
    'IdleTimeout(EstimationBand)'
    """
    name = type(policy).__name__
    inner = policy.policy if isinstance(policy, IdleTimeout | Percentiles) else None
    return name if inner is None else f"{name}({policy_name(inner)})"


def _fields(source: Source) -> tuple[str, ...] | None:
    """The fields of the elements, where the description tells; None where only the data does."""
    match source:
        case TextSource(coder=None):
            return ()
        case ParquetSource(columns=tuple() as columns):
            return tuple(dict.fromkeys(column.partition(".")[0] for column in columns))
        case CsvSource(filename_column=added, options=options):
            match dict(options).get("usecols"):
                case list() | tuple() as names if all(isinstance(name, str) for name in names):
                    return tuple(name for name in (*names, added) if name is not None)
    return None


def _reads_files(source: Source) -> bool:
    match source:
        case SparkSource(format=name):
            return name.lower() in FILE_FORMATS
    return isinstance(source, TextSource | CsvSource | JsonSource | ParquetSource)


def _refused(what: str, hint: str) -> ValueError:
    return ValueError(three_parts(what, where=here(), hint=hint))
