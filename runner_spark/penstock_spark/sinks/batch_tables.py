"""Tables of a stream that Spark writes: each micro-batch is added to what is there.

The save mode says what becomes of what is there when the stream starts for the first time. How often the rows of a
micro-batch are there after a crash depends on the format:

- Files (``parquet``, ``orc``, ``csv``, ``json``, ``text``, ``avro``, ``xml``): exactly once. Spark writes them to a
  folder beside, and they get names that carry the micro-batch's number. A second try replaces the files of the first.
- ``delta``: exactly once, by the options ``txnAppId`` and ``txnVersion`` of its writer.
- All others (``jdbc``, ``kafka`` and so on): at least once. A micro-batch that was written, but not noted in the
  checkpoint when the program died, is written once more.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from penstock.error import UnsupportedByRunner, three_parts
from penstock.graph import Sink
from penstock.io.sparkio import SparkSink
from penstock_spark.files.hadoop import HadoopFolder
from penstock_spark.files.temporary import MARK, PREFIX
from penstock_spark.process.identity import this_process
from penstock_spark.reports.spark_errors import Surroundings, raise_translated
from penstock_spark.session.session import empty_frame
from penstock_spark.sinks.as_columns import schema_of
from penstock_spark.sinks.micro_batch import MicroBatch, of_batch, prepare
from penstock_spark.sinks.plan import SinkPlan, plan_sink

_FILE_FORMATS = frozenset({"avro", "csv", "json", "orc", "parquet", "text", "xml"})


@dataclass(frozen=True, eq=False)
class TableBatch(Sink):
    """One micro-batch of a table.

    Attributes:
        sink: The table.
        batch: Which micro-batch.
    """

    sink: SparkSink
    batch: MicroBatch

    def describe(self) -> str:
        """One line."""
        return f"{self.sink.describe()}, {self.batch.name}"


@of_batch.register
def table_batch(sink: SparkSink, batch: MicroBatch, where: str) -> Sink:
    """Its rows are added; the module tells how often after a crash."""
    return TableBatch(sink, batch)


@plan_sink.register
def plan_table_batch(sink: TableBatch, where: str) -> SinkPlan:
    """The rows are those of batch mode."""
    table = sink.sink
    plan = plan_sink(table, where)
    if _is_of_files(table):
        return replace(plan, commit=lambda rows: _add_files(rows, table, sink.batch))
    marks = {"txnAppId": sink.batch.stream, "txnVersion": sink.batch.number}
    options = (*table.options, *marks.items()) if table.format.lower() == "delta" else table.options
    # Nobody knows how many jobs a format of somebody else's runs.
    return replace(plan_sink(replace(table, mode="append", options=options), where), is_one_job=False)


@prepare.register
def prepare_table(sink: SparkSink, spark: SparkSession, where: str, stream: str) -> None:
    """Does what the save mode says with what is there; ``append`` is content with anything."""
    if _is_of_files(sink):
        _prepare_files(sink, spark, where, stream)
    elif sink.mode == "ignore":
        raise UnsupportedByRunner(
            f"the mode 'ignore' is not supported for a stream in the format {sink.format}",
            where=where,
            hint="use another mode, or a format of files",
        )
    elif sink.mode != "append":
        # Spark knows what there is: it refuses, or deletes, when it writes nothing in that mode.
        plan = plan_sink(sink, where)
        try:
            plan.commit(empty_frame(spark, schema_of(plan.schema)))
        except PySparkException as error:
            raise_translated(error, Surroundings(places=(where,)))


def _prepare_files(sink: SparkSink, spark: SparkSession, where: str, stream: str) -> None:
    place = HadoopFolder(spark, _path(sink), make=False)
    is_there = place.exists()
    place.remove_abandoned()
    match sink.mode:
        case "error" | "errorifexists" if is_there:
            raise FileExistsError(
                three_parts(
                    f"{_path(sink)} is there already",
                    where=where,
                    hint="write elsewhere, or pass mode='append' or mode='overwrite'",
                )
            )
        case "overwrite":
            if sink.partition_by and _keeps_other_partitions(sink, spark):
                raise UnsupportedByRunner(
                    "a stream does not know which partitions it will overwrite (partitionOverwriteMode=dynamic)",
                    where=where,
                    hint="pass mode='append', or partitionOverwriteMode='static' to delete what is there",
                )
            place.delete(_path(sink))
        case "ignore" if not is_there:
            HadoopFolder(spark, _path(sink)).write(place.child(_mark(stream)), b"")


def _keeps_other_partitions(sink: SparkSink, spark: SparkSession) -> bool:
    setting: Any = _option(sink, "partitionOverwriteMode")
    setting = setting or spark.conf.get("spark.sql.sources.partitionOverwriteMode", "static")
    return str(setting).lower() == "dynamic"


def _add_files(rows: DataFrame, sink: SparkSink, batch: MicroBatch) -> list[Any]:
    """Has Spark write files beside, and moves them to their place under names of the micro-batch."""
    place = HadoopFolder(rows.sparkSession, _path(sink), make=sink.mode != "ignore")
    if sink.mode == "ignore" and not place.exists(_mark(batch.stream)):
        rows.write.format("noop").mode("overwrite").save()
        return []
    names = f"part-{batch.name}-{_digest(batch.stream)}"
    temporary = place.child(f"{PREFIX}{names}")
    unnamed = f"{temporary}/files"
    try:
        place.delete(temporary)
        place.write(f"{temporary}/{MARK}", this_process().to_json())
        _write_beside(rows, sink, unnamed)
        if batch.may_be_again:
            for old in place.matching(*["*"] * len(sink.partition_by), f"{names}-*"):
                place.delete(old)
        for number, (inside, name) in enumerate(place.tree(unnamed)):
            # Below the temporary folder is one more, that of the column which all rows have alike.
            _, _, partition = inside.partition("/")
            folder = place.child(partition) if partition else _path(sink)
            place.make(folder)
            place.rename(
                f"{unnamed}/{inside}/{name}", f"{folder}/{names}-{number:05d}{name[name.index('.') :]}"
            )
    finally:
        place.delete(temporary)
    return []


def _write_beside(rows: DataFrame, sink: SparkSink, folder: str) -> None:
    """Writes the rows to a folder that is not there yet."""
    # Where no column makes folders, Spark's first task writes a file even without rows. One that is the same for all
    # rows prevents that, and is not in the files.
    column = "penstock_batch"
    while column in map(str.lower, rows.columns):
        column += "_"
    options = {name: value for name, value in sink.options if name.lower() != "path"}
    writer = rows.withColumn(column, lit(0)).write.format(sink.format).options(**options)
    writer.partitionBy(column, *sink.partition_by).save(folder)


def _is_of_files(sink: SparkSink) -> bool:
    return sink.format.lower() in _FILE_FORMATS and _path(sink) is not None


def _path(sink: SparkSink) -> Any:
    return sink.path if sink.path is not None else _option(sink, "path")


def _option(sink: SparkSink, name: str) -> Any:
    """An option of the writer; Spark does not tell small letters from capital ones."""
    return next((value for key, value in sink.options if key.lower() == name.lower()), None)


def _digest(stream: str) -> str:
    """Tells the files of one stream from those of another."""
    return hashlib.sha256(stream.encode()).hexdigest()[:8]


def _mark(stream: str) -> str:
    """The name of a file that says that this stream found nothing, and writes."""
    return f"_penstock-{_digest(stream)}"
