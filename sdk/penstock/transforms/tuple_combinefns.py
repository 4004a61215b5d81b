"""Several CombineFns at work side by side, and the phases in which a runner applies one."""

# These CombineFns take no further arguments, so their methods are narrower than those they override.
# mypy: disable-error-code="override"

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain, islice
from typing import Any

from penstock.base.chunks import in_chunks
from penstock.construction.ptransform import PTransform
from penstock.error import three_parts
from penstock.functions.combinefn import CombineFn, curry_combine_fn
from penstock.transforms.combine import CombinePerKey


class _SideBySide(CombineFn):
    """What the two tuple CombineFns share: all but how the inputs are dealt out."""

    def __init__(self, *combiners: Any, merge_accumulators_batch_size: int | None = None) -> None:
        super().__init__()
        self._named = combiners
        self._combiners = [CombineFn.maybe_from_callable(combiner) for combiner in combiners]
        self.takes_retractions = all(combiner.takes_retractions for combiner in self._combiners)
        # The more there are side by side, the fewer accumulators are held in memory at a time.
        self._batch_size = merge_accumulators_batch_size or max(10, 1000 // max(1, len(combiners)))

    def display_data(self) -> dict[str, Any]:
        """The names of the CombineFns and how many accumulators are merged at a time."""
        names = [getattr(combiner, "__name__", type(combiner).__name__) for combiner in self._named]
        return {"combiners": str(names), "merge_accumulators_batch_size": self._batch_size}

    def setup(self, *args: Any, **kwargs: Any) -> None:
        for combiner in self._combiners:
            combiner.setup(*args, **kwargs)

    def create_accumulator(self, *args: Any, **kwargs: Any) -> list[Any]:
        return [combiner.create_accumulator(*args, **kwargs) for combiner in self._combiners]

    def merge_accumulators(self, accumulators: Iterable[list[Any]], *args: Any, **kwargs: Any) -> list[Any]:
        """Merges accumulators position by position, so many at a time as the constructor said."""
        rest = iter(accumulators)
        merged = next(rest, None)
        if merged is None:
            return self.create_accumulator(*args, **kwargs)
        while batch := list(islice(rest, self._batch_size)):
            merged = [
                combiner.merge_accumulators(parts, *args, **kwargs)
                for combiner, parts in zip(
                    self._combiners, zip(*chain((merged,), batch), strict=True), strict=True
                )
            ]
        return merged

    def compact(self, accumulator: list[Any], *args: Any, **kwargs: Any) -> list[Any]:
        pairs = zip(self._combiners, accumulator, strict=True)
        return [combiner.compact(part, *args, **kwargs) for combiner, part in pairs]

    def extract_output(self, accumulator: list[Any], *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        pairs = zip(self._combiners, accumulator, strict=True)
        return tuple(combiner.extract_output(part, *args, **kwargs) for combiner, part in pairs)

    def teardown(self, *args: Any, **kwargs: Any) -> None:
        """Tears all down, in reverse order."""
        for combiner in reversed(self._combiners):
            combiner.teardown(*args, **kwargs)


class TupleCombineFn(_SideBySide):
    """Combines n-tuples: the k-th element of each with the k-th CombineFn (Beam's name).

    Args:
        *combiners: CombineFns, or callables that `CombineFn.from_callable` takes.
        merge_accumulators_batch_size: How many accumulators are merged at a time; None chooses.

    >>> TupleCombineFn(sum, max).apply([(1, 5), (2, 4)])
    (3, 5)
    """

    def add_input(
        self, accumulator: list[Any], element: tuple[Any, ...], *args: Any, **kwargs: Any
    ) -> list[Any]:
        trios = zip(self._combiners, accumulator, element, strict=False)
        return [combiner.add_input(part, each, *args, **kwargs) for combiner, part, each in trios]

    def add_inputs(
        self, accumulator: list[Any], elements: Iterable[tuple[Any, ...]], *args: Any, **kwargs: Any
    ) -> list[Any]:
        """Deals many tuples out, column by column."""
        for chunk in in_chunks(elements):
            trios = zip(self._combiners, accumulator, zip(*chunk, strict=False), strict=False)
            accumulator = [fn.add_inputs(part, list(column), *args, **kwargs) for fn, part, column in trios]
        return accumulator

    def with_common_input(self) -> SingleInputTupleCombineFn:
        """The CombineFn that gives each input, as a whole, to every one of these CombineFns."""
        return SingleInputTupleCombineFn(*self._combiners)


class SingleInputTupleCombineFn(_SideBySide):
    """Gives every input to each of several CombineFns; the output is the tuple of theirs (Beam's name).

    The arguments are those of `TupleCombineFn`.

    >>> SingleInputTupleCombineFn(min, max).apply([3, 1, 2])
    (1, 3)
    """

    def add_input(self, accumulator: list[Any], element: Any, *args: Any, **kwargs: Any) -> list[Any]:
        pairs = zip(self._combiners, accumulator, strict=True)
        return [combiner.add_input(part, element, *args, **kwargs) for combiner, part in pairs]

    def add_inputs(
        self, accumulator: list[Any], elements: Iterable[Any], *args: Any, **kwargs: Any
    ) -> list[Any]:
        for chunk in in_chunks(elements):
            pairs = zip(self._combiners, accumulator, strict=True)
            accumulator = [combiner.add_inputs(part, chunk, *args, **kwargs) for combiner, part in pairs]
        return accumulator


class PhasedCombineFnExecutor:
    """One phase of a CombineFn as a function, ``apply`` (Beam's name).

    Args:
        phase: ``all``, ``add``, ``merge``, ``extract`` or ``convert``.
        fn: The CombineFn.
        args: Further positional arguments of its methods.
        kwargs: Further keyword arguments of its methods.

    Raises:
        ValueError: If there is no such phase.

    >>> from penstock.transforms.counting import MeanCombineFn
    >>> PhasedCombineFnExecutor("add", MeanCombineFn(), (), {}).apply([1, 3])
    (4, 2)
    """

    def __init__(self, phase: str, fn: CombineFn, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.combine_fn: Any = curry_combine_fn(fn, args, kwargs)
        phases: dict[str, Callable[[Any], Any]] = {
            "all": self.full_combine,
            "add": self.add_only,
            "merge": self.merge_only,
            "extract": self.extract_only,
            "convert": self.convert_to_accumulator,
        }
        if phase not in phases:
            raise ValueError(
                three_parts(
                    f"Unexpected phase: {phase}",
                    where="at PhasedCombineFnExecutor",
                    hint=f"use one of {list(phases)}",
                )
            )
        self.apply = phases[phase]

    def full_combine(self, elements: Iterable[Any]) -> Any:
        """From elements to the output."""
        return self.combine_fn.apply(elements)

    def add_only(self, elements: Iterable[Any]) -> Any:
        """From elements to an accumulator."""
        return self.combine_fn.add_inputs(self.combine_fn.create_accumulator(), elements)

    def merge_only(self, accumulators: Iterable[Any]) -> Any:
        """From accumulators to one accumulator."""
        return self.combine_fn.merge_accumulators(accumulators)

    def extract_only(self, accumulator: Any) -> Any:
        """From an accumulator to the output."""
        return self.combine_fn.extract_output(accumulator)

    def convert_to_accumulator(self, element: Any) -> Any:
        """From one element to an accumulator."""
        return self.combine_fn.add_input(self.combine_fn.create_accumulator(), element)


class LiftedCombinePerKey(PTransform[Any, Any]):
    """`CombinePerKey`; the runner itself combines before the shuffle where that is legal (Beam's name).

    Args:
        combine_fn: A CombineFn or a callable.
        args: Further positional arguments of its methods.
        kwargs: Further keyword arguments of its methods.

    >>> LiftedCombinePerKey(sum, (), {}).default_label()
    'LiftedCombinePerKey'
    """

    def __init__(self, combine_fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        super().__init__()
        self._combine = CombinePerKey(combine_fn, *args, **kwargs)

    def expand(self, pcoll: Any) -> Any:
        return pcoll | self._combine
