"""Intervals of months as a query writes them: ``INTERVAL '2' MONTHS``, ``INTERVAL '1-2' YEAR TO MONTH``."""

from __future__ import annotations

import re

from sqlglot import exp

_MONTHS = {"MONTH": 1, "YEAR": 12}
_SPAN = re.compile(r"\s*([+-]?)\s*([0-9]+)-([0-9]+)\s*")
_NUMBER = re.compile(r"[+-]?\s*[0-9]+")
_MONTHS_IN_YEAR = 12


def months_of(words: list[str]) -> int | None:
    """Returns the months of integers and units; None if they are none.

    >>> months_of(["2", "months"]), months_of(["1", "year", "-1", "month"]), months_of(["1", "day"])
    (2, 11, None)
    """
    months = 0
    for number, unit in zip(words[::2], words[1::2], strict=False):
        length = _MONTHS.get(unit.upper().removesuffix("S"))
        if length is None or not _NUMBER.fullmatch(number):
            return None
        months += int(number) * length
    return months if words and len(words) % 2 == 0 else None


def months_of_interval(node: exp.Expression) -> int | None:
    """Returns the months of an interval; None if it has other units."""
    unit, text = node.args.get("unit"), _text_of(node.this)
    if isinstance(unit, exp.IntervalSpan):
        if (unit.this.name.upper(), unit.expression.name.upper()) != ("YEAR", "MONTH"):
            return None
        found = _SPAN.fullmatch(text)
        if found is None or int(found[3]) >= _MONTHS_IN_YEAR:
            return None
        months = int(found[2]) * _MONTHS_IN_YEAR + int(found[3])
        return -months if found[1] == "-" else months
    return months_of([*text.split(), *([unit.name] if unit else [])])


def _text_of(node: object) -> str:
    if isinstance(node, exp.Neg):
        return f"-{node.this.name}"
    return str(node.name) if isinstance(node, exp.Expression) else str(node or "")
