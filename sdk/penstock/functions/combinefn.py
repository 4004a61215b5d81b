"""The CombineFn: a rule by which many values become one, in parts that can be merged."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from penstock.base.display import HasDisplayData
from penstock.base.labels import label_from_callable
from penstock.coders.typecoders import registry
from penstock.error import refusal
from penstock.typehints import trivial_inference, typehints
from penstock.typehints.decorators import (
    IOTypeHints,
    TypeCheckError,
    WithTypeHints,
    get_type_hints,
    strip_output_annotations,
)


def _undefined(fn: CombineFn, signature: str) -> NotImplementedError:
    """Returns the error for a method that a subclass must define."""
    what = f"{type(fn).__name__} defines no {signature.partition('(')[0]} method"
    return refusal(NotImplementedError, what, hint=f"def {signature}: return ...")


class CombineFn(WithTypeHints, HasDisplayData):
    """Combines values into one: adds them to accumulators, and merges these (Beam's ``CombineFn``).

    The result must not depend on the order of the values, or on how they were divided. A subclass defines
    `create_accumulator`, `add_input`, `merge_accumulators` and `extract_output`. Every method also receives
    the further arguments of the transform.

    A subclass may also define ``subtract_input(self, mutable_accumulator, element, *args, **kwargs)``, which returns
    the accumulator without a value that was added before, or that will be added (the paper's ``uncombine``). The runner
    asks ``hasattr``. Without this method, a step whose input may contain retractions keeps all values, and combines the
    remaining ones again, which is always right. ``subtract_input`` must be exact. If it is exact only for some values,
    a method ``subtracts(self, element, *args, **kwargs)`` returns whether it is, and the other values are kept. Sums
    and means subtract integers: adding a float or a Decimal and subtracting it again may result in a different
    number.

    Attributes:
        accepts_retractions: Whether the input may contain elements that retract earlier ones (penstock's own).

    >>> class Mean(CombineFn):
    ...     def create_accumulator(self): return 0, 0
    ...     def add_input(self, accumulator, element): return accumulator[0] + element, accumulator[1] + 1
    ...     def merge_accumulators(self, accumulators): return tuple(map(sum, zip(*accumulators)))
    ...     def extract_output(self, accumulator): return accumulator[0] / accumulator[1]
    >>> Mean().apply([1, 2, 6])
    3.0
    """

    accepts_retractions: bool = True

    def default_label(self) -> str:
        """Returns the name for labels: the name of the class."""
        return type(self).__name__

    def setup(self, *args: Any, **kwargs: Any) -> None:
        """Called once on each worker before anything else."""

    def create_accumulator(self, *args: Any, **kwargs: Any) -> Any:
        """Returns an accumulator of no values."""
        raise _undefined(self, "create_accumulator(self)")

    def add_input(self, mutable_accumulator: Any, element: Any, *args: Any, **kwargs: Any) -> Any:
        """Returns the accumulator with one more value; it may be changed in place."""
        raise _undefined(self, "add_input(self, accumulator, element)")

    def add_inputs(self, mutable_accumulator: Any, elements: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
        """Returns the accumulator with more values; it may be changed in place."""
        for element in elements:
            mutable_accumulator = self.add_input(mutable_accumulator, element, *args, **kwargs)
        return mutable_accumulator

    def merge_accumulators(self, accumulators: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
        """Returns one accumulator for several; only the first may be changed in place."""
        raise _undefined(self, "merge_accumulators(self, accumulators)")

    def compact(self, accumulator: Any, *args: Any, **kwargs: Any) -> Any:
        """Returns the accumulator in a smaller form, before it is sent."""
        return accumulator

    def extract_output(self, accumulator: Any, *args: Any, **kwargs: Any) -> Any:
        """Returns the result."""
        raise _undefined(self, "extract_output(self, accumulator)")

    def teardown(self, *args: Any, **kwargs: Any) -> None:
        """Called last on each worker, if the worker ends normally."""

    def apply(self, elements: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
        """Returns the result of combining some values at once."""
        accumulator = self.add_inputs(self.create_accumulator(*args, **kwargs), elements, *args, **kwargs)
        return self.extract_output(accumulator, *args, **kwargs)

    def for_input_type(self, input_type: object) -> CombineFn:
        """Returns a variant for values of one type; itself, unless overridden."""
        return self

    @staticmethod
    def from_callable(fn: Callable[..., Any]) -> CombineFn:
        """Returns a CombineFn of a function from an iterable to one value, such as ``sum``."""
        return CallableWrapperCombineFn(fn)

    @staticmethod
    def maybe_from_callable(fn: object, has_side_inputs: bool = True) -> CombineFn:
        """Returns `fn` itself if it is a CombineFn, or else a CombineFn of the function `fn`.

        >>> CombineFn.maybe_from_callable(max).apply([1, 3, 2])
        3
        """
        if isinstance(fn, CombineFn):
            return fn
        if not callable(fn):
            what = f"Expected a CombineFn or callable, got {fn!r}"
            raise refusal(TypeError, what, hint="e.g. sum, or MeanCombineFn()")
        return CallableWrapperCombineFn(fn) if has_side_inputs else NoSideInputsCallableWrapperCombineFn(fn)

    def get_accumulator_coder(self) -> Any:
        """Returns the coder of accumulators."""
        return registry.get_coder(object)


class _Chain:
    """Several iterables as one, which can be iterated again."""

    def __init__(self, iterables: Iterable[Iterable[Any]]) -> None:
        self._iterables = list(iterables)

    def __iter__(self) -> Iterator[Any]:
        for iterable in self._iterables:
            yield from iterable

    def __bool__(self) -> bool:
        return any(True for _ in self)


def is_whole(element: object) -> bool:
    """True if a sum is exact again after the number is added and subtracted, as for ints and bools."""
    return type(element) in (int, bool)


class CallableWrapperCombineFn(CombineFn):
    """A CombineFn of a function such as ``sum``; its accumulator is a list of at most `buffer_size` values.

    The CombineFn of ``sum`` itself has ``subtract_input``, for integers.

    Args:
        fn: A function from an iterable of values to one value of the same kind; it may also be called with its own
            results.
        buffer_size: The number of values that are kept before they are combined into one.
    """

    _DEFAULT_BUFFER_SIZE = 10

    def __init__(self, fn: Callable[..., Any], buffer_size: int = _DEFAULT_BUFFER_SIZE) -> None:
        if not callable(fn):
            raise refusal(TypeError, f"Expected a callable object instead of: {fn!r}")
        super().__init__()
        self.fn = fn
        self._buffer_size = buffer_size
        if fn is sum:
            self.subtract_input = self._subtract
            self.subtracts = self._subtracts

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.describe()})"

    def describe(self) -> str:
        """Returns the function's name, for messages."""
        return str(getattr(self.fn, "__name__", type(self.fn).__name__))

    def default_label(self) -> str:
        return label_from_callable(self.fn)

    def display_data(self) -> dict[str, Any]:
        return {"fn": self.describe()}

    def create_accumulator(self, *args: object, **kwargs: object) -> list[Any]:
        return []

    def add_input(
        self, mutable_accumulator: list[Any], element: object, *args: object, **kwargs: object
    ) -> list[Any]:
        mutable_accumulator.append(element)
        return self._reduced(mutable_accumulator, self._buffer_size, args, kwargs)

    def add_inputs(
        self, mutable_accumulator: list[Any], elements: Iterable[Any], *args: object, **kwargs: object
    ) -> list[Any]:
        mutable_accumulator.extend(elements)
        return self._reduced(mutable_accumulator, self._buffer_size, args, kwargs)

    def merge_accumulators(
        self, accumulators: Iterable[list[Any]], *args: object, **kwargs: object
    ) -> list[Any]:
        return [self.fn(_Chain(accumulators), *args, **kwargs)]

    def compact(self, accumulator: list[Any], *args: object, **kwargs: object) -> list[Any]:
        return self._reduced(accumulator, 1, args, kwargs)

    def extract_output(self, accumulator: list[Any], *args: Any, **kwargs: Any) -> object:
        return self.fn(accumulator, *args, **kwargs)

    def _reduced(
        self, values: list[Any], most: int, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> list[Any]:
        return [self.fn(values, *args, **kwargs)] if len(values) > most else values

    def _subtract(self, mutable_accumulator: list[Any], element: Any) -> list[Any]:
        return self.add_input(mutable_accumulator, -element)

    def _subtracts(self, element: object, *args: object, **kwargs: object) -> bool:
        # A sum with a start counts it as often as parts are added up.
        return is_whole(element) and not (args or kwargs)

    def default_type_hints(self) -> IOTypeHints:
        """Returns the function's type hints; from an iterable of values to a value becomes from value to value."""
        hints = get_type_hints(self.fn).with_defaults(IOTypeHints.from_callable(self.fn))
        if hints.input_types is None:
            return hints
        args, kwargs = hints.input_types
        if not args and len(kwargs) == 1:
            args, kwargs = tuple(kwargs.values()), {}
        if not args:
            what = "Combiner input type must be specified positionally"
            raise refusal(TypeError, what, hint="@with_input_types(T)")
        if not typehints.is_consistent_with(args[0], typehints.Iterable[typehints.Any]):
            raise TypeCheckError(
                "All functions for a Combine PTransform must accept a single argument compatible with: Iterable[Any]. "
                f"Instead a function with input type: {args[0]} was received.",
                hint="annotate the argument as an Iterable",
            )
        return hints.with_input_types(trivial_inference.element_type(args[0]), *args[1:], **kwargs)

    def infer_output_type(self, input_type: object) -> object:
        """Returns the type of the function's result."""
        return strip_output_annotations(trivial_inference.infer_return_type(self.fn, [input_type]))


class NoSideInputsCallableWrapperCombineFn(CallableWrapperCombineFn):
    """A CombineFn of a function that takes no further arguments (Beam's name)."""


_METHODS = (
    "setup create_accumulator add_input add_inputs merge_accumulators compact extract_output teardown "
    "subtract_input subtracts"
)


class WrappingCombineFn(CombineFn):
    """The base of CombineFns around another one, with its name, its types, and some of its methods."""

    def __init__(self, fn: CombineFn, methods: str = "") -> None:
        super().__init__()
        self.fn = fn
        self.accepts_retractions = fn.accepts_retractions
        delegate(self, fn, methods)

    def describe(self) -> str:
        """Returns the name of the CombineFn inside, for messages."""
        return describe_function(self.fn)

    def default_label(self) -> str:
        return self.fn.default_label()

    def default_type_hints(self) -> IOTypeHints:
        return self.fn.get_type_hints()


class _CurriedFn(WrappingCombineFn):
    """A CombineFn whose further arguments are already known."""

    def __init__(self, fn: CombineFn, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        super().__init__(fn)
        for name in _METHODS.split():
            if hasattr(fn, name):
                setattr(self, name, functools.partial(_called_with, getattr(fn, name), tuple(args), kwargs))


def _called_with(
    method: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], *given: object
) -> object:
    return method(*given, *args, **kwargs)


def describe_function(fn: object) -> str:
    """Returns the name of a DoFn or CombineFn for messages, which may be a function's name."""
    describe: Callable[[], str] | None = getattr(fn, "describe", None)
    return describe() if describe is not None else type(fn).__name__


def curry_combine_fn(fn: CombineFn, args: Sequence[Any], kwargs: Mapping[str, Any]) -> CombineFn:
    """Returns a CombineFn that needs no further arguments (Beam's name); `fn` itself if there are none.

    >>> curry_combine_fn(CombineFn.from_callable(max), [], {"key": abs}).apply([1, -3])
    -3
    """
    return _CurriedFn(fn, args, dict(kwargs)) if args or kwargs else fn


class NoValue(enum.Enum):
    """Stands for no value where an empty PCollection needs an element; equal to its pickled copies."""

    MARKER = enum.auto()


def delegate(wrapper: CombineFn, fn: CombineFn, methods: str) -> None:
    """Gives a CombineFn those methods of the CombineFn inside that this has."""
    for name in methods.split():
        if hasattr(fn, name):
            setattr(wrapper, name, getattr(fn, name))


_PASSED_ON = (
    "setup create_accumulator merge_accumulators compact extract_output teardown subtract_input subtracts"
)


class DefaultingCombineFn(WrappingCombineFn):
    """A CombineFn that skips the marker of an otherwise empty PCollection."""

    def __init__(self, fn: CombineFn) -> None:
        # The marker is never retracted.
        super().__init__(fn, _PASSED_ON)

    @staticmethod
    def is_marker(value: object) -> bool:
        """True if a value is the marker."""
        return value is NoValue.MARKER

    def add_input(
        self, mutable_accumulator: object, element: object, *args: object, **kwargs: object
    ) -> object:
        if element is NoValue.MARKER:
            return mutable_accumulator
        return self.fn.add_input(mutable_accumulator, element, *args, **kwargs)

    def add_inputs(
        self, mutable_accumulator: object, elements: Iterable[Any], *args: object, **kwargs: object
    ) -> object:
        values = [element for element in elements if element is not NoValue.MARKER]
        return self.fn.add_inputs(mutable_accumulator, values, *args, **kwargs)


def without_marker(fn: CombineFn) -> CombineFn:
    """Returns the CombineFn of values alone, for a runner that leaves the marker out itself.

    >>> total = CombineFn.from_callable(sum)
    >>> without_marker(DefaultingCombineFn(total)) is without_marker(total) is total
    True
    """
    return fn.fn if isinstance(fn, DefaultingCombineFn) else fn
