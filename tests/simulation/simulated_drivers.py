"""The drivers of a program: production's own code from the plan on, on a simulated Spark and a simulated disk."""

from __future__ import annotations

import functools
import gc
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from types import SimpleNamespace
from typing import Any

from pyspark import TaskContext

from penstock.io.custom.ranges import RangesOfSource
from penstock.io.parquetio import ParquetSource
from penstock.options.pipeline_options import PipelineOptions
from penstock.options.spark import SparkOptions
from penstock.runners.runner import PipelineState
from penstock.utils import clock, identifiers
from penstock_spark.checkpoints import resharding
from penstock_spark.checkpoints.custody import folder as checkpoint_folder
from penstock_spark.checkpoints.custody import holder, lease
from penstock_spark.files import temporary
from penstock_spark.files.disk_files import DiskFiles
from penstock_spark.formats.text import stream as text_stream
from penstock_spark.formats.text import writer as text_writer
from penstock_spark.live.views import NO_VIEWS
from penstock_spark.lowering import batch_writer, query, readings
from penstock_spark.lowering.context import Context
from penstock_spark.plan.stream_plan import Clock
from penstock_spark.process import identity
from penstock_spark.reports.metrics import GroupingReport, Report
from penstock_spark.reports.reporting import Reporting, reports_of
from penstock_spark.runs import execute_stream, own_record, running
from penstock_spark.session.classic import backend as classic
from penstock_spark.session.classic.backend import Accumulated, ClassicBackend
from penstock_spark.sources.decoding import ByFile
from penstock_spark.sources.scan import StreamScan
from penstock_spark.sources.stream_files import stream_files
from penstock_spark.stages import stage
from penstock_spark.stream import tasks
from penstock_spark.stream.state import segments
from penstock_spark.worker.batch import dumps_with_code
from tests.simulation import simulated_native as native
from tests.simulation import simulated_spark as sim
from tests.simulation import simulated_tables as tables
from tests.simulation.simulated_database import Server
from tests.simulation.simulated_disk import Disk, DisksOfMachines, File, Shard
from tests.simulation.simulated_log import Log, open_log, use
from tests.simulation.simulated_world import CALM, Chances, Process, Threading, World, WorldsClock
from tests.simulation.stream_programs import (
    CHECKPOINT,
    FOLDERS,
    Calls,
    Life,
    Program,
    Shape,
    partition_of,
    plan_of,
)

_PATIENCE_SECONDS = 20.0
"""So long a driver that is to fail may go on."""

_COLLECT_AFTER = 50_000

_SEAL_BYTES = 12
"""Programs have few elements: a list of three small numbers is kept in segments."""

_LONG_ENOUGH_SECONDS = 6.0
"""In that time, each query looks at windows that are over."""

_LONG_SECONDS = 600.0
"""No program of ours needs so long."""


class Machines:
    """The processes of the machines, as each of them sees the others."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._processes: dict[int, Process] = {}

    def started(self, name: str, machine: str) -> Process:
        process = Process(name, machine, 1_000 + 10 * len(self._processes))
        self._processes[process.number] = process
        return process

    def mine(self) -> Process:
        process = self._world.current.process
        assert process is not None
        return process

    def process_of(self, pid: int) -> identity.Process:
        return identity.Process(self.mine().machine, self.mine().number, "then")

    def has_ended(self, other: identity.Process) -> bool | None:
        if other.machine != self.mine().machine:
            return None
        found = self._processes.get(other.pid)
        return found is None or found.is_dead


def open_stream(source: Any, spark: Any, where: str) -> StreamScan:
    """A stream of text files, or of a log: Spark's part is simulated, and everything after it is ours."""
    if isinstance(source.source, RangesOfSource):
        return open_log(source, spark, where)
    if isinstance(source.source, ParquetSource):
        return native.open_columns(source, spark, where)
    text, own = source.source, dict(source.options)
    naming = stream_files(source, text.file_pattern, where).naming()
    folder = text.file_pattern.rpartition("/")[0]
    limit = own.get("maxFilesPerTrigger")
    files = sim.Files(
        folder=folder, limit=None if limit is None else int(limit), has_changes=source.arrival_time is None
    )
    has_rejects = source.has_rejects

    return StreamScan(
        sim.Stream(spark, (files,)), functools.partial(_decoder, text, naming, has_rejects, where)
    )


def _decoder(text: Any, naming: Any, has_rejects: bool, where: str) -> ByFile:
    return text_stream.make_decoder(text, naming, has_rejects, where)


@contextmanager
def simulated(world: World, disk: Disk, machines: Machines, database: Server) -> Iterator[None]:
    """Replaces the operating system, and the few calls of the runner that go to Java."""

    def beats(plan: Any, context: Any, checkpoint: Any, heartbeat: str, keys: Any) -> Any:
        return sim.beats(plan, context, checkpoint, heartbeat, keys, plan.clock is Clock.LIVE)

    local = DisksOfMachines(disk)
    threads = Threading(world)
    without = SimpleNamespace(register=lambda function: None, unregister=lambda function: None)
    stand_ins: list[tuple[Any, str, Any]] = [
        *((DiskFiles, name, method) for name, method in local.stand_ins().items()),
        (text_writer, "open_for_writing", lambda path, compression: Shard(disk, path)),
        (running, "threading", threads),
        (running, "atexit", without),
        (lease, "threading", threads),
        (batch_writer, "threading", threads),
        (holder, "process_of", machines.process_of),
        (temporary, "this_process", lambda: machines.process_of(0)),
        (identity.Process, "has_ended", lambda self: machines.has_ended(self)),
        (TaskContext, "get", staticmethod(lambda: world.current.task)),
        (tasks, "collect_less_often", lambda: None),
        (stage, "collect_less_often", lambda: None),
        (segments, "SEAL_BYTES", _SEAL_BYTES),
        (readings, "open_stream", open_stream),
        (query, "DataFrame", sim.Stream),
        (query, "now_micros", lambda: None),
        (query, "_beats", beats),
        (query, "_commands", sim.commands),
        (classic, "transform_with_state", lambda grouped, processor, schema: _level(grouped, processor)),
        (batch_writer, "pages_of", sim.pages_of),
        (batch_writer, "pages_in", sim.pages_in),
        (batch_writer, "_sizes_by_level", sim.sizes_by_level),
        (batch_writer, "rows_inside", sim.rows_inside),
        (checkpoint_folder, "check_state", lambda spark_place, operators, shards: None),
        (resharding, "DataFrame", tables.Table),
        (resharding, "pages_of_operator", tables.pages_of_operator),
        (resharding, "check_readable", lambda spark, location: None),
        (resharding, "ship_packages", lambda spark: None),
        (resharding, "map_in_arrow", lambda frame, function, schema: frame.mapInArrow(function, schema)),
        (ClassicBackend, "clone", lambda self, conf: tables.quiet_session(self.spark, conf)),
        (ClassicBackend, "reports", lambda self: Accumulated(None)),
        (ClassicBackend, "check_workers", lambda self: None),
        (execute_stream, "WholeFiles", native.FilesLookedAt),
        # No run reads these records, and what a run does with files decides what a seed means.
        (own_record, "begin_record", lambda place, record: ()),
        (own_record, "write_record", lambda place, record: None),
        *native.STAND_INS,
        *database.stand_ins(),
    ]
    with (
        clock.replace_clock(WorldsClock(world)),
        identifiers.replace_identifiers(world.unique),
        _replaced(stand_ins),
    ):
        # As workers do; theirs also freezes what is there.
        gc.set_threshold(max(gc.get_threshold()[0], _COLLECT_AFTER), *gc.get_threshold()[1:])
        yield


@contextmanager
def _replaced(stand_ins: list[tuple[Any, str, Any]]) -> Iterator[None]:
    """Sets attributes, as mocks do, and in a hundredth of their time."""
    before = [(owner, name, vars(owner)[name]) for owner, name, _ in stand_ins]
    try:
        for owner, name, stand_in in stand_ins:
            setattr(owner, name, stand_in)
        yield
    finally:
        for owner, name, own in before:
            setattr(owner, name, own)


@functools.lru_cache(maxsize=1_000)
def _settings(*flags: str) -> SparkOptions:
    return PipelineOptions([*flags]).view_as(SparkOptions)


def _with_state(plan: Any) -> set[str]:
    """The labels of sources and of steps with state."""
    return {step.label for part in (*plan.readings, *plan.levels) for step in part.roots}


def _level(stream: sim.Stream, processor: Any) -> sim.Stream:
    return sim.Stream(stream.session, stream.sources, (*stream.levels, processor), stream.options)


class Driver:
    """One driver program, as its user writes it."""

    def __init__(
        self, simulation: Simulation, name: str, life: Life, takes_over: bool, is_rival: bool
    ) -> None:
        self.simulation, self.life = simulation, life
        self.world = simulation.world
        machine = life.rival_machine if is_rival else life.machine
        self.process = simulation.machines.started(name, machine)
        self.is_rival, self.takes_over = is_rival, takes_over
        self.result: Any = None
        self.refusal: Exception | None = None
        self.outcome = ""  # How its run ended.
        self.has_due_windows = False  # Whether it has left windows alone that were over for long.
        self.shape = simulation.shape_of(life)
        # The files that its sources have to read before they end: those that are there, unless they have ended already.
        self.has_to_read = self._unread()
        if not is_rival and life.fate == "crash":
            self.process.dies_after = int(life.at)
        if not is_rival and life.fate == "full disk":
            self.process.fails_at = int(life.at)
        if not is_rival and life.fate == "stall":
            self.process.stalls_at = int(life.at)
        self.actor = self.world.start(name, self.process, self._run)

    def _unread(self) -> set[str]:
        ended = set()
        for name in self.simulation.disk.names("/checkpoint/control"):
            found = self.simulation.disk.find(f"/checkpoint/control/{name}")
            if "-end-" in name and not name.startswith(".") and isinstance(found, File):
                ended.add(json.loads(found.content)["name"])
        return {name for name in self.files_there() if self.simulation.program.label_of(name) not in ended}

    def files_there(self) -> set[str]:
        """What is there for its sources."""
        label_of, kinds = self.simulation.program.label_of, self.shape.kinds
        return {name for name in self.simulation.arrived if label_of(name) in kinds}

    @property
    def is_over(self) -> bool:
        return self.actor.is_over

    def _run(self) -> None:
        shape = self.shape
        session = sim.Session(self.world, self.simulation.disk, self.process)
        session.range = lambda *numbers: tables.number_table(session)
        session.readStream = native.read_stream(session)
        session.conf.set("spark.sql.shuffle.partitions", str(shape.shards))
        try:
            self.result = self._started(shape, session)
        except Exception as error:
            self.refusal = error
            self.world.note(f"refused: {str(error).splitlines()[0]}")
            self.process.is_dead = True
            return
        # The run before may have ended its sources while this one waited for its turn.
        self.has_to_read &= self._unread()
        self._is_alone()
        self._live()
        self.outcome = self.result.state
        self.world.note(f"ends as {self.outcome}: {self.result._running.failure!r}")
        self.process.is_dead = True

    def _is_alone(self) -> None:
        """Of two drivers, one goes on: the other one was dead, had ended, or gave no sign of life for long."""
        for other in self.simulation.drivers:
            runs = other is not self and other.result is not None and not other.process.is_dead
            has_stalled = other.process.has_stalled or self.process.has_stalled
            if runs and not has_stalled and not other.result._running._over.is_set():
                raise AssertionError(f"{self.process.name} begins while {other.process.name} runs")

    def _started(self, shape: Shape, session: Any) -> Any:
        flags = [f"--checkpoint_location={CHECKPOINT}", "--progress=off"]
        if self.takes_over:
            flags.append("--take_over")
        flags += [f"--drop_state={label}" for label in self.simulation.given_up(self.life.shape)]
        if shape.interval is not None:
            flags.append(f"--trigger_interval={shape.interval}")
        settings = _settings(*flags)
        plan = self.simulation.plan(self.life.shape)
        run = identifiers.identifier()[:12]
        context = Context(
            session,
            run,
            Accumulated(session.metrics),
            shape.shards,
            dumps_with_code,
            reporting=Reporting(b"key"),
            without=shape.switched_off,
        )
        drivers = self.simulation.drivers
        mine = (self.life.shape, drivers.index(self) if self in drivers else -1)
        session.on_begin = lambda number: self.simulation.tried.setdefault(number, []).append(mine)
        session.on_added = lambda added: self.simulation.take_reports(added, mine[1])
        with reports_of(context.reporting):
            return execute_stream._start_query(plan, context, settings, NO_VIEWS)

    def _live(self) -> None:
        life, result = self.life, self.result
        is_over = result._running._over.is_set
        if self.is_rival:
            self._join()
        elif life.fate in ("crash", "full disk", "stall"):
            # A stream without an end may never get as far as that.
            self.world.wait(_PATIENCE_SECONDS, is_over)
            result.cancel()
        elif life.fate == "cancel":
            self.world.wait(life.at, is_over)
            if life.at >= _LONG_ENOUGH_SECONDS and not is_over():
                self.has_due_windows = self.simulation.has_due_windows()
            result.cancel()
        elif life.fate == "finish" and self.simulation.shape_of(life).ends:
            self._join()
        else:
            if life.fate == "finish":
                self.world.wait(None, lambda: self.simulation.is_fed or is_over())
            else:
                self.world.wait(life.at, is_over)
            # A drain that an earlier run has begun goes on: what has come since then came too late.
            is_first = result.state == PipelineState.RUNNING
            result.drain()
            if is_first:
                self.simulation.drained(self)
            self._join()

    def _join(self) -> None:
        try:
            self.result.wait_until_finish()
        except Exception:
            # The result tells.
            return


class Simulation:
    """One program in one world, from the first driver to the end of the last."""

    def __init__(self, seed: int, program: Program, traced: bool = False) -> None:
        self.program = program
        step = 0.0 if program.is_calm else program.clock_step
        self.world = World(seed, CALM if program.is_calm else Chances(), traced)
        self.disk = Disk(self.world)
        self.disk.is_local = Random(f"disk {seed}").random() < 0.5
        self.disk.on_move = self.note_commit
        self.machines = Machines(self.world)
        self.database = Server(self.world, seed, self.world.chances.broken)
        self.log = Log(self.world, seed, self.world.chances.broken)
        self.appended: dict[str, tuple[str, int]] = {}  # The partition and the end of what came, by its name.
        self.calls = Calls()
        self.clock_step = step
        self.is_fed = False
        self.refusal_after_end: Exception | None = None
        self.arrived: dict[str, int] = {}  # The files that are there, and since when.
        self.drains: list[tuple[Any, set[str]]] = []  # What was there when a drain was asked for.
        self.drivers: list[Driver] = []
        # The numbers of the shape and of the driver of each try of a micro-batch.
        self.tried: dict[int, list[tuple[int, int]]] = {}
        # What has been committed under each number, with the numbers of the shape and of the driver.
        self.noted: dict[int, list[tuple[sim.Noted, int, int]]] = {}
        # The watermarks that shards have told, by the micro-batch and the number of the driver.
        self.told: dict[tuple[int, int], list[GroupingReport]] = {}
        self._plans: dict[int, Any] = {}

    def plan(self, number: int) -> Any:
        if number not in self._plans:
            self._plans[number] = plan_of(self.program.shapes[number], self.calls)
        return self._plans[number]

    def given_up(self, number: int) -> list[str]:
        """The sources and the steps with state that a shape does not have, and one before it has."""
        own = _with_state(self.plan(number))
        before = {label for each in range(number) for label in _with_state(self.plan(each))}
        return sorted(before - own)

    @property
    def has_ended(self) -> bool:
        return self.disk.find("/checkpoint/ended.json") is not None

    @property
    def has_stalled(self) -> bool:
        return any(driver.process.has_stalled for driver in self.drivers)

    def has_due_windows(self) -> bool:
        """True if no micro-batch has looked at windows of Spark's own aggregate that are over; nothing arrives."""
        number = sim.last_commit(self.disk, "/checkpoint/spark")
        rests = all(
            self.world.now_micros - micros > _LONG_ENOUGH_SECONDS * 1e6 for micros in self.arrived.values()
        )
        if number < 0 or not rests or not self.program.shapes[0].waits_for_end or self.has_stalled:
            return False
        return sim.watermark_after(self.disk, "/checkpoint/spark", number) > sim.watermark_of(
            self.disk, "/checkpoint/spark", number
        )

    def shape_of(self, life: Life) -> Shape:
        return self.program.shapes[life.shape]

    def take_reports(self, added: dict[Any, Any], driver: int) -> None:
        for (_, level, _), report in added.items():
            if isinstance(report, Report):
                shards = self.told.setdefault((report.batch, driver), [])
                shards += [told for told in report.told.values() if level == 1]

    def note_commit(self, path: str) -> None:
        """Notes what the checkpoint says in the moment in which a micro-batch is done, by Spark or by penstock."""
        found = re.search(r"(/checkpoint/spark(?:-\d+)?)/commits/(\d+)$", path)
        if found is None:
            return
        number = int(found[2])
        # Penstock notes what somebody else has written, and copies what was noted before the folder is written anew.
        tries = self.tried[number]
        own = [each for each in tries if self.drivers[each[1]].process is self.world.current.process]
        if not own and number in self.noted:
            return
        noted = sim.noted(self.disk, found[1], number)
        self.noted.setdefault(number, []).append((noted, *(own or tries)[-1]))

    def drained(self, driver: Driver) -> None:
        if driver.result.state == PipelineState.DRAINING:
            self.drains.append((driver, driver.files_there()))

    def run(self) -> None:
        world = self.world
        with simulated(world, self.disk, self.machines, self.database):
            use(self.log)
            try:
                for folder in FOLDERS.values():
                    self.disk.make(folder)
                self.disk.make("/out")
                world.start("feeder", None, self._feed)
                for number, life in enumerate(self.program.lives):
                    world.wait(life.pause + 0.001)
                    if self._live(f"driver {number}", life):
                        break
                if self.has_ended:
                    last = Driver(self, "driver after the end", Life(), False, False)
                    world.wait(_LONG_SECONDS, lambda: last.is_over)
                    self.refusal_after_end = last.refusal
            finally:
                world.end()
        if world.errors:
            raise world.errors[0]

    def _feed(self) -> None:
        began_micros = self.world.now_micros
        for file in self.program.files:
            wait_micros = began_micros + round(file.seconds * 1e6) - self.world.now_micros
            if wait_micros > 0:
                self.world.wait(wait_micros / 1e6)
            label = self.program.label_of(file.name)
            if self.program.kind_of(label) == "log":
                partition = partition_of(file.name)
                self.log.append(partition, file.lines)
                self.appended[file.name] = (partition, len(self.log.partitions[partition].records))
            else:
                content = "".join(f"{line}\n" for line in file.lines)
                self.disk.put(f"{FOLDERS[label]}/{file.name}", content.encode())
            self.arrived[file.name] = self.world.now_micros
            self.world.note(f"{file.name} arrives")
            if file is self.program.files[len(self.program.files) // 2]:
                self.world.set_by_micros = round(self.clock_step * 1e6)
        self.is_fed = True

    def _live(self, name: str, life: Life) -> bool:
        """One driver, and perhaps a second one; whether a run has come to its end."""
        driver = Driver(self, name, life, False, False)
        drivers = [driver]
        self.drivers.append(driver)
        if life.rival:
            self.world.wait(life.rival_at, lambda: driver.is_over)
            rival = Driver(self, f"rival of {name}", life, life.rival == "takes over", True)
            drivers.append(rival)
            self.drivers.append(rival)
            self.world.wait(_LONG_SECONDS, lambda: driver.is_over)
            assert driver.is_over, "a driver does not end"
            self.world.wait(5.0, lambda: rival.is_over)
            if not rival.is_over:
                # It goes on in the place of the first, until somebody kills it.
                self.world.note("the rival is killed")
                rival.process.is_dead = True
        self.world.wait(_LONG_SECONDS, lambda: all(each.is_over for each in drivers))
        assert all(each.is_over for each in drivers), f"a driver does not end: {name}"
        if any(each.result is not None and not each.outcome for each in drivers):
            # Somebody was killed, and another run has to put things right.
            return self.has_ended
        return any(each.outcome in (PipelineState.DONE, PipelineState.DRAINED) for each in drivers)
