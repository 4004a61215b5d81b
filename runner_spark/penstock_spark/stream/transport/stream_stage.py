"""The stateless steps of a level at work: wired up once for a micro-batch, with messages as their end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from penstock.functions.clocked import ClockedDoFn
from penstock.machines.records import MethodOutput
from penstock_spark.plan.stream_plan import WaitingParDo
from penstock_spark.reports.crash_marker import record_no_step, record_steps
from penstock_spark.reports.failure import LEAVING, fail_step
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
from penstock_spark.stream.transport.outbox import (
    MessageWriter,
    Outbox,
    RestrictionWriter,
    SinkPages,
    SinkRows,
)
from penstock_spark.stream.transport.spreading import SpreadWriter
from penstock_spark.worker.asynchronous import AsyncStep
from penstock_spark.worker.batch_sizer import SizedArrivals, SizedConsumer
from penstock_spark.worker.pardo import DoFnStep
from penstock_spark.worker.program import StepSpec
from penstock_spark.worker.pushing import Consumer, Node, Records
from penstock_spark.worker.splittable import KeptRestrictionStep
from penstock_spark.worker.stateful import StatefulStep
from penstock_spark.worker.views import ChangingContents, Contents


class StreamStage(Stage):
    def __init__(self, level: LevelProgram, partition: int, outbox: Outbox, views: Mapping[int, Any]) -> None:
        self.outbox = outbox
        self.waiting: dict[str, DoFnStep] = {}
        self._level = level
        super().__init__(level.stage, partition, dict(views))

    def parts(self) -> Iterable[Any]:
        return (*self._level.groupings, *self._level.waiting, *super().parts())

    def sized(self, consumer: Consumer) -> SizedConsumer:
        return SizedArrivals(consumer, self._scale)

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
        owner = step.dofn.timer_owner()
        if isinstance(owner, ClockedDoFn):
            owner.now_micros = lambda: self.outbox.now.clock_micros
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
        record_steps(self._steps)
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
            record_no_step()

    def end_bundle(self) -> Records:
        """Ends a bundle and begins the next: what a DoFn yields at the end takes place before time moves on."""
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
                raise AssertionError("a step of a level yielded rows")

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Surrounds work that may call user code; an exception then names the step."""
        try:
            yield
        except LEAVING as error:
            fail_step(error, self.where_now())
