"""Checks a program that has been run, whatever has happened to its drivers."""

from __future__ import annotations

import io
import json
import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

import penstock as beam
from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import (
    MAX_MICROS,
    MIN_MICROS,
    AddElement,
    AdvanceClock,
    AdvanceWatermark,
    Dropped,
    DropReason,
    EndMicroBatch,
    EventOutput,
    Pane,
)
from penstock.runners.runner import PipelineState
from penstock_spark.checkpoints.custody.lease import CheckpointInUse
from penstock_spark.files.temporary import MARK
from penstock_spark.folding.machine_read import DROPPED
from penstock_spark.source_watermarks import ENDED, Estimator
from tests.simulation.simulated_disk import File
from tests.simulation.simulated_drivers import Simulation
from tests.simulation.simulated_native import STRANGE
from tests.simulation.simulated_spark import Noted, noted
from tests.simulation.stream_parts import NET, ORACLES, Moment, Part, PlayerThatGoesBack, net_of
from tests.simulation.stream_programs import (
    FOLDERS,
    MODES,
    READ,
    TABLE,
    WINDOWS,
    Shape,
    event_time,
    late_line,
    line_of,
    parsed,
    policy_of,
)

SPARK = "/checkpoint/spark"
_NAME = re.compile(r"(\w+)-batch-(\d{6})-\d{5}-of-\d{5}\Z")


class Fault(AssertionError):
    """Something is not as it has to be."""


_Parts = tuple[tuple[str, tuple[str, ...]], ...]
"""The records that were read of a source, in order, by partition; for files there is one."""
_Read = tuple[_Parts, tuple[str, ...]]
"""That, and the names of the files, or of what came to a log at once if all of it was read."""


@dataclass(frozen=True)
class Committed:
    """A micro-batch that Spark has noted as done, or has only planned."""

    number: int
    clock_micros: int
    reads: tuple[tuple[str, _Parts], ...]  # What it read of each source.
    files: tuple[str, ...]  # The files, or what came to a log at once, if it has read all of it.
    commands: tuple[tuple[str, str], ...]  # The driver's, and their arguments.
    has_beat: bool
    shape: Shape  # Of the driver that committed it.
    driver: int  # The number of that driver.

    @property
    def lines(self) -> tuple[str, ...]:
        # Elements of one moment are in the order of the labels of their sources.
        return tuple(line for _, parts in sorted(self.reads) for _, lines in parts for line in lines)

    @property
    def has_input(self) -> bool:
        """True if it has read anything, be it only that a partition has nothing new."""
        return any(parts for _, parts in self.reads)

    def ends(self, label: str) -> bool:
        """True if a source ends in it."""
        return ("end", label) in self.commands or ("drain", "") in self.commands


def check(simulation: Simulation) -> None:
    """Raises Fault."""
    batches = list(committed(simulation))
    _ends_are_true(simulation, batches)
    _every_file_is_read_once(simulation, batches)
    _no_window_waits_for_data(simulation)
    _a_drain_reads_everything(simulation, batches)
    played = list(_played(simulation, [*batches, *begun_after_the_end(simulation, len(batches))]))
    _sinks_have(simulation, played)
    played = played[: len(batches)]
    _table_has(simulation, played)
    _watermarks_and_drops_are_right(simulation, played)
    _nothing_is_left_over(simulation, batches)
    _no_table_of_a_task_is_left(simulation)


# The events, as the disk shows them.


def _content(simulation: Simulation, path: str) -> str:
    found = simulation.disk.find(path)
    assert isinstance(found, File), path
    if found.content.startswith(b"PAR1"):
        rows = pq.read_table(io.BytesIO(found.content)).to_pylist()
        return "".join(f"{row['key']} {row['value']}\n" for row in rows)
    return str(found.content.decode())


def _of_files(simulation: Simulation, label: str, noted: Noted, source: int) -> _Read:
    """The records of files that a micro-batch has read."""
    files = noted.files[source]
    lines = tuple(
        line
        for name, _ in sorted(files, key=lambda file: (file[1], file[0]))
        for line in _content(simulation, f"{FOLDERS[label]}/{name}").splitlines()
    )
    return ((("", lines),) if lines else ()), tuple(name for name, _ in files)


def _of_log(simulation: Simulation, label: str, noted: Noted, source: int) -> _Read:
    """The records of a log that a micro-batch has read; each partition counts, also one without new records."""
    start, end = noted.starts[source], noted.ends[source]
    before, after = (_position(each) for each in (start, end))
    asks_once = simulation.program.shapes[0].asks_once
    if start == end or (start is None and asks_once):
        # The first micro-batch of a stream that keeps where it begins reads nothing.
        return (), ()
    # Each partition begins with its first record, also one that is new.
    parts = []
    for name, last in sorted(after.items()):
        first = before.get(name, 0)
        parts.append((name, tuple(simulation.log.partitions[name].records[first:last])))
    names = tuple(
        name
        for name, (partition, last) in simulation.appended.items()
        if before.get(partition, 0) < last <= after.get(partition, 0)
    )
    return tuple(parts), names


def _position(offset: Any) -> dict[str, int]:
    position = None if offset is None else offset["position"]
    return position if isinstance(position, dict) else {}


def committed(simulation: Simulation) -> Iterator[Committed]:
    folders: list[int] = []
    for number in range(max(simulation.noted, default=-1) + 1):
        if number not in simulation.noted:
            raise Fault(f"the micro-batch {number} was left out")
        several = simulation.noted[number]
        if len(several) > 1 and not simulation.has_stalled:
            raise Fault(f"the micro-batch {number} was done {len(several)} times")
        entry, shape, driver = _latest(several)
        folders.append(_folder_number(entry))
        yield _read_by(simulation, entry, shape, driver)
    if folders != sorted(folders):
        raise Fault(f"a run goes on where the state was before it was written anew: {folders}")


def begun_after_the_end(simulation: Simulation, number: int) -> Iterator[Committed]:
    """The micro-batch with the next number, if the run came to its end and sinks have something of it.

    Whoever ends a run waits until such a micro-batch is in all sinks, and not until Spark notes it as done.
    """
    if simulation.has_ended and any(number == own for _, own in written(simulation)):
        before, _, _ = _latest(simulation.noted[number - 1])
        yield _read_by(
            simulation, noted(simulation.disk, before.location, number), *simulation.tried[number][-1]
        )


def _read_by(simulation: Simulation, entry: Noted, shape_number: int, driver: int) -> Committed:
    shape = simulation.program.shapes[shape_number]
    has_commands = shape.grouping != "none" and (not shape.host or shape.waits_for_end)
    # The commands come behind the source of Spark's own aggregate, and before other sources.
    first = len(entry.ends) - len(shape.kinds) - shape.waits_for_end
    reads, names_read = [], []
    for source, (label, kind) in enumerate(shape.kinds.items(), first):
        parts, names = (_of_log if kind == "log" else _of_files)(simulation, label, entry, source)
        reads.append((label, parts))
        names_read += names
    commands = []
    if has_commands:
        commands_at = first + 1 if shape.waits_for_end else first - 1
        for name, _ in entry.files[commands_at]:
            command = json.loads(_content(simulation, f"/checkpoint/control/{name}"))
            commands.append((command["command"], command["name"] or ""))
    beat = first - (has_commands and not shape.host) - 1
    return Committed(
        entry.number,
        entry.clock_micros,
        tuple(reads),
        tuple(names_read),
        tuple(commands),
        beat >= 0 and has_commands and (entry.ends[beat] or 0) > (entry.starts[beat] or 0),
        shape,
        driver,
    )


def _latest(several: list[tuple[Noted, int, int]]) -> tuple[Noted, int, int]:
    return max(several, key=lambda each: _folder_number(each[0]))


def _folder_number(noted: Noted) -> int:
    """The number of times that Spark's part of the checkpoint had been rewritten."""
    return int(noted.location.removeprefix(SPARK).removeprefix("-") or 1)


# The expected events.


class Oracle:
    """The meaning of a pipeline: its machine, played without shards, pages, levels and drivers."""

    def __init__(self, shape: Shape) -> None:
        windowing = beam.Windowing(
            WINDOWS[shape.windows],
            shape.trigger_of_windows,
            MODES[shape.accumulation],
            allowed_lateness=shape.lateness,
        )
        combine = beam.CombineFn.from_callable(sum) if shape.grouping == "sum" else None
        self._shape = shape
        self._player = PlayerThatGoesBack(GroupingMachine(windowing, combine), shape.mode)
        self._states: dict[str, Any] = {}  # Of the watermark of each source.
        self._clock_micros = MIN_MICROS
        self._dropped: Counter[DropReason] = Counter()
        self._given_up: Counter[DropReason] = Counter()  # What parts had dropped that are not there any more.
        self._parts: dict[str, Part] = {}
        self.watermark_micros = MIN_MICROS

    def play(self, batch: Committed) -> dict[str, Counter[str]]:
        """The lines of each sink: panes, late elements, and the lines of the parts."""
        is_native = bool(self._shape.host)
        if not (batch.has_input or batch.commands or batch.has_beat or is_native):
            return {}
        fired = self._use(batch.shape)
        clock_micros = self._clock_micros = max(self._clock_micros, batch.clock_micros)
        before_micros = self.watermark_micros
        elements = tuple((*parsed(line), event_time(line) * 1_000_000) for line in batch.lines)
        events: list[Any] = [AddElement(value, micros, clock_micros, key) for key, value, micros in elements]
        watermark_micros = self._watermark(batch)
        if is_native:
            # Spark's watermark is the one of the micro-batch before.
            events += [EndMicroBatch(clock_micros)] * (self._shape.mode == "micro_batch")
            events.append(AdvanceWatermark(before_micros, clock_micros))
        else:
            events.append(AdvanceWatermark(watermark_micros, clock_micros))
            if batch.has_beat:
                events.append(AdvanceClock(clock_micros))
            if self._shape.mode == "micro_batch":
                events.append(EndMicroBatch(clock_micros))
        panes: list[tuple[str, Pane]] = []
        late: Counter[str] = Counter()
        for played in (*fired, *(one for event in events for one in self._player.play(event))):
            if isinstance(played.emitted, Dropped):
                self._dropped[played.emitted.reason] += played.emitted.count
                late[late_line((played.key, played.emitted.element.value))] += 1
            else:
                panes.append((played.key, played.emitted))
        now = Moment(
            elements,
            tuple(panes),
            before_micros,
            self.watermark_micros,
            self.output_micros,
            clock_micros,
            batch.has_beat,
        )
        if self._shape.is_written:
            return {"panes": Counter(f"{key} {pane.value}" for key, pane in panes)}
        has_numbers = not (is_native and self._shape.mode == "micro_batch")
        shown = Counter(
            line_of(key, pane.value, pane.window, pane.info if has_numbers else None) for key, pane in panes
        )
        return {
            "panes": shown,
            "late": late if batch.shape.late_output else Counter(),
            **{name: part.play(now) for name, part in self._parts_of(batch.shape, now).items()},
        }

    def _parts_of(self, shape: Shape, now: Moment) -> dict[str, Part]:
        """Those that are there: one that is new begins, and one that was given up is forgotten."""
        for name in [name for name in self._parts if name not in shape.parts]:
            self._given_up += self._parts.pop(name).dropped
        for name in [name for name in shape.parts if name not in self._parts]:
            self._parts[name] = ORACLES[name]()
            self._parts[name].begin(now)
        return self._parts

    @property
    def dropped(self) -> Counter[DropReason]:
        """The elements that all groupings have dropped."""
        return sum((part.dropped for part in self._parts.values()), self._dropped + self._given_up)

    def _watermark(self, batch: Committed) -> int:
        if self._shape.host:
            # Spark does not keep how far event time has come: with another delay, the watermark waits for new elements.
            times = [event_time(line) * 1_000_000 - batch.shape.delay * 1_000_000 for line in batch.lines]
            own_micros = MAX_MICROS if batch.ends(READ) else max(times, default=MIN_MICROS)
            self.watermark_micros = max(self.watermark_micros, own_micros)
            return self.watermark_micros
        for label, parts in batch.reads:
            estimator = Estimator(policy_of(batch.shape, label))
            before = self._states.get(label) or estimator.start()
            news = estimator.empty_summary if parts else None
            for partition, lines in parts:
                times = [event_time(line) * 1_000_000 for line in lines]
                news = estimator.observe(news, partition, times, self._clock_micros)
            if batch.ends(label):
                news = estimator.merge([news or estimator.empty_summary, ENDED])
            self._states[label] = estimator.advance(before, news, self._clock_micros).state
        self.watermark_micros = self._least(batch.shape)
        return self.watermark_micros

    def _least(self, shape: Shape) -> int:
        """The watermark of all sources: the earliest of theirs."""
        states = [self._states.get(label) for label in shape.kinds]
        return min(MIN_MICROS if state is None else int(state.watermark_micros) for state in states)

    def _use(self, shape: Shape) -> list[EventOutput]:
        """Begins with other sources: for one that is new, the watermark waits; one that was given up is forgotten.

        Returns what fires because the watermark has waited for one that was given up.
        """
        if self._shape.host:
            return []
        self._states = {label: state for label, state in self._states.items() if label in shape.kinds}
        least = self._least(shape)
        if least == self.watermark_micros:
            return []
        self.watermark_micros = least
        for part in self._parts.values():
            part.set_watermark(least)
        return self._player.set_watermark(least)

    @property
    def output_micros(self) -> int:
        """The watermark of the output."""
        hold_micros = self._player.hold_micros
        return self.watermark_micros if hold_micros is None else min(self.watermark_micros, hold_micros)


@dataclass(frozen=True)
class Expected:
    """The expected results of a micro-batch."""

    batch: Committed
    sinks: dict[str, Counter[str]]  # The lines of each.
    dropped: Counter[DropReason]
    output_micros: int  # The watermark of the output afterwards.


def _played(simulation: Simulation, batches: list[Committed]) -> Iterator[Expected]:
    oracle = Oracle(simulation.program.shapes[0])
    for batch in batches:
        before = oracle.dropped.copy()
        found = oracle.play(batch) if batch.shape.grouping != "none" else {}
        sinks = {"panes": Counter(), "late": Counter(), "lines": Counter(), **found}
        if batch.shape.lines_too or batch.shape.grouping == "none":
            sinks["lines"] = Counter(batch.lines)
        yield Expected(batch, sinks, oracle.dropped - before, oracle.output_micros)


# The rules.


def _ends_are_true(simulation: Simulation, batches: list[Committed]) -> None:
    """The last driver comes to its end, and only a run whose windows have all fired says that it has."""
    good = (PipelineState.DONE, PipelineState.DRAINED)
    ended = [driver for driver in simulation.drivers if driver.outcome in good]
    if simulation.has_ended and not ended:
        # It died when it had noted the end.
        ended = [driver for driver in simulation.drivers if driver.result is not None][-1:]
    shape = simulation.program.shapes[0]
    has_groupings = shape.grouping != "none"
    for driver in simulation.drivers:
        failure = driver.result._running.failure if driver.result is not None else None
        is_broken = driver.life.fate == "full disk" and not driver.is_rival
        # Spark would read another value, and the next run reads the file in another way.
        is_broken = is_broken or STRANGE in str(failure)
        # A run that has stood still between its look at the lease and what it does then, may disturb the other one.
        is_disturbed = isinstance(failure, FileNotFoundError) or "Concurrent update" in str(failure)
        # Or it finishes the micro-batch, and tells the log so, while the other one reads it again.
        is_disturbed = is_disturbed or "was removed" in str(failure)
        is_broken = is_broken or (simulation.has_stalled and is_disturbed)
        # A table lets the later run win.
        is_shut_out = "another run has taken over this stream" in str(failure)
        is_broken = is_broken or (driver.process.has_stalled and is_shut_out)
        if (
            driver.outcome == PipelineState.FAILED
            and not is_broken
            and not isinstance(failure, CheckpointInUse)
        ):
            raise Fault(f"{driver.process.name} fails: {failure!r}")
    # One that stood still when its windows had fired may come to its end as well as the one that took over.
    if not ended or (has_groupings and len(ended) > 1 and not simulation.has_stalled):
        outcomes = [(driver.life.fate, driver.outcome, driver.refusal) for driver in simulation.drivers]
        raise Fault(f"not one run has come to its end: {outcomes}")
    if has_groupings != simulation.has_ended:
        raise Fault("the end of the run is not noted")
    if simulation.has_ended and "has ended" not in str(simulation.refusal_after_end):
        raise Fault("a run that has ended continues")
    commands = {name for batch in batches for name, _ in batch.commands}
    has_commands = has_groupings and not (shape.host and not shape.waits_for_end)
    if has_commands and not {"end", "drain"} & commands:
        raise Fault(f"a run is {ended[0].outcome or 'over'} whose sources have not ended")


def _every_file_is_read_once(simulation: Simulation, batches: list[Committed]) -> None:
    read = Counter(name for batch in batches for name in batch.files)
    if any(count > 1 for count in read.values()):
        raise Fault(f"a file was read twice: {read}")


def _no_window_waits_for_data(simulation: Simulation) -> None:
    """Windows of Spark's own aggregate that are over fire, although nothing arrives."""
    for driver in simulation.drivers:
        if driver.has_due_windows:
            raise Fault(f"windows wait for data while {driver.process.name} runs")


def _a_drain_reads_everything(simulation: Simulation, batches: list[Committed]) -> None:
    """The data at the time of a drain's request, or of a finite run's start, is read before the sources end."""
    read = {name: batch.number for batch in batches for name in batch.files}
    drained = [
        (driver, there) for driver, there in simulation.drains if driver.outcome == PipelineState.DRAINED
    ]
    finite = [
        (driver, driver.has_to_read) for driver in simulation.drivers if driver.outcome == PipelineState.DONE
    ]
    label_of = simulation.program.label_of
    for command, runs in {"drain": drained, "end": finite}.items():
        for _, there in runs:
            for name in there:
                argument = label_of(name) if command == "end" else ""
                ends = [batch.number for batch in batches if (command, argument) in batch.commands]
                if name not in read or (ends and read[name] > ends[0]):
                    raise Fault(f"at the {command} of the sources, {name} was not read")


def _sinks_have(simulation: Simulation, played: list[Expected]) -> None:
    """Every exact sink has the results of each micro-batch, once."""
    found = written(simulation)
    for batch, expected in ((each.batch, each.sinks) for each in played):
        for sink, lines in expected.items():
            there = found.pop((sink, batch.number), Counter())
            if not _has_sink(batch.shape, sink) and _was_tried_with(simulation, batch.number, sink):
                # The program was changed between two tries: what the sink that was given up got, stays.
                continue
            if sink in NET:
                there, lines = net_of(there), net_of(lines)
            if there != lines:
                raise Fault(
                    f"{sink} of the micro-batch {batch.number}: too much {sorted((there - lines).elements())}, "
                    f"too little {sorted((lines - there).elements())}"
                )
        calls = simulation.calls.by_number.get(batch.number, [])
        wanted = sorted(expected["panes"].elements())
        if batch.shape.calls_too and wanted and calls[-1:] != [wanted]:
            raise Fault(f"the function got {calls} for the micro-batch {batch.number} and not {wanted}")
    # So does what a sink got with that micro-batch that was given up.
    left = [
        (sink, number)
        for sink, number in found
        if not (
            number < len(played)
            and not _has_sink(played[number].batch.shape, sink)
            and _was_tried_with(simulation, number, sink)
        )
    ]
    if left and simulation.program.shapes[0].grouping != "none":
        # Without groupings, the next run would continue, and replace them.
        raise Fault(f"files of micro-batches that were not committed: {sorted(left)}")


def _table_has(simulation: Simulation, played: list[Expected]) -> None:
    """The table has what all micro-batches give, once."""
    shape = simulation.program.shapes[0]
    if not shape.table_too:
        return
    table = simulation.database.tables.get(TABLE)
    rows = [] if table is None else table.rows
    if shape.grouping == "none":
        # The next run would continue, and not write this micro-batch again.
        rows = [(number, line) for number, line in rows if number is None or number < len(played)]
    there = Counter(line for _, line in rows)
    of = "lines" if shape.grouping == "none" else "panes"
    expected = sum((each.sinks[of] for each in played), Counter[str]())
    if there != expected:
        raise Fault(
            f"the table: too much {sorted((there - expected).elements())}, "
            f"too little {sorted((expected - there).elements())}"
        )


def _no_table_of_a_task_is_left(simulation: Simulation) -> None:
    """A driver drops the tables of its tasks, and those of the drivers that were dead when it began.

    If the database breaks off twice then, the next driver that writes there does.
    """
    good = (PipelineState.DONE, PipelineState.DRAINED)
    number, last = [pair for pair in enumerate(simulation.drivers) if pair[1].result is not None][-1]
    has_written = any(driver == number for tries in simulation.tried.values() for _, driver in tries)
    if last.outcome not in good or not has_written:
        return
    one_by_one = not simulation.has_stalled and not any(life.rival for life in simulation.program.lives)
    database = simulation.database
    for name, table in database.tables.items():
        is_dropped = one_by_one or table.maker is last.process
        is_excused = table.is_of_straggler or database.breaks >= table.breaks_before + 2
        if name != TABLE and is_dropped and not is_excused:
            raise Fault("the table of a task is left over")


def _watermarks_and_drops_are_right(simulation: Simulation, played: list[Expected]) -> None:
    """The watermark of the output is where the oracle has it, and each driver counts what was dropped in its tries."""
    shape = simulation.program.shapes[0]
    if shape.grouping == "none":
        return
    dropped = {each.batch.number: each.dropped for each in played}
    for batch, output_micros in ((each.batch, each.output_micros) for each in played):
        told = simulation.told.get((batch.number, batch.driver), ())
        if told and shape.mode == "streaming":
            leaving = {each.leaving_micros for each in told}
            if min(leaving) != output_micros:
                raise Fault(
                    f"the output's watermark is {min(leaving)} and not {output_micros} "
                    f"after the micro-batch {batch.number}"
                )
    for number, driver in enumerate(simulation.drivers):
        if driver.outcome not in (PipelineState.DONE, PipelineState.DRAINED):
            continue
        tried = [
            each.batch.number
            for each in played
            if (driver.life.shape, number) in simulation.tried[each.batch.number]
        ]
        counts = driver.result._running.snapshot()
        for reason, name in DROPPED.items():
            counted = sum(value for (*_, own), value in counts.items() if own == name[1])
            expected = sum(dropped[each][reason] for each in tried)
            is_fewer = shape.host and 0 < counted < expected
            # Spark adds up the late elements of a group first, and counts what it drops then.
            if counted != expected and not is_fewer:
                raise Fault(f"{name[1]} is {counted} and not {expected}")


def _has_sink(shape: Shape, sink: str) -> bool:
    match sink:
        case "lines":
            return shape.lines_too or shape.grouping == "none"
        case "late":
            return shape.late_output and shape.grouping != "none"
        case part if part in ORACLES:
            return part in shape.parts
    return shape.grouping != "none"


def _was_tried_with(simulation: Simulation, number: int, sink: str) -> bool:
    shapes = [simulation.program.shapes[shape] for shape, _ in simulation.tried[number]]
    return any(_has_sink(shape, sink) for shape in shapes)


def written(simulation: Simulation) -> dict[tuple[str, int], Counter[str]]:
    """The lines of each sink and micro-batch."""
    found: dict[tuple[str, int], Counter[str]] = {}
    for path in simulation.disk.files_below("/out"):
        match = _NAME.match(posixpath.basename(path))
        if match and "/" not in path:
            lines = _content(simulation, f"/out/{path}").splitlines()
            found.setdefault((match[1], int(match[2])), Counter()).update(lines)
    return found


def _nothing_is_left_over(simulation: Simulation, batches: list[Committed]) -> None:
    others = [name for name in simulation.disk.names("/out") if not _NAME.match(name)]
    others = [
        name
        for name in others
        if isinstance(simulation.disk.find(f"/out/{name}"), File) or _is_somebodys(simulation, f"/out/{name}")
    ]
    machines = {driver.process.machine for driver in simulation.drivers}
    if others and len(machines) == 1 and not simulation.has_stalled:
        # The process on another machine may still run; and one that stood still may write and die when
        # all the others have come to their ends.
        raise Fault(f"left over: {others}")


def _is_somebodys(simulation: Simulation, folder: str) -> bool:
    """True if a temporary folder says whose it is; others stay for a month.

    Whoever dies between the last file of one and the folder leaves an empty folder without a mark. Whoever dies while
    it writes the mark leaves a mark that says nothing, and a task that outlives it may write a file beside that.
    """
    names = list(simulation.disk.files_below(folder))
    return any(_content(simulation, f"{folder}/{name}") for name in ([MARK] if MARK in names else names))
