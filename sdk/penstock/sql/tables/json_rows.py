"""Rows as JSON in the values of records of Kafka."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.elements.row import Row
from penstock.error import refusal
from penstock.relations.upserts import Upsert
from penstock.scalars.types import ANY, SqlType
from penstock.sql.plan.relations import Columns
from penstock.sql.tables.columns import row_hint
from penstock.transforms.elements.pardo import FlatMap, Map
from penstock.typehints import KV, Optional


def _whole(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise TypeError


def _float(value: object) -> float:
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return float(value)
    raise TypeError


def _decimal(value: object) -> Decimal:
    if isinstance(value, int | Decimal | str) and not isinstance(value, bool):
        return Decimal(value)
    raise TypeError


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    raise TypeError


def _truth(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise TypeError


def _moment(value: object) -> datetime.datetime:
    moment = datetime.datetime.fromisoformat(_text(value))
    return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).astimezone(datetime.UTC)


def _local(value: object) -> datetime.datetime:
    moment = datetime.datetime.fromisoformat(_text(value))
    if moment.tzinfo is not None:
        raise ValueError
    return moment


_READERS: Mapping[str, Callable[[Any], object]] = {
    "BIGINT": _whole,
    "DOUBLE": _float,
    "DECIMAL": _decimal,
    "STRING": _text,
    "BOOLEAN": _truth,
    "TIMESTAMP": _moment,
    "TIMESTAMP_NTZ": _local,
    "DATE": lambda value: datetime.date.fromisoformat(_text(value)),
}


def _read(kind: SqlType, value: Any) -> object:
    """A value of a type; a struct may lack fields, which are NULL."""
    if value is None:
        if kind.nullable:
            return None
        raise TypeError
    if kind.name == "ARRAY":
        if not isinstance(value, list):
            raise TypeError
        return [_read(kind.element or ANY, each) for each in value]
    if kind.is_nested:
        if not isinstance(value, dict):
            raise TypeError
        if kind.name == "STRUCT":
            return Row(**{name: _read(each, value.get(name)) for name, each in kind.fields})
        return {_key(kind.key or ANY, key): _read(kind.element or ANY, each) for key, each in value.items()}
    read = _READERS.get(kind.name)
    return value if read is None else read(value)


def _key(kind: SqlType, key: str) -> object:
    """A key of a map, which is a string in JSON."""
    if kind.name == "BIGINT":
        return int(key)
    return Decimal(key) if kind.name == "DECIMAL" else _read(kind, key)


@dataclass(frozen=True)
class RowsOfJson:
    """Decodes a JSON object as a row.

    Attributes:
        columns: The columns; the object may have more fields, and one that lacks a field has NULL there.

    >>> from penstock.scalars.types import BIGINT, STRING, array_of, struct_of
    >>> from penstock.sql.plan.relations import ColumnDef
    >>> decode = RowsOfJson((ColumnDef("team", STRING), ColumnDef("points", BIGINT)))
    >>> decode(b'{"team": "blue", "points": 3, "more": true}')
    Row(team='blue', points=3)
    >>> nested = RowsOfJson((ColumnDef("a", array_of(struct_of([("x", BIGINT)]))),))
    >>> nested(b'{"a": [{"x": 1}, {}]}')
    Row(a=[Row(x=1), Row(x=None)])
    """

    columns: Columns

    def __call__(self, data: bytes) -> Row:
        """The row of an object."""
        found = json.loads(data, parse_float=Decimal)
        if not isinstance(found, dict):
            raise refusal(
                ValueError, "a record is no JSON object", where="", hint="write one object a record"
            )
        return Row(
            **{
                each.name: self._value(found.get(each.name), number)
                for number, each in enumerate(self.columns)
            }
        )

    def _value(self, value: object, number: int) -> object:
        column = self.columns[number]
        if value is None:
            if column.type.nullable:
                return None
            what = f"a record has no {column.name!r}, which is declared NOT NULL"
            raise refusal(ValueError, what, where="", hint="declare the column without NOT NULL")
        try:
            return _read(column.type, value)
        except (TypeError, ValueError, ArithmeticError):
            what = f"the field {column.name!r} of a record is no {column.type.or_null()}"
            raise refusal(
                ValueError, what, where="", hint="declare the column with the type that it has"
            ) from None


class RowsOfPairs(PTransform[Any, Any]):
    """The values of pairs, which are rows; a record without a value deletes its key, and is no row.

    Args:
        columns: The columns of the rows.
    """

    def __init__(self, columns: Columns) -> None:
        super().__init__()
        self._columns = columns

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        rows: PCollection[Any] = pcoll | "Rows" >> FlatMap(_value_of).with_output_types(
            row_hint(self._columns)
        )
        return rows


def _value_of(pair: tuple[object, Row | None]) -> Iterable[Row]:
    return () if pair[1] is None else (pair[1],)


class PairsOfRows(PTransform[Any, Any]):
    """Rows, or their changes, as pairs of a key and a value in JSON.

    Args:
        key: The columns of the key; without any, pairs have no key.
    """

    def __init__(self, key: tuple[str, ...]) -> None:
        super().__init__()
        self._key = key

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        make = Map(UpsertsAsPairs(self._key) if self._key else _pair_of_row)
        pairs: PCollection[Any] = pcoll | "Pairs" >> make.with_output_types(
            KV[Optional[bytes], Optional[bytes]]
        )
        return pairs


@dataclass(frozen=True)
class UpsertsAsPairs:
    """A change of a row as a pair; without a value, it deletes the row.

    >>> UpsertsAsPairs(("team",))(Upsert("blue", Row(points=3)))
    (b'{"team": "blue"}', b'{"team": "blue", "points": 3}')
    >>> UpsertsAsPairs(("team",))(Upsert("blue", None, is_deleted=True))
    (b'{"team": "blue"}', None)
    """

    names: tuple[str, ...]

    def __call__(self, upsert: Upsert) -> tuple[bytes, bytes | None]:
        """The pair of a change."""
        values = upsert.key if len(self.names) > 1 else (upsert.key,)
        key = dict(zip(self.names, values, strict=True))
        return _json(key), None if upsert.is_deleted else _json(key | upsert.value.as_dict())


def _pair_of_row(row: Row) -> tuple[None, bytes]:
    return None, _json(row.as_dict())


def _json(fields: Mapping[str, object]) -> bytes:
    return json.dumps(fields, default=_plain, ensure_ascii=False).encode()


def _plain(value: object) -> object:
    """A value that JSON has no type for, as text."""
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    if isinstance(value, Row):
        return value.as_dict()
    if isinstance(value, Decimal):
        return str(value)
    raise refusal(
        TypeError, f"JSON has no value for {type(value).__name__}", where="", hint="CAST it to STRING"
    )
