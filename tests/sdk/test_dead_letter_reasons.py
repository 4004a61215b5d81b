"""A dead letter as a rejected record: its reason is what a person reads, and not how Python writes the exception."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NoReturn

import pytest

from penstock.io.rejects import Position, from_dead_letter, reject
from penstock.tracebacks import format_failure


class NotPriced(Exception):
    def __repr__(self) -> str:
        return "<NotPriced at 0x7f>"


def _two_lines() -> NoReturn:
    raise ValueError("no price\nof: tea")


def _own() -> NoReturn:
    raise NotPriced("no price")


def _chained() -> NoReturn:
    try:
        _two_lines()
    except ValueError as error:
        raise NotPriced("no sale") from error


_FAILURES: dict[str, tuple[Callable[[], object], str]] = {
    "a message": (lambda: int("x"), "ValueError: invalid literal for int() with base 10: 'x'"),
    "a key": (lambda: {}["tea"], "KeyError: 'tea'"),
    "several lines": (_two_lines, "ValueError: no price"),
    "a repr of its own": (_own, "NotPriced: no price"),
    "a cause": (_chained, "NotPriced: no sale"),
    "a module's class": (
        lambda: json.loads("x"),
        "JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
    ),
    "no message": (lambda: next(iter(())), "StopIteration"),
}


@pytest.mark.parametrize(("fail", "reason"), _FAILURES.values(), ids=_FAILURES)
def test_the_reason_of_a_dead_letter_is_a_class_and_a_message(fail, reason) -> None:
    try:
        fail()
    except Exception as error:
        record = from_dead_letter(("tea", (type(error), repr(error), format_failure(error))), "Price")
    assert record.reason == reason
    assert str(record) == f"Price: {reason}"


def test_a_key_that_a_decoder_lacks_is_a_reason_of_the_same_form() -> None:
    assert reject("a.csv", Position(line=2), "tea", KeyError("tea")).reason == "KeyError: 'tea'"
    assert reject("a.csv", Position(line=2), "tea", ValueError()).reason == "ValueError"
    assert reject("a.csv", Position(line=2), "tea", ValueError("no price")).reason == "no price"


def test_a_letter_without_lines_keeps_its_own_words() -> None:
    assert from_dead_letter(("tea", (ValueError, "ValueError('x')", None))).reason == "ValueError('x')"
