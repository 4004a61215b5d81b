"""Tables that Spark writes; in a stream, each micro-batch is added to what is there.

The save mode says what becomes of what is there when the stream starts for the first time. How often the rows of a
micro-batch are there after a crash depends on the format:

- Files (``parquet``, ``orc``, ``csv``, ``json``, ``text``, ``avro``, ``xml``): exactly once. Spark writes them to a
  folder beside, and they get names that carry the micro-batch's number. A second try replaces the files of the first.
- ``delta``: exactly once, by the options ``txnAppId`` and ``txnVersion`` of its writer.
- All others (``jdbc``, ``kafka`` and so on): at least once. A micro-batch that was written, but not noted in the
  checkpoint when the program died, is written again.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from penstock.error import UnsupportedByRunner, refusal
from penstock.io.sparkio import FILE_FORMATS, SparkSink
from penstock_spark.columns.records import schema_of
from penstock_spark.files.file_store import escape_glob, files_of_spark
from penstock_spark.files.temporary import (
    PREFIX,
    begin,
    end,
    name_of_claim,
    remove_abandoned,
    remove_of_earlier_claims,
)
from penstock_spark.reports.spark_errors import ErrorContext, raise_translated
from penstock_spark.session.backends import backend_of
from penstock_spark.session.spark_versions import from_arrow_schema, to_arrow_schema
from penstock_spark.sinks import column_sinks
from penstock_spark.sinks.plan import MicroBatch, SinkPlan
from penstock_spark.sinks.records import RecordRows


def plan_table(sink: SparkSink, is_stream: bool, where: str) -> SinkPlan:
    """Rows as a table that Spark writes; the step's output is empty."""
    if sink.schema is None:
        schema = from_arrow_schema(schema_of(sink.element_type, where))
    else:
        schema = column_sinks.parse_spark_schema(sink.schema)
    columns = to_arrow_schema(schema)

    def commit(rows: DataFrame, batch: MicroBatch) -> list[Any]:
        if not batch.stream:
            _save(rows, sink)
        elif _is_of_files(sink):
            _add_files(rows, sink, batch)
        else:
            marks = {"txnAppId": batch.stream, "txnVersion": batch.number}
            added = marks.items() if sink.format.lower() == "delta" else ()
            _save(rows, replace(sink, mode="append", options=(*sink.options, *added)))
        return []

    # The number of jobs of a foreign format is unknown, and when it commits; this one writes nothing.
    is_nothing = sink.format.lower() == "noop"
    plan = SinkPlan(
        schema,
        lambda: RecordRows(columns, where),
        None,
        commit,
        is_one_job=_is_of_files(sink) or is_nothing,
        # Of a batch that fails, Spark leaves the folder, in which it does not write again if the mode is "error".
        commits_in_tasks=not (is_nothing or (is_stream and _is_of_files(sink))),
    )
    return replace(plan, columns=plan)


def _save(rows: DataFrame, sink: SparkSink) -> None:
    writer = rows.write.format(sink.format).mode(sink.mode).options(**dict(sink.options))
    if sink.partition_by:
        writer = writer.partitionBy(*sink.partition_by)
    if sink.path is None:
        writer.save()
    else:
        writer.save(sink.path)


def prepare_table(sink: SparkSink, spark: SparkSession, where: str, stream: str) -> None:
    """Applies the save mode to what exists; ``append`` accepts everything."""
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
        plan = plan_table(sink, False, where)
        try:
            plan.commit(
                backend_of(spark).empty_frame(column_sinks.parse_spark_schema(plan.schema)), MicroBatch()
            )
        except PySparkException as error:
            raise_translated(error, ErrorContext(places=(where,)))


def _prepare_files(sink: SparkSink, spark: SparkSession, where: str, stream: str) -> None:
    path = _path(sink)
    files = files_of_spark(spark, path)
    is_there = files.exists(path)
    remove_abandoned(files, path)
    match sink.mode:
        case "error" | "errorifexists" if is_there:
            raise refusal(
                FileExistsError,
                f"{path} already exists",
                where=where,
                hint="write elsewhere, or pass mode='append' or mode='overwrite'",
            )
        case "overwrite":
            if sink.partition_by and _keeps_other_partitions(sink, spark):
                raise UnsupportedByRunner(
                    "a stream does not know which partitions it will overwrite (partitionOverwriteMode=dynamic)",
                    where=where,
                    hint="pass mode='append', or partitionOverwriteMode='static' to delete what is there",
                )
            files.delete(path)
        case "ignore" if not is_there:
            files.write(f"{path}/{_mark(stream)}", b"")


def _keeps_other_partitions(sink: SparkSink, spark: SparkSession) -> bool:
    setting = _option(sink, "partitionOverwriteMode")
    setting = setting or spark.conf.get("spark.sql.sources.partitionOverwriteMode", "static")
    return str(setting).lower() == "dynamic"


def _add_files(rows: DataFrame, sink: SparkSink, batch: MicroBatch) -> None:
    """Lets Spark write files beside their place, and moves them there under the micro-batch's names."""
    path = _path(sink).rstrip("/")
    files = files_of_spark(rows.sparkSession, path)
    if sink.mode == "ignore" and not files.exists(f"{path}/{_mark(batch.stream)}"):
        rows.write.format("noop").mode("overwrite").save()
        return
    names = f"part-{batch.name}-{_digest(batch.stream)}"
    temporary = f"{path}/{name_of_claim(f'{PREFIX}{names}', batch.claim)}"
    unnamed = f"{temporary}/files"
    if batch.may_be_retry:
        remove_of_earlier_claims(files, path, f"{PREFIX}{names}", batch.claim)
    try:
        begin(files, temporary)
        _write_beside(rows, sink, unnamed)
        batch.check()
        if batch.may_be_retry:
            pattern = "/".join([escape_glob(path), *["*"] * len(sink.partition_by), f"{names}-*"])
            for old in files.matching(pattern):
                files.remove(old)
        for number, (inside, name, _) in enumerate(files.below(unnamed)):
            # The temporary folder contains one folder for the column that all rows share.
            _, _, partition = inside.partition("/")
            folder = f"{path}/{partition}" if partition else path
            files.make(folder)
            files.rename(
                f"{unnamed}/{inside}/{name}", f"{folder}/{names}-{number:05d}{name[name.index('.') :]}"
            )
    finally:
        end(files, temporary)


def _write_beside(rows: DataFrame, sink: SparkSink, folder: str) -> None:
    # If no column makes folders, Spark's first task writes a file even without rows. A column with the same value in
    # all rows prevents that, and is not in the files.
    column = "penstock_batch"
    while column in map(str.lower, rows.columns):
        column += "_"
    options = {name: value for name, value in sink.options if name.lower() != "path"}
    writer = rows.withColumn(column, lit(0)).write.format(sink.format).options(**options)
    writer.partitionBy(column, *sink.partition_by).save(folder)


def _is_of_files(sink: SparkSink) -> bool:
    return sink.format.lower() in FILE_FORMATS and _path(sink) is not None


def _path(sink: SparkSink) -> Any:
    return sink.path if sink.path is not None else _option(sink, "path")


def _option(sink: SparkSink, name: str) -> object:
    """An option of the writer; Spark ignores case."""
    return next((value for key, value in sink.options if key.lower() == name.lower()), None)


def _digest(stream: str) -> str:
    """Distinguishes the files of one stream from the files of another."""
    return hashlib.sha256(stream.encode()).hexdigest()[:8]


def _mark(stream: str) -> str:
    """The name of a file that marks an empty place where this stream writes."""
    return f"_penstock-{_digest(stream)}"
