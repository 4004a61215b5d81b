"""Makes the folders for files that do not have their final names yet, and removes the folders of a dead run.

Each contains a file that names the process that writes. The next run that writes to the same place removes the folders
whose processes have ended. A run cannot know whether a process on another machine has ended: it removes such a folder
when nothing in it has changed for `ABANDONED_SECONDS`.
"""

from __future__ import annotations

import contextlib
import logging
import re

from penstock.utils.identifiers import identifier
from penstock_spark.files.store import FileStore
from penstock_spark.process.identity import Process, this_process

PREFIX = "_penstock-temp-"
"""The names of all such folders begin with it. Readers of the folder around ignore names that begin with _."""
MARK = "owner.json"
"""The file that names the process."""
ABANDONED_SECONDS = 30 * 24 * 3600.0
"""A folder in which nothing has changed for this long belongs to a run that has ended."""

BEGINNINGS = (PREFIX, "penstock-temp-")
"""The beginnings of the names, also in earlier versions."""
_OF_HADOOP = "_temporary"
"""The folder in which Spark and Hadoop write files before they get their names."""
_RANDOM = re.compile(r"_?penstock-temp-[0-9a-f]{32}\Z")
_MARK_BEGINS = b'{"format": '
_LOGGER = logging.getLogger(__name__)


def make_name() -> str:
    return f"{PREFIX}{identifier()}"


def name_of_claim(name: str, claim: int) -> str:
    """Returns the name of a folder of a stream, which is another one for each run.

    A run that has lost its claim to the stream may continue for a while, and must not touch what the next one writes.

    >>> name_of_claim("_penstock-temp-a-stream", 3), name_of_claim("_penstock-temp-a-stream", 0)
    ('_penstock-temp-a-stream-3', '_penstock-temp-a-stream')
    """
    return f"{name}-{claim}" if claim else name


def remove_of_earlier_claims(files: FileStore, folder: str, name: str, claim: int) -> None:
    """Deletes the folders that runs of a stream with earlier claims have left; what they still write is ignored."""
    for found in files.names(folder, name) if claim else ():
        number = found.removeprefix(name).removeprefix("-")
        if found == name or (number.isdecimal() and int(number) < claim):
            files.delete(f"{folder}/{found}")


def is_abandoned(name: str, mark: bytes | None, idle_seconds: float) -> bool:
    """True if a dead run has left a folder; `mark` is the content of its mark, None if it has no mark.

    >>> is_abandoned(make_name(), this_process().to_json(), 1e9), is_abandoned(make_name(), None, 1e9)
    (False, True)
    >>> half = this_process().to_json()[:40]
    >>> [is_abandoned("_penstock-temp-a-stream", mark, 1e9) for mark in (None, b"my own", b"", half)]
    [False, False, True, True]
    """
    owner = None if mark is None else Process.from_json(mark)
    has_ended = None if owner is None else owner.has_ended()
    if has_ended is None:
        # A process may have died while it wrote the mark. A folder without a mark is ours only if no other program
        # could have chosen its name.
        is_begun = mark is not None and _MARK_BEGINS.startswith(mark[: len(_MARK_BEGINS)])
        is_ours = owner is not None or is_begun or bool(_RANDOM.match(name))
        return is_ours and idle_seconds > ABANDONED_SECONDS
    return has_ended


def is_unfinished(path: str, pattern: str) -> bool:
    """True if a writer, which may have died, has not renamed a file yet.

    A pattern may name such a folder itself: a user who writes that wants these files.

    >>> [is_unfinished("/out/_temporary/0/a.txt", pattern) for pattern in ("/out/**", "/out/_temporary/*/*")]
    [True, False]
    """
    folders = set(path.split("/")[:-1]).difference(pattern.split("/"))
    return any(folder == _OF_HADOOP or folder.startswith(BEGINNINGS) for folder in folders)


def begin(files: FileStore, folder: str) -> None:
    """Makes a temporary folder, and deletes the files that an earlier attempt has left in it."""
    files.delete(folder)
    files.write(f"{folder}/{MARK}", this_process().to_json())


def end(files: FileStore, folder: str) -> None:
    """Deletes a temporary folder, unless another process has begun one of that name and still uses it."""
    mark = files.read(f"{folder}/{MARK}")
    if mark is None or Process.from_json(mark) in (None, this_process()):
        files.delete(folder)


def remove_abandoned(files: FileStore, folder: str) -> None:
    """Deletes the temporary folders in a folder that dead runs have left, and logs a warning for each."""
    names: list[str] = []
    # Without permission to read a folder, a run cannot remove what others left in it.
    with contextlib.suppress(OSError):
        names = files.names(folder, *BEGINNINGS)
    for name in names:
        path = f"{folder.rstrip('/')}/{name}" if folder else name
        if not files.is_folder(path):
            continue
        if is_abandoned(name, files.read(f"{path}/{MARK}"), files.idle_seconds(path)):
            files.delete(path)
            _LOGGER.warning("%s was removed: a run that has died had left it", path)
