"""Checks of the paths that file transforms are given, made when the pipeline is written."""

from __future__ import annotations

import os
from typing import Any

from penstock.error import three_parts
from penstock.io.filesystem import FileMetadata
from penstock.io.filesystems import FileSystems
from penstock.options.value_provider import ValueProvider

Path = str | ValueProvider


def check_path(path: Any, argument: str) -> None:
    """Raises TypeError unless the path is a string or a ValueProvider, as Beam's file transforms do.

    >>> check_path("/logs/*.txt", "file_pattern")
    """
    if not isinstance(path, str | ValueProvider):
        raise TypeError(
            three_parts(
                f"{argument} must be of type string or ValueProvider; got {path!r} instead",
                hint=f"write {argument}={str(path)!r}" if path is not None else f"give {argument}",
            )
        )


def known_path(path: Path) -> str | None:
    """The path as text, or None while a ValueProvider has no value yet.

    >>> known_path("/logs/*.txt")
    '/logs/*.txt'
    """
    if isinstance(path, ValueProvider):
        return str(path.get()) if path.is_accessible() else None
    return path


def no_files(pattern: str) -> OSError:
    """The error for a pattern that matches nothing (Beam's text first).

    >>> print(no_files("/logs/*.txt"))
    No files found based on the file pattern /logs/*.txt
      hint: ...
    """
    return OSError(
        three_parts(
            f"No files found based on the file pattern {pattern}",
            hint="check the path; a pattern may also match nothing if you pass validate=False",
        )
    )


def require_match(path: Path) -> None:
    """Raises OSError if a local pattern matches no file, as Beam does while the pipeline is written.

    A path with a scheme is on a file system that only Spark reaches; the runner checks it before anything
    starts.
    """
    pattern = known_path(path)
    if pattern is None or FileSystems.get_scheme(pattern) is not None:
        return
    if not FileSystems.match([pattern], [1])[0].metadata_list:
        raise no_files(pattern)


def with_folder(pattern: Any) -> Any:
    """A bare file name as a path in the current folder, as Beam writes it.

    >>> with_folder("a.txt"), with_folder("/logs/a.txt")
    ('./a.txt', '/logs/a.txt')
    """
    if isinstance(pattern, str) and pattern and not os.path.dirname(pattern):
        return os.path.join(".", pattern)
    return pattern


def files_of(element: str | FileMetadata) -> list[FileMetadata]:
    """The files that an element of a collection of patterns stands for."""
    if isinstance(element, FileMetadata):
        return [element]
    return FileSystems.match([element])[0].metadata_list
