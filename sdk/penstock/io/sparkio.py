"""Any of Spark's own sources and sinks, by the name of its format."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from penstock.base.row import Row
from penstock.construction.pvalue import PCollection
from penstock.error import three_parts
from penstock.graph import Sink
from penstock.io.columnar import field_names
from penstock.io.primitive import SinkTransform, SourceTransform
from penstock.io.streams import Streamable
from penstock.transforms.field_checks import check_field_names

__all__ = ["ReadFromSpark", "WriteToSpark", "from_dataframe", "to_dataframe"]

FILE_FORMATS = frozenset({"avro", "binaryfile", "csv", "json", "orc", "parquet", "text", "xml"})
"""The formats of Spark's that are files, in lower case."""

_BATCH_FORMATS = frozenset({"jdbc"})
_MODES = ("append", "overwrite", "error", "errorifexists", "ignore")


@dataclass(frozen=True)
class SparkSource(Streamable):
    """A table that Spark reads: ``spark.read.format(...).options(...).load(path)``.

    Attributes:
        format: The name of the format, e.g. ``"orc"`` or ``"jdbc"``.
        path: A path, a list of paths, or None.
        schema: A Spark schema, as an object or as text such as ``"a int, b string"``; None lets Spark find
            it.
        options: The reader's options, as sorted pairs.
    """

    format: str
    path: Any = None
    schema: Any = None
    options: tuple[tuple[str, Any], ...] = ()

    has_fields = True

    def describe(self) -> str:
        """One line for `explain`."""
        return f"spark {self.format}" + (f" {self.path}" if self.path else "")

    @property
    def reads_files(self) -> bool:  # type: ignore[override]
        """Whether it reads files, so that a micro-batch may be limited to some of them."""
        return self.format.lower() in FILE_FORMATS

    def why_no_stream(self) -> tuple[str, str] | None:
        """It can be if Spark streams the format, and there is one path."""
        if self.format.lower() in _BATCH_FORMATS:
            hint = "read a log of its changes, such as a Kafka topic, or files that are added to a folder"
            return f"Spark does not stream the format {self.format!r}", hint
        if isinstance(self.path, list | tuple):
            hint = "write one path with wildcards, or Flatten several streams"
            return f"a stream reads one path, but {len(self.path)} are given", hint
        return None


@dataclass(frozen=True)
class DataFrameSource(Streamable):
    """A Spark DataFrame that the program already has; its rows become ``Row`` values.

    Attributes:
        frame: The ``pyspark.sql.DataFrame``.
    """

    frame: Any

    has_fields = True

    def describe(self) -> str:
        """One line for `explain`."""
        return f"dataframe [{', '.join(self.frame.columns)}]"

    def why_no_stream(self) -> tuple[str, str] | None:
        """What it is made of can be."""
        hint = "read what it is made of, with ReadFromSpark(format, path).as_stream(...)"
        return "a DataFrame that the program has cannot be read as a stream", hint


@dataclass(frozen=True)
class SparkSink(Sink):
    """A table that Spark writes:
    ``frame.write.format(...).mode(...).partitionBy(...).options(...).save(path)``.

    Attributes:
        format: The name of the format.
        path: A path, or None.
        mode: One of Spark's save modes.
        partition_by: Columns whose values become folders.
        options: The writer's options, as sorted pairs.
        schema: The Spark schema of the rows; None takes it from `element_type`.
        element_type: The type of the elements.
    """

    format: str
    path: Any = None
    mode: str = "error"
    partition_by: tuple[str, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    schema: Any = None
    element_type: Any = None

    def describe(self) -> str:
        """One line for `explain`."""
        return f"spark {self.format}" + (f" {self.path}" if self.path else "")


@dataclass(frozen=True)
class FrameSink(Sink):
    """Elements as typed columns of a DataFrame.

    Attributes:
        into: The DataFrame is appended to this list.
        element_type: The type of the elements.
        schema: The Spark schema of the columns; None takes it from `element_type`.
    """

    into: list[Any]
    element_type: Any
    schema: Any = None

    def describe(self) -> str:
        """One line for `explain`."""
        return "dataframe"


class _ReadRows(SourceTransform[Row]):
    """Reads the rows of a frame or a table."""

    def infer_output_type(self, input_type: Any) -> Any:
        """Rows whose fields only the table tells."""
        return Row


def from_dataframe(frame: Any) -> _ReadRows:
    """The rows of a DataFrame as a root of the pipeline (penstock's own).

    Elements are ``Row`` values, as of `ReadFromSpark`, of the types that the columns have. Example:
    ``pipeline | from_dataframe(frame)``.

    Args:
        frame: A ``pyspark.sql.DataFrame`` that is not a streaming one.

    Returns:
        A transform.

    Raises:
        ValueError: Two columns have one name (when the transform is applied).
    """
    return _ReadRows(DataFrameSource(frame), "from_dataframe")


def to_dataframe(pcoll: Any, schema: Any = None) -> Any:
    """A PCollection as a DataFrame of the pipeline's Spark session (penstock's own).

    Only the steps that lead to the PCollection are in the DataFrame's plan; the pipeline itself is not run. Side inputs
    are computed now, all else when the DataFrame is. Records have a column for each field, pairs the columns ``key``
    and ``value``, longer tuples ``_1``, ``_2`` and so on, and anything else the column ``value``. Timestamps and
    windows are left out; ``beam.Reify`` puts them into the elements.

    Args:
        pcoll: The PCollection.
        schema: A Spark schema, as an object or as text; None takes it from the element type.

    Returns:
        A ``pyspark.sql.DataFrame``.

    Raises:
        ValueError: There is no schema, and the element type does not tell the columns.
    """
    return pcoll.pipeline.runner.to_dataframe(pcoll, schema)


class ReadFromSpark(_ReadRows):
    """Rows of any source that Spark can read (penstock's own; Beam has none).

    Elements are ``Row`` values: nested structs are ``Row`` values too, arrays lists, maps dicts, timestamps
    ``datetime`` in UTC (without a time zone where Spark's type has none), decimals ``Decimal``, null None.

    The types of the fields are those of the schema. Without one, a Spark session that is running already is asked for
    them when the transform is applied; none is started for that, and the types are then not known.

    Args:
        format: The name of the format, e.g. ``"orc"``, ``"avro"``, ``"jdbc"``, ``"delta"``.
        path: A path, a list of paths, or None.
        schema: A Spark schema, as an object or as text; None lets Spark find it.
        options: The reader's options.

    >>> ReadFromSpark("orc", "/data/scores").source.describe()
    'spark orc /data/scores'
    """

    def __init__(self, format: str, path: Any = None, schema: Any = None, **options: Any) -> None:
        super().__init__(SparkSource(format, path, schema, tuple(sorted(options.items()))))


class WriteToSpark(SinkTransform):
    """Writes rows to any sink that Spark can write (penstock's own; Beam has none); gives nothing.

    Args:
        format: The name of the format.
        path: A path, or None.
        mode: What to do if there is something already: ``"append"``, ``"overwrite"``, ``"error"`` or
            ``"ignore"``.
        partition_by: A column, or columns, whose values become folders.
        schema: The Spark schema of the rows, as an object or as text; None takes it from the element type,
            which must then be a type of rows, e.g. a NamedTuple.
        options: The writer's options.

    Raises:
        TypeCheckError: The elements have no field of the name of a column in `partition_by`.
        ValueError: The mode is none of these; or there is no schema and the element type tells none (when the
            transform is applied).

    >>> WriteToSpark("orc", "/out", mode="append", schema="a int").sink.describe()
    'spark orc /out'
    """

    sink: SparkSink

    def __init__(
        self,
        format: str,
        path: Any = None,
        mode: str = "error",
        partition_by: Any = (),
        schema: Any = None,
        **options: Any,
    ) -> None:
        if mode not in _MODES:
            raise ValueError(
                three_parts(f"{mode!r} is no save mode of Spark's", hint=f"take one of {', '.join(_MODES)}")
            )
        columns = (partition_by,) if isinstance(partition_by, str) else tuple(partition_by)
        super().__init__(SparkSink(format, path, mode, columns, tuple(sorted(options.items())), schema))

    def expand(self, pcoll: Any) -> PCollection[Any]:
        """The new PCollection, which stays empty."""
        if self.sink.schema is None:
            element_type = getattr(pcoll, "element_type", None)
            if field_names(element_type) is None:
                raise ValueError(
                    three_parts(
                        "WriteToSpark does not know the columns",
                        where=self._where(),
                        hint="pass schema='name string, points int', or give the elements a NamedTuple type",
                    )
                )
            self.sink = replace(self.sink, element_type=element_type)
            check_field_names(self.sink.partition_by, element_type, self._where())
        result: PCollection[Any] = super().expand(pcoll)
        return result
