"""A level of groupings at work in one micro-batch: one of its shards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

from penstock.figures.happenings import Recorder
from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import Dropped
from penstock.machines.stateful import StatefulMachine
from penstock.metrics.execution import Snapshot, set_current
from penstock_spark.operators.failure import step_failed
from penstock_spark.operators.machine_read import DROPPED
from penstock_spark.shards.header import Header
from penstock_spark.shards.inbox import hold_back, inbox_of, moments_of, received
from penstock_spark.shards.notices import Command, commanded
from penstock_spark.shards.packets import Moment, Packet
from penstock_spark.shards.pages import Store
from penstock_spark.shards.program import GroupingSpec, LevelProgram
from penstock_spark.shards.shard import Feed, Grouping, Shard
from penstock_spark.shards.sources import EARLIEST, Row, rows_of
from penstock_spark.shards.stream_stage import StreamStage
from penstock_spark.shards.writer import Outbox
from penstock_spark.source_watermarks import Estimator
from penstock_spark.stream_plan import Clock


class Done(NamedTuple):
    """What a shard has done in one micro-batch.

    Attributes:
        rows: For the next levels and for sinks.
        snapshot: The metrics.
        watermarks: Where the watermarks of each grouping's input and output are, in microseconds.
        clock_micros: Processing time at the end.
    """

    rows: list[Row]
    snapshot: Snapshot
    watermarks: dict[str, tuple[int, int]]
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
    specs = {spec.label: spec for spec in program.groupings}

    def count_dropped(label: str, dropped: Dropped) -> None:
        stage.container(label).inc(DROPPED[dropped.reason], dropped.count)

    @contextmanager
    def guard(label: str) -> Iterator[None]:
        set_current(stage.container(label))
        try:
            yield
        except Exception as error:
            step_failed(error, specs[label].where)

    recorders = _recorders(program)
    shard = Shard(
        number,
        [_grouping(spec, stage) for spec in program.groupings],
        header,
        store_of,
        lambda label: stage.fan(specs[label].edge),
        outbox,
        program.micro_batch,
        count_dropped,
        guard,
        {origin: Estimator(policy) for origin, policy in program.estimated.items()},
        {spec.label: stage.fan(spec.late_edge) for spec in program.groupings if spec.late_edge is not None},
        recorders,
    )
    inbox = inbox_of(_due(program, packets, commands, header), header.last)
    with _combining(program, guard), stage.running() as done:
        done(shard.run(inbox))
        shard.save()
    for label, recorder in recorders.items():
        stage.container(label).keep(recorder.happenings())
    timeline = sorted(inbox.steps)
    for packet in outbox.packets.values():
        packet.timeline = timeline
        packet.ends = {*inbox.ends}.intersection(timeline)
    return Done(rows_of(outbox, stage, number), stage.snapshot(), shard.watermarks(), header.clock_micros)


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
def _combining(program: LevelProgram, guard: Callable[[str], AbstractContextManager[None]]) -> Iterator[None]:
    """Sets the CombineFns of a level up, and tears them down."""
    combining = [spec for spec in program.groupings if spec.combine is not None]
    for spec in combining:
        with guard(spec.label):
            spec.combine.setup()
    yield
    for spec in combining:
        with guard(spec.label):
            spec.combine.teardown()


def _grouping(spec: GroupingSpec, stage: StreamStage) -> Grouping:
    feeds = tuple(Feed(label, producers) for label, producers in spec.feeds)
    if spec.is_stateful:
        step = stage.stateful[spec.label]
        stateful = StatefulMachine(step, spec.windowing.allowed_lateness.micros)
        return Grouping(spec.label, stateful, feeds, spec.readers, step.give)
    machine = GroupingMachine(spec.windowing, spec.combine, spec.input_retracts)
    return Grouping(spec.label, machine, feeds, spec.readers)
