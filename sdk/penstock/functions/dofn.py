"""The DoFn: user code that runs on each element; and DoFns made of plain functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from penstock.base.display import DisplayDataItem, HasDisplayData
from penstock.error import refusal
from penstock.functions import dofn_parameters
from penstock.functions.batches import annotated_input, annotated_output, element_hints
from penstock.functions.coroutines import is_asynchronous
from penstock.functions.dofn_parameters import DoFnParam
from penstock.functions.signature import MethodSignature, Parameter, read_method_signature
from penstock.typehints import trivial_inference, typehints
from penstock.typehints.decorators import (
    IOTypeHints,
    TypeCheckError,
    WithTypeHints,
    get_type_hints,
    strip_output_annotations,
)

if TYPE_CHECKING:
    from penstock.functions.signature import DoFnSignature

DEFAULT_CONCURRENCY = 100
"""The number of calls of an asynchronous DoFn that a task makes at a time, without ``with_concurrency``."""


def _does_nothing(method: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a method that a runner need not call, unless a class overrides it."""
    method.does_nothing = True  # type: ignore[attr-defined]
    return method


class DoFn(WithTypeHints, HasDisplayData):
    """Your code for each element of a PCollection: subclass it and define `process` (Beam's ``DoFn``).

    A runner calls `setup` once per instance, then for each bundle `start_bundle`, `process` for each element
    and `finish_bundle`, and finally `teardown`. To receive more than the element, a method declares parameters with
    defaults such as ``window=DoFn.WindowParam``.

    If `process` is defined with ``async def``, many elements are processed at a time; the other methods may then also
    be asynchronous. ``ParDo.with_concurrency`` sets how many (penstock's own).

    Attributes:
        accepts_simultaneous: Whether a `process` that uses state receives all elements of a key that arrive at one
            logical time in one call, as a pair of the key and a ``penstock.machines.records.Together``, in the global
            window.
        accepts_retractions: Whether a `process` that uses state or timers takes elements that retract earlier ones;
            the ``kind`` of ``DoFn.PaneInfoParam`` distinguishes them. Other DoFns need not declare it: their output for
            a retraction is a retraction (penstock's own).
        emits_retractions: Whether it emits elements whose pane has a ``kind`` that retracts earlier ones, although
            its input has none (penstock's own).
        emits_insertions_only: Whether it never emits such elements, even if its input has some (penstock's own).

    >>> class Words(DoFn):
    ...     def process(self, element):
    ...         yield from element.split()
    >>> list(Words().process("to be"))
    ['to', 'be']
    """

    accepts_retractions: bool = False
    accepts_simultaneous: bool = False
    emits_retractions: bool = False
    emits_insertions_only: bool = False

    output_kinds: Mapping[type, Callable[[Any], Any]] = MappingProxyType({})
    """Converters from outputs of other libraries' classes to penstock's, such as the ``TaggedOutput`` of Beam."""

    # Any: a parameter with such a default is annotated with the type of what it asks for.
    ElementParam: Any = DoFnParam("ElementParam")
    SideInputParam: Any = DoFnParam("SideInputParam")
    TimestampParam: Any = DoFnParam("TimestampParam")
    WindowParam: Any = DoFnParam("WindowParam")
    WindowedValueParam: Any = DoFnParam("WindowedValueParam")
    PaneInfoParam: Any = DoFnParam("PaneInfoParam")
    KeyParam: Any = DoFnParam("KeyParam")
    DynamicTimerTagParam: Any = DoFnParam("DynamicTimerTagParam")
    WatermarkEstimatorParam: type[Any] = dofn_parameters.WatermarkEstimatorDoFnParam
    BundleFinalizerParam: type[Any] = dofn_parameters.BundleFinalizerDoFnParam
    BundleContextParam: type[Any] = dofn_parameters.BundleContextDoFnParam
    SetupContextParam: type[Any] = dofn_parameters.SetupContextDoFnParam
    StateParam: type[Any] = dofn_parameters.StateDoFnParam
    TimerParam: type[Any] = dofn_parameters.TimerDoFnParam
    RestrictionParam: type[Any] = dofn_parameters.RestrictionDoFnParam

    @staticmethod
    def from_callable(fn: Callable[..., Any]) -> DoFn:
        """Returns a DoFn that calls `fn`, which returns an iterable, on each element."""
        return CallableWrapperDoFn(fn)

    @staticmethod
    def unbounded_per_element() -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Marks a ``process`` that may emit elements forever for one element: its output counts as unbounded."""

        def mark(process: Callable[..., Any]) -> Callable[..., Any]:
            process.unbounded_per_element = True  # type: ignore[attr-defined]
            return process

        return mark

    @staticmethod
    def yields_elements(fn: Callable[..., Any]) -> Callable[..., Any]:
        """Marks a ``process_batch`` that yields elements, not batches."""
        return _marked(fn, "yields_elements")

    @staticmethod
    def yields_batches(fn: Callable[..., Any]) -> Callable[..., Any]:
        """Marks a ``process`` that yields batches, not elements."""
        return _marked(fn, "yields_batches")

    def default_label(self) -> str:
        """Returns the label of a step that runs this DoFn: the class's name."""
        return type(self).__name__

    def process(self, element: Any, *args: Any, **kwargs: Any) -> Any:
        """Handles one element, which it must not change; `args` and `kwargs` are further arguments and side inputs.

        Returns:
            An iterable of elements, `TaggedOutput` or ``TimestampedValue`` objects, or None for nothing. With ``async
            def``, a coroutine that returns them, or an asynchronous generator of them.
        """
        raise NotImplementedError

    def process_batch(self, batch: Any, *args: Any, **kwargs: Any) -> Any:
        """Handles a batch of elements at once, instead of `process` or in addition to it; must not change the batch.

        The annotation of `batch` declares what a batch is: ``list[T]``, or an array or table of NumPy, pandas or Arrow.
        All elements of a batch have the same timestamp, windows and pane; no batch is empty.

        Returns:
            An iterable of batches, or of elements if it is decorated with `yields_elements`; None for nothing.
        """
        raise NotImplementedError

    @_does_nothing
    def setup(self) -> Any:
        """Called once before the first bundle, e.g. to connect to something."""

    @_does_nothing
    def start_bundle(self) -> object:
        """Called before each bundle."""

    @_does_nothing
    def finish_bundle(self) -> Any:
        """Called after each bundle; may yield ``WindowedValue`` objects."""

    @_does_nothing
    def teardown(self) -> Any:
        """Called when the instance is discarded, if the worker ends normally."""

    def get_function_arguments(self, func: str) -> tuple[list[str], list[Any]]:
        """Returns the names of the arguments of one of its methods, and the default arguments."""
        return get_function_arguments(self, func)

    def process_signature(self) -> MethodSignature:
        """Returns the arguments that `process` asks for; wrappers answer for the function they wrap."""
        return read_method_signature("process", self.argspec_of_process())

    def own_signature(self) -> DoFnSignature | None:
        """Returns the parameters of all methods, if this object knows them better than its methods show; else None."""
        return None

    def own_splits(self) -> Any:
        """Returns the splits of a splittable DoFn, if this object knows better than its parameters; else None."""
        return None

    def timer_owner(self) -> Any:
        """Returns the object that has the ``on_timer`` methods; wrappers answer with what they wrap."""
        return self

    def default_type_hints(self) -> IOTypeHints:
        """Returns the type hints on the class, then those from the annotations of `process`."""
        hints = element_hints(self)
        try:
            hints = hints.strip_iterable()
        except ValueError as error:
            what = f"Return value not iterable: {type(self).__name__}.process: {first_line(error)}"
            hint = "annotate process as returning an Iterable of elements"
            raise refusal(ValueError, what, hint=hint) from error
        return get_type_hints(type(self)).with_defaults(hints.extract_tagged_outputs())

    def infer_output_type(self, input_type: object) -> object:
        """Returns the type of the elements that `process` yields for elements of `input_type`."""
        if not self.defines_process or self.calls_asynchronously:
            return typehints.Any
        known = [input_type]
        declared = self.process_signature().asking_for("ElementParam")
        if declared:
            # The element is not the first argument.
            parameters = [parameter.name for parameter in self.process_signature().parameters]
            known = [typehints.Any] * parameters.index(declared[0].name)
            known += [input_type] if declared[0].passed_by != "keyword" else []
        returned = trivial_inference.infer_return_type(self.process, known)
        return trivial_inference.element_type(strip_output_annotations(returned))

    def get_input_batch_type(self, input_element_type: Any) -> Any:
        """Returns the type of the batches that `process_batch` takes, by default its annotation; None without it.

        Raises:
            TypeError: If the parameter has no annotation.
        """
        return annotated_input(self)

    def get_output_batch_type(self, input_element_type: Any) -> Any:
        """Returns the type of the batches that it yields, None if it yields none; by default, as annotated or inferred.

        Raises:
            TypeError: If `process` and `process_batch` yield batches of different types, or do not yield.
        """
        return annotated_output(self, input_element_type)

    @property
    def calls_asynchronously(self) -> bool:
        """True if `process` returns a coroutine or an asynchronous generator."""
        return is_asynchronous(self.process)

    @property
    def concurrency_max(self) -> int:
        """The number of calls of an asynchronous `process` that are made at a time."""
        return DEFAULT_CONCURRENCY

    @property
    def defines_process(self) -> bool:
        """True if the class overrides `process`."""
        return getattr(self.process, "__func__", self.process) is not DoFn.process

    @property
    def defines_process_batch(self) -> bool:
        """True if the class overrides `process_batch`."""
        return getattr(self.process_batch, "__func__", self.process_batch) is not DoFn.process_batch

    @property
    def can_yield_batches(self) -> bool:
        """True if one of the two methods yields batches."""
        return (self.defines_process and self.process_yields_batches) or (
            self.defines_process_batch and not self.process_batch_yields_elements
        )

    @property
    def process_yields_batches(self) -> bool:
        """True if `process` is marked as yielding batches."""
        return getattr(self.process, "yields_batches", False)

    @property
    def process_batch_yields_elements(self) -> bool:
        """True if `process_batch` is marked as yielding elements."""
        return getattr(self.process_batch, "yields_elements", False)

    def argspec_of_process(self) -> Callable[..., Any]:
        """Returns the function whose parameters count for arguments and type hints."""
        return self.process


def first_line(error: Exception) -> str:
    """Returns the first line of an error's text: what is wrong, without where and hint."""
    return str(error).partition("\n")[0]


def _marked(fn: Callable[..., Any], mark: str) -> Callable[..., Any]:
    if fn.__name__ not in ("process", "process_batch"):
        raise refusal(TypeError, f"@{mark} must be applied to a process or process_batch method, not {fn!r}")
    setattr(fn, mark, True)
    return fn


def identity(x: object) -> Any:
    """Returns its argument."""
    return x


def get_function_args_defaults(f: Callable[..., Any]) -> tuple[list[str], list[Any]]:
    """Returns the names of a function's positional parameters, and the default arguments of the last of them.

    >>> get_function_args_defaults(lambda x, y=3: x)
    (['x', 'y'], [3])
    """
    parameters = [p for p in read_method_signature("", f).parameters if p.passed_by != "keyword"]
    required = Parameter("").default
    return [p.name for p in parameters], [p.default for p in parameters if p.default is not required]


def get_function_arguments(obj: object, func: str) -> tuple[list[str], list[Any]]:
    """`get_function_args_defaults` of an object's method; wrappers answer for what they wrap."""
    if func == "process" and isinstance(obj, DoFn):
        return get_function_args_defaults(obj.argspec_of_process())
    return get_function_args_defaults(getattr(obj, func))


class FlatMapDoFn(DoFn):
    """Emits each element of what `fn` returns, which may be None for nothing (Beam's ``CallableWrapperDoFn``).

    >>> list(FlatMapDoFn(str.split).process("to be"))
    ['to', 'be']
    """

    def __init__(self, fn: Callable[..., Any], fullargspec: object = None) -> None:
        if not callable(fn):
            raise refusal(TypeError, f"Expected a callable object instead of: {fn!r}")
        super().__init__()
        self.fn = fn

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.describe()})"

    def describe(self) -> str:
        """Returns the function's name, for people."""
        return str(getattr(self.fn, "__name__", type(self.fn).__name__))

    def display_data(self) -> dict[str, Any]:
        """Returns the function (Beam's key is ``fn``)."""
        return {"fn": DisplayDataItem(self.describe(), label="Transform Function")}

    def _get_display_data_namespace(self) -> str:
        # The classes that only some functions need do not matter to those who read it.
        return "penstock.transforms.core.CallableWrapperDoFn"

    def process(self, element: Any, *args: Any, **kwargs: Any) -> Any:
        return self.fn(element, *args, **kwargs)

    def default_type_hints(self) -> IOTypeHints:
        """Returns the function's type hints; its result's element type counts as the output type."""
        try:
            hints = self._function_hints().strip_iterable()
        except ValueError as error:
            what = f"Return value not iterable: {self.describe()}: {first_line(error)}"
            hint = "use Map, or return an iterable"
            raise refusal(TypeCheckError, what, hint=hint) from error
        return hints.extract_tagged_outputs()

    def infer_output_type(self, input_type: object) -> object:
        return trivial_inference.element_type(self._inferred(input_type))

    @property
    def calls_asynchronously(self) -> bool:
        return is_asynchronous(self.fn)

    def _inferred(self, input_type: object) -> object:
        if self.calls_asynchronously:
            return typehints.Any
        return strip_output_annotations(trivial_inference.infer_return_type(self.fn, [input_type]))

    def _function_hints(self) -> IOTypeHints:
        return get_type_hints(self.fn).with_defaults(IOTypeHints.from_callable(self.fn))

    def argspec_of_process(self) -> Callable[..., Any]:
        return self.fn


CallableWrapperDoFn = FlatMapDoFn


class ItemsDoFn(FlatMapDoFn):
    """Emits each item of an element, which may be a string: what ``FlatMap()`` does.

    >>> list(ItemsDoFn().process("ab"))
    ['a', 'b']
    """

    def __init__(self) -> None:
        super().__init__(identity)

    def process(self, element: tuple[Any, Any]) -> Any:
        return iter(element)

    def default_type_hints(self) -> IOTypeHints:
        """None: the type of the items follows from the type of the elements."""
        return IOTypeHints.empty()

    def infer_output_type(self, input_type: object) -> object:
        return trivial_inference.element_type(input_type)


class MapDoFn(FlatMapDoFn):
    """Emits what `fn` returns.

    >>> MapDoFn(len).process("abc")
    [3]
    """

    def process(self, element: object, *args: object, **kwargs: object) -> Iterable[Any]:
        return [self.fn(element, *args, **kwargs)]

    def default_type_hints(self) -> IOTypeHints:
        return _without_output_annotations(self._function_hints().extract_tagged_outputs())

    def infer_output_type(self, input_type: object) -> object:
        return self._inferred(input_type)


class FilterDoFn(FlatMapDoFn):
    """Keeps the elements for which `fn` returns true.

    >>> FilterDoFn(str.isdigit).process("7"), FilterDoFn(str.isdigit).process("a")
    (['7'], [])
    """

    def process(self, element: object, *args: object, **kwargs: object) -> Iterable[Any]:
        return [element] if self.fn(element, *args, **kwargs) else []

    def default_type_hints(self) -> IOTypeHints:
        """Returns the function's input type, which is also the output type unless a decorator names another."""
        declared = get_type_hints(self.fn)
        annotated = IOTypeHints.from_callable(self.fn)
        # The annotated result is a bool, and says nothing about the elements.
        hints = declared.with_defaults(annotated.with_output_types() if annotated is not None else None)
        if not hints.input_types:
            return IOTypeHints.empty()
        args, kwargs = hints.input_types
        if len(args) == 1 and not kwargs and args[0] is typehints.Any:
            return IOTypeHints.empty()
        output = declared.simple_output_type("") or (args[0] if args else None)
        return hints if output is None else hints.with_output_types(strip_output_annotations(output))

    def infer_output_type(self, input_type: object) -> object:
        """Returns the input type: filtering changes no element."""
        return input_type


_TUPLE_HINT = "side inputs need parameters with defaults, as in lambda key, value, side=None: ..."


class FlatMapTupleDoFn(FlatMapDoFn):
    """Calls `fn` with the parts of each tuple, and emits each element of what it returns.

    >>> list(FlatMapTupleDoFn(range).process((1, 3)))
    [1, 2]
    """

    def process(self, element: Iterable[Any], *args: object, **kwargs: object) -> Any:
        return self.fn(*element, *args, **kwargs)

    def process_signature(self) -> MethodSignature:
        """One parameter for the whole tuple, then those with default arguments."""
        inner = read_method_signature("process", self.fn)
        required = Parameter("").default
        optional = tuple(p for p in inner.parameters if p.default is not required)
        parameters = (Parameter("tuple_element"), *optional)
        return MethodSignature("process", parameters, False, inner.more_keywords, _TUPLE_HINT)

    def default_type_hints(self) -> IOTypeHints:
        """Returns the function's output type; its input types describe the parts, not the tuple."""
        hints = super().default_type_hints()
        return _without_output_annotations(hints.with_input_types_from(IOTypeHints.empty()))

    def _inferred(self, input_type: object) -> object:
        parts = getattr(input_type, "tuple_types", None)
        if parts is None or self.calls_asynchronously:
            return typehints.Any
        return strip_output_annotations(trivial_inference.infer_return_type(self.fn, list(parts)))

    def argspec_of_process(self) -> Callable[..., Any]:
        return lambda tuple_element, *args, **kwargs: None


class MapTupleDoFn(FlatMapTupleDoFn):
    """Calls `fn` with the parts of each tuple, and emits what it returns.

    >>> MapTupleDoFn(lambda key, value: (value, key)).process(("a", 1))
    [(1, 'a')]
    """

    def process(self, element: Iterable[Any], *args: object, **kwargs: object) -> Iterable[Any]:
        return [self.fn(*element, *args, **kwargs)]

    def default_type_hints(self) -> IOTypeHints:
        hints = self._function_hints().extract_tagged_outputs().with_input_types_from(IOTypeHints.empty())
        return _without_output_annotations(hints)

    def infer_output_type(self, input_type: object) -> object:
        return self._inferred(input_type)


def _without_output_annotations(hints: IOTypeHints) -> IOTypeHints:
    output = hints.simple_output_type("")
    if output is None:
        return hints
    stripped = strip_output_annotations(output, strip_tagged_output=False)
    return hints if stripped is output else hints.with_output_types(stripped, **hints.tagged_output_types())
