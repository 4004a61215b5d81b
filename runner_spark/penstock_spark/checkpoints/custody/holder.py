"""The holder of a checkpoint: a run, and the processes of its driver."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

from penstock.utils import clock
from penstock_spark.process.identity import Process, process_of
from penstock_spark.process.written_formats import CLAIM


@dataclass(frozen=True)
class Holder:
    run: str
    processes: tuple[Process, ...]  # The driver's processes: Python's first, then Java's.
    since: str  # When it began, for people.

    def __str__(self) -> str:
        first = self.processes[0]
        return f"the run {self.run} (process {first.pid} on {first.machine.partition(' ')[0]}, since {self.since})"

    def is_dead(self) -> bool:
        """True if its processes are known to have ended; False if this machine cannot know."""
        return all(process.has_ended() is True for process in self.processes)

    def as_json(self) -> dict[str, Any]:
        return {"format": CLAIM.number, **asdict(self)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Holder:
        """The holder that `as_json` wrote; ValueError, TypeError or KeyError for any other data."""
        processes = tuple(Process.from_fields(process) for process in data["processes"])
        run, since = data["run"], data["since"]
        if not (processes and isinstance(run, str) and isinstance(since, str)):
            raise ValueError("these are not the fields of a holder")
        return cls(run, processes, since)


def this_holder(run: str, *others: int) -> Holder:
    """This process as the holder; `others` are the numbers of the driver's other processes, such as Java's."""
    since = clock.format_utc()
    return Holder(run, tuple(map(process_of, (os.getpid(), *others))), since)
