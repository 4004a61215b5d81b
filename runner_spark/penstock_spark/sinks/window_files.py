"""Files of the windows of a stream: a grouping brings the elements of a window together, and a task writes each file.

Exactly once: a file's name contains its window, pane and shard, and its content is the state of the grouping. A task
that is run again, or a micro-batch that is tried again, writes the same content under the same name. A file has its
name only when it is whole; so its name can be an element of the same pipeline. The same holds for the folders of
partitions: their names come from the values in the elements.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any
from zlib import crc32

from penstock.base.chunks import split_into_chunks
from penstock.error import UnsupportedByRunner
from penstock.functions.dofn import DoFn
from penstock.io.filesystems import FileSystems
from penstock.io.formats.partition_folders import move_into_folders
from penstock.transforms.window import BoundedWindow
from penstock.utils.timestamp import Timestamp
from penstock.utils.windowed_value import PaneInfo
from penstock_spark.files.disk_files import DiskFiles
from penstock_spark.files.file_store import is_on_disk
from penstock_spark.files.temporary import begin, make_name, remove_abandoned
from penstock_spark.sinks.file_names import Names
from penstock_spark.sinks.files import FileSink, ShardWriter
from penstock_spark.sinks.partitions import Partitions, PartitionWriter, RowsWriter


@dataclass(frozen=True)
class WindowFiles:
    open_shard: Callable[[str], ShardWriter]
    names: Names
    shards: int  # The number of files for each window that has an element.
    partitions: Partitions | None = None  # How each of these files is divided by the values of columns.


def files_of_windows(files: FileSink, where: str) -> WindowFiles:
    files.names.refuse("U", where)
    if not is_on_disk(files.names.place):
        raise UnsupportedByRunner(
            f"files of windows cannot be written to {files.names.place}",
            where=where,
            hint="write to a path without a scheme, on a disk that all workers share",
        )
    for limit in files.limits:
        raise UnsupportedByRunner(
            f"{limit} is not supported for files of windows, whose names contain their number",
            where=where,
            hint="write more shards: num_shards",
        )
    return WindowFiles(files.open_shard, files.names, files.shards or 1, files.partitions)


class AssignShards(DoFn):
    """Distributes elements over shards in turn; every shard receives every window, since it may write an empty file.

    It depends on the bundle alone, so that a retried task distributes the same way.
    """

    def __init__(self, shards: int) -> None:
        self._shards = shards
        self._next: int | None = None
        self._met: set[Any] = set()

    def start_bundle(self) -> None:
        self._next, self._met = None, set()

    def process(
        self,
        element: object,
        window: BoundedWindow = DoFn.WindowParam,
        timestamp: Timestamp = DoFn.TimestampParam,
    ) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Yields a pair with the element; for the first element of a window also a pair without one for each other
        shard.
        """
        if self._next is None:
            # Otherwise small bundles would all begin with the same shard.
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
        window: BoundedWindow = DoFn.WindowParam,
        pane: PaneInfo = DoFn.PaneInfoParam,
    ) -> Iterator[Any]:
        shard, values = element
        path, result = self._files.names.of_window(window, pane, shard, self._files.shards)
        disk, folder = DiskFiles(), os.path.dirname(os.path.abspath(path))
        if folder not in self._cleaned:
            self._cleaned.add(folder)
            remove_abandoned(disk, folder)
        temporary = os.path.join(folder, make_name())
        try:
            begin(disk, temporary)
            found = self._write(disk, temporary, chain.from_iterable(values))
            for inside, whole in found:
                if inside:
                    disk.make(os.path.join(folder, inside))
                disk.replace(whole, move_into_folders(path, inside))
        finally:
            disk.delete(temporary)
        for inside, _ in found:
            name = move_into_folders(path, inside)
            FileSystems.report_sink_lineage(name)
            yield self._files.names.inside(result, inside)

    def _write(self, disk: DiskFiles, temporary: str, values: Iterable[Any]) -> list[tuple[str, str]]:
        """Writes whole files, each with the folders of its partition."""
        found: list[tuple[str, str]] = []

        def open_in(inside: str) -> RowsWriter:
            assert self._files.partitions is not None
            disk.make_inside(temporary, inside)
            found.append((inside, os.path.join(temporary, inside, "file")))
            return self._files.partitions.open_file(found[-1][1])

        if self._files.partitions is None:
            found.append(("", os.path.join(temporary, "file")))
            writer = self._files.open_shard(found[0][1])
        else:
            writer = PartitionWriter(self._files.partitions, open_in)
        for some in split_into_chunks(values):
            writer.write(some)
        writer.close()
        return found
