"""Combining in two rounds, for keys with so many values that one machine would be kept waiting for."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from penstock import pvalue
from penstock.transforms.combine import CombinePerKey
from penstock.transforms.combinefn import CombineFn
from penstock.transforms.dofn import DoFn
from penstock.transforms.grouping import Flatten, key_value_types
from penstock.transforms.pardo import Map, ParDo
from penstock.transforms.ptransform import PTransform, label_from_callable
from penstock.transforms.trigger import AccumulationMode
from penstock.transforms.windowing import WindowInto
from penstock.typehints import typehints

__all__ = ["CombinePerKeyWithFanout", "PostCombineFn"]


class CombinePerKeyWithFanout(PTransform[Any, Any]):
    """Combines parts of the values of a key first, then the parts' accumulators.

    Args:
        combine_fn: A CombineFn that needs no further arguments.
        fanout: The number of parts per key, or a function from the key to it; with 1 part or less the key's
            values skip the first round.
    """

    def __init__(self, combine_fn: CombineFn, fanout: int | Callable[[Any], int]) -> None:
        super().__init__()
        self._combine_fn = combine_fn
        self._fanout = fanout

    def default_label(self) -> str:
        """Names of the CombineFn and of the fan-out."""
        fanout = self._fanout if isinstance(self._fanout, int) else label_from_callable(self._fanout)
        return f"CombinePerKeyWithFanout({label_from_callable(self._combine_fn)}, fanout={fanout})"

    def expand(self, pcoll: Any) -> Any:
        """The results."""
        key_type, _ = key_value_types(self, pcoll.element_type)
        output = self._combine_fn.get_type_hints().simple_output_type("") or typehints.Any
        cold, hot = pcoll | "Split" >> ParDo(_SplitHotKeys(self._fanout)).with_outputs("hot", main="cold")
        # An accumulating first round would be counted again by the second with every pane. The windows of the
        # elements stay as they are, so that sessions which the first round merged are merged further.
        hot._windowing = WindowInto(pcoll.windowing, accumulation_mode=AccumulationMode.DISCARDING).windowing
        parts = (
            hot
            | "PreCombine" >> CombinePerKey(_PreCombineFn(self._combine_fn))
            | "StripPart" >> Map(_without_part)
        )
        parts._windowing = pcoll.windowing
        combine = CombinePerKey(PostCombineFn(self._combine_fn)).with_output_types(
            typehints.KV[key_type, output]
        )
        return (cold, parts) | Flatten() | "PostCombine" >> combine


class _SplitHotKeys(DoFn):
    """Sends values of keys with a fan-out to a part of the key; one part per bundle, so that few are made."""

    def __init__(self, fanout: int | Callable[[Any], int]) -> None:
        super().__init__()
        self._fanout = fanout
        self._part = 0

    def start_bundle(self) -> None:
        """Chooses the part."""
        self._part = random.getrandbits(31)

    def process(self, element: Any) -> Iterable[Any]:
        """The pair, marked as no accumulator, or the value under a part of its key."""
        key, value = element
        fanout = self._fanout if isinstance(self._fanout, int) else self._fanout(key)
        if fanout <= 1:
            return [(key, (False, value))]
        return [pvalue.TaggedOutput("hot", ((self._part % fanout, key), value))]


def _without_part(element: Any) -> tuple[Any, Any]:
    (_, key), accumulator = element
    return key, accumulator


class _PreCombineFn(CombineFn):
    """The first round: gives the accumulator, marked as one."""

    # A retraction may come to another part of its key than what it takes back.
    takes_retractions = False

    def __init__(self, fn: CombineFn) -> None:
        super().__init__()
        self._label = f"{fn.default_label()} with fan-out"
        for name in (
            "setup",
            "create_accumulator",
            "add_input",
            "add_inputs",
            "merge_accumulators",
            "compact",
            "teardown",
        ):
            setattr(self, name, getattr(fn, name))

    def default_label(self) -> str:
        """That of the whole, for messages."""
        return self._label

    def extract_output(self, accumulator: Any, *args: Any, **kwargs: Any) -> Any:
        """The accumulator, marked as one."""
        return True, accumulator


class PostCombineFn(CombineFn):
    """The second round: takes values and accumulators.

    Attributes:
        fn: The CombineFn that both rounds are of.
    """

    def __init__(self, fn: CombineFn) -> None:
        super().__init__()
        self.fn = fn
        for name in (
            "setup",
            "create_accumulator",
            "merge_accumulators",
            "compact",
            "extract_output",
            "teardown",
        ):
            setattr(self, name, getattr(fn, name))

    def add_input(self, mutable_accumulator: Any, element: Any, *args: Any, **kwargs: Any) -> Any:
        """The accumulator with one more value, or merged with another."""
        is_accumulator, value = element
        if is_accumulator:
            return self.fn.merge_accumulators([mutable_accumulator, value], *args, **kwargs)
        return self.fn.add_input(mutable_accumulator, value, *args, **kwargs)
