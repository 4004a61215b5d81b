"""What faults are done to: the program under fire, its supervisor, its disk, its servers and its cluster."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.fire import program_processes
from tests.fire.shifted_clock import ShiftedClock

PROGRAM = Path(__file__).with_name("fired_program.py")
STALL_SECONDS_MAX = 600
DISK_BYTES = 64 << 20


class Supervisor(threading.Thread):
    """Starts the program again whenever it has ended before it was done, as an operator's tool does."""

    def __init__(self, folder: Path, flags: tuple[str, ...], environment: Mapping[str, str]) -> None:
        super().__init__(daemon=True)
        self.folder = folder
        self.flags = flags
        self.environment = dict(environment)
        self.starts = 0
        self.is_done = threading.Event()  # The program has drained.
        self.current: subprocess.Popen[bytes] | None = None
        self._is_over = threading.Event()
        self._others: list[subprocess.Popen[bytes]] = []

    def start_one(self) -> subprocess.Popen[bytes]:
        """Starts the program in a session of its own; it takes over from one that is still there."""
        with (self.folder / f"log-{self.starts:03d}").open("wb") as log:
            command = [sys.executable, str(PROGRAM), str(self.folder), *self.flags]
            process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, env=self.environment
            )
        self.starts += 1
        return process

    def replace(self) -> subprocess.Popen[bytes]:
        """Starts a second program beside the first, which it returns; from now on, the second counts."""
        first, self.current = self.current, self.start_one()
        assert first is not None
        self._others.append(first)
        return first

    def run(self) -> None:
        """Watches until the program is done, or the supervisor is stopped."""
        self.current = self.start_one()
        while not self._is_over.wait(0.1):
            status = self.current.poll()
            if status is None:
                continue
            if status == 0 and (self.folder / "drain").exists():
                self.is_done.set()
                return
            self.current = self.start_one()

    def stop(self) -> None:
        """Ends the watch, and kills all that was started."""
        self._is_over.set()
        self.join()
        for process in [*self._others, self.current]:
            if process is not None:
                program_processes.kill_session(process.pid)
                process.wait()


@dataclass
class Target:
    """A program under fire and what it stands on."""

    folder: Path
    supervisor: Supervisor
    random: Random
    has_disk: bool  # Whether the output is on a small disk of its own.
    server: Any = None  # A PostgreSQL server.
    clock: ShiftedClock | None = None  # The clock of the driver's machine, if it can be set.
    brokers: list[int] = field(default_factory=list)  # The processes of Kafka's brokers.
    cluster: Any = None  # A standalone cluster.

    @property
    def disk(self) -> Path:
        """Where the files of the sinks are."""
        return self.folder / "disk"

    @property
    def session(self) -> int:
        """The number of the session of the program that runs now."""
        assert self.supervisor.current is not None
        return self.supervisor.current.pid

    def of_kind(self, kind: str) -> list[int]:
        """The program's processes of a kind."""
        return [each.pid for each in program_processes.of_kind(self.session, kind)]

    def numbers_of(self, log: str) -> list[int]:
        """The micro-batches in one of Spark's logs, ``offsets`` or ``commits``."""
        folder = self.folder / "checkpoint" / "spark" / log
        return [int(name) for name in os.listdir(folder) if name.isdecimal()] if folder.exists() else []

    def last_begun(self) -> int:
        """The last micro-batch that was begun; -1 if there is none."""
        return max(self.numbers_of("offsets"), default=-1)

    def last_done(self) -> int:
        """The last micro-batch that was committed; -1 if there is none."""
        return max(self.numbers_of("commits"), default=-1)

    def wait_for(self, happens: Any, what: str, seconds: float = STALL_SECONDS_MAX) -> None:
        """Waits until something is so."""
        until = time.monotonic() + seconds
        while not happens():
            assert time.monotonic() < until, f"{what}: not within {seconds} s; see the logs in {self.folder}"
            time.sleep(0.05)
