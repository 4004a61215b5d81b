"""Beam's CombineFns in penstock's terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from apache_beam.transforms import combiners as beam_combiners
from apache_beam.transforms import core as beam_core

from penstock.functions.combinefn import CombineFn
from penstock.transforms.combining.ready_combiners import CountCombineFn, MeanCombineFn


class BeamAccumulator:
    """The accumulator of a Beam CombineFn."""

    __slots__ = ("value", "was_stored")

    def __init__(self, value: object, was_stored: bool = False) -> None:
        self.value = value
        self.was_stored = was_stored

    def __reduce__(self) -> tuple[type[BeamAccumulator], tuple[Any, bool]]:
        return BeamAccumulator, (self.value, True)

    def __repr__(self) -> str:
        return repr(self.value)


class CombineFnAdapter(CombineFn):
    """A Beam CombineFn as penstock's, with its further arguments.

    Beam's runners merge accumulators that were stored, even a single one, before they do anything else with them, and
    some CombineFns, such as those of ``Top``, rely on it.
    """

    def __init__(
        self, fn: beam_core.CombineFn, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__()
        self.fn = fn
        self.args = tuple(args)
        self.kwargs = dict(kwargs or {})

    def describe(self) -> str:
        """Returns the name that Beam shows for the CombineFn."""
        return str(self.fn.default_label())

    def setup(self) -> None:
        self.fn.setup(*self.args, **self.kwargs)

    def create_accumulator(self) -> BeamAccumulator:
        return BeamAccumulator(self.fn.create_accumulator(*self.args, **self.kwargs))

    def add_input(self, mutable_accumulator: BeamAccumulator, element: Any) -> BeamAccumulator:
        merged = self._merged(mutable_accumulator)
        mutable_accumulator.value = self.fn.add_input(merged, element, *self.args, **self.kwargs)
        return mutable_accumulator

    def add_inputs(self, mutable_accumulator: BeamAccumulator, elements: Iterable[Any]) -> BeamAccumulator:
        merged = self._merged(mutable_accumulator)
        mutable_accumulator.value = self.fn.add_inputs(merged, elements, *self.args, **self.kwargs)
        return mutable_accumulator

    def merge_accumulators(self, accumulators: Iterable[BeamAccumulator]) -> BeamAccumulator:
        values = [held.value for held in accumulators]
        return BeamAccumulator(self.fn.merge_accumulators(values, *self.args, **self.kwargs))

    def compact(self, accumulator: BeamAccumulator) -> BeamAccumulator:
        return BeamAccumulator(self.fn.compact(self._merged(accumulator), *self.args, **self.kwargs))

    def extract_output(self, accumulator: BeamAccumulator) -> object:
        return self.fn.extract_output(self._merged(accumulator), *self.args, **self.kwargs)

    def teardown(self) -> None:
        self.fn.teardown(*self.args, **self.kwargs)

    def _merged(self, held: BeamAccumulator) -> object:
        if held.was_stored:
            held.value = self.fn.merge_accumulators([held.value], *self.args, **self.kwargs)
            held.was_stored = False
        return held.value


_SAME: Mapping[type, Callable[[Any], CombineFn]] = {
    beam_combiners.CountCombineFn: lambda _: CountCombineFn(),
    beam_combiners.MeanCombineFn: lambda _: MeanCombineFn(),
    beam_core.CallableWrapperCombineFn: lambda fn: CombineFn.maybe_from_callable(fn._fn, True),
    beam_core.NoSideInputsCallableWrapperCombineFn: lambda fn: CombineFn.maybe_from_callable(fn._fn, False),
}
"""Those that penstock computes faster itself."""


def combine_fn_of(
    fn: beam_core.CombineFn, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
) -> CombineFn:
    """Converts a Beam CombineFn, or a function such as ``sum``, to penstock's, with its further arguments."""
    fn = beam_core.CombineFn.maybe_from_callable(fn, has_side_inputs=bool(args or kwargs))
    same = _SAME.get(type(fn))
    return CombineFnAdapter(fn, args, kwargs) if same is None or args or kwargs else same(fn)
