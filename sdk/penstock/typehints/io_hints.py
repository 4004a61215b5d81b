"""The value that keeps the input and output hints of a callable or a transform."""

from __future__ import annotations

import logging
import typing
from collections.abc import Callable

from penstock.elements.tagged_output import TaggedOutput
from penstock.error import refusal
from penstock.typehints.constraints import Any, AnyTypeConstraint, Hint, TypeVariable, show_type
from penstock.typehints.native_type_compatibility import convert_to_beam_type
from penstock.typehints.signatures import ANY_VAR_KEYWORD, ANY_VAR_POSITIONAL, get_signature
from penstock.typehints.typehints import get_yielded_type
from penstock.typehints.unions import UnionConstraint, get_concrete_type_from_nullable, is_nullable, union_of
from penstock.where import find_caller

_LOGGER = logging.getLogger(__name__)
T = typing.TypeVar("T")


class WithElements:
    """A base of `penstock.pvalue.PCollection`: the parameter of its hint is the hint of its elements."""


class WithoutElements:
    """A base of pipelines and of their begin and end: a hint for them does not describe elements."""


TypesOf = tuple[tuple[Hint, ...], dict[str, Hint]]
TRACEBACK_LIMIT = 5
_NO_ANNOTATIONS = "_penstock_no_annotations"
_settings = {"annotations": True}


def no_annotations(fn: T) -> T:
    """Returns a decorator: annotations of this callable are not type hints (Beam's name).

    >>> @no_annotations
    ... def double(x: "int") -> "int":
    ...     return 2 * x
    >>> IOTypeHints.from_callable(double) is None
    True
    """
    setattr(fn, _NO_ANNOTATIONS, True)
    return fn


def disable_type_annotations() -> None:
    """Ignores annotations as type hints in this process from now on (Beam's name)."""
    _settings["annotations"] = False


def uses_annotations(fn: object) -> bool:
    """True if the annotations of a callable count as type hints."""
    return _settings["annotations"] and not getattr(fn, _NO_ANNOTATIONS, False)


class IOTypeHints(typing.NamedTuple):
    """The input and output hints of a callable or a transform; a value (Beam's name).

    Attributes:
        input_types: The hints of positional and of keyword arguments; None if there are none.
        output_types: The hint of the main output, in a tuple, and of each tagged output; None if none.
        origin: Where the hints were written, newest first; not part of the value.

    >>> IOTypeHints.empty().with_output_types(int, bad=str).tagged_output_types()
    {'bad': <class 'str'>}
    """

    input_types: TypesOf | None
    output_types: TypesOf | None
    origin: list[str]

    @classmethod
    def empty(cls) -> IOTypeHints:
        """No hints."""
        return cls(None, None, [])

    @classmethod
    def from_callable(cls, fn: Callable[..., typing.Any]) -> IOTypeHints | None:
        """Returns the hints that the annotations of a callable give; None if it has none.

        >>> def double(x: int, times: float = 2.0) -> list[int]: ...
        >>> IOTypeHints.from_callable(double)
        IOTypeHints[inputs=((<class 'int'>, <class 'float'>), {}), outputs=((List[<class 'int'>],), {})]
        """
        if not uses_annotations(fn):
            return None
        signature = get_signature(fn)
        parameters = signature.parameters.values()
        returned = signature.return_annotation
        if returned is signature.empty and all(item.annotation is item.empty for item in parameters):
            return None
        positional: list[Hint] = []
        keyword: dict[str, Hint] = {}
        for item in parameters:
            if item.annotation is not item.empty:
                hint = _annotation(item.annotation)
            elif item.kind is item.VAR_POSITIONAL:
                hint = ANY_VAR_POSITIONAL
            else:
                hint = ANY_VAR_KEYWORD if item.kind is item.VAR_KEYWORD else Any
            if item.kind in (item.KEYWORD_ONLY, item.VAR_KEYWORD):
                keyword[item.name] = hint
            else:
                positional.append(hint)
        output = Any if returned is signature.empty else _annotation(returned)
        return cls((tuple(positional), keyword), ((output,), {}), [_origin_of(fn)])

    def with_input_types(self, *args: Hint, **kwargs: Hint) -> IOTypeHints:
        """These hints with other input hints."""
        return IOTypeHints((args, kwargs), self.output_types, self._origin("with_input_types"))

    def with_output_types(self, *args: Hint, **kwargs: Hint) -> IOTypeHints:
        """These hints with other output hints."""
        return IOTypeHints(self.input_types, (args, kwargs), self._origin("with_output_types"))

    def with_input_types_from(self, other: IOTypeHints) -> IOTypeHints:
        """These hints with the input hints of `other`."""
        return IOTypeHints(other.input_types, self.output_types, self._origin("with_input_types_from"))

    def with_output_types_from(self, other: IOTypeHints) -> IOTypeHints:
        """These hints with the output hints of `other`."""
        return IOTypeHints(self.input_types, other.output_types, self._origin("with_output_types_from"))

    def with_defaults(self, hints: IOTypeHints | None) -> IOTypeHints:
        """These hints, or `hints` where these are empty."""
        if not hints:
            return self
        if not self:
            return hints
        inputs = self.input_types if self._has_input_types() else hints.input_types
        outputs = self.output_types if self._has_output_types() else hints.output_types
        merged = IOTypeHints(inputs, outputs, (self.origin + hints.origin)[:TRACEBACK_LIMIT])
        return self if merged == self else merged

    def simple_output_type(self, context: object) -> Hint:
        """The hint of the main output, None if there is none; TypeError, with `context`, if there are several."""
        if not self._has_output_types() or self.output_types is None:
            return None
        positional = self.output_types[0]
        if len(positional) != 1:
            what = f"Expected single output type hint for {context} but got: {_shown(self.output_types)}"
            raise refusal(TypeError, what)
        return positional[0]

    def tagged_output_types(self) -> dict[str, Hint]:
        """Returns the hints of tagged outputs, by tag."""
        return self.output_types[1] if self.output_types is not None else {}

    def has_simple_output_type(self) -> bool:
        """True if there is exactly one hint for the main output."""
        return self.output_types is not None and len(self.output_types[0]) == 1

    def strip_pcoll(self) -> IOTypeHints:
        """Returns the hints of a PTransform's ``expand`` as hints of elements: ``PCollection[int]`` becomes ``int``.

        A hint that is not a PCollection (nor a begin or a done) is dropped with a warning.
        """
        inputs = _without_pcollection(self.input_types, "input")
        outputs = _without_pcollection(self.output_types, "output")
        return IOTypeHints(inputs, outputs, self.origin)

    def strip_iterable(self) -> IOTypeHints:
        """The hints of a callable that returns many elements, as hints of one element: ``list[int]`` becomes ``int``.

        It ignores ``Optional`` around the iterable. None alone means that no elements come, or that they come from
        timers, about which the hint says nothing: that is Any, as in Beam.

        Raises:
            ValueError: If the output hint is not iterable.
        """
        if self.output_types is None or not self.has_simple_output_type():
            return self
        (output,), tagged = self.output_types
        if is_nullable(output):
            output = get_concrete_type_from_nullable(output)
        if output is None or output is type(None) or isinstance(output, TypeVariable):
            return self._replace(output_types=((Any,), tagged))
        stripped = {tag: get_yielded_type(hint) for tag, hint in tagged.items()}
        return self._replace(output_types=((get_yielded_type(output),), stripped))

    def extract_tagged_outputs(self) -> IOTypeHints:
        """Moves ``TaggedOutput[Literal['tag'], X]`` out of the main output's hint to the tagged outputs.

        Call it after `strip_iterable`.
        """
        if self.output_types is None or not self.has_simple_output_type():
            return self
        main, tagged = _split_tagged(self.output_types[0][0])
        if not tagged and main == self.output_types[0][0]:
            return self
        return self._replace(output_types=((main,), {**self.output_types[1], **tagged}))

    def debug_str(self) -> str:
        """Returns the hints and where they were written."""
        return "\n".join([repr(self), *self.origin])

    def _origin(self, method: str) -> list[str]:
        location = find_caller()
        return ([f"{method} at {location}"] if location else []) + self.origin[: TRACEBACK_LIMIT - 1]

    def _has_input_types(self) -> bool:
        return self.input_types is not None and any(self.input_types)

    def _has_output_types(self) -> bool:
        return self.output_types is not None and any(self.output_types)

    def __bool__(self) -> bool:
        return self._has_input_types() or self._has_output_types()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IOTypeHints):
            return NotImplemented
        return _same(self.input_types, other.input_types) and _same(self.output_types, other.output_types)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"IOTypeHints[inputs={_shown(self.input_types)}, outputs={_shown(self.output_types)}]"

    def __reduce__(self) -> tuple[typing.Any, ...]:
        return IOTypeHints, (self.input_types, self.output_types, [])


def _annotation(annotation: Hint) -> Hint:
    return type(None) if annotation is None else convert_to_beam_type(annotation)


def _origin_of(fn: Callable[..., typing.Any]) -> str:
    code = getattr(fn, "__code__", None)
    place = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
    # The repr of a callable without a name may show its arguments, which errors must not.
    return f"annotations of {getattr(fn, '__qualname__', 'an unknown callable')}{place}"


def _shown(hints: TypesOf | None) -> str:
    if hints is None:
        return "None"
    positional = ", ".join(map(show_type, hints[0])) + ("," if len(hints[0]) == 1 else "")
    keyword = ", ".join(f"{name!r}: {show_type(hint)}" for name, hint in hints[1].items())
    return f"(({positional}), {{{keyword}}})"


def _same(left: TypesOf | None, right: TypesOf | None) -> bool:
    if left is None or not any(left):
        return right is None or not any(right)
    return right is not None and tuple(left) == tuple(right)


def _without_pcollection(hints: TypesOf | None, side: str) -> TypesOf | None:
    if hints is None or len(hints[0]) != 1 or isinstance(hints[0][0], AnyTypeConstraint):
        return hints
    hint = hints[0][0]
    if isinstance(hint, type) and issubclass(hint, WithElements | WithoutElements):
        return (Any,), {}
    if side == "output" and hint in (None, type(None)):
        return (Any,), {}
    origin: Hint = typing.get_origin(hint)
    if isinstance(origin, type) and issubclass(origin, WithElements):
        return (convert_to_beam_type(typing.get_args(hint)[0]),), {}
    wrapped = "PCollection, or PBegin" if side == "input" else "PCollection, PDone, or None"
    _LOGGER.warning(
        "This %s type hint will be ignored and not used for type-checking purposes. Typically, %s type hints for a "
        "PTransform are single (or nested) types wrapped by a %s. Got: %s instead.",
        side,
        side,
        wrapped,
        None if hint is type(None) else hint,
    )
    return None


def _split_tagged(hint: Hint) -> tuple[Hint, dict[str, Hint]]:
    """The part of a hint for the main output (``Any`` if none is left), and the tagged outputs."""
    main, tagged = [], {}
    for member in hint.union_types if isinstance(hint, UnionConstraint) else [hint]:
        origin: Hint = typing.get_origin(member)
        if member is TaggedOutput:
            _LOGGER.warning(
                "TaggedOutput without parameters in a type hint is ignored; write its tag and its type"
            )
        elif origin is TaggedOutput:
            tag, value = _tag_and_type(member)
            tagged[tag] = value
        else:
            main.append(member)
    return (union_of(main) if main else Any), tagged


def _tag_and_type(hint: Hint) -> tuple[str, Hint]:
    args = typing.get_args(hint)
    if len(args) != 2 or typing.get_origin(args[0]) is not typing.Literal:
        what = f"TaggedOutput takes Literal['tag'] and a type, got {hint}"
        raise refusal(TypeError, what, hint="write TaggedOutput[Literal['errors'], str]")
    return typing.get_args(args[0])[0], convert_to_beam_type(args[1])
