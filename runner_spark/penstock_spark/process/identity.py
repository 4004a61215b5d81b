"""Identifies the process that made something, and says whether it still runs."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock_spark.process.written_formats import OWNER


@dataclass(frozen=True)
class Process:
    """A process, distinct from every other, even from a later one with the same number."""

    # The host name, an identifier of its last boot, and its table of processes: a container has its own.
    machine: str
    pid: int
    started: str  # The time when it began, as the system counts; "" where the system cannot say.

    def to_json(self) -> bytes:
        return json.dumps({"format": OWNER.number, **asdict(self)}).encode()

    @staticmethod
    def from_json(content: bytes) -> Process | None:
        """Returns the process that `to_json` wrote; None for any other text, and for a text of another version.

        >>> Process.from_json(this_process().to_json()) == this_process(), Process.from_json(b"{")
        (True, None)
        """
        try:
            fields = json.loads(content)
            return Process.from_fields(fields) if fields.pop("format") == OWNER.number else None
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
            return None

    @staticmethod
    def from_fields(fields: dict[str, Any]) -> Process:
        """Returns the process with these fields; ValueError or TypeError if they belong to something else."""
        process = Process(**fields)
        is_number = type(process.pid) is int and 0 < process.pid < 1 << 31
        if not (is_number and isinstance(process.machine, str) and isinstance(process.started, str)):
            raise ValueError("these are not the fields of a process")
        return process

    def has_ended(self) -> bool | None:
        """True if the process has ended; None if this machine cannot know.

        >>> this_process().has_ended(), Process("elsewhere", 1, "").has_ended()
        (False, None)
        """
        if self.machine != _machine():
            return None
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass  # Another user's process exists.
        return self.started != _read_start(self.pid)


def this_process() -> Process:
    return process_of(os.getpid())


def process_of(pid: int) -> Process:
    """Returns the process of this machine that has this number now."""
    return Process(_machine(), pid, _read_start(pid))


def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _read_start(pid: int) -> str:
    try:
        # The name of the program, in parentheses, may hold anything; the start time is the 20th field after it.
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    # A process that has ended stays in the table until its parent has asked for its status.
    return "" if state in "ZX" else fields[18]
