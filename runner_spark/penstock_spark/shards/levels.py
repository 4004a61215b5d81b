"""A level at work in one micro-batch: recorded sources for level 0, and one shard of any other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import Dropped, DropReason
from penstock.metrics.execution import Snapshot, set_current
from penstock_spark.operators.batch import dumps
from penstock_spark.operators.failure import step_failed
from penstock_spark.operators.inline import inline_batches
from penstock_spark.shards.header import Header
from penstock_spark.shards.packets import Mark, Moment, Packet
from penstock_spark.shards.pages import Store
from penstock_spark.shards.program import GroupingSpec, LevelProgram, RecordedSource
from penstock_spark.shards.shard import Feed, Grouping, Shard
from penstock_spark.shards.stream_stage import StreamStage
from penstock_spark.shards.writer import Outbox

Row = tuple[int, int, bytes]
"""Level, shard, and the pickled packet."""

_DROPPED = {
    DropReason.FINISHED: ("penstock", "elements_dropped_after_last_pane"),
    DropReason.EXPIRED: ("penstock", "elements_dropped_as_late"),
}


def play_sources(program: LevelProgram, batch: int) -> tuple[list[Row], Snapshot]:
    """Level 0 in one micro-batch: rows for the shards, and metrics.

    Args:
        program: The level.
        batch: The number of the micro-batch.
    """
    outbox = Outbox((0, 0), program.shards, program.reaches)
    stage = StreamStage(program, 0, outbox)
    timeline = program.timeline
    with stage.running() as done:
        for step in timeline.of_batch(batch):
            moment = outbox.now = Moment(step, timeline.clocks_micros[step])
            for packet in outbox.packets.values():
                packet.timeline.append(moment)
                if step in timeline.ends:
                    packet.ends.add(moment)
            for source in program.sources:
                _happen(source, step, stage, outbox, done)
    return _rows(outbox), stage.snapshot()


def _happen(
    source: RecordedSource, step: int, stage: StreamStage, outbox: Outbox, done: Callable[[Any], None]
) -> None:
    happening = source.happenings.get(step)
    if isinstance(happening, tuple):
        for elements in inline_batches(happening, 0, 1):
            done(stage.fan(source.edge).push(elements))
    elif happening is not None:
        for level in source.readers:
            for packet in outbox.to_level(level):
                packet.marks.append(Mark(outbox.now, source.origin, 0, happening))


def play_shard(
    program: LevelProgram,
    number: int,
    packets: list[Packet],
    header: Header,
    store_of: Callable[[str], Store],
) -> tuple[list[Row], Snapshot]:
    """One shard of a level in one micro-batch: rows for the next levels, and metrics.

    Args:
        program: The level.
        number: The shard.
        packets: What was sent to it.
        header: What it remembers; changed in place.
        store_of: The page store of a grouping's label.
    """
    outbox = Outbox((program.number, number), program.shards, program.reaches)
    stage = StreamStage(program, number, outbox)
    edges = {spec.label: spec.edge for spec in program.groupings}
    places = {spec.label: spec.where for spec in program.groupings}

    def count_dropped(label: str, dropped: Dropped) -> None:
        stage.container(label).inc(_DROPPED[dropped.reason])

    @contextmanager
    def guard(label: str) -> Iterator[None]:
        set_current(stage.container(label))
        try:
            yield
        except Exception as error:
            step_failed(error, places[label])

    shard = Shard(
        number,
        [_grouping(spec) for spec in program.groupings],
        header,
        store_of,
        lambda label: stage.fan(edges[label]),
        outbox,
        program.micro_batch,
        count_dropped,
        guard,
    )
    with stage.running() as done, _combining(program, guard):
        done(shard.run(packets))
        shard.save()
    for packet in outbox.packets.values():
        packet.timeline = sorted({moment for own in packets for moment in own.timeline})
        packet.ends = {moment for own in packets for moment in own.ends}
    return _rows(outbox), stage.snapshot()


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


def _grouping(spec: GroupingSpec) -> Grouping:
    machine = GroupingMachine(spec.windowing, spec.combine, spec.input_retracts)
    feeds = tuple(Feed(label, producers) for label, producers in spec.feeds)
    return Grouping(spec.label, machine, feeds, spec.readers)


def _rows(outbox: Outbox) -> list[Row]:
    return [(level, shard, dumps(packet)) for (level, shard), packet in outbox.packets.items()]


def own_packets(program: LevelProgram, rows: Iterator[Row], decode: Callable[[bytes], Packet]) -> Any:
    """The packets for a level among some rows, and the rows that pass it by."""
    packets, passing = [], []
    for level, shard, payload in rows:
        if level == program.number:
            packets.append(decode(payload))
        else:
            passing.append((level, shard, payload))
    return packets, passing
