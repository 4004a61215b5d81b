"""The functions of strings that cut and change parts of them, or find a string in a list."""

from __future__ import annotations

import functools

from penstock.scalars.casting import Compute, refuse
from penstock.scalars.function import Arguments, ScalarFunction, choose_always
from penstock.scalars.resolving import SqlTypeError, cast, do_not_fit, is_any_nullable, takes, takes_strings
from penstock.scalars.spark_forms import LETTERS
from penstock.scalars.tree import Call, Literal, Scalar
from penstock.scalars.types import BINARY, STRING

# Parts


def _split_part(text: str, delimiter: str, number: int) -> str:
    if not number:
        refuse("SPLIT_PART asks for part 0", "the first part is 1, and the last one -1")
    parts = text.split(delimiter) if delimiter else [text]
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if 0 <= place < len(parts) else ""


def _substring_index(text: str, delimiter: str, count: int) -> str:
    if not delimiter or not count:
        return ""
    if count > 0:
        place = -1
        for _ in range(count):
            place = text.find(delimiter, place + 1)
            if place < 0:
                return text
        return text[:place]
    place = len(text) - len(delimiter) + 1
    for _ in range(-count):
        end = place - 1 + len(delimiter)
        place = text.rfind(delimiter, 0, end) if end >= 0 else -1
        if place < 0:
            return text
    return text[place + len(delimiter) :]


def _overlay(text: str, replacement: str, position: int, length: int = -1) -> str:
    behind = position + (length if length >= 0 else len(replacement))
    start = behind - 1 if behind > 0 else len(text) + behind if behind < 0 else 0
    return text[: max(position - 1, 0)] + replacement + text[max(start, 0) :]


def _overlay_bytes(value: bytes, replacement: bytes, position: int, length: int = -1) -> bytes:
    text, put = value.decode("latin-1"), replacement.decode("latin-1")
    return _overlay(text, put, position, length).encode("latin-1")


@functools.lru_cache(256)
def _translation(search: str, replacement: str) -> dict[int, str]:
    """The letter, or nothing, for each letter; the first of equal ones counts."""
    found: dict[int, str] = {}
    for place, letter in enumerate(search):
        found.setdefault(ord(letter), replacement[place] if place < len(replacement) else "")
    return found


def _find_in_set(word: str, words: str) -> int:
    if "," in word:
        return 0
    parts = words.split(",")
    return parts.index(word) + 1 if word in parts else 0


def _chosen_text(number: int | None, *values: str | None) -> str | None:
    """ELT: one of several strings, by its number."""
    if number is None:
        return None
    if not 1 <= number <= len(values):
        refuse("ELT asks for a value that is not there", "the first value is 1")
    return values[number - 1]


def _letter_of(code: int) -> str:
    return chr(code & 0xFF) if code >= 0 else ""


# Letters


def _title(word: str) -> str:
    return word[:1].title() + word.lower()[len(word[:1].lower()) :]


def _initcap(text: str) -> str:
    return " ".join(map(_title, text.split(" ")))


_SOUNDS = dict(zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "01230127022455012623010202", strict=True)) | {
    "H": "7",
    "W": "7",
}
"""The digit of each letter's sound: 0 for vowels, 7 for letters that are not heard."""


def _soundex(text: str) -> str:
    letters = [chr(ord(each) - 32) if "a" <= each <= "z" else each for each in text]
    if not letters or letters[0] not in _SOUNDS:
        return text
    found, last = letters[0], _SOUNDS[letters[0]]
    for letter in letters[1:]:
        sound = _SOUNDS.get(letter)
        if sound is None:
            last = "0"
        elif sound != "7":
            if sound not in ("0", last):
                found += sound
            if len(found) == 4:
                break
            last = sound
    return found.ljust(4, "0")


def _levenshtein(left: str | None, right: str | None, *limits: int | None) -> int | None:
    """The minimum number of letters that change; -1 if it is above a limit, of which Spark reads NULL as 0."""
    if left is None or right is None:
        return None
    found = _distance(left, right)
    return found if not limits or found <= (limits[0] or 0) else -1


def _distance(left: str, right: str) -> int:
    """The minimum number of letters that are inserted, deleted and changed."""
    costs = list(range(len(right) + 1))
    for row, letter in enumerate(left, 1):
        diagonal, costs[0] = costs[0], row
        for column, other in enumerate(right, 1):
            change = diagonal + (letter != other)
            diagonal = costs[column]
            costs[column] = min(change, diagonal + 1, costs[column - 1] + 1)
    return costs[-1]


def _mask(text: str, upper: str | None, lower: str | None, digit: str | None, other: str | None) -> str:
    masks = {"Lu": upper, "Ll": lower, "Nd": digit}
    found = []
    for letter in text:
        kind = "Lu" if letter.isupper() else "Ll" if letter.islower() else "Nd" if letter.isdecimal() else ""
        mask = masks.get(kind, other)
        found.append(letter if mask is None else mask)
    return "".join(found)


# Types


def _elt_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) < 2:
        raise do_not_fit(function, arguments, "a number and strings")
    number = takes("INT -> STRING")(function, arguments[:1])
    assert isinstance(number, Call)
    kind = BINARY if all(each.type.name == "BINARY" for each in arguments[1:]) else STRING
    strings = tuple(cast(each, kind.or_null(each.type.nullable)) for each in arguments[1:])
    return function.of((*number.arguments, *strings), kind)


def _levenshtein_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    found = takes("STRING STRING [INT] -> BIGINT")(function, arguments)
    assert isinstance(found, Call)
    if any(isinstance(each, Literal) and each.value is None for each in arguments[2:]):
        # Spark reads the NULL of a column as 0, and not one that the query names.
        return Literal(None, found.type.or_null())
    return function.of(found.arguments, found.type.or_null(is_any_nullable(found.arguments[:2])))


def _mask_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if not 1 <= len(arguments) <= 5:
        raise do_not_fit(function, arguments, "a string and up to four characters")
    masks = [*arguments[1:], *(Literal(each, STRING) for each in ("X", "x", "n", None)[len(arguments) - 1 :])]
    for mask in masks:
        if not isinstance(mask, Literal) or (mask.value is not None and len(str(mask.value)) != 1):
            raise SqlTypeError(f"a mask of {function.name} is not one character of the query", "write 'X'")
    if arguments[0].type.name not in ("STRING", "NULL"):
        raise do_not_fit(function, arguments, "a string and up to four characters")
    strings = tuple(cast(each, STRING) for each in masks)
    return function.of((cast(arguments[0], STRING), *strings), STRING.or_null(is_any_nullable(arguments[:1])))


# Records


def _of_text(name: str, form: str, compute: Compute, *spellings: str, whole: str = "") -> ScalarFunction:
    return ScalarFunction(
        name=name,
        resolve=takes(form),
        spellings=spellings,
        python=choose_always(compute),
        spark=f"{name.lower()}({{all}})",
        whole=whole,
    )


FUNCTIONS = (
    _of_text("SPLIT_PART", "STRING STRING INT -> STRING", _split_part),
    _of_text("SUBSTRING_INDEX", "STRING STRING INT -> STRING", _substring_index),
    ScalarFunction(
        name="OVERLAY",
        resolve=takes("STRING STRING INT [INT] -> STRING", "BINARY BINARY INT [INT] -> BINARY"),
        python=lambda result, arguments: _overlay if result.name == "STRING" else _overlay_bytes,
        spark="overlay({all})",
    ),
    _of_text(
        "TRANSLATE",
        "STRING STRING STRING -> STRING",
        lambda text, search, replacement: text.translate(_translation(search, replacement)),
    ),
    _of_text("FIND_IN_SET", "STRING STRING -> BIGINT", _find_in_set, whole="INT"),
    ScalarFunction(
        name="ELT",
        resolve=_elt_of,
        python=choose_always(_chosen_text),
        takes_null=True,
        spark="elt({all})",
    ),
    _of_text("CHR", "BIGINT -> STRING", _letter_of, "CHAR"),
    _of_text("SPACE", "INT -> STRING", lambda count: " " * count),
    ScalarFunction(
        name="INITCAP",
        resolve=takes("STRING -> STRING"),
        python=choose_always(_initcap),
        spark="initcap({0})",
        not_in_spark=LETTERS,
    ),
    ScalarFunction(
        name="SOUNDEX",
        resolve=takes_strings("STRING -> STRING"),
        python=choose_always(_soundex),
        spark="soundex({0})",
    ),
    ScalarFunction(
        name="LEVENSHTEIN",
        resolve=_levenshtein_of,
        python=choose_always(_levenshtein),
        takes_null=True,
        spark="levenshtein({all})",
        whole="INT",
    ),
    ScalarFunction(
        name="MASK",
        resolve=_mask_of,
        python=choose_always(lambda text, *masks: None if text is None else _mask(text, *masks)),
        takes_null=True,
        spark="mask({all})",
        not_in_spark=LETTERS,
    ),
    ScalarFunction(
        name="OCTET_LENGTH",
        resolve=takes("STRING -> BIGINT", "BINARY -> BIGINT"),
        python=choose_always(lambda value: len(value.encode() if isinstance(value, str) else value)),
        spark="octet_length({0})",
        whole="INT",
    ),
    ScalarFunction(
        name="BIT_LENGTH",
        resolve=takes("STRING -> BIGINT", "BINARY -> BIGINT"),
        python=choose_always(lambda value: 8 * len(value.encode() if isinstance(value, str) else value)),
        spark="bit_length({0})",
        whole="INT",
    ),
)
"""The records."""
