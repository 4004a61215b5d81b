"""Spark properties, from strings, JSON objects, and files like ``spark-defaults.conf``."""

from __future__ import annotations

import argparse
import functools
import json
import logging
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.error import refusal
from penstock.options.option import MergingAction

_LOGGER = logging.getLogger(__name__)

_LINE = re.compile(r"((?:[^\\\s=:]|\\.)+)\s*[=:]?\s*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}


class SparkProperties(MergingAction):
    """Collects ``key=value`` strings, and JSON objects, into one dictionary; a later value wins."""

    def merged(self, so_far: Any, value: object) -> dict[str, str]:
        try:
            return {**(so_far or {}), **parse_spark_properties([str(value)])}
        except ValueError as error:
            raise argparse.ArgumentError(self, str(error).partition("\n")[0]) from None


def parse_spark_properties(given: Mapping[str, Any] | Iterable[str] | None) -> dict[str, str]:
    """Returns Spark properties as a dictionary of strings; later values win.

    Args:
        given: A mapping, or strings that are each ``key=value`` or a JSON object; None for none. Booleans
            become ``true`` and ``false``, as Spark writes them.

    Raises:
        ValueError: If a string has no ``=``, or `given` is one string.

    >>> parse_spark_properties(["spark.ui.enabled=false", '{"spark.task.cpus": 2}'])
    {'spark.ui.enabled': 'false', 'spark.task.cpus': '2'}
    """
    if isinstance(given, Mapping):
        return {_checked_name(key): _property_text(key, value) for key, value in given.items()}
    if isinstance(given, str) or not isinstance(given, Iterable | None):
        what = f"spark_conf is of the type {type(given).__name__}"
        raise refusal(ValueError, what, hint="write spark_conf=['key=value'] or a dict")
    result: dict[str, str] = {}
    for text in given or ():
        if not isinstance(text, str):
            what = f"spark_conf contains a value of the type {type(text).__name__}"
            raise refusal(ValueError, what, hint="write spark_conf=['key=value'] or a dict")
        if text.startswith("{"):
            result.update(parse_spark_properties(_object_of(text)))
            continue
        key, equals, value = text.partition("=")
        if not (key and equals):
            # The text after the name may be a secret.
            name = re.split(r"[\s:=]", text, maxsplit=1)[0]
            shown = name if name == text else f"{name} ..."
            raise refusal(ValueError, f"{shown!r} is not key=value", hint="write spark.some.property=value")
        result[key.strip()] = value
    return result


def _object_of(text: str) -> Mapping[str, Any]:
    try:
        return json.loads(text)  # type: ignore[no-any-return]
    except ValueError as error:
        # The text itself may hold a secret.
        what = f"spark_conf has an object that is not JSON: {error}"
        raise refusal(ValueError, what, hint="write spark_conf=['key=value'] or a dict") from None


def _checked_name(key: object) -> str:
    if not (isinstance(key, str) and key):
        what = f"spark_conf has a property without a name: {key!r}"
        raise refusal(ValueError, what, hint="write spark_conf={'spark.some.property': value}")
    return key


def _property_text(key: str, value: object) -> str:
    if not isinstance(value, str | int | float):
        what = f"the value of {key} in spark_conf is of the type {type(value).__name__}"
        raise refusal(ValueError, what, hint="use a string, a number, True or False")
    return str(value).lower() if isinstance(value, bool) else str(value)


def read_properties(path: str | os.PathLike[str]) -> dict[str, str]:
    """Returns the Spark properties of a file like ``spark-defaults.conf``; ValueError if it cannot be read."""
    name = os.path.expanduser(path)
    try:
        with open(name, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        what = f"the file of Spark properties {name} cannot be read: {getattr(error, 'strerror', 'it is not UTF-8')}"
        raise refusal(ValueError, what, hint="name a file like spark-defaults.conf") from None
    if os.name == "posix" and os.stat(name).st_mode & 0o044:
        _warn_of_readers(name)
    return parse_properties(text)


def parse_properties(text: str) -> dict[str, str]:
    r"""Returns the properties in a text with one property a line: ``key value``, ``key=value`` or ``key: value``.

    >>> parse_properties("# Keys.\nspark.a  b c\nspark.d = e\\\n  f\n\nspark.g:h\\=\\u0041")
    {'spark.a': 'b c', 'spark.d': 'ef', 'spark.g': 'h=A'}
    """
    found = {}
    # A line that ends with an odd number of backslashes continues in the next one.
    for line in re.sub(r"(?<!\\)((?:\\\\)*)\\\n[ \t]*", r"\1", text).splitlines():
        match = _LINE.match(line.strip())
        if match and match[1][0] not in "#!":
            found[_unescaped(match[1])] = _unescaped(match[2])
    return found


def _unescaped(text: str) -> str:
    def sign(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) > 1 else _ESCAPED.get(code, code)

    return _ESCAPE.sub(sign, text)


@functools.cache
def _warn_of_readers(path: str) -> None:
    _LOGGER.warning("%s can be read by others; if it holds secrets, run: chmod 600 %s", path, path)
