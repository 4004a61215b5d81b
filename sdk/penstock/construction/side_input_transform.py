"""The base of transforms that run a user's function with further arguments, side inputs among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic

from penstock import graph
from penstock.base.where import here
from penstock.construction import pvalue
from penstock.construction.ptransform import InputT, OutputT, PTransform, checked_hint
from penstock.error import SideInputError, three_parts
from penstock.typehints import typehints
from penstock.typehints.decorators import TypeCheckError, WithTypeHints, getcallargs_forhints
from penstock.typehints.trivial_inference import instance_to_type


class PTransformWithSideInputs(PTransform[InputT, OutputT], Generic[InputT, OutputT]):
    """A transform that runs a user's function with further arguments, which may be side inputs (Beam's name).

    Args:
        fn: The function object.
        args: Further arguments; `penstock.pvalue.AsSideInput` values become side inputs.
        kwargs: Likewise, by name.

    Raises:
        ValueError: If `fn` is a class where an instance belongs.
        SideInputError: If an argument is a PCollection without a view around it.
    """

    def __init__(self, fn: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(fn, type) and issubclass(fn, WithTypeHints):
            what = f"Use {fn.__name__}() not {fn.__name__}"
            raise ValueError(three_parts(what, where=here(), hint="make an instance"))
        self.fn = self.make_fn(fn, bool(args or kwargs))
        super().__init__()
        for value in (*args, *kwargs.values()):
            if isinstance(value, pvalue.PCollection):
                raise SideInputError(
                    "PCollection used directly as side input argument",
                    where=self._where(),
                    hint="specify AsIter(pcollection) or AsSingleton(pcollection) to say how it is used",
                )
        self.raw_side_inputs = args, kwargs
        ordered = (*args, *(kwargs[name] for name in sorted(kwargs)))
        self.side_inputs = tuple(value for value in ordered if isinstance(value, pvalue.AsSideInput))
        slots = map(graph.SideInputSlot, range(len(self.side_inputs)))
        swapped = [next(slots) if isinstance(value, pvalue.AsSideInput) else value for value in ordered]
        self.args: tuple[Any, ...] = tuple(swapped[: len(args)])
        self.kwargs: dict[str, Any] = dict(zip(sorted(kwargs), swapped[len(args) :], strict=True))

    def make_fn(self, fn: Any, has_side_inputs: bool) -> Any:
        """The function object for what the user gave; subclasses wrap plain functions here."""
        return fn

    def default_label(self) -> str:
        """The class's name, and the function's in parentheses."""
        return f"{type(self).__name__}({self.fn.default_label()})"

    def with_input_types(self, input_type_hint: Any, *side_hints: Any, **side_keyword_hints: Any) -> Any:
        """Declares the types of the input's elements and of the further arguments.

        Returns:
            The transform itself.

        Raises:
            TypeError: If one is no type hint.
        """
        args = [checked_hint(hint) for hint in (input_type_hint, *side_hints)]
        kwargs = {name: checked_hint(hint) for name, hint in side_keyword_hints.items()}
        return WithTypeHints.with_input_types(self, *args, **kwargs)

    def _process_argspec_fn(self) -> Callable[..., Any]:
        raise NotImplementedError

    def type_check_inputs(self, pvalueish: Any) -> None:
        """Checks the types of the elements and of the further arguments against the type hints.

        Raises:
            TypeCheckError: If they do not fit.
        """
        input_types = self.get_type_hints().input_types
        if not input_types or not isinstance(pvalueish, pvalue.PCollection):
            return
        args, kwargs = self.raw_side_inputs
        function = self._process_argspec_fn()
        given_kwargs = {name: _argument_type(value) for name, value in kwargs.items()}
        given = getcallargs_forhints(
            function, pvalueish.element_type, *map(_argument_type, args), **given_kwargs
        )
        expected = getcallargs_forhints(function, *input_types[0], **input_types[1])
        for position, (name, hint) in enumerate(expected.items()):
            if hint is None or (position and name.startswith("__unknown__")):
                continue
            actual = given.get(name, typehints.Any)
            if actual is None or typehints.is_consistent_with(actual, hint):
                continue
            raise TypeCheckError(self._violation(pvalueish, None if position == 0 else name, hint, actual))

    def _violation(self, pcoll: Any, argument: str | None, hint: Any, actual: Any) -> str:
        hint, actual = typehints.show_type(hint), typehints.show_type(actual)
        if argument is not None:
            what = f"Type hint violation for {self.label!r}: requires {hint} but got {actual} for {argument}"
            return three_parts(what, where=self._where(), hint="pass another value, or correct the type hint")
        what = (
            f"The transform {self.label!r} requires PCollections of type '{hint}' but was applied to a "
            f"PCollection of type '{actual}'"
        )
        produced = f" (produced by the transform {pcoll.producer.full_label!r})" if pcoll.producer else ""
        return three_parts(
            what + produced, where=self._where(), hint="correct the type hints of one of the two"
        )


def _argument_type(value: Any) -> Any:
    return value.element_type if isinstance(value, pvalue.AsSideInput) else instance_to_type(value)
