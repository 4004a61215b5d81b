"""Files on the disks of this machine."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.error import UnsupportedByRunner
from penstock_spark.files import file_store, place
from penstock_spark.files.disk_files import DiskFiles
from penstock_spark.files.disk_place import DiskPlace
from penstock_spark.files.file_store import escape_glob, files_of_spark

FILES = DiskFiles()


@pytest.fixture
def on_connect(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A session that does not bring Hadoop's file systems to the program."""
    backend = SimpleNamespace(hadoop=lambda: None, reaches=lambda scheme: False)
    for module in (file_store, place):
        monkeypatch.setattr(module, "backend_of", lambda spark: backend)
    return object()


@pytest.mark.parametrize("scheme", ["file://", "file:", ""])
def test_what_is_there_is_found_by_its_name(scheme: str, tmp_path: Path) -> None:
    folder = f"{scheme}{tmp_path}"
    (tmp_path / "b%20c").mkdir()
    (tmp_path / ".a").write_bytes(b"one")
    assert FILES.names_in(folder) == [".a", "b%20c"]
    assert FILES.names_in(f"{folder}/b%20c/") == []
    assert FILES.names_in(f"{folder}/none") == FILES.names_in(f"{folder}/.a/none") == []
    assert FILES.names_in(f"{folder}/.a") is None
    assert FILES.read(f"{folder}/.a") == b"one"
    assert FILES.read(f"{folder}/none") is FILES.read(f"{folder}/.a/none") is None
    assert [FILES.exists(f"{folder}/{name}") for name in (".a", "b%20c", "none")] == [True, True, False]
    assert [FILES.is_folder(f"{folder}/{name}") for name in (".a", "b%20c", "none")] == [False, True, False]


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_patterns_of_hadoop_find_files_and_escapes_are_literal(tmp_path: Path, scheme: str) -> None:
    for name in ("a*b/1.txt", "aab/1.txt", "a*b/2.csv", "a*b/inner/3.txt", "a*b/[x].txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    def found(pattern: str) -> list[str]:
        paths = FILES.matching(f"{scheme}{tmp_path}/{pattern}")
        return sorted(path.removeprefix(f"{scheme}{tmp_path}/") for path in paths)

    assert found("a*b/?.txt") == ["a*b/1.txt", "aab/1.txt"]
    assert found(rf"{escape_glob('a*b')}/*.txt") == ["a*b/1.txt", "a*b/[x].txt"]
    assert found(escape_glob("a*b/[x].txt")) == ["a*b/[x].txt"]
    assert found(rf"a\*?/{escape_glob('[x]')}.t?t") == ["a*b/[x].txt"]
    assert found("a[!*]b/[12].*") == ["aab/1.txt"]
    assert found("a*b/*/3.txt") == ["a*b/inner/3.txt"]
    # A folder is not a file, and what is missing is not an error.
    assert found("a*b") == found("missing/*") == []


def test_a_rename_does_not_replace_a_claim_is_made_once_and_checksums_go_with_their_file(
    tmp_path: Path,
) -> None:
    folder = f"file://{tmp_path}"
    FILES.write(f"{folder}/a", b"1")
    assert FILES.claim(f"{folder}/b", b"2")
    assert not FILES.claim(f"{folder}/b", b"3")
    with pytest.raises(FileExistsError):
        FILES.rename(f"{folder}/a", f"{folder}/b")
    assert (FILES.read(f"{folder}/a"), FILES.read(f"{folder}/b")) == (b"1", b"2")
    (tmp_path / ".b.crc").touch()
    FILES.replace(f"{folder}/a", f"{folder}/b")
    assert FILES.names_in(folder) == ["b"]
    (tmp_path / ".b.crc").touch()
    FILES.remove(f"{folder}/b")
    assert FILES.names_in(folder) == []
    assert FILES.names_in(f"{folder}/missing") == []
    assert FILES.read(f"{folder}/missing") is None


def test_hidden_files_are_not_below_a_folder_and_copies_have_all(tmp_path: Path) -> None:
    folder = f"file://{tmp_path}"
    FILES.write(f"{folder}/from/in/a", b"12")
    FILES.write(f"{folder}/from/_SUCCESS", b"")
    FILES.write(f"{folder}/from/.in/b", b"")
    assert FILES.below(f"{folder}/from") == [("in", "a", 2)]
    FILES.copy(f"{folder}/from", f"{folder}/to")
    assert FILES.read(f"{folder}/to/.in/b") == b""
    FILES.delete(f"{folder}/from")
    assert FILES.names_in(folder) == ["to"]


@pytest.mark.parametrize("location", ["hdfs://host/a", "s3://bucket/a", "abfss://box@account/a"])
def test_other_schemes_are_refused_by_name_with_what_to_do(on_connect: Any, location: str) -> None:
    with pytest.raises(UnsupportedByRunner) as error:
        place.Place(on_connect, location)
    what, where, hint = str(error.value).split("\n")
    assert location in what
    assert "Spark Connect" in where
    assert "/Volumes/" in hint


def test_a_place_on_a_shared_disk_keeps_small_files(on_connect: Any, tmp_path: Path) -> None:
    assert isinstance(files_of_spark(on_connect, f"file://{tmp_path}"), DiskFiles)
    own = place.Place(on_connect, tmp_path).inside("state")
    assert own.names() == []
    own.make()
    own.write("1", b"one")
    own.replace("1", b"two")
    assert (own.read("1"), own.paths("*")) == (b"two", ["1"])
    with pytest.raises(FileNotFoundError):
        own.read("2")


def test_of_a_link_the_link_alone_is_deleted(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_bytes(b"x")
    for name in ("kept", "kept/file"):
        (tmp_path / "link").symlink_to(tmp_path / name)
        DiskPlace(tmp_path).delete("link")
        assert sorted(each.name for each in tmp_path.rglob("*")) == ["file", "kept"]
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "link").symlink_to(tmp_path / "kept")
    DiskPlace(tmp_path).delete("inside")
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["file", "kept"]
