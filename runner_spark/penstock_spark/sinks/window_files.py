"""Files of the windows of a stream: a grouping brings the elements of a window together, and a task writes each file.

Exactly once: a file's name tells its window, pane and shard, and what is in it is the state of the grouping. A task
that is run again, or a micro-batch that is tried again, gives the same name to the same content. A file has its name
only when it is whole; so its name can be an element of the same pipeline.
"""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any
from zlib import crc32

from penstock.base.chunks import in_chunks
from penstock.error import UnsupportedByRunner
from penstock.functions.dofn import DoFn
from penstock.graph import Sink
from penstock.io.columnar import ColumnSink
from penstock.io.file_naming import default_file_naming
from penstock.io.filesystems import FileSystems
from penstock.io.parquetio import ParquetSink
from penstock.io.text_sink import TextSink
from penstock.io.write_files import FileResult
from penstock_spark.files.temporary import make_local, new_name, remove_abandoned_local
from penstock_spark.sinks.columns import column_shards, folder_and_prefix
from penstock_spark.sinks.parquet import parquet_shards
from penstock_spark.sinks.shard_files import ShardWriter
from penstock_spark.sinks.text import refuse_letters, text_shards

FILE_SINKS = (TextSink, ColumnSink, ParquetSink)


@dataclass(frozen=True)
class WindowFiles:
    """How the files of windows are written.

    Attributes:
        open_shard: Opens a file for writing, given its path.
        result_of: From the window, the pane, and the numbers of a shard and of all shards to the file's path, and
            to the element that tells of it.
        shards: How many files there are for a window; all of them are written if it has an element.
    """

    open_shard: Callable[[str], ShardWriter]
    result_of: Callable[[Any, Any, int, int], tuple[str, Any]]
    shards: int


def window_files(sink: Sink, where: str) -> WindowFiles:
    """How a sink of files is written window by window.

    Raises:
        UnsupportedByRunner: The sink cannot be, or not all that is asked of it.
    """
    if not isinstance(sink, FILE_SINKS):
        raise UnsupportedByRunner(
            "what a stream has written cannot be read in the same pipeline, except the names of files",
            where=where,
            hint="end the pipeline with the write",
        )
    if isinstance(sink, ColumnSink):
        folder, prefix = folder_and_prefix(sink, where)
        _check_local(f"{folder}/", where)
        name = functools.partial(_named_by_function, folder, sink.file_naming or default_file_naming(prefix))
        return WindowFiles(column_shards(sink, where), name, sink.num_shards or 1)
    shards = sink.shards
    refuse_letters("U", shards, where)
    _check_local(shards.prefix, where)
    if isinstance(sink, TextSink):
        _refuse_limits(sink, where)
        opener = text_shards(sink, where)
    else:
        opener = parquet_shards(sink, where)
    return WindowFiles(opener, functools.partial(_named_by_template, shards), shards.count or 1)


def _refuse_limits(sink: TextSink, where: str) -> None:
    for limit in ("max_records_per_shard", "max_bytes_per_shard"):
        if getattr(sink, limit):
            raise UnsupportedByRunner(
                f"{limit} is not supported for files of windows, whose names tell how many there are",
                where=where,
                hint="write more shards: num_shards",
            )


def _check_local(path: str, where: str) -> None:
    if FileSystems.get_scheme(path) is not None:
        raise UnsupportedByRunner(
            f"files of windows cannot be written to {path}",
            where=where,
            hint="write to a path without a scheme, on a disk that all workers share",
        )


def _named_by_template(shards: Any, window: Any, pane: Any, shard: int, count: int) -> tuple[str, Any]:
    path = shards.window_name(window, pane.index, shard, count)
    return path, path


def _named_by_function(
    folder: str, naming: Any, window: Any, pane: Any, shard: int, count: int
) -> tuple[str, Any]:
    name = str(naming(window, pane, shard, count, "", None))
    return os.path.join(folder, name), FileResult(name, shard, count, window, pane, None)


class Deal(DoFn):
    """Deals elements out to shards, in turn; every shard hears of every window: it may have to write an empty file.

    What it does depends on the bundle alone: a task that is run again deals in the same way.

    Args:
        shards: How many there are.
    """

    def __init__(self, shards: int) -> None:
        self._shards = shards
        self._next: int | None = None
        self._met: set[Any] = set()

    def start_bundle(self) -> None:
        """Begins anew."""
        self._next, self._met = None, set()

    def process(
        self, element: Any, window: Any = DoFn.WindowParam, timestamp: Any = DoFn.TimestampParam
    ) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """One pair with the element, and with the first of a window one without for every other shard."""
        if self._next is None:
            # Small bundles would else all begin with the same shard.
            self._next = crc32(b"%d" % timestamp.micros)
        shard = self._next % self._shards
        self._next += 1
        yield shard, (element,)
        if self._shards > 1 and window not in self._met:
            self._met.add(window)
            yield from ((other, ()) for other in range(self._shards) if other != shard)


class WriteWindow(DoFn):
    """Writes the file of a shard of a window.

    Args:
        files: How files are written.
    """

    def __init__(self, files: WindowFiles) -> None:
        self._files = files
        self._cleaned: set[str] = set()

    def process(
        self,
        element: tuple[int, Iterable[tuple[Any, ...]]],
        window: Any = DoFn.WindowParam,
        pane: Any = DoFn.PaneInfoParam,
    ) -> Iterator[Any]:
        """What tells of the file."""
        shard, values = element
        path, result = self._files.result_of(window, pane, shard, self._files.shards)
        folder = os.path.dirname(os.path.abspath(path))
        if folder not in self._cleaned:
            self._cleaned.add(folder)
            remove_abandoned_local(folder)
        temporary = os.path.join(folder, new_name())
        make_local(temporary)
        try:
            whole = os.path.join(temporary, "file")
            writer = self._files.open_shard(whole)
            for some in in_chunks(chain.from_iterable(values)):
                writer.write(some)
            writer.close()
            os.replace(whole, path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        FileSystems.report_sink_lineage(path)
        yield result
