"""The result of no elements: a marker among the elements, and a CombineFn that leaves it out."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

from penstock.functions.combinefn import CombineFn


class NoValue(enum.Enum):
    """Stands for no value where an empty PCollection needs an element; equal to its pickled copies."""

    MARKER = enum.auto()


_PASSED_ON = (
    "setup create_accumulator merge_accumulators compact extract_output teardown subtract_input subtracts"
)


class DefaultingCombineFn(CombineFn):
    """A CombineFn that leaves the marker of an otherwise empty PCollection out.

    Args:
        fn: The CombineFn inside.
    """

    def __init__(self, fn: CombineFn) -> None:
        super().__init__()
        self.fn = fn
        # The marker is never taken back.
        for name in _PASSED_ON.split():
            if hasattr(fn, name):
                setattr(self, name, getattr(fn, name))
        self.takes_retractions = fn.takes_retractions

    @staticmethod
    def is_marker(value: Any) -> bool:
        """Whether a value is the marker."""
        return value is NoValue.MARKER

    def default_label(self) -> str:
        """The label of the one inside."""
        return self.fn.default_label()

    def describe(self) -> str:
        """The name of the one inside, for people."""
        described = getattr(self.fn, "describe", None)
        return str(described()) if described else type(self.fn).__name__

    def add_input(self, mutable_accumulator: Any, element: Any, *args: Any, **kwargs: Any) -> Any:
        """The accumulator, with the element unless it is the marker."""
        if element is NoValue.MARKER:
            return mutable_accumulator
        return self.fn.add_input(mutable_accumulator, element, *args, **kwargs)

    def add_inputs(self, mutable_accumulator: Any, elements: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
        """The accumulator, with the elements that are not the marker."""
        values = [element for element in elements if element is not NoValue.MARKER]
        return self.fn.add_inputs(mutable_accumulator, values, *args, **kwargs)

    def default_type_hints(self) -> Any:
        """The type hints of the one inside."""
        return self.fn.get_type_hints()
