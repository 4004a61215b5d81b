"""The functions that show numbers as text in a form: FORMAT_NUMBER, and FORMAT_STRING as Java's formatter."""

from __future__ import annotations

import decimal
import functools
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from penstock.scalars.bits import BITWISE_AND
from penstock.scalars.casting import refuse, text_of
from penstock.scalars.function import Arguments, ScalarFunction, choose_always
from penstock.scalars.resolving import (
    SqlTypeError,
    cast,
    do_not_fit,
    readable,
    takes,
)
from penstock.scalars.tree import Literal, Scalar
from penstock.scalars.types import BIGINT, STRING

Number: TypeAlias = int | float | Decimal

# FORMAT_NUMBER

_PATTERN = re.compile(r"(#*,)?(#*)(0*)(?:\.(0*)(#*))?")
_ANY_DIGITS = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_WHOLE_FLOATS = 2.0**53
"""A float that is not below this one has no fraction."""
_DIGITS_MAX = 340
"""The maximum number of digits after the point that Java shows."""


def _format_number(value: Number, form: int | str) -> str | None:
    if isinstance(form, str):
        return _shown(value, *_read_form(form))
    return None if form < 0 else _shown(value, form, form, 1, 3)


@functools.lru_cache(256)
def _read_form(form: str) -> tuple[int, int, int, int]:
    """Returns the least and most digits after the point, the least before it, and the size of groups."""
    if not form:
        return 0, 0, 1, 3
    found = _PATTERN.fullmatch(form.replace("#,###,###,", "#,") if form.count(",") > 1 else form)
    if found is None:
        refuse(
            f"the format '{form}' of FORMAT_NUMBER is not supported",
            "write the number of digits after the point, or a format such as '#,##0.00'",
        )
    groups, sharps, zeros, behind, optional = found.groups("")
    size = len(sharps) + len(zeros) if groups else 0
    return len(behind), len(behind) + len(optional), len(zeros), size


def _shown(value: Number, least: int, most: int, before: int, group: int) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "∞" if value > 0 else "-∞"
    is_negative = math.copysign(1, value) < 0 if isinstance(value, float) else value < 0
    # Java shows no more digits of a great float than it needs, and rounds a small one by all it has.
    exact = (
        Decimal(repr(value)) if isinstance(value, float) and abs(value) >= _WHOLE_FLOATS else Decimal(value)
    )
    rounded = abs(exact).quantize(
        Decimal(1).scaleb(-min(most, _DIGITS_MAX)), decimal.ROUND_HALF_EVEN, _ANY_DIGITS
    )
    whole, _, behind = f"{rounded:f}".partition(".")
    while len(behind) > least and behind.endswith("0"):
        behind = behind[:-1]
    whole = whole.lstrip("0").rjust(before, "0")
    if group:
        head = len(whole) % group
        parts = [whole[:head], *(whole[at : at + group] for at in range(head, len(whole), group))]
        whole = ",".join(part for part in parts if part)
    text = f"{whole}.{behind}" if behind else whole or "0"
    return f"-{text}" if is_negative else text


def _format_number_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) == 2 and arguments[1].type.name == "STRING":
        form = arguments[1]
        if not isinstance(form, Literal):
            raise SqlTypeError("the format of FORMAT_NUMBER is not a string literal", "write '#,##0.00'")
        text = str(form.value)
        readable(lambda: _read_form(text))
    forms = [
        f"{kind} {form} -> STRING?" for kind in ("BIGINT", "DECIMAL", "DOUBLE") for form in ("INT", "STRING")
    ]
    return takes(*forms)(function, arguments)


# FORMAT_STRING

_CONVERSION = re.compile(r"%(?:([0-9]+)\$)?([-#+ 0,(]*)([0-9]+)?(?:\.([0-9]+))?([a-zA-Z%])")
_TAKEN = {"d": int, "x": int, "o": int, "f": float, "e": float, "s": object, "c": int, "b": object}
_EVERY_BIT = (1 << 64) - 1


@dataclass(frozen=True)
class _Conversion:
    """A part of a format that shows a value: the place of the value, flags, width, digits, and the letter."""

    place: int
    flags: str
    width: int
    digits: int | None
    letter: str

    def show(self, value: object) -> str:
        """Returns a value, of which the letter says how it looks."""
        kind = self.letter.lower()
        if kind == "b":
            text = str(value is not None and value is not False).lower()
        elif value is None:
            text = "null"
        else:
            text = self._show(kind, value)
        if self.digits is not None and (kind in "sb" or value is None):
            text = text[: self.digits]
        if self.letter.isupper():
            text = text.upper()
        # Java counts letters above 65,535 twice.
        width = self.width - sum(letter > "\uffff" for letter in text)
        return text.ljust(width) if "-" in self.flags else text.rjust(width)

    def _show(self, kind: str, value: object) -> str:
        if kind == "s":
            return text_of(value)
        assert isinstance(value, (int, float, Decimal))
        if kind == "c":
            return chr(int(value))
        if isinstance(value, int) and kind in "xo":
            return self._filled("", f"{value & _EVERY_BIT:{kind}}")
        sign, digits = self._number(kind, value)
        if not digits[:1].isdigit():
            return f"{sign}{digits}"
        if "," in self.flags:
            whole, point, behind = digits.partition(".")
            digits = f"{int(whole):,}{point}{behind}"
        return self._filled(sign, digits)

    def _number(self, kind: str, value: Number) -> tuple[str, str]:
        is_negative = math.copysign(1, value) < 0 if isinstance(value, float) else value < 0
        sign = "-" if is_negative else "+" if "+" in self.flags else " " if " " in self.flags else ""
        size = abs(value)
        if isinstance(value, float) and not math.isfinite(value):
            return ("" if value != value else sign), "NaN" if value != value else "Infinity"
        digits = 6 if self.digits is None else self.digits
        if kind == "d":
            return sign, str(size)
        if kind == "f":
            unit = Decimal(1).scaleb(-digits)
            return sign, f"{Decimal(repr(size)).quantize(unit, decimal.ROUND_HALF_UP, _ANY_DIGITS):f}"
        return sign, _scientific(abs(float(value)), digits)

    def _filled(self, sign: str, digits: str) -> str:
        if "(" in self.flags and sign == "-":
            sign, digits = "(", f"{digits})"
        zeros = self.width - len(sign) - len(digits) if "0" in self.flags else 0
        return f"{sign}{'0' * zeros}{digits}"


def _scientific(size: float, digits: int) -> str:
    if not size:
        return f"{0:.{digits}e}"
    exact = Decimal(repr(size))
    exponent = exact.adjusted()
    rounded = exact.scaleb(-exponent).quantize(Decimal(1).scaleb(-digits), decimal.ROUND_HALF_UP, _ANY_DIGITS)
    if rounded >= 10:
        rounded, exponent = rounded / 10, exponent + 1
        rounded = rounded.quantize(Decimal(1).scaleb(-digits), decimal.ROUND_HALF_UP, _ANY_DIGITS)
    return f"{rounded:f}e{exponent:+03d}"


@functools.lru_cache(256)
def _read_format(form: str) -> tuple[str | _Conversion, ...]:
    parts: list[str | _Conversion] = []
    place = count = 0
    for found in _CONVERSION.finditer(form):
        if "%" in form[place : found.start()]:
            break
        parts.append(form[place : found.start()])
        place = found.end()
        number, flags, width, digits, letter = found.groups()
        if letter in "%n":
            parts.append("%" if letter == "%" else "\n")
            continue
        if letter.lower() not in _TAKEN or letter in "DFOC":
            _refuse_format(form, f"has %{letter}, which is not supported")
        count += number is None
        at = int(number) - 1 if number else count - 1
        parts.append(_Conversion(at, flags, int(width or 0), None if digits is None else int(digits), letter))
    if "%" in form[place:]:
        _refuse_format(form, "has a % without a format")
    return (*parts, form[place:])


def _refuse_format(form: str, what: str) -> None:
    refuse(f"the format '{form}' {what}", "use %s %d %x %o %f %e %b %c and %%, with flags, width and digits")


def _format_string(form: str | None, *values: object) -> str | None:
    if form is None:
        return None
    return "".join(
        part if isinstance(part, str) else part.show(values[part.place]) for part in _read_format(form)
    )


_SHOWN = {
    int: ("BIGINT", "NULL"),
    float: ("DOUBLE", "NULL"),
    object: ("STRING", "BIGINT", "DOUBLE", "DECIMAL", "BOOLEAN", "NULL"),
}
"""The types that a letter shows; Spark shows dates and times as numbers."""


def _format_string_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if not arguments or arguments[0].type.name not in ("STRING", "NULL", "ANY"):
        raise do_not_fit(function, arguments, "a format such as '%s: %d', and values")
    form, *values = arguments
    if not isinstance(form, Literal):
        raise SqlTypeError(
            f"the format of {function.name} is not a string literal", "write a format such as '%d'"
        )
    if form.value is not None:
        _check_format(str(form.value), values)
        values = [_as_digits(str(form.value), place, value) for place, value in enumerate(values)]
    return function.of((cast(form, STRING), *values), STRING.or_null(form.type.nullable))


def _as_digits(form: str, place: int, value: Scalar) -> Scalar:
    """Returns a value; one that is shown by its bits only has no more of them than in Spark."""
    letters = {
        part.letter.lower()
        for part in _read_format(form)
        if not isinstance(part, str) and part.place == place
    }
    if value.type.name == "DOUBLE" and value.type.bits == 32 and letters <= {"s"}:
        return cast(value, STRING)
    bits = value.type.bits if value.type.name == "BIGINT" else 64
    if bits == 64 or not letters or not letters <= {"x", "o"}:
        return value
    return BITWISE_AND(value, Literal((1 << bits) - 1, BIGINT.or_null(False)))


def _check_format(form: str, values: list[Scalar]) -> None:
    readable(lambda: _read_format(form))
    for part in _read_format(form):
        if isinstance(part, str):
            continue
        if part.place >= len(values):
            raise SqlTypeError(f"the format '{form}' has more places than values", "add a value")
        shown = values[part.place].type.name
        if shown not in _SHOWN[_TAKEN[part.letter.lower()]]:
            what = f"%{part.letter} does not show a value of type {values[part.place].type.or_null()}"
            raise SqlTypeError(what, "CAST it AS STRING and write %s")


# Records

FUNCTIONS = (
    ScalarFunction(
        name="FORMAT_NUMBER",
        resolve=_format_number_of,
        python=choose_always(_format_number),
        spark="format_number({all})",
    ),
    ScalarFunction(
        name="FORMAT_STRING",
        resolve=_format_string_of,
        spellings=("PRINTF",),
        python=choose_always(_format_string),
        takes_null=True,
        spark="format_string({all})",
    ),
)
"""The records."""
