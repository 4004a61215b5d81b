"""Opens the sources that Spark reads in a streaming plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from zlib import crc32

from pyspark.sql import DataFrame

from penstock.graph import InlineValues, Read, Source, Step
from penstock.io.external.generate_sequence import SequenceSource
from penstock.io.sparkio import SparkSource
from penstock.io.streaming.periodic_sequence import PeriodicSource
from penstock.io.streaming.stream_sources import MAX_RECORDS, StreamSource
from penstock_spark.checkpoints.custody.folder import Checkpoint
from penstock_spark.files.whole_files import CheckFiles
from penstock_spark.formats.registry import open_source, open_stream
from penstock_spark.lowering.context import Context
from penstock_spark.lowering.native_stream import columns_of, sums_of
from penstock_spark.lowering.stream_sink import StreamSink
from penstock_spark.plan.stream_plan import Level, StreamPlan, ends_on_its_own
from penstock_spark.sources.heartbeats import open_heartbeats
from penstock_spark.sources.scan import Scan, with_plain_names
from penstock_spark.sources.staging import open_staged, stage_bounded
from penstock_spark.stream.program import ReadingSpec
from penstock_spark.stream.sources.reading import StreamReader, scheduled_reader, staged_reader

_LIMITS = {"maxfilespertrigger", "maxbytespertrigger", "maxoffsetspertrigger", MAX_RECORDS.lower()}
_Clocked = PeriodicSource | SequenceSource


@dataclass(frozen=True, eq=False)
class OpenReading:
    frame: DataFrame  # What Spark reads.
    spec: ReadingSpec  # How its tasks read it.
    is_finite: bool  # Whether it ends on its own.
    # True if it ends as soon as there is nothing new, which its tasks do not see.
    ends_when_read: bool = False
    is_staged: bool = False  # Whether it was read before the query, and its last file says that it ends.
    is_limited: bool = False  # Whether a micro-batch may read only a part of the available data.
    is_newest_first: bool = False  # Whether it does not read files in the order in which they changed.
    may_be_files: bool = False  # Whether it may read files while they arrive.
    poll_seconds: float = 0.0  # For how long it may answer that there is nothing new without looking again.
    announces: bool = (
        False  # Whether a micro-batch may only note that something is there, and the next one reads it.
    )
    check_files: CheckFiles | None = None  # As in `StreamScan`, if Spark reads the columns of the files.
    is_native: bool = False  # Whether Spark does all of it, so that no task of Python reads the frame.
    has_windows: bool = False  # True if windows that Spark groups wait for its end.


def ends_soon(part: Level) -> bool:
    """True if the only source of a part ends when it has read the data that exists."""
    _, source = _root_of(part)
    return source.existing_only if isinstance(source, StreamSource) else not isinstance(source, _Clocked)


def open_reading(
    plan: StreamPlan,
    part: Level,
    context: Context,
    checkpoint: Checkpoint | None,
    sinks: Sequence[StreamSink],
    beats: Sequence[DataFrame],
) -> OpenReading:
    """Opens the only source of a part; a bounded source is staged in the checkpoint.

    If no task of Python reads it, its frame also has the heartbeats.
    """
    step, source = _root_of(part)
    if isinstance(source, StreamSource):
        scan = context.streams.get(step.label) or open_stream(source, context.spark, step.where)
        columns = plan.columns
        if columns is not None:
            frame, reader = columns_of(plan, scan, context, checkpoint, sinks, beats)
        elif plan.sums is not None:
            frame, reader = sums_of(plan, scan, context, checkpoint)
        else:
            frame, make_decoder = with_plain_names(scan.frame, scan.make_decoder)
            reader = partial(StreamReader, source, make_decoder, step.where)
        options = _reader_options(source)
        return OpenReading(
            frame,
            reading_spec(part, step, reader),
            ends_on_its_own(source),
            ends_when_read=source.existing_only,
            is_limited=not _LIMITS.isdisjoint(options),
            is_newest_first=str(options.get("latestfirst", "false")).lower() == "true",
            may_be_files=True,
            poll_seconds=scan.poll_seconds,
            announces=scan.announces,
            check_files=scan.check_files if columns is not None else None,
            is_native=columns is not None and columns.is_written,
            has_windows=plan.native_grouping is not None,
        )
    if isinstance(source, _Clocked):
        eras = () if checkpoint is None else checkpoint.seconds_of(step.label).eras
        spec = reading_spec(part, step, partial(scheduled_reader, source, eras))
        return OpenReading(open_heartbeats(context.spark), spec, ends_on_its_own(source))
    assert checkpoint is not None, "the check of a query without one has refused it"
    staged = f"{checkpoint.inputs_location}/{_name(step.label)}"
    context.places = (step.where,)
    stage_bounded(_scan(source, context, step), staged, step.where, context.dumps, context.sys_path)
    frame = open_staged(context.spark, staged)
    spec = reading_spec(part, step, partial(staged_reader, isinstance(source, InlineValues)))
    return OpenReading(frame, spec, True, is_staged=True)


def _reader_options(source: StreamSource) -> dict[str, Any]:
    """Returns the options for Spark's reader, in lower case, because Spark ignores case."""
    own = source.source.options if isinstance(source.source, SparkSource) else ()
    return {name.lower(): value for name, value in [*dict(own).items(), *source.options]}


def _root_of(part: Level) -> tuple[Step, Source]:
    [step] = part.roots
    assert isinstance(step.primitive, Read)
    return step, step.primitive.source


def _scan(source: Source, context: Context, step: Step) -> Scan:
    if isinstance(source, InlineValues):
        values = list(source.values)
        return Scan(context.spark.range(1), lambda: lambda batch: values * batch.num_rows)
    return open_source(source, context.spark, step.where)


def reading_spec(part: Level, step: Step, make_reader: Callable[[], Any]) -> ReadingSpec:
    main, *others = step.outputs
    rejects = others[0].edge if others else None
    return ReadingSpec(step.label, step.where, main.edge, rejects, make_reader, part.readers[step.label])


def _name(label: str) -> str:
    """A unique folder name for each label.

    >>> _name("Read scores/csv")
    'Read-scores-csv-644cac4f'
    """
    readable = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in label[:80])
    return f"{readable}-{crc32(label.encode()):08x}"
