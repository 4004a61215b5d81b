"""Checks of elements against type hints while a pipeline runs: what ``runtime_type_check`` adds to a graph."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from penstock.pvalue import AsSideInput
from penstock.transforms.defaults import NoValue
from penstock.transforms.dofn import DoFn
from penstock.typehints import typehints
from penstock.typehints.constraints import mismatch
from penstock.typehints.decorators import TypeCheckError, getcallargs_forhints

if TYPE_CHECKING:
    from penstock.applied import AppliedPTransform

__all__ = ["CheckFn", "RuntimeChecks"]

_ALL_OF_BUNDLE = 100
_THEN_EVERY = 100


class CheckFn(DoFn):
    """Hands elements on that satisfy a type hint.

    Args:
        hint: The hint.
        what: The beginning of the error's text.
        samples: Whether only the first hundred elements of a bundle, and each hundredth after them, are checked.

    >>> list(CheckFn(int, "the input of 'Add' is wrong", False).process(3))
    [3]
    """

    def __init__(self, hint: Any, what: str, samples: bool) -> None:
        super().__init__()
        self._hint = hint
        self._what = what
        self._samples = samples
        self._seen = 0

    def start_bundle(self) -> None:
        """Begins to count."""
        self._seen = 0

    def process(self, element: Any) -> Iterator[Any]:
        """The element.

        Raises:
            TypeCheckError: It does not satisfy the hint. The text shows types, but no values.
        """
        self._seen += 1
        if not self._samples or self._seen <= _ALL_OF_BUNDLE or self._seen % _THEN_EVERY == 0:
            reason = None if _is_stand_in(element) else mismatch(self._hint, element)
            if reason is not None:
                raise TypeCheckError(f"{self._what} {_in_words(self._hint, element, reason)}")
        yield element


def _is_stand_in(element: Any) -> bool:
    """Whether an element is the one by which `CombineGlobally` gives a value for nothing."""
    return isinstance(element, tuple) and len(element) == 2 and isinstance(element[1], NoValue)


def _in_words(hint: Any, value: Any, reason: str) -> str:
    if isinstance(hint, type):
        return f"Instead, received an instance of type {type(value)}"
    return f"The hint's type-constraint is violated: {reason}"


class RuntimeChecks:
    """Makes the steps that check what goes into and comes out of a transform with type hints.

    Args:
        samples: See `CheckFn`.
    """

    def __init__(self, samples: bool) -> None:
        self.samples = samples

    def of_input(self, leaf: AppliedPTransform) -> CheckFn | None:
        """The check of a transform's main input; None if nothing is known of it.

        Raises:
            TypeCheckError: A further argument that is a constant does not satisfy its hint.
        """
        hints = _input_hints(leaf)
        if not hints:
            return None
        self._check_constants(leaf, hints)
        name, hint = next(iter(hints.items()))
        return self._check(leaf, hint, _violated(name, hint))

    def of_output(self, leaf: AppliedPTransform, tag: str | int | None = None) -> CheckFn | None:
        """The check of a transform's main output, or of the one with a tag; None if nothing is known of it."""
        assert leaf.transform is not None
        hints = leaf.transform.get_type_hints()
        hint = (
            hints.simple_output_type(leaf.full_label)
            if tag is None
            else hints.tagged_output_types().get(str(tag))
        )
        what = f"According to type-hint expected output should be of type {hint}."
        return self._check(leaf, hint, what)

    def _check(self, leaf: AppliedPTransform, hint: Any, what: str) -> CheckFn | None:
        if hint is None or hint == typehints.Any:
            return None
        return CheckFn(hint, f"{_detected(leaf)} {what}", self.samples)

    def _check_constants(self, leaf: AppliedPTransform, hints: dict[str, Any]) -> None:
        transform: Any = leaf.transform
        names = list(hints)
        args, kwargs = getattr(transform, "raw_side_inputs", ((), {}))
        for name, value in {**dict(zip(names[1:], args, strict=False)), **kwargs}.items():
            if name not in hints or isinstance(value, AsSideInput):
                continue
            reason = mismatch(hints[name], value)
            if reason is not None:
                what = f"{_detected(leaf)} {_violated(name, hints[name])}"
                raise TypeCheckError(f"{what} {_in_words(hints[name], value, reason)}", where=leaf.where)


def _violated(name: str, hint: Any) -> str:
    return f"Type-hint for argument: {name!r} violated. Expected an instance of {hint}."


def _detected(leaf: AppliedPTransform) -> str:
    return f"Runtime type violation detected within ParDo({leaf.full_label}):"


def _input_hints(leaf: AppliedPTransform) -> dict[str, Any]:
    """The hint of each parameter of a transform's function, the element's first."""
    transform: Any = leaf.transform
    declared = transform.get_type_hints().input_types
    if not declared or not (declared[0] or declared[1]):
        return {}
    function = transform._process_argspec_fn()
    names = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    hints = getcallargs_forhints(function, *declared[0], **declared[1])
    return {name: hints[name] for name in names if name in hints}
