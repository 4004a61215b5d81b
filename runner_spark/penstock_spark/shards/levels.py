"""A level of groupings at work in one micro-batch: one of its shards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import starmap
from typing import Any, NamedTuple

from penstock.figures.happenings import Recorder
from penstock.machines.records import Dropped, DropReason
from penstock.machines.stateful import StatefulMachine
from penstock.metrics.execution import Snapshot, set_current
from penstock_spark.metrics import Told
from penstock_spark.operators.batch import Batch
from penstock_spark.operators.failure import step_failed
from penstock_spark.operators.machine_read import DROPPED
from penstock_spark.operators.pushing import Records
from penstock_spark.shards.grouping_state import keys_of, machine_for
from penstock_spark.shards.header import Header
from penstock_spark.shards.inbox import hold_back, inbox_of, moments_of, received
from penstock_spark.shards.notices import Command, commanded
from penstock_spark.shards.packets import Moment, Packet
from penstock_spark.shards.page_notes import PageNotes
from penstock_spark.shards.pages import Store
from penstock_spark.shards.program import GroupingSpec, LevelProgram, WaitingSpec
from penstock_spark.shards.shard import Shard
from penstock_spark.shards.sources import EARLIEST, Row, rows_of
from penstock_spark.shards.spreading import address
from penstock_spark.shards.stream_stage import StreamStage
from penstock_spark.shards.tables import Feed, Grouping, GroupingTable, Table
from penstock_spark.shards.waiting import WaitingTable
from penstock_spark.shards.waiting_state import WaitingGrouping, waiting_label
from penstock_spark.shards.writer import Outbox
from penstock_spark.source_watermarks import Estimator
from penstock_spark.stream_plan import Clock


class Done(NamedTuple):
    """What a shard has done in one micro-batch.

    Attributes:
        rows: For the next levels and for sinks.
        snapshot: The metrics.
        watermarks: Where the watermarks are, by grouping, and what waits.
        clock_micros: Processing time at the end.
    """

    rows: list[Row]
    snapshot: Snapshot
    watermarks: dict[str, Told]
    clock_micros: int


def play_shard(
    program: LevelProgram,
    number: int,
    packets: list[Packet],
    commands: list[Command],
    header: Header,
    store_of: Callable[[str], Store],
    views: Mapping[int, Any],
) -> Done:
    """One shard of a level in one micro-batch.

    Args:
        program: The level.
        number: The shard.
        packets: What was sent to it.
        commands: What the driver asks for.
        header: What it remembers; changed in place.
        store_of: The page store of a grouping's label.
        views: Broadcasts of side inputs, by edge.
    """
    outbox = Outbox((program.number, number), program.shards, program.reaches)
    stage = StreamStage(program, number, outbox, views)
    recorders = _recorders(program)
    groupings = {
        spec.label: _grouping_table(spec, stage, header, store_of, recorders.get(spec.label))
        for spec in program.groupings
    }
    waiting = {spec.label: _waiting(spec, stage, store_of, groupings) for spec in program.waiting}
    tables: dict[str, Table] = {**groupings, **waiting}
    shard = Shard(
        number,
        tables,
        header,
        outbox,
        program.micro_batch,
        {origin: Estimator(policy) for origin, policy in program.estimated.items()},
        {
            address(spec.label, side): partial(waiting[spec.label].see, place)
            for spec in program.waiting
            for place, side in enumerate(sorted(spec.sides))
        },
    )
    inbox = inbox_of(_due(program, packets, commands, header), header.last)
    with _combining(program, stage), stage.running() as done:
        done(shard.run(inbox))
        waits = {label: table.waits() for label, table in waiting.items()}
        shard.save()
    for label, recorder in recorders.items():
        stage.container(label).keep(recorder.happenings())
    timeline = sorted(inbox.steps)
    for packet in outbox.packets.values():
        packet.timeline = timeline
        packet.ends = {*inbox.ends}.intersection(timeline)
    told = {label: Told(*marks, waits.get(label, {})) for label, marks in shard.watermarks().items()}
    return Done(rows_of(outbox, stage, number), stage.snapshot(), told, header.clock_micros)


def _recorders(program: LevelProgram) -> dict[str, Recorder]:
    """What writes down what happens at groupings, if that is wanted."""
    drawn = [spec.label for spec in program.groupings if program.recorded and not spec.is_stateful]
    return {label: Recorder(program.recorded) for label in drawn}


def _due(
    program: LevelProgram, packets: list[Packet], commands: list[Command], header: Header
) -> list[Packet]:
    """The packets of what takes place in this micro-batch.

    Where time goes by ticks, the last tick may go on in the next micro-batch, and so it waits until a later one begins,
    or until no more will come.
    """
    packets = received(packets, header)
    moments = moments_of(packets)
    if header.last is not None:
        moments.add(header.last)
    if commands:
        clock_micros = commands[0].clock_micros
        moment = Moment(clock_micros, clock_micros)
        if program.clock is not Clock.LIVE:
            moment = max(moments, default=EARLIEST)
        packets.insert(0, commanded(commands, program, moment))
    if program.clock is not Clock.TICKS or any(command.ends_input for command in commands):
        return packets
    if program.number == 1:
        complete = moments - {max(moments, default=None)}
    else:
        complete = moments_of(packet for packet in packets if packet.producer[0] == program.number - 1)
    return hold_back(packets, header, max(complete, default=None))


@contextmanager
def _guard(spec: GroupingSpec, stage: StreamStage) -> Iterator[None]:
    """Surrounds the work of a grouping, which may be the user's code."""
    set_current(stage.container(spec.label))
    try:
        yield
    except Exception as error:
        step_failed(error, spec.where)


@contextmanager
def _combining(program: LevelProgram, stage: StreamStage) -> Iterator[None]:
    """Sets the CombineFns of a level up, and tears them down."""
    combining = [spec for spec in program.groupings if spec.combine is not None]
    for spec in combining:
        with _guard(spec, stage):
            spec.combine.setup()
    yield
    for spec in combining:
        with _guard(spec, stage):
            spec.combine.teardown()


def _grouping_table(
    spec: GroupingSpec,
    stage: StreamStage,
    header: Header,
    store_of: Callable[[str], Store],
    recorder: Recorder | None,
) -> GroupingTable:
    container = stage.container(spec.label)

    def count_dropped(dropped: Dropped) -> None:
        container.inc(DROPPED[dropped.reason], dropped.count)

    notes = header.notes.setdefault(spec.label, PageNotes())
    grouping = _grouping(spec, stage, notes)
    return GroupingTable(
        grouping,
        keys_of(grouping.machine, store_of(spec.label), notes, stage.outbox.shards),
        stage.fan(spec.edge),
        stage.outbox,
        count_dropped,
        partial(_guard, spec, stage),
        None if spec.late_edge is None else stage.fan(spec.late_edge),
        recorder,
        records_watermark=stage.partition == 0,
    )


def _grouping(spec: GroupingSpec, stage: StreamStage, notes: PageNotes) -> Grouping:
    feeds = tuple(starmap(Feed, spec.feeds))
    if spec.is_stateful:
        step = stage.stateful[spec.label]
        stateful = StatefulMachine(step, spec.windowing.allowed_lateness.micros)
        return Grouping(spec.label, stateful, feeds, spec.readers, step.give)
    use_columns = spec.may_use_columns if not len(notes) else notes.by_window
    machine = machine_for(spec.windowing, spec.combine, spec.input_retracts, use_columns)
    return Grouping(spec.label, machine, feeds, spec.readers)


def _waiting(
    spec: WaitingSpec,
    stage: StreamStage,
    store_of: Callable[[str], Store],
    groupings: Mapping[str, GroupingTable],
) -> WaitingTable | WaitingGrouping:
    """A step that waits for side inputs, by itself or before the grouping that it also is."""
    container = stage.container(spec.label)
    sides = sorted(spec.sides)

    def make(push: Callable[[Batch], Records]) -> WaitingTable:
        return WaitingTable(
            tuple(starmap(Feed, spec.feeds)),
            tuple(Feed(*spec.sides[side]) for side in sides),
            spec.readers,
            [stage.views_of(spec.label)[side] for side in sides],
            spec.lateness_micros,
            push,
            stage.outbox,
            lambda count: container.inc(DROPPED[DropReason.EXPIRED], count),
            store_of(waiting_label(spec.label) if spec.is_stateful else spec.label),
        )

    if spec.is_stateful:
        return WaitingGrouping(make, groupings[spec.label], stage.outbox)
    return make(stage.waiting[spec.label].push)
