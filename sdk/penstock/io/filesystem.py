"""The interface of file systems, the records that they return, and the local file system."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from penstock.absent import hint_at_absent_names
from penstock.error import refusal
from penstock.io.files.compression import CompressionTypes, open_compressed

__all__ = [
    "BeamIOError",
    "CompressionTypes",
    "FileMetadata",
    "FileSystem",
    "LocalFileSystem",
    "MatchResult",
    "translate_pattern",
]


class BeamIOError(IOError):
    """A file operation failed (Beam's name).

    Attributes:
        exception_details: The failure of each file, by path (or by source and destination); None if unknown.

    >>> str(BeamIOError("Delete operation failed"))
    'Delete operation failed'
    """

    def __init__(self, msg: str, exception_details: dict[Any, Exception] | None = None) -> None:
        details = "" if exception_details is None else f" with exceptions {exception_details}"
        super().__init__(f"{msg}{details}")
        self.exception_details = exception_details


@dataclass(frozen=True)
class FileMetadata:
    """A file that was found (Beam's ``FileMetadata``).

    Attributes:
        path: The path, with the scheme that the pattern had.
        size_in_bytes: The stored size, before any decompression.
        last_updated_in_seconds: Seconds since 1970; 0.0 if the file system does not know it.
    """

    path: str
    size_in_bytes: int
    last_updated_in_seconds: float = 0.0


@dataclass(frozen=True)
class MatchResult:
    """The files that one pattern matches (Beam's ``MatchResult``)."""

    pattern: str
    metadata_list: list[FileMetadata]


def translate_pattern(pattern: str) -> str:
    r"""Returns the regular expression of a path pattern, with Beam's meaning of each wildcard.

    ``*`` matches within one folder, ``**`` across folders, ``?`` any one character, ``[ab]`` and ``[!ab]`` a set.

    >>> bool(re.match(translate_pattern("/logs/**.txt"), "/logs/2024/may.txt"))
    True
    >>> bool(re.match(translate_pattern("/logs/*.txt"), "/logs/2024/may.txt"))
    False
    """
    parts = re.findall(r"\*\*|\*|\?|\[[!]?\]?[^\]]*\]|.", pattern, re.DOTALL)
    return "(?ms)" + "".join(map(_translate_part, parts)) + r"\Z"


def _translate_part(part: str) -> str:
    match part:
        case "**":
            return ".*"
        case "*":
            return r"[^/\\]*"
        case "?":
            return "."
        case _ if len(part) == 1:
            return re.escape(part)
        case _:
            inside = re.sub(r"([\\\[&~|])", r"\\\1", part[1:-1])
            if inside.startswith("!"):
                return f"[^{inside[1:]}]"
            return f"[{chr(92) if inside.startswith('^') else ''}{inside}]"


class FileSystem:
    """The file operations of one scheme (Beam's ``FileSystem``).

    `penstock.io.filesystems.FileSystems` uses every subclass that is defined or imported, by its `scheme`.
    """

    CHUNK_SIZE = 1

    def __init__(self, pipeline_options: object = None) -> None:
        self._pipeline_options = pipeline_options

    @classmethod
    def scheme(cls) -> str | None:
        """Returns the part of a path before ``://``; None for the local file system."""
        raise NotImplementedError

    @classmethod
    def get_all_subclasses(cls) -> list[type[FileSystem]]:
        """Returns every subclass that is defined, nearest first."""
        direct = cls.__subclasses__()
        return direct + [deeper for subclass in direct for deeper in subclass.get_all_subclasses()]

    def join(self, basepath: str, *paths: str) -> str:
        """Returns the parts as one path."""
        raise NotImplementedError

    def split(self, path: str) -> tuple[str, str]:
        """Returns the folder, and the last part."""
        raise NotImplementedError

    def mkdirs(self, path: str) -> None:
        """Makes a folder and its parents; an OSError if it exists."""
        raise NotImplementedError

    def has_dirs(self) -> bool:
        """True if the file system has folders, and not only names with slashes."""
        return True

    def _list(self, dir_or_prefix: str) -> Iterable[FileMetadata]:
        raise NotImplementedError

    @staticmethod
    def translate_pattern(pattern: str) -> str:
        """Returns the regular expression of a path pattern; see the function `translate_pattern`."""
        return translate_pattern(pattern)

    def match(self, patterns: Sequence[str], limits: Sequence[int | None] | None = None) -> list[MatchResult]:
        """Returns the files that each pattern matches, in the order of their paths; at most `limits` for each.

        Wildcards are explained at `translate_pattern`; a pattern that ends in a slash means the folder's files. A
        folder that cannot be listed raises a BeamIOError.
        """
        bounds = limits or [None] * len(patterns)
        return [self._match_one(pattern, bound) for pattern, bound in zip(patterns, bounds, strict=True)]

    def _match_one(self, pattern: str, limit: int | None) -> MatchResult:
        pattern += "*" if pattern.endswith(("/", "\\")) else ""
        fixed = re.match(r"[^\[*?]*", pattern)
        prefix = fixed.group(0) if fixed else ""
        if prefix == pattern:
            found = [self.metadata(pattern)] if self.exists(pattern) else []
        else:
            matches = re.compile(translate_pattern(pattern)).match
            listed = self._candidates(self._folder_of(prefix), pattern)
            found = sorted((each for each in listed if matches(each.path)), key=lambda each: each.path)
        return MatchResult(pattern, found if limit is None else found[:limit])

    def _folder_of(self, prefix: str) -> str:
        return prefix.rpartition("/")[0] if self.has_dirs() else prefix

    def _candidates(self, folder: str, pattern: str) -> Iterable[FileMetadata]:
        """Returns the files below a folder, or fewer, that include all that a pattern matches."""
        return self._list(folder)

    def create(
        self,
        path: str,
        mime_type: str = "application/octet-stream",
        compression_type: str = CompressionTypes.AUTO,
    ) -> BinaryIO:
        """Opens a new file for writing bytes."""
        raise NotImplementedError

    def open(
        self,
        path: str,
        mime_type: str = "application/octet-stream",
        compression_type: str = CompressionTypes.AUTO,
    ) -> BinaryIO:
        """Opens a file for reading bytes."""
        raise NotImplementedError

    def copy(self, source_file_names: Sequence[str], destination_file_names: Sequence[str]) -> None:
        """Copies each source, a file or a whole folder, to its destination."""
        raise NotImplementedError

    def rename(self, source_file_names: Sequence[str], destination_file_names: Sequence[str]) -> None:
        """Moves each source to its destination."""
        raise NotImplementedError

    def exists(self, path: str) -> bool:
        """True if a file or folder has this path."""
        raise NotImplementedError

    def size(self, path: str) -> int:
        """Returns the size in bytes."""
        return self.metadata(path).size_in_bytes

    def last_updated(self, path: str) -> float:
        """Returns the time of the file's last change, in seconds since 1970."""
        return self.metadata(path).last_updated_in_seconds

    def checksum(self, path: str) -> str:
        """Returns a string that changes with the content, as far as the file system knows; by default the size."""
        return str(self.size(path))

    def metadata(self, path: str) -> FileMetadata:
        """Returns the known facts about a file."""
        raise NotImplementedError

    def delete(self, paths: Sequence[str]) -> None:
        """Deletes the files and folders that the patterns match."""
        raise NotImplementedError


def _unless_gone(error: BaseException | None) -> None:
    """Raises the error of a look at a file or a folder, unless it has been deleted after the listing.

    A path that cannot be read may match a pattern, and must not be left out silently.
    """
    if isinstance(error, OSError) and error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
        what = f"{error.filename} cannot be inspected: {error.strerror}"
        raise refusal(BeamIOError, what, hint="allow it, or give a pattern without it") from error


class LocalFileSystem(FileSystem):
    """The files of this machine (Beam's ``LocalFileSystem``): paths without a scheme.

    >>> LocalFileSystem().join("/logs", "may.txt")
    '/logs/may.txt'
    """

    @classmethod
    def scheme(cls) -> str | None:
        return None

    def join(self, basepath: str, *paths: str) -> str:
        return os.path.join(basepath, *paths)

    def split(self, path: str) -> tuple[str, str]:
        return os.path.split(os.path.abspath(path))

    def mkdirs(self, path: str) -> None:
        os.makedirs(path)

    def _folder_of(self, prefix: str) -> str:
        return os.path.dirname(prefix)

    def _candidates(self, folder: str, pattern: str) -> Iterator[FileMetadata]:
        if re.search(r"\*\*|[\[?]", pattern):
            return self._list(folder)
        # A single star stays within one folder, and so no file in a subfolder can match.
        return self._list(folder, pattern[len(folder) :].strip(os.sep).count(os.sep))

    def _list(self, dir_or_prefix: str, depth: int | None = None) -> Iterator[FileMetadata]:
        top = dir_or_prefix or "."
        for folder, folders, names in os.walk(top, onerror=_unless_gone):
            below = folder[len(top) :].strip(os.sep)
            if depth is not None and (below.count(os.sep) + 1 if below else 0) >= depth:
                folders.clear()
            for name in names:
                path = (
                    os.path.join(folder, name)
                    if dir_or_prefix
                    else os.path.normpath(os.path.join(folder, name))
                )
                try:
                    yield self.metadata(path)
                except BeamIOError as error:
                    _unless_gone(error.__cause__)

    def create(
        self,
        path: str,
        mime_type: str = "application/octet-stream",
        compression_type: str = CompressionTypes.AUTO,
    ) -> BinaryIO:
        if os.path.dirname(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        return open_compressed(path, "wb", compression_type)

    def open(
        self,
        path: str,
        mime_type: str = "application/octet-stream",
        compression_type: str = CompressionTypes.AUTO,
    ) -> BinaryIO:
        return open_compressed(path, "rb", compression_type)

    def copy(self, source_file_names: Sequence[str], destination_file_names: Sequence[str]) -> None:
        for_each("Copy", _copy, source_file_names, destination_file_names)

    def rename(self, source_file_names: Sequence[str], destination_file_names: Sequence[str]) -> None:
        for_each("Rename", os.rename, source_file_names, destination_file_names)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def metadata(self, path: str) -> FileMetadata:
        try:
            status = os.stat(path)
        except OSError as error:
            raise BeamIOError(f"Path does not exist: {path}") from error
        return FileMetadata(path, status.st_size, status.st_mtime)

    def delete(self, paths: Sequence[str]) -> None:
        failures: dict[Any, Exception] = {}
        for result in self.match(paths):
            if not result.metadata_list:
                failures[result.pattern] = OSError(f"No files found to delete under: {result.pattern}")
            for found in result.metadata_list:
                try:
                    shutil.rmtree(found.path) if os.path.isdir(found.path) else os.remove(found.path)
                except OSError as error:
                    failures[found.path] = error
        if failures:
            raise BeamIOError("Delete operation failed", failures)


def _copy(source: str, destination: str) -> None:
    if os.path.isdir(destination):
        shutil.rmtree(destination)
    if os.path.isdir(source):
        shutil.copytree(source, destination)
    else:
        shutil.copy2(source, destination)


def for_each(
    operation: str, act: Callable[[str, str], object], sources: Sequence[str], destinations: Sequence[str]
) -> None:
    """Does something with all pairs of files; then raises a BeamIOError that names all failures, if any."""
    failures: dict[Any, Exception] = {}
    for source, destination in zip(sources, destinations, strict=True):
        try:
            act(source, destination)
        except OSError as error:
            failures[source, destination] = error
    if failures:
        raise BeamIOError(f"{operation} operation failed", failures)


hint_at_absent_names(globals())
