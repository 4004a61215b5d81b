"""The functions of JSON in strings."""

from __future__ import annotations

import base64
import binascii
import functools
from collections.abc import Callable, Sequence
from typing import Any

from penstock.scalars import json_texts
from penstock.scalars.casting import Compute, cast_function
from penstock.scalars.function import Arguments, ScalarFunction, choose_always
from penstock.scalars.json_texts import BROKEN, Members
from penstock.scalars.nested_resolving import element_of, key_of
from penstock.scalars.nested_values import make_row
from penstock.scalars.resolving import SqlTypeError, coerce, cost_of, do_not_fit, takes
from penstock.scalars.tree import Literal, Scalar
from penstock.scalars.types import STRING, SqlType, array_of
from penstock.scalars.widths import fits_width, single

_LENIENT = "Spark also reads some strings that are not JSON, such as those with single quotes"
_NOT_FINITE = {
    "NaN": "NaN",
    "Infinity": "Infinity",
    "+Infinity": "Infinity",
    "-Infinity": "-Infinity",
    "INF": "Infinity",
    "+INF": "Infinity",
    "-INF": "-Infinity",
}


# Values


def _array_length(text: str) -> int | None:
    found = json_texts.parse(text)
    return len(found) if isinstance(found, list) else None


def _object_keys(text: str) -> list[str] | None:
    found = json_texts.parse(text)
    return [name for name, _ in found] if isinstance(found, Members) else None


class _Unfit(Exception):
    """A value of JSON does not fit its type."""


Reader = Callable[[Any], Any]
"""Makes of a parsed value that is not null a value of a type; raises `_Unfit` if it does not fit."""


def _reader_of(kind: SqlType) -> Reader:
    """Returns what reads values of a type."""
    if kind.name == "STRUCT":
        return _struct_reader(kind)
    if kind.name == "ARRAY":
        return functools.partial(_read_array, _reader_of(element_of(kind)))
    if kind.name == "MAP":
        return functools.partial(_read_map, _reader_of(element_of(kind)))
    return functools.partial(_READERS[kind.name], kind)


def _struct_reader(kind: SqlType) -> Reader:
    names = tuple(name for name, _ in kind.fields)
    readers = {name: _reader_of(each) for name, each in kind.fields}

    def read(value: object) -> object:
        if not isinstance(value, Members):
            raise _Unfit
        found: dict[str, Any] = dict.fromkeys(names)
        for name, each in value:
            reader = readers.get(name)
            if reader is not None:
                found[name] = _read_or_none(reader, each)
        return make_row(names, found.values())

    return read


def _read_or_none(reader: Reader, value: object) -> object:
    try:
        return None if value is None else reader(value)
    except _Unfit:
        return None


def _read_array(reader: Reader, value: object) -> list[Any]:
    if not isinstance(value, list):
        raise _Unfit
    return [None if each is None else reader(each) for each in value]


def _read_map(reader: Reader, value: object) -> dict[str, Any]:
    if not isinstance(value, Members):
        raise _Unfit
    return {name: None if each is None else reader(each) for name, each in value}


def _read_text(kind: SqlType, value: object) -> str:
    return value if isinstance(value, str) else json_texts.written(value)


def _read_truth(kind: SqlType, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise _Unfit


def _read_whole(kind: SqlType, value: object) -> int:
    if type(value) is int and fits_width(value, kind.bits):
        return value
    raise _Unfit


def _read_float(kind: SqlType, value: object) -> float:
    found = _float(value)
    return single(found) if kind.bits == 32 else found


def _float(value: object) -> float:
    if type(value) in (int, float):
        try:
            return float(value)  # type: ignore[arg-type]
        except OverflowError:
            return float("inf" if value > 0 else "-inf")  # type: ignore[operator]
    if isinstance(value, str) and value in _NOT_FINITE:
        return float(_NOT_FINITE[value])
    raise _Unfit


def _read_decimal(kind: SqlType, value: object) -> object:
    if type(value) in (int, float, str):
        text = value if isinstance(value, str) else str(value)
        return _cast(kind, STRING, text)
    raise _Unfit


def _cast(kind: SqlType, source: SqlType, value: object) -> object:
    try:
        return cast_function(source, kind)(value)
    except ArithmeticError:
        raise _Unfit from None


def _read_time(kind: SqlType, value: object) -> object:
    if isinstance(value, str):
        return _cast(kind, STRING, value)
    if type(value) is int and kind.name == "TIMESTAMP":
        return _cast(kind, SqlType("BIGINT"), value)
    raise _Unfit


def _read_bytes(kind: SqlType, value: object) -> bytes:
    if not isinstance(value, str):
        raise _Unfit
    try:
        return base64.b64decode(value, validate=True)
    except (ValueError, binascii.Error):
        raise _Unfit from None


_READERS: dict[str, Callable[[SqlType, Any], Any]] = {
    "STRING": _read_text,
    "BOOLEAN": _read_truth,
    "BIGINT": _read_whole,
    "DOUBLE": _read_float,
    "DECIMAL": _read_decimal,
    "DATE": _read_time,
    "TIMESTAMP": _read_time,
    "TIMESTAMP_NTZ": _read_time,
    "BINARY": _read_bytes,
}


def _reading(result: SqlType, arguments: Sequence[SqlType]) -> Compute:
    """Returns the function that reads a string as a value of a type.

    A struct of which nothing fits has NULL in each field.
    """
    nothing = make_row((name for name, _ in result.fields), (None for _ in result.fields))
    reader = _reader_of(result)
    is_struct = result.name == "STRUCT"
    wraps = result.name == "ARRAY" and element_of(result).name == "STRUCT"

    def read(text: str | None, _schema: object) -> object:
        if text is None or not text.strip():
            return None
        found = json_texts.parse(text, strict=True)
        if wraps and isinstance(found, Members):
            found = [found]
        if found is BROKEN or found is None:
            return nothing if is_struct else None
        value = _read_or_none(reader, found)
        return nothing if is_struct and value is None else value

    return read


# Types


def _from_json_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) != 2 or cost_of(arguments[0], "STRING") is None:
        raise do_not_fit(
            function, arguments, "a string and the string of a schema; options are not supported"
        )
    text, schema = arguments
    if not isinstance(schema, Literal) or not schema.type.is_nested:
        raise SqlTypeError(
            "the schema of FROM_JSON is not a string literal", "write 'team STRING, points BIGINT'"
        )
    _check_readable(schema.type)
    return function.of((coerce(text, "STRING"), schema), schema.type.or_null())


def _check_readable(kind: SqlType) -> None:
    if kind.name == "MAP" and key_of(kind).name != "STRING":
        raise SqlTypeError(f"keys of JSON are strings, not {key_of(kind).or_null()}", "write MAP<STRING, …>")
    if not kind.is_nested and kind.name not in _READERS:
        raise SqlTypeError(f"JSON has no values of type {kind.or_null()}", "read them as STRING")
    for each in kind.parts:
        _check_readable(each)


def _to_json_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) != 1 or not arguments[0].type.is_nested:
        raise do_not_fit(function, arguments, "a STRUCT, a MAP or an ARRAY; options are not supported")
    _check_writable(arguments[0].type)
    return function.of(arguments, STRING.or_null(arguments[0].type.nullable))


def _check_writable(kind: SqlType) -> None:
    if kind.name == "MAP" and key_of(kind).name not in ("STRING", "BIGINT", "BOOLEAN", "NULL"):
        what = f"keys of type {key_of(kind).or_null()} cannot be written as JSON"
        raise SqlTypeError(what, "convert them to strings with TRANSFORM_KEYS")
    if kind.name in ("INTERVAL", "ANY", "MONTHS"):
        raise SqlTypeError(f"JSON has no values of type {kind.name}", "select other fields, or CAST them")
    for each in kind.parts:
        _check_writable(each)


def _keys_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    found = takes("STRING -> STRING")(function, arguments)
    return function.of(found.arguments, array_of(STRING.or_null(False)))  # type: ignore[union-attr]


# Records

FUNCTIONS = (
    ScalarFunction(
        name="GET_JSON_OBJECT",
        resolve=takes("STRING STRING -> STRING?"),
        python=choose_always(json_texts.at_path),
        spark="get_json_object({0}, {1})",
        not_in_spark=_LENIENT,
    ),
    ScalarFunction(
        name="FROM_JSON", resolve=_from_json_of, python=_reading, takes_null=True, not_in_spark=_LENIENT
    ),
    ScalarFunction(
        name="TO_JSON",
        resolve=_to_json_of,
        python=choose_always(json_texts.to_json),
        spark="to_json({0})",
        not_in_spark="versions of Java write floats with other digits",
    ),
    ScalarFunction(
        name="JSON_ARRAY_LENGTH",
        resolve=takes("STRING -> BIGINT?"),
        python=choose_always(_array_length),
        spark="json_array_length({0})",
        not_in_spark=_LENIENT,
        whole="INT",
    ),
    ScalarFunction(
        name="JSON_OBJECT_KEYS",
        resolve=_keys_of,
        python=choose_always(_object_keys),
        spark="json_object_keys({0})",
        not_in_spark=_LENIENT,
    ),
)
"""The records."""
