"""The functions that encode strings and bytes: digests, numbers and bytes as text, and parts of URLs."""

from __future__ import annotations

import base64
import hashlib
import zlib

from penstock.scalars.casting import Compute, refuse
from penstock.scalars.conditions import CASE, NULL_SAFE
from penstock.scalars.function import Arguments, ScalarFunction, choose_always, choose_by_type
from penstock.scalars.resolving import cast, do_not_fit, takes
from penstock.scalars.tree import Scalar
from penstock.scalars.types import BIGINT, DOUBLE, STRING

_EVERY_BIT = (1 << 64) - 1


# Digests


def _digest(name: str) -> Compute:
    def compute(value: bytes) -> str:
        return hashlib.new(name, value, usedforsecurity=False).hexdigest()

    return compute


def _sha2(value: bytes, bits: int) -> str | None:
    name = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}.get(bits)
    return _digest(name)(value) if name else None


# Bytes as text

_LETTERS_OF_BASE_64 = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def read_base_64(text: str) -> bytes:
    """Returns the bytes of a text in base 64, in which other letters mean nothing.

    >>> read_base_64("YWJj")
    b'abc'
    """
    data = text.encode()
    end = data.find(b"=")
    kept = bytes(each for each in (data if end < 0 else data[:end]) if each in _LETTERS_OF_BASE_64)
    behind = b"" if end < 0 else data[end:]
    last = len(kept) % 4
    is_padded = last == 3 or (last == 2 and behind[:2] == b"==")
    if last == 1 or (behind and not is_padded) or any(each in _LETTERS_OF_BASE_64 for each in behind):
        refuse(
            "the string of UNBASE64 is not in base 64", "TRY_TO_BINARY(text, 'base64') returns NULL instead"
        )
    return base64.b64decode(kept + b"=" * (-len(kept) % 4))


def _hex_of_whole(value: int) -> str:
    return f"{value & _EVERY_BIT:X}"


def _unhex(text: str) -> bytes | None:
    if len(text) % 2:
        text = f"0{text}"
    try:
        # Python accepts spaces between the digits.
        return bytes.fromhex(text) if text.isalnum() or not text else None
    except ValueError:
        return None


_CHARSETS = {
    "US-ASCII": "ascii",
    "ISO-8859-1": "latin-1",
    "UTF-8": "utf-8",
    "UTF-16BE": "utf-16-be",
    "UTF-16LE": "utf-16-le",
    "UTF-16": "utf-16",
    "UTF-32": "utf-32-be",
}


def _charset(name: str) -> str:
    found = _CHARSETS.get(name.upper())
    return found or refuse(
        "a character set of an SQL expression is unknown", f"use one of {', '.join(sorted(_CHARSETS))}"
    )


def _encode(text: str, charset: str) -> bytes:
    codec = _charset(charset)
    try:
        if codec == "utf-16":
            return b"\xfe\xff" + text.encode("utf-16-be") if text else b""
        return text.encode(codec)
    except UnicodeEncodeError:
        refuse("ENCODE has a letter that the character set does not have", "write 'UTF-8'")


def _decode(data: bytes, charset: str) -> str:
    codec = _charset(charset)
    try:
        if codec == "utf-16" and data[:2] not in (b"\xfe\xff", b"\xff\xfe"):
            codec = "utf-16-be"
        return data.decode(codec)
    except UnicodeDecodeError:
        refuse("DECODE has bytes that are not in the character set", "keep them as BINARY")


def _decode_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    """DECODE of bytes and a character set, or CASE in the words of another language."""
    if len(arguments) == 2:
        return takes("BINARY STRING -> STRING")(function, arguments)
    if len(arguments) < 2:
        raise do_not_fit(function, arguments, "bytes and a character set, or a value with values and results")
    value, *rest = arguments
    if len(rest) % 2 == 0:
        # Spark's NULL of a missing default is a string, and so decimals become floats, and numbers get 64 bits.
        names = {each.type.name for each in rest[1::2]}
        wide = DOUBLE if "DECIMAL" in names else BIGINT if names == {"BIGINT"} else None
        if wide is not None and (wide is DOUBLE or value.type.name != "STRING"):
            rest = [cast(each, wide) if at % 2 else each for at, each in enumerate(rest)]
    parts: list[Scalar] = []
    for searched, result in zip(rest[::2], rest[1::2], strict=False):
        parts += [NULL_SAFE(value, searched), result]
    return CASE(*parts, *rest[len(parts) :])


# Numbers in another base

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _in_base(value: int, base: int) -> str:
    digits = ""
    while value:
        value, digit = divmod(value, base)
        digits = _DIGITS[digit] + digits
    return digits or "0"


def _convert_base(text: str, base: int, target: int) -> str | None:
    """CONV: a number in another base. A negative base shows the sign, another one the number of 64 bits."""
    text = text.strip(" ")
    if not 2 <= base <= 36 or not 2 <= abs(target) <= 36 or not text:
        return None
    negative, value = text.startswith("-"), 0
    for letter in text[negative:].upper():
        digit = _DIGITS.find(letter)
        if not 0 <= digit < base:
            break
        value = value * base + digit
        if value > _EVERY_BIT:
            refuse("CONV has a number of more than 64 bits", "use a smaller number")
    signed = value - (1 << 64) if value >> 63 else value
    if negative and target > 0:
        signed = -1 if signed < 0 else -signed
    if target < 0 and signed < 0:
        signed, negative = -signed, True
    shown = _in_base(signed & _EVERY_BIT, abs(target))
    return f"-{shown}" if negative and target < 0 else shown


def _convert_base_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if arguments and arguments[0].type.name == "BIGINT":
        arguments = (cast(arguments[0], STRING.or_null(arguments[0].type.nullable)), *arguments[1:])
    return takes("STRING INT INT -> STRING?")(function, arguments)


def _hex_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) == 1 and arguments[0].type.is_number:
        arguments = (cast(arguments[0], BIGINT.or_null(arguments[0].type.nullable)),)
    return takes("BIGINT -> STRING", "STRING -> STRING", "BINARY -> STRING")(function, arguments)


# Records


def _of_bytes(name: str, compute: Compute, result: str, *spellings: str) -> ScalarFunction:
    return ScalarFunction(
        name=name,
        resolve=takes(f"BINARY -> {result}"),
        spellings=spellings,
        python=choose_always(compute),
        spark=f"{name.lower()}({{0}})",
    )


FUNCTIONS = (
    ScalarFunction(
        name="MD5",
        resolve=takes("BINARY -> STRING"),
        python=choose_always(_digest("md5")),
        spark="md5({0})",
    ),
    ScalarFunction(
        name="SHA1",
        resolve=takes("BINARY -> STRING"),
        spellings=("SHA",),
        python=choose_always(_digest("sha1")),
        spark="sha1({0})",
    ),
    ScalarFunction(
        name="SHA2",
        resolve=takes("BINARY INT -> STRING?"),
        python=choose_always(_sha2),
        spark="sha2({all})",
    ),
    _of_bytes("CRC32", zlib.crc32, "BIGINT"),
    _of_bytes("BASE64", lambda data: base64.b64encode(data).decode(), "STRING"),
    ScalarFunction(
        name="UNBASE64",
        resolve=takes("STRING -> BINARY"),
        python=choose_always(read_base_64),
        spark="unbase64({0})",
    ),
    ScalarFunction(
        name="HEX",
        resolve=_hex_of,
        python=choose_by_type(
            {
                "BIGINT": _hex_of_whole,
                "STRING": lambda text: text.encode().hex().upper(),
                "BINARY": lambda data: data.hex().upper(),
            }
        ),
        spark="hex({0})",
    ),
    ScalarFunction(
        name="UNHEX", resolve=takes("STRING -> BINARY?"), python=choose_always(_unhex), spark="unhex({0})"
    ),
    ScalarFunction(
        name="BIN",
        resolve=takes("BIGINT -> STRING"),
        python=choose_always(lambda value: f"{value & _EVERY_BIT:b}"),
        spark="bin({0})",
    ),
    ScalarFunction(
        name="CONV",
        resolve=_convert_base_of,
        python=choose_always(_convert_base),
        spark="conv({all})",
    ),
    ScalarFunction(
        name="ENCODE",
        resolve=takes("STRING STRING -> BINARY"),
        python=choose_always(_encode),
        spark="encode({all})",
    ),
    ScalarFunction(name="DECODE", resolve=_decode_of, python=choose_always(_decode), spark="decode({all})"),
)
"""The records."""
