"""Spark properties as users write them: on the command line, in a dictionary, or in a file."""

from __future__ import annotations

import argparse
import functools
import json
import logging
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.error import three_parts

_LOGGER = logging.getLogger(__name__)

_LINE = re.compile(r"((?:[^\\\s=:]|\\.)+)\s*[=:]?\s*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}


class SparkProperties(argparse.Action):
    """Collects ``key=value`` texts, and JSON objects, into one dictionary; a later value wins."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Adds what one text says."""
        try:
            properties = spark_properties([str(values)])
        except ValueError as error:
            parser.error(f"argument {option_string}: {error}")
        setattr(namespace, self.dest, {**(getattr(namespace, self.dest) or {}), **properties})


def spark_properties(given: Mapping[str, Any] | Iterable[str] | None) -> dict[str, str]:
    """Spark properties as a dictionary of strings, however they were written.

    Args:
        given: A mapping, or texts that are each ``key=value`` or a JSON object; None for none. Booleans
            become ``true`` and ``false``, as Spark writes them.

    Returns:
        A new dictionary; a later text wins.

    Raises:
        ValueError: If a text has no ``=``, or `given` is one string.

    >>> spark_properties(["spark.ui.enabled=false", '{"spark.task.cpus": 2}'])
    {'spark.ui.enabled': 'false', 'spark.task.cpus': '2'}
    """
    if isinstance(given, Mapping):
        return {
            key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in given.items()
        }
    if isinstance(given, str):
        raise ValueError(
            three_parts("spark_conf is a string", hint="write spark_conf=['key=value'] or a dict")
        )
    result: dict[str, str] = {}
    for text in given or ():
        if text.startswith("{"):
            result.update(spark_properties(json.loads(text)))
            continue
        key, equals, value = text.partition("=")
        if not (key and equals):
            # What stands behind the name may be a secret.
            name = re.split(r"[\s:=]", text, maxsplit=1)[0]
            shown = name if name == text else f"{name} ..."
            raise ValueError(
                three_parts(f"{shown!r} is not key=value", hint="write spark.some.property=value")
            )
        result[key.strip()] = value
    return result


def properties_of_file(path: str | os.PathLike[str]) -> dict[str, str]:
    """The Spark properties of a file like Spark's own ``spark-defaults.conf``.

    Args:
        path: The file; ``~`` is the user's home.

    Raises:
        ValueError: It cannot be read.
    """
    name = os.path.expanduser(path)
    try:
        with open(name, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        what = f"the file of Spark properties {name} cannot be read: {getattr(error, 'strerror', 'it is no UTF-8')}"
        raise ValueError(three_parts(what, hint="name a file like spark-defaults.conf")) from None
    if os.name == "posix" and os.stat(name).st_mode & 0o044:
        _warn_of_readers(name)
    return parsed_properties(text)


def parsed_properties(text: str) -> dict[str, str]:
    r"""The properties in a text with a line for each: ``key value``, ``key=value`` or ``key: value``.

    >>> parsed_properties("# Keys.\nspark.a  b c\nspark.d = e\\\n  f\n\nspark.g:h\\=\\u0041")
    {'spark.a': 'b c', 'spark.d': 'ef', 'spark.g': 'h=A'}
    """
    found = {}
    # A line that ends with an odd number of backslashes goes on in the next one.
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
    """Says once that others can read a file."""
    _LOGGER.warning("%s can be read by others; if it holds secrets, run: chmod 600 %s", path, path)
