"""A disk in memory that all machines of a world share, behind the runner's local files and behind Hadoop.

What was written stays, whoever dies. A file that is being written can be seen before it is whole.
"""

from __future__ import annotations

import functools
import posixpath
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from penstock_spark.files.disk_files import DiskFiles
from tests.simulation.simulated_world import World


def plain(path: str) -> str:
    """A path without its scheme and host."""
    return "/" + "/".join(_parts(path))


@functools.lru_cache(maxsize=50_000)
def _parts(path: str) -> tuple[str, ...]:
    """The names of a path, from the root on."""
    if "://" in path:
        path = "/" + path.partition("://")[2].partition("/")[2]
    return tuple(name for name in posixpath.normpath(path).split("/") if name)


@dataclass(eq=False)
class File:
    content: Any  # Bytes; what Spark keeps in its own form stays as it is.
    changed_millis: int


@dataclass(eq=False)
class Folder:
    changed_millis: int = 0
    children: dict[str, File | Folder] = field(default_factory=dict)


class Disk:
    """The content, and what changes it; every change and every look is a step of the world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.root = Folder()
        self.version = 0  # How often it has changed.
        self.cuts: dict[Any, int] = {}  # How the micro-batches of a folder are cut into tasks.
        self.on_move: Callable[[str], None] = lambda path: None  # Called with the new name of what has moved.
        # True if Hadoop's renames replace what is there, as those of a local disk do, and no other ones.
        self.is_local = False

    # Looks.

    def find(self, path: str) -> File | Folder | None:
        return self._found(_parts(path))

    def names(self, folder: str) -> list[str]:
        node = self.find(folder)
        return sorted(node.children) if isinstance(node, Folder) else []

    def files_below(self, folder: str) -> Iterator[str]:
        """The paths of all files below a folder, as paths from there."""
        node = self.find(folder)
        if isinstance(node, Folder):
            for name, child in sorted(node.children.items()):
                if isinstance(child, File):
                    yield name
                else:
                    yield from (f"{name}/{inside}" for inside in self.files_below(f"{folder}/{name}"))

    # Changes.

    def put(self, path: str, content: bytes, makes_folders: bool = True) -> None:
        *folder, name = _parts(path)
        node = self._folder(folder) if makes_folders else self._found(folder)
        if not isinstance(node, Folder):
            raise FileNotFoundError(2, "No such file or directory", path)
        if isinstance(node.children.get(name), Folder):
            raise IsADirectoryError(21, "Is a directory", path)
        if name not in node.children:
            node.changed_millis = self.millis()
        node.children[name] = File(content, self.millis())
        self.version += 1

    def make(self, path: str) -> None:
        self._folder(_parts(path))

    def move(self, source: str, target: str, replaces: bool) -> bool:
        """Renames a file or a folder; False if there is none, or if the target exists and may not be replaced."""
        found, there = self.find(source), self.find(target)
        *new_folder, new_name = _parts(target)
        parent = self._found(new_folder)
        if found is None or not isinstance(parent, Folder) or (there is not None and not replaces):
            return False
        self.drop(source)
        parent.children[new_name] = found
        parent.changed_millis = self.millis()
        self.version += 1
        self.on_move(target)
        return True

    def drop(self, path: str) -> None:
        *folder, name = _parts(path)
        node = self._found(folder)
        if isinstance(node, Folder) and node.children.pop(name, None) is not None:
            node.changed_millis = self.millis()
            self.version += 1

    def millis(self) -> int:
        return (self.world.now_micros + self.world.set_by_micros) // 1_000

    def _found(self, names: Sequence[str]) -> File | Folder | None:
        node: File | Folder | None = self.root
        for name in names:
            node = node.children.get(name) if isinstance(node, Folder) else None
        return node

    def _folder(self, names: Sequence[str]) -> Folder:
        node = self.root
        for name in names:
            child = node.children.get(name)
            if child is None:
                child = node.children[name] = Folder(self.millis())
                self.version += 1
            if not isinstance(child, Folder):
                raise NotADirectoryError(20, "Not a directory", "/" + "/".join(names))
            node = child
        return node

    # One operation after the other, as a program asks for it.

    def deleted(self, path: str) -> None:
        """Deletes a file, or a folder with its content, one file after the other."""
        node = self.find(path)
        if isinstance(node, Folder):
            for name in list(node.children):
                self.deleted(f"{path}/{name}")
        if node is not None:
            self.world.change(f"delete {path}", lambda: self.drop(path))


class DisksOfMachines:
    """Stands in for `DiskFiles`: its methods take their places there."""

    def __init__(self, disk: Disk) -> None:
        self.disk, self.world = disk, disk.world

    def wrap_opener(self, open_file: Callable[[str], Any]) -> Callable[[str], Any]:
        return open_file

    def open(self, path: str, *, reads_ahead: bool = True) -> BinaryIO:
        raise NotImplementedError

    def names(self, folder: str, *beginnings: str) -> list[str]:
        self.world.look(f"list {folder}")
        return [name for name in self.disk.names(folder) if name.startswith(beginnings or "")]

    def names_below(self, folder: str, beginnings: Sequence[str]) -> dict[str, list[str]]:
        raise NotImplementedError

    def make(self, folder: str) -> None:
        self.world.change(f"make {folder}", lambda: self.disk.make(folder))

    def make_inside(self, folder: str, inside: str) -> None:
        raise NotImplementedError

    def is_folder(self, path: str) -> bool:
        return isinstance(self.disk.find(path), Folder)

    def idle_seconds(self, folder: str) -> float:
        found = self.disk.find(folder)
        return 0.0 if found is None else (self.disk.millis() - found.changed_millis) / 1e3

    def read(self, path: str) -> bytes | None:
        self.world.look(f"read {path}")
        found = self.disk.find(path)
        return found.content if isinstance(found, File) else None

    def size(self, path: str) -> int:
        found = self.disk.find(path)
        if not isinstance(found, File):
            raise FileNotFoundError(2, "No such file or directory", path)
        return len(found.content)

    def write(self, path: str, content: bytes) -> None:
        self.world.change(f"begin {path}", lambda: self.disk.put(path, b""))
        self.world.change(f"write {path}", lambda: self.disk.put(path, content))

    def replace(self, source: str, target: str) -> None:
        def rename() -> None:
            if not self.disk.move(source, target, replaces=True):
                raise FileNotFoundError(2, "No such file or directory", source)

        self.world.change(f"rename {source} to {target}", rename)

    def remove(self, path: str) -> None:
        if self.disk.find(path) is not None:
            self.world.change(f"remove {path}", lambda: self.disk.drop(path))

    def delete(self, path: str) -> None:
        self.disk.deleted(path)

    def stand_ins(self) -> dict[str, Any]:
        """The methods, as functions of that class: programs for workers name them so."""

        def method(name: str, own: Any) -> Any:
            bound = getattr(self, name, None)
            if bound is None:
                return _refuse

            @functools.wraps(own)
            def stand_in(_: DiskFiles, *arguments: Any) -> Any:
                return bound(*arguments)

            return stand_in

        return {name: method(name, own) for name, own in vars(DiskFiles).items() if callable(own)}


def _refuse(*arguments: Any) -> None:
    raise NotImplementedError(arguments)


class Shard:
    """A file that a task writes: the first bytes can be seen before the last are there."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk, self._path, self._content = disk, path, b""
        disk.world.change(f"begin {path}", lambda: disk.put(path, b"", makes_folders=False))

    def write(self, data: bytes) -> int:
        self._content += data
        return len(data)

    def close(self) -> None:
        if self._content:
            self._disk.world.change(f"fill {self._path}", self._fill)

    def _fill(self) -> None:
        # Somebody may have deleted the file, or its folder; whoever has it open does not notice.
        if self._disk.find(self._path) is not None:
            self._disk.put(self._path, self._content, makes_folders=False)


class HadoopPath:
    """Hadoop's ``Path``."""

    disk: Disk

    def __init__(self, text: str) -> None:
        self.text = text

    def getFileSystem(self, conf: Any) -> Hadoop:
        return Hadoop(self.disk)

    def getName(self) -> str:
        return self.text.rpartition("/")[2]

    def toString(self) -> str:
        return self.text


class Status:
    def __init__(self, path: str, node: File | Folder) -> None:
        self._path, self._node = path, node

    def getPath(self) -> HadoopPath:
        return HadoopPath(self._path)

    def isDirectory(self) -> bool:
        return isinstance(self._node, Folder)

    def isFile(self) -> bool:
        return isinstance(self._node, File)

    def getLen(self) -> int:
        return len(self._node.content) if isinstance(self._node, File) else 0

    def getModificationTime(self) -> int:
        return self._node.changed_millis


class Hadoop:
    """One of Hadoop's file systems: renames and new files are whole or not there."""

    def __init__(self, disk: Disk) -> None:
        self._disk, self._world = disk, disk.world

    def getScheme(self) -> str:
        return "sim"

    def exists(self, path: HadoopPath) -> bool:
        self._world.look(f"look for {path.text}")
        return self._disk.find(path.text) is not None

    def getFileStatus(self, path: HadoopPath) -> Status:
        found = self._disk.find(path.text)
        if found is None:
            raise FileNotFoundError(f"java.io.FileNotFoundException: {path.text}")
        return Status(path.text, found)

    def listStatus(self, path: HadoopPath) -> list[Status]:
        self._world.look(f"list {path.text}")
        found = self._disk.find(path.text)
        if not isinstance(found, Folder):
            raise FileNotFoundError(f"java.io.FileNotFoundException: {path.text}")
        return [Status(f"{path.text}/{name}", child) for name, child in found.children.items()]

    def open(self, path: HadoopPath) -> Any:
        self._world.look(f"read {path.text}")
        found = self._disk.find(path.text)
        if not isinstance(found, File):
            raise FileNotFoundError(f"java.io.FileNotFoundException: {path.text}")
        return _Reading(found.content)

    def create(self, path: HadoopPath, replaces: bool) -> Any:
        def begin() -> None:
            if not replaces and self._disk.find(path.text) is not None:
                raise RuntimeError(f"org.apache.hadoop.fs.FileAlreadyExistsException: {path.text}")
            self._disk.put(path.text, b"")

        self._world.change(f"begin {path.text}", begin)
        return _Writing(self._disk, path.text)

    def mkdirs(self, path: HadoopPath) -> bool:
        self._world.change(f"make {path.text}", lambda: self._disk.make(path.text))
        return True

    def rename(self, source: HadoopPath, target: HadoopPath) -> bool:
        text = f"rename {source.text} to {target.text}"
        replaces = self._disk.is_local
        return bool(self._world.change(text, lambda: self._disk.move(source.text, target.text, replaces)))

    def delete(self, path: HadoopPath, with_content: bool) -> None:
        self._disk.deleted(path.text)

    def getConf(self) -> None:
        """Nobody looks at it."""

    def globStatus(self, pattern: HadoopPath) -> list[Status]:
        """What is in a folder and has a name that begins in some way."""
        folder, _, beginning = pattern.text.replace("\\", "").rpartition("/")
        self._world.look(f"list {folder}")
        return [
            Status(f"{folder}/{name}", child)
            for name in self._disk.names(folder)
            if name.startswith(beginning.removesuffix("*"))
            and (child := self._disk.find(f"{folder}/{name}")) is not None
        ]


class FileUtil:
    """Hadoop's ``FileUtil``: it copies one file after the other."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def copy(self, _: Any, source: HadoopPath, __: Any, target: HadoopPath, *___: Any) -> bool:
        """Copies a file, or a folder with its content."""
        self._copy(source.text, target.text)
        return True

    def _copy(self, source: str, target: str) -> None:
        node = self._disk.find(source)
        if node is None:
            raise FileNotFoundError(f"java.io.FileNotFoundException: {source}")
        if isinstance(node, Folder):
            self._disk.world.change(f"make {target}", lambda: self._disk.make(target))
            for name in list(node.children):
                self._copy(f"{source}/{name}", f"{target}/{name}")
        else:
            content = node.content
            self._disk.world.change(f"copy {source}", lambda: self._disk.put(target, content))


class _Reading:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def readAllBytes(self) -> bytes:
        return self._content

    def close(self) -> None:
        """Nothing to close."""


class _Writing:
    def __init__(self, disk: Disk, path: str) -> None:
        self._disk, self._path, self._content = disk, path, b""

    def write(self, content: bytearray) -> None:
        self._content += bytes(content)

    def close(self) -> None:
        path = self._path
        self._disk.world.change(f"fill {path}", lambda: self._disk.put(path, self._content))
