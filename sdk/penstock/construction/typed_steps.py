"""Declares for type checkers which function a step has; no program imports it.

``sum`` has another type for each type of elements. So a step keeps the type of its whole function, and
`penstock.construction.pvalue.PCollection` looks at it when the elements are known.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias

from typing_extensions import TypeVar, TypeVarTuple

from penstock.construction.applicable import In_contra, Out_co, T
from penstock.elements.row import Row
from penstock.elements.tagged_output import TaggedOutput

MoreP = ParamSpec("MoreP")
PartTs = TypeVarTuple("PartTs")
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
StepT_co = TypeVar("StepT_co", covariant=True)
FunctionT_co = TypeVar("FunctionT_co", covariant=True, default=Any)


class ExpandsWhole(Protocol[In_contra, Out_co]):
    """A transform that does not show a function."""

    @property
    def _own_function(self) -> None: ...

    def expand(self, input_or_inputs: In_contra, /) -> Out_co:
        """See `penstock.transforms.ptransform.PTransform.expand`."""


class Maps(Protocol[FunctionT_co]):
    """A `Map`, described by its function."""

    @property
    def _maps(self) -> FunctionT_co: ...


class MapsToMany(Protocol[FunctionT_co]):
    """A `FlatMap`, described by its function."""

    @property
    def _maps_to_many(self) -> FunctionT_co: ...


class MapsParts(Protocol[FunctionT_co]):
    """A `MapTuple`, described by its function."""

    @property
    def _maps_parts(self) -> FunctionT_co: ...


class MapsPartsToMany(Protocol[FunctionT_co]):
    """A `FlatMapTuple`, described by its function."""

    @property
    def _maps_parts_to_many(self) -> FunctionT_co: ...


class Keeps(Protocol[FunctionT_co]):
    """A `Filter`, described by its function."""

    @property
    def _keeps(self) -> FunctionT_co: ...


class CombinesKeys(Protocol[FunctionT_co]):
    """A `CombinePerKey`, described by its function."""

    @property
    def _combines_keys(self) -> FunctionT_co: ...


class CombinesAll(Protocol[FunctionT_co]):
    """A `CombineGlobally`, described by its function."""

    @property
    def _combines_all(self) -> FunctionT_co: ...


class Groups(Protocol[FunctionT_co]):
    """A `GroupBy`, described by its function."""

    @property
    def _groups(self) -> FunctionT_co: ...


class HandlesErrors(Protocol[StepT_co]):
    """A step with exception handling, described by the step without it."""

    @property
    def _handled_step(self) -> StepT_co: ...


DeadLetterOf: TypeAlias = tuple[T, tuple[type[BaseException], str, list[str]]]
"""An element with the class, the repr and the traceback of its exception."""

OtherParts: TypeAlias = Row | list[Any]
"""The elements other than tuples that a `MapTuple` takes, in types that say nothing about the number of parts."""

Outputs: TypeAlias = (
    Iterable[T | TaggedOutput[Any, Any]]
    | Awaitable[Iterable[T | TaggedOutput[Any, Any]] | None]
    | AsyncIterable[T | TaggedOutput[Any, Any]]
    | None
)
"""The results of ``process``, or of the function of a `FlatMap`, for outputs of a type."""


class Processes(Protocol[In_contra, Out_co]):
    """A DoFn, described by the element and the untagged outputs of its ``process``."""

    @property
    def process(self) -> Callable[Concatenate[In_contra, ...], Outputs[Out_co]]:
        """See `penstock.transforms.core.DoFn.process`."""


class Combines(Protocol[In_contra, Out_co]):
    """A CombineFn, described by its values and its result."""

    @property
    def add_input(self) -> Callable[Concatenate[Any, In_contra, ...], object]:
        """See `penstock.transforms.core.CombineFn.add_input`."""

    @property
    def extract_output(self) -> Callable[Concatenate[Any, ...], Out_co]:
        """See `penstock.transforms.core.CombineFn.extract_output`."""
