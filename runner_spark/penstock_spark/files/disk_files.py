"""The file store of the disks of this machine; the driver, commands and tasks use it."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, TypeVar, cast

from penstock.utils import clock
from penstock_spark.files.store import FileStore, is_hidden

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_File = TypeVar("_File")

_WILDCARD = re.compile(r"(?<!\\)[*?\[]")


class DiskFiles(FileStore):
    """The disks of this machine, by absolute paths with or without the scheme ``file``."""

    is_local = True

    def wrap_opener(self, open_file: Callable[[str], _File]) -> Callable[[str], _File]:
        """Returns the function with which tasks open a file for writing, from one that opens a file on a disk."""
        return open_file

    def exists(self, path: str) -> bool:
        return os.path.exists(without_scheme(path))

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(without_scheme(path))

    def names(self, folder: str, *beginnings: str) -> list[str]:
        names = self.names_in(folder) or []
        return [name for name in names if name.startswith(beginnings or "")]

    def names_in(self, folder: str) -> list[str] | None:
        """Returns the sorted names in a folder, an empty list if it does not exist; None if it is a file."""
        try:
            return sorted(os.listdir(without_scheme(folder)))
        except (FileNotFoundError, ValueError):
            # No folder has a name with U+0000, which Python refuses by a ValueError; a damaged plan may name one.
            return []
        except NotADirectoryError:
            return None if os.path.exists(without_scheme(folder)) else []

    def names_below(self, folder: str, beginnings: Sequence[str]) -> dict[str, list[str]]:
        plain, (*levels, last) = without_scheme(folder), beginnings
        folders = [""]
        for beginning in levels:
            inner = [
                (outer, name)
                for outer in folders
                for name in self.names(os.path.join(plain, outer), beginning)
            ]
            folders = [os.path.join(outer, name) for outer, name in inner]
        found = {below: self.names(os.path.join(plain, below), last) for below in folders}
        return {below: names for below, names in found.items() if names}

    def matching(self, pattern: str) -> list[str]:
        """Returns the paths of the files whose whole paths match a glob pattern of Hadoop."""
        plain = without_scheme(pattern)
        scheme = pattern[: len(pattern) - len(plain)]
        found = ["/"]
        for level in plain.strip("/").split("/"):
            found = [path for folder in found for path in _inside(folder, level)]
        return [f"{scheme}{path}" for path in found if os.path.isfile(path)]

    def all_below(self, folder: str) -> Iterator[str]:
        plain = without_scheme(folder)
        scheme = folder[: len(folder) - len(plain)]
        for outer, _, names in os.walk(plain):
            yield from (f"{scheme}{os.path.join(outer, name)}" for name in names)

    def below(self, folder: str, inside: str = "") -> list[tuple[str, str, int]]:
        """Returns the files below a folder that are not hidden, each as its folder, relative to the given one, its
        name, and its size.
        """
        found: list[tuple[str, str, int]] = []
        for each in os.scandir(without_scheme(folder)):
            if is_hidden(each.name):
                continue
            if each.is_file():
                found.append((inside, each.name, each.stat().st_size))
            else:
                found += self.below(f"{folder}/{each.name}", f"{inside}/{each.name}".lstrip("/"))
        return sorted(found)

    def size_below(self, folder: str) -> tuple[int, int]:
        """Returns the bytes of all files below a folder, and their number; zeros if it does not exist."""
        total = count = 0
        waiting = [without_scheme(folder)]
        while waiting:
            # Files vanish meanwhile.
            with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
                for each in entries:
                    with contextlib.suppress(OSError):
                        if each.is_dir(follow_symlinks=False):
                            waiting.append(each.path)
                        else:
                            total += each.stat(follow_symlinks=False).st_size
                            count += 1
        return total, count

    def changed_millis(self, folder: str) -> dict[str, int]:
        return {
            each.name: each.stat().st_mtime_ns // 1_000_000 for each in os.scandir(without_scheme(folder))
        }

    def idle_seconds(self, folder: str) -> float:
        plain = without_scheme(folder)
        try:
            changes = [each.stat().st_mtime for each in os.scandir(plain)]
            return clock.seconds() - max([os.stat(plain).st_mtime, *changes])
        except OSError:
            return 0.0  # Another process deletes it.

    def size(self, path: str) -> int:
        return os.path.getsize(without_scheme(path))

    def read(self, path: str) -> bytes | None:
        try:
            with open(without_scheme(path), "rb") as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def open(self, path: str, *, reads_ahead: bool = True) -> BinaryIO:
        return cast(BinaryIO, open(without_scheme(path), "rb"))

    def write(self, path: str, content: bytes, replaces: bool = True) -> None:
        plain = without_scheme(path)
        os.makedirs(os.path.dirname(plain), exist_ok=True)
        if replaces:
            _remove_checksums(plain)
        with open(plain, "wb" if replaces else "xb") as file:
            file.write(content)

    def claim(self, path: str, content: bytes) -> bool:
        """Makes a small file; returns False if another process has made it. Others may see it before it is whole."""
        try:
            self.write(path, content, replaces=False)
        except FileExistsError:
            return False
        return True

    def make(self, folder: str) -> None:
        os.makedirs(without_scheme(folder), exist_ok=True)

    def make_inside(self, folder: str, inside: str) -> None:
        """Makes folders below one that exists: a task that outlives its run does not make the run's folder again."""
        for name in inside.split("/"):
            folder = os.path.join(folder, name)
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder)

    def rename(self, source: str, target: str) -> None:
        """Renames a file or a folder to a name that does not exist yet."""
        if self.exists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        os.rename(without_scheme(source), without_scheme(target))

    def copy(self, source: str, target: str) -> None:
        """Copies a file, or a folder with its content, to a name that does not exist yet."""
        if self.is_folder(source):
            shutil.copytree(without_scheme(source), without_scheme(target))
        else:
            shutil.copyfile(without_scheme(source), without_scheme(target))

    def replace(self, source: str, target: str) -> None:
        _remove_checksums(without_scheme(target))
        os.replace(without_scheme(source), without_scheme(target))

    def remove(self, path: str) -> None:
        """Deletes a file with the checksums that Spark keeps beside it, if it exists."""
        plain = without_scheme(path)
        with contextlib.suppress(FileNotFoundError):
            os.remove(plain)
        _remove_checksums(plain)

    def delete(self, path: str) -> None:
        """Deletes a file, or a folder with its content; of a link the link alone, as Hadoop does."""
        if self.is_folder(path) and not os.path.islink(without_scheme(path)):
            shutil.rmtree(without_scheme(path), ignore_errors=True)
        else:
            self.remove(path)


def _remove_checksums(plain: str) -> None:
    """Deletes the checksums that Spark keeps beside a file: it refuses another content under that name."""
    folder, name = os.path.split(plain)
    with contextlib.suppress(FileNotFoundError):
        os.remove(os.path.join(folder, f".{name}.crc"))


def without_scheme(path: str) -> str:
    """Returns a path without its scheme.

    >>> without_scheme("file:///a b"), without_scheme("file:/a"), without_scheme("/a")
    ('/a b', '/a', '/a')
    """
    return path.removeprefix("file:").replace("///", "/", 1) if path.startswith("file:") else path


def _inside(folder: str, level: str) -> list[str]:
    r"""Returns the paths in a folder that one level of a glob pattern of Hadoop matches.

    >>> _inside("/", r"\*")
    []
    """
    if _WILDCARD.search(level) is None:
        path = os.path.join(folder, re.sub(r"\\(.)", r"\1", level))
        return [path] if os.path.exists(path) else []
    matches = re.compile(_expression_of(level), re.DOTALL).fullmatch
    try:
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if matches(name)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _expression_of(level: str) -> str:
    r"""Returns a glob pattern of Hadoop as a regular expression.

    >>> _expression_of(r"a\*b*[!cd]?")
    'a\\*b.*[^cd].'
    """

    def translated(found: re.Match[str]) -> str:
        match found[0]:
            case "*":
                return ".*"
            case "?":
                return "."
            case text if text.startswith("[") and len(text) > 1:
                return f"[^{text[2:]}" if text[1] in "!^" else text
            case text:
                return re.escape(text[1:] if text.startswith("\\") else text)

    return re.sub(r"\\.|\[[^\]]+\]|.", translated, level, flags=re.DOTALL)
