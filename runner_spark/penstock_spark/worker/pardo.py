"""A DoFn at work in a task: its life cycle, its arguments, and the choice of the loop that runs it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from penstock.elements.tagged_output import TaggedOutput
from penstock.error import refusal
from penstock.functions.dofn import DoFn, FilterDoFn, FlatMapDoFn, FlatMapTupleDoFn, MapDoFn, MapTupleDoFn
from penstock.functions.dofn_parameters import DoFnParam, kind_of
from penstock.functions.results import check_result
from penstock.functions.signature import MethodSignature, bind, read_checked_signature
from penstock.graph import SideInputSlot
from penstock.metrics.execution import MetricsContainer, set_current
from penstock.scalars.row_functions import Stamping
from penstock.utils.windowed_value import WindowedValue
from penstock_spark.reports.failure import call_guarded, fail_step
from penstock_spark.worker.arguments import Arguments, needs_row
from penstock_spark.worker.batch import GLOBAL, MIN_MICROS, Batch
from penstock_spark.worker.batch_dofns import BatchLoop, BatchOutputs, Converter, YieldingBatches
from penstock_spark.worker.outputs import Outputs
from penstock_spark.worker.program import StepSpec
from penstock_spark.worker.pushing import Consumer, Node, Records
from penstock_spark.worker.steps import (
    FilterStep,
    FlatMapStep,
    MapStep,
    StampStep,
    check_complete,
    find_last_read,
    push_mapped,
)
from penstock_spark.worker.views import Contents, View

_LOGGER = logging.getLogger(__name__)
_NO_ROW = (None, MIN_MICROS, GLOBAL, None)


class DoFnStep(Node):
    """A DoFn with its life cycle; a loop that is chosen at the first batch does the work of each batch."""

    def __init__(
        self, spec: StepSpec, outputs: Outputs, metrics: MetricsContainer, contents: Mapping[int, Contents]
    ) -> None:
        assert spec.primitive is not None
        self.spec = spec
        self.outputs = outputs
        self.metrics = metrics
        self.dofn: DoFn = spec.primitive.dofn  # type: ignore[union-attr]
        self.signature = read_checked_signature(self.dofn)
        self._guard = partial(call_guarded, metrics, spec.where)
        self.views = [View(view, contents[view.edge]) for view in spec.views]
        self._contexts: dict[DoFnParam, Any] = {}
        self._managers: dict[str, list[Any]] = {"SetupContextParam": [], "BundleContextParam": []}
        self._finalizers: list[Any] = []
        self._loop: Consumer | None = None

    def setup(self) -> None:
        """Enters the contexts of the DoFn's life and calls ``setup``."""
        self._enter("SetupContextParam")
        self._call("setup", self.signature.setup)

    def start_bundle(self) -> None:
        """Enters the contexts of the bundle and calls ``start_bundle``."""
        self._enter("BundleContextParam")
        self._loop = None
        if self._call("start_bundle", self.signature.start_bundle) is not None:
            what = f"{type(self.dofn).__name__}.start_bundle should not output any elements"
            hint = "return nothing, do not yield, and emit outputs in process or finish_bundle"
            fail_step(refusal(RuntimeError, what, where=self.spec.where, hint=hint), self.spec.where)

    def push(self, batch: Batch) -> Records:
        if self._loop is None:
            self._loop = self._choose_loop()
        yield from self._loop.push(batch)

    def finish_bundle(self) -> Records:
        """Calls ``finish_bundle``, sends its outputs on, and leaves the bundle's contexts."""
        results = self._call("finish_bundle", self.signature.finish_bundle)
        if results is not None:
            yield from self.outputs.route([(self._windowed(results), _NO_ROW)])
        self._leave("BundleContextParam")

    def _windowed(self, results: Iterable[Any]) -> Iterator[Any]:
        check_result(results)
        for result in map(self.outputs.own, results):
            inner = result.value if isinstance(result, TaggedOutput) else result
            if not isinstance(inner, WindowedValue):
                raise refusal(
                    TypeError,
                    f"finish_bundle yielded a value of type {type(inner).__name__}, without timestamp or window",
                    hint="yield WindowedValue(value, timestamp, windows)",
                )
            yield result

    def finish(self) -> Records:
        """Runs the callbacks of bundle finalizers: the output of a bounded task is complete.

        They are best effort, as in Beam: one that raises is logged, and what the bundle has given stays.
        """
        for finalizer in self._finalizers:
            for callback in finalizer.callbacks:
                try:
                    self._guard(callback)
                except Exception:
                    _LOGGER.exception("a bundle finalizer failed %s", self.spec.where)
        return iter(())

    def teardown(self) -> None:
        """Calls ``teardown`` and leaves all contexts, also after an error."""
        try:
            self._call("teardown", self.signature.teardown)
        finally:
            self._leave("BundleContextParam")
            self._leave("SetupContextParam")

    def _call(self, name: str, method: MethodSignature | None) -> Any:
        if method is None:
            return None
        kwargs = {p.name: self._contexts[p.default] for p in method.parameters if p.default in self._contexts}
        return self._guard(getattr(self.dofn, name), **kwargs)

    def _enter(self, kind: str) -> None:
        for parameter in self.signature.contexts(kind):
            manager, value = self._guard(parameter.create_and_enter)
            self._managers[kind].append(manager)
            self._contexts[parameter] = value

    def _leave(self, kind: str) -> None:
        while self._managers[kind]:
            self._guard(self._managers[kind].pop().__exit__, None, None, None)

    def _resolved(self, placeholder: Any) -> object:
        """A constant if the value stays the same for the whole bundle; else the placeholder."""
        if isinstance(placeholder, SideInputSlot) and self.views[placeholder.index].is_constant:
            return self._guard(self.views[placeholder.index].of, GLOBAL[0])
        kind = kind_of(placeholder)
        if kind in self._managers:
            return self._contexts[placeholder]
        if kind == "BundleFinalizerParam":
            self._finalizers.append(placeholder())
            return self._finalizers[-1]
        return placeholder

    def _bound(self, signature: MethodSignature) -> Arguments:
        """The arguments of a call of a method: what the transform was given, in the order of the signature."""
        primitive: Any = self.spec.primitive
        call = bind(signature, primitive.args, dict(primitive.kwargs))
        return self._arguments(call.args, call.kwargs)

    def _arguments(self, args: Iterable[Any], kwargs: Iterable[tuple[str, Any]]) -> Arguments:
        return Arguments(
            tuple(map(self._resolved, args)),
            tuple((name, self._resolved(value)) for name, value in kwargs),
            self.views,
        )

    def _choose_loop(self) -> Consumer:
        batches, batch_signature = self.spec.batches, self.signature.process_batch
        if batches is None:
            return self._loop_of(self.dofn.process_signature(), self.dofn.process, None)
        single = None
        if self.dofn.defines_process:
            outputs = batches.yields if self.dofn.process_yields_batches else None
            single = self._loop_of(self.dofn.process_signature(), self.dofn.process, outputs)
        if batch_signature is None or batches.takes is None:
            assert single is not None
            return single
        outputs = None if self.dofn.process_batch_yields_elements else batches.yields
        whole = self._loop_of(batch_signature, self.dofn.process_batch, outputs)
        return BatchLoop(whole, single, batches.takes, self.metrics, self.spec.where, self.spec.whole_batches)

    def _loop_of(
        self, signature: MethodSignature, method: Callable[..., Any], made: Converter | None
    ) -> Consumer:
        arguments = self._bound(signature)
        if made is not None:
            outputs = BatchOutputs(self.outputs, made, self.metrics, self.spec.where)
            call_of_row = arguments.row_call(method)
            return YieldingBatches(
                call_of_row, arguments.needs_window, outputs, self.metrics, self.spec.where
            )
        if needs_row(arguments):
            if type(self.dofn) is MapDoFn and self.spec.shortcuts and RowMap.suits(arguments):
                return RowMap(self.dofn.fn, arguments, self)
            return RowLoop(arguments.row_call(method), arguments.needs_window, self)
        return self._value_loop(arguments, method)

    def _value_loop(self, arguments: Arguments, method: Callable[..., Any]) -> Consumer:
        common = (self.outputs, self.metrics, self.spec.where)
        kind, dofn = type(self.dofn), self.dofn
        if kind in (MapTupleDoFn, FlatMapTupleDoFn) and arguments.element_only:
            loop = MapStep if kind is MapTupleDoFn else FlatMapStep
            return loop(dofn.fn, True, *common)  # type: ignore[attr-defined]
        if kind is MapDoFn and isinstance(dofn.fn, Stamping) and arguments.element_only:  # type: ignore[attr-defined]
            return StampStep(dofn.fn.function, False, *common)  # type: ignore[attr-defined]
        if kind is MapDoFn:
            return MapStep(arguments.value_call(dofn.fn), False, *common)  # type: ignore[attr-defined]
        if kind is FilterDoFn:
            return FilterStep(arguments.value_call(dofn.fn), False, *common)  # type: ignore[attr-defined]
        if kind is FlatMapDoFn:
            return FlatMapStep(arguments.value_call(dofn.fn), False, *common)  # type: ignore[attr-defined]
        return FlatMapStep(arguments.value_call(method), False, *common)


class RowLoop:
    """Calls a DoFn with arguments that differ between elements: a timestamp, a window, a view of the window."""

    def __init__(self, call: Callable[[Any], Any], each_window: bool, step: DoFnStep) -> None:
        self.call = call
        self.each_window = each_window
        self.step = step

    def push(self, batch: Batch) -> Records:
        yield from self.step.outputs.route(self._results(batch))

    def _results(self, batch: Batch) -> Iterator[tuple[Any, Any]]:
        metrics = self.step.metrics
        for row in (batch.explode() if self.each_window else batch).rows():
            set_current(metrics)
            try:
                result = self.call(row)
                if result is not None:
                    check_result(result)
            except Exception as error:
                fail_step(error, self.step.spec.where, row[:1])
            yield result, row


class RowMap:
    """Calls the function of a Map for a whole batch, with a column for each argument."""

    def __init__(self, function: Callable[..., Any], arguments: Arguments, step: DoFnStep) -> None:
        self.function = function
        self.arguments = arguments
        self.step = step

    @staticmethod
    def suits(arguments: Arguments) -> bool:
        """True if the element and only arguments that exist for a whole batch are asked for."""
        nothing = Batch([None])
        return arguments.columns(nothing, iter(nothing.values)) is not None and any(
            kind_of(value) == "ElementParam" for value in arguments.args
        )

    def push(self, batch: Batch) -> Records:
        step = self.step
        if self.arguments.needs_window:
            batch = batch.explode()
        set_current(step.metrics)
        elements = iter(batch.values)
        try:
            columns = self.arguments.columns(batch, elements)
            assert columns is not None
            values = list(map(self.function, *columns))
            check_complete(len(values), len(batch.values))
        except Exception as error:
            fail_step(error, step.spec.where, find_last_read(batch.values, elements))
        yield from push_mapped(batch, values, step.outputs)
