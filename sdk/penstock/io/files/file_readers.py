"""Steps that read the files which elements name, with the reader of a format that the runner provides.

The SDK knows no file format but text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from penstock.construction.ptransform import PTransform
from penstock.error import RunnerError
from penstock.functions.dofn import DoFn
from penstock.graph import Source
from penstock.io.files.naming_errors import add_file_name
from penstock.io.files.paths import files_of
from penstock.io.filesystem import CompressionTypes, FileMetadata
from penstock.io.filesystems import FileSystems
from penstock.transforms.elements.pardo import ParDo
from penstock.transforms.grouping.reshuffling import Reshuffle

Reader = Callable[..., Iterator[Any]]
"""Turns the stored bytes of an open file, its name and the options of a `ReadFiles` into the elements."""

Find = Callable[[type[Source]], Reader | None]

_providers: list[Find] = []


def register_readers(find: Find) -> Find:
    """Called by the runner with what finds its reader for the files of a source, a function that workers can import."""
    _providers[:] = [find]
    return find


def _reader_of(source: type[Source]) -> Reader | None:
    return _providers[0](source) if _providers else None


class FindFiles(DoFn):
    """The files that an element names."""

    def process(self, element: str | FileMetadata) -> list[FileMetadata]:
        return files_of(element)


class ReadFiles(DoFn):
    """Reads each file that an element names.

    Args:
        source: The class of the sources that read such files.
        with_filename: Whether the elements are pairs of the file's name and what the reader yields.
        options: Further arguments of the reader.
    """

    def __init__(self, source: type[Source], with_filename: bool, **options: Any) -> None:
        self.source = source
        self._with_filename = with_filename
        self._options = options
        self._reader: Reader | None = None

    def __getstate__(self) -> dict[str, Any]:
        # The pickled DoFn takes the runner's reader to the workers.
        return {**self.__dict__, "_reader": self._reader or _reader_of(self.source)}

    def process(self, element: str | FileMetadata) -> Iterator[Any]:
        read = self._reader or _reader_of(self.source)
        if read is None:
            what = f"the runner cannot read the files of {self.source.__name__}"
            raise RunnerError(what, hint="run the pipeline with SparkRunner")
        for found in files_of(element):
            with (
                add_file_name(found.path),
                FileSystems.open(found.path, compression_type=CompressionTypes.UNCOMPRESSED) as file,
            ):
                for value in read(file, found.path, **self._options):
                    yield (found.path, value) if self._with_filename else value


class ReadAllFiles(PTransform[Any, Any]):
    """Reads the files that the elements name, each in the task that has its element.

    Args:
        label: The name of the step that reads.
        read: The DoFn of that step.
    """

    def __init__(self, label: str, read: ReadFiles) -> None:
        super().__init__()
        self._read = label >> ParDo(read)

    def expand(self, pcoll: Any) -> object:
        return pcoll | "Spread" >> Reshuffle() | self._read
