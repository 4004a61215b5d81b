"""ParDo and its short forms: user code on each element."""

from __future__ import annotations

import ast
import copy
import inspect
import logging
import textwrap
import types
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Self, cast, overload

from typing_extensions import TypeVar

from penstock import graph
from penstock.base.display import DisplayDataItem
from penstock.base.labels import label_from_callable
from penstock.base.late_binding import LateBinding
from penstock.construction import pvalue
from penstock.construction.applicable import T, V
from penstock.construction.ptransform import PTransformWithSideInputs, where_of
from penstock.construction.pvalue import PCollection
from penstock.construction.retractions import check_dofn
from penstock.error import refusal
from penstock.functions.asynchronous import ASYNCHRONOUS_FORMS, Concurrency, ConcurrentDoFn
from penstock.functions.batches import batch_types_of
from penstock.functions.coroutines import gives_asynchronously, is_asynchronous
from penstock.functions.dofn import (
    DEFAULT_CONCURRENCY,
    DoFn,
    FilterDoFn,
    FlatMapDoFn,
    FlatMapTupleDoFn,
    ItemsDoFn,
    MapDoFn,
    MapTupleDoFn,
    identity,
)
from penstock.functions.signature import bind, signature_of
from penstock.transforms.elements.field_checks import check_attributes, check_fields
from penstock.transforms.grouping_checks import check_keyed
from penstock.typehints import typehints
from penstock.typehints.code_reading import read

if TYPE_CHECKING:
    from penstock.construction.applicable import Expands
    from penstock.construction.ptransform import PTransform
    from penstock.construction.pvalue import GoodAndBad, MainAndTagged
    from penstock.construction.typed_steps import (
        FunctionT,
        FunctionT_co,
        MoreP,
        Outputs,
        PartTs,
        Processes,
        StepT_co,
    )
    from penstock.elements.bounded_window import TimestampedValue

ElementT = TypeVar("ElementT", default=Any)
OutputT = TypeVar("OutputT", default=Any)
InputT = TypeVar("InputT")
OutputsT = TypeVar("OutputsT")


_LOGGER = logging.getLogger(__name__)


def check_process(transform: ParDo[Any, Any]) -> None:
    """Raises TypeError if the DoFn of a ParDo has neither ``process`` nor ``process_batch``."""
    dofn = transform.fn
    if not dofn.defines_process and not dofn.defines_process_batch:
        what = f"{type(dofn).__name__} defines no process method"
        raise refusal(
            TypeError, what, where=where_of(transform), hint="def process(self, element): yield ..."
        )


def warn_of_returns(dofn: DoFn) -> None:
    """Logs a warning if ``process`` has a ``return None``, or yields and also returns a value, which is lost."""
    function = getattr(dofn.process, "__func__", None)
    if not isinstance(function, types.FunctionType):
        return
    if function.__code__.co_flags & inspect.CO_GENERATOR:
        if _returns(function, something=True):
            _LOGGER.warning(
                "Using yield and return in the process method of %s: what it returns is lost; yield it",
                type(dofn),
            )
    elif _returns(function, something=False) and _says_return_none(function):
        _LOGGER.warning(
            "Process method returned None (element won't be emitted): %s. Check if intended.", type(dofn)
        )


def _returns(function: types.FunctionType, something: bool) -> bool:
    """True if a function has a return of something, or of None, which every function has at its end."""
    before = None
    for operation in read(function.__code__).operations:
        if operation.opname == "RETURN_CONST":
            if (operation.argval is not None) == something:
                return True
        elif operation.opname == "RETURN_VALUE":
            is_none = before is not None and before.opname == "LOAD_CONST" and before.argval is None
            if is_none != something:
                return True
        before = operation
    return False


def _says_return_none(function: types.FunctionType) -> bool:
    """True if the source says ``return None``: a bare ``return`` leaves out an element on purpose."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        # The source is not there, or is a part of a line.
        return False
    statements = (each for each in _statements_of(tree.body[0]) if isinstance(each, ast.Return))
    return any(isinstance(each.value, ast.Constant) and each.value.value is None for each in statements)


def _statements_of(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, without the functions inside of it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield child
            yield from _statements_of(child)


handling_errors: LateBinding[..., Any] = LateBinding("penstock.transforms.dead_letters")
"""Makes the transform that catches the errors of a ParDo. It uses CombineGlobally, which uses ParDo."""


class ParDo(
    PTransformWithSideInputs[PCollection[ElementT], PCollection[OutputT]], Generic[ElementT, OutputT]
):
    """Runs a DoFn on each element (Beam's ``ParDo``).

    Args:
        fn: A `DoFn`, or a function that returns an iterable.
        args: Further arguments of ``process``; views such as `penstock.pvalue.AsList` are side inputs.
        kwargs: Likewise, by name.

    Raises:
        TypeError: If the arguments do not fit ``process``.
        ValueError: If the DoFn asks for parameters that it cannot have.

    >>> class Words(DoFn):
    ...     def process(self, line: str) -> Iterator[str]:
    ...         yield from line.split()
    >>> ParDo(Words()).label
    'ParDo(Words)'

    Example: ``lines | ParDo(Words())`` over ``"to be"`` emits ``"to"`` and ``"be"``.
    """

    needs_pcollection = True

    @overload
    def __init__(
        self, fn: Processes[ElementT, TimestampedValue[OutputT]], *args: object, **kwargs: object
    ) -> None: ...

    @overload
    def __init__(self, fn: Processes[ElementT, OutputT], *args: object, **kwargs: object) -> None: ...

    @overload
    def __init__(
        self: ParDo[Any, OutputT], fn: Callable[..., Outputs[OutputT]], *args: object, **kwargs: object
    ) -> None: ...

    def __init__(
        self,
        fn: Processes[Any, Any] | Callable[..., Any],
        *args: object,
        **kwargs: object,
    ) -> None:
        super().__init__(fn, *args, **kwargs)
        self.dofn = self.fn
        self._dofn_hints: object = None
        if not isinstance(self.fn, FlatMapDoFn):
            warn_of_returns(self.fn)
        self.signature = signature_of(self.fn)
        self.call = bind(self.signature.process, self.args, self.kwargs, self._function_name())
        if self.signature.process_batch is not None:
            what = f"{type(self.fn).__name__}.process_batch"
            bind(self.signature.process_batch, self.args, self.kwargs, what)

    def _function_name(self) -> str:
        if isinstance(self.fn, FlatMapDoFn):
            return (
                f"{label_from_callable(self.fn.fn)}, passed to {type(self.fn).__name__.removesuffix('DoFn')},"
            )
        return f"{type(self.fn).__name__}.process"

    def make_fn(self, fn: Any, has_side_inputs: bool) -> DoFn:
        return fn if isinstance(fn, DoFn) else FlatMapDoFn(fn)

    def display_data(self) -> dict[str, Any]:
        return {"fn": DisplayDataItem(type(self.fn), label="Transform Function"), "fn_dd": self.fn}

    def default_type_hints(self) -> Any:
        """Returns the type hints of the DoFn at the first call."""
        if self._dofn_hints is None:
            self._dofn_hints = self.fn.get_type_hints()
        return self._dofn_hints

    def infer_output_type(self, input_type: object) -> object:
        return self.fn.infer_output_type(input_type)

    def to_primitive(self) -> graph.Primitive:
        """Returns a `penstock.graph.ParDo`; a `penstock.graph.StatefulParDo` if the DoFn has state or timers."""
        kind = graph.StatefulParDo if self.signature.is_stateful else graph.ParDo
        return kind(self.fn, self.args, tuple(sorted(self.kwargs.items())))

    if TYPE_CHECKING:

        @overload
        def with_output_types(
            self, type_hint: type[T], **tagged_type_hints: object
        ) -> ParDo[ElementT, T]: ...

        @overload
        def with_output_types(
            self, type_hint: object, **tagged_type_hints: object
        ) -> ParDo[ElementT, Any]: ...

        def with_output_types(self, type_hint: object, **tagged_type_hints: object) -> Any: ...

    def expand(self, pcoll: PCollection[ElementT]) -> PCollection[OutputT]:
        """Returns the main output.

        Raises:
            ValueError: If a stateful DoFn is applied to elements that are not key-value pairs, or may be retractions
                that it does not accept.
            TypeError: If the DoFn has neither ``process`` nor ``process_batch``, or takes or yields batches
                without a description.
            TypeCheckError: If a function over fields reads a field that the elements do not have.
        """
        self._check_pcollection(pcoll)
        check_process(self)
        if isinstance(self.fn, FlatMapDoFn):
            where = pcoll.pipeline.current_transform().where
            check_fields(self.fn.fn, pcoll.element_type, where)
            if not isinstance(self.fn, FlatMapTupleDoFn):
                check_attributes(self.fn.fn, pcoll, where)
        if self.fn.defines_process_batch or self.fn.can_yield_batches:
            input_type = pcoll.element_type or typehints.Any
            output_type = self.get_type_hints().simple_output_type(self.label)
            batch_types_of(self.fn, input_type, output_type or self.infer_output_type(input_type))
        if self.signature.is_stateful:
            check_keyed(self, pcoll)
            check_dofn(self.fn, pcoll, self._where())
        return PCollection.from_(pcoll, is_bounded=self.gives_bounded((pcoll,)))

    def gives_bounded(self, inputs: Iterable[Any]) -> bool:
        """True if the outputs end: all inputs do, and the DoFn is not marked with ``unbounded_per_element``."""
        marked = getattr(self.fn.timer_owner().process, "unbounded_per_element", False)
        return not marked and all(pcoll.is_bounded for pcoll in inputs)

    @overload
    def with_outputs(
        self: Expands[InputT, PCollection[T]],
        tag: str,
        /,
        *,
        main: str,
        allow_unknown_tags: bool | None = None,
    ) -> WithOutputs[InputT, MainAndTagged[T, PCollection[Any]]]: ...

    @overload
    def with_outputs(
        self: Expands[InputT, PCollection[T]],
        tag: str,
        tag2: str,
        /,
        *,
        main: str,
        allow_unknown_tags: bool | None = None,
    ) -> WithOutputs[InputT, MainAndTagged[T, PCollection[Any], PCollection[Any]]]: ...

    @overload
    def with_outputs(
        self: Expands[InputT, PCollection[Any]],
        *tags: str,
        main: str | None = None,
        allow_unknown_tags: bool | None = None,
    ) -> WithOutputs[InputT, pvalue.DoOutputsTuple[Any]]: ...

    def with_outputs(
        self, *tags: str, main: str | None = None, allow_unknown_tags: bool | None = None
    ) -> ParDo[Any, Any]:
        """Adds tagged outputs to the main one.

        Args:
            tags: The tags of the outputs; without any, every tag can be requested.
            main: A tag for the main output.
            allow_unknown_tags: Whether tags outside of `tags` can be requested.

        Returns:
            A transform whose output is a `penstock.pvalue.DoOutputsTuple`.

        Raises:
            ValueError: If the main tag is among `tags`.

        Example: ``good, bad = lines | ParDo(Parse()).with_outputs("bad", main="good")``.
        """
        if main is not None and main in tags:
            what = f"Main output tag {main!r} must be different from side output tags {tags}"
            raise refusal(ValueError, what, where=self._where(), hint="give the main output another tag")
        for tag in tags:
            if not isinstance(tag, str):
                what = f"a tag is a string, not {tag!r}"
                raise refusal(TypeError, what, where=self._where(), hint=f"write {str(tag)!r}")
        return _MultiParDo(self, tags, main, allow_unknown_tags)

    def with_concurrency(
        self,
        max_concurrency: int = DEFAULT_CONCURRENCY,
        *,
        timeout_seconds: float | None = None,
        retries: int = 0,
        retry_on: type[Exception] | tuple[type[Exception], ...] = OSError,
        retry_delay_seconds: float = 0.1,
        max_retry_delay_seconds: float = 60.0,
        calls_per_second: float | None = None,
    ) -> Self:
        """Sets how the calls of an asynchronous function or DoFn are made (penstock's own).

        All numbers apply to each task, and Spark runs as many tasks at a time as it has cores. Outputs leave in the
        order of their elements. Spark repeats a task that fails, so a service may get a call more than once.

        Args:
            max_concurrency: How many calls are made at a time.
            timeout_seconds: The seconds after which an attempt ends with a TimeoutError; None for no limit.
            retries: How many times a call that failed is tried again.
            retry_on: The exceptions after which it is tried again; an OSError is a lost connection, or a TimeoutError.
            retry_delay_seconds: The longest delay before the second attempt. Each delay is twice as long as the
                previous one, and is shortened by a random share, to half at most.
            max_retry_delay_seconds: The longest delay of all.
            calls_per_second: How many attempts may begin in a second, evenly spaced; None for no limit.

        Raises:
            TypeError: If the function is not asynchronous, or an argument has the wrong type.
            ValueError: If a number is out of range.

        >>> async def ask(question):
        ...     return question.upper()
        >>> Map(ask).with_concurrency(20, timeout_seconds=5, retries=3).label
        'Map(ask)'
        """
        if not self.fn.calls_asynchronously:
            what = f"{self._function_name().removesuffix(',')} is not asynchronous"
            hint = (
                "define it with async def; await asyncio.to_thread(function, ...) calls a function that waits"
            )
            raise refusal(TypeError, what, where=self._where(), hint=hint)
        if isinstance(self.fn, ConcurrentDoFn):
            what = "with_concurrency is called twice"
            raise refusal(ValueError, what, where=self._where(), hint="pass all arguments at once")
        concurrency = Concurrency(
            max_concurrency,
            timeout_seconds,
            retries,
            retry_on,
            retry_delay_seconds,
            max_retry_delay_seconds,
            calls_per_second,
        )
        result = copy.copy(self)
        result.fn = result.dofn = ConcurrentDoFn(self.fn, concurrency)
        result.signature = signature_of(result.fn)
        return result

    @overload
    def with_exception_handling(
        self,
        main_tag: str = "good",
        dead_letter_tag: str = "bad",
        *,
        exc_class: type[BaseException] | tuple[type[BaseException], ...] = Exception,
        partial: bool = False,
        use_subprocess: bool = False,
        threshold: float = 1,
        threshold_windowing: object = None,
        timeout: float | None = None,
        error_handler: None = None,
        on_failure_callback: Callable[[Exception, Any], None] | None = None,
        allow_unsafe_userstate_in_process: bool = False,
    ) -> HandlingErrors[Self]: ...

    @overload
    def with_exception_handling(
        self: Expands[InputT, OutputsT],
        main_tag: str = "good",
        dead_letter_tag: str = "bad",
        *,
        exc_class: type[BaseException] | tuple[type[BaseException], ...] = Exception,
        partial: bool = False,
        use_subprocess: bool = False,
        threshold: float = 1,
        threshold_windowing: object = None,
        timeout: float | None = None,
        error_handler: object,
        on_failure_callback: Callable[[Exception, Any], None] | None = None,
        allow_unsafe_userstate_in_process: bool = False,
    ) -> PTransform[InputT, OutputsT]: ...

    def with_exception_handling(
        self,
        main_tag: str = "good",
        dead_letter_tag: str = "bad",
        *,
        exc_class: type[BaseException] | tuple[type[BaseException], ...] = Exception,
        partial: bool = False,
        use_subprocess: bool = False,
        threshold: float = 1,
        threshold_windowing: object = None,
        timeout: float | None = None,
        error_handler: object = None,
        on_failure_callback: Callable[[Exception, Any], None] | None = None,
        allow_unsafe_userstate_in_process: bool = False,
    ) -> Any:
        """Sends elements whose processing fails to a separate output.

        Args:
            main_tag: The tag of the elements that are processed without an error.
            dead_letter_tag: The tag of ``(element, (exception class, its repr, traceback lines))``.
            exc_class: The exceptions that count as failures.
            partial: Whether the outputs of an element before its failure are kept.
            use_subprocess: Whether the DoFn runs in a child process of the worker: if that crashes, its element counts
                as failed, and the next element gets a new child.
            threshold: The maximum share of failing elements, from 0 to 1; above it, the pipeline fails.
            threshold_windowing: The windows over which the share is computed; by default the windows of the input.
            timeout: Seconds after which an element counts as failing with a TimeoutError.
            error_handler: Takes the failing elements; the transform then returns only the main output.
            on_failure_callback: Called with the exception and the element; its own errors are only logged.
            allow_unsafe_userstate_in_process: Whether ``process`` may use state and timers, although a failing element
                does not undo its changes of state.

        Raises:
            ValueError: If arguments exclude each other, or cannot work.

        Example: ``good, bad = lines | Map(parse).with_exception_handling()``.
        """
        return handling_errors(
            self,
            main_tag=main_tag,
            dead_letter_tag=dead_letter_tag,
            exc_class=exc_class,
            partial=partial,
            use_subprocess=use_subprocess,
            threshold=threshold,
            threshold_windowing=threshold_windowing,
            timeout_seconds=timeout,
            error_handler=error_handler,
            on_failure_callback=on_failure_callback,
            allow_state=allow_unsafe_userstate_in_process,
        )

    def with_error_handler(self, error_handler: Any, **exception_handling_kwargs: Any) -> Any:
        """`with_exception_handling` with an error handler; without one, the transform itself."""
        if error_handler is None:
            return self
        return self.with_exception_handling(error_handler=error_handler, **exception_handling_kwargs)

    def argspec_of_process(self) -> Callable[..., Any]:
        function: Callable[..., Any] = self.fn.argspec_of_process()
        return function


if TYPE_CHECKING:

    class Mapped(ParDo[Any, Any], Generic[FunctionT_co]):
        """A Map, with the type of its function."""

        @property
        def _own_function(self) -> FunctionT_co: ...  # type: ignore[override]

        @property
        def _maps(self) -> FunctionT_co: ...

        def expand(
            self: Mapped[Callable[Concatenate[T, MoreP], V]], pcoll: PCollection[T]
        ) -> PCollection[V]: ...

    class FlatMapped(ParDo[Any, Any], Generic[FunctionT_co]):
        """A FlatMap, with the type of its function."""

        @property
        def _own_function(self) -> FunctionT_co: ...  # type: ignore[override]

        @property
        def _maps_to_many(self) -> FunctionT_co: ...

        def expand(
            self: FlatMapped[Callable[Concatenate[T, MoreP], Outputs[V]]], pcoll: PCollection[T]
        ) -> PCollection[V]: ...

    class Filtered(ParDo[Any, Any], Generic[FunctionT_co]):
        """A Filter, with the type of its function: its output has the type of its input."""

        @property
        def _own_function(self) -> FunctionT_co: ...  # type: ignore[override]

        @property
        def _keeps(self) -> FunctionT_co: ...

        def expand(
            self: Filtered[Callable[Concatenate[T, MoreP], object]], pcoll: PCollection[T]
        ) -> PCollection[T]: ...

    class PartsMapped(ParDo[Any, Any], Generic[FunctionT_co]):
        """A MapTuple, with the type of its function."""

        @property
        def _own_function(self) -> FunctionT_co: ...  # type: ignore[override]

        @property
        def _maps_parts(self) -> FunctionT_co: ...

        def expand(
            self: PartsMapped[Callable[[*PartTs], V]], pcoll: PCollection[tuple[*PartTs]]
        ) -> PCollection[V]: ...

    class PartsFlatMapped(ParDo[Any, Any], Generic[FunctionT_co]):
        """A FlatMapTuple, with the type of its function."""

        @property
        def _own_function(self) -> FunctionT_co: ...  # type: ignore[override]

        @property
        def _maps_parts_to_many(self) -> FunctionT_co: ...

        def expand(
            self: PartsFlatMapped[Callable[[*PartTs], Outputs[V]]], pcoll: PCollection[tuple[*PartTs]]
        ) -> PCollection[V]: ...

    class WithOutputs(ParDo[Any, Any], Generic[InputT, OutputsT]):
        """A ParDo with tagged outputs."""

        def expand(self, pcoll: InputT, /) -> OutputsT: ...  # type: ignore[override]

        def with_output_types(self, type_hint: object, **tagged_type_hints: object) -> Self: ...

        def with_exception_handling(self, *args: Any, **kwargs: Any) -> Any:
            """As of a `ParDo` without tags."""
            ...

    class HandlingErrors(PTransform[Any, Any], Generic[StepT_co]):
        """A ParDo with exception handling."""

        @property
        def _own_function(self) -> StepT_co: ...  # type: ignore[override]

        @property
        def _handled_step(self) -> StepT_co: ...

        def expand(
            self: HandlingErrors[Expands[PCollection[T], PCollection[V]]], pcoll: PCollection[T]
        ) -> GoodAndBad[V, T]: ...

        def with_outputs(self, *tags: str, main: str | None = None) -> PTransform[Any, Any]:
            """Returns this transform with tagged outputs."""
            ...

        def with_concurrency(
            self,
            max_concurrency: int = DEFAULT_CONCURRENCY,
            *,
            timeout_seconds: float | None = None,
            retries: int = 0,
            retry_on: type[Exception] | tuple[type[Exception], ...] = OSError,
            retry_delay_seconds: float = 0.1,
            max_retry_delay_seconds: float = 60.0,
            calls_per_second: float | None = None,
        ) -> Self:
            """Returns this transform with ``ParDo.with_concurrency``."""
            ...

    class Itemized(ParDo[Any, Any]):
        """A FlatMap without a function."""

        def expand(self, pcoll: PCollection[Iterable[T]]) -> PCollection[T]: ...


class _MultiParDo(ParDo[Any, Any]):
    def __init__(
        self,
        pardo: ParDo[Any, Any],
        tags: tuple[str, ...],
        main_tag: str | None,
        allow_unknown_tags: bool | None,
    ) -> None:
        # It differs from the ParDo only in its outputs.
        self.__dict__.update(pardo.__dict__)
        self.label = pardo.label
        self._pardo = pardo
        self._tags = tags
        self._main_tag = main_tag
        self._allow_unknown_tags = allow_unknown_tags

    def expand(self, pcoll: PCollection[Any]) -> pvalue.DoOutputsTuple:  # type: ignore[override]
        super().expand(pcoll)
        return pvalue.DoOutputsTuple(
            pcoll.pipeline, self, self._tags, self._main_tag, self._allow_unknown_tags
        )

    def with_concurrency(self, *args: Any, **kwargs: Any) -> _MultiParDo:
        pardo = self._pardo.with_concurrency(*args, **kwargs)
        return _MultiParDo(pardo, self._tags, self._main_tag, self._allow_unknown_tags)

    def with_exception_handling(  # type: ignore[override]
        self, main_tag: str | None = None, **kwargs: Any
    ) -> Any:
        handling = self._pardo.with_exception_handling(
            main_tag=main_tag or self._main_tag or "good", **kwargs
        )
        return handling.with_outputs(*self._tags)


def _short_form(
    name: str, dofn_class: type[FlatMapDoFn], fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> ParDo[Any, Any]:
    if not callable(fn):
        what = f"{name} can be used only with callable objects. Received {fn!r} instead"
        hint = "use ParDo for a DoFn" if isinstance(fn, DoFn) else "pass a function"
        raise refusal(TypeError, what, hint=hint)
    gives_items = fn is identity and dofn_class is FlatMapDoFn and not args and not kwargs
    if is_asynchronous(fn):
        if dofn_class in ASYNCHRONOUS_FORMS and gives_asynchronously(fn):
            what = f"{name} of {label_from_callable(fn)}, an asynchronous generator"
            raise refusal(TypeError, what, hint="use FlatMap, or return a value")
        dofn_class = ASYNCHRONOUS_FORMS.get(dofn_class, dofn_class)
    pardo: ParDo[Any, Any] = ParDo(ItemsDoFn() if gives_items else dofn_class(fn), *args, **kwargs)
    pardo.label = f"{name}({label_from_callable(fn)})"
    return pardo


@overload
def FlatMap() -> Itemized: ...


@overload
def FlatMap(fn: FunctionT, *args: object, **kwargs: object) -> FlatMapped[FunctionT]: ...


def FlatMap(fn: Callable[..., Any] = identity, *args: object, **kwargs: object) -> ParDo[Any, Any]:
    """Emits each item of the iterable that a function returns (Beam's ``FlatMap``).

    Args:
        fn: A function that returns an iterable; by default, each element itself is the iterable.
        args: Further arguments, as in `Map`, which also has the errors.
        kwargs: Likewise, by name.

    Example: ``lines | FlatMap(str.split)`` over ``"to be"`` emits ``"to"`` and ``"be"``.

    >>> FlatMap(str.split).label
    'FlatMap(split)'
    """
    return _short_form("FlatMap", FlatMapDoFn, fn, args, kwargs)


def Map(fn: FunctionT, *args: object, **kwargs: object) -> Mapped[FunctionT]:
    """Emits the result of a function for each element (Beam's ``Map``).

    Args:
        fn: A function of an element.
        args: Further arguments, which may be side inputs.
        kwargs: Likewise, by name.

    Raises:
        TypeError: If `fn` is not callable, or the arguments do not fit.

    Example: ``words | Map(len)`` over ``"amy"`` emits ``3``.

    >>> Map(len).label
    'Map(len)'
    """
    return cast("Mapped[FunctionT]", _short_form("Map", MapDoFn, fn, args, kwargs))


def Filter(fn: FunctionT, *args: object, **kwargs: object) -> Filtered[FunctionT]:
    """Keeps the elements for which a function returns true (Beam's ``Filter``); arguments and errors are as in `Map`.

    Example: ``words | Filter(str.isupper)`` over ``"AMY"`` and ``"bob"`` emits ``"AMY"``.

    >>> Filter(str.isupper).label
    'Filter(isupper)'
    """
    return cast("Filtered[FunctionT]", _short_form("Filter", FilterDoFn, fn, args, kwargs))


def MapTuple(fn: FunctionT, *args: object, **kwargs: object) -> PartsMapped[FunctionT]:
    """Emits the result of a function of the parts of each element (Beam's ``MapTuple``).

    Args:
        fn: A function of the parts of a tuple; its parameters for `args` and `kwargs` have default arguments.
        args: Further arguments, as in `Map`, which also has the errors.
        kwargs: Likewise, by name.

    Example: ``ages | MapTuple(lambda name, age: age)`` over ``("amy", 30)`` emits ``30``.

    >>> MapTuple(max).label
    'MapTuple(max)'
    """
    return cast("PartsMapped[FunctionT]", _short_form("MapTuple", MapTupleDoFn, fn, args, kwargs))


def FlatMapTuple(fn: FunctionT, *args: object, **kwargs: object) -> PartsFlatMapped[FunctionT]:
    """Emits each item of what a function of an element's parts returns; like `MapTuple` (Beam's ``FlatMapTuple``).

    Example: ``counts | FlatMapTuple(lambda word, n: [word] * n)`` over ``("a", 2)`` emits ``"a"`` twice.

    >>> FlatMapTuple(range).label
    'FlatMapTuple(range)'
    """
    return cast("PartsFlatMapped[FunctionT]", _short_form("FlatMapTuple", FlatMapTupleDoFn, fn, args, kwargs))
