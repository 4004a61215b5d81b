"""The format of each description: the runner's own and those of connectors, and the questions to them."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from penstock.error import UnsupportedByRunner
from penstock.graph import DriverList, Graph, InlineValues, ParDo, Read, Sink, Source, Step, Write
from penstock.io.console import ConsoleSink
from penstock.io.csvio import CsvSink, CsvSource
from penstock.io.custom.bounded import UnboundedSourceOfBeam
from penstock.io.custom.ranges import RangesOfSource
from penstock.io.each_batch import EachBatchSink
from penstock.io.external.generate_sequence import SequenceSource
from penstock.io.files.file_readers import Reader, ReadFiles, register_readers
from penstock.io.files.paths import known_path
from penstock.io.formats.file_formats import FileSource
from penstock.io.formats.text_sink import TextFileSink
from penstock.io.formats.text_source import TextSource
from penstock.io.jsonio import JsonSink, JsonSource
from penstock.io.orcio import OrcSink, OrcSource
from penstock.io.parquetio import ParquetSink, ParquetSource
from penstock.io.query_source import QuerySource, ResultColumns
from penstock.io.sparkio import DataFrameSource, FrameSink, SparkSink, SparkSource
from penstock.io.streaming.periodic_sequence import PeriodicSource
from penstock.io.streaming.recorded_stream import RecordedStream
from penstock.io.streaming.stream_sources import SourceWithRejects, Streamable, StreamSource
from penstock_spark.columns.types import is_unsupported_by_spark
from penstock_spark.files.file_store import Reach, reach_of
from penstock_spark.formats.connectors import connector_of
from penstock_spark.formats.csv import CSV
from penstock_spark.formats.format import Format
from penstock_spark.formats.frames import FRAMES
from penstock_spark.formats.json import JSON
from penstock_spark.formats.orc import ORC
from penstock_spark.formats.packages import Package
from penstock_spark.formats.parquet import PARQUET
from penstock_spark.formats.program import CONSOLE, FUNCTIONS, LISTS
from penstock_spark.formats.query import analyse_query, make_query_format
from penstock_spark.formats.ranges import RANGES
from penstock_spark.formats.sequences import SEQUENCES
from penstock_spark.formats.tables import TABLES
from penstock_spark.formats.text import TEXT
from penstock_spark.plan.column_kinds import NotInColumns
from penstock_spark.plan.column_plan import Table
from penstock_spark.reports.lineage import unwrap_source
from penstock_spark.session.backends import backend_of
from penstock_spark.sinks.files import plan_files, prepare_files
from penstock_spark.sinks.plan import SinkPlan
from penstock_spark.sinks.window_files import WindowFiles, files_of_windows
from penstock_spark.sources.frame_rows import rows_of
from penstock_spark.sources.scan import Scan, StreamScan


def open_source(source: Source, spark: SparkSession, where: str) -> Scan:
    """Opens a source. All elements are in the global window, at the minimum timestamp."""
    if isinstance(source, SourceWithRejects):
        return _open_with_rejects(source.source, spark, where)
    format = format_of(source)
    if format.open is None:
        raise UnsupportedByRunner(
            f"penstock cannot read the source {source.describe()}",
            where=where,
            hint="use a source from penstock.io",
        )
    return format.open(source, spark, where)


def _open_with_rejects(source: Source, spark: SparkSession, where: str) -> Scan:
    open_it = format_of(source).open_with_rejects
    if open_it is None:
        what = f"{source.describe()} has no records that could be kept apart with rejects=True"
        raise UnsupportedByRunner(
            what, where=where, hint="leave rejects out: then anything that cannot be read is an error"
        )
    return open_it(source, spark, where)


FORMATS: dict[type[Source | Sink], Format] = {
    TextSource: TEXT,
    CsvSource: CSV,
    JsonSource: JSON,
    ParquetSource: PARQUET,
    OrcSource: ORC,
    SparkSource: TABLES,
    DataFrameSource: FRAMES,
    SequenceSource: SEQUENCES,
    QuerySource: make_query_format(open_source),
    RangesOfSource: RANGES,
    TextFileSink: TEXT,
    CsvSink: CSV,
    JsonSink: JSON,
    ParquetSink: PARQUET,
    OrcSink: ORC,
    SparkSink: TABLES,
    FrameSink: FRAMES,
    DriverList: LISTS,
    ConsoleSink: CONSOLE,
    EachBatchSink: FUNCTIONS,
    **dict.fromkeys((InlineValues, RecordedStream, PeriodicSource, UnboundedSourceOfBeam), Format()),
}
"""The formats of the runner itself, and the sources that it reads without one; connectors bring all others."""

_UNKNOWN = Format()
_BASES = (Streamable, Source, Sink, object)


def format_of(description: Source | Sink) -> Format:
    """The format of a source or a sink; an unknown one can do nothing."""
    return _format_of_kind(type(description))


def _format_of_kind(kind: type[Source | Sink]) -> Format:
    foreign: list[type] = []
    own = _UNKNOWN
    for each in kind.__mro__:
        if each in FORMATS:
            own = FORMATS[each]
            break
        if each not in _BASES:
            # A class that derives from one of the runner's may be a connector's.
            foreign.append(each)
    return (connector_of(foreign) if foreign else None) or own


@register_readers
def reader_of(kind: type[Source]) -> Reader | None:
    """Returns the function that reads an open file of a format; None if the format has no files."""
    return _format_of_kind(kind).read_file


def formats_of(graph: Graph) -> list[Format]:
    """The formats of what a pipeline reads and writes: workers that have not installed a connector need its code."""
    found = []
    for step in graph.steps:
        match step.primitive:
            case Read(description) | Write(description):
                found.append(format_of(unwrap_source(description)))
    return found


def check_packages(graph: Graph) -> None:
    """Raises ModuleNotFoundError if a pipeline reads or writes with a package that is not installed here."""
    for step in graph.steps:
        for package in _packages_of(step):
            package.check(step.where)


def _packages_of(step: Step) -> tuple[Package, ...]:
    match step.primitive:
        case Read(description) | Write(description):
            inner = unwrap_source(description)
            return format_of(inner).packages(inner)
        case ParDo(dofn) if isinstance(reads := dofn.timer_owner(), ReadFiles):
            return _format_of_kind(reads.source).packages(reads)
    return ()


def open_stream(stream: StreamSource, spark: SparkSession, where: str) -> StreamScan:
    """Opens an unbounded source. Unless it has rejects, what does not parse is an error of the step."""
    format = format_of(stream.source)
    if format.open_stream is None:
        raise UnsupportedByRunner(
            f"the source {stream.source.describe()} cannot be read as a stream",
            where=where,
            hint="read files of text, CSV, JSON, Parquet or ORC, or any streaming source of Spark with ReadFromSpark",
        )
    path = known_path(stream.source.file_pattern) if isinstance(stream.source, FileSource) else None
    if path is not None and reach_of(path, spark) is Reach.STORE:
        scheme = path.partition("://")[0]
        raise UnsupportedByRunner(
            f"a stream cannot read {path}: Spark has no file system for {scheme}",
            where=where,
            hint=f"add Hadoop's package for {scheme} with --spark_conf=spark.jars.packages=..., use a path on a disk, "
            "or find files with fileio.MatchContinuously",
        )
    return format.open_stream(stream.source, stream, spark, where)


def columns_of_query(source: QuerySource, spark: SparkSession, where: str) -> ResultColumns:
    """The columns of a query's result; QueryError if it has no meaning over its tables."""
    return analyse_query(source, spark, where, _open_without_rows)


def _open_without_rows(source: Source, spark: SparkSession, where: str) -> Scan:
    """Opens a table for its columns; one whose columns are known without Spark is not read."""
    tell = format_of(source).schema
    schema = None if tell is None else tell(source)
    if schema is None or is_unsupported_by_spark(schema):
        return open_source(source, spark, where)
    return rows_of(backend_of(spark).empty_frame(schema), where)


def element_type_of(source: Source, spark: SparkSession | None, where: str) -> object:
    """The type of a source's elements, if it is known while a pipeline is built; starts nothing."""
    return format_of(source).element_type(source, spark, where)


def records_of(source: Source) -> str:
    """``"dict"`` or ``"row"``; NotInColumns if an element is not a row of the source's frame."""
    tell = format_of(source).records
    records = None if tell is None else tell(source)
    if records is None:
        raise NotInColumns(f"the elements of {source.describe()} are not its rows")
    return records


def table_of_schema(schema: StructType, records: str) -> Table:
    """The columns of an open source; NotInColumns if Spark cannot distinguish two of them."""
    if len({name.lower() for name in schema.names}) < len(schema.names):
        raise NotInColumns("the names of some columns differ only in case")
    return Table(tuple((field.name, field.dataType) for field in schema), records)


def table_before_opening(step: Step, source: Source) -> Table:
    """The columns of a source, without Spark, because `explain` starts nothing; NotInColumns if unknown."""
    if isinstance(source, SourceWithRejects):
        raise NotInColumns(f"a step of Python divides the records of {source.describe()}")
    source = unwrap_source(source)
    records = records_of(source)
    tell = format_of(source).schema
    schema = None if tell is None else tell(source)
    if schema is None:
        raise NotInColumns(f"the columns of {source.describe()} are only known when it is opened")
    return table_of_schema(schema, records)


def plan_sink(sink: Sink, where: str, *, is_stream: bool = False) -> SinkPlan:
    """Plans a sink; it neither writes nor looks at what exists."""
    format = format_of(sink)
    is_known = format.files is not None or format.plan is not None
    if is_stream and not (is_known and format.takes_streams):
        raise UnsupportedByRunner(
            f"the sink {sink.describe()} cannot be used in a stream",
            where=where,
            hint="use a sink of files, WriteToSpark or ForEachBatch, or mode='batch'",
        )
    if format.files is not None:
        return plan_files(sink, format.files(sink, where), is_stream, where)
    if format.plan is not None:
        return format.plan(sink, is_stream, where)
    raise UnsupportedByRunner(
        f"penstock cannot write to the sink {sink.describe()}",
        where=where,
        hint="use a sink from penstock.io",
    )


def check_sink(sink: Sink, where: str) -> None:
    """Looks at what a sink needs before a run starts, whether it is the first one or not."""
    format = format_of(sink)
    if format.check is not None:
        format.check(sink, where)


def prepare_sink(sink: Sink, spark: SparkSession, where: str, stream: str) -> None:
    """Looks at what exists before a stream starts for the first time, but not when it continues."""
    format = format_of(sink)
    if format.files is not None:
        prepare_files(format.files(sink, where), spark, where)
    elif format.prepare is not None:
        format.prepare(sink, spark, where, stream)


def window_files(sink: Sink, where: str) -> WindowFiles:
    format = format_of(sink)
    if format.files is None:
        raise UnsupportedByRunner(
            "what a stream has written cannot be read in the same pipeline, except the names of files",
            where=where,
            hint="end the pipeline with the write",
        )
    return files_of_windows(format.files(sink, where), where)
