"""The PTransform: a step of a pipeline, or a composite of steps, before it is applied."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Concatenate,
    Generic,
    ParamSpec,
    Self,
    TypeAlias,
    cast,
    overload,
)

from typing_extensions import TypeVar

from penstock import graph
from penstock.base.display import HasDisplayData
from penstock.base.labels import label_from_callable
from penstock.base.late_binding import LateBinding
from penstock.construction import pvalue
from penstock.construction.applicable import Expands, PartT, ResultT, SelfT
from penstock.construction.nodes import Construction
from penstock.construction.pvalue import PCollection
from penstock.error import SideInputError, TransformError, noun_for, refusal, three_parts
from penstock.functions.resources import parse_resource_hints
from penstock.options.base import PipelineOptions
from penstock.tracebacks import shortens_tracebacks
from penstock.typehints import native_type_compatibility, typehints
from penstock.typehints.annotations import signature_as_written
from penstock.typehints.decorators import (
    IOTypeHints,
    TypeCheckError,
    WithTypeHints,
    get_type_hints,
    getcallargs_forhints,
)
from penstock.typehints.trivial_inference import instance_to_type
from penstock.where import find_caller
from penstock.windows.windowing import Windowing, default_windowing

if TYPE_CHECKING:
    from penstock.construction.typed_steps import Maps

Begins: TypeAlias = Sequence[pvalue.PValue] | Mapping[str, pvalue.PValue]
"""Several PCollections left of ``|``, in a container that does not define ``|``."""


def pairs_with_hints(value: object, hint: Any, context: str) -> Iterator[tuple[str, Any, Any]]:
    """Pairs each PCollection of a nested value with the type hint at the same place of a nested hint."""
    if isinstance(value, pvalue.PValue):
        yield context, value, hint
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from pairs_with_hints(part, hint.get(key) if isinstance(hint, dict) else hint, f" {key}")
    elif isinstance(value, (list, tuple)):
        several = isinstance(hint, (list, tuple))
        for index, part in enumerate(value):
            part_hint = (hint[index] if index < len(hint) else None) if several else hint
            yield from pairs_with_hints(part, part_hint, f" position {index}" if several else context)


T = TypeVar("T")
InputT = TypeVar("InputT", default=Any)
OutputT = TypeVar("OutputT", default=Any)


apply_to: LateBinding[[Any, Any, str | None], Any] = LateBinding("penstock.transforms.applying")
"""Applies a labelled transform to a value that does not define ``|``."""


class PTransform(WithTypeHints, HasDisplayData, Generic[InputT, OutputT]):
    """A step that is applied with ``pcoll | transform`` (Beam's ``PTransform``).

    A composite overrides `expand` and applies other transforms there. A primitive returns a new PCollection from
    `expand`, and describes its work in `to_primitive`. A step without a `label` is named after its class.

    >>> str(PTransform("Read scores"))
    '<PTransform(PTransform) label=[Read scores]>'
    """

    side_inputs: Sequence[pvalue.AsSideInput] = ()
    pipeline: Construction | None = None
    needs_pcollection: ClassVar[bool] = False
    """True if its inputs must be PCollections: it cannot start a pipeline."""

    explained: str = ""
    """Text that `Pipeline.explain` adds to a composite that has been applied."""

    _user_label: str | None = None

    if TYPE_CHECKING:

        @property
        def _own_function(self) -> None:
            """None, except for a step that shows its function to type checkers."""

    def __init__(self, label: str | None = None) -> None:
        super().__init__()
        self.label = label

    @property
    def label(self) -> str:
        """The step's name."""
        return self._user_label or self.default_label()

    @label.setter
    def label(self, value: str | None) -> None:
        self._user_label = value

    def see_options(self, options: Any) -> None:
        """Called with the pipeline's options before the transform is applied."""

    def default_label(self) -> str:
        """Returns the name of a step that has no label."""
        return type(self).__name__

    def expand(self, input_or_inputs: InputT, /) -> OutputT:
        """Applies the parts of a composite, or makes the output of a primitive.

        Returns:
            A PCollection, several in a tuple, list or dict, a ``DoOutputsTuple``, or a ``PDone``.
        """
        what = f"{type(self).__name__} does not define an expand method"
        hint = "define one: def expand(self, pcoll): return pcoll | ..."
        raise refusal(NotImplementedError, what, hint=hint)

    def to_primitive(self) -> graph.Primitive | None:
        """Returns the primitive that the runner executes for this transform; None for composites."""
        return None

    def annotations(self) -> dict[str, str | bytes]:
        """Facts about the transform for tools, by name."""
        return {"python_type": f"{type(self).__module__}.{type(self).__qualname__}"}

    def default_type_hints(self) -> IOTypeHints:
        """Returns the type hints on the class, then the ones from the annotations of `expand`."""
        return get_type_hints(type(self)).with_defaults(self._hints_of_expand())

    def _hints_of_expand(self) -> Any:
        function = getattr(self.expand, "__func__", None)
        return _hints_of_expand(function or self.expand, function is not None)

    def with_input_types(self, input_type_hint: object) -> Self:
        """Declares the type of the input's elements; returns the transform itself."""
        super().with_input_types(check_hint(input_type_hint))
        return self

    def with_output_types(self, type_hint: object, **tagged_type_hints: object) -> Self:
        """Declares the types of the main output's and tagged outputs' elements; returns the transform itself."""
        tagged = {tag: check_hint(hint) for tag, hint in tagged_type_hints.items()}
        super().with_output_types(check_hint(type_hint), **tagged)
        return self

    def with_resource_hints(self, **kwargs: object) -> Self:
        """Describes the machines that should run the step; returns the transform itself.

        A runner may ignore the hints, and the Spark runner logs that it does. See
        `penstock.transforms.resources.parse_resource_hints`.
        """
        self.get_resource_hints().update(parse_resource_hints(kwargs))
        return self

    def get_resource_hints(self) -> dict[str, bytes]:
        """Returns the resource hints so far, by Beam's names for them."""
        # Subclasses do not always call this class's constructor.
        hints: dict[str, bytes] = self.__dict__.setdefault("_resource_hints", {})
        return hints

    def type_check_inputs(self, pvalueish: Any) -> None:
        """Raises a `TypeCheckError` if the input's element types do not fit the type hints."""
        self._type_check(pvalueish, "input")

    def type_check_outputs(self, pvalueish: object) -> None:
        """Raises a `TypeCheckError` if the output's element types do not fit the type hints."""
        self._type_check(pvalueish, "output")

    def _type_check(self, pvalueish: object, side: str) -> None:
        hints = getattr(self.get_type_hints(), f"{side}_types")
        if hints is None or not any(hints):
            return
        args, kwargs = hints
        if args and kwargs and side == "input":
            what = f"{type(self).__name__} cannot have both positional and keyword input type hints"
            raise refusal(TypeCheckError, what, where=self._where())
        root_hint = args[0] if len(args) == 1 else args or kwargs
        for context, value, hint in pairs_with_hints(pvalueish, root_hint, ""):
            given = getattr(value, "element_type", None)
            if given is not None and hint and not typehints.is_consistent_with(given, hint):
                shown = f"expected {typehints.show_type(hint)}, got {typehints.show_type(given)}"
                what = f"{side.title()} type hint violation at {self.label}{context}: {shown}"
                hint = "correct the type hints of this transform or of the previous one"
                raise refusal(TypeCheckError, what, where=self._where(), hint=hint)

    def infer_output_type(self, input_type: object) -> object:
        """Returns the type of the output's elements for input elements of `input_type`."""
        return self.get_type_hints().simple_output_type(self.label) or typehints.Any

    def get_windowing(self, inputs: Sequence[Any]) -> Windowing:
        """Returns the windowing of the output: the first input's, or the default."""
        for value in inputs:
            if isinstance(value, pvalue.PCollection):
                return value.windowing
        return default_windowing()

    def _where(self) -> str | None:
        location = find_caller()
        return f"at step {self.label!r} ({location})" if location else None

    def _check_pcollection(self, pcoll: PCollection[Any]) -> None:
        if not isinstance(pcoll, pvalue.PCollection):
            hint = f"apply it to a PCollection, not to {noun_for(pcoll)}"
            raise TransformError("Expecting a PCollection argument", where=self._where(), hint=hint)

    def __str__(self) -> str:
        given = getattr(self, "inputs", ())
        inputs = f" inputs={given}" if given else ""
        sides = f" side_inputs={self.side_inputs}" if self.side_inputs else ""
        return f"<{type(self).__name__}(PTransform) label=[{self.label}]{inputs}{sides}>"

    def __repr__(self) -> str:
        return f"{str(self)[:-1]} at {id(self):#x}>"

    def __rrshift__(self, label: str) -> Self:
        # The program sees the same transform: the one around it passes everything on.
        return cast(Self, NamedPTransform(self, label))

    @overload
    def __or__(
        self: Expands[SelfT, PCollection[T]], right: Maps[Callable[[T], ResultT]]
    ) -> PTransform[SelfT, PCollection[ResultT]]: ...

    @overload
    def __or__(self: Expands[SelfT, PartT], right: Expands[PartT, ResultT]) -> PTransform[SelfT, ResultT]: ...

    def __or__(self, right: object) -> PTransform[Any, Any]:
        if not isinstance(right, PTransform):
            return NotImplemented
        return _ChainedPTransform(self, right)

    @overload
    def __ror__(self: Expands[Any, ResultT], left: Begins, label: str | None = None) -> ResultT: ...

    @overload
    def __ror__(self, left: Iterable[Any], label: str | None = None) -> Any: ...

    @shortens_tracebacks
    def __ror__(self, left: object, label: str | None = None) -> Any:
        """Applies the transform to a pipeline, to several PCollections, or, at once, to plain values."""
        return apply_to(self, left, label)

    def _extract_input_pvalues(self, pvalueish: object) -> tuple[Any, Mapping[str, Any] | Sequence[Any]]:
        """The input, and the values in it; transforms with other inputs override this."""
        return pvalueish, {
            str(tag): value for tag, value in get_named_nested_pvalues(pvalueish, as_inputs=True)
        }


def where_of(transform: PTransform[Any, Any]) -> str | None:
    """Returns the middle part of an error about a transform that is being applied; None outside of the user's files."""
    return transform._where()


def check_pcollection(transform: PTransform[Any, Any], pcoll: PCollection[Any]) -> None:
    """Raises a `TransformError` if a transform is applied to anything but a PCollection."""
    transform._check_pcollection(pcoll)


def inputs_of(
    transform: PTransform[Any, Any], pvalueish: object
) -> tuple[Any, Mapping[str, Any] | Sequence[Any]]:
    """Returns the input of a transform, and the values in it."""
    return transform._extract_input_pvalues(pvalueish)


@contextmanager
def set_label(transform: PTransform[Any, Any], label: str) -> Iterator[None]:
    """Sets the label of a transform while it is applied: its own code, and a user's `expand`, read it."""
    own_label, transform.label = transform._user_label, label
    try:
        yield
    finally:
        transform.label = own_label


@functools.lru_cache(maxsize=1024)
def _hints_of_expand(expand: Callable[..., Any], is_method: bool) -> Any:
    """The type hints in the annotations of an `expand`; ``Any`` for a PCollection without a type parameter.

    Annotations of penstock's transforms are for type checkers, which cannot see what is inferred here.
    """
    if getattr(expand, "__module__", "").startswith("penstock."):
        return None
    hints = IOTypeHints.from_callable(types.MethodType(expand, object()) if is_method else expand)
    return None if hints is None else hints.strip_pcoll()


def check_hint(hint: object) -> Any:
    """Returns a type hint in the form that checks need; anything else raises a TypeError."""
    converted = native_type_compatibility.convert_to_beam_type(hint)
    typehints.validate_composite_type_param(converted, "Type hints for a PTransform")
    return converted


def get_named_nested_pvalues(pvalueish: object, as_inputs: bool = False) -> Iterator[tuple[Any, Any]]:
    """Yields the values in nested tuples, lists and dicts, each named by the keys on the way (Beam's name).

    By default only pipeline values count. With `as_inputs` every value counts, and a list is one value.

    >>> dict(get_named_nested_pvalues({"a": (1, 2), "b": 3}, as_inputs=True))
    {'a.0': 1, 'a.1': 2, 'b': 3}
    """
    tagged: object
    if isinstance(pvalueish, tuple):
        tagged = zip(getattr(pvalueish, "_fields", range(len(pvalueish))), pvalueish, strict=True)
    elif isinstance(pvalueish, list) and not as_inputs:
        tagged = enumerate(pvalueish)
    elif isinstance(pvalueish, dict):
        tagged = pvalueish.items()
    else:
        if as_inputs or isinstance(pvalueish, (pvalue.PValue, pvalue.DoOutputsTuple)):
            yield None, pvalueish
        return
    for tag, part in tagged:
        for inner_tag, value in get_named_nested_pvalues(part, as_inputs):
            yield (tag if inner_tag is None else f"{tag}.{inner_tag}"), value


class _ChainedPTransform(PTransform[Any, Any]):
    def __init__(self, *parts: PTransform[Any, Any]) -> None:
        super().__init__("|".join(part.label for part in parts))
        self._parts = parts

    def __or__(self, right: object) -> Any:
        return _ChainedPTransform(*self._parts, right) if isinstance(right, PTransform) else NotImplemented

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        return functools.reduce(operator.or_, self._parts, pcoll)


class NamedPTransform(PTransform[Any, Any]):
    """A transform with the label of ``"label" >> transform``."""

    def __init__(self, transform: PTransform[Any, Any], label: str) -> None:
        if not isinstance(label, str):
            what = f"the label {label!r} is not a string"
            raise refusal(TypeError, what, hint="write 'label' >> transform")
        super().__init__(label)
        self.transform = transform

    @shortens_tracebacks
    def __ror__(self, left: Any, _label: str | None = None) -> Any:
        return self.transform.__ror__(left, self.label)

    def __rrshift__(self, label: str) -> Self:
        return cast(Self, NamedPTransform(self.transform, label))

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.__dict__["transform"], name)
        if not callable(attribute):
            return attribute

        @functools.wraps(attribute)
        def keeping_label(*args: object, **kwargs: object) -> PTransform[Any, Any]:
            result = attribute(*args, **kwargs)
            return NamedPTransform(result, self.label) if isinstance(result, PTransform) else result

        return keeping_label

    def __setattr__(self, name: str, value: object) -> None:
        # `annotations` are the applied transform's.
        object.__setattr__(self.transform if name == "annotations" else self, name, value)

    def annotations(self) -> dict[str, str | bytes]:
        return self.transform.annotations()

    def with_resource_hints(self, **kwargs: object) -> Any:
        """Passes the hints on to the transform inside."""
        self.transform.with_resource_hints(**kwargs)
        return self


P = ParamSpec("P")
PTransformT = TypeVar("PTransformT")


class _PTransformFnPTransform(PTransform[Any, Any]):
    _cuts_label = True

    def __init__(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self._fn = fn
        self._args = args
        self._kwargs = kwargs

    def display_data(self) -> dict[str, Any]:
        return {"fn": getattr(self._fn, "__name__", type(self._fn).__name__)}

    def default_type_hints(self) -> IOTypeHints:
        hints = IOTypeHints.from_callable(self._fn)
        return get_type_hints(self._fn).with_defaults(hints.strip_pcoll() if hints is not None else None)

    def expand(self, pcoll: Any) -> Any:
        """Calls the function; a parameter ``type_hints`` gets the transform's type hints."""
        try:
            wants_hints = "type_hints" in signature_as_written(self._fn).parameters
        except (TypeError, ValueError):
            wants_hints = False
        args = (self.get_type_hints(), *self._args) if wants_hints else self._args
        return self._fn(pcoll, *args, **self._kwargs)

    def see_options(self, options: PipelineOptions) -> None:
        """Keeps long labels, which name state, for pipelines that are compatible with Beam before 2.68."""
        self._cuts_label = not options.is_compat_version_prior_to("2.68.0")

    def default_label(self) -> str:
        """Returns the function's name with its first argument, shortened if it is long."""
        name = label_from_callable(self._fn)
        if not self._args:
            return name
        first = label_from_callable(self._args[0])
        shown = (
            first
            if len(first) <= 19 or not self._cuts_label
            else f"{first[:10]}...{first[-6:]}".replace("\n", " ")
        )
        return f"{name}({shown})"


def ptransform_fn(fn: Callable[Concatenate[PartT, P], ResultT]) -> Callable[P, PTransform[PartT, ResultT]]:
    """Turns a function of a PCollection and arguments into the constructor of a composite (Beam's ``ptransform_fn``).

    >>> @ptransform_fn
    ... def Twice(pcoll, label):
    ...     return pcoll
    >>> Twice("x").label
    'Twice(x)'
    """

    @functools.wraps(fn)
    def make(*args: P.args, **kwargs: P.kwargs) -> PTransform[PartT, ResultT]:
        transform: PTransform[PartT, ResultT] = _PTransformFnPTransform(fn, *args, **kwargs)
        # `wraps` copies the hints of decorators below this one; decorators above it set hints on `make` later.
        hints = get_type_hints(make)
        transform.set_type_hints(hints.with_defaults(transform.get_type_hints()))
        return transform

    try:
        make.__signature__ = signature_as_written(functools.partial(fn, None))  # type: ignore[attr-defined,arg-type]
    except (TypeError, ValueError):
        # Without a signature the function still takes arguments; only `help` shows less.
        return make
    return make


def shown_as(
    step: Callable[[], PTransformT],
) -> Callable[[Callable[P, PTransform[Any, Any]]], Callable[P, PTransformT]]:
    """Returns a decorator above `ptransform_fn` that says which class type checkers see; it is never made.

    The result of `ptransform_fn` has its own type parameters, which a checker would have to know before it knows the
    elements. In a class, they belong to ``expand``.
    """
    return lambda make: cast(Callable[P, PTransformT], make)


def annotate_yaml(constructor: Callable[..., Any]) -> Callable[..., Any]:
    """Returns its argument: transforms have no YAML form here (Beam's decorator)."""
    return constructor


class PTransformWithSideInputs(PTransform[InputT, OutputT], Generic[InputT, OutputT]):
    """A transform that runs a user's function with more arguments, which may be side inputs (Beam's name).

    `penstock.pvalue.AsSideInput` values among the arguments become side inputs.
    """

    def __init__(self, fn: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(fn, type) and issubclass(fn, WithTypeHints):
            what = f"Use {fn.__name__}() not {fn.__name__}"
            raise refusal(ValueError, what, hint="call the class to make an instance")
        self.fn = self.make_fn(fn, bool(args or kwargs))
        super().__init__()
        for value in (*args, *kwargs.values()):
            if isinstance(value, pvalue.PCollection):
                what = "PCollection used directly as side input argument"
                hint = "wrap it in AsIter(pcollection) or AsSingleton(pcollection) to say how it is used"
                raise SideInputError(what, hint=hint)
        self.raw_side_inputs = args, kwargs
        ordered = (*args, *(kwargs[name] for name in sorted(kwargs)))
        self.side_inputs = tuple(value for value in ordered if isinstance(value, pvalue.AsSideInput))
        slots = map(graph.SideInputSlot, range(len(self.side_inputs)))
        swapped = [next(slots) if isinstance(value, pvalue.AsSideInput) else value for value in ordered]
        self.args: tuple[Any, ...] = tuple(swapped[: len(args)])
        self.kwargs: dict[str, Any] = dict(zip(sorted(kwargs), swapped[len(args) :], strict=True))

    def make_fn(self, fn: object, has_side_inputs: bool) -> Any:
        """Returns the function object for the user's function; subclasses wrap plain functions here."""
        return fn

    def default_label(self) -> str:
        return f"{type(self).__name__}({self.fn.default_label()})"

    def with_input_types(
        self, input_type_hint: object, *side_hints: object, **side_keyword_hints: object
    ) -> Self:
        """Declares the types of the elements and of the arguments; returns the transform itself."""
        args = [check_hint(hint) for hint in (input_type_hint, *side_hints)]
        kwargs = {name: check_hint(hint) for name, hint in side_keyword_hints.items()}
        return WithTypeHints.with_input_types(self, *args, **kwargs)

    def argspec_of_process(self) -> Callable[..., Any]:
        """Returns the function whose parameters the arguments must fit; by default, any arguments fit."""
        return lambda element, *args, **kwargs: None

    def type_check_inputs(self, pvalueish: PCollection[Any]) -> None:
        input_types = self.get_type_hints().input_types
        if not input_types or not isinstance(pvalueish, pvalue.PCollection):
            return
        args, kwargs = self.raw_side_inputs
        function = self.argspec_of_process()
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

    def _violation(self, pcoll: PCollection[Any], argument: str | None, hint: object, actual: object) -> str:
        hint, actual = typehints.show_type(hint), typehints.show_type(actual)
        if argument is not None:
            what = f"Type hint violation for {self.label!r}: requires {hint} but got {actual} for {argument}"
            return three_parts(what, where=self._where(), hint="pass another value, or correct the type hint")
        what = (
            f"The transform {self.label!r} requires PCollections of type '{hint}' but was applied to a "
            f"PCollection of type '{actual}'"
        )
        produced = f" (produced by the transform {pcoll.producer.full_label!r})" if pcoll.producer else ""
        what = what + produced
        return three_parts(what, where=self._where(), hint="correct the type hints of one of the two")


def _argument_type(value: object) -> object:
    return value.element_type if isinstance(value, pvalue.AsSideInput) else instance_to_type(value)
