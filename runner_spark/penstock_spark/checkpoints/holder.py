"""Who holds a checkpoint: a run, and the processes of its driver."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

from penstock.base import clock
from penstock_spark.process.identity import Process, process_of


@dataclass(frozen=True)
class Holder:
    """A run, and where it runs.

    Attributes:
        run: The run's name.
        processes: The driver's processes: Python's first, then Java's.
        since: When it began, for readers.
    """

    run: str
    processes: tuple[Process, ...]
    since: str

    def __str__(self) -> str:
        first = self.processes[0]
        return f"the run {self.run} (process {first.pid} on {first.host}, since {self.since})"

    def is_dead(self) -> bool:
        """Whether its processes are known to have ended; False where this machine cannot know."""
        return all(process.has_ended() is True for process in self.processes)

    def as_json(self) -> dict[str, Any]:
        """It as plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Holder:
        """What `as_json` gave.

        Raises:
            KeyError: Something is missing.
            TypeError: Something is of another type.
        """
        processes = tuple(Process(**process) for process in data["processes"])
        return cls(data["run"], processes, data["since"])


def this_holder(run: str, *others: int) -> Holder:
    """This process, for a run.

    Args:
        run: The run's name.
        others: The numbers of further processes of the driver, such as Java's.
    """
    since = clock.utc_text()
    return Holder(run, tuple(map(process_of, (os.getpid(), *others))), since)
