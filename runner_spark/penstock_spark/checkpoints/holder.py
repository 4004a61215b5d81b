"""Who holds a checkpoint: a run in a process, which another process of the same machine can look for."""

from __future__ import annotations

import datetime
import os
import socket
from dataclasses import asdict, dataclass
from typing import Any

from penstock_spark.processes import started_at, this_machine


@dataclass(frozen=True)
class Holder:
    """A run, and where it runs.

    Attributes:
        run: The run's name.
        host: The name of its machine.
        machine: What tells the machine, and the processes that can see each other there, from all others; empty where
            that is not known.
        processes: The numbers and the start times of the driver's processes: Python's and Java's.
        since: When it began, for readers.
    """

    run: str
    host: str
    machine: str
    processes: tuple[tuple[int, str], ...]
    since: str

    def __str__(self) -> str:
        number = self.processes[0][0] if self.processes else "unknown"
        return f"the run {self.run} (process {number} on {self.host}, since {self.since})"

    def is_dead(self) -> bool:
        """Whether its processes are known to be gone; False where this machine cannot know."""
        if not self.machine or self.machine != this_machine():
            return False
        return all(started_at(number) != start for number, start in self.processes)

    def as_json(self) -> dict[str, Any]:
        """It as plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Holder:
        """What `as_json` gave.

        Raises:
            KeyError: Something is missing.
        """
        processes = tuple((int(number), str(start)) for number, start in data["processes"])
        return cls(data["run"], data["host"], data["machine"], processes, data["since"])


def this_holder(run: str, *others: int) -> Holder:
    """This process, for a run.

    Args:
        run: The run's name.
        others: The numbers of further processes of the driver, such as Java's.
    """
    processes = tuple((number, started_at(number)) for number in (os.getpid(), *others))
    since = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return Holder(run, socket.gethostname(), this_machine(), processes, since)
