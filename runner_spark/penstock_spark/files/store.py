"""The interface of a file store, and the names that Spark's readers skip."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import BinaryIO


class FileStore(ABC):
    """The files of a store, by their paths, as a run of the runner needs them."""

    renames = True
    """True if `replace` renames a file, and does not copy its content."""

    @abstractmethod
    def open(self, path: str, *, reads_ahead: bool = True) -> BinaryIO:
        """Opens a file for reading its stored bytes; OSError if that fails.

        Without `reads_ahead`, a store on a network fetches only the bytes of each read.
        """

    @abstractmethod
    def names(self, folder: str, *beginnings: str) -> list[str]:
        """Returns the sorted names in a folder that begin with one of the strings, if any are given; none if the
        folder does not exist.
        """

    @abstractmethod
    def names_below(self, folder: str, beginnings: Sequence[str]) -> dict[str, list[str]]:
        """Returns the sorted names of files by their folders, as paths below the given one.

        The names in such a path, and of the file, begin with the strings, in order.
        """

    @abstractmethod
    def is_folder(self, path: str) -> bool:
        """True if a folder has this path."""

    @abstractmethod
    def idle_seconds(self, folder: str) -> float:
        """Returns the time since anything in a folder has changed, as far as the store knows."""

    @abstractmethod
    def read(self, path: str) -> bytes | None:
        """Returns the bytes of a small file; None if it does not exist."""

    @abstractmethod
    def write(self, path: str, content: bytes) -> None:
        """Writes a small file, and makes the folders around it; others may see the file before it is whole."""

    @abstractmethod
    def make(self, folder: str) -> None:
        """Makes a folder, and those around it, unless it exists."""

    @abstractmethod
    def replace(self, source: str, target: str) -> None:
        """Commits a whole file under its final name, and replaces a file that has this name."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Deletes a file, if it exists."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Deletes a folder with its content, if it exists, as far as permissions allow."""


def is_hidden(name: str) -> bool:
    """True if Spark's readers skip a file or a folder with this name.

    >>> [is_hidden(name) for name in (".a", "_a", "_a=1", "a")]
    [True, True, False, False]
    """
    return name.startswith(".") or (name.startswith("_") and "=" not in name)
