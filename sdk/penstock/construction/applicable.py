"""Declares the type of ``left | transform`` for type checkers: what ``expand`` returns for the left side."""

from __future__ import annotations

from typing import Any, Protocol

from typing_extensions import TypeVar

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
