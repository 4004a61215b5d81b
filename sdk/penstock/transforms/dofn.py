"""DoFns made of plain functions, and everything else about DoFns in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.error import three_parts
from penstock.transforms.dofn_base import DoFn, first_line, strip_output_annotations
from penstock.transforms.params import (
    DoFnContext,
    DoFnParam,
    DoFnProcessContext,
    ProcessContinuation,
    RestrictionProvider,
    WatermarkEstimatorProvider,
)
from penstock.transforms.signature import (
    Call,
    DoFnSignature,
    MethodSignature,
    Parameter,
    bind,
    method_signature,
    signature_of,
)
from penstock.typehints import trivial_inference, typehints
from penstock.typehints.decorators import IOTypeHints, TypeCheckError, get_type_hints
from penstock.where import here

__all__ = [
    "Call",
    "CallableWrapperDoFn",
    "DoFn",
    "DoFnContext",
    "DoFnParam",
    "DoFnProcessContext",
    "DoFnSignature",
    "FilterDoFn",
    "FlatMapDoFn",
    "FlatMapTupleDoFn",
    "ItemsDoFn",
    "MapDoFn",
    "MapTupleDoFn",
    "MethodSignature",
    "Parameter",
    "ProcessContinuation",
    "RestrictionProvider",
    "WatermarkEstimatorProvider",
    "bind",
    "get_function_args_defaults",
    "get_function_arguments",
    "identity",
    "signature_of",
    "strip_output_annotations",
]


def identity(x: Any) -> Any:
    """Its argument.

    >>> identity(3)
    3
    """
    return x


def get_function_args_defaults(f: Callable[..., Any]) -> tuple[list[str], list[Any]]:
    """The names of a function's positional parameters, and the default arguments of the last of them.

    >>> get_function_args_defaults(lambda x, y=3: x)
    (['x', 'y'], [3])
    """
    parameters = [p for p in method_signature("", f).parameters if p.passed_by != "keyword"]
    required = Parameter("").default
    return [p.name for p in parameters], [p.default for p in parameters if p.default is not required]


def get_function_arguments(obj: Any, func: str) -> tuple[list[str], list[Any]]:
    """`get_function_args_defaults` of an object's method; wrappers answer for what they wrap."""
    if func == "process" and isinstance(obj, DoFn):
        return get_function_args_defaults(obj._process_argspec_fn())
    return get_function_args_defaults(getattr(obj, func))


class FlatMapDoFn(DoFn):
    """Gives each element of what `fn` returns (Beam's ``CallableWrapperDoFn``).

    Args:
        fn: A function that returns an iterable, or None for nothing.

    Raises:
        TypeError: If `fn` is not callable.

    >>> list(FlatMapDoFn(str.split).process("to be"))
    ['to', 'be']
    """

    def __init__(self, fn: Callable[..., Any], fullargspec: Any = None) -> None:
        if not callable(fn):
            raise TypeError(three_parts(f"Expected a callable object instead of: {fn!r}", where=here()))
        super().__init__()
        self.fn = fn

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.describe()})"

    def describe(self) -> str:
        """The function's name, for people."""
        return str(getattr(self.fn, "__name__", type(self.fn).__name__))

    def display_data(self) -> dict[str, Any]:
        """The function (Beam's key is ``fn``)."""
        from penstock.transforms.display import DisplayDataItem

        return {"fn": DisplayDataItem(self.describe(), label="Transform Function")}

    def _get_display_data_namespace(self) -> str:
        # The classes that only some functions need are no business of those who read it.
        return "penstock.transforms.core.CallableWrapperDoFn"

    def process(self, element: Any, *args: Any, **kwargs: Any) -> Any:
        """The function's own result."""
        return self.fn(element, *args, **kwargs)

    def default_type_hints(self) -> Any:
        """The function's type hints; its result's element type counts as the output type.

        Raises:
            TypeCheckError: If the function is annotated as returning something that is not iterable.
        """
        try:
            hints = self._function_hints().strip_iterable()
        except ValueError as error:
            raise TypeCheckError(
                three_parts(
                    f"Return value not iterable: {self.describe()}: {first_line(error)}",
                    where=here(),
                    hint="use Map, or return an iterable",
                )
            ) from error
        return hints.extract_tagged_outputs()

    def infer_output_type(self, input_type: Any) -> Any:
        """The element type of the function's result."""
        return trivial_inference.element_type(self._inferred(input_type))

    def _inferred(self, input_type: Any) -> Any:
        return strip_output_annotations(trivial_inference.infer_return_type(self.fn, [input_type]))

    def _function_hints(self) -> Any:
        return get_type_hints(self.fn).with_defaults(IOTypeHints.from_callable(self.fn))

    def _process_argspec_fn(self) -> Callable[..., Any]:
        return self.fn


CallableWrapperDoFn = FlatMapDoFn


class ItemsDoFn(FlatMapDoFn):
    """Gives each item of an element, the characters of a text too: what ``FlatMap()`` does.

    >>> list(ItemsDoFn().process("ab"))
    ['a', 'b']
    """

    def __init__(self) -> None:
        super().__init__(identity)

    def process(self, element: Any) -> Any:
        """The items."""
        return iter(element)

    def default_type_hints(self) -> Any:
        """None: the type of the items follows from that of the elements."""
        return IOTypeHints.empty()

    def infer_output_type(self, input_type: Any) -> Any:
        """The type of the items."""
        return trivial_inference.element_type(input_type)


class MapDoFn(FlatMapDoFn):
    """Gives what `fn` returns.

    >>> MapDoFn(len).process("abc")
    [3]
    """

    def process(self, element: Any, *args: Any, **kwargs: Any) -> Iterable[Any]:
        """The function's result as the one output."""
        return [self.fn(element, *args, **kwargs)]

    def default_type_hints(self) -> Any:
        """The function's type hints."""
        return _without_output_annotations(self._function_hints().extract_tagged_outputs())

    def infer_output_type(self, input_type: Any) -> Any:
        """The type of the function's result."""
        return self._inferred(input_type)


class FilterDoFn(FlatMapDoFn):
    """Gives the elements for which `fn` is true.

    >>> FilterDoFn(str.isdigit).process("7"), FilterDoFn(str.isdigit).process("a")
    (['7'], [])
    """

    def process(self, element: Any, *args: Any, **kwargs: Any) -> Iterable[Any]:
        """The element or nothing."""
        return [element] if self.fn(element, *args, **kwargs) else []

    def default_type_hints(self) -> Any:
        """The function's input type, which is also the output type, unless a decorator names another."""
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

    def infer_output_type(self, input_type: Any) -> Any:
        """The input type: filtering changes no element."""
        return input_type


_TUPLE_HINT = "side inputs need parameters with defaults, as in lambda key, value, side=None: ..."


class FlatMapTupleDoFn(FlatMapDoFn):
    """Calls `fn` with the parts of each tuple, and gives each element of what it returns.

    >>> list(FlatMapTupleDoFn(range).process((1, 3)))
    [1, 2]
    """

    def process(self, element: Any, *args: Any, **kwargs: Any) -> Any:
        """The function's own result."""
        return self.fn(*element, *args, **kwargs)

    def process_signature(self) -> MethodSignature:
        """One parameter for the whole tuple, then those with default arguments."""
        inner = method_signature("process", self.fn)
        required = Parameter("").default
        optional = tuple(p for p in inner.parameters if p.default is not required)
        parameters = (Parameter("tuple_element"), *optional)
        return MethodSignature("process", parameters, False, inner.more_keywords, _TUPLE_HINT)

    def default_type_hints(self) -> Any:
        """The function's output type; its input types speak of the parts, not of the tuple."""
        hints = super().default_type_hints()
        return _without_output_annotations(hints.with_input_types_from(IOTypeHints.empty()))

    def _inferred(self, input_type: Any) -> Any:
        parts = getattr(input_type, "tuple_types", None)
        if parts is None:
            return typehints.Any
        return strip_output_annotations(trivial_inference.infer_return_type(self.fn, list(parts)))

    def _process_argspec_fn(self) -> Callable[..., Any]:
        return lambda tuple_element, *args, **kwargs: None


class MapTupleDoFn(FlatMapTupleDoFn):
    """Calls `fn` with the parts of each tuple, and gives what it returns.

    >>> MapTupleDoFn(lambda key, value: (value, key)).process(("a", 1))
    [(1, 'a')]
    """

    def process(self, element: Any, *args: Any, **kwargs: Any) -> Iterable[Any]:
        """The function's result as the one output."""
        return [self.fn(*element, *args, **kwargs)]

    def default_type_hints(self) -> Any:
        """The function's output type."""
        hints = self._function_hints().extract_tagged_outputs().with_input_types_from(IOTypeHints.empty())
        return _without_output_annotations(hints)

    def infer_output_type(self, input_type: Any) -> Any:
        """The type of the function's result."""
        return self._inferred(input_type)


def _without_output_annotations(hints: Any) -> Any:
    output = hints.simple_output_type("")
    if output is None:
        return hints
    stripped = strip_output_annotations(output, strip_tagged_output=False)
    return hints if stripped is output else hints.with_output_types(stripped, **hints.tagged_output_types())
