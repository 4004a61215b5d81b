"""The types of scalars, and the type hints and Python values that belong to them.

What happens to a number that is too large is a property of its type: BIGINT has 64 bits, and more is an error;
INTEGER, of functions of fields, has as many as it needs in Python. INT, SMALLINT and TINYINT are BIGINTs of fewer bits,
and FLOAT is a DOUBLE of 32 bits, so that what does not depend on the width is the same for all of them.
"""

from __future__ import annotations

import decimal
import typing
from collections.abc import Iterable
from dataclasses import dataclass, replace

from penstock.typehints import typehints
from penstock.typehints.column_types import (
    LOCAL_DATETIME,
    PairsConstraint,
    RecordConstraint,
    ValueTypeConstraint,
    decimal_of,
)
from penstock.typehints.native_type_compatibility import convert_to_beam_type
from penstock.typehints.row_type import RowTypeConstraint
from penstock.typehints.unions import UnionConstraint, without_none
from penstock.utils.timestamp import Timestamp
from penstock.values.types import DECIMAL_DIGITS, TYPES


@dataclass(frozen=True)
class SqlType:
    """A type of SQL (penstock's own).

    Attributes:
        name: NULL, BOOLEAN, BIGINT, DOUBLE, DECIMAL, STRING, BINARY, DATE, TIMESTAMP (an aware datetime),
            TIMESTAMP_NTZ (a naive one), INTERVAL (a timedelta), MONTHS (an int), ARRAY (a list), MAP (a dict),
            STRUCT (a Row) or ANY.
        nullable: Whether a value may be NULL.
        element: The type of an ARRAY's elements, or of a MAP's values.
        precision: How many digits a DECIMAL has at most; None if its column does not say.
        scale: How many of them are after the point.
        key: The type of a MAP's keys, which are never NULL.
        fields: The names and the types of a STRUCT's fields, in order.
        bits: The width of a BIGINT or of a DOUBLE; a BIGINT of 32 bits is an INT, and a DOUBLE of 32 bits is a FLOAT.

    >>> print(array_of(BIGINT, False), decimal_type(10, 2), SqlType("BIGINT", bits=32))
    ARRAY<BIGINT> NOT NULL DECIMAL(10, 2) INT
    >>> print(map_of(STRING, struct_of([("a", BIGINT)])))
    MAP<STRING NOT NULL, STRUCT<a: BIGINT>>
    """

    name: str
    nullable: bool = True
    element: SqlType | None = None
    precision: int | None = None
    scale: int | None = None
    key: SqlType | None = None
    fields: tuple[tuple[str, SqlType], ...] = ()
    bits: int = 64

    def __str__(self) -> str:
        parts = [str(each) for each in (self.key, self.element) if each]
        parts += [f"{name}: {kind}" for name, kind in self.fields]
        name = f"{self.name}<{', '.join(parts)}>" if parts else self.width_name
        if self.precision is not None:
            name = f"{name}({self.precision}, {self.scale})"
        return name if self.nullable or self.name == "NULL" else f"{name} NOT NULL"

    def or_null(self, nullable: bool = True) -> SqlType:
        """Returns this type, of values that may or cannot be NULL.

        >>> print(BIGINT.or_null(False))
        BIGINT NOT NULL
        """
        return self if self.nullable == nullable else replace(self, nullable=nullable)

    @property
    def parts(self) -> tuple[SqlType, ...]:
        """The types of the values that a value holds: of elements, of keys and values, or of fields."""
        held = tuple(each for each in (self.key, self.element) if each)
        return held + tuple(kind for _, kind in self.fields)

    @property
    def is_nested(self) -> bool:
        """True if the values hold other values: arrays, maps and structs."""
        return self.name in ("ARRAY", "MAP", "STRUCT")

    def has(self, name: str) -> bool:
        """True if this type, or one of its parts, has a name.

        >>> array_of(ANY).has("ANY"), struct_of([("ANY", BIGINT)]).has("ANY")
        (True, False)
        """
        return self.name == name or any(each.has(name) for each in self.parts)

    @property
    def width_name(self) -> str:
        """The name with the width, such as SMALLINT for a BIGINT of 16 bits.

        >>> REAL.width_name
        'FLOAT'
        """
        return _WIDTH_NAMES.get((self.name, self.bits), self.name)

    @property
    def is_number(self) -> bool:
        """True if the values are numbers."""
        return self.name in _NUMBERS

    @property
    def is_time(self) -> bool:
        """True if the values are dates or moments."""
        return self.name in _TIMES


NULL = SqlType("NULL")
BOOLEAN = SqlType("BOOLEAN")
BIGINT = SqlType("BIGINT")
INT = SqlType("BIGINT", bits=32)
SMALLINT = SqlType("BIGINT", bits=16)
TINYINT = SqlType("BIGINT", bits=8)
DOUBLE = SqlType("DOUBLE")
REAL = SqlType("DOUBLE", bits=32)
"""SQL's FLOAT, which has 32 bits."""
DECIMAL = SqlType("DECIMAL")
STRING = SqlType("STRING")
BINARY = SqlType("BINARY")
DATE = SqlType("DATE")
TIMESTAMP = SqlType("TIMESTAMP")
TIMESTAMP_NTZ = SqlType("TIMESTAMP_NTZ")
INTERVAL = SqlType("INTERVAL")
MONTHS = SqlType("MONTHS")
"""Intervals of months, whose values are numbers of months; no column has them."""
ANY = SqlType("ANY")
PYTHON = SqlType("PYTHON")
"""The type of values that Python's own operators compute with, as in functions of fields."""
INTEGER = SqlType("INTEGER")
"""Python's integers, which have as many bits as they need; Spark refuses one of more than 64."""
FLOAT = SqlType("FLOAT")
"""Python's floats: NaN compares with nothing, where the NaN of DOUBLE equals itself and is above all numbers."""
_WIDTH_NAMES = {
    ("BIGINT", 32): "INT",
    ("BIGINT", 16): "SMALLINT",
    ("BIGINT", 8): "TINYINT",
    ("DOUBLE", 32): "FLOAT",
}
_WHOLE_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
"""The number of digits of a decimal that holds each integer, by the number's bits."""


def array_of(element: SqlType, nullable: bool = True) -> SqlType:
    """Returns the type of arrays of elements of a type.

    >>> print(array_of(STRING))
    ARRAY<STRING>
    """
    return SqlType("ARRAY", nullable, element)


def map_of(key: SqlType, value: SqlType, nullable: bool = True) -> SqlType:
    """Returns the type of maps from keys of a type to values of a type.

    >>> print(map_of(DATE, DOUBLE, nullable=False))
    MAP<DATE NOT NULL, DOUBLE> NOT NULL
    """
    return SqlType("MAP", nullable, value, key=key.or_null(False))


def struct_of(fields: Iterable[tuple[str, SqlType]], nullable: bool = True) -> SqlType:
    """Returns the type of structs with these fields.

    >>> print(struct_of([("team", STRING), ("points", BIGINT.or_null(False))]))
    STRUCT<team: STRING, points: BIGINT NOT NULL>
    """
    return SqlType("STRUCT", nullable, fields=tuple(fields))


DIGITS_MAX = DECIMAL_DIGITS
"""The maximum number of digits of a DECIMAL."""
_FRACTION_KEPT = 6
"""The digits after the point that arithmetic keeps, where a result has more digits than a DECIMAL may have."""


def decimal_type(precision: int, scale: int, nullable: bool = True) -> SqlType:
    """Returns the type of decimals with a number of digits, of which some are after the point.

    >>> print(decimal_type(5, 2, nullable=False))
    DECIMAL(5, 2) NOT NULL
    """
    return SqlType("DECIMAL", nullable, None, precision, scale)


def decimals_of_whole(kind: SqlType) -> SqlType:
    """Returns the type of decimals that holds each integer of a type; other types stay.

    >>> print(decimals_of_whole(INT), decimals_of_whole(BIGINT), decimals_of_whole(DOUBLE))
    DECIMAL(10, 0) DECIMAL(20, 0) DOUBLE
    """
    return decimal_type(_WHOLE_DIGITS[kind.bits], 0, kind.nullable) if kind.name == "BIGINT" else kind


def digits_kept(precision: int, scale: int) -> SqlType:
    """Returns the type of a result that needs a number of digits: the last ones go if a DECIMAL cannot have them all.

    >>> print(digits_kept(21, 4), digits_kept(49, 12))
    DECIMAL(21, 4) DECIMAL(38, 6)
    """
    if precision <= DIGITS_MAX:
        return decimal_type(precision, scale)
    before = precision - scale
    return decimal_type(DIGITS_MAX, max(DIGITS_MAX - before, min(scale, _FRACTION_KEPT)))


def _wider(left: SqlType, right: SqlType, nullable: bool) -> SqlType:
    """The type of decimals that holds those of two types; digits before the point come first."""
    if left.precision is None or right.precision is None or left.scale is None or right.scale is None:
        return DECIMAL.or_null(nullable)
    scale = max(left.scale, right.scale)
    precision = max(left.precision - left.scale, right.precision - right.scale) + scale
    surplus = max(0, precision - DIGITS_MAX)
    return decimal_type(precision - surplus, max(0, scale - surplus), nullable)


_NUMBERS = ("BIGINT", "DECIMAL", "DOUBLE")
_TIMES = ("DATE", "TIMESTAMP_NTZ", "TIMESTAMP")

_CLASSES: dict[type, SqlType] = {
    **{each.python: SqlType(each.sql) for each in TYPES if each.hint is each.python},
    Timestamp: TIMESTAMP,
}
# Of two types with one name in SQL, the first is the usual one.
_HINTS: dict[str, typing.Any] = {**{each.sql: each.hint for each in TYPES[::-1]}, "ANY": typehints.Any}


def from_hint(hint: object) -> SqlType:
    """Returns the SQL type of a type hint; ANY for a hint that SQL has no type for.

    >>> import typing
    >>> print(from_hint(int), from_hint(typing.Optional[str]), from_hint(list[float]), from_hint(dict), sep=", ")
    BIGINT NOT NULL, STRING, ARRAY<DOUBLE NOT NULL> NOT NULL, ANY
    >>> print(from_hint(dict[str, int]), from_hint(typing.NamedTuple("Point", [("x", float)])), sep=", ")
    MAP<STRING NOT NULL, BIGINT NOT NULL> NOT NULL, STRUCT<x: DOUBLE NOT NULL> NOT NULL
    """
    return _from_hint(hint, ())


def _from_hint(hint: object, around: tuple[object, ...]) -> SqlType:
    """The type of a hint inside of classes; one that contains itself has no type."""
    hint = convert_to_beam_type(hint)
    if hint is None or hint is type(None):
        return NULL
    bare = without_none(hint)
    if isinstance(bare, UnionConstraint):
        return ANY
    found = _not_null_from_hint(bare, around)
    return found.or_null(bare is not hint or found.name == "ANY")


def _not_null_from_hint(hint: object, around: tuple[object, ...]) -> SqlType:
    if isinstance(hint, ValueTypeConstraint):
        if hint == LOCAL_DATETIME:
            return TIMESTAMP_NTZ
        if hint.value_class is decimal.Decimal and len(hint.parameters) == 2:
            return decimal_type(*hint.parameters)
        hint = hint.value_class
    if isinstance(hint, PairsConstraint):
        pair = hint.inner_type
        hint = typehints.Dict[pair.tuple_types] if isinstance(pair, typehints.TupleConstraint) else dict
    if isinstance(hint, RecordConstraint) and hint.fields:
        # A record may lack an item, which is None then.
        return struct_of((name, _from_hint(each, around).or_null()) for name, each in hint.fields)
    if isinstance(hint, (typehints.ListConstraint, typehints.TupleSequenceConstraint)):
        return array_of(_from_hint(hint.inner_type, around))
    if isinstance(hint, typehints.DictConstraint):
        key, value = (_from_hint(each, around) for each in hint.parameters)
        return map_of(key, value) if is_key_of_map(key) else ANY
    row = hint if isinstance(hint, RowTypeConstraint) else RowTypeConstraint.from_user_type(hint)
    if row is not None and row.fields:
        seen = row.user_type if type(row) is RowTypeConstraint else None
        if seen is not None and seen in around:
            return ANY
        return struct_of((name, _from_hint(each, (*around, seen))) for name, each in row.fields)
    if not isinstance(hint, type):
        return ANY
    if hint.__module__ == "numpy":
        return BIGINT if hint.__name__.startswith(("int", "uint")) else ANY
    return _CLASSES.get(hint, ANY)


def is_key_of_map(kind: SqlType) -> bool:
    """True if maps may have keys of a type: their values are the same in Python if they are equal in SQL.

    >>> is_key_of_map(STRING), is_key_of_map(array_of(STRING))
    (True, False)
    """
    return not kind.is_nested and kind.name not in ("ANY", "NULL", "MONTHS")


def to_hint(sql_type: SqlType) -> typing.Any:
    """Returns the type hint of the Python values of an SQL type.

    >>> to_hint(BIGINT), to_hint(STRING.or_null(False))
    (Union[<class 'NoneType'>, <class 'int'>], <class 'str'>)
    """
    hint = _HINTS.get(sql_type.name)
    if sql_type.name == "ARRAY":
        hint = typehints.List[to_hint(sql_type.element or ANY)]
    elif sql_type.name == "MAP":
        hint = typehints.Dict[to_hint(sql_type.key or ANY), to_hint(sql_type.element or ANY)]
    elif sql_type.name == "STRUCT":
        hint = RowTypeConstraint.from_fields([(name, to_hint(kind)) for name, kind in sql_type.fields])
    elif sql_type.precision is not None and sql_type.scale is not None:
        hint = decimal_of(sql_type.precision, sql_type.scale)
    plain = not sql_type.nullable or sql_type.name in ("NULL", "ANY")
    return hint if plain else typehints.Optional[hint]


def find_common_type(types: Iterable[SqlType]) -> SqlType | None:
    """Returns the type that values of all these types can have; None if there is none.

    >>> print(find_common_type([BIGINT.or_null(False), DOUBLE.or_null(False)]))
    DOUBLE NOT NULL
    >>> print(find_common_type([TINYINT, INT]), find_common_type([INT, REAL]))
    INT DOUBLE
    >>> print(find_common_type([NULL, DATE]), find_common_type([STRING, DATE]))
    DATE None
    """
    found: SqlType | None = SqlType("NULL", False)
    for each in types:
        found = _common(found, each)
    return NULL if found is not None and found.name == "NULL" else found


def _common(left: SqlType | None, right: SqlType) -> SqlType | None:
    if left is None:
        return None
    nullable = left.nullable or right.nullable
    if "ANY" in (left.name, right.name):
        return ANY
    if left.name == "NULL":
        return right.or_null(nullable)
    if right.name == "NULL":
        return left.or_null(nullable)
    if left.name == right.name == "DECIMAL":
        return _wider(left, right, nullable)
    if left.name == right.name:
        if left.is_nested:
            return _common_nested(left, right, nullable)
        return (left if left.bits >= right.bits else right).or_null(nullable)
    if {left.name, right.name} == {"BIGINT", "DECIMAL"}:
        return _wider(decimals_of_whole(left), decimals_of_whole(right), nullable)
    for ladder in (_NUMBERS, _TIMES):
        if left.name in ladder and right.name in ladder:
            return SqlType(ladder[max(ladder.index(left.name), ladder.index(right.name))], nullable)
    return None


def _common_nested(left: SqlType, right: SqlType, nullable: bool) -> SqlType | None:
    """The common type of two arrays, maps or structs; structs may have other names, and the first ones count."""
    if len(left.parts) != len(right.parts):
        return None
    names = [name for name, _ in left.fields]
    found = [_common(one, other) for one, other in zip(left.parts, right.parts, strict=True)]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    if left.name == "STRUCT":
        return struct_of(zip(names, known, strict=True), nullable)
    return array_of(known[0], nullable) if left.name == "ARRAY" else map_of(known[0], known[1], nullable)
