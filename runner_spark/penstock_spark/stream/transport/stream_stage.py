"""The stateless steps of a level at work: wired up once for a micro-batch, with messages as their end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import pyarrow as pa

from penstock.machines.records import MethodOutput
from penstock_spark.plan.stream_plan import WaitingParDo
from penstock_spark.reports.crash_marker import write_down, write_down_rest
from penstock_spark.reports.failure import LEAVING, step_failed
from penstock_spark.stages.stage import Stage, tear_down
from penstock_spark.stream.program import (
    CombiningWriterSpec,
    LevelProgram,
    RestrictionWriterSpec,
    SinkPagesSpec,
    SinkRowsSpec,
    SpreadWriterSpec,
)
from penstock_spark.stream.transport.combining import CombiningWriter
from penstock_spark.stream.transport.spreading import SpreadWriter
from penstock_spark.stream.transport.writer import MessageWriter, Outbox, RestrictionWriter
from penstock_spark.worker.asynchronous import AsyncStep
from penstock_spark.worker.batch import Batch, encode_page
from penstock_spark.worker.batch_sizer import Sized, SizedAnew
from penstock_spark.worker.pardo import DoFnStep
from penstock_spark.worker.program import StepSpec
from penstock_spark.worker.pushing import Consumer, Node, Records
from penstock_spark.worker.splittable import KeptRestrictionStep
from penstock_spark.worker.stateful import StatefulStep
from penstock_spark.worker.views import ChangingContents, Contents
from penstock_spark.worker.writers import SinkWriter


class SinkPages(Node):
    """Turns elements into pages for a sink."""

    def __init__(self, spec: SinkPagesSpec, outbox: Outbox) -> None:
        self._spec = spec
        self._outbox = outbox

    def push(self, batch: Batch) -> Records:
        try:
            self._outbox.add_to_sink(self._spec.level, [encode_page(batch)])
        except Exception as error:
            step_failed(error, self._spec.where)
        return iter(())


class SinkRows(SinkWriter):
    """Encodes elements as the rows that a sink is written with."""

    spec: SinkRowsSpec

    def __init__(self, spec: SinkRowsSpec, outbox: Outbox) -> None:
        super().__init__(spec)
        self._outbox = outbox

    def start_bundle(self) -> None:
        self.start()

    def _out(self, record: pa.RecordBatch | None) -> Records:
        if record is not None:
            (column,) = record.columns
            self._outbox.add_to_sink(self.spec.level, column.cast(pa.binary()).to_pylist())
        return iter(())


class StreamStage(Stage):
    def __init__(self, level: LevelProgram, partition: int, outbox: Outbox, views: Mapping[int, Any]) -> None:
        self.outbox = outbox
        self.waiting: dict[str, DoFnStep] = {}
        self._level = level
        super().__init__(level.stage, partition, dict(views))

    def parts(self) -> Iterable[Any]:
        return (*self._level.groupings, *self._level.waiting, *super().parts())

    def sized(self, consumer: Consumer) -> Sized:
        return SizedAnew(consumer, self._scale)

    def give(self, step: StatefulStep | KeptRestrictionStep, given: Iterable[MethodOutput]) -> Records:
        """Sends on what the machine of a step has had it make."""
        self._scale.begin_anew()
        return step.give(given)

    def _step(self, spec: StepSpec) -> Node:
        if not isinstance(spec.primitive, WaitingParDo):
            return super()._step(spec)
        # Its elements come out of the level's state, and not along an edge.
        step = self.waiting[spec.label] = self._stateless(spec)
        return step

    def _stateless(self, spec: StepSpec) -> DoFnStep:
        step = super()._stateless(spec)
        if isinstance(step, AsyncStep):
            step.outbox = self.outbox
        return step

    def _contents_for(self, spec: StepSpec) -> Mapping[int, Contents]:
        # The contents that are not broadcast change, separately for each step.
        changing = {view.edge: ChangingContents() for view in spec.views if view.edge not in self._contents}
        return {**self._contents, **changing}

    def _writer(self, spec: Any) -> Node:
        if isinstance(spec, SinkPagesSpec):
            return SinkPages(spec, self.outbox)
        if isinstance(spec, SinkRowsSpec):
            return SinkRows(spec, self.outbox)
        if isinstance(spec, SpreadWriterSpec):
            return SpreadWriter(spec, self.outbox, self.partition)
        if isinstance(spec, RestrictionWriterSpec):
            return RestrictionWriter(spec, self.outbox, self.container(spec.label))
        if isinstance(spec, CombiningWriterSpec):
            return CombiningWriter(self.owning(spec), self.outbox, self.container(spec.label))
        return MessageWriter(spec, self.outbox, self.container(spec.label))

    @contextmanager
    def running(self) -> Iterator[Callable[[Records], None]]:
        """Sets everything up, and starts and ends a bundle around the block; records leave a level only by
        messages.
        """
        write_down(self._steps)
        started: list[Any] = []
        failed = True
        try:
            with self._named():
                for node in self.nodes:
                    started.append(node)
                    node.setup()
                for node in self.nodes:
                    node.start_bundle()
            yield self._exhaust
            with self._named():
                for node in self.nodes:
                    self._exhaust(node.finish_bundle())
                for node in self.nodes:
                    self._exhaust(node.finish())
            failed = False
        finally:
            tear_down(started, failed)
            write_down_rest()

    def end_bundle(self) -> Records:
        """Ends a bundle and begins the next: what a DoFn gives at the end takes place before time moves on."""
        for step in self._ending:
            self._scale.begin_anew()
            yield from step.finish_bundle()
        for step in self._ending:
            step.start_bundle()

    @cached_property
    def _ending(self) -> list[DoFnStep]:
        """The steps whose bundles have an end of their own."""
        steps = (node for node in self.nodes if isinstance(node, DoFnStep))
        return [step for step in steps if step.signature.finish_bundle is not None]

    def _exhaust(self, records: Records) -> None:
        with self._named():
            for _ in records:
                raise AssertionError("a step of a level gave rows")

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Surrounds work that may call user code; an exception then names the step."""
        try:
            yield
        except LEAVING as error:
            step_failed(error, self.where_now())
