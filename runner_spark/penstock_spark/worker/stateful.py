"""A stateful DoFn at work in a task: its life cycle, its methods as the machine calls them, and where results go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from penstock.elements.bounded_window import BoundedWindow
from penstock.functions.results import check_result
from penstock.functions.signature import MethodSignature
from penstock.functions.userstate import UserStateContext
from penstock.machines.records import Element, MethodOutput
from penstock.machines.stateful import TimerFiring
from penstock.metrics.execution import MetricsContainer, set_current
from penstock.utils.windowed_value import PANE_INFO_UNKNOWN, unknown_pane
from penstock_spark.reports.failure import fail_step
from penstock_spark.worker.batch import Batch
from penstock_spark.worker.outputs import Outputs
from penstock_spark.worker.pardo import DoFnStep
from penstock_spark.worker.program import StepSpec
from penstock_spark.worker.pushing import Records
from penstock_spark.worker.views import Contents

_Call = Callable[[Any], Any]
"""A function from (element, timestamp in microseconds, windows, pane, cells and timers, timer) to outputs."""


class StatefulStep(DoFnStep):
    """A stateful DoFn with its life cycle; the `penstock.machines.stateful.StatefulInvoker` of its machine."""

    def __init__(
        self, spec: StepSpec, outputs: Outputs, metrics: MetricsContainer, contents: Mapping[int, Contents]
    ) -> None:
        super().__init__(spec, outputs, metrics, contents)
        self.accepts_simultaneous = self.dofn.accepts_simultaneous
        self.has_expiration = self.signature.window_expiration is not None
        self._process: _Call | None = None
        self._timers: dict[str, _Call] = {}
        self._expiration: _Call | None = None

    def start_bundle(self) -> None:
        super().start_bundle()
        arguments = self._bound(self.dofn.process_signature())
        self._process = self._guard(arguments.row_call, self.dofn.process)
        self._timers = {timer.name: self._method(method) for timer, method in self.signature.timers}
        if self.signature.window_expiration is not None:
            self._expiration = self._method(self.signature.window_expiration)

    def push(self, batch: Batch) -> Records:
        raise AssertionError("a stateful step is given elements without their key's state")

    def process(
        self, key: object, element: Element, window: BoundedWindow, state: UserStateContext
    ) -> Iterable[Any]:
        value, timestamp_micros, windows, kind = element
        if len(windows) > 1:
            windows = (window,)
        return self._called(
            self._process, ((key, value), timestamp_micros, windows, unknown_pane(kind), state, None)
        )

    def on_timer(
        self, key: object, ring: TimerFiring, window: BoundedWindow, state: UserStateContext
    ) -> Iterable[Any]:
        # The outputs of the timer may have another time, but no other parameter says when it was due.
        row = (key, None), ring.fire_micros, (window,), PANE_INFO_UNKNOWN, state, ring
        return self._called(self._timers.get(ring.name), row)

    def on_window_expiration(
        self, key: object, window: BoundedWindow, state: UserStateContext
    ) -> Iterable[Any]:
        row = (key, None), window.end_micros - 1, (window,), PANE_INFO_UNKNOWN, state, None
        return self._called(self._expiration, row)

    def give(self, given: Iterable[MethodOutput]) -> Records:
        return self.outputs.route(
            (one.results, (None, one.timestamp_micros, (one.window,), one.info)) for one in given
        )

    def _called(self, call: _Call | None, row: tuple[Any, ...]) -> Iterable[Any]:
        # A timer may be left over from a version of the DoFn that had a method for it.
        if call is None:
            return ()
        set_current(self.metrics)
        try:
            results = call(row)
            if results is None:
                return ()
            check_result(results)
            # The state is used while results are made.
            return tuple(results)
        except Exception as error:
            fail_step(error, self.spec.where, row[:1])

    def _method(self, method: MethodSignature) -> _Call:
        parameters = method.parameters
        if all(one.kind and one.passed_by != "keyword" for one in parameters):
            arguments = self._arguments([one.default for one in parameters], ())
        else:
            arguments = self._arguments((), [(one.name, one.default) for one in parameters if one.kind])
        owner = self.dofn.timer_owner()
        call: _Call = self._guard(arguments.row_call, getattr(owner, method.name))
        return call
