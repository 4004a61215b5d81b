"""The fields that a program declares for the records of a source, and what is wrong with a value of another type."""

from __future__ import annotations

import decimal
from collections.abc import Iterable

from penstock.error import refusal
from penstock.io.rejects import Unreadable
from penstock.typehints.column_types import ValueTypeConstraint
from penstock.typehints.constraints import Hint, describe_mismatch, short_type
from penstock.typehints.signatures import TypeCheckError
from penstock.values.types import DECIMAL_DIGITS

DeclaredFields = tuple[tuple[str, Hint], ...]
"""Pairs of name and type, in order."""

KEEPS_APART = "pass rejects=True, which keeps such records apart"
"""The end of a hint about sources that have rejects."""


def needed_fields(declared: Iterable[tuple[str, Hint]]) -> dict[str, Hint]:
    """Returns the fields whose types exclude None, with their types.

    >>> needed_fields([("item", str), ("euros", float | None), ("note", object)])
    {'item': <class 'str'>}
    """
    return {name: hint for name, hint in declared if describe_mismatch(hint, None) is not None}


def make_missing(name: str, hint: Hint, *ways_out: str) -> Unreadable:
    """Returns why a record without a value in a needed field does not fit.

    Args:
        name: The field.
        hint: Its type.
        ways_out: What else the user can do than to let the field be None.

    >>> missing = make_missing("euros", float, KEEPS_APART)
    >>> print(missing)
    the value of euros is missing, and its type float excludes None
    >>> missing.hint
    'declare euros: float | None, or pass rejects=True, which keeps such records apart'
    """
    shown = show_field_type(hint)
    ways = [f"declare {name}: {shown} | None", *ways_out]
    fix = ways[0] if len(ways) == 1 else f"{', '.join(ways[:-1])}, or {ways[-1]}"
    return Unreadable(f"the value of {name} is missing, and its type {shown} excludes None", name, fix)


def make_misfit(name: str, hint: Hint) -> Unreadable:
    """Returns why a record with a value of another type in a field does not fit.

    >>> print(make_misfit("euros", float))
    the value of euros is not of type float
    """
    what = f"the value of {name} is not of type {show_field_type(hint)}"
    return Unreadable(what, name, f"correct the type of the field, or {KEEPS_APART}")


def show_field_type(hint: Hint) -> str:
    """Returns a type as a program writes it.

    >>> from penstock.typehints import List, decimal_of
    >>> show_field_type(float), show_field_type(List[int]), show_field_type(decimal_of(10, 2))
    ('float', 'list[int]', 'decimal_of(10, 2)')
    """
    if digits_of(hint) is not None:
        return f"decimal_of({', '.join(map(str, hint.parameters))})"
    return hint.__name__ if isinstance(hint, type) else short_type(str(hint)) or str(hint)


def digits_of(hint: Hint) -> tuple[int, int] | None:
    """Returns the numbers of digits, and of those after the point, of ``decimal_of(...)``; None for other types.

    >>> from penstock.typehints import decimal_of
    >>> digits_of(decimal_of(10, 2)), digits_of(decimal.Decimal)
    ((10, 2), None)
    """
    if isinstance(hint, ValueTypeConstraint) and hint.value_class is decimal.Decimal:
        precision, scale = hint.parameters
        return precision, scale
    return None


def check_digits(name: str, hint: Hint, where: str) -> None:
    """Refuses a ``decimal_of(...)`` with digits that no column has."""
    digits = digits_of(hint)
    if digits is not None and not (0 <= digits[1] <= digits[0] <= DECIMAL_DIGITS and digits[0]):
        shown = show_field_type(hint)
        what = f"the field {name} is declared {shown}, and a decimal has 1 to {DECIMAL_DIGITS} digits"
        fix = "write decimal_of(10, 2), for example, for 10 digits of which 2 are after the point"
        raise refusal(TypeCheckError, what, where=where, hint=fix)
