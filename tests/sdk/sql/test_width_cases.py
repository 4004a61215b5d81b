"""Numbers of each width have the types, the values and the errors that Spark has for them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from penstock.scalars import python_writer
from penstock.scalars.row_functions import Projection
from penstock.scalars.widths import bounds_of
from tests.sdk.sql import texts

FIRST = texts.table()[0]
CASES = [
    line.split(" => ")
    for line in Path(__file__).with_name("width_cases.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]


def outcome(call: str) -> str:
    """The type and the text of an expression, or ERROR."""
    try:
        kind, text = Projection(
            tuple(texts.read(each) for each in (f"TYPEOF({call})", f"CAST(({call}) AS STRING)"))
        )(FIRST)
    except (ArithmeticError, texts.Refused):
        return "ERROR"
    return f"{kind} {text!r}"


def test_each_call_is_spark_s() -> None:
    wrong = []
    for call, expected in CASES:
        kind, _, value = expected.partition(" ")
        shown = "ERROR" if kind == "ERROR" else f"{kind} {ast.literal_eval(value)!r}"
        if (found := outcome(call)) != shown:
            wrong.append(f"{call}: {found}, not {shown}")
    assert not wrong, "\n" + "\n".join(wrong)
    assert len(CASES) > 100


@pytest.mark.parametrize(
    ("name", "broken", "call"),
    [
        ("bounds_of", lambda bits: bounds_of(64), "127Y + 1Y"),
        ("single", float, "CAST(0.1F + 0.2F AS DOUBLE) = 0.30000001192092896D"),
    ],
)
def test_a_width_that_is_overlooked_is_found(
    name: str, broken: object, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = outcome(call)
    monkeypatch.setattr(python_writer, name, broken)
    assert outcome(call) != before
