"""Values of JSON as values of the types that a program declares for fields."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from penstock.io.formats.declared_fields import (
    KEEPS_APART,
    DeclaredFields,
    digits_of,
    make_misfit,
    make_missing,
    needed_fields,
)
from penstock.typehints.constraints import Hint
from penstock.typehints.unions import without_none
from penstock.values.types import DECIMAL_DIGITS, DECIMAL_SCALE

_EXACT = decimal.Context(prec=2 * DECIMAL_DIGITS)


@dataclass(frozen=True)
class DeclaredValues:
    """Checks objects by the declared fields; fields of which nothing is declared are left alone.

    >>> from penstock.typehints import Optional, decimal_of
    >>> declared = DeclaredValues((("item", str), ("euros", decimal_of(10, 2)), ("weight", Optional[float])))
    >>> declared.of({"item": "tea", "euros": decimal.Decimal("3.5"), "weight": 2, "more": []})
    {'item': 'tea', 'euros': Decimal('3.50'), 'weight': 2.0, 'more': []}
    >>> declared.of({"item": None, "euros": 3})
    Traceback (most recent call last):
        ...
    penstock.io.rejects.Unreadable: the value of item is missing, and its type str excludes None
    >>> declared.of({"item": "tea", "euros": decimal.Decimal("0.125")})
    Traceback (most recent call last):
        ...
    penstock.io.rejects.Unreadable: the value of euros is not of type decimal_of(10, 2)
    """

    declared: DeclaredFields

    @cached_property
    def exact(self) -> frozenset[str]:
        """The fields that are decimals, which have the digits of the text."""
        return frozenset(name for name, hint in self.declared if is_decimal(without_none(hint)))

    @cached_property
    def _readers(self) -> list[tuple[str, Hint, bool, Callable[[object], object] | None]]:
        needed = needed_fields(self.declared)
        return [(name, hint, name in needed, _reader_of(without_none(hint))) for name, hint in self.declared]

    def of(self, found: dict[str, Any]) -> dict[str, Any]:
        """Returns an object with values of the declared types.

        Raises:
            Unreadable: A value is missing, and its type excludes None, or a value is of another type.
        """
        for name, hint, is_needed, read in self._readers:
            value = found.get(name)
            if value is None:
                if is_needed:
                    raise make_missing(name, hint, KEEPS_APART)
            elif read is not None:
                try:
                    found[name] = read(value)
                except (TypeError, ValueError, ArithmeticError):
                    raise make_misfit(name, without_none(hint)) from None
        return found

    def of_all(self, objects: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Returns all objects with such values."""
        return [self.of(each) for each in objects]


def is_decimal(hint: Hint) -> bool:
    """True if the values of a type are decimals."""
    return hint is decimal.Decimal or digits_of(hint) is not None


def _reader_of(hint: Hint) -> Callable[[object], object] | None:
    """The function that makes a value of a type of a value of JSON; None if any value will do."""
    if not is_decimal(hint):
        return _READERS.get(hint) if isinstance(hint, type) else None
    return partial(_decimal, digits=digits_of(hint))


def read_string(value: object) -> str:
    """Returns a string; TypeError for any other value of JSON."""
    if isinstance(value, str):
        return value
    raise TypeError


def read_boolean(value: object) -> bool:
    """Returns a boolean; TypeError for any other value of JSON."""
    if isinstance(value, bool):
        return value
    raise TypeError


def read_integer(value: object) -> int:
    """Returns an integer; TypeError for any other value of JSON."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise TypeError


def _float(value: object) -> float:
    if isinstance(value, float):
        return value
    found = float(read_integer(value))
    if found != value:
        raise ValueError
    return found


def _decimal(value: object, digits: tuple[int, int] | None) -> decimal.Decimal:
    """The decimal of a number, or of a text that has one; with `digits`, as many are after the point."""
    if isinstance(value, bool) or not isinstance(value, int | decimal.Decimal | str):
        raise TypeError
    found = decimal.Decimal(value)
    precision, scale = digits or (DECIMAL_DIGITS, DECIMAL_SCALE)
    if not found.is_finite() or (found and found.adjusted() >= precision - scale):
        raise ValueError
    rounded = found.quantize(decimal.Decimal((0, (1,), -scale)), context=_EXACT)
    if rounded != found:
        raise ValueError
    return found if digits is None else rounded


_READERS: dict[type, Callable[[object], object]] = {
    str: read_string,
    bool: read_boolean,
    int: read_integer,
    float: _float,
}
