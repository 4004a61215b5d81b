"""Hints for columns of a table that know more than the Python class of their values."""

from __future__ import annotations

import datetime
import decimal
import typing
from collections.abc import Iterable

from penstock.typehints.constraints import (
    Any,
    Hint,
    TypeConstraint,
    check_constraint,
    describe_mismatch,
    is_consistent_with,
    normalize,
    show_type,
)
from penstock.typehints.containers import DictConstraint, ListConstraint
from penstock.typehints.unions import union_of


class ValueTypeConstraint(TypeConstraint):
    """Values of a class, with facts that only their column knows; consistent with the class, both ways.

    `kind` is the column's name of the type, such as "Decimal", and `parameters` are its numbers. (Penstock's own.)
    """

    def __init__(self, value_class: type, kind: str, *parameters: int) -> None:
        self.value_class = value_class
        self.kind = kind
        self.parameters = parameters

    def _consistent_with_check_(self, sub: Hint) -> bool:
        if isinstance(sub, ValueTypeConstraint):
            return sub.kind == self.kind
        return isinstance(sub, type) and issubclass(sub, self.value_class)

    def _is_instance_of_class(self, base: type) -> bool:
        return issubclass(self.value_class, base)

    def type_check(self, instance: object) -> None:
        check_constraint(self.value_class, instance)

    def _mismatch(self, instance: object) -> str | None:
        return describe_mismatch(self.value_class, instance)

    def __or__(self, other: Hint) -> Hint:
        return union_of([self, other])

    __ror__ = __or__

    def _key(self) -> tuple[object, ...]:
        return self.value_class, self.kind, self.parameters

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueTypeConstraint) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((self.kind, self.parameters))

    def __reduce__(self) -> tuple[typing.Any, ...]:
        return ValueTypeConstraint, (self.value_class, self.kind, *self.parameters)

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join(map(str, self.parameters))})" if self.parameters else self.kind


def decimal_of(precision: int, scale: int) -> ValueTypeConstraint:
    """Returns the type of decimals with at most `precision` digits, of which `scale` are after the point.

    ``amount: Annotated[Decimal, decimal_of(10, 2)]`` declares it in a way that type checkers accept.

    >>> decimal_of(10, 2), decimal_of(10, 2) | None
    (Decimal(10, 2), Union[<class 'NoneType'>, Decimal(10, 2)])
    """
    return ValueTypeConstraint(decimal.Decimal, "Decimal", precision, scale)


LOCAL_DATETIME = ValueTypeConstraint(datetime.datetime, "LocalDatetime")
"""A datetime without a time zone, which is not an instant: ``timestamp_ntz`` in Spark."""


UNSIGNED = ValueTypeConstraint(int, "Unsigned")
"""An integer of 64 bits without a sign, which may be beyond what ``bigint`` holds: ``uint64`` in Arrow."""


class PairsConstraint(ListConstraint):
    """A map as a list of pairs of key and value, which pyarrow makes of it (penstock's own).

    >>> from penstock.typehints import Tuple
    >>> PairsConstraint(Tuple[str, int])
    Pairs[Tuple[<class 'str'>, <class 'int'>]]
    """

    label = "Pairs"


class RecordConstraint(DictConstraint):
    """Dicts with these items, in an order; one that is absent is None (penstock's own).

    >>> RecordConstraint([("team", str), ("points", int)])
    Dict(team=<class 'str'>, points=<class 'int'>)
    """

    def __init__(self, fields: Iterable[tuple[str, Hint]]) -> None:
        self._fields = tuple((name, normalize(hint, none_as_type=True)) for name, hint in fields)
        kinds = [hint for _, hint in self._fields]
        super().__init__(str, union_of(kinds) if kinds else Any)
        self._hash = hash(self._fields)

    @property
    def fields(self) -> tuple[tuple[str, Hint], ...]:
        """Pairs of name and type, in order."""
        return self._fields

    def get_type_for(self, name: str) -> Hint:
        """Returns the type of an item; ``Any`` without such an item."""
        return dict(self._fields).get(name, Any)

    def with_parameters(self, parameters: tuple[Hint, ...]) -> Hint:
        """Returns this constraint with other parameters."""
        return DictConstraint(*parameters)

    def _consistent_with_check_(self, sub: Hint) -> bool:
        if not isinstance(sub, RecordConstraint):
            return super()._consistent_with_check_(sub)
        given = dict(sub.fields)
        return all(
            name in given and is_consistent_with(given[name], hint) for name, hint in self._fields
        ) and len(given) == len(self._fields)

    def _mismatch(self, instance: object) -> str | None:
        if not isinstance(instance, dict):
            return super()._mismatch(instance)
        for name, hint in self._fields:
            reason = describe_mismatch(hint, instance.get(name))
            if reason is not None:
                return f"{self} hint type-constraint violated. The item {name!r} is incorrect. {reason}"
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecordConstraint) and self._fields == other._fields

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[typing.Any, ...]:
        return RecordConstraint, (self._fields,)

    def __repr__(self) -> str:
        return f"Dict({', '.join(f'{name}={show_type(hint)}' for name, hint in self._fields)})"
