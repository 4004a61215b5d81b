"""Files of Hadoop's file systems, without Java."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock_spark.files import file_store
from penstock_spark.files.disk_files import DiskFiles
from penstock_spark.files.file_store import HadoopFiles, files_of_spark


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


class Disk:
    """Hadoop's file system of a disk."""

    def getFileSystem(self, configuration: object) -> Disk:
        return self

    def getScheme(self) -> str:
        return "file"

    def getRawFileSystem(self) -> Disk:
        return self


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        *((path, DiskFiles) for path in ("/a", "file:/a", "file:///a%20b")),
        *((path, HadoopFiles) for path in ("file://host/a", "a", "file:a", "//host/a", "/straße")),
    ],
)
def test_java_is_asked_only_where_it_may_mean_another_file_than_python(
    path: str, kind: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    hadoop = SimpleNamespace(package=SimpleNamespace(Path=lambda text: Disk()), configuration=None)
    monkeypatch.setattr(file_store, "backend_of", lambda spark: SimpleNamespace(hadoop=lambda: hadoop))
    spark: Any = None
    assert type(files_of_spark(spark, path)) is kind
