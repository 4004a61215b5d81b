"""SQL's equality: the one form of all values that are equal to each other, by which keys and rows are compared.

Beam's keys are equal if their bytes are (`penstock.coders.deterministic`), and values that a query finds equal may have
several: 1.5 and 1.50, 0.0 and -0.0, one instant in two zones. So a value becomes a key in its canonical form:

=============  =================================================================================================
type           the form
=============  =================================================================================================
DOUBLE         0.0 for both zeros, one NaN, and a float for an integer that stands in for one
DECIMAL        without zeros at its end; 0 for all zeros
TIMESTAMP      in UTC
TIMESTAMP_NTZ  as the first of the two times that a clock shows twice
ARRAY          a list of the forms of its elements
MAP            a dict of the forms of its keys and values
STRUCT         a Row of the forms of its fields
ANY            all numbers as one DECIMAL; lists, tuples, dicts and rows by their parts; other values by their type
others         the value itself
=============  =================================================================================================

NULL is its own form: groups have it as a key, and joins leave it out. Values of different types are cast to a
common type before they are compared (`penstock.scalars.types.find_common_type`), as in Spark.

What a query shows of a group's key is, as in Spark, a value of the group, and not the form: see `has_forms`.
"""

from __future__ import annotations

import datetime
import decimal
import functools
import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from penstock.elements.row import Row
from penstock.relations.bags import Copies
from penstock.scalars.nested_values import make_row
from penstock.scalars.tree import Scalar, UserCall
from penstock.scalars.types import ANY, SqlType

Canonical = Callable[[Any], Any]
"""Maps a value to the form of all values that are equal to it; NULL to NULL."""

_EXACT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[])
_NO_NUMBER = decimal.Decimal("NaN")
_ZERO = decimal.Decimal(0)


def canonicalizer_of(kind: SqlType) -> Canonical | None:
    """Returns what brings the values of a type into their canonical form; None if each value is in it already.

    >>> from penstock.scalars.types import BIGINT, DECIMAL, DOUBLE
    >>> canonicalizer_of(DECIMAL)(decimal.Decimal("7.00")), canonicalizer_of(DOUBLE)(-0.0), canonicalizer_of(BIGINT)
    (Decimal('7'), 0.0, None)
    """
    if kind.name == "ARRAY":
        return functools.partial(_list, canonicalizer_of(kind.element or ANY))
    if kind.is_nested:
        forms = [canonicalizer_of(each) for each in kind.parts]
        if kind.name == "MAP":
            return functools.partial(_map, forms[0], forms[1])
        named = [(name, form) for (name, _), form in zip(kind.fields, forms, strict=True) if form]
        return functools.partial(_struct, named) if named else None
    return _CANONICAL.get(kind.name)


def has_forms(kind: SqlType) -> bool:
    """True if the canonical form of a value is not what a query shows of it: it shows one of the values.

    >>> from penstock.scalars.types import DECIMAL, DOUBLE
    >>> has_forms(DECIMAL), has_forms(DOUBLE)
    (True, False)
    """
    return kind.name in ("DECIMAL", "ANY") or any(map(has_forms, kind.parts))


def canonicalize_keys(scalars: Iterable[Scalar]) -> tuple[Scalar, ...]:
    """Returns expressions as the parts of a key, in canonical form.

    >>> from penstock.scalars.row_functions import Projection
    >>> from penstock.scalars.tree import Column
    >>> from penstock.scalars.types import DECIMAL
    >>> price = Column(0, "price", DECIMAL)
    >>> Projection(canonicalize_keys([price]))((decimal.Decimal("1.50"),))
    (Decimal('1.5'),)
    """
    return tuple(
        each if (form := canonicalizer_of(each.type)) is None else UserCall("KEY", form, (each,), each.type)
        for each in scalars
    )


class CanonicalRow:
    """Makes of a row the row of the canonical forms of its values.

    Args:
        forms: What brings the value at a place into its form, by place.
    """

    def __init__(self, forms: Mapping[int, Canonical]) -> None:
        self._forms = dict(forms)

    def __call__(self, row: Any) -> tuple[Any, ...]:
        """Returns the row in canonical form."""
        values = list(row)
        for place, form in self._forms.items():
            values[place] = form(values[place])
        return tuple(values)


def row_canonicalizer_of(kinds: Iterable[SqlType]) -> CanonicalRow | None:
    """Returns what brings rows of columns of these types into their canonical form; None if they are in it."""
    forms = {place: form for place, kind in enumerate(kinds) if (form := canonicalizer_of(kind)) is not None}
    return CanonicalRow(forms) if forms else None


def copies_in_any_form(kind: SqlType) -> Copies:
    """Returns copies of values of a type whose form does not matter to what is made of them."""
    form = canonicalizer_of(kind)
    if kind.name == "DOUBLE":
        return _CopiesOfFloats(form, by_value=True)
    return Copies(form, by_value=not kind.is_nested and kind.name != "ANY")


class _CopiesOfFloats(Copies):
    """Holds floats, whose equality in Python is SQL's except for NaN, which has a name here."""

    _NAN = "NaN"

    def _key(self, row: Any) -> object:
        return row + 0.0 if row == row else self._NAN

    def _row(self, key: object) -> object:
        return math.nan if key == self._NAN else key


def _float(value: float | None) -> object:
    if value is None:
        return None
    return value + 0.0 if value == value else math.nan


def _decimal(value: decimal.Decimal | float | None) -> object:
    if value is None:
        return None
    if not isinstance(value, decimal.Decimal):
        value = decimal.Decimal(value)
    if not value:
        return _ZERO
    return _NO_NUMBER if value.is_nan() else value.normalize(_EXACT)


def _instant(value: datetime.datetime | None) -> object:
    if value is None or value.tzinfo is datetime.UTC:
        return value
    try:
        return value.astimezone(datetime.UTC)
    except OverflowError:
        # In UTC, it is in no year from 1 to 9999.
        return value


def _local(value: datetime.datetime | None) -> object:
    return value.replace(fold=0) if value is not None and value.fold else value


def _list(form: Canonical | None, value: Iterable[Any] | None) -> object:
    if value is None:
        return None
    return list(value) if form is None else list(map(form, value))


def _map(key: Canonical | None, form: Canonical | None, value: Mapping[Any, Any] | None) -> object:
    if value is None:
        return None
    return {
        each if key is None else key(each): held if form is None else form(held)
        for each, held in value.items()
    }


def _struct(forms: list[tuple[str, Canonical]], value: Row | None) -> object:
    if value is None:
        return None
    fields = value.as_dict()
    for name, form in forms:
        fields[name] = form(fields[name])
    return make_row(fields, fields.values())


def _any(value: object) -> object:
    match value:
        case None | str() | bytes():
            return value
        case numbers.Integral():
            return _decimal(int(value))
        case float() | decimal.Decimal():
            return _decimal(value)
        case datetime.datetime():
            return _instant(value) if value.tzinfo else _local(value)
        case list() | tuple():
            return list(map(_any, value))
        case dict():
            return {key: _any(each) for key, each in value.items()}
        case Row():
            return Row(**{name: _any(each) for name, each in vars(value).items()})
    return value


_CANONICAL: Mapping[str, Canonical] = {
    "DOUBLE": _float,
    "DECIMAL": _decimal,
    "TIMESTAMP": _instant,
    "TIMESTAMP_NTZ": _local,
    "ANY": _any,
}
