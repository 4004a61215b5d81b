"""The processes of a program under test, found in ``/proc``: which there are, what each is, and its memory."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

DRIVER, JAVA, DAEMON, WORKER, OTHER = "driver", "java", "python daemon", "python worker", "other"

_PARENT, _SESSION, _RESIDENT_PAGES = 1, 3, 21
"""Where in a line of ``/proc/*/stat``, after the name, these numbers are."""


@dataclass(frozen=True)
class Process:
    """A process that is running."""

    pid: int
    parent: int
    kind: str
    command: str
    resident_bytes: int


def processes_of(session: int) -> list[Process]:
    """All processes of a session, which is named by the number of the process that began it.

    PySpark's daemon makes a process group of its own, so the group of the driver does not have all.
    """
    raw = [found for entry in Path("/proc").iterdir() if (found := _raw(entry, session)) is not None]
    javas = {pid for pid, _, command, _ in raw if "java" in command.partition(" ")[0]}
    # Java starts the daemon, which forks the workers; they have its command line, and may outlive it.
    daemons = {pid for pid, parent, command, _ in raw if _is_daemon(command) and parent in javas}
    # Java forks itself before it starts another program: for a moment, the same memory seems to be there twice.
    forks = {pid for pid, parent, _, _ in raw if pid in javas and parent in javas}
    return [
        Process(pid, parent, _kind(pid, command, session, daemons, javas), command, resident)
        for pid, parent, command, resident in raw
        if pid not in forks
    ]


_Raw = tuple[int, int, str, int]


def _raw(entry: Path, session: int) -> _Raw | None:
    if not entry.name.isdecimal():
        return None
    try:
        fields = (entry / "stat").read_text().rpartition(")")[2].split()
        if int(fields[_SESSION]) != session or fields[0] == "Z":
            return None
        command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return None
    resident = int(fields[_RESIDENT_PAGES]) * os.sysconf("SC_PAGE_SIZE")
    return int(entry.name), int(fields[_PARENT]), command, resident


def _is_daemon(command: str) -> bool:
    return "pyspark.daemon" in command


def _kind(pid: int, command: str, session: int, daemons: set[int], javas: set[int]) -> str:
    if pid == session:
        return DRIVER
    if pid in daemons:
        return DAEMON
    if _is_daemon(command) or "driver_worker" in command or "pyspark.worker" in command:
        return WORKER
    return JAVA if pid in javas else OTHER


def of_kind(session: int, kind: str) -> list[Process]:
    """The processes of one kind, the oldest first."""
    return sorted((each for each in processes_of(session) if each.kind == kind), key=lambda each: each.pid)


def kill(pids: Iterator[int] | list[int]) -> int:
    """Kills processes as a crash would; returns how many of them were there."""
    killed = 0
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            killed += 1
    return killed


def kill_session(session: int) -> None:
    """Kills all processes of a session, as a power cut would, until none is left."""
    while found := processes_of(session):
        kill([each.pid for each in found])
        time.sleep(0.01)
