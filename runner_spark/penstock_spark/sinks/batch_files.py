"""Files of a stream: each micro-batch has its own, whose names carry its number.

Exactly once: a micro-batch that is written again replaces all the files that an earlier try has given names, also
where there are fewer now. One without elements writes no file, and header and footer are those of each file.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from penstock.base.bounded_window import GlobalWindow
from penstock.error import three_parts
from penstock.graph import Sink
from penstock.io.columnar import ColumnSink
from penstock.io.file_naming import default_file_naming
from penstock.io.filesystems import FileSystems
from penstock.io.parquetio import ParquetSink
from penstock.io.text_sink import TextSink
from penstock_spark.files.hadoop import HadoopFolder
from penstock_spark.files.naming import SHARD, SHARDS, Naming, example_of
from penstock_spark.files.temporary import PREFIX, remove_abandoned_local
from penstock_spark.sinks.columns import column_plan, folder_and_prefix
from penstock_spark.sinks.micro_batch import MicroBatch, of_batch, prepare
from penstock_spark.sinks.parquet import parquet_plan
from penstock_spark.sinks.plan import SinkPlan, plan_sink
from penstock_spark.sinks.text import refuse_streaming, text_plan

FileSink = TextSink | ColumnSink | ParquetSink
PathOf = Callable[[str, int, int], str]
"""The path of a file, from the name of the micro-batch, the number of the shard, and that of all shards."""

# A number that stands for that of a micro-batch where a pattern is made of a name.
_BATCH = 666_666_667
_STANDS_FOR_ANY = re.compile(f"{_BATCH}|{SHARD}|{SHARDS}")


@dataclass(frozen=True, eq=False)
class FileBatch(Sink):
    """One micro-batch of a sink of files.

    Attributes:
        sink: The sink.
        batch: Which micro-batch.
    """

    sink: FileSink
    batch: MicroBatch

    def describe(self) -> str:
        """One line."""
        return f"{self.sink.describe()}, {self.batch.name}"


@of_batch.register
def file_batch(sink: TextSink | ColumnSink | ParquetSink, batch: MicroBatch, where: str) -> Sink:
    """Files such as ``prefix-batch-000012-00000-of-00003.suffix``."""
    return FileBatch(sink, batch)


@plan_sink.register
def plan_file_batch(sink: FileBatch, where: str) -> SinkPlan:
    """As in batch mode, but for the names of the files."""
    naming = _naming(_path_of(sink.sink, where), sink.batch)
    match sink.sink:
        case TextSink() as text:
            refuse_streaming(text.triggering_frequency, text.shards, where)
            return text_plan(text, naming, 0, where)
        case ParquetSink() as parquet:
            refuse_streaming(parquet.triggering_frequency, parquet.shards, where)
            return parquet_plan(parquet, naming, 0, where)
        case ColumnSink() as columns:
            return column_plan(columns, folder_and_prefix(columns, where)[0], naming, 0, where)


@prepare.register
def prepare_files(
    sink: TextSink | ColumnSink | ParquetSink, spark: SparkSession, where: str, stream: str
) -> None:
    """Refuses to begin where another stream has left files: this one's would replace some, and stand among the rest."""
    path_of = _path_of(sink, where)
    example = example_of(functools.partial(path_of, MicroBatch(_BATCH).name))
    folder, _, name = example.rpartition("/")
    if FileSystems.get_scheme(example) is None:
        place = folder or "."
        remove_abandoned_local(place)
        names = os.listdir(place) if os.path.isdir(place) else []
    else:
        far = HadoopFolder(spark, folder, make=False)
        far.remove_abandoned()
        names = far.names_beginning(_STANDS_FOR_ANY.split(name)[0])
    found = sorted(filter(names_like(name).match, names))
    if found:
        raise FileExistsError(
            three_parts(
                f"{folder or 'the working folder'} has files of another stream, such as {found[0]}",
                where=where,
                hint="delete them, write elsewhere, or go on with the checkpoint of the stream that wrote them",
            )
        )


def _naming(path_of: PathOf, batch: MicroBatch) -> Naming:
    """The names of one micro-batch's files, which replace those of earlier tries: however many there were."""
    return Naming(
        functools.partial(path_of, batch.name),
        replaces=batch.may_be_again,
        # What writes to the folder need not know the micro-batch.
        temporary=f"{PREFIX}{os.path.basename(path_of('stream', 0, 1))}",
    )


def _path_of(sink: FileSink, where: str) -> PathOf:
    if isinstance(sink, ColumnSink):
        return _column_path_of(sink, where)
    shards = sink.shards

    def path_of(batch: str, shard: int, count: int) -> str:
        return replace(shards, file_path_prefix=f"{shards.prefix}-{batch}").name(shard, count)

    return path_of


def _column_path_of(sink: ColumnSink, where: str) -> PathOf:
    folder, prefix = folder_and_prefix(sink, where)
    beginning = f"{folder}/" if folder else ""

    def path_of(batch: str, shard: int, count: int) -> str:
        if sink.file_naming is None:
            naming = default_file_naming(f"{prefix}-{batch}")
            return beginning + naming(GlobalWindow(), None, shard, count, "", None)
        inside, slash, name = sink.file_naming(GlobalWindow(), None, shard, count, "", None).rpartition("/")
        return f"{beginning}{inside}{slash}{batch}-{name}"

    return path_of


def names_like(example: str) -> re.Pattern[str]:
    """Matches, as a whole, the names that differ from an example in what the large numbers stand for.

    >>> bool(names_like("o-batch-000012-777777778-of-888888889").match("o-batch-000012-00001-of-00003"))
    True
    """
    return re.compile(_STANDS_FOR_ANY.sub(r"\\d+", re.escape(example)) + r"\Z")
