"""File operations by path, on any file system."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, BinaryIO

from penstock.error import refusal, three_parts
from penstock.io.files.object_stores import ObjectStore, check_store_url, store_of
from penstock.io.filesystem import BeamIOError, CompressionTypes, FileSystem, MatchResult
from penstock.metrics.lineage import Lineage

_SCHEME = re.compile(r"([a-zA-Z][-a-zA-Z0-9+.]*)://")


class FileSystems:
    """Beam's ``FileSystems``: each function selects the file system by the path's scheme.

    Local paths always work. The schemes of object stores (``s3``, ``gs``, ``abfs`` and their like) need the extra
    ``s3``, ``gcs`` or ``azure`` of penstock; another scheme needs a `FileSystem` subclass with it. Transforms that
    Spark reads and writes, such as ``ReadFromText``, use Hadoop's file systems instead where Hadoop has one.

    >>> FileSystems.get_scheme("hdfs://host/logs"), FileSystems.get_scheme("/logs")
    ('hdfs', None)
    """

    _pipeline_options: Any = None

    @classmethod
    def set_options(cls, pipeline_options: object) -> None:
        """Sets the pipeline options for new file systems."""
        cls._pipeline_options = pipeline_options

    @staticmethod
    def get_scheme(path: str) -> str | None:
        """Returns the part before ``://``, or None."""
        found = _SCHEME.match(path.strip())
        return found.group(1) if found else None

    @staticmethod
    def get_filesystem(path: str) -> FileSystem:
        """Returns the file system of a path; a ValueError if its scheme is unknown."""
        if not isinstance(path, str):
            raise BeamIOError(
                three_parts(
                    f"Unable to get the Filesystem of a path of type {type(path).__name__}",
                    hint="pass a string",
                ),
                {path: TypeError("a path is a string")},
            )
        scheme = FileSystems.get_scheme(path)
        for kind in FileSystem.get_all_subclasses():
            if kind.scheme() == scheme:
                return kind(FileSystems._pipeline_options)
        if store_of(path) is not None:
            check_store_url(path)
            return ObjectStore(FileSystems._pipeline_options)
        hint = f"define a subclass of penstock.io.filesystem.FileSystem whose scheme() is {scheme!r}"
        raise refusal(ValueError, f"Unable to get filesystem from specified path: {path}", hint=hint)

    @staticmethod
    def report_source_lineage(path: str) -> None:
        """Records a file, or a pattern of files, as an input of the current step (Beam's name)."""
        _report(path, Lineage.sources())

    @staticmethod
    def report_sink_lineage(path: str) -> None:
        """Records a file, or a pattern of files, as an output of the current step (Beam's name)."""
        _report(path, Lineage.sinks())

    @staticmethod
    def join(basepath: str, *paths: str) -> str:
        """Returns the parts as one path."""
        return FileSystems.get_filesystem(basepath).join(basepath, *paths)

    @staticmethod
    def split(path: str) -> tuple[str, str]:
        """Returns the folder, and the last part."""
        return FileSystems.get_filesystem(path).split(path)

    @staticmethod
    def mkdirs(path: str) -> None:
        """Makes a folder and its parents; an OSError if it exists."""
        FileSystems.get_filesystem(path).mkdirs(path)

    @staticmethod
    def match(patterns: Sequence[str], limits: Sequence[int | None] | None = None) -> list[MatchResult]:
        """Returns the files of each pattern; `penstock.io.filesystem.translate_pattern` explains wildcards."""
        return FileSystems.get_filesystem(patterns[0]).match(patterns, limits) if patterns else []

    @staticmethod
    def create(
        path: str, mime_type: str = "application/octet-stream", compression_type: str = CompressionTypes.AUTO
    ) -> BinaryIO:
        """Opens a new file for writing bytes; close it afterwards."""
        return FileSystems.get_filesystem(path).create(path, mime_type, compression_type)

    @staticmethod
    def open(
        path: str, mime_type: str = "application/octet-stream", compression_type: str = CompressionTypes.AUTO
    ) -> BinaryIO:
        """Opens a file for reading bytes; close it afterwards."""
        return FileSystems.get_filesystem(path).open(path, mime_type, compression_type)

    @staticmethod
    def copy(source_file_names: Sequence[str], destination_file_names: Sequence[str]) -> None:
        """Copies each source to its destination; a BeamIOError names the failures."""
        if source_file_names:
            FileSystems.get_filesystem(source_file_names[0]).copy(source_file_names, destination_file_names)

    @staticmethod
    def rename(source_file_names: Sequence[str], destination_file_names: Sequence[str]) -> None:
        """Moves each source to its destination; a BeamIOError names the failures."""
        if source_file_names:
            FileSystems.get_filesystem(source_file_names[0]).rename(source_file_names, destination_file_names)

    @staticmethod
    def exists(path: str) -> bool:
        """True if a file or folder has this path."""
        return FileSystems.get_filesystem(path).exists(path)

    @staticmethod
    def last_updated(path: str) -> float:
        """Returns when the file was last changed, in seconds since 1970; a BeamIOError if it does not exist."""
        return FileSystems.get_filesystem(path).last_updated(path)

    @staticmethod
    def checksum(path: str) -> str:
        """Returns a string that changes with the content; a BeamIOError if the file does not exist."""
        return FileSystems.get_filesystem(path).checksum(path)

    @staticmethod
    def delete(paths: Sequence[str]) -> None:
        """Deletes the files and folders that the patterns match; a BeamIOError names the failures."""
        if isinstance(paths, str):
            raise BeamIOError(f"Delete passed string argument instead of list: {paths}")
        if paths:
            FileSystems.get_filesystem(paths[0]).delete(paths)

    @staticmethod
    def get_chunk_size(path: str) -> int:
        """Returns the number of files in one batch operation."""
        return FileSystems.get_filesystem(path).CHUNK_SIZE


_SYSTEMS = {"gs": "gcs", "s3a": "s3", "s3n": "s3"}
"""Beam's names for the systems of some schemes; the others have the name of the scheme."""


def _report(path: str, lineage: Lineage) -> None:
    scheme = FileSystems.get_scheme(path)
    if scheme is None or scheme == "file":
        lineage.add("filesystem", "localhost", path.removeprefix("file://"), last_segment_sep="/")
        return
    host, _, rest = path.partition("://")[2].partition("/")
    lineage.add(_SYSTEMS.get(scheme, scheme), *filter(None, (host, rest)), last_segment_sep="/")
