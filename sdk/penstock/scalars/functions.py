"""All scalar functions, by the names that a query may use: the records of `numbers`, `strings` and their like.

To add a function, write its record (`penstock.scalars.function.ScalarFunction`) in the module of its subject, and a
line with a call and its value in ``tests/sdk/sql/function_cases.txt``. If sqlglot has a class of its own for the
function, its line in `penstock.sql.language.dialect` or `penstock.sql.binding.expressions` turns that into a call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.checks.similar_names import find_nearest
from penstock.scalars import (
    array_sets,
    arrays,
    bits,
    casts,
    conditions,
    encodings,
    formatted,
    hashes,
    json_functions,
    lambdas,
    made_times,
    maps,
    months,
    number_forms,
    numbers,
    patterns,
    real_functions,
    rounding,
    sequences,
    strings,
    structs,
    text_parts,
    time_texts,
    time_units,
    time_zones,
    times,
    tries,
    urls,
)
from penstock.scalars.function import ScalarFunction
from penstock.scalars.refused_functions import REFUSED
from penstock.scalars.resolving import SqlTypeError
from penstock.scalars.tree import Scalar

IN_PYTHON = "write it in Python, with Catalog.create_function"
"""The hint for a function that penstock does not have."""
_WORDS = frozenset(
    ["AND", "BETWEEN", "CASE", "DIV", "ILIKE", "IN", "LIKE", "NEGATIVE", "NOT", "OR", "REGEXP", "RLIKE"]
)
"""Names in the grammar of expressions, which a user does not mean by the name of a function."""
_LIKENESS = 0.8
"""The minimum similarity of a suggested name to a wrong one: DATE_FORMAT, with two letters in five, is not DATE_ADD."""

RECORDS: Mapping[str, ScalarFunction] = {
    function.name: function
    for each in (
        *(numbers, bits, rounding, real_functions, tries, conditions, casts),
        *(strings, text_parts, patterns, encodings, formatted, hashes, urls),
        *(times, made_times, time_texts, time_units, time_zones, months, number_forms),
        *(arrays, array_sets, sequences, structs, maps, lambdas, json_functions),
    )
    for function in each.FUNCTIONS
}
"""The record of each function, by its canonical name."""

FUNCTIONS: Mapping[str, ScalarFunction] = {
    name: function
    for function in RECORDS.values()
    if function.resolve is not None
    for name in (function.name, *function.spellings)
}
"""The records by all names that a query may use."""


def call(name: str, arguments: Sequence[Scalar]) -> Scalar:
    """Returns a call of a function, with the casts that a query leaves out.

    Raises:
        SqlTypeError: The function does not exist, or the arguments do not fit.

    >>> from penstock.scalars.tree import Literal
    >>> from penstock.scalars.types import BIGINT, DOUBLE
    >>> print(call("+", [Literal(1, BIGINT.or_null(False)), Literal(0.5, DOUBLE.or_null(False))]))
    (1.0 + 0.5)
    """
    function = FUNCTIONS.get(name.upper())
    if function is None:
        raise make_unknown_function_error(name)
    return function(*arguments)


def make_unknown_function_error(name: str) -> SqlTypeError:
    """Returns the error of a call of a function that does not exist.

    >>> error = make_unknown_function_error("UPER")
    >>> error.what, error.hint
    ('unknown function UPER', 'did you mean UPPER?')
    """
    if refused := REFUSED.get(name.upper()):
        return SqlTypeError(refused[0].format(name.upper()), refused[1])
    names = [each for each in FUNCTIONS if each.isidentifier() and each not in _WORDS]
    near = find_nearest(name, names, _LIKENESS)
    return SqlTypeError(f"unknown function {name}", f"did you mean {near}?" if near else IN_PYTHON)
