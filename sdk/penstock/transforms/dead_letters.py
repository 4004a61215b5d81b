"""Sends elements that fail to a separate output: the inner transform and DoFn of ``with_exception_handling``."""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import logging
import os
import traceback
from collections.abc import AsyncIterable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import DoOutputsTuple, PCollection
from penstock.elements.tagged_output import TaggedOutput
from penstock.error import make_value_error, refusal
from penstock.functions.asynchronous import await_outputs, check_outputs, outputs_of
from penstock.functions.dofn import DoFn
from penstock.functions.signature import MethodSignature, signature_of
from penstock.functions.wrapping import WrappingDoFn
from penstock.metrics.execution import MetricsContainer, current_container, set_current
from penstock.transforms.combining.combine import CombineGlobally
from penstock.transforms.elements.isolated_process import IsolatedCalls
from penstock.transforms.elements.pardo import Map, ParDo, handling_errors
from penstock.transforms.grouping.windowing import WindowInto
from penstock.typehints import typehints
from penstock.windows.windowing import Windowing

# The runner hands these out in the worker, and collects them there.
_ONLY_IN_THE_WORKER = frozenset(
    {
        *("BundleContextParam", "SetupContextParam", "BundleFinalizerParam"),
        *("RestrictionParam", "WatermarkEstimatorParam", "WatermarkEstimatorProviderParam"),
    }
)
_LOGGER = logging.getLogger(__name__)

ExceptionInfo = typehints.Tuple[type, str, typehints.List[str]]
"""The type of what a dead letter says about its exception: class, repr, traceback lines (Beam's name)."""


class DeadLetter:
    """The type hint of dead letters: ``DeadLetter[T]`` pairs a T with an `ExceptionInfo` (Beam's name)."""

    def __class_getitem__(cls, element_type: object) -> Any:
        return typehints.Tuple[element_type, ExceptionInfo]


@dataclass(frozen=True)
class DeadLetterOptions:
    """The arguments of ``with_exception_handling``; ValueError if they exclude each other, or cannot work."""

    main_tag: str
    dead_letter_tag: str
    exc_class: type[BaseException] | tuple[type[BaseException], ...]
    partial: bool
    use_subprocess: bool
    threshold: float
    threshold_windowing: Any
    timeout_seconds: float | None
    error_handler: Any
    on_failure_callback: Callable[[Exception, Any], None] | None
    allow_state: bool

    def __post_init__(self) -> None:
        if self.use_subprocess and self.partial:
            raise make_value_error(
                "partial and use_subprocess are mutually incompatible",
                "leave one of them out: nothing leaves the process before an element is done",
            )
        if self.use_subprocess and not hasattr(os, "fork"):
            raise make_value_error(
                "use_subprocess=True needs processes that can be forked, which this system does not have",
                "leave it out, or run the pipeline on Linux or macOS",
            )
        if not 0 <= self.threshold <= 1:
            raise make_value_error(f"the threshold is {self.threshold!r}", "pass a share, from 0 to 1")
        other = "use_subprocess" if self.use_subprocess else "timeout" if self.timeout_seconds else None
        if self.allow_state and other:
            raise make_value_error(
                f"allow_unsafe_userstate_in_process is incompatible with {other}",
                "state cannot be used from the thread or process that it needs; leave one of them out",
            )


def _check_isolated(pardo: ParDo) -> None:
    if pardo.fn.calls_asynchronously:
        raise make_value_error(
            f"{pardo.label} is asynchronous, and use_subprocess makes calls one after another",
            "leave use_subprocess out, or use a plain process",
        )
    kinds = sorted(pardo.signature.kinds & _ONLY_IN_THE_WORKER)
    if kinds:
        raise make_value_error(
            f"{pardo.label} uses {' and '.join(kinds)}, which another process cannot get",
            "leave use_subprocess out, or make what it needs in setup",
        )
    if inspect.isgeneratorfunction(pardo.fn.finish_bundle):
        raise make_value_error(
            f"{pardo.label} yields in finish_bundle, which is not safe with use_subprocess",
            "yield in process: a crash would lose what waits for the end of the bundle",
        )


class ExceptionHandlingParDo(PTransform[Any, Any]):
    """A ParDo whose failing elements go to a separate output."""

    def __init__(self, pardo: ParDo, options: DeadLetterOptions, extra_tags: tuple[str, ...] = ()) -> None:
        super().__init__(pardo.label)
        kinds = pardo.signature.kinds & {"StateParam", "TimerParam"}
        if kinds and not options.allow_state:
            raise make_value_error(
                f"{pardo.label} uses {' and '.join(sorted(kinds))}, which failing elements leave changed",
                "pass allow_unsafe_userstate_in_process=True to with_exception_handling to accept that",
            )
        dofn = pardo.fn
        if not dofn.defines_process or dofn.process_yields_batches:
            raise make_value_error(
                f"{pardo.label} fails by the batch, and exceptions are handled by the element",
                "define process too, which takes an element and yields elements",
            )
        if options.use_subprocess:
            _check_isolated(pardo)
        self._pardo = pardo
        self._options = options
        self._extra_tags = extra_tags

    def with_outputs(self, *tags: str, main: str | None = None) -> ExceptionHandlingParDo:
        """Returns this transform with tagged outputs: the DoFn's own tags, and a tag for the main output."""
        options = self._options
        if main is not None:
            options = DeadLetterOptions(**{**options.__dict__, "main_tag": main})
        result = ExceptionHandlingParDo(self._pardo, options, tags)
        result.label = self.label
        return result

    def with_concurrency(self, *args: Any, **kwargs: Any) -> ExceptionHandlingParDo:
        """Returns this transform with ``ParDo.with_concurrency``."""
        pardo = self._pardo.with_concurrency(*args, **kwargs)
        result = ExceptionHandlingParDo(pardo, self._options, self._extra_tags)
        result.label = self.label
        return result

    def get_resource_hints(self) -> dict[str, bytes]:
        return self._pardo.get_resource_hints()

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any] | DoOutputsTuple:
        """Returns the outputs; with an error handler and no tagged outputs, the main output alone."""
        options = self._options
        hints = self._pardo.get_type_hints()
        main_type = hints.simple_output_type(self.label) or self._pardo.infer_output_type(pcoll.element_type)
        letters = DeadLetter.__class_getitem__(pcoll.element_type or typehints.Any)
        if pcoll.pipeline.options.is_compat_version_prior_to("2.73.0"):
            # Older versions did not know their type.
            letters = typehints.Any
        tagged_types = {**hints.tagged_output_types(), options.dead_letter_tag: letters}
        args, kwargs = self._pardo.raw_side_inputs
        kind = AsyncExceptionHandlingDoFn if self._pardo.fn.calls_asynchronously else ExceptionHandlingDoFn
        inner = ParDo(kind(self._pardo.fn, options), *args, **kwargs)
        inner.get_resource_hints().update(self._pardo.get_resource_hints())
        inner = inner.with_output_types(main_type, **tagged_types)
        tags = (options.dead_letter_tag, *(tag for tag in self._extra_tags if tag != options.dead_letter_tag))
        result = pcoll | "Try" >> inner.with_outputs(*tags, main=options.main_tag, allow_unknown_tags=True)
        if options.threshold < 1:
            self._check_threshold(pcoll, result[options.dead_letter_tag])
        if options.error_handler is None:
            return result
        options.error_handler.add_error_pcollection(result[options.dead_letter_tag])
        return result if self._extra_tags else result[options.main_tag]

    def _check_threshold(self, pcoll: PCollection[Any], dead_letters: Any) -> None:
        windowing = self._options.threshold_windowing
        total = pcoll | "CountTotal" >> (_One(windowing) | CombineGlobally(sum).as_singleton_view())
        failing = dead_letters | "CountBad" >> (_One(windowing) | CombineGlobally(sum).without_defaults())
        _ = failing | "CheckThreshold" >> Map(_check_share, total, self._options.threshold)


class _One(PTransform[Any, Any]):
    """A 1 for each element, in other windows if a windowing is given."""

    def __init__(self, windowing: Windowing) -> None:
        super().__init__()
        self._windowing = windowing

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        if self._windowing is not None:
            pcoll = pcoll | WindowInto(self._windowing)
        return pcoll | "One" >> Map(lambda _: 1)


def _check_share(failing: int, total: int, threshold: float, window: object = DoFn.WindowParam) -> None:
    if failing > total * threshold:
        raise refusal(
            ValueError,
            f"The number of failing elements within the window {window!r} exceeded threshold: "
            f"{failing} / {total} = {failing / total} > {threshold}",
            hint="look at the dead letters, or raise the threshold",
        )


class ExceptionHandlingDoFn(WrappingDoFn):
    """A DoFn around another one, which catches what its ``process`` raises."""

    def __init__(self, dofn: DoFn, options: DeadLetterOptions) -> None:
        super().__init__(dofn)
        self._dead_letter_tag = options.dead_letter_tag
        self._exc_class = options.exc_class
        self._partial = options.partial
        self._timeout_seconds = options.timeout_seconds
        self._on_failure_callback = options.on_failure_callback
        self._pool: concurrent.futures.ThreadPoolExecutor | None = None
        self._isolated = IsolatedCalls(dofn) if options.use_subprocess else None
        signature = signature_of(dofn)
        if self._isolated is not None:
            # The child process sets its own copy up.
            self.__dict__.pop("setup", None)
            self.start_bundle = self._isolated.new_bundle  # type: ignore[method-assign]
            if signature.finish_bundle:
                self.finish_bundle = self._isolated.finish_bundle  # type: ignore[method-assign]
        self._element_position = _element_position(signature.process)

    def describe(self) -> str:
        """Returns the name of the DoFn inside, for people."""
        return f"with_exception_handling({type(self.dofn).__name__})"

    def process(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        """Yields the elements of the inner DoFn, or a dead letter."""
        element = self._element(args, kwargs)
        if self._isolated is not None:
            # Errors of setup and start_bundle are not the fault of the element.
            self._isolated.begin()
        try:
            outputs = self._call(args, kwargs)
            # Unless `partial`, nothing goes out before all of it has been made.
            yield from (outputs or ()) if self._partial else list(outputs or ())
        except self._exc_class as error:
            yield self._dead_letter(error, element)

    def teardown(self) -> None:
        try:
            (self._isolated or self.dofn).teardown()
        finally:
            self._drop_pool()

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._isolated is not None:
            return self._isolated.process(args, kwargs, self._timeout_seconds)
        if self._timeout_seconds is None:
            return self.dofn.process(*args, **kwargs)
        if self._pool is None:
            self._pool = concurrent.futures.ThreadPoolExecutor(1)
        # The thread has counts of its own: a call that takes too long continues while the next element is counted.
        container = current_container()
        counted = None if container is None else MetricsContainer(container.step_name)
        future = self._pool.submit(self._call_in_thread, counted, args, kwargs)
        try:
            return future.result(self._timeout_seconds)
        except concurrent.futures.TimeoutError:
            self._drop_pool()
            raise
        finally:
            if container is not None and counted is not None:
                container.absorb(counted)

    def _call_in_thread(
        self, counted: MetricsContainer | None, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> list[Any]:
        set_current(counted)
        # All output is made in the thread, so that the time it takes counts.
        return list(self.dofn.process(*args, **kwargs) or ())

    def _drop_pool(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False)

    def _element(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        position = self._element_position
        return args[position] if isinstance(position, int) else kwargs[position]

    def _dead_letter(self, error: BaseException, element: object) -> TaggedOutput[Any, Any]:
        self._report(error, element)
        letter = (element, (type(error), repr(error), traceback.format_exception(error)))
        return TaggedOutput(self._dead_letter_tag, letter)

    def _report(self, error: BaseException, element: object) -> None:
        if self._on_failure_callback is None or not isinstance(error, Exception):
            return
        try:
            self._on_failure_callback(error, element)
        except Exception:
            _LOGGER.warning("on_failure_callback failed", exc_info=True)


class AsyncExceptionHandlingDoFn(ExceptionHandlingDoFn):
    """Handles errors of an asynchronous ``process``."""

    async def process(self, *args: object, **kwargs: object) -> Any:  # type: ignore[override]
        """Returns the elements of the inner DoFn, or a dead letter."""
        outputs: list[Any] = []
        try:
            await await_outputs(lambda: self._collect(outputs, args, kwargs), self._timeout_seconds)
        except asyncio.CancelledError:
            # Another call has failed for good: this one is not to blame.
            raise
        except self._exc_class as error:
            # Unless `partial`, nothing goes out before all of it has been made.
            return [
                *(outputs if self._partial else ()),
                self._dead_letter(error, self._element(args, kwargs)),
            ]
        return outputs

    async def _collect(self, outputs: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = self.dofn.process(*args, **kwargs)
        if isinstance(given, AsyncIterable):
            async for output in given:
                outputs.append(output)
        else:
            outputs += check_outputs(await outputs_of(given))

    def teardown(self) -> Any:
        """Returns the result of the inner DoFn's ``teardown``: a coroutine, if it is asynchronous."""
        return self.dofn.teardown()


def _element_position(process: MethodSignature) -> int | str:
    """Returns the element's place among the positional arguments, or its name if it is passed by name."""
    declared = process.asking_for("ElementParam")
    if not declared:
        return 0
    parameter = declared[0]
    return parameter.name if parameter.passed_by == "keyword" else process.parameters.index(parameter)


@handling_errors.bind
def _handling(pardo: ParDo[Any], **options: Any) -> ExceptionHandlingParDo:
    return ExceptionHandlingParDo(pardo, DeadLetterOptions(**options))
