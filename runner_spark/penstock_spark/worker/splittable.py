"""A splittable DoFn at work in a task: restrictions that are processed to their ends, or call by call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from penstock.error import refusal
from penstock.functions.dofn_parameters import kind_of
from penstock.functions.results import check_result
from penstock.functions.splitting import RestrictionCall, splits_of
from penstock.machines.records import Element, MethodOutput
from penstock.metrics.execution import MetricsContainer, set_current
from penstock.utils import clock
from penstock.utils.windowed_value import unknown_pane
from penstock_spark.reports.failure import fail_step
from penstock_spark.worker.batch import Batch, dumps, loads
from penstock_spark.worker.outputs import Outputs, Row
from penstock_spark.worker.pardo import DoFnStep
from penstock_spark.worker.program import StepSpec
from penstock_spark.worker.pushing import Records
from penstock_spark.worker.steps import are_plain
from penstock_spark.worker.views import Contents

_LOGGER = logging.getLogger(__name__)


class SplittableStep(DoFnStep):
    """A splittable DoFn with its life cycle; its rows have the part of the work after the pane."""

    def __init__(
        self, spec: StepSpec, outputs: Outputs, metrics: MetricsContainer, contents: Mapping[int, Contents]
    ) -> None:
        super().__init__(spec, outputs, metrics, contents)
        self.splits = splits_of(self.dofn)
        self._process: Callable[[Any], Any] | None = None

    def start_bundle(self) -> None:
        super().start_bundle()
        self._process = self._bound(self.dofn.process_signature()).row_call(self.dofn.process)

    def _called(self, row: object) -> Iterable[Any] | None:
        assert self._process is not None, "the bundle has begun"
        results: Iterable[Any] | None = self._process(row)
        if results is not None:
            check_result(results)
        return results


class RestrictionStep(SplittableStep):
    """Processes each restriction to its end; if the work defers its rest, the task waits, and continues."""

    def push(self, batch: Batch) -> Records:
        count = 0
        for (element, restriction), *place in batch.rows():
            row: tuple[Any, ...] = (element, *place)
            for values in self._to_the_end(restriction, row):
                self._keep(values, row)
                count += len(values)
                if count >= self.outputs.sizer.elements:
                    yield from self.outputs.drain()
                    set_current(self.metrics)
                    count = 0
        yield from self.outputs.drain()

    def _keep(self, values: list[Any], row: Row) -> None:
        if are_plain(values, self.outputs):
            self.outputs.keep(None, values, row)
            return
        for value in values:
            self.outputs.add(value, row)

    def _to_the_end(self, stored: object, row: Row) -> Iterator[list[Any]]:
        """The outputs for a restriction, some at a time."""
        try:
            restriction = self.splits.restored(stored)
            state = self.splits.estimator_state(row[0], restriction)
            while True:
                set_current(self.metrics)
                part = RestrictionCall(self.splits, restriction, state, clock.seconds)
                outputs = part.outputs(self._called((*row, part, None)))
                while values := list(islice(outputs, self.outputs.sizer.elements)):
                    yield values
                if part.rest is None:
                    return
                part.watermark_micros()
                restriction, state = part.rest.restriction, part.estimator_state()
                clock.sleep(part.wait_seconds())
        except Exception as error:
            fail_step(error, self.spec.where, row[:1])


class KeptRestrictionStep(SplittableStep):
    """Makes single calls for the machine of a level: its `penstock.machines.splittable.SplittableInvoker`."""

    def push(self, batch: Batch) -> Records:
        raise AssertionError("a step with restrictions is called by its machine")

    def _resolved(self, placeholder: object) -> object:
        # Callbacks belong to a call, and wait in the state for its outputs.
        return (
            placeholder if kind_of(placeholder) == "BundleFinalizerParam" else super()._resolved(placeholder)
        )

    def finish_bundle(self) -> Records:
        for _ in self._call("finish_bundle", self.signature.finish_bundle) or ():
            what = f"{type(self.dofn).__name__}.finish_bundle yields outputs, which a stream could emit twice"
            hint = "yield them in process: a stream keeps the outputs of a splittable DoFn until they are committed"
            fail_step(refusal(RuntimeError, what, where=self.spec.where, hint=hint), self.spec.where)
        self._leave("BundleContextParam")
        return iter(())

    def process(self, element: Element, part: RestrictionCall) -> Iterable[Any] | None:
        value, timestamp_micros, windows, kind = element
        return self._called((value, timestamp_micros, windows, unknown_pane(kind), part, None))

    def finalize(self, callbacks: Sequence[Callable[[], Any]]) -> None:
        for callback in callbacks:
            try:
                callback()
            except Exception:
                _LOGGER.exception("a bundle finalizer failed %s", self.spec.where)

    def seconds(self) -> float:
        return clock.seconds()

    def dumps(self, value: object) -> bytes:
        return dumps(value)

    def loads(self, data: bytes) -> Any:
        return loads(data)

    def give(self, given: Iterable[MethodOutput]) -> Records:
        return self.outputs.route(
            (one.results, (None, one.timestamp_micros, (one.window, *one.more_windows), one.info))
            for one in given
        )
