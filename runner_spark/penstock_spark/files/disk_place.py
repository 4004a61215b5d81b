"""A folder for commands that look at a checkpoint: on a disk of this machine, they need no Spark."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from penstock.error import refusal
from penstock.utils.identifiers import identifier
from penstock_spark.files.disk_files import size_on_disk
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
        self._path = Path(os.path.abspath(path))
        self.location = f"file://{self._path}"

    def names(self) -> list[str]:
        try:
            return sorted(os.listdir(self._path))
        except (FileNotFoundError, ValueError):
            # No folder has a name with U+0000, which Python refuses by a ValueError; a damaged plan may name one.
            return []
        except NotADirectoryError:
            what = f"{self.location} is a file"
            raise refusal(ValueError, what, hint="name a folder, or a path that does not exist yet") from None

    def paths(self, pattern: str) -> list[str]:
        return sorted(str(each.relative_to(self._path)) for each in self._path.glob(pattern))

    def make(self) -> None:
        self._path.mkdir(parents=True, exist_ok=True)

    def read(self, name: str) -> bytes:
        return (self._path / name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        self.make()
        hidden = self._path / f".{name}.{identifier()}"
        hidden.write_bytes(content)
        hidden.rename(self._path / name)

    def replace(self, name: str, content: bytes) -> None:
        self.write(name, content)

    def rename(self, old: str, new: str) -> None:
        (self._path / old).rename(self._path / new)

    def claim(self, name: str, content: bytes) -> bool:
        try:
            with (self._path / name).open("xb") as file:
                file.write(content)
        except FileExistsError:
            return False
        return True

    def delete(self, name: str) -> None:
        path = self._path / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def size(self) -> tuple[int, int]:
        return size_on_disk(str(self._path))

    def inside(self, name: str) -> DiskPlace:
        return DiskPlace(self._path / name)
