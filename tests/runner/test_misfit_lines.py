"""The line of a text file that does not fit its columns is found, and no value is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.io.sparkio import SparkSource
from penstock_spark.reports.misfit_lines import find_misfit_line

SCHEMA = "team string, points int, at timestamp, ok boolean, share decimal(5, 2)"
GOOD = "blue,3,2026-01-01T12:00:01Z,true,1.5\n"


def csv_source(**options: object) -> SparkSource:
    return SparkSource("csv", "/data", SCHEMA, tuple({"header": "true", **options}.items()))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("blue,3\n", "it has 2 fields, and there are 5 columns"),
        ("secret,x,2026-01-01T12:00:01Z,true,1\n", "the field 'points' is not of type INT"),
        ("blue,2147483648,2026-01-01T12:00:01Z,true,1\n", "the field 'points' is not of type INT"),
        ("blue,3,noon,true,1\n", "the field 'at' is not of type TIMESTAMP"),
        ("blue,3,,maybe,1\n", "the field 'ok' is not of type BOOLEAN"),
        ("blue,,,,secret\n", "the field 'share' is not of type DECIMAL(5,2)"),
    ],
)
def test_a_line_of_csv(tmp_path: Path, line: str, why: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f'team,points,at,ok,share\n{GOOD}"a\n,b",,,,\n{line}')
    assert find_misfit_line(str(file), csv_source()) == f"line 5 does not fit the columns: {why}"


def test_what_spark_may_read_is_not_blamed(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f"# x\n\n{GOOD}NULL,NULL,NULL,NULL,NULL\n")
    assert find_misfit_line(str(file), csv_source(header="false", comment="#", nullValue="NULL")) is None
    assert find_misfit_line(str(tmp_path / "absent.csv"), csv_source()) is None
    assert find_misfit_line(str(file), SparkSource("orc", "/data", SCHEMA)) is None


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "it is not a JSON object"),
        ("[1]", "it is not a JSON object"),
        ('{"points": "secret"}', "the field 'points' is not of type INT"),
        ('{"points": 1.5}', "the field 'points' is not of type INT"),
        ('{"team": 7}', "the field 'team' is not of type STRING"),
    ],
)
def test_a_line_of_json(tmp_path: Path, line: str, why: str) -> None:
    file = tmp_path / "a.json"
    file.write_text(f'{{"team": "blue", "points": 3, "more": []}}\n\n{line}\n')
    source = SparkSource("json", "/data", "team string, points int")
    assert find_misfit_line(str(file), source) == f"line 3 does not fit the columns: {why}"
