"""Beam's CombineFns in penstock's terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from apache_beam.transforms import combiners as beam_combiners
from apache_beam.transforms import core as beam_core

from penstock.functions.combinefn import CombineFn
from penstock.transforms.ready_combiners import CountCombineFn, MeanCombineFn


class HostedCombineFn(CombineFn):
    """A CombineFn of Beam's, with its further arguments."""

    def __init__(self, fn: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.fn = fn
        self.args = tuple(args)
        self.kwargs = dict(kwargs or {})

    def describe(self) -> str:
        """The name of Beam's CombineFn, for people."""
        return str(self.fn.default_label())

    def setup(self) -> None:
        self.fn.setup(*self.args, **self.kwargs)

    def create_accumulator(self) -> Any:
        return self.fn.create_accumulator(*self.args, **self.kwargs)

    def add_input(self, mutable_accumulator: Any, element: Any) -> Any:
        return self.fn.add_input(mutable_accumulator, element, *self.args, **self.kwargs)

    def add_inputs(self, mutable_accumulator: Any, elements: Iterable[Any]) -> Any:
        return self.fn.add_inputs(mutable_accumulator, elements, *self.args, **self.kwargs)

    def merge_accumulators(self, accumulators: Iterable[Any]) -> Any:
        return self.fn.merge_accumulators(accumulators, *self.args, **self.kwargs)

    def compact(self, accumulator: Any) -> Any:
        return self.fn.compact(accumulator, *self.args, **self.kwargs)

    def extract_output(self, accumulator: Any) -> Any:
        return self.fn.extract_output(accumulator, *self.args, **self.kwargs)

    def teardown(self) -> None:
        self.fn.teardown(*self.args, **self.kwargs)


_SAME: Mapping[type, Callable[[Any], CombineFn]] = {
    beam_combiners.CountCombineFn: lambda _: CountCombineFn(),
    beam_combiners.MeanCombineFn: lambda _: MeanCombineFn(),
    beam_core.CallableWrapperCombineFn: lambda fn: CombineFn.maybe_from_callable(fn._fn, True),
    beam_core.NoSideInputsCallableWrapperCombineFn: lambda fn: CombineFn.maybe_from_callable(fn._fn, False),
}
"""Those that penstock computes faster itself."""


def combine_fn_of(fn: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> CombineFn:
    """Penstock's CombineFn for one of Beam's, or for a function such as ``sum``, with its further arguments."""
    fn = beam_core.CombineFn.maybe_from_callable(fn, has_side_inputs=bool(args or kwargs))
    same = _SAME.get(type(fn))
    return HostedCombineFn(fn, args, kwargs) if same is None or args or kwargs else same(fn)
