"""The kinds of faults that are done to a program under fire, each with what undoes it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass

from tests.fire import program_processes
from tests.fire.traps import MOMENTS, POINTS
from tests.fire.under_fire import Target


@dataclass(frozen=True)
class Fault:
    """A kind of fault; `undo` leaves nothing of it but what the program has to recover from."""

    def describe(self) -> str:
        """The fault in a table."""
        raise NotImplementedError

    def is_possible(self, target: Target) -> bool:
        """True if the target has what the fault is done to."""
        return True

    def do(self, target: Target) -> None:
        """Does it; returns when it has happened."""
        raise NotImplementedError

    def undo(self, target: Target) -> None:
        """Ends what goes on."""


@dataclass(frozen=True)
class KillAll(Fault):
    """The driver's machine fails: its Python, Java and workers die at once."""

    def describe(self) -> str:
        return "driver's machine: kill -9 of all its processes"

    def do(self, target: Target) -> None:
        program_processes.kill_session(target.session)


@dataclass(frozen=True)
class Kill(Fault):
    """Processes of one kind die; or one of them."""

    kind: str
    one: bool = False

    def describe(self) -> str:
        return f"kill -9 of {'a' if self.one else 'the'} {self.kind}"

    def do(self, target: Target) -> None:
        found: list[int] = []

        def is_there() -> bool:
            found[:] = target.of_kind(self.kind)
            return bool(found)

        target.wait_for(is_there, f"a {self.kind}")
        program_processes.kill([target.random.choice(found)] if self.one else found)


@dataclass(frozen=True)
class KillAtCommit(Fault):
    """The driver's machine fails just before or just after a commit."""

    point: str
    moment: str

    def describe(self) -> str:
        return f"kill -9 {self.moment} {self.point}"

    def do(self, target: Target) -> None:
        _spring(target, self.point, self.moment, "kill")

    def undo(self, target: Target) -> None:
        (target.folder / "trap.json").unlink(missing_ok=True)


@dataclass(frozen=True)
class HarmTemporary(Fault):
    """A file that a commit is about to name is deleted, or loses its second half."""

    action: str

    def describe(self) -> str:
        return f"{self.action} a temporary file of a commit"

    def do(self, target: Target) -> None:
        _spring(target, "files are named", "before", self.action)

    def undo(self, target: Target) -> None:
        (target.folder / "trap.json").unlink(missing_ok=True)


def _spring(target: Target, point: str, moment: str, action: str) -> None:
    trap, hidden = target.folder / "trap.json", target.folder / "_trap.json"
    hidden.write_text(json.dumps({"point": point, "moment": moment, "action": action}))
    hidden.rename(trap)
    if point == "a checkpoint is opened":
        program_processes.kill_session(target.session)
    target.wait_for(lambda: not trap.exists(), f"{action} {moment} {point}")


@dataclass(frozen=True)
class TakeOver(Fault):
    """The driver stands still, as on a machine that swaps; a second one takes over; then the first one goes on."""

    seconds: float = 15

    def describe(self) -> str:
        return f"driver stopped for {self.seconds:.0f} s while a second one takes over"

    def do(self, target: Target) -> None:
        first = target.session
        stopped = [each.pid for each in program_processes.processes_of(first)]
        _signal(stopped, signal.SIGSTOP)
        process = target.supervisor.replace()
        time.sleep(self.seconds)
        _signal(stopped, signal.SIGCONT)
        target.wait_for(lambda: process.poll() is not None, "the end of the first driver")


@dataclass(frozen=True)
class Disk(Fault):
    """The disk of the output is full, or cannot be written, for a while."""

    how: str
    seconds: float = 8

    def describe(self) -> str:
        return f"disk of the output {self.how} for {self.seconds:.0f} s"

    def is_possible(self, target: Target) -> bool:
        return target.has_disk

    def do(self, target: Target) -> None:
        if self.how == "full":
            with suppress(OSError), (target.disk / "stuffing").open("wb", buffering=0) as stuffing:
                while True:
                    stuffing.write(bytes(1 << 16))
        else:
            # Files that are open for writing keep a disk from becoming read-only.
            until = time.monotonic() + 60
            while subprocess.run(["mount", "-o", "remount,ro", target.disk], capture_output=True).returncode:
                assert time.monotonic() < until, "the disk is always in use"
                time.sleep(0.01)
        time.sleep(self.seconds)

    def undo(self, target: Target) -> None:
        if self.how == "full":
            (target.disk / "stuffing").unlink(missing_ok=True)
        else:
            subprocess.run(["mount", "-o", "remount,rw", target.disk], check=True)


@dataclass(frozen=True)
class SetClock(Fault):
    """The clock of the driver's machine is set to another time of day, and set right after a while."""

    minutes: int
    seconds: float = 15

    def describe(self) -> str:
        how = f"{abs(self.minutes)} min {'ahead' if self.minutes > 0 else 'back'}"
        return f"clock set {how} for {self.seconds:.0f} s"

    def is_possible(self, target: Target) -> bool:
        return target.clock is not None

    def do(self, target: Target) -> None:
        assert target.clock is not None
        target.clock.set_seconds(self.minutes * 60)
        time.sleep(self.seconds)

    def undo(self, target: Target) -> None:
        assert target.clock is not None
        target.clock.set_seconds(0)


@dataclass(frozen=True)
class KillServer(Fault):
    """PostgreSQL dies, and is there again after a while."""

    seconds: float = 5

    def describe(self) -> str:
        return f"PostgreSQL: kill -9, back after {self.seconds:.0f} s"

    def is_possible(self, target: Target) -> bool:
        return target.server is not None

    def do(self, target: Target) -> None:
        target.server.stop(signal.SIGKILL)
        time.sleep(self.seconds)

    def undo(self, target: Target) -> None:
        target.server.start()


@dataclass(frozen=True)
class StopBrokers(Fault):
    """Kafka does not answer for a while."""

    seconds: float = 10

    def describe(self) -> str:
        return f"Kafka's brokers stopped for {self.seconds:.0f} s"

    def is_possible(self, target: Target) -> bool:
        return bool(target.brokers)

    def do(self, target: Target) -> None:
        _signal(target.brokers, signal.SIGSTOP)
        time.sleep(self.seconds)

    def undo(self, target: Target) -> None:
        _signal(target.brokers, signal.SIGCONT)


@dataclass(frozen=True)
class ClusterFault(Fault):
    """A machine of a standalone cluster fails, or is cut off from the others for a while.

    Attributes:
        part: ``master``, ``worker machine`` (with its executors) or ``executor``.
        cut: Whether it is only cut off.
        seconds: How long it is away.
    """

    part: str
    cut: bool = False
    seconds: float = 10

    def describe(self) -> str:
        how = "cut off (stopped)" if self.cut else "kill -9"
        return f"cluster: {self.part} {how}, back after {self.seconds:.0f} s"

    def is_possible(self, target: Target) -> bool:
        return target.cluster is not None

    def do(self, target: Target) -> None:
        target.cluster.harm(self.part, self.cut, target.random)
        time.sleep(self.seconds)

    def undo(self, target: Target) -> None:
        target.cluster.heal()


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


ALWAYS: tuple[Fault, ...] = (
    KillAll(),
    Kill(program_processes.DRIVER),
    Kill(program_processes.JAVA),
    TakeOver(),
)
LOCAL: tuple[Fault, ...] = (
    Kill(program_processes.WORKER, one=True),
    Kill(program_processes.WORKER),
    Kill(program_processes.DAEMON),
    HarmTemporary("delete"),
    HarmTemporary("truncate"),
    Disk("full"),
    Disk("read-only"),
    SetClock(90),
    SetClock(-90),
)
SERVERS: tuple[Fault, ...] = (KillServer(), StopBrokers())
CLUSTER: tuple[Fault, ...] = (
    ClusterFault("executor"),
    ClusterFault("worker machine"),
    ClusterFault("worker machine", cut=True, seconds=15),
    ClusterFault("master"),
    ClusterFault("master", cut=True, seconds=15),
)


def commits(points: list[str]) -> tuple[Fault, ...]:
    """A kill just before and just after each of some points."""
    return tuple(KillAtCommit(point, moment) for point in POINTS if point in points for moment in MOMENTS)
