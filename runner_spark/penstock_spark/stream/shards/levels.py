"""A level of groupings at work in one micro-batch: one of its shards."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from penstock.functions.splitting import CallLimits
from penstock.machines.pane_counts import PaneCounter
from penstock.machines.recorder import Recorder
from penstock.machines.records import Dropped, DropReason, MethodOutput
from penstock.machines.splittable import SplittableMachine
from penstock.machines.stateful import StatefulMachine
from penstock.machines.window_machine import WindowMachine
from penstock.metrics.execution import TALLIES, Snapshot, set_current
from penstock_spark.folding.machine_read import DROPPED
from penstock_spark.plan.hosts import State
from penstock_spark.reports.failure import call_guarded, fail_step, name_failing_step
from penstock_spark.reports.metrics import GroupingReport
from penstock_spark.source_watermarks import Estimator
from penstock_spark.stream.program import GroupingSpec, LevelProgram, WaitingSpec
from penstock_spark.stream.shards.grouping_state import keys_of, machine_for
from penstock_spark.stream.shards.keys import Machine
from penstock_spark.stream.shards.operators import GroupingOperator, Operator
from penstock_spark.stream.shards.shard import SPOKESMAN, Shard
from penstock_spark.stream.shards.waiting import WaitingOperator
from penstock_spark.stream.shards.waiting_state import WaitingGrouping, waiting_label
from penstock_spark.stream.state.header import Header
from penstock_spark.stream.state.page_index import PageNotes
from penstock_spark.stream.state.pages import Store
from penstock_spark.stream.transport.inbox import Received, inbox_of, take_due
from penstock_spark.stream.transport.outbox import Outbox, Row
from penstock_spark.stream.transport.spreading import address
from penstock_spark.stream.transport.stream_stage import StreamStage
from penstock_spark.worker.pushing import Records


class Done(NamedTuple):
    snapshot: Snapshot
    watermarks: dict[str, GroupingReport]  # By grouping, with the number of waiting elements.
    clock_micros: int  # Processing time at the end.


def play_shard(
    program: LevelProgram,
    number: int,
    received: Received,
    header: Header,
    store_of: Callable[[str], Store],
    views: Mapping[int, Any],
) -> Generator[list[Row], None, Done]:
    """One shard of a level in one micro-batch: rows for later levels and for sinks; it changes the header in place."""
    outbox = Outbox((program.number, number), program.shards)
    stage = StreamStage(program, number, outbox, views)
    _hand_on_sources(header, received.estimators, outbox, program)
    recorders, talliers = _recorders(program), _talliers(program)
    inbox = inbox_of(take_due(received, program, header), header.last)
    # Until when everything is committed together.
    through_micros = inbox.logical_times[-1].clock_micros if inbox.logical_times else header.clock_micros
    specs = [stage.owning(spec) for spec in program.groupings]
    groupings = {
        spec.label: _grouping_operator(
            spec,
            stage,
            header,
            store_of,
            recorders.get(spec.label),
            talliers.get(spec.label),
            through_micros,
        )
        for spec in specs
    }
    waiting = {spec.label: _waiting(spec, stage, store_of, groupings) for spec in program.waiting}
    operators: dict[str, Operator] = {**groupings, **waiting}
    shard = Shard(
        number,
        operators,
        header,
        outbox,
        program.micro_batch,
        {origin: Estimator(policy) for origin, policy in program.estimated.items()},
        {
            address(spec.label, side): partial(waiting[spec.label].see, place)
            for spec in program.waiting
            for place, side in enumerate(sorted(spec.sides))
        },
        stage.end_bundle,
    )
    combining = [spec for spec in specs if spec.combine is not None]
    for spec in combining:
        call_guarded(stage.container(spec.label), spec.where, spec.combine.setup)
    with stage.running():
        yield from name_failing_step(shard.run(inbox), stage.where_now)
        waits = {label: operator.waits() for label, operator in waiting.items()}
        shard.save()
    header.is_draining = header.is_draining or received.drains
    for spec in combining:
        call_guarded(stage.container(spec.label), spec.where, spec.combine.teardown)
    for label, recorder in recorders.items():
        stage.container(label).keep(recorder.happenings())
    for label, tallier in talliers.items():
        if tally := tallier.tally():
            stage.container(label).keep(tally, TALLIES)
    if number == SPOKESMAN:
        for message in map(outbox.to_all, program.next):
            message.timeline = sorted(inbox.steps)
            message.ends = inbox.ends & inbox.steps
    told = {}
    for label, watermark_updates in shard.watermarks().items():
        keys, size_bytes, windows = shard.sizes(label)
        waiting_for, awaited = waits.get(label, {}), shard.awaited(label)
        told[label] = GroupingReport(*watermark_updates, waiting_for, keys, size_bytes, awaited, windows)
    yield outbox.take()
    return Done(stage.snapshot(), told, header.clock_micros)


def _hand_on_sources(
    header: Header, told: Iterable[Mapping[str, Any]], outbox: Outbox, program: LevelProgram
) -> None:
    """Reports to each later level, once, how far sources were: a changed program may read one at a new level.

    Without that, what is late would seem to be on time there, until the level has seen as much of the source.
    """
    known = dict(header.estimators)
    for estimators in told:
        for origin, state in estimators.items():
            if origin not in known:
                known[origin] = state
                if origin in program.estimated:
                    header.learn(origin, state)
    for level in program.reaches:
        news = {origin: state for origin, state in known.items() if (origin, level) not in header.told}
        if news and outbox.producer[1] == SPOKESMAN:
            outbox.to_all(level).estimators = news
        header.told.update((origin, level) for origin in news)


def _recorders(program: LevelProgram) -> dict[str, Recorder]:
    drawn = [spec.label for spec in program.groupings if program.recorded and spec.state is not None]
    return {label: Recorder(program.recorded) for label in drawn}


def _talliers(program: LevelProgram) -> dict[str, PaneCounter]:
    """A counter for the panes of each grouping, if the run is watched; a DoFn with state has none."""
    counted = [spec.label for spec in program.groupings if program.watched and spec.state is not None]
    return {label: PaneCounter() for label in counted}


@contextmanager
def _guard(spec: GroupingSpec, stage: StreamStage) -> Iterator[None]:
    set_current(stage.container(spec.label))
    try:
        yield
    except Exception as error:
        fail_step(error, spec.where)


def _grouping_operator(
    spec: GroupingSpec,
    stage: StreamStage,
    header: Header,
    store_of: Callable[[str], Store],
    recorder: Recorder | None,
    tallier: PaneCounter | None,
    through_micros: int,
) -> GroupingOperator:
    container = stage.container(spec.label)

    def count_dropped(dropped: Dropped) -> None:
        container.inc(DROPPED[dropped.reason], dropped.count)

    notes = header.notes.setdefault(spec.label, PageNotes())
    machine: Machine | WindowMachine
    give: Callable[[Iterable[MethodOutput]], Records] | None = None
    if spec.label in stage.splittable:
        code = stage.splittable[spec.label]
        machine = SplittableMachine(code, CallLimits(), through_micros, header.is_draining)
        give = partial(stage.give, code)
    elif spec.state is None:
        step = stage.stateful[spec.label]
        machine = StatefulMachine(step, spec.windowing.allowed_lateness.micros)
        give = partial(stage.give, step)
    else:
        # State stays in the form in which it was begun, whatever the plan says now.
        begun = State.BY_WINDOW if notes.by_window else State.BY_KEY
        state = begun if len(notes) else spec.state
        machine = machine_for(spec.windowing, spec.combine, spec.input_retracts, state)
    return GroupingOperator(
        spec.watermark_inputs,
        spec.readers,
        stage.outbox,
        keys_of(machine, store_of(spec.label), notes, stage.outbox.shards),
        stage.sized_for(spec.edge),
        count_dropped,
        partial(_guard, spec, stage),
        None if spec.late_edge is None else stage.sized_for(spec.late_edge),
        recorder,
        records_watermark=stage.partition == 0,
        give=give,
        tallier=tallier,
    )


def _waiting(
    spec: WaitingSpec,
    stage: StreamStage,
    store_of: Callable[[str], Store],
    groupings: Mapping[str, GroupingOperator],
) -> WaitingOperator:
    """A step that waits for side inputs, alone or in front of its own grouping."""
    container = stage.container(spec.label)
    sides = sorted(spec.sides)
    make: Callable[..., WaitingOperator] = WaitingOperator
    step, label = stage.stateful.get(spec.label) or stage.waiting[spec.label], spec.label
    if spec.is_stateful:
        make, label = partial(WaitingGrouping, grouping=groupings[spec.label]), waiting_label(spec.label)
    return make(
        spec.watermark_inputs,
        spec.readers,
        stage.outbox,
        [step.views[side] for side in sides],
        spec.lateness_micros,
        stage.sized(step),
        lambda count: container.inc(DROPPED[DropReason.EXPIRED], count),
        store_of(label),
        side_watermark_inputs=tuple(spec.sides[side] for side in sides),
    )
