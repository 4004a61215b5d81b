"""The class-data archive: when it is written and used, and what happens when it is damaged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock_spark.session.class_archive import SWITCH, archive_arguments, has_base_archive
from penstock_spark.session.java import Java, find_java

writes_archives = pytest.mark.skipif(
    not has_base_archive(find_java()),
    reason="this Java has no archive of its own classes to write another one on",
)


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


@writes_archives
def test_the_second_start_writes_an_archive_and_the_third_uses_it(cache: Path, jars: Path) -> None:
    java = find_java()
    assert archive_arguments(java, jars) == ()
    writing = archive_arguments(java, jars)
    assert _run(java, writing).returncode == 0
    assert _written(writing).exists()
    using = archive_arguments(java, jars)
    assert _used(using).parent == cache
    done = _run(java, using)
    assert (done.returncode, done.stdout) == (0, "")


def test_only_one_process_at_a_time_writes(cache: Path, jars: Path) -> None:
    java = Java("java", "17")
    assert archive_arguments(java, jars) == ()
    assert archive_arguments(java, jars) != ()
    assert archive_arguments(java, jars) == ()


def _started_and_killed(jars: Path) -> str:
    """Another program's start, which is killed before it can write; what it was to write."""
    program = (
        "import os, pathlib, sys; from penstock_spark.session.class_archive import archive_arguments;"
        "from penstock_spark.session.java import Java;"
        "print(archive_arguments(Java('java', '17'), pathlib.Path(sys.argv[1])), flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", program, jars], capture_output=True, text=True, timeout=60)
    assert done.returncode == -9, done.stderr
    return done.stdout


def test_a_start_that_was_killed_does_not_keep_the_next_one_from_writing(cache: Path, jars: Path) -> None:
    java = Java("java", "17")
    assert archive_arguments(java, jars) == ()
    assert "ArchiveClassesAtExit" in _started_and_killed(jars)
    assert "ArchiveClassesAtExit" in _started_and_killed(jars)
    _written(archive_arguments(java, jars))
    # This process lives; and who fails again and again, waits.
    assert archive_arguments(java, jars) == ()
    assert _started_and_killed(jars) == "()\n"
    for file in cache.glob("*.writing"):
        os.utime(file, (0, 0))
    _written(archive_arguments(java, jars))


def test_a_file_without_its_head_is_one_that_java_still_writes(
    cache: Path, jars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SWITCH, "1")
    java = Java("java", "17")
    new = _written(archive_arguments(java, jars))
    new.write_bytes(bytes(4096))
    assert archive_arguments(java, jars) == ()
    new.write_bytes(b"\xa8\xab\x0b\xf0" + bytes(4092))
    assert _used(archive_arguments(java, jars)).stat().st_size == 4096
    assert not new.exists()


def test_a_cut_archive_is_not_used_and_written_again(
    cache: Path, jars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SWITCH, "1")
    java = Java("java", "17")
    _written(archive_arguments(java, jars)).write_bytes(b"\xa8\xab\x0b\xf0" + bytes(4092))
    archive = _used(archive_arguments(java, jars))
    archive.write_bytes(archive.read_bytes()[:2048])
    assert not any("SharedArchiveFile" in argument for argument in archive_arguments(java, jars))
    assert not archive.exists()


@writes_archives
@pytest.mark.parametrize("offset", [0, 5_000, -5_000])
def test_java_starts_with_an_archive_that_was_damaged(
    cache: Path, jars: Path, monkeypatch: pytest.MonkeyPatch, offset: int
) -> None:
    monkeypatch.setenv(SWITCH, "1")
    java = find_java()
    assert _run(java, archive_arguments(java, jars)).returncode == 0
    arguments = archive_arguments(java, jars)
    archive = _used(arguments)
    content = bytearray(archive.read_bytes())
    start = offset % len(content)
    content[start : start + 1000] = b"\x5a" * 1000
    archive.chmod(0o600)
    archive.write_bytes(content)
    done = _run(java, arguments)
    assert (done.returncode, done.stdout) == (0, "")


def test_without_a_folder_to_keep_it_in_there_is_no_archive(
    tmp_path: Path, jars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("PENSTOCK_CACHE", str(blocked))
    monkeypatch.setenv(SWITCH, "1")
    assert archive_arguments(Java("java", "17"), jars) == ()


def test_the_switch_turns_it_off(cache: Path, jars: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "0")
    assert [archive_arguments(Java("java", "17"), jars) for _ in range(3)] == [(), (), ()]


def test_the_switch_lets_it_be_used_and_not_written(
    cache: Path, jars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = Java("java", "17")
    monkeypatch.setenv(SWITCH, "read")
    assert [archive_arguments(java, jars) for _ in range(3)] == [(), (), ()]
    monkeypatch.setenv(SWITCH, "1")
    _written(archive_arguments(java, jars)).write_bytes(b"\xa8\xab\x0b\xf0" + bytes(4092))
    monkeypatch.setenv(SWITCH, "read")
    assert _used(archive_arguments(java, jars)).stat().st_size == 4096
