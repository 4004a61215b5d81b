"""Which process has made something, and whether it still runs."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """A process, told from all others, also from a later one with the same number.

    Attributes:
        machine: The machine, when it was started, and which of its tables of processes counts: a container has its own.
        pid: The number.
        started: When it began, as the system counts; "" where that cannot be asked.
    """

    machine: str
    pid: int
    started: str

    @property
    def host(self) -> str:
        """The name of the machine, for people."""
        return self.machine.partition(" ")[0]

    def to_json(self) -> bytes:
        """As text, for `from_json`."""
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def from_json(content: bytes) -> Process | None:
        """The process that a text names; None for any other text.

        >>> Process.from_json(this_process().to_json()) == this_process(), Process.from_json(b"{")
        (True, None)
        """
        try:
            return Process(**json.loads(content))
        except (ValueError, TypeError):
            return None

    def has_ended(self) -> bool | None:
        """Whether it has ended; None if that cannot be known here.

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
            pass  # Somebody else's process: it is there.
        return self.started != _started(self.pid)


def this_process() -> Process:
    """The process that runs this."""
    return process_of(os.getpid())


def process_of(pid: int) -> Process:
    """The process of this machine that has a number now."""
    return Process(_machine(), pid, _started(pid))


def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _started(pid: int) -> str:
    try:
        # The name of the program, in parentheses, may hold anything; the moment is the 20th field behind it.
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    # A process that has ended may stay in the table until its parent has asked how it ended.
    return "" if state in "ZX" else fields[18]
