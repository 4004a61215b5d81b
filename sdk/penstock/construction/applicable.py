"""What type checkers know of ``left | transform``: the type that the transform's ``expand`` gives for the left side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from typing_extensions import TypeVar

if TYPE_CHECKING:
    from penstock.base.tagged_output import TaggedOutput
    from penstock.construction.pvalue import PValue

    Begins: TypeAlias = Sequence[PValue] | Mapping[str, PValue]
    """What stands left of ``|`` and has no ``|`` of its own: several PCollections."""


In_contra = TypeVar("In_contra", contravariant=True)
Out_co = TypeVar("Out_co", covariant=True)
T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
SelfT = TypeVar("SelfT")
PartT = TypeVar("PartT")
ResultT = TypeVar("ResultT", default=Any)


class Expands(Protocol[In_contra, Out_co]):
    """Anything with an ``expand``: a transform of penstock's, or of the user's with or without annotations."""

    def expand(self, input_or_inputs: In_contra, /) -> Out_co:
        """See `penstock.transforms.ptransform.PTransform.expand`."""


class Processes(Protocol[Out_co]):
    """A DoFn, by what its ``process`` gives besides tagged outputs."""

    @property
    def process(self) -> Callable[..., Iterable[Out_co | TaggedOutput[Any, Any]] | None]:
        """See `penstock.transforms.core.DoFn.process`."""
