"""Tells type checkers the type of ``left | transform``: what ``expand`` returns for the left side."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from typing import Any, Protocol

from typing_extensions import TypeVar

from penstock.elements.tagged_output import TaggedOutput

In_contra = TypeVar("In_contra", contravariant=True)
Out_co = TypeVar("Out_co", covariant=True)
T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
SelfT = TypeVar("SelfT")
PartT = TypeVar("PartT")
ResultT = TypeVar("ResultT", default=Any)


class Expands(Protocol[In_contra, Out_co]):
    """Anything with an ``expand``: a transform of penstock or of the user, with or without annotations."""

    def expand(self, input_or_inputs: In_contra, /) -> Out_co:
        """See `penstock.transforms.ptransform.PTransform.expand`."""


class Processes(Protocol[Out_co]):
    """A DoFn, described by the untagged outputs of its ``process``."""

    @property
    def process(
        self,
    ) -> Callable[
        ...,
        Iterable[Out_co | TaggedOutput[Any, Any]]
        | Awaitable[Iterable[Out_co | TaggedOutput[Any, Any]] | None]
        | AsyncIterable[Out_co | TaggedOutput[Any, Any]]
        | None,
    ]:
        """See `penstock.transforms.core.DoFn.process`."""
