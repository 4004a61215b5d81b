"""Turns Spark's types of columns into hints for the Python values of the columns."""

from __future__ import annotations

from pyspark.sql import types as T

from penstock.typehints import typehints
from penstock.typehints.column_types import PairsConstraint, RecordConstraint
from penstock.typehints.column_widths import options_of_widths
from penstock.typehints.row_type import RowTypeConstraint
from penstock.typehints.unions import column_of
from penstock_spark.columns.types import hint_in_spark

_BITS: dict[type[T.DataType], int] = {T.ByteType: 8, T.ShortType: 16, T.IntegerType: 32, T.FloatType: 32}
"""The widths of numbers that have fewer than 64 bits."""


def hint_of_schema(schema: T.StructType, records: str, is_file: bool = False) -> object:
    """The type of the elements for rows of a schema; `is_file` means that Spark made every column nullable.

    >>> hint_of_schema(T.StructType().add("team", "string", False).add("tags", T.ArrayType(T.LongType())), "row")
    Row(team=<class 'str'>, tags=Union[<class 'NoneType'>, List[Union[<class 'NoneType'>, <class 'int'>]]])
    """
    return _hint_of(schema, records, is_file)


def _hint_of(kind: T.DataType, records: str, is_file: bool) -> object:
    match kind:
        case T.StructType():
            fields = [
                (field.name, _nullable(_hint_of(field.dataType, records, is_file), is_file or field.nullable))
                for field in kind
            ]
            if records == "dict":
                return RecordConstraint(fields)
            widths = ((field.name, _BITS.get(type(field.dataType), 64)) for field in kind)
            return RowTypeConstraint.from_fields(fields, field_options=options_of_widths(widths))
        case T.ArrayType(elementType=item, containsNull=nulls):
            return typehints.List[_nullable(_hint_of(item, records, is_file), is_file or nulls)]
        case T.MapType(keyType=key, valueType=value, valueContainsNull=nulls):
            pair = (
                _hint_of(key, records, is_file),
                _nullable(_hint_of(value, records, is_file), is_file or nulls),
            )
            return PairsConstraint(typehints.Tuple[pair]) if records == "dict" else typehints.Dict[pair]
    return hint_in_spark(kind)


def _nullable(hint: object, may_be_null: bool) -> object:
    return column_of(hint) if may_be_null else hint
