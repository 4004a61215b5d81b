"""The batches that DoFns with a ``process_batch`` take and yield, and their converters (Beam's ``typehints.batch``).

Lists need nothing else. Batches of NumPy, pandas and Arrow come with the runner, which has these libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Generic, TypeVar

from penstock.base.engine import load_batch_converters
from penstock.coders.typecoders import registry
from penstock.error import refusal
from penstock.typehints import trivial_inference, typehints
from penstock.typehints.decorators import IOTypeHints
from penstock.typehints.native_type_compatibility import convert_to_beam_type
from penstock.typehints.signatures import get_signature

B = TypeVar("B")
E = TypeVar("E")
Constructor = Callable[[Any, Any], "BatchConverter[Any, Any]"]

N = "ARBITRARY LENGTH DIMENSION"
"""In the shape of a ``NumpyArray``: the dimension along which the elements are (Beam's name)."""

BATCH_CONVERTER_REGISTRY: dict[str, Constructor] = {}
"""Constructors that try to make a converter, by name (Beam's name)."""

_OF_THE_RUNNER = ("NumpyArray", "NumpyBatchConverter", "NumpyTypeHint")
_SAMPLED = 100


class BatchConverter(Generic[B, E]):
    """Makes batches of elements, and elements of batches (Beam's name).

    Two converters are equal if one can use the batches of the other.
    """

    def __init__(self, batch_type: Any, element_type: Any) -> None:
        self._batch_type = batch_type
        self._element_type = element_type

    @property
    def batch_type(self) -> Any:
        """The type hint of the batch."""
        return self._batch_type

    @property
    def element_type(self) -> Any:
        """The type hint of the elements."""
        return self._element_type

    def produce_batch(self, elements: Sequence[E]) -> B:
        """Returns a batch of the elements, in their order."""
        raise NotImplementedError

    def explode_batch(self, batch: B) -> Iterator[E]:
        """Returns the elements of a batch, in their order."""
        raise NotImplementedError

    def combine_batches(self, batches: Sequence[B]) -> B:
        """Joins several batches to one."""
        raise NotImplementedError

    def get_length(self, batch: B) -> int:
        """Returns the number of elements of a batch."""
        raise NotImplementedError

    def estimate_byte_size(self, batch: B) -> int:
        """Returns roughly how many bytes a batch takes."""
        raise NotImplementedError

    @staticmethod
    def register(*, name: str) -> Callable[[Constructor], Constructor]:
        """Returns a decorator for a function from (element type, batch type) to a converter; `name` appears in errors.

        The function raises a TypeError, which says why, for types that it cannot convert.

        Raises:
            AssertionError: If the name is taken, as in Beam.
        """

        def registered(constructor: Constructor) -> Constructor:
            if name in BATCH_CONVERTER_REGISTRY:
                what = f"Attempted to register two batch converters with name {name}"
                raise refusal(AssertionError, what, hint="give each its own name")
            BATCH_CONVERTER_REGISTRY[name] = constructor
            return constructor

        return registered

    @staticmethod
    def from_typehints(*, element_type: object, batch_type: object) -> BatchConverter[Any, Any]:
        """Returns the converter for two type hints.

        Raises:
            TypeError: If no registered constructor has one.

        >>> converter = BatchConverter.from_typehints(element_type=int, batch_type=list[int])
        >>> converter.produce_batch((1, 2)), converter.get_length([1, 2])
        ([1, 2], 2)
        """
        element_type, batch_type = typehints.normalize(element_type), typehints.normalize(batch_type)
        if not isinstance(batch_type, typehints.ListConstraint):
            load_batch_converters()
        reasons = []
        for name, constructor in BATCH_CONVERTER_REGISTRY.items():
            try:
                return constructor(element_type, batch_type)
            except TypeError as error:
                reasons.append(f"{name}: {str(error).partition(chr(10))[0]}")
        types = f"element_type={_shown(element_type)} and batch_type={_shown(batch_type)}"
        what = f"Unable to find BatchConverter for {types} ({'; '.join(reasons)})"
        raise refusal(TypeError, what, hint=_HINT)

    def _key(self) -> tuple[Any, ...]:
        return type(self), self._element_type, self._batch_type

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, BatchConverter) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())


_HINT = "annotate process_batch with batches of the input's elements, and say what the elements are: with_output_types"


class ListBatchConverter(BatchConverter[list[Any], Any]):
    """Batches that are lists, of a type ``List[T]`` for elements of type ``T`` (Beam's name)."""

    @staticmethod
    @BatchConverter.register(name="list")
    def from_typehints(element_type: object, batch_type: object) -> BatchConverter[Any, Any]:  # type: ignore[override]
        """Returns the converter; TypeError if the batch type is not a list of these elements."""
        if (
            not isinstance(batch_type, typehints.ListConstraint)
            or typehints.normalize(batch_type.inner_type) != element_type
        ):
            raise TypeError("batch type must be List[T] for element type T")
        return ListBatchConverter(batch_type, element_type)

    def produce_batch(self, elements: Sequence[Any]) -> list[Any]:
        """Returns a new list, which its receiver may change."""
        return list(elements)

    def explode_batch(self, batch: list[Any]) -> Iterator[Any]:
        return iter(batch)

    def combine_batches(self, batches: Sequence[list[Any]]) -> list[Any]:
        """Returns one list of the elements of several batches.

        >>> BatchConverter.from_typehints(element_type=int, batch_type=list[int]).combine_batches([[1], [2]])
        [1, 2]
        """
        return [element for batch in batches for element in batch]

    def get_length(self, batch: list[Any]) -> int:
        """Returns the list's length; TypeError for other iterables, which are hardly meant as lists."""
        if isinstance(batch, str | bytes | dict):
            raise TypeError(f"{type(batch).__name__} is not a list")
        return len(batch)

    def estimate_byte_size(self, batch: list[Any]) -> int:
        """Returns an estimate: the coder's sizes of a sample, scaled up to the batch."""
        import random

        if not batch:
            return 0
        coder = registry.get_coder(self._element_type)
        some = random.sample(batch, min(len(batch), _SAMPLED))
        return ceil(sum(coder.estimate_size(element) for element in some) / len(some) * len(batch))


def _shown(hint: object) -> str:
    return str(typehints.show_type(hint))


def __getattr__(name: str) -> Any:
    if name in _OF_THE_RUNNER:
        return getattr(load_batch_converters().load_numpy_batches(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_ALLOWED = ("WindowParam", "TimestampParam", "PaneInfoParam", "SideInputParam", None)
_NOT_YET = ("ElementParam", "KeyParam", "StateParam", "TimerParam")


@dataclass(frozen=True)
class BatchTypes:
    """Converts the elements of a DoFn to batches, and batches to elements."""

    takes: BatchConverter[Any, Any] | None
    """Makes what ``process_batch`` takes; None without that method."""

    yields: BatchConverter[Any, Any] | None
    """Takes apart what the DoFn yields; None if it yields elements."""


def batch_types_of(dofn: Any, input_type: object, output_type: object) -> BatchTypes | None:
    """Returns the converters of a DoFn; None if it neither takes nor yields batches.

    Raises:
        TypeError: If it is not declared what a batch is, or no converter makes such batches (Beam's rule).
    """
    takes = yields = None
    input_type = typehints.Any if input_type is None else input_type
    if dofn.defines_process_batch:
        batch_type = convert_to_beam_type(dofn.get_input_batch_type(input_type))
        if batch_type is None:
            raise _unsaid(dofn, "takes", "get_input_batch_type")
        hint = (
            "annotate process_batch with batches of these elements, or say what they are: with_output_types"
        )
        takes = _converter(dofn, "input", input_type, batch_type, hint)
    if dofn.can_yield_batches:
        batch_type = convert_to_beam_type(dofn.get_output_batch_type(input_type))
        if batch_type is None:
            raise _unsaid(dofn, "yields", "get_output_batch_type")
        hint = "override DoFn.infer_output_type, or call with_output_types, to say what the elements are"
        yields = _converter(
            dofn, "output", output_type, batch_type, hint, ". Maybe it has no DoFn.infer_output_type"
        )
    return BatchTypes(takes, yields) if takes or yields else None


def _converter(
    dofn: object, side: str, element_type: object, batch_type: object, hint: str, guess: str = ""
) -> BatchConverter[Any, Any]:
    try:
        return BatchConverter.from_typehints(element_type=element_type, batch_type=batch_type)
    except TypeError as error:
        types = f"element_type={_shown(element_type)}, batch_type={_shown(batch_type)}"
        what = f"Failed to find a BatchConverter for the {side} types of DoFn {_name(dofn)} ({types}){guess}"
        raise refusal(TypeError, what, hint=hint) from error


def annotated_input(dofn: Any) -> Any:
    """Returns the annotation of the first parameter of ``process_batch``; None without that method."""
    if not dofn.defines_process_batch:
        return None
    first = next(iter(get_signature(dofn.process_batch).parameters.values()), None)
    if first is None or first.annotation is first.empty:
        raise _unsaid(dofn, "takes", "get_input_batch_type")
    return first.annotation


def annotated_output(dofn: Any, input_type: object) -> Any:
    """Returns the type of the batches that a DoFn yields; None if it yields elements."""
    found = {}
    if dofn.defines_process and dofn.process_yields_batches:
        found["process"] = _yielded(dofn, "process", input_type)
    if dofn.defines_process_batch and not dofn.process_batch_yields_elements:
        batch_type = convert_to_beam_type(dofn.get_input_batch_type(input_type))
        found["process_batch"] = _yielded(dofn, "process_batch", batch_type)
    types = list(found.values())
    if types and any(each != types[0] for each in types):
        raise _differ(dofn, "batches", {name: _shown(each) for name, each in found.items()})
    return types[0] if types else None


def _yielded(dofn: object, name: str, input_type: object) -> object:
    """Returns the type that a method yields: as annotated or inferred; else `process_batch` yields what it takes."""
    method: Callable[..., Any] = getattr(dofn, name)
    signature = get_signature(method)
    returned = signature.return_annotation
    if returned is signature.empty:
        returned = trivial_inference.infer_return_type(method, [input_type])
        if name == "process_batch" and trivial_inference.element_type(returned) is typehints.Any:
            return input_type
    hint = convert_to_beam_type(returned)
    if isinstance(hint, typehints.IteratorTypeConstraint):
        return hint.yielded_type
    if isinstance(hint, typehints.IterableTypeConstraint):
        return hint.inner_type
    raise refusal(
        TypeError,
        f"{_name(dofn)}.{name} is not known to yield batches: Expected Iterator in its return type annotation, "
        f"not {_shown(hint)}",
        hint="write def process_batch(self, batch: list[int]) -> Iterator[list[int]], and yield",
    )


def element_hints(dofn: Any) -> IOTypeHints:
    """Returns the annotations of methods that take elements and of those that yield them; TypeError if they differ."""
    hints = None
    if dofn.defines_process:
        hints = IOTypeHints.from_callable(dofn.process)
    hints = hints or IOTypeHints.empty()
    if dofn.process_yields_batches:
        hints = hints.with_output_types_from(IOTypeHints.empty())
    if not (dofn.defines_process_batch and dofn.process_batch_yields_elements):
        return hints
    of_batches = IOTypeHints.from_callable(dofn.process_batch)
    if of_batches is None or not of_batches.output_types:
        return hints
    if hints.output_types and hints.output_types != of_batches.output_types:
        types = {"process": hints, "process_batch": of_batches}
        shown = {name: _shown(each.simple_output_type("")) for name, each in types.items()}
        raise _differ(dofn, "elements", shown)
    return hints.with_output_types_from(of_batches)


def check_batch_parameters(dofn: object, method: Any) -> None:
    """Refuses parameters of ``process_batch`` that have no value for a batch.

    NotImplementedError, as in Beam, for values of one element or one key; ValueError for any other.
    """
    for parameter in method.parameters:
        if parameter.kind in _ALLOWED:
            continue
        error: type[Exception] = NotImplementedError if parameter.kind in _NOT_YET else ValueError
        what = f"DoFn {_name(dofn)} has unsupported process_batch method parameter {parameter.kind}"
        hint = "a batch has a timestamp, a window and a pane; for anything else define process"
        raise refusal(error, what, hint=hint)


def _unsaid(dofn: object, verb: str, method: str) -> TypeError:
    what = f"it is not declared which batches {_name(dofn)}.process_batch() {verb}"
    hint = f"give it a type annotation, as in batch: list[int], or override {method}"
    return refusal(TypeError, what, hint=hint)


def _differ(dofn: object, what: str, types: dict[str, str]) -> TypeError:
    shown = ", ".join(f"{name}: {each}" for name, each in types.items())
    return refusal(
        TypeError,
        f"DoFn {_name(dofn)} yields {what} from both process and process_batch, "
        f"but they produce different types ({shown})",
        hint="annotate both with the same type",
    )


def _name(dofn: object) -> str:
    return type(dofn).__name__
