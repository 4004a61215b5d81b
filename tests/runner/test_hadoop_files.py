"""Files of Hadoop's file systems, without Java."""

from __future__ import annotations

from typing import Any

import pytest

from penstock_spark.files.file_system import HadoopFiles


class NoStatus:
    """A file system that opens a file, and does not tell how large it is."""

    def __init__(self) -> None:
        self.opened: list[str] = []

    def open(self, path: str) -> Any:
        self.opened.append(path)

    def getFileStatus(self, path: str) -> Any:
        raise PermissionError(path)


def test_a_file_whose_size_is_unknown_is_not_left_open() -> None:
    files = HadoopFiles.__new__(HadoopFiles)
    files._path, files._system = str, NoStatus()
    with pytest.raises(PermissionError):
        files.open("hdfs:///scores.orc")
    assert files._system.opened == []
