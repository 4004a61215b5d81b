"""Quotes that a CSV file leaves open: as Python's own reader sees them."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock_spark.formats.csv.quotes import is_left_open, spark_file_left_open


def lines(text: str) -> io.StringIO:
    return io.StringIO(text, newline="")


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


def test_a_file_is_looked_at_as_it_was_before_it_was_compressed_and_in_its_encoding(tmp_path: Path) -> None:
    def look(name: str, content: bytes, **options: Any) -> bool:
        (tmp_path / name).write_bytes(content)
        return spark_file_left_open(f"file://{tmp_path}/{name.replace(' ', '%20')}", options)

    assert look("a b.csv.gz", gzip.compress(b'\xef\xbb\xbf"a\n'))
    assert not look("a.csv", b'\xef\xbb\xbf"a\n"\n')
    assert look("b.csv", '"ä\n'.encode("utf-16"), encoding="utf-16")
    assert not look("c.csv.gz", b'"no gzip')
    assert not spark_file_left_open(f"file:{tmp_path}/none", {})
    assert not spark_file_left_open("hdfs:/a", {})
