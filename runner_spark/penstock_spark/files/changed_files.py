"""Warns of files that change after a stream has read them, since it reads each file once, and of empty files, which
Spark leaves out.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from penstock.error import three_parts

_LOGGER = logging.getLogger(__name__)
_FILES_MAX = 100
"""The number of files, the last ones that were read, that are checked: a file that grows is usually one that another
program still writes.
"""

_HINT = "write a file elsewhere and rename it when it is complete; write more data to a new file"
_EMPTY_HINT = "if it should have records, write it again under another name"

_State = tuple[int, int]  # The size, and the time of the last change.


class ChangedFiles:
    """The files on this machine's disks that were read last, with the states in which they were read."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[_State, str]] = {}

    def read(self, sizes: Mapping[str, int], where: str) -> None:
        """Records files that a step has read, with the sizes up to which it has read them."""
        for path, size in list(sizes.items())[-_FILES_MAX:]:
            if path in self._read or (state := _state_of(path)) is None:
                continue
            if state[0] > size:
                _warn(path, where)
            else:
                self._read[path] = (state, where)
        for path in list(self._read)[:-_FILES_MAX]:
            del self._read[path]

    def look(self) -> None:
        """Warns once of each file that has changed since; a file that was deleted is no longer checked."""
        for path, (state, where) in list(self._read.items()):
            now = _state_of(path)
            if now != state:
                del self._read[path]
                if now is not None:
                    _warn(path, where)


def warn_of_empty_files(sizes: Mapping[str, int], where: str) -> None:
    """Warns of empty files: Spark leaves them out, and a writer that was killed leaves some."""
    empty = sorted(path for path, size in sizes.items() if size == 0)
    if empty:
        more = f" (and {len(empty) - 1} more)" if empty[1:] else ""
        what = f"{empty[0]}{more} has no content (0 bytes), and is read as a file without records"
        _LOGGER.warning(three_parts(what, where=where, hint=_EMPTY_HINT))


def _state_of(path: str) -> _State | None:
    """Returns the present state of a file; None if it has disappeared."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def _warn(path: str, where: str) -> None:
    what = f"{path} changed after the stream read it, and is not read again"
    _LOGGER.warning(three_parts(what, where=where, hint=_HINT))
