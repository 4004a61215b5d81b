"""Bounds of the integers in a table: where 64 bits always suffice, nothing has to check for overflow."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from penstock.scalars.expressions import Expression
from penstock.scalars.tree import Call, Field, Literal, Scalar
from penstock.values.types import INTEGER

_LEAST, _GREATEST = INTEGER.least, INTEGER.greatest


@dataclass(frozen=True)
class Range:
    """Integers from `least` to `greatest`, both included; a column of them may also contain None."""

    least: int
    greatest: int

    @property
    def farthest(self) -> int:
        return max(abs(self.least), abs(self.greatest))


@dataclass(frozen=True)
class Bounds:
    """The known bounds of the numbers in a table, without reading it."""

    rows_max: int | None = None  # The largest possible number of rows; None if unknown.
    ranges: Mapping[str, Range] = field(default_factory=dict)  # The fields whose range is known.

    def range_of(self, expression: Expression) -> Range | None:
        """The range of an expression; None if the expression or a part of it may exceed 64 bits."""
        return self._range_of(expression.scalar)

    def _range_of(self, scalar: Scalar) -> Range | None:
        match scalar:
            case Field(name):
                return self.ranges.get(name)
            case Literal(int() as value) if not isinstance(value, bool):
                return _in_64_bits([value])
            case Call(symbol, [left, right]):
                of_left, of_right = self._range_of(left), self._range_of(right)
                return (
                    None if of_left is None or of_right is None else _compute_range(symbol, of_left, of_right)
                )
        return None

    def has_sums(self, expression: Expression) -> bool:
        """True if the sum of an expression's values, over any of the rows, always fits into 64 bits."""
        found = self.range_of(expression)
        return found is not None and self.rows_max is not None and self.rows_max * found.farthest <= _GREATEST

    def project(self, fields: Iterable[tuple[str, Expression]]) -> Bounds:
        """The bounds of a table with these expressions as columns."""
        found = {name: self.range_of(each) for name, each in fields}
        return Bounds(self.rows_max, {name: each for name, each in found.items() if each is not None})


UNBOUNDED = Bounds()


def _compute_range(symbol: str, left: Range, right: Range) -> Range | None:
    match symbol:
        case "+":
            return _in_64_bits([left.least + right.least, left.greatest + right.greatest])
        case "-":
            return _in_64_bits([left.least - right.greatest, left.greatest - right.least])
        case "*":
            return _in_64_bits([one * other for one, other in _corners(left, right)])
        case "%" if right.least > 0:
            return Range(0, right.greatest - 1)
        case "//" if right.least > 0:
            return _in_64_bits([one // other for one, other in _corners(left, right)])
    return None


def _corners(left: Range, right: Range) -> Iterable[tuple[int, int]]:
    return itertools.product((left.least, left.greatest), (right.least, right.greatest))


def _in_64_bits(values: list[int]) -> Range | None:
    found = Range(min(values), max(values))
    return found if found.least >= _LEAST and found.greatest <= _GREATEST else None
