"""The functions that a form controls: TO_NUMBER with one such as ``999,999.00``, TO_CHAR and TO_BINARY."""

from __future__ import annotations

import base64
import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from penstock.scalars.casting import Compute, refuse, try_function
from penstock.scalars.encodings import read_base_64
from penstock.scalars.function import Arguments, ScalarFunction, choose_always
from penstock.scalars.resolving import SqlTypeError, coerce, do_not_fit, readable
from penstock.scalars.time_texts import DATE_FORMAT
from penstock.scalars.tree import Literal, Scalar
from penstock.scalars.types import BINARY, STRING, SqlType, decimal_type

_FORM = re.compile(r"(MI|S)?(\$)?([09,G]*)(?:[.D]([09]*))?(MI|S|PR)?")


@dataclass(frozen=True)
class NumberForm:
    """A form of numbers.

    Attributes:
        shape: The regular expression of a text in the form.
        type: The type of the numbers.
    """

    shape: re.Pattern[str]
    type: SqlType

    def __call__(self, text: str) -> Decimal:
        """Returns the number that a text is.

        Raises:
            ArithmeticError: The text has another form.
        """
        found = self.shape.fullmatch(text.strip(" "))
        parts = found.groupdict("") if found else {}
        whole, behind = parts.get("whole", "").replace(",", ""), parts.get("behind", "")
        is_open = bool(parts.get("open"))
        if found is None or not whole + behind or is_open is not bool(parts.get("close")):
            refuse("the string of TO_NUMBER does not match its format", "TRY_TO_NUMBER returns NULL instead")
        scale = self.type.scale or 0
        sign = "-" if is_open or "-" in parts.get("sign", "") + parts.get("last", "") else ""
        value = Decimal(f"{whole or '0'}.{behind.ljust(scale, '0')}" if scale else whole or "0")
        return -value if sign and value else value


@functools.lru_cache(256)
def read_form(form: str) -> NumberForm:
    """Returns a form of numbers.

    Raises:
        ArithmeticError: It is none.

    >>> read_form("99,999.0S")("12,454.8-")
    Decimal('-12454.8')
    """
    found = _FORM.fullmatch(form.upper())
    digits = 0 if found is None else sum(letter in "09" for letter in form)
    if found is None or not 0 < digits <= 38 or (found[1] and found[5]) or _has_bare_comma(found[3]):
        refuse(f"the number format '{form}' is not supported", "write a format such as 'S999,999.00'")
    sign, dollar, whole, behind, last = found.groups("")
    shape = {"S": "(?P<sign>[+-]?)", "MI": "(?P<sign>-?)"}.get(sign, "")
    shape += r"(?P<open><?)" if last == "PR" else ""
    shape += r"\$" if dollar else ""
    shape += f"(?P<whole>{_whole_shape(whole)})"
    shape += rf"(?:\.(?P<behind>[0-9]{{0,{len(behind)}}}))?" if "." in form or "D" in form.upper() else ""
    shape += {"S": "(?P<last>[+-]?)", "MI": "(?P<last>-?)", "PR": "(?P<close>>?)"}.get(last, "")
    return NumberForm(re.compile(shape), decimal_type(digits, len(behind)))


def _has_bare_comma(whole: str) -> bool:
    return "" in re.split("[,G]", whole) and bool(re.search("[,G]", whole))


def _whole_shape(whole: str) -> str:
    groups = re.split("[,G]", whole)
    shape = ""
    for place, group in enumerate(groups):
        size = len(group)
        if whole.startswith("0"):
            shape += f"[0-9]{{{size}}}" if not place else f",[0-9]{{{size}}}"
        elif not place:
            shape = f"[0-9]{{0,{size}}}"
        else:
            shape = f"(?:{shape},)?[0-9]{{0,{size}}}"
    return shape


def _to_number(text: str, form: str) -> Decimal:
    return read_form(form)(text)


def _to_number_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) != 2:
        raise do_not_fit(function, arguments, "a string, and a format such as '999,999.00'")
    text, form = arguments
    if not isinstance(form, Literal) or not isinstance(form.value, str):
        raise SqlTypeError(f"the format of {function.name} is not a string literal", "write '999,999.00'")
    shown = form.value
    readable(lambda: read_form(shown))
    is_null = text.type.nullable or function.name.startswith("TRY_")
    parts = (coerce(text, "STRING"), form)
    return function.of(parts, read_form(shown).type.or_null(is_null))


# Bytes

_FORMS_OF_BYTES: dict[str, Callable[[bytes], str]] = {
    "BASE64": lambda data: base64.b64encode(data).decode(),
    "HEX": lambda data: data.hex().upper(),
    "UTF-8": bytes.decode,
}


def _bytes_of_hex(text: str) -> bytes:
    if not re.fullmatch("[0-9A-Fa-f]*", text):
        refuse("the string of TO_BINARY is not hexadecimal", "TRY_TO_BINARY returns NULL instead")
    return bytes.fromhex(text if len(text) % 2 == 0 else f"0{text}")


_READERS: dict[str, Callable[[str], bytes]] = {
    "HEX": _bytes_of_hex,
    "BASE64": read_base_64,
    "UTF-8": str.encode,
    "UTF8": str.encode,
}


def _name_form(function: ScalarFunction, form: Scalar, names: dict[str, Compute]) -> str:
    value = form.value if isinstance(form, Literal) else None
    if not isinstance(value, str) or value.upper() not in names:
        raise SqlTypeError(f"unknown format {form} of {function.name}", f"use one of {', '.join(names)}")
    return value.upper()


def _to_binary_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) not in (1, 2):
        raise do_not_fit(function, arguments, "a string, and 'hex', 'base64' or 'utf-8'")
    form = Literal("HEX", STRING.or_null(False)) if len(arguments) == 1 else arguments[1]
    name = Literal(_name_form(function, form, dict(_READERS)), STRING.or_null(False))
    is_null = arguments[0].type.nullable or function.name.startswith("TRY_")
    return function.of((coerce(arguments[0], "STRING"), name), BINARY.or_null(is_null))


def _to_char_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) != 2:
        raise do_not_fit(function, arguments, "a time and a pattern such as 'yyyy-MM-dd'")
    value, form = arguments
    if value.type.is_time:
        return DATE_FORMAT(value, form)
    if value.type.name == "BINARY":
        name = Literal(_name_form(function, form, dict(_FORMS_OF_BYTES)), STRING.or_null(False))
        return function.of((value, name), STRING.or_null(value.type.nullable))
    if value.type.is_number:
        what = f"{function.name} of a number is not supported"
        raise SqlTypeError(what, "write FORMAT_NUMBER(number, 2), FORMAT_STRING('%05d', number) or CAST")
    raise do_not_fit(function, arguments, "a time and a pattern such as 'yyyy-MM-dd', or bytes and 'hex'")


# Records


def _to_binary(text: str, form: str) -> bytes:
    return _READERS[form](text)


def _reads(
    name: str, compute: Compute, resolve: Callable[[ScalarFunction, Arguments], Scalar]
) -> ScalarFunction:
    return ScalarFunction(
        name=name,
        resolve=resolve,
        python=choose_always(try_function(compute) if name.startswith("TRY_") else compute),
        spark=f"{name.lower()}({{all}})",
    )


FUNCTIONS = (
    _reads("TO_NUMBER", _to_number, _to_number_of),
    _reads("TRY_TO_NUMBER", _to_number, _to_number_of),
    _reads("TO_BINARY", _to_binary, _to_binary_of),
    _reads("TRY_TO_BINARY", _to_binary, _to_binary_of),
    ScalarFunction(
        name="TO_CHAR",
        resolve=_to_char_of,
        spellings=("TO_VARCHAR",),
        python=choose_always(lambda data, form: _FORMS_OF_BYTES[form](data)),
        spark="to_char({all})",
    ),
)
"""The records."""
