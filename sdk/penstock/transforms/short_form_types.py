"""What type checkers know of ``Map`` and the like: the type of what the function gives, without its timestamp."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, cast, overload

from penstock.construction.applicable import ResultT, T

if TYPE_CHECKING:
    from penstock.base.bounded_window import TimestampedValue
    from penstock.construction.pvalue import PCollection
    from penstock.transforms.pardo import ParDo

    class Keeps(ParDo[Any]):
        """A Filter: its output has the type of its input."""

        def expand(self, pcoll: PCollection[T]) -> PCollection[T]:
            """The elements that pass."""
            ...


class _OfResults(Protocol):
    @overload
    def __call__(self, fn: Callable[..., TimestampedValue[T]], *args: Any, **kwargs: Any) -> ParDo[T]: ...

    @overload
    def __call__(self, fn: Callable[..., ResultT], *args: Any, **kwargs: Any) -> ParDo[ResultT]: ...


class _OfElements(Protocol):
    @overload
    def __call__(
        self, fn: Callable[..., Iterable[TimestampedValue[T]] | None], *args: Any, **kwargs: Any
    ) -> ParDo[T]: ...

    @overload
    def __call__(
        self, fn: Callable[..., Iterable[ResultT] | None] = ..., *args: Any, **kwargs: Any
    ) -> ParDo[ResultT]: ...


def gives_results(short_form: Callable[..., Any]) -> _OfResults:
    """A decorator of short forms whose output are the function's results."""
    return cast(_OfResults, short_form)


def gives_elements(short_form: Callable[..., Any]) -> _OfElements:
    """A decorator of short forms whose output are the elements of the function's results."""
    return cast(_OfElements, short_form)
