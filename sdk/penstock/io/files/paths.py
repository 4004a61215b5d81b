"""Checks of the paths of file transforms, made when the pipeline is built."""

from __future__ import annotations

import glob
import os
import re
import stat
from typing import Any

from penstock.error import refusal
from penstock.io.filesystem import FileMetadata
from penstock.io.filesystems import FileSystems
from penstock.options.value_provider import ValueProvider

Path = str | ValueProvider
_WILDCARD = re.compile(r"[*?\[]")


_ONE_SLASH = re.compile(r"(file|hdfs|s3a?|gs|abfss?|wasbs?):/(?!/)")
"""Matches URLs as Hadoop and Java may write them, which Python and Beam take for local paths."""


def check_path(path: object, argument: str) -> None:
    """Refuses a path that is neither a string nor a ValueProvider, as Beam's file transforms do, and an empty one."""
    if not isinstance(path, str | ValueProvider):
        what = f"{argument} must be of type string or ValueProvider; got {path!r} instead"
        hint = f"write {argument}={str(path)!r}" if path is not None else f"pass {argument}"
        if isinstance(path, list | tuple):
            hint = "pass a pattern that all of them match, or read each in a separate step and Flatten the results"
        raise refusal(TypeError, what, hint=hint)
    if path == "":
        raise refusal(ValueError, f"{argument} is empty", hint="pass a path, such as 'data/scores.txt'")
    if isinstance(path, str) and (scheme := _ONE_SLASH.match(path)):
        what = f"{argument} {path!r} has one slash after {scheme.group()[:-1]}, and would be a folder of that name"
        rest = path[scheme.end() :]
        hint = (
            f"write 'file:///{rest}'"
            if scheme.group(1) == "file"
            else f"write '{scheme.group()}/host/{rest}'"
        )
        raise refusal(ValueError, what, hint=hint)


def known_path(path: Path) -> str | None:
    """Returns the path as a string, or None while a ValueProvider has no value."""
    if isinstance(path, ValueProvider):
        return str(path.get()) if path.is_accessible() else None
    return path


def require_files(path: Path, where: str, hint: str, *, is_stream: bool = False) -> None:
    """Refuses missing local files, as Beam does while the pipeline is built.

    A stream may begin before its first file: its folder must exist. A path with a scheme is on a file system that
    only Spark reaches; the runner checks it before a run starts.
    """
    pattern = known_path(path)
    if pattern is None or FileSystems.get_scheme(pattern) is not None:
        return
    if not is_stream and not pattern.endswith("/"):
        check_is_no_folder(pattern, where)
    missing = _missing_of_stream(pattern) if is_stream else _missing(pattern)
    if missing is not None:
        raise refusal(FileNotFoundError, missing, where=where, hint=hint)


def check_is_no_folder(path: str, where: str | None) -> None:
    """Refuses a folder on a disk where a file is read."""
    if os.path.isdir(path):
        what = f"{path} is a folder, not a file"
        raise refusal(IsADirectoryError, what, where=where, hint=f"write {path.rstrip('/')}/*")


def _missing(pattern: str) -> str | None:
    if FileSystems.match([pattern], [1])[0].metadata_list:
        return None
    return f"No files found based on the file pattern {pattern}"


def _missing_of_stream(pattern: str) -> str | None:
    fixed = _WILDCARD.split(pattern, maxsplit=1)[0]
    watched = pattern if fixed == pattern else os.path.dirname(fixed) or "."
    return (
        None if os.path.exists(watched) else f"the stream {pattern} watches {watched}, which does not exist"
    )


def find_missing_of_spark(path: str, *, is_stream: bool = False) -> str | None:
    """Says, as a clause, why Spark's own reader would find nothing at a path of this disk; None if it may find files.

    A stream with wildcards waits for its folder.

    >>> find_missing_of_spark("/nowhere/goals"), find_missing_of_spark("/nowhere/*.csv", is_stream=True)
    ('/nowhere/goals does not exist', None)
    >>> find_missing_of_spark("/nowhere/*.csv"), find_missing_of_spark("/nowhere/{a,b}"), find_missing_of_spark("s3://a/b")
    ('no file matches /nowhere/*.csv', None, None)
    """
    if FileSystems.get_scheme(path) is not None or os.path.exists(path):
        return None
    if frozenset("*?[{").isdisjoint(path):
        return f"{path} does not exist"
    is_known = not is_stream and frozenset("[]{}\\").isdisjoint(path)
    return f"no file matches {path}" if is_known and not glob.glob(path) else None


def add_current_folder(pattern: object) -> Any:
    """Returns a bare file name as a path in the current folder, as Beam writes it.

    >>> add_current_folder("a.txt"), add_current_folder("/logs/a.txt")
    ('./a.txt', '/logs/a.txt')
    """
    if isinstance(pattern, str) and pattern and not os.path.dirname(pattern):
        return os.path.join(".", pattern)
    return pattern


def files_of(element: str | FileMetadata) -> list[FileMetadata]:
    """Returns the files of a pattern or a record, which the function reports as inputs of the current step."""
    found = [element] if isinstance(element, FileMetadata) else FileSystems.match([element])[0].metadata_list
    for file in found:
        check_is_file(file.path, "")
        FileSystems.report_source_lineage(file.path)
    return found


def check_is_file(path: str, where: str | None) -> None:
    """Refuses a pipe, a socket or a device on a disk: its reader may wait forever."""
    if FileSystems.get_scheme(path) is not None:
        return
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return  # The code that opens it has a better error.
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        what = f"{path} is a pipe, a socket or a device, not a file"
        raise refusal(
            OSError, what, where=where, hint="leave it out of the pattern, or move it to another folder"
        )
