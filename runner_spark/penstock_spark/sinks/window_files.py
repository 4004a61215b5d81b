"""Files of the windows of a stream: a grouping brings the elements of a window together, and a task writes each file.

Exactly once: a file's name tells its window, pane and shard, and what is in it is the state of the grouping. A task
that is run again, or a micro-batch that is tried again, gives the same name to the same content. A file has its name
only when it is whole; so its name can be an element of the same pipeline.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any
from zlib import crc32

from penstock.base.chunks import in_chunks
from penstock.error import UnsupportedByRunner
from penstock.functions.dofn import DoFn
from penstock.io.filesystems import FileSystems
from penstock_spark.files.file_system import LocalFiles
from penstock_spark.files.temporary import begin, new_name, remove_abandoned
from penstock_spark.sinks.file_names import Names
from penstock_spark.sinks.files import FileSink, ShardWriter


@dataclass(frozen=True)
class WindowFiles:
    open_shard: Callable[[str], ShardWriter]
    names: Names
    shards: int  # The number of files for each window that has an element.


def files_of_windows(files: FileSink, where: str) -> WindowFiles:
    files.names.refuse("U", where)
    if not files.names.is_local:
        raise UnsupportedByRunner(
            f"files of windows cannot be written to {files.names.place}",
            where=where,
            hint="write to a path without a scheme, on a disk that all workers share",
        )
    for limit in files.limits:
        raise UnsupportedByRunner(
            f"{limit} is not supported for files of windows, whose names tell how many there are",
            where=where,
            hint="write more shards: num_shards",
        )
    return WindowFiles(files.open_shard, files.names, files.shards or 1)


class Deal(DoFn):
    """Deals elements out to shards in turn; every shard hears of every window, since it may write an empty file.

    It depends on the bundle alone, so that a retried task deals in the same way.
    """

    def __init__(self, shards: int) -> None:
        self._shards = shards
        self._next: int | None = None
        self._met: set[Any] = set()

    def start_bundle(self) -> None:
        self._next, self._met = None, set()

    def process(
        self, element: Any, window: Any = DoFn.WindowParam, timestamp: Any = DoFn.TimestampParam
    ) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """A pair with the element; for the first element of a window also a pair without one for each other
        shard.
        """
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
    def __init__(self, files: WindowFiles) -> None:
        self._files = files
        self._cleaned: set[str] = set()

    def process(
        self,
        element: tuple[int, Iterable[tuple[Any, ...]]],
        window: Any = DoFn.WindowParam,
        pane: Any = DoFn.PaneInfoParam,
    ) -> Iterator[Any]:
        shard, values = element
        path, result = self._files.names.of_window(window, pane, shard, self._files.shards)
        disk, folder = LocalFiles(), os.path.dirname(os.path.abspath(path))
        if folder not in self._cleaned:
            self._cleaned.add(folder)
            remove_abandoned(disk, folder)
        temporary = os.path.join(folder, new_name())
        try:
            begin(disk, temporary)
            whole = os.path.join(temporary, "file")
            writer = self._files.open_shard(whole)
            for some in in_chunks(chain.from_iterable(values)):
                writer.write(some)
            writer.close()
            disk.replace(whole, path)
        finally:
            disk.delete(temporary)
        FileSystems.report_sink_lineage(path)
        yield result
