"""Writes elements to files that a function chooses, also for each window."""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple

from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.elements.tagged_output import TaggedOutput
from penstock.functions.dofn import DoFn
from penstock.io.files.file_naming import check_file_name, default_file_naming
from penstock.io.files.naming_errors import encode_text
from penstock.io.files.paths import check_path, known_path
from penstock.io.filesystem import CompressionTypes
from penstock.io.filesystems import FileSystems
from penstock.transforms.elements.pardo import Map, ParDo
from penstock.transforms.grouping.group_by_key import Flatten, GroupByKey
from penstock.utils.identifiers import make_uuid
from penstock.utils.windowed_value import PaneInfo, WindowedValue

_SPILLED = "spilled_records"
_WRITTEN = "written_files"


class FileAttributes(NamedTuple):
    """Describes how a file is made: its MIME type and its compression (Beam's ``fileio.FileMetadata``)."""

    mime_type: str
    compression_type: str


class FileResult(NamedTuple):
    """A file that was written (Beam's ``FileResult``)."""

    file_name: str
    shard_index: int
    total_shards: int
    window: Any
    pane: Any
    destination: Any


class FileSink:
    """Writes elements to one open file; override its methods (Beam's ``FileSink``)."""

    def create_metadata(self, destination: object, full_file_name: str) -> FileAttributes:
        """Returns the MIME type and the compression of a new file."""
        return FileAttributes("application/octet-stream", CompressionTypes.AUTO)

    def open(self, fh: BinaryIO) -> None:
        """Begins a file that is open for writing bytes."""
        raise NotImplementedError

    def write(self, record: Any) -> None:
        """Writes one element."""
        raise NotImplementedError

    def flush(self) -> None:
        """Ends the file, which is closed afterwards."""
        raise NotImplementedError


class TextSink(FileSink):
    r"""Writes each element, a string, as a line of UTF-8 text (Beam's ``TextSink``).

    >>> import io; file = io.BytesIO(); sink = TextSink(); sink.open(file); sink.write("é"); file.getvalue()
    b'\xc3\xa9\n'
    """

    def open(self, fh: BinaryIO) -> None:
        # Beam's name: users' subclasses write to it.
        self._fh = fh

    def write(self, record: str) -> None:
        self._fh.write(encode_text(record) + b"\n")

    def flush(self) -> None:
        self._fh.flush()


class WriteToFiles(PTransform[Any, Any]):
    """Writes elements to files that functions choose, and returns `FileResult` records (Beam's ``WriteToFiles``).

    Python writes the files, through `penstock.io.filesystems.FileSystems`, to a temporary folder. They get their final
    names when they are complete.

    Args:
        path: The folder.
        file_naming: A function (window, pane, shard_index, total_shards, compression, destination) -> file name.
        destination: A function of an element, or one value for all; elements of one destination share files.
        temp_directory: The folder of incomplete files; by default inside `path`.
        sink: A `FileSink`, its class, or a function from a destination to one; by default a `TextSink`.
        shards: The number of files of each destination and window for elements that exceed the open files.
        output_fn: Ignored, as in Beam.
        max_writers_per_bundle: How many open files a task may have; 0 sends all elements through `shards`.
        allow_outside_path: Whether `file_naming` may return absolute names and names with ``..``. (Beam allows it.)
    """

    MAX_NUM_WRITERS_PER_BUNDLE = 20
    DEFAULT_SHARDING = 5

    def __init__(
        self,
        path: Any,
        file_naming: object = None,
        destination: object = None,
        temp_directory: Any = None,
        sink: object = None,
        shards: int | None = None,
        output_fn: object = None,
        max_writers_per_bundle: int = MAX_NUM_WRITERS_PER_BUNDLE,
        *,
        allow_outside_path: bool = False,
    ) -> None:
        super().__init__()
        check_path(path, "path")
        self.path = path
        self.file_naming_fn = file_naming or default_file_naming("output")
        self.destination_fn: Callable[[Any], Any] = (
            destination if callable(destination) else lambda _: destination
        )
        self.sink_fn = _sink_function(sink)
        self.shards = shards or self.DEFAULT_SHARDING
        self._temp_directory = temp_directory
        self._max_writers = max_writers_per_bundle
        self._allow_outside_path = allow_outside_path

    def expand(self, pcoll: PCollection[Any]) -> PCollection[FileResult]:
        folder = known_path(self.path) or str(self.path)
        given = self._temp_directory
        temporary = (
            known_path(given) or str(given) if given else FileSystems.join(folder, f".temp{make_uuid()}")
        )
        first = pcoll | "WriteOpenFiles" >> ParDo(
            _WriteOpenFiles(temporary, self.destination_fn, self.sink_fn, self._max_writers)
        ).with_outputs(_SPILLED, _WRITTEN)
        shuffled = first[_SPILLED] | "Shard" >> ParDo(_Shard(self.destination_fn, self.shards))
        second = (
            shuffled
            | "GroupByShard" >> GroupByKey()
            | "WriteShards" >> ParDo(_WriteShard(temporary, self.sink_fn, self.shards))
        )
        move = _Move(folder, self.file_naming_fn, self._allow_outside_path, None if given else temporary)
        result: PCollection[FileResult] = (
            (first[_WRITTEN], second)
            | Flatten()
            | "ByDestination" >> Map(_with_destination)
            | "GroupByDestination" >> GroupByKey()
            | "Move" >> ParDo(move).with_output_types(FileResult)
        )
        return result


def _sink_function(sink: object) -> Callable[[Any], FileSink]:
    if isinstance(sink, type) and issubclass(sink, FileSink):
        return lambda _: sink()
    if isinstance(sink, FileSink):
        return lambda _: copy.deepcopy(sink)
    return sink if callable(sink) else lambda _: TextSink()


def _with_destination(result: FileResult) -> tuple[Any, FileResult]:
    return result.destination, result


class _OpenFile:
    """A temporary file, and the sink that fills it."""

    def __init__(self, folder: str, destination: object, sink: FileSink) -> None:
        self.name = FileSystems.join(folder, make_uuid())
        metadata = sink.create_metadata(destination, self.name)
        self._handle = FileSystems.create(self.name, metadata.mime_type, metadata.compression_type)
        self.sink = sink
        sink.open(self._handle)

    def close(self) -> str:
        self.sink.flush()
        self._handle.close()
        return self.name


class _WriteOpenFiles(DoFn):
    """Writes to one file for each destination and window; passes on elements that exceed the open files."""

    def __init__(self, folder: str, destination_fn: Any, sink_fn: Any, max_writers: int) -> None:
        self._folder = folder
        self._destination_fn = destination_fn
        self._sink_fn = sink_fn
        self._max_writers = max_writers
        self._files: dict[tuple[Any, Any], _OpenFile] = {}

    def start_bundle(self) -> None:
        self._files = {}

    def process(self, element: Any, window: object = DoFn.WindowParam) -> Iterable[Any]:
        destination = self._destination_fn(element)
        file = self._files.get((destination, window))
        if file is None:
            if len(self._files) >= self._max_writers:
                return [TaggedOutput(_SPILLED, element)]
            file = _OpenFile(self._folder, destination, self._sink_fn(destination))
            self._files[destination, window] = file
        file.sink.write(element)
        return ()

    def finish_bundle(self) -> Iterator[TaggedOutput[str, WindowedValue]]:
        for (destination, window), file in self._files.items():
            result = FileResult(file.close(), -1, 0, window, None, destination)
            yield TaggedOutput(_WRITTEN, WindowedValue(result, window.max_timestamp(), (window,)))
        self._files = {}


class _Shard(DoFn):
    """Distributes the elements of each destination over its shards."""

    def __init__(self, destination_fn: Any, shards: int) -> None:
        self._destination_fn = destination_fn
        self._shards = shards
        self._next: dict[Any, int] = {}

    def process(self, element: Any) -> Iterator[tuple[tuple[Any, int], Any]]:
        destination = self._destination_fn(element)
        shard = (self._next.get(destination, -1) + 1) % self._shards
        self._next[destination] = shard
        yield (destination, shard), element


class _WriteShard(DoFn):
    def __init__(self, folder: str, sink_fn: Any, shards: int) -> None:
        self._folder = folder
        self._sink_fn = sink_fn
        self._shards = shards

    def process(
        self, element: Any, window: object = DoFn.WindowParam, pane: PaneInfo = DoFn.PaneInfoParam
    ) -> Iterator[FileResult]:
        (destination, shard), records = element
        file = _OpenFile(self._folder, destination, self._sink_fn(destination))
        for record in records:
            file.sink.write(record)
        yield FileResult(file.close(), shard, self._shards, window, pane, destination)


class _Move(DoFn):
    """Gives the files of a destination and window their names."""

    def __init__(self, folder: str, naming: Any, allow_outside: bool, temporary: str | None) -> None:
        self._folder = folder
        self._naming = naming
        self._allow_outside = allow_outside
        self._temporary = temporary

    def process(self, element: tuple[Any, Iterable[FileResult]]) -> Iterator[FileResult]:
        destination, values = element
        files = sorted(values, key=lambda each: each.file_name)
        names = [
            self._naming(each.window, each.pane, at, len(files), "", destination)
            for at, each in enumerate(files)
        ]
        if not self._allow_outside:
            for name in names:
                check_file_name(name, more=" or destination, or pass allow_outside_path=True")
        # If a task runs again, the first run has already moved its files.
        moves = [
            (each.file_name, FileSystems.join(self._folder, name))
            for each, name in zip(files, names, strict=True)
            if FileSystems.exists(each.file_name)
        ]
        for inside in {os.path.dirname(name) for name in names} - {""}:
            # Another task may have made it.
            with contextlib.suppress(OSError):
                FileSystems.mkdirs(FileSystems.join(self._folder, inside))
        FileSystems.rename([source for source, _ in moves], [target for _, target in moves])
        if self._temporary is not None and FileSystems.get_scheme(self._temporary) is None:
            # The last task finds it empty; later writes make it again.
            with contextlib.suppress(OSError):
                os.rmdir(self._temporary)
        for at, (each, name) in enumerate(zip(files, names, strict=True)):
            yield FileResult(name, at, len(files), each.window, each.pane, destination)
