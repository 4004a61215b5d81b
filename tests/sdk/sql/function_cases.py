"""The cases of functions, which are lines of a text: calls and their values."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_ONLY_HERE = "only here:"


class Case(NamedTuple):
    """A call and its value.

    Attributes:
        call: An expression.
        value: An expression with the same value.
        is_of_spark: Whether Spark has the function, too.
    """

    call: str
    value: str
    is_of_spark: bool


def _case(line: str) -> Case:
    call, value = line.removeprefix(_ONLY_HERE).rsplit(" -> ", 1)
    return Case(call.strip(), value.strip(), not line.startswith(_ONLY_HERE))


CASES = [
    _case(line)
    for line in Path(__file__).with_name("function_cases.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
"""All cases."""
