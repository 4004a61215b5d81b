"""Functions of named fields as one Python function each, which a loop over many elements calls without more calls.

The expressions that they are made of are written into the text of the function; other parts are called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.elements.row import Row
from penstock.scalars.compiled_elements import compile_element_function
from penstock.scalars.expressions import Expression
from penstock.scalars.field_functions import KeyAndValues, KeyedBy, KeyOf, RowOf, named_tuple
from penstock.scalars.python_writer import PythonWriter
from penstock.scalars.row_functions import Forwarding


def compile_field_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function of an element with the same results, and with fewer calls if there is such a one.

    >>> from penstock.scalars.expressions import field
    >>> fast = compile_field_function(field("speed") * 2 > 100)
    >>> fast({"speed": 60}), fast({"speed": None}), fast(Row(speed=1))
    (True, None, False)
    """
    if isinstance(function, Forwarding):
        return function.function
    parts = list(_parts_of(function))
    if type(function) not in _WRITTEN:
        return function
    scalars = [each.scalar for each in parts if isinstance(each, Expression)]
    names = {"make_row": _make_row, "new_tuple": tuple.__new__}
    return compile_element_function(scalars, lambda writer: _WRITTEN[type(function)](writer, function), names)


def _make_row(fields: dict[str, Any]) -> Row:
    row = object.__new__(Row)
    row.__dict__ = fields
    return row


def _parts_of(function: object) -> Iterable[Any]:
    match function:
        case RowOf(fields) | KeyOf(fields):
            return [each for _, each in fields]
        case KeyedBy(key):
            return _parts_of(key)
        case KeyAndValues(key, values):
            return [*_parts_of(key), *values]
    return [function]


def _part(writer: PythonWriter, part: object) -> str:
    if isinstance(part, Expression):
        return writer.value(part.scalar).text
    return f"{writer.name_of(part)}(element)"


def _row(writer: PythonWriter, function: RowOf) -> str:
    parts = ", ".join(f"{name!r}: {_part(writer, each)}" for name, each in function.fields)
    return f"make_row({{{parts}}})"


def _key(writer: PythonWriter, key: object) -> str:
    if type(key) is not KeyOf:
        return _part(writer, key)
    kind = writer.name_of(named_tuple("Key", tuple(name for name, _ in key.fields)))
    return f"new_tuple({kind}, ({''.join(f'{_part(writer, each)}, ' for _, each in key.fields)}))"


def _keyed(writer: PythonWriter, function: KeyedBy) -> str:
    return f"({_key(writer, function.key)}, element)"


def _key_and_values(writer: PythonWriter, function: KeyAndValues) -> str:
    values = ", ".join(_part(writer, each) for each in function.values)
    return f"({_key(writer, function.key)}, [{values}])"


_WRITTEN: dict[type, Callable[[PythonWriter, Any], str]] = {
    RowOf: _row,
    KeyOf: _key,
    KeyedBy: _keyed,
    KeyAndValues: _key_and_values,
}
