"""Reads and writes all formats that Spark supports, by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Protocol, TypeVar

from penstock.checks.similar_names import hint_at_name
from penstock.construction.pvalue import PCollection
from penstock.elements.row import Row
from penstock.error import make_value_error, refusal
from penstock.graph import Sink
from penstock.io.sink_transforms import TableSinkTransform
from penstock.io.source_transforms import SourceTransform
from penstock.io.streaming.stream_sources import Streamable
from penstock.io.streaming.watermark_policy import WatermarkPolicy
from penstock.io.watermarks import BoundedDisorder
from penstock.tracebacks import shortens_tracebacks

__all__ = ["ReadFromSpark", "WriteToSpark", "from_dataframe", "to_dataframe", "to_streaming_dataframe"]

ElementT = TypeVar("ElementT")

FILE_FORMATS = frozenset({"avro", "binaryfile", "csv", "json", "orc", "parquet", "text", "xml"})
"""Spark's file formats, in lower case."""

_BATCH_FORMATS = frozenset({"jdbc"})
_MODES = ("append", "overwrite", "error", "errorifexists", "ignore")


@dataclass(frozen=True)
class SparkSource(Streamable):
    """A table that Spark reads, ``spark.read.format(...).options(...).load(path)``; see `ReadFromSpark`."""

    format: str
    path: Any = None
    schema: Any = None
    options: tuple[tuple[str, Any], ...] = ()

    has_fields = True
    has_columns = True
    is_table = True

    def describe(self) -> str:
        return f"spark {self.format}" + (f" {self.path}" if self.path else "")

    @property
    def reads_files(self) -> bool:  # type: ignore[override]
        """True if it reads files, so that a micro-batch may be limited to some of them."""
        return self.format.lower() in FILE_FORMATS

    def why_no_stream(self) -> tuple[str, str] | None:
        if self.format.lower() in _BATCH_FORMATS:
            hint = "read a log of its changes, such as a Kafka topic, or files in a growing folder"
            return f"Spark does not stream the format {self.format!r}", hint
        if isinstance(self.path, list | tuple):
            hint = "write one path with wildcards, or Flatten several streams"
            return f"a stream reads one path, but {len(self.path)} are given", hint
        return None


@dataclass(frozen=True)
class DataFrameSource(Streamable):
    """An existing Spark DataFrame of the program, which may be a streaming one; its rows become ``Row`` values."""

    frame: Any

    reads_files = False

    has_fields = True
    has_columns = True
    is_table = True

    def describe(self) -> str:
        return f"dataframe [{', '.join(self.frame.columns)}]"

    def __getstate__(self) -> dict[str, object]:
        # The names of the columns travel to the workers, and the DataFrame cannot.
        return {"frame": SimpleNamespace(columns=list(self.frame.columns))}

    @property
    def is_streaming(self) -> bool:
        """True if the DataFrame never ends."""
        return bool(getattr(self.frame, "isStreaming", False))

    def why_no_stream(self) -> tuple[str, str] | None:
        if self.is_streaming:
            return None
        hint = "make the DataFrame with spark.readStream, or use ReadFromSpark(format, path).as_stream(...)"
        return "the DataFrame is not a streaming one, so it cannot be read as a stream", hint

    def known_fields(self) -> tuple[str, ...]:
        return tuple(self.frame.columns)


@dataclass(frozen=True)
class SparkSink(Sink):
    """A table that Spark writes; see `WriteToSpark`.

    That is ``frame.write.format(...).mode(...).partitionBy(...).options(...).save(path)``.
    """

    format: str
    path: Any = None
    mode: str = "error"
    partition_by: tuple[str, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    schema: Any = None
    element_type: Any = None

    def describe(self) -> str:
        return f"spark {self.format}" + (f" {self.path}" if self.path else "")


@dataclass(frozen=True)
class FrameSink(Sink):
    """Elements as typed columns of a DataFrame, which is appended to the list `into`.

    Without a schema, the element type has the columns.
    """

    into: list[Any]
    element_type: object
    schema: Any = None
    sequence: str | None = None  # The column that numbers the rows of a stream.

    def describe(self) -> str:
        return "dataframe"


class _ReadRows(SourceTransform[Row]):
    def infer_output_type(self, input_type: object) -> object:
        return Row


_WATERMARK_DELAY = "spark.watermarkDelayMs"
"""The key of a column's metadata with the delay of ``withWatermark``, in milliseconds."""


def from_dataframe(
    frame: object,
    event_time: str | Callable[[Row], object] | None = None,
    watermark: WatermarkPolicy | None = None,
) -> SourceTransform[Row]:
    """Reads the rows of a Spark DataFrame, as a root of the pipeline (penstock's own).

    Elements are ``Row`` values, as with `ReadFromSpark`, and have the types of the columns. Two columns with the same
    name raise a ValueError when the transform is applied. Example: ``pipeline | from_dataframe(frame)``.

    A streaming DataFrame becomes an unbounded PCollection. ``frame.withWatermark("time", "10 minutes")`` defines the
    event times: the timestamps are in the column ``time``, and the watermark follows the latest of them by 10 minutes,
    as `BoundedDisorder(600)` does. Without a watermark, elements get the time at which they arrive, and the watermark
    follows the clock.

    Args:
        frame: A DataFrame of Spark.
        event_time: The time of each row of a streaming DataFrame instead of the one that its watermark names: a column,
            or a function of the row. It needs a `watermark`.
        watermark: A policy of `penstock.io.watermarks`, for this time.

    Raises:
        ValueError: The DataFrame has watermarks of several columns, or one that is not a timestamp; or `event_time` is
            given for a DataFrame that is not a streaming one.

    Example: ``pipeline | from_dataframe(spark.readStream.table("scores").withWatermark("time", "10 minutes"))``.
    """
    source = DataFrameSource(frame)
    read = _ReadRows(source, "from_dataframe")
    if not source.is_streaming:
        if event_time is not None or watermark is not None:
            what = "event_time and watermark are for streaming DataFrames, and this one ends"
            raise make_value_error(what, "leave them out, and set the times of rows with WithTimestamps(...)")
        return read
    if event_time is None and watermark is None:
        event_time, watermark = _watermark_of(source.frame.schema.fields)
    # Spark's own watermark also follows times that are far ahead of the clock.
    stream: SourceTransform[Row] = read.as_stream(event_time, watermark, max_ahead=None)
    return stream


class _Type(Protocol):
    """A type of a column, as PySpark has it."""

    def typeName(self) -> str: ...
    def simpleString(self) -> str: ...


class _Field(Protocol):
    """A column, as PySpark has it."""

    name: str
    dataType: _Type
    metadata: Mapping[str, float] | None


def _watermark_of(columns: Iterable[_Field]) -> tuple[str | None, WatermarkPolicy | None]:
    """The column whose values the watermark of a streaming DataFrame follows, and the policy that does the same."""
    delays = [(field, (field.metadata or {}).get(_WATERMARK_DELAY)) for field in columns]
    fields = [(field, delay) for field, delay in delays if delay is not None]
    if not fields:
        return None, None
    if len(fields) > 1:
        names = ", ".join(field.name for field, _ in fields)
        what = f"the DataFrame has watermarks of several columns: {names}"
        raise make_value_error(
            what, "select only one of them, or pass event_time and watermark to from_dataframe"
        )
    [(field, delay)] = fields
    if field.dataType.typeName() not in ("timestamp", "timestamp_ntz"):
        what = f"the watermark is of the column {field.name!r}, whose type is {field.dataType.simpleString()}"
        raise make_value_error(
            what, f"select window_time({field.name}), or another column with a timestamp, instead"
        )
    return field.name, BoundedDisorder(delay / 1_000)


@shortens_tracebacks
def to_dataframe(pcoll: PCollection[ElementT], schema: object = None) -> Any:
    """Returns a PCollection as a DataFrame of the pipeline's Spark session (penstock's own).

    The DataFrame's plan has only the steps that lead to the PCollection; the pipeline itself does not run. Side inputs
    are computed immediately, everything else with the DataFrame. Records have a column for each field, pairs have the
    columns ``key`` and ``value``, longer tuples ``_1``, ``_2`` and so on, and other elements the column ``value``.
    Timestamps and windows are left out; ``beam.Reify`` puts them into the elements.

    The schema is a Spark schema, as an object or as a string. Without one, the element type must define the columns;
    otherwise it raises a ValueError.

    Example: ``to_dataframe(totals).orderBy("team").show()``.
    """
    return pcoll.pipeline.runner.to_dataframe(pcoll, schema)


@shortens_tracebacks
def to_streaming_dataframe(
    pcoll: PCollection[ElementT], schema: object = None, *, sequence: str | None = None
) -> Any:
    """Returns an unbounded PCollection as a streaming DataFrame of the program's Spark session (penstock's own).

    ``frame.writeStream`` starts the query, with your own sink, trigger and ``checkpointLocation``. A flow of Spark
    Declarative Pipelines may also return it. It is the query that ``pipeline.run()`` would start, without its sinks:
    windows, triggers and timers work in the same way, and Spark's checkpoint holds all state. Features that need more
    than this checkpoint are refused: drains and signals, sources that end, and options of runs.

    The columns are those of `to_dataframe`, in the output mode ``append``. A pipeline whose results retract earlier
    ones needs ``Changelog()`` or ``Upserts()`` first.

    Args:
        pcoll: An unbounded PCollection of a pipeline in the mode ``streaming`` or ``micro_batch``.
        schema: A Spark schema, as an object or as a string. Without one, the element type must define the columns.
        sequence: The name of an additional column, a bigint that grows with each change that `Upserts` emits for a key,
            as ``sequence_by`` of ``create_auto_cdc_flow`` requires. A micro-batch that runs again repeats its numbers.

    Raises:
        UnsupportedByRunner: The pipeline, or an option, needs more than a query of Spark supports.
        ValueError: The columns are not known; or a setting of the session differs from what the query needs, and the
            message has the line that sets it.

    >>> import penstock as beam
    >>> from penstock.io import to_streaming_dataframe
    >>> to_streaming_dataframe(beam.Pipeline() | beam.Create([1]))
    Traceback (most recent call last):
      ...
    penstock.error.UnsupportedByRunner: the PCollection is bounded, and so it cannot become a streaming DataFrame
      at step 'to_streaming_dataframe' (...)
      hint: use to_dataframe(), or read the source of the pipeline with as_stream(...)
    """
    if sequence is not None and (not isinstance(sequence, str) or not sequence):
        what = f"sequence must be the name of a column, but is {sequence!r}"
        raise refusal(TypeError, what, hint="write sequence='sequence', for example")
    return pcoll.pipeline.runner.to_streaming_dataframe(pcoll, schema, sequence)


def _check_format(format: str) -> None:
    if not isinstance(format, str) or not format:
        what = f"the format must be the name of a Spark format, but is {format!r}"
        raise refusal(TypeError, what, hint="write 'parquet', for example")


class ReadFromSpark(_ReadRows):
    """Reads rows of any format that Spark can read (penstock's own; Beam has none).

    Elements are ``Row`` values. Nested structs are also ``Row`` values, arrays are lists, maps are dicts, timestamps
    are ``datetime`` in UTC (without a time zone if Spark's type has none), decimals are ``Decimal``, and null is None.

    The schema has the types of the fields. Without one, a running Spark session finds them when the transform is
    applied; if no session is running, the types are unknown.

    A record of CSV, JSON or XML that lacks a field, has an extra one, or has a value of another type is an error. With
    the option ``mode="PERMISSIVE"``, Spark's own default, Spark truncates such records or fills them with None. It does
    the same if the schema has the column for malformed records, ``_corrupt_record``.

    Args:
        format: The name of the format, e.g. ``"orc"``, ``"avro"``, ``"jdbc"``, ``"delta"``.
        path: A path, a list of paths, or None.
        schema: A Spark schema, as an object or as a string such as ``"a int, b string"``; None lets Spark find it.
        rejects: Whether there is a second output, tagged ``"rejected"``, with a `penstock.io.rejects.RejectedRecord`
            for each record that cannot be read; otherwise it is an error.
            Only CSV and JSON have such records, and they need a `schema`.
        options: The reader's options.

    >>> ReadFromSpark("orc", "/data/scores").source.describe()
    'spark orc /data/scores'
    """

    def __init__(
        self,
        format: str,
        path: object = None,
        schema: object = None,
        *,
        rejects: bool = False,
        **options: object,
    ) -> None:
        _check_format(format)
        super().__init__(SparkSource(format, path, schema, tuple(sorted(options.items()))), rejects=rejects)


class WriteToSpark(TableSinkTransform):
    """Writes rows to any format that Spark can write (penstock's own; Beam has none); no output.

    Args:
        format: The name of the format.
        path: A path, or None.
        mode: What to do with existing data: ``"append"``, ``"overwrite"``, ``"error"`` or ``"ignore"``.
        partition_by: A column, or columns, whose values become folders.
        schema: The Spark schema of the rows, as an object or as a string; None takes it from the element type, which
            must then be a type of rows, e.g. a NamedTuple.
        options: The writer's options.

    >>> WriteToSpark("orc", "/out", mode="append", schema="a int").sink.describe()
    'spark orc /out'
    """

    sink: SparkSink
    _example_of_schema = "schema='name string, points int'"

    def __init__(
        self,
        format: str,
        path: object = None,
        mode: str = "error",
        partition_by: Any = (),
        schema: object = None,
        **options: object,
    ) -> None:
        _check_format(format)
        if mode not in _MODES:
            what = f"{mode!r} is not a save mode of Spark"
            raise refusal(
                ValueError, what, hint=hint_at_name(str(mode), _MODES, f"use one of {', '.join(_MODES)}")
            )
        columns = (partition_by,) if isinstance(partition_by, str) else tuple(partition_by)
        super().__init__(SparkSink(format, path, mode, columns, tuple(sorted(options.items())), schema))
