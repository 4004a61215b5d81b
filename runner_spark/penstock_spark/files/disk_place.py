"""A folder for commands that look at a checkpoint: on a disk of this machine, they need no Spark."""

from __future__ import annotations

import os

from penstock.error import refusal
from penstock_spark.files.disk_files import DiskFiles
from penstock_spark.files.file_store import disk_path
from penstock_spark.files.place import Place
from penstock_spark.session.session import SessionOptions, session_for


def open_place(location: str | os.PathLike[str]) -> Place:
    """Returns a folder; starts Spark only for one that is not on a disk of this machine."""
    if disk_path(os.fspath(location)) is not None:
        return DiskPlace(location)
    return Place(session_for(SessionOptions()), location)


class DiskPlace(Place):
    """A `Place` that needs no session.

    Args:
        location: A local path, with or without the scheme ``file``.

    Raises:
        ValueError: The path is not on a disk.
    """

    def __init__(self, location: str | os.PathLike[str]) -> None:
        path = disk_path(os.fspath(location))
        if path is None:
            what = f"{os.fspath(location)} is not on a disk of this machine"
            raise refusal(ValueError, what, hint="name a local path")
        self.location = f"file://{os.path.abspath(path)}"
        self._files = DiskFiles()

    def inside(self, name: str) -> DiskPlace:
        return DiskPlace(self._child(name))
