"""The functions of strings and bytes: their parts, patterns, padding and digests."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from typing import Any

from penstock.scalars import regexes
from penstock.scalars.casting import Compute, can_cast, refuse
from penstock.scalars.function import Arguments, Resolve, ScalarFunction, choose_always
from penstock.scalars.resolving import (
    SqlTypeError,
    cast,
    coerce,
    do_not_fit,
    is_any_nullable,
    readable,
    takes,
)
from penstock.scalars.spark_forms import LETTERS, NotForSpark, write_literal
from penstock.scalars.tree import Call, Literal, Scalar
from penstock.scalars.types import BINARY, STRING, SqlType, find_common_type

_INT_MAX = (1 << 31) - 1

# Parts


def _trim(left: bool, right: bool) -> Compute:
    def compute(text: str, characters: str = " ") -> str:
        if not characters:
            return text
        text = text.lstrip(characters) if left else text
        return text.rstrip(characters) if right else text

    return compute


def _substring(text: str, position: int, length: int = _INT_MAX) -> object:
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    return text[max(start, 0) : max(start + length, 0)]


def _concat_ws(separator: str, *parts: Any) -> str | None:
    if separator is None:
        return None
    found: list[str] = []
    for text in parts:
        if isinstance(text, (list, tuple)):
            found += [part for part in text if part is not None]
        elif text is not None:
            found.append(text)
    return separator.join(found)


def _replace(text: str, search: str, replacement: str = "") -> str:
    return text.replace(search, replacement) if search else text


def _padding(text: str, length: int, pad: str) -> str:
    wanted = length - len(text)
    return (pad * (wanted // len(pad) + 1))[:wanted] if pad and wanted > 0 else ""


def _lpad(text: str, length: int, pad: str = " ") -> str:
    return _padding(text, length, pad) + text[: max(length, 0)]


def _rpad(text: str, length: int, pad: str = " ") -> str:
    return text[: max(length, 0)] + _padding(text, length, pad)


def _locate(part: str | None, text: str | None, position: int | None = 1) -> int | None:
    # As in Spark, the result for the position NULL is 0.
    if position is None or (part is not None and text is not None and position < 1):
        return 0
    if part is None or text is None:
        return None
    # Spark finds the empty text at the start, wherever it looks from.
    return text.find(part, position - 1) + 1 if part else 1


# Patterns


def _like(text: str, pattern: str, escape: str = "\\") -> bool:
    return regexes.compile_like(pattern, escape).fullmatch(text) is not None


def _ilike(text: str, pattern: str, escape: str = "\\") -> bool:
    return _like(text.lower(), pattern.lower(), escape)


def _rlike(text: str, pattern: str) -> bool:
    return regexes.compile_java(pattern).search(text) is not None


def _regexp_extract(text: str, pattern: str, group: int = 1) -> str:
    expression = regexes.compile_java(pattern)
    found = expression.search(text)
    if found and not 0 <= group <= expression.groups:
        refuse(
            f"the regular expression of REGEXP_EXTRACT has {expression.groups} groups, and another is asked for",
            "count the groups from 1; 0 means the whole match",
        )
    return (found.group(group) or "") if found else ""


def _regexp_replace(text: str, pattern: str, replacement: str) -> str:
    expression = regexes.compile_java(pattern)
    return expression.sub(regexes.replacement(replacement, expression.groups), text)


# Digests


def _digest(name: str) -> Compute:
    def compute(value: str | bytes) -> str:
        data = value.encode() if isinstance(value, str) else value
        return hashlib.new(name, data, usedforsecurity=False).hexdigest()

    return compute


def _sha2(value: str | bytes, bits: int) -> str | None:
    name = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}.get(bits)
    return _digest(name)(value) if name else None


# Types


def _concat_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if not arguments:
        return Literal("", STRING.or_null(False))
    if all(each.type.name == "BINARY" for each in arguments):
        return function.of(arguments, BINARY.or_null(is_any_nullable(arguments)))
    if any(each.type.name == "NULL" for each in arguments):
        arguments = tuple(Literal(None, STRING) if each.type.name == "BINARY" else each for each in arguments)
    parts = tuple(_as_text(function, each, arguments) for each in arguments)
    return function.of(parts, STRING.or_null(is_any_nullable(parts)))


def _as_text(function: ScalarFunction, argument: Scalar, arguments: Arguments) -> Scalar:
    if argument.type.name == "ANY":
        return coerce(argument, "STRING")
    if not can_cast(argument.type, STRING) or argument.type.name in ("BINARY", "INTERVAL"):
        raise do_not_fit(function, arguments, "strings")
    return cast(argument, STRING)


def _concat_ws_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if not arguments:
        raise do_not_fit(function, arguments, "a separator and strings")
    strings = SqlType("ARRAY", element=STRING)
    parts = tuple(
        each
        if each.type.name == "ARRAY" and each.type.element and find_common_type((each.type, strings))
        else _as_text(function, each, arguments)
        for each in arguments
    )
    return function.of(parts, STRING.or_null(parts[0].type.nullable))


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


def _split_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    found = _with_regex("STRING STRING [INT] -> STRING")(function, arguments)
    assert isinstance(found, Call)
    return function.of(found.arguments, SqlType("ARRAY", found.type.nullable, STRING.or_null(False)))


def _instr_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    return LOCATE(*(arguments[1::-1] if len(arguments) == 2 else arguments * 9))


# Spark


def _like_text(call: Call, operands: Sequence[str], overflow: str) -> str:
    escape = operands[2] if len(operands) > 2 else write_literal("\\", STRING)
    return f"({operands[0]} LIKE {operands[1]} ESCAPE {escape})"


def _trim_text(call: Call, operands: Sequence[str], overflow: str) -> str:
    if len(operands) == 1:
        return f"{call.name.lower()}({operands[0]})"
    side = {"TRIM": "BOTH", "LTRIM": "LEADING", "RTRIM": "TRAILING"}[call.name]
    return f"trim({side} {operands[1]} FROM {operands[0]})"


def _regex_text(call: Call, operands: Sequence[str], overflow: str) -> str:
    for part in call.arguments[1:]:
        if part.type.name == "STRING" and not isinstance(part, Literal):
            raise NotForSpark("a regular expression of the data may mean something else in Java")
    pattern = call.arguments[1]
    assert isinstance(pattern, Literal)
    if isinstance(pattern.value, str) and not regexes.translate_java(pattern.value)[1]:
        raise NotForSpark(f"Java may read the regular expression {pattern} differently")
    if call.name in ("REGEXP_REPLACE", "SPLIT") and pattern.value and _may_match_nothing(pattern.value):
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


def _trimming(name: str, left: bool, right: bool, *spellings: str) -> ScalarFunction:
    return ScalarFunction(
        name=name,
        resolve=takes("STRING [STRING] -> STRING"),
        spellings=spellings,
        python=choose_always(_trim(left, right)),
        spark=_trim_text,
    )


LOCATE = ScalarFunction(
    name="LOCATE",
    resolve=takes("STRING STRING [INT] -> BIGINT"),
    spellings=("POSITION",),
    python=choose_always(_locate),
    takes_null=True,
    spark="locate({all})",
    whole="INT",
)

FUNCTIONS = (
    ScalarFunction(
        name="UPPER",
        resolve=takes("STRING -> STRING"),
        spellings=("UCASE",),
        python=choose_always(lambda text: text.upper()),
        spark="upper({0})",
        not_in_spark=LETTERS,
    ),
    ScalarFunction(
        name="LOWER",
        resolve=takes("STRING -> STRING"),
        spellings=("LCASE",),
        python=choose_always(lambda text: text.lower()),
        spark="lower({0})",
        not_in_spark=LETTERS,
    ),
    ScalarFunction(
        name="LENGTH",
        resolve=takes("STRING -> BIGINT", "BINARY -> BIGINT"),
        spellings=("CHAR_LENGTH", "CHARACTER_LENGTH", "LEN"),
        python=choose_always(len),
        spark="length({0})",
        whole="INT",
    ),
    _trimming("TRIM", True, True, "BTRIM"),
    _trimming("LTRIM", True, False),
    _trimming("RTRIM", False, True),
    ScalarFunction(
        name="SUBSTRING",
        resolve=takes("STRING INT [INT] -> STRING", "BINARY INT [INT] -> BINARY"),
        spellings=("SUBSTR",),
        python=choose_always(_substring),
        spark="substring({all})",
    ),
    ScalarFunction(
        name="CONCAT",
        resolve=_concat_of,
        spellings=("||",),
        python=choose_always(
            lambda first, *others: functools.reduce(lambda left, right: left + right, others, first)
        ),
        spark="concat({all})",
    ),
    ScalarFunction(
        name="CONCAT_WS",
        resolve=_concat_ws_of,
        python=choose_always(_concat_ws),
        takes_null=True,
        spark="concat_ws({all})",
    ),
    ScalarFunction(
        name="REPLACE",
        resolve=takes("STRING STRING [STRING] -> STRING"),
        python=choose_always(_replace),
        spark="replace({all})",
    ),
    ScalarFunction(
        name="LEFT",
        resolve=takes("STRING INT -> STRING"),
        python=choose_always(lambda text, length: text[: max(length, 0)]),
        spark="left({all})",
    ),
    ScalarFunction(
        name="RIGHT",
        resolve=takes("STRING INT -> STRING"),
        python=choose_always(lambda text, length: text[-length:] if length > 0 else ""),
        spark="right({all})",
    ),
    ScalarFunction(
        name="LPAD",
        resolve=takes("STRING INT [STRING] -> STRING"),
        python=choose_always(_lpad),
        spark="lpad({all})",
    ),
    ScalarFunction(
        name="RPAD",
        resolve=takes("STRING INT [STRING] -> STRING"),
        python=choose_always(_rpad),
        spark="rpad({all})",
    ),
    ScalarFunction(
        name="REPEAT",
        resolve=takes("STRING INT -> STRING"),
        python=choose_always(lambda text, times: text * times),
        spark="repeat({all})",
    ),
    ScalarFunction(
        name="REVERSE",
        resolve=takes("STRING -> STRING"),
        python=choose_always(lambda text: text[::-1]),
        spark="reverse({0})",
    ),
    ScalarFunction(
        name="ASCII",
        resolve=takes("STRING -> BIGINT"),
        python=choose_always(lambda text: ord(text[0]) if text else 0),
        spark="ascii({0})",
        whole="INT",
    ),
    LOCATE,
    ScalarFunction(name="INSTR", resolve=_instr_of),
    ScalarFunction(name="SPLIT", resolve=_split_of, python=choose_always(regexes.split), spark=_regex_text),
    ScalarFunction(
        name="STARTSWITH",
        resolve=takes("STRING STRING -> BOOLEAN"),
        python=choose_always(lambda text, part: text.startswith(part)),
        spark="startswith({all})",
    ),
    ScalarFunction(
        name="ENDSWITH",
        resolve=takes("STRING STRING -> BOOLEAN"),
        python=choose_always(lambda text, part: text.endswith(part)),
        spark="endswith({all})",
    ),
    ScalarFunction(
        name="CONTAINS",
        resolve=takes("STRING STRING -> BOOLEAN"),
        python=choose_always(lambda text, part: part in text),
        spark="contains({all})",
    ),
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
        resolve=_with_regex("STRING STRING STRING -> STRING"),
        python=choose_always(_regexp_replace),
        spark=_regex_text,
    ),
    ScalarFunction(
        name="MD5",
        resolve=takes("STRING -> STRING", "BINARY -> STRING"),
        python=choose_always(_digest("md5")),
        spark="md5({0})",
    ),
    ScalarFunction(
        name="SHA2",
        resolve=takes("STRING INT -> STRING?", "BINARY INT -> STRING?"),
        python=choose_always(_sha2),
        spark="sha2({all})",
    ),
)
"""The records."""
