"""The arguments of calls that are not values only: lambdas, values with names, and the text of a schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from penstock.scalars import types
from penstock.scalars.functions import FUNCTIONS
from penstock.scalars.lambdas import widened_start
from penstock.scalars.tree import Lambda, Literal, Scalar
from penstock.scalars.types import SqlType
from penstock.sql.binding.statement import Statement

_SCALARS = {"ARRAYS_ZIP": 0, "STRUCT": 1}
"""Functions whose arguments get names, and the number of the first argument that has no name."""
NameAndValue = tuple[str, Scalar]


def bind_arguments(
    statement: Statement,
    name: str,
    parts: list[Any],
    scalar: Callable[[Any], Scalar],
    with_parameters: Callable[[tuple[str, ...], tuple[SqlType, ...], Any], Lambda],
    star: Callable[[exp.Expression], list[NameAndValue]],
    schema: Callable[[exp.Expression], SqlType],
) -> list[Scalar]:
    """Returns the arguments of a call.

    Args:
        statement: The query.
        name: The name of the function.
        parts: The arguments in the tree.
        scalar: Binds a value.
        with_parameters: Binds the body of a lambda, by the names and the types of its parameters.
        star: Returns the columns that ``*`` stands for.
        schema: Returns the type that the text of a schema names.
    """
    if name in _SCALARS:
        return _named(statement, name, parts, scalar, star)
    found: list[Scalar] = []
    for part in parts:
        if isinstance(part, exp.Lambda):
            found.append(_lambda(statement, name, part, tuple(found), with_parameters))
            if FUNCTIONS[name].name == "AGGREGATE" and len(found) == 3:
                start = widened_start(found[1], found[2])
                if start is not None:
                    found = [found[0], start]
                    found.append(_lambda(statement, name, part, tuple(found), with_parameters))
        elif name == "FROM_JSON" and len(found) == 1 and isinstance(part, exp.Literal) and part.is_string:
            found.append(Literal(None, schema(part)))
        else:
            found.append(scalar(part))
    return found


def _lambda(
    statement: Statement,
    name: str,
    node: exp.Lambda,
    before: tuple[Scalar, ...],
    with_parameters: Callable[[tuple[str, ...], tuple[SqlType, ...], Any], Lambda],
) -> Lambda:
    record = FUNCTIONS[name]
    parameters = record.parameters
    if parameters is None:
        statement.refuse(node, f"{name} does not take a lambda", "pass a value")
    kinds = statement.typed(node, lambda: parameters(before))
    names = tuple(each.name for each in node.expressions)
    if not 1 <= len(names) <= len(kinds):
        what = f"a lambda of {name} has {len(kinds)} parameters at most, not {len(names)}"
        statement.refuse(
            node, what, "remove those that are not used" if names else "name the element: x -> …"
        )
    if len({each.lower() for each in names}) < len(names):
        statement.refuse(node, "two parameters of a lambda have one name", "give them different names")
    return with_parameters(names, kinds[: len(names)], node.this)


def _named(
    statement: Statement,
    name: str,
    parts: list[Any],
    scalar: Callable[[Any], Scalar],
    star: Callable[[exp.Expression], list[NameAndValue]],
) -> list[Scalar]:
    """The arguments as names and values in turn: an alias, or the name of a column or a field, else a number."""
    found: list[NameAndValue] = []
    for part in parts:
        if isinstance(part, exp.Star) or (isinstance(part, exp.Column) and isinstance(part.this, exp.Star)):
            found += star(part)
            continue
        number = len(found) + _SCALARS[name]
        own = _name_of(part)
        found.append((own or (f"col{number}" if name == "STRUCT" else str(number)), scalar(part.unalias())))
    text = types.STRING.or_null(False)
    return [each for key, value in found for each in (Literal(key, text), value)]


def _name_of(part: exp.Expression) -> str:
    if isinstance(part, exp.Paren):
        return _name_of(part.this)
    if isinstance(part, (exp.Alias, exp.PropertyEQ)):
        return str(part.alias)
    if isinstance(part, exp.Dot):
        return str(part.expression.name)
    if isinstance(part, exp.Bracket):
        [index, *_] = part.expressions
        return index.name if isinstance(index, exp.Literal) and index.is_string else ""
    return str(part.name) if isinstance(part, (exp.Column, exp.Identifier)) else ""
