"""The functions of structs: making them, their fields, and arrays of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from penstock.checks.similar_names import hint_at_name
from penstock.scalars.casting import Compute
from penstock.scalars.function import Arguments, PythonForms, ScalarFunction
from penstock.scalars.nested_resolving import element_of, is_any_value_nullable, key_of
from penstock.scalars.nested_values import make_row
from penstock.scalars.resolving import SqlTypeError, do_not_fit
from penstock.scalars.spark_forms import NotForSpark, quote_name, write_type
from penstock.scalars.tree import Call, Literal, Scalar
from penstock.scalars.types import STRING, SqlType, array_of, struct_of

# Structs


def _names_and_values(
    function: ScalarFunction, arguments: Arguments
) -> tuple[tuple[str, ...], tuple[Scalar, ...]]:
    names, values = arguments[::2], arguments[1::2]
    if not arguments or len(names) != len(values):
        raise do_not_fit(function, arguments, "names and values in turn")
    found = []
    for each in names:
        if not isinstance(each, Literal) or not isinstance(each.value, str):
            raise SqlTypeError(
                f"the name of a field is not a string: {each}", "write NAMED_STRUCT('team', team)"
            )
        found.append(each.value)
    lower = [each.lower() for each in found]
    for at, name in enumerate(lower):
        if name in lower[:at]:
            raise SqlTypeError(f"the struct has two fields {found[at]!r}", "rename one of them with AS")
    return tuple(found), values


def _struct_from(function: ScalarFunction, arguments: Arguments) -> Scalar:
    names, values = _names_and_values(function, arguments)
    kind = struct_of(zip(names, (each.type for each in values), strict=True), False)
    return function.of(arguments, kind)


def _making(result: SqlType, arguments: Sequence[SqlType]) -> Compute:
    names = tuple(name for name, _ in result.fields)
    return lambda *parts: make_row(names, parts[1::2])


def _struct_text(call: Call, operands: Sequence[str], overflow: str) -> str:
    for name, kind in call.type.fields:
        if kind.name == "INTERVAL":
            raise NotForSpark(f"the units of the interval {name!r} differ in Spark")
    return f"named_struct({', '.join(operands)})"


# Fields


def _field_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) != 2 or not isinstance(arguments[1], Literal):
        raise do_not_fit(function, arguments, "a STRUCT and the name of a field")
    held, name = arguments[0], str(arguments[1].value)
    kind = element_of(held.type) if held.type.name == "ARRAY" else held.type
    if held.type.name == "MAP" and key_of(held.type).name == "STRING":
        return Call("ITEM", (held, arguments[1]), element_of(held.type).or_null())
    if kind.name != "STRUCT":
        hint = "a field belongs to a STRUCT, or to an ARRAY of them"
        raise SqlTypeError(f"{held} is {held.type.or_null()}, which has no field {name!r}", hint)
    known = [each for each, _ in kind.fields if each.lower() == name.lower()]
    if not known:
        hint = hint_at_name(name, (each for each, _ in kind.fields))
        raise SqlTypeError(f"there is no field {name!r} in {held}", hint)
    found = dict(kind.fields)[known[0]]
    literal = Literal(known[0], STRING.or_null(False))
    if held.type.name == "ARRAY":
        element = found.or_null(found.nullable or kind.nullable)
        return _FIELDS.of((held, literal), array_of(element, held.type.nullable))
    return function.of((held, literal), found.or_null(found.nullable or held.type.nullable))


def _write_field(forms: PythonForms, call: Call) -> str:
    value, name = call.arguments
    assert isinstance(name, Literal)
    code = forms.value(value)
    if not code.nullable:
        return f"{code.text}.__dict__[{name.value!r}]"
    local, bound = forms.bound(code)
    return f"(None if {bound} is None else {local}.__dict__[{name.value!r}])"


def _write_fields(forms: PythonForms, call: Call) -> str:
    array, name = call.arguments
    assert isinstance(name, Literal)
    local, bound = forms.bound(forms.value(array))
    get = f"[None if each is None else each.__dict__[{name.value!r}] for each in {local}]"
    return f"(None if {bound} is None else {get})"


def _field_text(call: Call, operands: Sequence[str], overflow: str) -> str:
    name = call.arguments[1]
    assert isinstance(name, Literal)
    return f"{operands[0]}.{quote_name(name.value)}"


# Arrays of structs


def _zip_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    names, arrays = _names_and_values(function, arguments)
    if any(each.type.name != "ARRAY" for each in arrays):
        raise do_not_fit(function, arrays, "arrays")
    fields = [(name, element_of(each.type).or_null()) for name, each in zip(names, arrays, strict=True)]
    return function.of(arguments, array_of(struct_of(fields, False), is_any_value_nullable(arrays)))


def _zipping(result: SqlType, arguments: Sequence[SqlType]) -> Compute:
    names = tuple(name for name, _ in element_of(result).fields)

    def zipped(*parts: Any) -> list[Any] | None:
        arrays = parts[1::2]
        if any(each is None for each in arrays):
            return None
        return [make_row(names, values) for values in itertools.zip_longest(*arrays)]

    return zipped


def _zip_text(call: Call, operands: Sequence[str], overflow: str) -> str:
    return f"CAST(arrays_zip({', '.join(operands[1::2])}) AS {write_type(call.type)})"


_FIELDS = ScalarFunction(name="FIELDS", write=_write_fields, spark=_field_text, whole="first")
"""A field of each struct of an array."""

FUNCTIONS: tuple[ScalarFunction, ...] = (
    ScalarFunction(
        name="NAMED_STRUCT",
        resolve=_struct_from,
        spellings=("STRUCT",),
        python=_making,
        takes_null=True,
        spark=_struct_text,
    ),
    ScalarFunction(name="FIELD", resolve=_field_of, write=_write_field, spark=_field_text, whole="first"),
    _FIELDS,
    ScalarFunction(name="ARRAYS_ZIP", resolve=_zip_of, python=_zipping, takes_null=True, spark=_zip_text),
)
"""The records."""
