"""Rounds of fire: a stream on real Spark, a fault about every 25 seconds, and a verdict in the end.

A program reads numbers that keep arriving, and writes them as rows, as panes of windows and as steps of a state, into
exact sinks. A supervisor starts the program again when it has died. In the end, a verifier that knows nothing of
penstock compares the sinks with what was put in.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from tests.fire import faults, feeding
from tests.fire.faults import Fault
from tests.fire.fired_program import EPOCH_SECONDS, KEYS, NUMBERS_PER_SECOND, WINDOW_SECONDS
from tests.fire.shifted_clock import shifted_clock
from tests.fire.under_fire import DISK_BYTES, Supervisor, Target
from tests.fire.verifying import Verdict, verify

_HERE = Path(__file__).parent

DRAIN_SECONDS_MAX = 600
EVERY_SECONDS = 25.0


@dataclass(frozen=True)
class Round:
    """A source, its sinks, and where the program runs."""

    source: str
    sinks: tuple[str, ...]
    points: tuple[str, ...]  # The points of commits, at which the driver is killed.
    has_server: bool = (
        False  # Whether PostgreSQL runs, and keeps the panes and the steps, which else are in files.
    )
    is_on_cluster: bool = False


_ALL = ("a micro-batch is written", "a checkpoint is opened")
_TABLES = ("rows are merged", "rows are committed")
ROUNDS = {
    "files": Round(
        "files",
        ("text", "delta"),
        (*_ALL, "files are named", "a Delta table is committed", *_TABLES),
        has_server=True,
    ),
    "kafka": Round(
        "kafka", ("kafka", "iceberg"), (*_ALL, "an Iceberg table is committed", "files are named")
    ),
    "postgres": Round(
        "postgres", ("parquet", "postgres"), (*_ALL, "files are named", *_TABLES), has_server=True
    ),
    "short": Round("files", ("text",), (*_ALL, "files are named")),
    "cluster": Round("files", ("text", "delta"), (*_ALL, "files are named"), is_on_cluster=True),
}


@dataclass(frozen=True)
class Shot:
    """A fault that has happened, and how long the program took to be at work again after its end."""

    fault: str
    after_seconds: float  # Since the program was first at work.
    recovered_seconds: float


@dataclass(frozen=True)
class Report:
    """A round that is over."""

    round: str
    seed: int
    minutes: float
    numbers: int
    starts: int
    micro_batches: int
    shots: tuple[Shot, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def is_good(self) -> bool:
        """True if each number is once in each sink."""
        return all(verdict.is_good for verdict in self.verdicts)


def fire(
    name: str,
    minutes: float,
    seed: int,
    folder: Path,
    chosen: tuple[Fault, ...] = (),
    words: tuple[str, ...] = ("",),
) -> Report:
    """Runs a round.

    Each of the `chosen` faults happens once. Without them, all faults that the source, the sinks and the place allow
    happen again and again, if their description has one of the words in it.
    """
    spec = ROUNDS[name]
    with ExitStack() as stack:
        target, put, settings = _prepared(spec, folder, Random(seed), stack)
        wanted = [each for each in _faults_of(spec) if any(word in each.describe() for word in words)]
        possible = [fault for fault in chosen or wanted if fault.is_possible(target)]
        feeder = feeding.Feeder(put)
        stack.callback(feeder.stop)
        feeder.start()
        target.supervisor.start()
        # A stream that begins with what is there would not notice what a first micro-batch that is cut off has lost.
        target.wait_for(lambda: target.last_done() >= 1, "the first micro-batches")
        shots = _shots(target, possible, minutes, once=bool(chosen))
        count = feeder.stop()
        (folder / "drain").touch()
        target.wait_for(target.supervisor.is_done.is_set, "the end of the drain", DRAIN_SECONDS_MAX)
        verdicts = verify(settings, count)
        return Report(
            name,
            seed,
            minutes,
            count,
            target.supervisor.starts,
            target.last_done() + 1,
            tuple(shots),
            tuple(verdicts),
        )


def _faults_of(spec: Round) -> tuple[Fault, ...]:
    if spec.is_on_cluster:
        return (*faults.ALWAYS, *faults.commits(list(spec.points)), *faults.CLUSTER)
    return (*faults.ALWAYS, *faults.LOCAL, *faults.SERVERS, *faults.commits(list(spec.points)))


def _shots(target: Target, possible: list[Fault], minutes: float, once: bool) -> list[Shot]:
    """Does one fault after the other, all kinds in a new order again and again, until the time is over."""
    shots: list[Shot] = []
    start = time.monotonic()
    order: list[Fault] = []
    while time.monotonic() < start + minutes * 60 and not (once and len(shots) == len(possible)):
        begun = time.monotonic()
        order = order or target.random.sample(possible, len(possible))
        fault = order.pop()
        try:
            fault.do(target)
        finally:
            fault.undo(target)
        ended, last = time.monotonic(), target.last_begun()
        target.wait_for(lambda last=last: target.last_done() > last, f"work after {fault.describe()}")  # type: ignore[misc]
        shots.append(Shot(fault.describe(), begun - start, time.monotonic() - ended))
        print(
            f"{shots[-1].after_seconds:7.0f} s  {fault.describe()}: {shots[-1].recovered_seconds:.1f} s",
            flush=True,
        )
        if not once:
            time.sleep(max(0.0, begun + target.random.uniform(0.5, 1.5) * EVERY_SECONDS - time.monotonic()))
    return shots


def _prepared(
    spec: Round, folder: Path, random: Random, stack: ExitStack
) -> tuple[Target, Any, dict[str, Any]]:
    """The target, what puts numbers into its source, and what the verifier has to know."""
    disk = folder / "disk"
    disk.mkdir()
    has_disk = not spec.is_on_cluster and _mounted(disk, stack)
    for sink in (*spec.sinks, "panes", "steps"):
        (disk / sink).mkdir(exist_ok=True)
    settings: dict[str, Any] = {
        "folder": str(folder),
        "source": spec.source,
        "sinks": spec.sinks,
        "traps": True,
        "keys": KEYS,
        "numbers_in_window": WINDOW_SECONDS * NUMBERS_PER_SECOND,
        "first_window": EPOCH_SECONDS,
        "window_seconds": WINDOW_SECONDS,
    }
    server, brokers = None, []
    if spec.has_server:
        from tests.connectors.postgres_server import postgres

        server = stack.enter_context(postgres("wal_level=logical"))
        settings["url"] = server.url
    if spec.source == "kafka":
        source, process = stack.enter_context(_mock_brokers())
        settings["brokers"] = source
        brokers.append(process)
    if "kafka" in spec.sinks:
        from tests.connectors.brokers import Tansu

        tansu = Tansu()
        stack.callback(tansu.stop)
        tansu.make("rows", 2)
        settings["target_brokers"] = tansu.servers
        brokers.append(tansu._process.pid)
    if "iceberg" in spec.sinks:
        from tests.connectors.iceberg_tables import make_namespace

        settings["catalog"] = make_namespace(disk / "iceberg")
    (folder / "settings.json").write_text(json.dumps(settings))
    put = _putter(spec, folder, server, settings)
    flags: tuple[str, ...] = ("--master=local[2,4]",)
    clock = None if spec.is_on_cluster else shifted_clock(folder)
    environment = {**os.environ, "PENSTOCK_QUIET": "1", **(clock.environment() if clock else {})}
    cluster = None
    if spec.is_on_cluster:
        from tests.cluster.standalone import standalone_cluster

        (folder / "cluster").mkdir()
        cluster = stack.enter_context(standalone_cluster(folder / "cluster"))
        flags, environment = (), cluster.driver_environment()
    supervisor = Supervisor(folder, flags, environment)
    stack.callback(supervisor.stop)
    target = Target(folder, supervisor, random, has_disk, server, clock, brokers, cluster)
    return target, put, settings


def _putter(spec: Round, folder: Path, server: Any, settings: dict[str, Any]) -> Any:
    match spec.source:
        case "files":
            return feeding.into_files(folder / "in")
        case "postgres":
            return feeding.into_table(server)
        case _:
            return feeding.into_topic(settings["brokers"])


def _mounted(disk: Path, stack: ExitStack) -> bool:
    """Puts a small disk there; False if this user may not."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", disk]
    if subprocess.run(command, capture_output=True).returncode:
        return False
    stack.callback(subprocess.run, ["umount", "-l", disk], check=True)
    return True


@contextmanager
def _mock_brokers() -> Iterator[tuple[str, int]]:
    command = [sys.executable, str(_HERE / "mock_brokers.py")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip(), process.pid
    finally:
        process.kill()
        process.wait()


def table_of(reports: list[Report]) -> list[str]:
    """A line for each kind of fault, and one for each sink."""
    lines = ["| fault | times | median s | longest s |", "| --- | ---: | ---: | ---: |"]
    kinds: dict[str, list[float]] = {}
    for report in reports:
        for shot in report.shots:
            kinds.setdefault(shot.fault, []).append(shot.recovered_seconds)
    for kind, seconds in sorted(kinds.items()):
        lines.append(f"| {kind} | {len(seconds)} | {median(seconds):.1f} | {max(seconds):.1f} |")
    lines += ["", "| sink | found | lost | doubled | wrong |", "| --- | ---: | ---: | ---: | ---: |"]
    for report in reports:
        for verdict in report.verdicts:
            numbers = (verdict.found, verdict.lost, verdict.doubled, verdict.wrong)
            lines.append(f"| {report.round}: {verdict.sink} | {' | '.join(map(str, numbers))} |")
    return lines
