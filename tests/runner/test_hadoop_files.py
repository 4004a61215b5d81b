"""Files of Hadoop's file systems, without Java."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock_spark.files.file_store import HadoopFiles


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
    with pytest.raises(OSError, match="scores"):
        files.open("hdfs:///scores.orc")
    assert files._system.opened == []


@pytest.mark.parametrize("scheme", ["file://", "file:", ""])
def test_a_local_disk_is_read_without_a_question_to_java(scheme: str, tmp_path: Path) -> None:
    files = HadoopFiles.__new__(HadoopFiles)
    # No Java file system is there to answer.
    files.is_local = True
    folder = f"{scheme}{tmp_path}"
    (tmp_path / "b%20c").mkdir()
    (tmp_path / ".a").write_bytes(b"one")
    assert files.names_in(folder) == [".a", "b%20c"]
    assert files.names_in(f"{folder}/b%20c/") == []
    assert files.names_in(f"{folder}/none") == files.names_in(f"{folder}/.a/none") == []
    assert files.names_in(f"{folder}/.a") is None
    assert files.read(f"{folder}/.a") == b"one"
    assert files.read(f"{folder}/none") is files.read(f"{folder}/.a/none") is None
    assert [files.exists(f"{folder}/{name}") for name in (".a", "b%20c", "none")] == [True, True, False]
    assert [files.is_folder(f"{folder}/{name}") for name in (".a", "b%20c", "none")] == [False, True, False]


@pytest.mark.parametrize("path", ["file://host/a", "a", "file:a", "//host/a", "/straße"])
def test_hadoop_is_asked_where_python_may_mean_another_file(path: str) -> None:
    class Asked:
        def exists(self, path: str) -> bool:
            return path.endswith(("a", "e"))

    files = HadoopFiles.__new__(HadoopFiles)
    files.is_local, files._path, files._system = True, str, Asked()
    assert files.exists(path)
