"""A module beside the main program, which the workers do not have, with what pipelines are made of."""

from __future__ import annotations

from typing import Any

import penstock as beam


class NotEvenError(Exception):
    """A number cannot be halved."""


def shout(text: str) -> str:
    """The text in capitals."""
    return text.upper()


def half(number: int) -> int:
    """Half of an even number.

    Raises:
        NotEvenError: The number is odd.
    """
    if number % 2:
        raise NotEvenError("an odd number")
    return number // 2


class CountEach(beam.PTransform[Any, Any]):
    """Counts equal elements, with a CombineFn of this module."""

    def expand(self, elements: Any) -> Any:
        """Pairs of an element and its number."""
        return elements | beam.Map(lambda element: (element, None)) | beam.CombinePerKey(_Count())


class _Count(beam.CombineFn):
    def create_accumulator(self) -> int:
        return 0

    def add_input(self, accumulator: int, element: None) -> int:
        return accumulator + 1

    def merge_accumulators(self, accumulators: Any) -> int:
        return sum(accumulators)

    def extract_output(self, accumulator: int) -> int:
        return accumulator
