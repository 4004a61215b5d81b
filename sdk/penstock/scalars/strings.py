"""The functions of strings and bytes: their parts and padding."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from penstock.scalars.arrays import CONCATENATION, REVERSAL
from penstock.scalars.casting import Compute, can_cast
from penstock.scalars.function import Arguments, Code, Inline, ScalarFunction, choose_always, write_always
from penstock.scalars.resolving import (
    cast,
    coerce,
    common_type,
    do_not_fit,
    is_any_nullable,
    takes,
)
from penstock.scalars.spark_forms import LETTERS
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


# Python


def _inline_substring(call: Call, codes: Sequence[Code]) -> str | None:
    """The text of a part at places that the query names."""
    places = [code.text for code in codes[1:]]
    if len(places) != 2 or not all(place.isdecimal() for place in places) or places[0] == "0":
        return None
    start = int(places[0]) - 1
    return f"{{0}}[{start}:{start + int(places[1])}]"


def _inline_replace(call: Call, codes: Sequence[Code]) -> str | None:
    search = call.arguments[1]
    is_plain = len(codes) == 3 and isinstance(search, Literal) and search.value
    return "{0}.replace({1}, {2})" if is_plain else None


def _inline_trim(strip: str) -> Inline:
    return lambda call, codes: f"{{0}}.{strip}(' ')" if len(codes) == 1 else None


# Types


def _concat_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if not arguments:
        return Literal("", STRING.or_null(False))
    if any(each.type.name == "ARRAY" for each in arguments):
        found = common_type(arguments)
        if found is None or any(each.type.name != "ARRAY" for each in arguments):
            raise do_not_fit(function, arguments, "strings, or arrays of one type")
        nullable = is_any_nullable(arguments)
        return CONCATENATION.of(tuple(cast(each, found) for each in arguments), found.or_null(nullable))
    if all(each.type.name == "BINARY" for each in arguments):
        return function.of(arguments, BINARY.or_null(is_any_nullable(arguments)))
    if any(each.type.name == "NULL" for each in arguments):
        arguments = tuple(Literal(None, STRING) if each.type.name == "BINARY" else each for each in arguments)
    parts = tuple(_as_text(function, each, arguments) for each in arguments)
    return function.of(parts, STRING.or_null(is_any_nullable(parts)))


def _as_text(function: ScalarFunction, argument: Scalar, arguments: Arguments) -> Scalar:
    if argument.type.name == "ANY":
        return coerce(argument, "STRING")
    has_text = can_cast(argument.type, STRING) and not argument.type.is_nested
    if not has_text or argument.type.name in ("BINARY", "INTERVAL"):
        raise do_not_fit(function, arguments, "strings")
    return cast(argument, STRING)


def _concat_ws_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if not arguments:
        raise do_not_fit(function, arguments, "a separator and strings")
    strings = SqlType("ARRAY", element=STRING)
    parts = tuple(
        each
        if at and each.type.name == "ARRAY" and find_common_type((each.type, strings))
        else _as_text(function, each, arguments)
        for at, each in enumerate(arguments)
    )
    return function.of(parts, STRING.or_null(parts[0].type.nullable))


def _reverse_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) == 1 and arguments[0].type.name == "ARRAY":
        return REVERSAL.of(arguments, arguments[0].type)
    return takes("STRING -> STRING")(function, arguments)


def _instr_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    return LOCATE(*(arguments[1::-1] if len(arguments) == 2 else arguments * 9))


# Spark


def _trim_text(call: Call, operands: Sequence[str], overflow: str) -> str:
    if len(operands) == 1:
        return f"{call.name.lower()}({operands[0]})"
    side = {"TRIM": "BOTH", "LTRIM": "LEADING", "RTRIM": "TRAILING"}[call.name]
    return f"trim({side} {operands[1]} FROM {operands[0]})"


# Records


def _trimming(name: str, left: bool, right: bool, *spellings: str) -> ScalarFunction:
    return ScalarFunction(
        name=name,
        resolve=takes("STRING [STRING] -> STRING"),
        spellings=spellings,
        python=choose_always(_trim(left, right)),
        inline=_inline_trim("strip" if left and right else "lstrip" if left else "rstrip"),
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
        inline=write_always("{0}.upper()"),
        spark="upper({0})",
        not_in_spark=LETTERS,
    ),
    ScalarFunction(
        name="LOWER",
        resolve=takes("STRING -> STRING"),
        spellings=("LCASE",),
        python=choose_always(lambda text: text.lower()),
        inline=write_always("{0}.lower()"),
        spark="lower({0})",
        not_in_spark=LETTERS,
    ),
    ScalarFunction(
        name="LENGTH",
        resolve=takes("STRING -> BIGINT", "BINARY -> BIGINT"),
        spellings=("CHAR_LENGTH", "CHARACTER_LENGTH", "LEN"),
        python=choose_always(len),
        inline=write_always("len({0})"),
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
        inline=_inline_substring,
        spark="substring({all})",
    ),
    ScalarFunction(
        name="CONCAT",
        resolve=_concat_of,
        spellings=("||",),
        python=choose_always(
            lambda first, *others: functools.reduce(lambda left, right: left + right, others, first)
        ),
        inline=lambda call, codes: f"({' + '.join(f'{{{place}}}' for place in range(len(codes)))})",
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
        inline=_inline_replace,
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
        resolve=_reverse_of,
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
    ScalarFunction(
        name="STARTSWITH",
        resolve=takes("STRING STRING -> BOOLEAN"),
        python=choose_always(lambda text, part: text.startswith(part)),
        inline=write_always("{0}.startswith({1})"),
        spark="startswith({all})",
    ),
    ScalarFunction(
        name="ENDSWITH",
        resolve=takes("STRING STRING -> BOOLEAN"),
        python=choose_always(lambda text, part: text.endswith(part)),
        inline=write_always("{0}.endswith({1})"),
        spark="endswith({all})",
    ),
    ScalarFunction(
        name="CONTAINS",
        resolve=takes("STRING STRING -> BOOLEAN"),
        python=choose_always(lambda text, part: part in text),
        inline=write_always("({1} in {0})"),
        spark="contains({all})",
    ),
)
"""The records."""
