"""The folders that files are written to before they get their names, and which of them a dead run has left behind.

Each has a mark in it that names the process which writes. The next run that writes to the same place removes those
whose process has ended. Whether one on another machine has ended is not known: its folder is removed when nothing in it
has changed for `ABANDONED_SECONDS`.
"""

from __future__ import annotations

import logging
import os
import re
import shutil

from penstock.base import clock
from penstock.base.identifiers import identifier
from penstock_spark.process.identity import Process, this_process

PREFIX = "_penstock-temp-"
"""How the names of all such folders begin. Readers of the folder around leave out what begins with _."""
MARK = "owner.json"
"""The file that names the process."""
ABANDONED_SECONDS = 30 * 24 * 3600.0
"""So long nothing changes in a folder of a run that is not at work any more."""

NAMES = re.compile(r"_?penstock-temp-")
"""What the names begin with, also those of earlier versions."""
_RANDOM = re.compile(r"_?penstock-temp-[0-9a-f]{32}\Z")
_LOGGER = logging.getLogger(__name__)


def new_name() -> str:
    """A name that nobody else has.

    >>> new_name().startswith(PREFIX)
    True
    """
    return f"{PREFIX}{identifier()}"


def is_abandoned(name: str, mark: bytes | None, idle_seconds: float) -> bool:
    """Whether a folder was left behind.

    Args:
        name: Its name.
        mark: What its mark says; None if there is none.
        idle_seconds: For how long nothing in it has changed.

    >>> is_abandoned(new_name(), this_process().to_json(), 1e9), is_abandoned(new_name(), None, 1e9)
    (False, True)
    >>> is_abandoned("_penstock-temp-notes", None, 1e9)
    False
    """
    owner = None if mark is None else Process.from_json(mark)
    has_ended = None if owner is None else owner.has_ended()
    if has_ended is None:
        # A folder without a mark is ours only if nobody else could have given it its name.
        is_ours = owner is not None or bool(_RANDOM.match(name))
        return is_ours and idle_seconds > ABANDONED_SECONDS
    return has_ended


def make_local(path: str) -> None:
    """Makes a temporary folder on a local disk, without what an earlier try has left in it."""
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    with open(os.path.join(path, MARK), "wb") as file:
        file.write(this_process().to_json())


def remove_abandoned_local(folder: str) -> None:
    """Removes the temporary folders that dead runs have left in a folder on a local disk."""
    try:
        names = [name for name in os.listdir(folder or ".") if NAMES.match(name)]
    except OSError:
        return  # The folder is not there yet, or may not be read.
    for name in names:
        path = os.path.join(folder or ".", name)
        if os.path.isdir(path) and is_abandoned(name, _mark(path), _idle_seconds(path)):
            shutil.rmtree(path, ignore_errors=True)
            report_removed(path)


def report_removed(path: str) -> None:
    """Says that a folder was removed."""
    _LOGGER.warning("%s was removed: a run that has died had left it", path)


def _mark(path: str) -> bytes | None:
    try:
        with open(os.path.join(path, MARK), "rb") as file:
            return file.read()
    except OSError:
        return None


def _idle_seconds(path: str) -> float:
    try:
        changes = [each.stat().st_mtime for each in os.scandir(path)]
        return clock.seconds() - max([os.stat(path).st_mtime, *changes])
    except OSError:
        return 0.0  # It goes away as we look.
