"""What type checkers know about ``left | transform``: the type that ``expand`` returns for the left side."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from typing_extensions import TypeVar

if TYPE_CHECKING:
    from penstock.base.tagged_output import TaggedOutput
    from penstock.construction.pvalue import PValue

    Begins: TypeAlias = Sequence[PValue] | Mapping[str, PValue]
    """Several PCollections left of ``|``, in a container that does not define ``|``."""


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
