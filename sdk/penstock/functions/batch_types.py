"""Which batches a DoFn takes and gives, found out from its annotations when the transform is applied.

A DoFn is taken as it is, and not by its class's name: that class asks here for its own defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.base.where import here
from penstock.error import three_parts
from penstock.functions.batches import BatchConverter
from penstock.typehints import trivial_inference, typehints
from penstock.typehints.decorators import IOTypeHints
from penstock.typehints.native_type_compatibility import convert_to_beam_type
from penstock.typehints.signatures import get_signature

_ALLOWED = ("WindowParam", "TimestampParam", "PaneInfoParam", "SideInputParam", None)
_NOT_YET = ("ElementParam", "KeyParam", "StateParam", "TimerParam")


@dataclass(frozen=True)
class BatchTypes:
    """How the elements of a DoFn become batches and the other way round.

    Attributes:
        takes: Makes what ``process_batch`` takes; None if there is none.
        gives: Takes apart what the DoFn yields; None if it yields elements.
    """

    takes: BatchConverter[Any, Any] | None
    gives: BatchConverter[Any, Any] | None


def batch_types_of(dofn: Any, input_type: Any, output_type: Any) -> BatchTypes | None:
    """The converters of a DoFn; None if it has to do with elements only.

    Args:
        dofn: A `penstock.transforms.core.DoFn`.
        input_type: The type of its input's elements.
        output_type: The type of the elements it gives.

    Raises:
        TypeError: If nothing says what a batch is, or no converter makes such batches of such elements (Beam's rule).
    """
    takes = gives = None
    input_type = typehints.Any if input_type is None else input_type
    if dofn._process_batch_defined:
        batch_type = convert_to_beam_type(dofn.get_input_batch_type(input_type))
        if batch_type is None:
            raise _unsaid(dofn, "takes", "get_input_batch_type")
        hint = (
            "annotate process_batch with batches of these elements, or say what they are: with_output_types"
        )
        takes = _converter(dofn, "input", input_type, batch_type, hint)
    if dofn._can_yield_batches:
        batch_type = convert_to_beam_type(dofn.get_output_batch_type(input_type))
        if batch_type is None:
            raise _unsaid(dofn, "gives", "get_output_batch_type")
        hint = "override DoFn.infer_output_type, or call with_output_types, to say what the elements are"
        gives = _converter(
            dofn, "output", output_type, batch_type, hint, ". Maybe it has no DoFn.infer_output_type"
        )
    return BatchTypes(takes, gives) if takes or gives else None


def _converter(dofn: Any, side: str, element_type: Any, batch_type: Any, hint: str, guess: str = "") -> Any:
    try:
        return BatchConverter.from_typehints(element_type=element_type, batch_type=batch_type)
    except TypeError as error:
        types = f"element_type={_shown(element_type)}, batch_type={_shown(batch_type)}"
        what = f"Failed to find a BatchConverter for the {side} types of DoFn {_name(dofn)} ({types}){guess}"
        raise TypeError(three_parts(what, where=here(), hint=hint)) from error


def annotated_input(dofn: Any) -> Any:
    """The annotation of the first parameter of ``process_batch``; None without that method."""
    if not dofn._process_batch_defined:
        return None
    first = next(iter(get_signature(dofn.process_batch).parameters.values()), None)
    if first is None or first.annotation is first.empty:
        raise _unsaid(dofn, "takes", "get_input_batch_type")
    return first.annotation


def annotated_output(dofn: Any, input_type: Any) -> Any:
    """The type of the batches that a DoFn yields; None if it yields elements."""
    found = {}
    if dofn._process_defined and dofn._process_yields_batches:
        found["process"] = _yielded(dofn, "process", input_type)
    if dofn._process_batch_defined and not dofn._process_batch_yields_elements:
        batch_type = convert_to_beam_type(dofn.get_input_batch_type(input_type))
        found["process_batch"] = _yielded(dofn, "process_batch", batch_type)
    types = list(found.values())
    if types and any(each != types[0] for each in types):
        raise _differ(dofn, "batches", {name: _shown(each) for name, each in found.items()})
    return types[0] if types else None


def _yielded(dofn: Any, name: str, input_type: Any) -> Any:
    """What a method yields: by its annotation, by inference, or else, where it takes batches, the same as it takes."""
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
    raise TypeError(
        three_parts(
            f"{_name(dofn)}.{name} is not known to yield batches: Expected Iterator in its return type annotation, "
            f"not {_shown(hint)}",
            where=here(),
            hint="write def process_batch(self, batch: list[int]) -> Iterator[list[int]], and yield",
        )
    )


def element_hints(dofn: Any) -> IOTypeHints:
    """The annotations of those methods that take elements, and of those that give some.

    Raises:
        TypeError: If ``process`` and ``process_batch`` give elements of different types.
    """
    hints = None
    if dofn._process_defined:
        hints = IOTypeHints.from_callable(dofn.process)
    hints = hints or IOTypeHints.empty()
    if dofn._process_yields_batches:
        hints = hints.with_output_types_from(IOTypeHints.empty())
    if not (dofn._process_batch_defined and dofn._process_batch_yields_elements):
        return hints
    of_batches = IOTypeHints.from_callable(dofn.process_batch)
    if of_batches is None or not of_batches.output_types:
        return hints
    if hints.output_types and hints.output_types != of_batches.output_types:
        types = {"process": hints, "process_batch": of_batches}
        shown = {name: _shown(each.simple_output_type("")) for name, each in types.items()}
        raise _differ(dofn, "elements", shown)
    return hints.with_output_types_from(of_batches)


def check_batch_parameters(dofn: Any, method: Any) -> None:
    """Refuses what ``process_batch`` cannot ask for.

    Args:
        dofn: The DoFn.
        method: The `penstock.functions.signature.MethodSignature` of its ``process_batch``.

    Raises:
        NotImplementedError: If it asks for what belongs to one element or one key.
        ValueError: If it asks for something else that a batch does not have.
    """
    for parameter in method.parameters:
        if parameter.kind in _ALLOWED:
            continue
        error: type[Exception] = NotImplementedError if parameter.kind in _NOT_YET else ValueError
        raise error(
            three_parts(
                f"DoFn {_name(dofn)} has unsupported process_batch method parameter {parameter.kind}",
                where=here(),
                hint="a batch has a timestamp, a window and a pane; for anything else define process",
            )
        )


def _unsaid(dofn: Any, verb: str, method: str) -> TypeError:
    return TypeError(
        three_parts(
            f"nothing says which batches {_name(dofn)}.process_batch() {verb}",
            where=here(),
            hint=f"give it a type annotation, as in batch: list[int], or override {method}",
        )
    )


def _differ(dofn: Any, what: str, types: dict[str, str]) -> TypeError:
    shown = ", ".join(f"{name}: {each}" for name, each in types.items())
    return TypeError(
        three_parts(
            f"DoFn {_name(dofn)} yields {what} from both process and process_batch, "
            f"but they produce different types ({shown})",
            where=here(),
            hint="annotate both with the same type",
        )
    )


def _name(dofn: Any) -> str:
    return type(dofn).__name__


def _shown(hint: Any) -> str:
    return str(typehints.show_type(hint))
