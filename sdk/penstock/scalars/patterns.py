"""The functions that match patterns: LIKE, and regular expressions of Java."""

from __future__ import annotations

import re
from collections.abc import Sequence

from penstock.scalars import regexes
from penstock.scalars.casting import refuse
from penstock.scalars.function import Arguments, Resolve, ScalarFunction, choose_always
from penstock.scalars.resolving import SqlTypeError, readable, takes
from penstock.scalars.spark_forms import LETTERS, NotForSpark, write_literal
from penstock.scalars.tree import Call, Literal, Scalar
from penstock.scalars.types import STRING, SqlType

# Values


def _like(text: str, pattern: str, escape: str = "\\") -> bool:
    return regexes.compile_like(pattern, escape).fullmatch(text) is not None


def _ilike(text: str, pattern: str, escape: str = "\\") -> bool:
    return _like(text.lower(), pattern.lower(), escape)


def _rlike(text: str, pattern: str) -> bool:
    return regexes.compile_java(pattern).search(text) is not None


def _check_group(expression: re.Pattern[str], group: int) -> None:
    if not 0 <= group <= expression.groups:
        refuse(
            f"a regular expression has {expression.groups} groups, and another one is asked for",
            "count the groups from 1; 0 means the whole match",
        )


def _regexp_extract(text: str, pattern: str, group: int = 1) -> str:
    expression = regexes.compile_java(pattern)
    found = expression.search(text)
    if found is None:
        return ""
    _check_group(expression, group)
    return found.group(group) or ""


def _regexp_extract_all(text: str, pattern: str, group: int = 1) -> list[str]:
    expression = regexes.compile_java(pattern)
    parts = []
    for found in expression.finditer(text):
        _check_group(expression, group)
        parts.append(found.group(group) or "")
    return parts


def _regexp_replace(text: str, pattern: str, replacement: str, position: int = 1) -> str:
    expression = regexes.compile_java(pattern)
    start = position - 1
    if start and start >= len(text):
        return text
    return text[:start] + expression.sub(regexes.replacement(replacement, expression.groups), text[start:])


def _regexp_substr(text: str, pattern: str) -> str | None:
    found = regexes.compile_java(pattern).search(text)
    return (found.group() or None) if found else None


def _regexp_instr(text: str, pattern: str, group: int = 0) -> int:
    """Returns the place of a match; the number of a group changes nothing, as in Spark."""
    found = regexes.compile_java(pattern).search(text)
    return found.start() + 1 if found else 0


# Types


def _like_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    found = takes("STRING STRING [STRING] -> BOOLEAN")(function, arguments)
    assert isinstance(found, Call)
    literals = [part.value if isinstance(part, Literal) else None for part in found.arguments[1:]]
    escape = literals[1] if len(literals) > 1 else "\\"
    if not isinstance(escape, str) or len(escape) != 1:
        raise SqlTypeError(
            f"the escape character of {function.name} is not one character", "write ESCAPE '#'"
        )
    if isinstance(literals[0], str):
        readable(lambda: regexes.compile_like(str(literals[0]), escape))
    return found


def _with_regex(signature: str) -> Resolve:
    """Takes a signature whose second argument is a regular expression, which is read if the query names it."""
    resolve_types = takes(signature)

    def resolve(function: ScalarFunction, arguments: Arguments) -> Scalar:
        found = resolve_types(function, arguments)
        pattern = arguments[1]
        if isinstance(pattern, Literal) and isinstance(pattern.value, str):
            text = pattern.value
            readable(lambda: regexes.compile_java(text))
        return found

    return resolve


def _replace_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    found = _with_regex("STRING STRING STRING [INT] -> STRING")(function, arguments)
    if len(arguments) > 3 and not (isinstance(arguments[3], Literal) and (arguments[3].value or 0) > 0):
        raise SqlTypeError("the position of REGEXP_REPLACE is not a number above 0", "write 1 for the start")
    return found


def _split_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    found = _with_regex("STRING STRING [INT] -> STRING")(function, arguments)
    assert isinstance(found, Call)
    return function.of(found.arguments, SqlType("ARRAY", found.type.nullable, STRING.or_null(False)))


def _extract_all_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    found = _with_regex("STRING STRING [INT] -> STRING")(function, arguments)
    assert isinstance(found, Call)
    return function.of(found.arguments, SqlType("ARRAY", found.type.nullable, STRING))


# Spark


def _like_text(call: Call, operands: Sequence[str], overflow: str) -> str:
    escape = operands[2] if len(operands) > 2 else write_literal("\\", STRING)
    return f"({operands[0]} LIKE {operands[1]} ESCAPE {escape})"


_OF_PLACES = (
    "REGEXP_REPLACE",
    "SPLIT",
    "REGEXP_EXTRACT_ALL",
    "REGEXP_COUNT",
    "REGEXP_INSTR",
    "REGEXP_SUBSTR",
)
"""The functions whose result depends on each place at which a pattern matches nothing."""


def _regex_text(call: Call, operands: Sequence[str], overflow: str) -> str:
    for part in call.arguments[1:]:
        if part.type.name == "STRING" and not isinstance(part, Literal):
            raise NotForSpark("a regular expression of the data may mean something else in Java")
    pattern = call.arguments[1]
    assert isinstance(pattern, Literal)
    if isinstance(pattern.value, str) and not regexes.translate_java(pattern.value)[1]:
        raise NotForSpark(f"Java may read the regular expression {pattern} differently")
    if call.name in _OF_PLACES and pattern.value and _may_match_nothing(pattern.value):
        raise NotForSpark(
            f"Java finds the regular expression {pattern} inside of characters that it stores as two"
        )
    if call.name == "RLIKE":
        return f"({operands[0]} RLIKE {operands[1]})"
    return f"{call.name.lower()}({', '.join(operands)})"


def _may_match_nothing(pattern: str) -> bool:
    """True if a regular expression may match the empty text somewhere, such as at the end of a line."""
    return "(?=" in pattern or "(?!" in pattern or regexes.compile_java(pattern).search("") is not None


# Records

FUNCTIONS = (
    ScalarFunction(name="SPLIT", resolve=_split_of, python=choose_always(regexes.split), spark=_regex_text),
    ScalarFunction(
        name="LIKE",
        resolve=_like_of,
        python=choose_always(_like),
        prepared=lambda pattern, escape="\\": regexes.compile_like(pattern, escape).fullmatch,
        spark=_like_text,
    ),
    ScalarFunction(name="ILIKE", resolve=_like_of, python=choose_always(_ilike), not_in_spark=LETTERS),
    ScalarFunction(
        name="RLIKE",
        resolve=_with_regex("STRING STRING -> BOOLEAN"),
        spellings=("REGEXP", "REGEXP_LIKE"),
        python=choose_always(_rlike),
        prepared=lambda pattern: regexes.compile_java(pattern).search,
        spark=_regex_text,
    ),
    ScalarFunction(
        name="REGEXP_EXTRACT",
        resolve=_with_regex("STRING STRING [INT] -> STRING"),
        python=choose_always(_regexp_extract),
        spark=_regex_text,
    ),
    ScalarFunction(
        name="REGEXP_REPLACE",
        resolve=_replace_of,
        python=choose_always(_regexp_replace),
        spark=_regex_text,
    ),
    ScalarFunction(
        name="REGEXP_EXTRACT_ALL",
        resolve=_extract_all_of,
        python=choose_always(_regexp_extract_all),
        spark=_regex_text,
    ),
    ScalarFunction(
        name="REGEXP_COUNT",
        resolve=_with_regex("STRING STRING -> BIGINT"),
        python=choose_always(lambda text, pattern: len(_regexp_extract_all(text, pattern, 0))),
        spark=_regex_text,
        whole="INT",
    ),
    ScalarFunction(
        name="REGEXP_INSTR",
        resolve=_with_regex("STRING STRING [INT] -> BIGINT"),
        python=choose_always(_regexp_instr),
        spark=_regex_text,
        whole="INT",
    ),
    ScalarFunction(
        name="REGEXP_SUBSTR",
        resolve=_with_regex("STRING STRING -> STRING?"),
        python=choose_always(_regexp_substr),
        spark=_regex_text,
    ),
)
"""The records."""
