"""Type hints on callables and transforms: the decorators and the mix-in (Beam's ``typehints.decorators``)."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from typing import Any, get_args

from penstock.absent import hint_at_absent_names
from penstock.error import refusal
from penstock.typehints import typehints
from penstock.typehints.constraints import Hint, validate_composite_type_param
from penstock.typehints.io_hints import (
    TRACEBACK_LIMIT,
    IOTypeHints,
    disable_type_annotations,
    no_annotations,
    uses_annotations,
)
from penstock.typehints.native_type_compatibility import convert_to_beam_type, convert_to_beam_types
from penstock.typehints.signatures import TypeCheckError, get_signature, getcallargs_forhints

T = typing.TypeVar("T")
WithTypeHintsT = typing.TypeVar("WithTypeHintsT", bound="WithTypeHints")


class WithTypeHints:
    """The base of objects with type hints that a user can set: transforms, DoFns and CombineFns (Beam's name).

    >>> WithTypeHints().with_output_types(int).get_type_hints().simple_output_type("it")
    <class 'int'>
    """

    def __init__(self, *unused_args: object, **unused_kwargs: object) -> None:
        self._type_hints = IOTypeHints.empty()

    def _get_or_create_type_hints(self) -> IOTypeHints:
        # A subclass may not have called the constructor; its class's hints must not count as the object's.
        hints: IOTypeHints = self.__dict__.setdefault("_type_hints", IOTypeHints.empty())
        return hints

    def set_type_hints(self, type_hints: IOTypeHints) -> None:
        """Replaces the type hints."""
        self._type_hints = type_hints

    def get_type_hints(self) -> IOTypeHints:
        """Returns the hints set on the object, or else `default_type_hints`, or else the hints set on the class."""
        own = self._get_or_create_type_hints().with_defaults(self.default_type_hints())
        return own.with_defaults(get_type_hints(type(self)))

    def default_type_hints(self) -> IOTypeHints | None:
        """Returns the hints to use if the user set none; a subclass may override this."""
        return None

    def with_input_types(self: WithTypeHintsT, *arg_hints: Hint, **kwarg_hints: Hint) -> WithTypeHintsT:
        """Sets the input hints; returns the object itself."""
        self._type_hints = self._get_or_create_type_hints().with_input_types(
            *convert_to_beam_types(arg_hints), **convert_to_beam_types(kwarg_hints)
        )
        return self

    def with_output_types(self: WithTypeHintsT, *arg_hints: Hint, **kwarg_hints: Hint) -> WithTypeHintsT:
        """Sets the output hint, and by keyword the hints of tagged outputs; returns the object itself."""
        self._type_hints = self._get_or_create_type_hints().with_output_types(
            *convert_to_beam_types(arg_hints), **convert_to_beam_types(kwarg_hints)
        )
        return self


def get_type_hints(fn: object) -> IOTypeHints:
    """Returns the hints that decorators set on a callable or a class; empty if none (Beam's name)."""
    hints = getattr(fn, "_type_hints", None)
    return hints if isinstance(hints, IOTypeHints) else IOTypeHints.empty()


def with_input_types(*positional_hints: Hint, **keyword_hints: Hint) -> Callable[[T], T]:
    """Returns a decorator that sets the input hints of a function or a class (Beam's name).

    Args:
        positional_hints: One for each argument, in order.
        keyword_hints: By the name of the argument.

    >>> @with_input_types(str)
    ... def upper(text):
    ...     return text.upper()
    >>> get_type_hints(upper).input_types
    ((<class 'str'>,), {})
    """
    positional, keyword = convert_to_beam_types(positional_hints), convert_to_beam_types(keyword_hints)

    def annotate(target: T) -> T:
        if isinstance(target, types.FunctionType):
            for hint in (*positional, *keyword.values()):
                validate_composite_type_param(hint, error_msg_prefix="All type hint arguments")
        hints = get_type_hints(target).with_input_types(*positional, **keyword)
        target._type_hints = hints  # type: ignore[attr-defined]
        return target

    return annotate


def with_output_types(*return_type_hint: Hint, **tagged_type_hints: Hint) -> Callable[[T], T]:
    """Returns a decorator that sets the output hint of a function or a class, and of tagged outputs (Beam's name).

    Args:
        return_type_hint: Exactly one; several return values are a ``Tuple``.
        tagged_type_hints: By tag.

    >>> @with_output_types(bool)
    ... def negate(p):
    ...     return not p
    >>> get_type_hints(negate).simple_output_type("negate")
    <class 'bool'>
    """
    if len(return_type_hint) != 1:
        hint = "In order to specify multiple return types, use the 'Tuple' type-hint."
        raise refusal(ValueError, "'returns' accepts only a single positional argument.", hint=hint)
    main = convert_to_beam_type(return_type_hint[0])
    validate_composite_type_param(main, error_msg_prefix="All type hint arguments")
    tagged = convert_to_beam_types(tagged_type_hints)
    for tag, hint in tagged.items():
        validate_composite_type_param(hint, f"Tagged output type hint for {tag!r}")

    def annotate(target: T) -> T:
        hints = get_type_hints(target).with_output_types(main, **tagged)
        target._type_hints = hints  # type: ignore[attr-defined]
        return target

    return annotate


__all__ = [
    "TRACEBACK_LIMIT",
    "IOTypeHints",
    "TypeCheckError",
    "WithTypeHints",
    "disable_type_annotations",
    "get_signature",
    "get_type_hints",
    "getcallargs_forhints",
    "no_annotations",
    "uses_annotations",
    "with_input_types",
    "with_output_types",
]


_ANNOTATIONS = ("TimestampedValue", "WindowedValue")


def strip_output_annotations(type_hint: object, strip_tagged_output: bool = True) -> Any:
    """The type of the elements, from a hint that may mention timestamps, windows or tags, which are not elements.

    ``TimestampedValue[T]`` is T; any other such hint is `Any`. Tags count if `strip_tagged_output`.
    """
    names = (*_ANNOTATIONS, "TaggedOutput") if strip_tagged_output else _ANNOTATIONS
    found = False
    arguments = get_args(type_hint)
    if getattr(type_hint, "__name__", None) == "TimestampedValue" and len(arguments) == 1:
        type_hint = convert_to_beam_type(arguments[0])

    def look(hint: object, _: object) -> None:
        nonlocal found
        found = found or getattr(hint, "__name__", None) in names

    typehints.visit_inner_types(type_hint, look, [])
    return typehints.Any if found else type_hint


hint_at_absent_names(globals())
