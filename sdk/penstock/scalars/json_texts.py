"""JSON as Spark reads and writes it: values of JSON as text, and a value at a path."""

from __future__ import annotations

import base64
import datetime
import functools
import json
import math
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, Final, TypeAlias

from penstock.elements.row import Row
from penstock.scalars.casting import text_of

Steps: TypeAlias = tuple[str | int | None, ...]
"""The steps of a path: names of fields, numbers of elements, and None for all elements."""


class Members(tuple[tuple[str, Any], ...]):
    """The members of an object in JSON, in their order; a name may be there twice."""


BROKEN: Final = object()
"""Stands for a text that is not JSON."""

_DECODERS = {strict: json.JSONDecoder(object_pairs_hook=Members, strict=strict) for strict in (False, True)}
_BLANK = " \t\r\n"
_STEP = re.compile(r"\.([^.\[]+)|\['([^'?]+)'\]|\[([0-9]+)\]|\[(\*)\]")
_ESCAPES = {
    **{chr(code): f"\\u{code:04X}" for code in range(32)},
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
    '"': '\\"',
    "\\": "\\\\",
}
_ESCAPED = re.compile('[\x00-\x1f"\\\\]')


def parse(text: str, strict: bool = False) -> object:
    """Returns the first value of a text; what is behind it does not count. `BROKEN` if there is none.

    Args:
        text: The text.
        strict: Whether control characters, such as the end of a line, must be escaped in strings.

    >>> parse('{"a": 1}'), parse("x") is BROKEN
    ((('a', 1),), True)
    """
    try:
        return _DECODERS[strict].raw_decode(text.lstrip(_BLANK))[0]
    except (ValueError, RecursionError):
        return BROKEN


def quoted(text: str) -> str:
    r"""Returns a text as JSON has it.

    >>> print(quoted("a\n\x1f"))
    "a\n\u001F"
    """
    return f'"{_ESCAPED.sub(lambda found: _ESCAPES[found.group()], text)}"'


def written(value: object) -> str:
    """Returns a parsed value as JSON without blanks.

    >>> written(parse('{"a": [1.50, null, "x"]}'))
    '{"a":[1.5,null,"x"]}'
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(value)
        case float():
            return text_of(value) if math.isfinite(value) else f'"{text_of(value)}"'
        case Members():
            return f"{{{','.join(f'{quoted(name)}:{written(each)}' for name, each in value)}}}"
        case list():
            return f"[{','.join(map(written, value))}]"
    return str(value)


# Values of SQL


def to_json(value: object) -> str:
    """Returns a value of SQL as JSON; fields of structs that are NULL are left out.

    >>> to_json(Row(a=1, b=None, c={"x": None}))
    '{"a":1,"c":{"x":null}}'
    """
    match value:
        case Row():
            pairs = ((name, each) for name, each in value.as_dict().items() if each is not None)
            return f"{{{','.join(f'{quoted(name)}:{to_json(each)}' for name, each in pairs)}}}"
        case dict():
            return f"{{{','.join(f'{quoted(text_of(key))}:{to_json(each)}' for key, each in value.items())}}}"
        case list():
            return f"[{','.join(map(to_json, value))}]"
        case datetime.datetime():
            moment = value.astimezone(datetime.UTC) if value.tzinfo else value
            clock = moment.replace(tzinfo=None).isoformat("T", "milliseconds")
            return f'"{clock}{"Z" if value.tzinfo else ""}"'
        case datetime.date():
            return f'"{value.isoformat()}"'
        case Decimal():
            return str(value)
        case bytes():
            return f'"{base64.b64encode(value).decode()}"'
    return written(value)


# Paths


@functools.lru_cache(1_000)
def steps_of(path: str) -> Steps | None:
    """Returns the steps of a path such as ``$.a[0]['b c'][*]``; None if it is not one.

    >>> steps_of("$.a[0]['b c'][*]"), steps_of("a")
    (('a', 0, 'b c', None), None)
    """
    if not path.startswith("$"):
        return None
    at, steps = 1, list[str | int | None]()
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None or found[1] == "*":
            return None
        name = found[1] or found[2]
        steps.append(name if name is not None else None if found[4] else int(found[3]))
        at = found.end()
    return tuple(steps)


def at_path(text: str, path: str) -> str | None:
    """Returns the value at a path as text: a string unchanged, and all else as JSON.

    >>> at_path('{"a": [{"b": "x"}, {"b": 2}]}', "$.a[0].b"), at_path('{"a": [{"b": 1}, {"b": 2}]}', "$.a[*].b")
    ('x', '[1,2]')
    """
    steps = steps_of(path)
    value = BROKEN if steps is None else parse(text)
    if value is BROKEN or steps is None:
        return None
    found = list(_found(value, steps, "raw"))
    return "".join(found) if found else None


def _found(value: object, steps: Steps, style: str) -> Iterator[str]:
    """Yields what is at a path: at most one text, except for the elements of arrays that are flattened."""
    if not steps:
        if style == "raw" and isinstance(value, str):
            yield value
        elif style == "flat" and isinstance(value, list):
            for each in value:
                yield from _found(each, steps, style)
        else:
            yield written(value)
        return
    step, rest = steps[0], steps[1:]
    if isinstance(value, Members) and isinstance(step, str):
        member = next((each for name, each in value if name == step), None)
        if member is not None:
            yield from _found(member, rest, style)
    elif isinstance(value, list) and isinstance(step, int):
        if step < len(value):
            yield from _found(value[step], rest, "quoted" if rest[:1] == (None,) else style)
    elif isinstance(value, list) and step is None:
        yield from _of_all(value, rest, style)


def _of_all(elements: Iterable[Any], rest: Steps, style: str) -> Iterator[str]:
    """Yields an array of what is at a path in each element; without brackets if there is one."""
    if rest[:1] == (None,):
        inner = [text for each in elements for text in _found(each, rest[1:], "flat")]
        yield f"[{','.join(inner)}]"
        return
    inner = [
        text for each in elements for text in _found(each, rest, "flat" if style == "flat" else "quoted")
    ]
    if style == "quoted":
        yield f"[{','.join(inner)}]"
    elif inner:
        yield f"[{','.join(inner)}]" if len(inner) > 1 else inner[0]
