"""Which process has made something, and whether it still runs."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

_PROCESSES = Path("/proc")
_BOOT = _PROCESSES / "sys/kernel/random/boot_id"


@dataclass(frozen=True)
class Process:
    """A process, told from all others, also from a later one with the same number.

    Attributes:
        machine: What `this_machine` says there.
        pid: The number.
        started: What `started_at` says of it.
    """

    machine: str
    pid: int
    started: str

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
        if not self.machine or self.machine != this_machine():
            return None
        return started_at(self.pid) != self.started


def this_process() -> Process:
    """The process that runs this."""
    return Process(this_machine(), os.getpid(), started_at(os.getpid()))


def this_machine() -> str:
    """This start of this machine, and the processes that are visible from here: containers may share a machine.

    Empty where that is not known.
    """
    try:
        return f"{_BOOT.read_text().strip()}/{os.readlink(_PROCESSES / 'self/ns/pid')}"
    except OSError:
        return ""


def started_at(number: int) -> str:
    """When a process was started, in ticks since the start of the machine; empty if it is gone."""
    try:
        status = (_PROCESSES / str(number) / "stat").read_text()
    except OSError:
        return ""
    # The name in parentheses may have blanks and parentheses of its own; the start is the 20th field behind it.
    state, *fields = status.rpartition(")")[2].split()
    return "" if state in "ZX" else fields[18]
