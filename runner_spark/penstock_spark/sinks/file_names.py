"""The names of a sink's files: by Beam's templates, or by a function of the user."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.elements.bounded_window import GlobalWindow
from penstock.error import UnsupportedByRunner
from penstock.io.files.file_naming import check_file_name, default_file_naming
from penstock.io.files.shards import Shards
from penstock.io.files.write_files import FileResult
from penstock.io.formats.partition_folders import move_into_folders
from penstock.io.formats.text_rows import TextRowsSink
from penstock.transforms.window import BoundedWindow
from penstock.utils.windowed_value import PaneInfo
from penstock_spark.files.file_store import folder_of
from penstock_spark.files.finding import pattern_of

_WINDOW = GlobalWindow()


@dataclass(frozen=True)
class TemplateNames:
    """Beam's names, such as ``prefix-batch-000012-00000-of-00003.suffix``; elements are the paths."""

    shards: Shards

    @property
    def folder(self) -> str:
        """The folder of the files; "" for the working folder."""
        return folder_of(self.shards.prefix)

    @property
    def place(self) -> str:
        """The place as the user wrote it, for errors."""
        return self.shards.prefix

    def refuse(self, letters: str, where: str) -> None:
        """Raises UnsupportedByRunner for names with one of the letters of Beam's templates."""
        for letter in letters:
            if letter in self.shards.template:
                raise UnsupportedByRunner(
                    f"the letter {letter} in shard_name_template {self.shards.template!r} is not supported",
                    where=where,
                    hint="leave it out" if letter == "U" else "files of windows need an unbounded input",
                )

    def path(self, batch: str, shard: int, count: int) -> str:
        """The path of a file, from the name of the micro-batch ("" in batch mode), and the numbers of shards."""
        shards = self.shards
        if batch:
            shards = replace(shards, file_path_prefix=f"{shards.prefix}-{batch}")
        return shards.name(shard, count)

    def results(self, paths: Mapping[str, list[str]], batch: str) -> list[Any]:
        """The output elements for files, from their paths by the folders of partitions ("" for none)."""
        return [path for inside in paths for path in paths[inside]]

    def of_window(self, window: BoundedWindow, pane: PaneInfo, shard: int, count: int) -> tuple[str, Any]:
        """The path of a file of a window of a stream, and its output element."""
        path = self.shards.window_name(window, pane.index, shard, count)
        return path, path

    def inside(self, result: str, folders: str) -> object:
        """The output element for a file of a window that is in folders of a partition."""
        return move_into_folders(result, folders)


@dataclass(frozen=True)
class FunctionNames:
    """Names by a function, such as ``default_file_naming``; elements are ``FileResult`` records."""

    folder: str
    prefix: str  # The beginning of names, unless there is a naming.
    file_naming: Callable[..., Any] | None  # The user's function; None for Beam's own.
    where: str

    @property
    def place(self) -> str:
        return f"{self.folder}/"

    def refuse(self, letters: str, where: str) -> None:
        """Nothing: the user's function may use anything in its names."""

    def path(self, batch: str, shard: int, count: int) -> str:
        name = self._name(batch, shard, count)
        return f"{self.folder}/{name}" if self.folder else name

    def results(self, paths: Mapping[str, list[str]], batch: str) -> list[Any]:
        return [
            self.inside(
                FileResult(self._name(batch, shard, len(found)), shard, len(found), _WINDOW, None, None),
                folders,
            )
            for folders, found in paths.items()
            for shard in range(len(found))
        ]

    def of_window(self, window: BoundedWindow, pane: PaneInfo, shard: int, count: int) -> tuple[str, Any]:
        name = self._named(self.prefix, window, pane, shard, count)
        return os.path.join(self.folder, name), FileResult(name, shard, count, window, pane, None)

    def inside(self, result: FileResult, folders: str) -> object:
        return result._replace(file_name=move_into_folders(result.file_name, folders))

    def _name(self, batch: str, shard: int, count: int) -> str:
        prefix = f"{self.prefix}-{batch}" if batch else self.prefix
        name = self._named(prefix, _WINDOW, None, shard, count)
        if self.file_naming is None:
            return name
        inside, slash, last = name.rpartition("/")
        return f"{inside}{slash}{batch}-{last}" if batch else name

    def _named(self, prefix: str, window: object, pane: object, shard: int, count: int) -> str:
        """The name of a file; ValueError if the user's function leads out of the folder."""
        naming = self.file_naming or default_file_naming(prefix)
        name = str(naming(window, pane, shard, count, "", None))
        check_file_name(name, self.where)
        return name


Names = TemplateNames | FunctionNames


def names_of(sink: TextRowsSink, where: str) -> FunctionNames:
    """The names of a sink of CSV or JSON files; ValueError if its path has no value yet."""
    path = pattern_of(sink.path, where)
    if sink.file_naming:
        return FunctionNames(path, "", sink.file_naming, where)
    folder, _, prefix = path.rpartition("/")
    return FunctionNames(folder, prefix, None, where)
