"""Reads and writes all sources and sinks that Spark has, by the name of the format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.construction.pvalue import PCollection
from penstock.elements.row import Row
from penstock.error import refusal
from penstock.graph import Sink
from penstock.io.sink_transforms import TableSinkTransform
from penstock.io.source_transforms import SourceTransform
from penstock.io.streaming.stream_sources import Streamable

__all__ = ["ReadFromSpark", "WriteToSpark", "from_dataframe", "to_dataframe"]

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
    """An existing Spark DataFrame of the program; its rows become ``Row`` values."""

    frame: Any

    has_fields = True
    has_columns = True
    is_table = True

    def describe(self) -> str:
        return f"dataframe [{', '.join(self.frame.columns)}]"

    def why_no_stream(self) -> tuple[str, str] | None:
        hint = "read its own source, with ReadFromSpark(format, path).as_stream(...)"
        return "a DataFrame of the program cannot be read as a stream", hint


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
    element_type: Any
    schema: Any = None

    def describe(self) -> str:
        return "dataframe"


class _ReadRows(SourceTransform[Row]):
    def infer_output_type(self, input_type: object) -> object:
        return Row


def from_dataframe(frame: object) -> _ReadRows:
    """The rows of a DataFrame, which must not be a streaming one, as a root of the pipeline (penstock's own).

    Elements are ``Row`` values, as with `ReadFromSpark`, and have the types of the columns. Two columns with the same
    name raise a ValueError when the transform is applied. Example: ``pipeline | from_dataframe(frame)``.
    """
    return _ReadRows(DataFrameSource(frame), "from_dataframe")


def to_dataframe(pcoll: PCollection[Any], schema: object = None) -> Any:
    """A PCollection as a DataFrame of the pipeline's Spark session (penstock's own).

    The DataFrame's plan has only the steps that lead to the PCollection; the pipeline itself does not run. Side
    inputs are computed now, everything else with the DataFrame. Records have a column for each field, pairs the
    columns ``key`` and ``value``, longer tuples ``_1``, ``_2`` and so on, and anything else the column ``value``.
    Timestamps and windows are left out; ``beam.Reify`` puts them into the elements.

    The schema is a Spark schema, as an object or as text. Without one, the element type must give the columns;
    otherwise a ValueError says so.
    """
    return pcoll.pipeline.runner.to_dataframe(pcoll, schema)


def _check_format(format: str) -> None:
    if not isinstance(format, str) or not format:
        what = f"the format must be the name of a Spark format, but is {format!r}"
        raise refusal(TypeError, what, hint="write 'parquet', for example")


class ReadFromSpark(_ReadRows):
    """Rows of any source that Spark can read (penstock's own; Beam has none).

    Elements are ``Row`` values: nested structs are ``Row`` values too, arrays lists, maps dicts, timestamps
    ``datetime`` in UTC (without a time zone if Spark's type has none), decimals ``Decimal``, null None.

    The schema has the types of the fields. Without one, a Spark session that is already running finds them when the
    transform is applied; no session is started for that, and the types are then unknown.

    A record of CSV, JSON or XML that lacks a field, has one too many, or a value of another type is an error. With the
    option ``mode="PERMISSIVE"``, which is Spark's own default, Spark cuts such records or fills them with None; it also
    does if the schema has its column for malformed records, ``_corrupt_record``.

    Args:
        format: The name of the format, e.g. ``"orc"``, ``"avro"``, ``"jdbc"``, ``"delta"``.
        path: A path, a list of paths, or None.
        schema: A Spark schema, as an object or as text such as ``"a int, b string"``; None lets Spark find it.
        options: The reader's options.

    >>> ReadFromSpark("orc", "/data/scores").source.describe()
    'spark orc /data/scores'
    """

    def __init__(self, format: str, path: object = None, schema: object = None, **options: object) -> None:
        _check_format(format)
        super().__init__(SparkSource(format, path, schema, tuple(sorted(options.items()))))


class WriteToSpark(TableSinkTransform):
    """Writes rows to any sink that Spark can write (penstock's own; Beam has none); no output.

    Args:
        format: The name of the format.
        path: A path, or None.
        mode: What to do with existing data: ``"append"``, ``"overwrite"``, ``"error"`` or ``"ignore"``.
        partition_by: A column, or columns, whose values become folders.
        schema: The Spark schema of the rows, as an object or as text; None takes it from the element type, which must
            then be a type of rows, e.g. a NamedTuple.
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
            raise refusal(ValueError, what, hint=f"use one of {', '.join(_MODES)}")
        columns = (partition_by,) if isinstance(partition_by, str) else tuple(partition_by)
        super().__init__(SparkSink(format, path, mode, columns, tuple(sorted(options.items())), schema))
