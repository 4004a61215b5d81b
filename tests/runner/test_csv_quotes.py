"""Quotes that a CSV file leaves open: as Python's own reader sees them."""

from __future__ import annotations

import csv
import io
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock_spark.formats.csv import quotes
from penstock_spark.formats.csv.records import cut, cut_by_lines, fields_of


def lines(text: str) -> io.StringIO:
    return io.StringIO(text, newline="")


def is_left_open(text: io.StringIO, options: dict[str, Any]) -> bool:
    records = list(cut(text, options))
    return bool(records) and records[-1].is_open


@given(
    st.text("a,;\"' #\n\r", max_size=30),
    st.sampled_from(['"', "'"]),
    st.sampled_from([",", ";"]),
    st.booleans(),
)
def test_a_quote_is_open_if_it_swallows_a_record_that_follows(
    text: str, quote: str, separator: str, skips: bool
) -> None:
    dialect = {"quotechar": quote, "delimiter": separator, "skipinitialspace": skips}
    *_, last = csv.reader(lines(text + "\nlast\n"), **dialect)
    options = {"quotechar": quote, "sep": separator, "skipinitialspace": skips}
    assert is_left_open(lines(text + "\nlast\n"), options) == (last != ["last"])


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ('1,"x\\"\ny"\n', {"escapechar": "\\"}, False),
        ('1,"x\\"\n2,y\n', {"escapechar": "\\"}, True),
        ('1,"x\\\\"\n2,y\n', {"escapechar": "\\"}, False),
        ('#1,"x\n2,y\n', {"comment": "#"}, False),
        ('1,"x\n#"\n2,y\n', {"comment": "#"}, False),
    ],
)
def test_escapes_and_comments_count(text: str, options: dict[str, Any], expected: bool) -> None:
    assert is_left_open(lines(text), options) == expected


def fields_with_comments(text: str, options: dict[str, Any]) -> list[list[str]] | None:
    """The fields of all records, as a task cuts them; None if a quote is never closed."""
    records = list(cut(lines(text), options))
    if records and records[-1].is_open:
        return None
    if all("\n" not in record.text for record in records):
        by_lines = [record.text for record in cut_by_lines(lines(text), options)]
        assert by_lines == [record.text for record in records]
    return [fields_of(record.text, options) for record in records]


def of_pandas(text: str, options: dict[str, Any], width: int) -> list[list[str]]:
    import pandas as pd

    table = pd.read_csv(
        lines(text),
        dtype=str,
        keep_default_na=False,
        header=None,
        index_col=False,
        names=[str(number) for number in range(width)],
        **options,
    )
    found: list[list[str]] = table.to_numpy().tolist()
    return found


def check_like_pandas(seed: int) -> bool:
    """Compares the fields of a text with those that pandas reads; False if it has no comment.

    Records of nothing but blanks are left out: they are not records of ours.
    """
    chance = random.Random(seed)
    sign = chance.choice([",", ";", "\t"])
    quote, comment = chance.choice(['"', "'"]), chance.choice(["#", "%"])
    options = {"comment": comment, "quotechar": quote, "sep": sign, "skipinitialspace": chance.random() < 0.3}
    text = "".join(chance.choice(f"ab {sign}{quote}{comment}\n") for _ in range(chance.randint(0, 14))) + "\n"
    if chance.random() < 0.2:
        text = text.replace("\n", "\r\n")
    own = fields_with_comments(text, options)
    if own is None:
        return False
    theirs = of_pandas(text, options, 16)
    padded = [record + [""] * (16 - len(record)) for record in own]
    assert [each for each in padded if any(map(str.strip, each))] == [
        each for each in theirs if any(map(str.strip, each))
    ], (text, options)
    return comment in text


@pytest.mark.parametrize("count", [1_000, pytest.param(100_000, marks=pytest.mark.soak)])
def test_comments_and_line_ends_in_quotes_are_those_of_pandas(count: int) -> None:
    pytest.importorskip("pandas")
    assert sum(check_like_pandas(seed) for seed in range(count)) > count / 4


def test_the_comparison_finds_a_reader_that_knows_comments_of_whole_lines_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("pandas")

    def whole_lines(options: dict[str, Any]) -> Any:
        return lambda line: "\n" if line.startswith(options["comment"]) else line

    monkeypatch.setattr(quotes, "comment_remover", whole_lines)
    with pytest.raises(AssertionError):
        test_comments_and_line_ends_in_quotes_are_those_of_pandas(200)
